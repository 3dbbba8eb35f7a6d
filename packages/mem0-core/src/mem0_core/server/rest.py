"""REST interface over one `Memory`: the routes of mem0's self-hosted server and of its client, and our own.

Handlers translate: each checks the key, calls one method of the library, and shapes its result.
"""

from __future__ import annotations

import inspect
import logging
import signal
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any

import mem0_core
from mem0_core._system.extras import import_extra
from mem0_core.admin.replies import REPLY_FILE
from mem0_core.domain.suggestions import find_nearest
from mem0_core.errors import NotFoundError
from mem0_core.memory import Memory
from mem0_core.server._endpoint import Endpoints, name_messages, name_subject, respond, respond_problem
from mem0_core.server._guard import Event, Guard, Receive, Send
from mem0_core.server._limits import RateLimiter
from mem0_core.server._openapi import build_document
from mem0_core.server._pages import Cursor
from mem0_core.server._problems import HttpError
from mem0_core.server._replies import ReplyStore
from mem0_core.server._requests import (
    MAX_SHOWN_CHARS,
    merge_ids,
    pick,
    read_filter_ids,
    read_flag,
    read_json,
    read_number,
)
from mem0_core.server._routes import (
    ADD,
    ANSWER,
    CONTEXT,
    FEEDBACK,
    IGNORED,
    MCP_PATH,
    PAGE,
    ROUTES,
    SEARCH,
    UPDATE,
    Route,
)
from mem0_core.server.events import EventHandlers
from mem0_core.server.inspector import inspector_routes
from mem0_core.server.keys import ApiKey, KeyRing
from mem0_core.server.spaces import SpaceHandlers

_log = logging.getLogger(__name__)

MAX_PAGE = 1_000
GRACE_SECONDS = 10
MAX_CONNECTIONS = 256

_VERDICTS = {"POSITIVE": True, "NEGATIVE": False, "VERY_NEGATIVE": False, None: None}

SERVER_OPTIONS = {
    "http": "mem0_core.server._protocol:BoundedProtocol",
    "log_level": "warning",
    "access_log": False,  # else a line of each request is made, though not written at this level
    "timeout_graceful_shutdown": GRACE_SECONDS,
    "limit_concurrency": MAX_CONNECTIONS,
    "server_header": False,
    "ws": "none",
}


