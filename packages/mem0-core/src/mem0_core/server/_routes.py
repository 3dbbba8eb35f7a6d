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
        handler: Name of the method of `RestApi` that serves it.
        summary: Its purpose.
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
    summary: str
    result: str
    body: Mapping[str, Schema] | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    is_write: bool = False
    is_public: bool = False


_ONE, _KNOWN = "/memories/{memory_id}", "/v1/memories/{memory_id}/"
_ADDED: dict[str, Any] = {"body": {**SCOPE, **ADD}, "required": ("messages",), "is_write": True}
_SEARCHED: dict[str, Any] = {"body": {**SCOPE, **SEARCH}, "required": ("query",)}
_UPDATED: dict[str, Any] = {"body": UPDATE, "is_write": True}

_SELF_HOSTED = (
    Route("POST", "/memories", "add", "Add messages", "Added", **_ADDED),
    Route("GET", "/memories", "list_all", "List the memories of a scope", "Memories", query={**SCOPE, **_LIST}),
    Route("DELETE", "/memories", "delete_all", "Delete everything of a scope", "Done", query=SCOPE, is_write=True),
    Route("POST", "/search", "search", "Search memories", "Memories", **_SEARCHED),
    Route("GET", _ONE, "get", "Return a memory, or null", "Memory?"),
    Route("PUT", _ONE, "update", "Replace the text of a memory, or add to its metadata", "Updated", **_UPDATED),
    Route("DELETE", _ONE, "delete", "Delete a memory", "Done", is_write=True),
    Route("GET", f"{_ONE}/history", "history", "Return the changes of a memory", "Change[]"),
    Route("POST", "/reset", "reset", "Empty the store; for administrators", "Done", is_write=True),
    Route("DELETE", "/entities/{kind}/{name}", "delete_entity", "Delete everything of an id", "Done", is_write=True),
)
_CLIENT = (
    Route("GET", "/v1/ping/", "ping", "Confirm a key", "Ping"),
    Route("POST", "/v3/memories/add/", "add", "Add messages", "Added", **_ADDED),
    Route(
        *("POST", "/v3/memories/", "list_page", "List a page of memories", "Page"),
        body={**SCOPE, **PAGE},
        query={"page": _COUNT, "page_size": _COUNT},
    ),
    Route("POST", "/v3/memories/search/", "search", "Search memories", "Memories", **_SEARCHED),
    Route("GET", _KNOWN, "get_known", "Return a memory", "Memory"),
    Route("PUT", _KNOWN, "update", "Replace the text of a memory, or add to its metadata", "Updated", **_UPDATED),
    Route("DELETE", _KNOWN, "delete", "Delete a memory", "Done", is_write=True),
    Route("GET", f"{_KNOWN}history/", "history", "Return the changes of a memory", "Change[]"),
    Route("DELETE", "/v1/memories/", "delete_all", "Delete everything of a scope", "Done", query=SCOPE, is_write=True),
    Route(
        *(
            "POST",
            "/v1/feedback/",
            "give_feedback",
            "Mark a memory as useful or useless, or withdraw it",
            "Feedback",
        ),
        body=FEEDBACK,
        required=("memory_id",),
        is_write=True,
    ),
    Route("DELETE", "/v2/entities/{kind}/{name}/", "delete_entity", "Delete an id", "Done", is_write=True),
)
_USER: Mapping[str, Schema] = {"user_id": SCOPE["user_id"]}
_IN_SPACE = "/v1/spaces/{space}"
_ONE_MEMBER, _ONE_SHARED = f"{_IN_SPACE}/members/{{member}}", f"{_IN_SPACE}/memories/{{memory_id}}"
_SPACES = (
    Route("GET", "/v1/spaces", "list_spaces", "List the spaces of a user", "Space[]", query=_USER),
    Route(
        *("POST", "/v1/spaces", "create_space", "Create a space", "Space"),
        body={**_USER, **SPACE},
        required=("space",),
        is_write=True,
    ),
    Route(
        *("PATCH", _IN_SPACE, "set_approval", "Let the writes of a space wait for approval, or not", "Done"),
        body={**_USER, **APPROVAL},
        required=("requires_approval",),
        is_write=True,
    ),
    Route("DELETE", _IN_SPACE, "delete_space", "Erase a space", "Receipt", query=_USER, is_write=True),
    Route("GET", f"{_IN_SPACE}/members", "list_members", "List the members of a space", "Member[]", query=_USER),
    Route(
        *("PUT", _ONE_MEMBER, "set_member", "Add a member to a space, or change a role", "Done"),
        body={**_USER, **MEMBER},
        required=("role",),
        is_write=True,
    ),
    Route("DELETE", _ONE_MEMBER, "remove_member", "Remove a member from a space", "Done", query=_USER, is_write=True),
    Route(
        *("GET", f"{_IN_SPACE}/memories", "list_space", "List the memories of a space", "Memories"),
        query={**_USER, "limit": _COUNT},
    ),
    Route(
        *("POST", f"{_IN_SPACE}/memories", "add_to_space", "Add messages to a space", "Added"),
        body={**_USER, **ADD_TO_SPACE},
        required=("messages",),
        is_write=True,
    ),
    Route(
        *("PUT", _ONE_SHARED, "update_in_space", "Replace the text of a memory of a space", "Done"),
        body={**_USER, **UPDATE},
        required=("text",),
        is_write=True,
    ),
    Route("DELETE", _ONE_SHARED, "delete_in_space", "Delete a memory of a space", "Done", query=_USER, is_write=True),
    Route("GET", f"{_IN_SPACE}/writes", "list_writes", "List the writes that wait", "Write[]", query=_USER),
    Route(
        *("POST", f"{_IN_SPACE}/writes/{{write_id}}", "settle_write", "Approve or reject a write", "Settled"),
        body={**_USER, **VERDICT},
        required=("approve",),
        is_write=True,
    ),
    Route(
        *("POST", "/v1/spaces/search", "search_spaces", "Search a user's memories and those of spaces", "Memories"),
        body={**_USER, **SEARCH_SPACES},
        required=("query",),
    ),
    Route(
        *("POST", "/v1/spaces/context", "build_space_context", "Return the context of a turn, with spaces", "Context"),
        body={**_USER, **SPACES_CONTEXT},
    ),
    Route(
        *("POST", "/v1/spaces/answer", "answer_from_spaces", "Answer a question, with spaces", "Answer"),
        body={**_USER, **ANSWER_FROM_SPACES},
        required=("question",),
    ),
)
_OURS = (
    Route("POST", "/v1/context", "context", "Return the context of a turn", "Context", body={**SCOPE, **CONTEXT}),
    Route(
        *("POST", "/v1/answer", "answer", "Answer a question", "Answer"),
        body={**SCOPE, **ANSWER},
        required=("question",),
    ),
    Route("GET", "/v1/relations", "relations", "Return relations", "Relation[]", query={**SCOPE, **_RELATIONS}),
    Route(
        "GET", "/v1/events", "events", "Return the next changes, or stream them", "Changes", query={**SCOPE, **_EVENTS}
    ),
    *_SPACES,
    Route("GET", "/openapi.json", "describe", "Return this document", "Document", is_public=True),
    Route("GET", "/healthz", "check_health", "Report that the process answers", "Status", is_public=True),
    Route("GET", "/readyz", "check_readiness", "Report that the store answers", "Status", is_public=True),
)

ROUTES: tuple[Route, ...] = (*_SELF_HOSTED, *_CLIENT, *_OURS)
"""Every route: those of mem0's self-hosted server, those of its client, and ours."""
