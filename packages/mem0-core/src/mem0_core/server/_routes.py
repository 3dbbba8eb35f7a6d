"""Table of the routes: their fields and parameters as JSON schemas, for the handlers and the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, TypeAlias

from mem0_core._system.records import dataclass

Schema: TypeAlias = Mapping[str, Any]

MCP_PATH = "/mcp"
"""Path of the Model Context Protocol, which is no route of the REST interface."""

_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_OBJECT: Schema = {"type": "object"}
_SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
_TIME: Schema = {"type": ["string", "number"], "description": "ISO 8601, or Unix seconds"}
_FILTERS: Schema = {"type": "object", "description": "Conditions on fields and metadata; may hold the ids too"}
_MESSAGES: Schema = {
    "description": "A text, a message, or messages",
    "anyOf": [_TEXT, {"$ref": "#/components/schemas/Message"}, {"type": "array"}],
}

SCOPE: Mapping[str, Schema] = {name: {"type": ["string", "null"]} for name in ("user_id", "agent_id", "run_id")}
"""The ids of an owner, which every request may name."""

ADD: Mapping[str, Schema] = {
    "messages": _MESSAGES,
    "metadata": _OBJECT,
    "infer": _FLAG,
    "keep": {"enum": ["all", "statements"]},
    "memory_type": _TEXT,
    "prompt": _TEXT,
    "timestamp": _TIME,
    "expiration_date": {"type": "string", "format": "date"},
    "source": _TEXT,
    "background": _FLAG,
    "filters": {"type": "object", "description": "The ids, where mem0's client names them"},
}
SEARCH: Mapping[str, Schema] = {
    "query": _TEXT,
    "filters": _FILTERS,
    "top_k": _COUNT,
    "limit": _COUNT,
    "threshold": _SHARE,
    "rerank": _FLAG,
    "explain": _FLAG,
    "as_of": _TIME,
    "reference_date": _TIME,
    "include_superseded": _FLAG,
}
CONTEXT: Mapping[str, Schema] = {
    "query": {"anyOf": [*_MESSAGES["anyOf"], {"type": "null"}]},
    "max_tokens": _COUNT,
    "limit": _COUNT,
    "recent": {"type": "integer", "minimum": 0},
    "filters": _FILTERS,
    "threshold": _SHARE,
    "citations": _FLAG,
    "as_of": _TIME,
    "reference_date": _TIME,
}
ANSWER: Mapping[str, Schema] = {"question": _TEXT, "filters": _FILTERS, "as_of": _TIME, "reference_date": _TIME}
UPDATE: Mapping[str, Schema] = {"text": _TEXT, "metadata": _OBJECT}
FEEDBACK: Mapping[str, Schema] = {
    "memory_id": _TEXT,
    "feedback": {"enum": ["POSITIVE", "NEGATIVE", "VERY_NEGATIVE", None]},
    "feedback_reason": {**_TEXT, "description": "Not stored"},
}
PAGE: Mapping[str, Schema] = {"filters": _FILTERS}

SPACE: Mapping[str, Schema] = {"space": _TEXT, "requires_approval": _FLAG}
APPROVAL: Mapping[str, Schema] = {"requires_approval": _FLAG}
MEMBER: Mapping[str, Schema] = {"role": {"enum": ["reader", "writer", "owner"]}}
VERDICT: Mapping[str, Schema] = {"approve": _FLAG}
ADD_TO_SPACE = {name: ADD[name] for name in ("messages", "metadata", "infer", "timestamp", "background")}
_PLACES: Mapping[str, Schema] = {"spaces": {"type": "array", "items": _TEXT}, "own": _FLAG}
SEARCH_SPACES = {**{name: one for name, one in SEARCH.items() if name != "top_k"}, **_PLACES}
SPACES_CONTEXT = {**CONTEXT, **_PLACES}
ANSWER_FROM_SPACES = {**ANSWER, **_PLACES}

# Fields of mem0's clients that ask for something that this library always, or never, does.
IGNORED = (
    *("async_mode", "output_format", "version", "enable_graph", "org_id", "project_id", "fields", "show_expired"),
    *("keyword_search", "latest_only"),
)

_LIST = {"top_k": _COUNT, "limit": _COUNT, "cursor": _TEXT, "show_expired": _FLAG}
_EVENTS = {"after": {"type": "integer", "minimum": 0}, "limit": _COUNT}
_RELATIONS = {"as_of": _TEXT, "ended": _FLAG, "limit": _COUNT}


@dataclass(frozen=True, slots=True)
class Route:
    """One route.

    Attributes:
        method, path: HTTP method, and path with its parameters in braces.
        handler: Name of the method of `RestApi` that serves it; the first line of its docstring describes the route.
        result: Name of the schema of its result; with brackets, of a list of them.
        body: Fields of its JSON body; None without a body.
        query: Parameters of its query string.
        required: Names of the required fields of the body.
        is_write: It changes memories: a read-only key may not use it, and an `Idempotency-Key` makes it repeatable.
        is_public: It needs no key.
    """

    method: str
    path: str
    handler: str
    result: str
    body: Mapping[str, Schema] | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    is_write: bool = False
    is_public: bool = False


def _ask(method: str, path: str, handler: str, result: str, body: Mapping[str, Schema], *required: str) -> Route:
    """Return a route that changes nothing: its body is a question."""
    return Route(method, path, handler, result, body=body, required=required)


def _write(method: str, path: str, handler: str, result: str, body: Mapping[str, Schema], *required: str) -> Route:
    """Return a route that changes memories as its body says."""
    return Route(method, path, handler, result, body=body, required=required, is_write=True)


_ONE, _KNOWN = "/memories/{memory_id}", "/v1/memories/{memory_id}/"
_ADD, _SEARCH = {**SCOPE, **ADD}, {**SCOPE, **SEARCH}

_SELF_HOSTED = (
    _write("POST", "/memories", "add", "Added", _ADD, "messages"),
    Route("GET", "/memories", "list_all", "Memories", query={**SCOPE, **_LIST}),
    Route("DELETE", "/memories", "delete_all", "Done", query=SCOPE, is_write=True),
    _ask("POST", "/search", "search", "Memories", _SEARCH, "query"),
    Route("GET", _ONE, "get", "Memory?"),
    _write("PUT", _ONE, "update", "Updated", UPDATE),
    Route("DELETE", _ONE, "delete", "Done", is_write=True),
    Route("GET", f"{_ONE}/history", "history", "Change[]"),
    Route("POST", "/reset", "reset", "Done", is_write=True),
    Route("DELETE", "/entities/{kind}/{name}", "delete_entity", "Done", is_write=True),
)
_CLIENT = (
    Route("GET", "/v1/ping/", "ping", "Ping"),
    _write("POST", "/v3/memories/add/", "add", "Added", _ADD, "messages"),
    Route(
        *("POST", "/v3/memories/", "list_page", "Page"),
        body={**SCOPE, **PAGE},
        query={"page": _COUNT, "page_size": _COUNT},
    ),
    _ask("POST", "/v3/memories/search/", "search", "Memories", _SEARCH, "query"),
    Route("GET", _KNOWN, "get_known", "Memory"),
    _write("PUT", _KNOWN, "update", "Updated", UPDATE),
    Route("DELETE", _KNOWN, "delete", "Done", is_write=True),
    Route("GET", f"{_KNOWN}history/", "history", "Change[]"),
    Route("DELETE", "/v1/memories/", "delete_all", "Done", query=SCOPE, is_write=True),
    _write("POST", "/v1/feedback/", "give_feedback", "Feedback", FEEDBACK, "memory_id"),
    Route("DELETE", "/v2/entities/{kind}/{name}/", "delete_entity", "Done", is_write=True),
)
_USER: Mapping[str, Schema] = {"user_id": SCOPE["user_id"]}
_SPACE = "/v1/spaces/{space}"
_ONE_MEMBER, _ONE_SHARED = f"{_SPACE}/members/{{member}}", f"{_SPACE}/memories/{{memory_id}}"
_SPACES = (
    Route("GET", "/v1/spaces", "list_spaces", "Space[]", query=_USER),
    _write("POST", "/v1/spaces", "create_space", "Space", {**_USER, **SPACE}, "space"),
    _write("PATCH", _SPACE, "set_approval", "Done", {**_USER, **APPROVAL}, "requires_approval"),
    Route("DELETE", _SPACE, "delete_space", "Receipt", query=_USER, is_write=True),
    Route("GET", f"{_SPACE}/members", "list_members", "Member[]", query=_USER),
    _write("PUT", _ONE_MEMBER, "set_member", "Done", {**_USER, **MEMBER}, "role"),
    Route("DELETE", _ONE_MEMBER, "remove_member", "Done", query=_USER, is_write=True),
    Route("GET", f"{_SPACE}/memories", "list_space", "Memories", query={**_USER, "limit": _COUNT}),
    _write("POST", f"{_SPACE}/memories", "add_to_space", "Added", {**_USER, **ADD_TO_SPACE}, "messages"),
    _write("PUT", _ONE_SHARED, "update_in_space", "Done", {**_USER, **UPDATE}, "text"),
    Route("DELETE", _ONE_SHARED, "delete_in_space", "Done", query=_USER, is_write=True),
    Route("GET", f"{_SPACE}/writes", "list_writes", "Write[]", query=_USER),
    _write("POST", f"{_SPACE}/writes/{{write_id}}", "settle_write", "Settled", {**_USER, **VERDICT}, "approve"),
    _ask("POST", "/v1/spaces/search", "search_spaces", "Memories", {**_USER, **SEARCH_SPACES}, "query"),
    _ask("POST", "/v1/spaces/context", "build_space_context", "Context", {**_USER, **SPACES_CONTEXT}),
    _ask("POST", "/v1/spaces/answer", "answer_from_spaces", "Answer", {**_USER, **ANSWER_FROM_SPACES}, "question"),
)
_OURS = (
    _ask("POST", "/v1/context", "context", "Context", {**SCOPE, **CONTEXT}),
    _ask("POST", "/v1/answer", "answer", "Answer", {**SCOPE, **ANSWER}, "question"),
    Route("GET", "/v1/relations", "relations", "Relation[]", query={**SCOPE, **_RELATIONS}),
    Route("GET", "/v1/events", "events", "Changes", query={**SCOPE, **_EVENTS}),
    *_SPACES,
    Route("GET", "/openapi.json", "describe", "Document", is_public=True),
    Route("GET", "/healthz", "check_health", "Status", is_public=True),
    Route("GET", "/readyz", "check_readiness", "Status", is_public=True),
)

ROUTES: tuple[Route, ...] = (*_SELF_HOSTED, *_CLIENT, *_OURS)
"""Every route: those of mem0's self-hosted server, those of its client, and ours."""