class RestApi(EventHandlers, SpaceHandlers):
    """The handlers of the routes, by the names in the table of `_routes`.

    Args:
        memory: The memory that they call.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._streams = Counter()

    async def add(self, request: Any, key: ApiKey) -> Any:
        """Add messages."""
        body = read_json(request)
        fields = pick(body, ADD, IGNORED)
        if "messages" not in fields:
            raise HttpError(400, "messages is missing")
        body |= read_filter_ids(fields.pop("filters", {}), body)
        messages = name_messages(fields.pop("messages"), request)
        ids = merge_ids(key, body)
        name_subject(request, ids)
        return await self._memory.aadd(messages, **ids, **fields)

    async def search(self, request: Any, key: ApiKey) -> Any:
        """Search memories."""
        body = read_json(request)
        fields = pick(body, SEARCH, IGNORED)
        query = fields.pop("query", "")
        return await self._memory.asearch(query, **merge_ids(key, body), **fields)

    async def list_all(self, request: Any, key: ApiKey) -> Any:
        """List the memories of a scope, or with a limit or a cursor a page of them."""
        given = dict(request.query_params)
        asked: dict[str, Any] = {**merge_ids(key, given), "show_expired": read_flag(given, "show_expired")}
        if not given.keys() & {"limit", "cursor"}:
            return await self._memory.aget_all(**asked, limit=read_number(given, "top_k"))
        size = read_number(given, "limit") or MAX_PAGE
        if size > MAX_PAGE:
            raise HttpError(400, f"limit is at most {MAX_PAGE}")
        last = Cursor.parse(given["cursor"]) if "cursor" in given else None
        if last is not None:
            asked["filters"] = last.filters
        # one more than the page, which shows that another one follows
        found = (await self._memory.aget_all(**asked, limit=size + 1 + (last.skipped if last else 0)))["results"]
        rows = found if last is None else last.skip(found)
        page = rows[:size]
        return {"results": page, "next_cursor": str(Cursor.after(page, last)) if len(rows) > size else None}

    async def list_page(self, request: Any, key: ApiKey) -> Any:
        """List one page of the memories that pass a filter, as mem0's client asks for it."""
        body, given = read_json(request), dict(request.query_params)
        fields = pick(body, PAGE, IGNORED)
        page, size = read_number(given, "page") or 1, read_number(given, "page_size") or MAX_PAGE
        if size > MAX_PAGE:
            raise HttpError(400, f"page_size is at most {MAX_PAGE}")
        found = (await self._memory.aget_all(**merge_ids(key, body), **fields, limit=page * size + 1))["results"]
        is_last = len(found) <= page * size
        rows = found[(page - 1) * size : page * size]
        url = f"{request.url.path}?page_size={size}&page="
        return {
            "count": len(found) if is_last else await self._count(key, body, fields),
            "next": None if is_last else f"{url}{page + 1}",
            "previous": f"{url}{page - 1}" if page > 1 else None,
            "results": rows,
        }

    async def _count(self, key: ApiKey, body: dict[str, Any], fields: dict[str, Any]) -> int:
        every = await self._memory.aget_all(**merge_ids(key, body), **fields, limit=None)
        return len(every["results"])

    async def get(self, request: Any, key: ApiKey) -> Any:
        """Return one memory; null if it does not exist."""
        return await self._memory.aget(request.path_params["memory_id"], **merge_ids(key, {}))

    async def get_known(self, request: Any, key: ApiKey) -> Any:
        """Return one memory; 404 if it does not exist."""
        found = await self.get(request, key)
        if found is None:
            raise NotFoundError(request.path_params["memory_id"])
        return found

    async def update(self, request: Any, key: ApiKey) -> Any:
        """Replace the text or add to the metadata of one memory."""
        memory_id, body = request.path_params["memory_id"], read_json(request)
        fields = pick(body, UPDATE, IGNORED)
        if not fields:
            raise HttpError(400, "text or metadata is missing")
        ids = merge_ids(key, {})
        text = fields.get("text")
        if text is None:
            text = (await self.get_known(request, key))["memory"]
        await self._memory.aupdate(memory_id, text, fields.get("metadata"), **ids)
        changed = await self._memory.aget(memory_id, **ids)
        if changed is not None:
            name_subject(request, {axis: changed.get(axis) for axis in ids})
        return {"message": "Memory updated successfully!", **(changed or {})}

    async def delete(self, request: Any, key: ApiKey) -> Any:
        """Delete one memory."""
        await self._memory.adelete(request.path_params["memory_id"], **merge_ids(key, {}))
        return {"message": "Memory deleted successfully"}

    async def delete_all(self, request: Any, key: ApiKey) -> Any:
        """Delete everything in a scope."""
        await self._memory.adelete_all(**merge_ids(key, dict(request.query_params)))
        return {"message": "All relevant memories deleted"}

    async def delete_entity(self, request: Any, key: ApiKey) -> Any:
        """Delete everything of one user, agent or run."""
        kind, name = request.path_params["kind"], request.path_params["name"]
        if kind not in ("user", "agent", "run"):
            raise HttpError(400, f"an entity is a user, agent or run, not {kind[:40]!r}")
        await self._memory.adelete_all(**merge_ids(key, {f"{kind}_id": name}))
        return {"message": "Entity deleted successfully"}

    async def history(self, request: Any, key: ApiKey) -> Any:
        """Return every change of a memory."""
        return await self._memory.ahistory(request.path_params["memory_id"], **merge_ids(key, {}))

    async def give_feedback(self, request: Any, key: ApiKey) -> Any:
        """Count feedback on one memory."""
        fields = pick(read_json(request), FEEDBACK)
        verdict = fields.get("feedback")
        if not isinstance(verdict, str | None) or verdict not in _VERDICTS:
            raise HttpError(400, f"feedback is one of {', '.join(filter(None, _VERDICTS))}, or null to withdraw it")
        return await self._memory.afeedback(fields.get("memory_id", ""), _VERDICTS[verdict], **merge_ids(key, {}))

    async def reset(self, request: Any, key: ApiKey) -> Any:
        """Empty the store; for administrators."""
        if not key.is_admin:
            raise HttpError(403, "only a key without a user, agent or run may do this")
        await self._memory.areset()
        return {"message": "All memories reset"}

    async def context(self, request: Any, key: ApiKey) -> Any:
        """Return the context of an agent's next turn."""
        body = read_json(request)
        fields = pick(body, CONTEXT)
        return await self._memory.acontext(fields.pop("query", None), **merge_ids(key, body), **fields)

    async def answer(self, request: Any, key: ApiKey) -> Any:
        """Answer a question."""
        body = read_json(request)
        fields = pick(body, ANSWER)
        return await self._memory.aanswer(fields.pop("question", ""), **merge_ids(key, body), **fields)

    async def relations(self, request: Any, key: ApiKey) -> Any:
        """Return the relations of a scope."""
        given = dict(request.query_params)
        return await self._memory.arelations(
            **merge_ids(key, given),
            as_of=given.get("as_of"),
            ended=read_flag(given, "ended"),
            limit=read_number(given, "limit"),
        )

    async def ping(self, request: Any, key: ApiKey) -> Any:
        """Confirm a key, as mem0's client asks when it starts."""
        # The client refuses to start without these names.
        return {"status": "ok", "org_id": "mem0-core", "project_id": "default", "user_email": None}

    async def describe(self, request: Any, key: ApiKey) -> Any:
        """Return the OpenAPI document."""
        return self._document

    @cached_property
    def _document(self) -> dict[str, Any]:
        return build_document(ROUTES, self, mem0_core.__version__)

    async def check_health(self, request: Any, key: ApiKey) -> Any:
        """Report that the process answers."""
        return {"status": "ok"}

    async def check_readiness(self, request: Any, key: ApiKey) -> Any:
        """Report that the store answers."""
        try:
            await self._memory.aget("readiness")
        except Exception:  # noqa: BLE001 - any failure means that the store cannot serve
            _log.warning("the store is not ready", exc_info=True)
            return respond({"status": "unavailable"}, 503)
        return {"status": "ok"}


