"""The OpenAPI document of the REST interface, from the table of its routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from typing import Any

from mem0_core.server._routes import Route, Schema

_TEXT: Schema = {"type": "string"}
_OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
_MEMORIES: Schema = {"type": "array", "items": {"$ref": "#/components/schemas/Memory"}}
_RELATIONS: Schema = {"type": "array", "items": {"$ref": "#/components/schemas/Relation"}}
_PAGE_URL: Schema = {"type": ["string", "null"]}

_MEMORY: Mapping[str, Schema] = {
    **dict.fromkeys(("id", "memory", "hash", "created_at"), _TEXT),
    **{name: {"type": ["string", "null"]} for name in ("updated_at", "user_id", "agent_id", "run_id")},
    "metadata": {"type": "object"},
    "score": {"type": "number"},
    "space": {"type": ["string", "null"], "description": "The space of the memory; null for the user's own"},
}


def _object(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


_SCHEMAS: Mapping[str, Schema] = {
    "Message": _object({"role": _TEXT, "content": {}, "name": _TEXT, "id": _TEXT}, "role", "content"),
    "Memory": _object(_MEMORY, "id", "memory"),
    "Memories": _object({"results": _MEMORIES, "relations": _RELATIONS, "next_cursor": _PAGE_URL}, "results"),
    "Page": _object(
        {"count": {"type": "integer"}, "next": _PAGE_URL, "previous": _PAGE_URL, "results": _MEMORIES},
        *("count", "next", "previous", "results"),
    ),
    "Added": _object(
        {
            "results": _OBJECTS,
            "relations": _RELATIONS,
            "job_id": _TEXT,
            "usage": {"type": "object"},
            "pending_write": {"type": "string", "description": "Id of a write to a space that waits for approval"},
        }
    ),
    "Updated": _object({"message": _TEXT, **_MEMORY}, "message"),
    "Change": _object({"event": _TEXT, "old_memory": _PAGE_URL, "new_memory": _PAGE_URL, "created_at": _TEXT}),
    "Changes": _object({"results": _OBJECTS, "cursor": {"type": "integer"}}, "results", "cursor"),
    "Relation": _object(dict.fromkeys(("source", "relationship", "destination"), _TEXT)),
    "Context": _object({"text": _TEXT, "memories": _MEMORIES, "tokens": {"type": "integer"}}, "text"),
    "Answer": _object({"answer": {"type": ["string", "null"]}, "confidence": {"type": "number"}}, "answer"),
    "Space": _object({"space": _TEXT, "role": _TEXT, "requires_approval": {"type": "boolean"}}, "space", "role"),
    "Member": _object(dict.fromkeys(("user_id", "role", "since"), _TEXT), "user_id", "role"),
    "Write": _object(
        {**dict.fromkeys(("id", "space", "author", "kind", "created_at"), _TEXT), "arguments": {"type": "object"}},
        *("id", "author", "kind", "arguments"),
    ),
    "Settled": {"type": "object", "description": "The result of an approved write, or a message"},
    "Receipt": {"type": "object", "description": "The signed receipt of an erasure"},
    "Ping": _object({"status": _TEXT}, "status"),
    "Feedback": _object({"id": _TEXT, "useful": {"type": "integer"}, "useless": {"type": "integer"}}, "id"),
    "Done": _object({"message": _TEXT}, "message"),
    "Status": _object({"status": {"enum": ["ok", "unavailable"]}}, "status"),
    "Document": {"type": "object"},
    "Problem": _object({"status": {"type": "integer"}, "title": _TEXT, "detail": _TEXT}, "status", "title", "detail"),
}
_PROBLEM: Schema = {
    "description": "A problem document (RFC 9457)",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
_IDEMPOTENCY_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Repeats of a request with the same key return its first response for a day",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255},
}


def build_document(routes: Iterable[Route], handlers: object, version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of some routes, described by the docstrings of their handlers."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        text = inspect.getdoc(getattr(handlers, route.handler)) or ""
        paths.setdefault(route.path, {})[route.method.lower()] = _describe(route, text.partition("\n")[0].rstrip("."))
    schemes = {
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        "bearer": {"type": "http", "scheme": "bearer"},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "mem0-core", "version": version, "description": "Long-term memory for LLM agents."},
        "paths": paths,
        "components": {"schemas": dict(_SCHEMAS), "securitySchemes": schemes},
        "security": [{"key": []}, {"bearer": []}],
    }


def _describe(route: Route, summary: str) -> dict[str, Any]:
    """Return the operation object of a route."""
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{route.method.lower()}{route.path}").strip("_"),
        "summary": summary,
        "responses": {
            "200": {"description": summary, "content": {"application/json": {"schema": _refer(route.result)}}},
            "default": _PROBLEM,
        },
    }
    parameters: list[Schema] = [
        {"name": name, "in": "path", "required": True, "schema": _TEXT} for name in re.findall(r"{(\w+)}", route.path)
    ]
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in route.query.items()]
    if route.is_write:
        parameters.append(_IDEMPOTENCY_KEY)
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        schema = {**_object(route.body, *route.required), "additionalProperties": True}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if route.is_public:
        operation["security"] = []
    return operation


def _refer(result: str) -> Schema:
    """Return the schema of a result: `Name`, a list as `Name[]`, or one that may be null as `Name?`."""
    name = result.rstrip("[]?")
    reference: Schema = {"$ref": f"#/components/schemas/{name}"}
    if result.endswith("[]"):
        return {"type": "array", "items": reference}
    return {"anyOf": [reference, {"type": "null"}]} if result.endswith("?") else reference