def build_rest_app(
    memory: Memory,
    keys: KeyRing | None,
    *,
    hosts: Iterable[str] = ("127.0.0.1", "localhost"),
    workers: int = 1,
    owns_memory: bool = False,
) -> Any:
    """Return an ASGI application over a memory: the REST interface, and MCP at ``/mcp`` if its SDK is installed.

    Args:
        memory: The memory; the caller closes it, unless the application owns it.
        keys: Keys of the callers. None lets every caller do everything: only for a server on a private address.
        hosts: Names in the Host header of a request, against DNS rebinding.
        workers: Number of processes that serve this memory. If it exceeds 1, each grants its share of a key's rate,
            and none has the inspector, whose sessions are of one process.
        owns_memory: Close the memory when the server ends.

    Raises:
        MissingExtraError: Starlette is not installed.
    """
    replies = ReplyStore(memory.config.folder / REPLY_FILE)
    limiter = RateLimiter(1 / workers)
    endpoints, api = Endpoints(keys, replies, limiter), RestApi(memory)
    table = [(each, endpoints.build(each, getattr(api, each.handler))) for each in ROUTES]
    mcp = _build_mcp(memory, keys, limiter)
    pages = inspector_routes(memory, keys, limiter) if workers == 1 else _routes_without_inspector()

    app = import_extra("starlette.applications", "server").Starlette(
        routes=[*_build_routes(table), *pages],
        exception_handlers={import_extra("starlette.exceptions", "server").HTTPException: _respond_to_unknown},
        lifespan=_build_lifespan(replies, mcp, memory if owns_memory else None),
    )
    return Guard(_build_dispatch(app, mcp, table), hosts)


def _build_dispatch(app: Any, mcp: Any, table: Sequence[tuple[Route, Any]]) -> Any:
    """Return an application that finds most routes without a search for a pattern."""
    new_request = import_extra("starlette.requests", "server").Request
    fixed = {(each.method, each.path): endpoint for each, endpoint in table if "{" not in each.path}

    async def dispatch(scope: Event, receive: Receive, send: Send) -> None:
        path = scope.get("path")
        if path == MCP_PATH and mcp is not None and scope["type"] == "http":
            await mcp(scope, receive, send)
        elif endpoint := fixed.get((scope.get("method", ""), path or "")):
            await (await endpoint(new_request(scope, receive)))(scope, receive, send)
        else:
            await app(scope, receive, send)

    return dispatch


def _build_routes(table: Iterable[tuple[Route, Any]]) -> list[Any]:
    new_route = import_extra("starlette.routing", "server").Route
    return [new_route(each.path, endpoint, methods=[each.method]) for each, endpoint in table]


def _build_lifespan(replies: ReplyStore, mcp: Any, owned: Memory | None) -> Any:
    """Return the context manager of a running application, which closes what the application owns."""

    @asynccontextmanager
    async def run(_: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if owned is not None:
                stack.push_async_callback(owned.aclose)
            stack.callback(replies.close)
            if mcp is not None:
                await stack.enter_async_context(mcp.run())
            yield

    return run


def _build_mcp(memory: Memory, keys: KeyRing | None, limiter: RateLimiter) -> Any:
    """Return the endpoint of MCP; None without its SDK."""
    if find_spec("mcp") is None:
        return None
    from mem0_core.server._mcp_http import LazyMcpEndpoint

    return LazyMcpEndpoint(memory, keys, limiter)


async def _respond_to_unknown(request: Any, error: Any) -> Any:
    """Return the response to a path or a method that no route has."""
    reason, path = error.detail, request.url.path[:MAX_SHOWN_CHARS]
    if error.status_code == HTTPStatus.NOT_FOUND:
        near = find_nearest(path, sorted({route.path for route in ROUTES}))
        reason = f"there is no path {path!r}{(near and f'; did you mean {near!r}?') or ''}; GET /openapi.json lists all"
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        found = [route for route in request.app.routes if route.matches(request.scope)[0].value]
        allowed = ", ".join(sorted({method for route in found for method in route.methods}))
        reason = f"{path} does not accept {request.method}; accepted: {allowed}; use one of them"
        return respond_problem(HttpError(error.status_code, reason, {"Allow": allowed}))
    return respond_problem(HttpError(error.status_code, reason, error.headers))


def _routes_without_inspector() -> list[Any]:
    async def refuse(request: Any) -> Any:
        reason = "the inspector needs a server of one process: serve with --workers 1, or run `mem0-core ui`"
        return respond_problem(HttpError(HTTPStatus.NOT_IMPLEMENTED, reason))

    return [import_extra("starlette.routing", "server").Route("/ui/{path:path}", refuse)]


def run_rest(app: Any, *, host: str, port: int) -> None:
    """Serve an application until SIGTERM or SIGINT; requests in progress get some seconds to finish.

    Raises:
        SystemExit: At SIGTERM, so that the caller closes the memory.
    """
    uvicorn = import_extra("uvicorn", "server")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _exit)  # uvicorn sends itself the signal again when it has finished
    uvicorn.run(app, host=host, port=port, **SERVER_OPTIONS)


def run_workers(factory: str, *, host: str, port: int, workers: int) -> None:
    """Serve an application in several processes on one port; one that dies is started again.

    Args:
        factory: Function, as ``module:name``, that returns the application of a process. Its memory is closed by
            `build_rest_app`, with ``owns_memory=True``.
        workers: Number of processes.
    """
    uvicorn = import_extra("uvicorn", "server")
    known = inspect.signature(uvicorn.run).parameters
    # A process that computes answers no health check; uvicorn would kill it after five seconds.
    more = {"timeout_worker_healthcheck": 60} if "timeout_worker_healthcheck" in known else {}
    uvicorn.run(factory, factory=True, workers=workers, host=host, port=port, **SERVER_OPTIONS, **more)


def _exit(*_: object) -> None:
    raise SystemExit(0)
