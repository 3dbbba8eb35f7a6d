"""Routes of the inspector: its pages, its files, and the way in."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from mem0_core.memory import Memory
from mem0_core.server._limits import RateLimiter
from mem0_core.server._problems import HttpError, find_problem
from mem0_core.server._requests import merge_ids, read_body
from mem0_core.server.inspector import _care, _find, _memories, _people, _spaces
from mem0_core.server.inspector._markup import join, tag
from mem0_core.server.inspector._sessions import Session, Sessions
from mem0_core.server.inspector._visit import Download, Page, Redirect, Reply, Visit, field_of, frame

_log = logging.getLogger(__name__)

Handler = Callable[[Memory, Visit], Awaitable[Reply]]

_GET: dict[str, Handler] = {
    "/ui/": _find.find,
    "/ui/missing": _find.missing,
    "/ui/spaces": _spaces.list_spaces,
    "/ui/spaces/one": _spaces.show,
    "/ui/timeline": _people.timeline,
    "/ui/relations": _people.relations,
    "/ui/graph": _people.graph,
    "/ui/graph/drawing": _people.drawing,
    "/ui/merges": _people.merges,
    "/ui/deleted": _memories.list_deleted,
    "/ui/jobs": _care.jobs,
    "/ui/health": _care.health,
    "/ui/data": _care.data,
    "/ui/export": _care.export,
    "/ui/receipt": _care.receipt,
    "/ui/memory/{memory_id}": _memories.show,
    "/ui/memory/{memory_id}/sources": _memories.list_sources,
}
_POST: dict[str, Handler] = {
    "/ui/memory/{memory_id}/correct": _memories.correct,
    "/ui/memory/{memory_id}/delete": _memories.delete,
    "/ui/memory/{memory_id}/pin": _memories.pin,
    "/ui/undo": _memories.undo,
    "/ui/merges/accept": _people.accept,
    "/ui/unmerge": _people.unmerge,
    "/ui/jobs/retry": _care.retry,
    "/ui/health": _care.repair,
    "/ui/erase": _care.erase,
    "/ui/spaces/add": _spaces.add,
    "/ui/spaces/approval": _spaces.set_approval,
    "/ui/spaces/create": _spaces.create,
    "/ui/spaces/erase": _spaces.erase,
    "/ui/spaces/member": _spaces.set_member,
    "/ui/spaces/remove": _spaces.remove_member,
    "/ui/spaces/settle": _spaces.settle,
}
FORM_PATHS = tuple(_POST)
"""Paths that change something."""

_FILES = {"style.css": "text/css", "script.js": "text/javascript", "icon.svg": "image/svg+xml"}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'self'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
MAX_FIELDS = 20


class Inspector:
    """The pages over one memory.

    Args:
        memory: The memory that they show.
        sessions: The sessions of browsers.
        limiter: Limits of the requests of a key.
    """

    def __init__(self, memory: Memory, sessions: Sessions, limiter: RateLimiter) -> None:
        self._memory = memory
        self._sessions = sessions
        self._limiter = limiter

    def routes(self) -> list[Any]:
        """Return the routes for a Starlette application."""
        from starlette.routing import Route

        found = [Route(path, self._page(handler), methods=["GET"]) for path, handler in _GET.items()]
        found += [Route(path, self._form(handler), methods=["POST"]) for path, handler in _POST.items()]
        found += [Route(f"/ui/{name}", self._file(name, kind), methods=["GET"]) for name, kind in _FILES.items()]
        found.append(Route("/ui/sign-in", self._page(self._show_sign_in, is_public=True), methods=["GET"]))
        found.append(Route("/ui/sign-in", self._sign_in, methods=["POST"]))
        found.append(Route("/ui/open", self._open, methods=["GET"]))
        found.append(Route("/ui/sign-out", self._form(self._sign_out, is_change=False), methods=["POST"]))
        found.append(Route("/ui", self._redirect_home, methods=["GET"]))
        return found

    def _page(self, handler: Handler, *, is_public: bool = False) -> Callable[[Any], Awaitable[Any]]:
        """Return an endpoint that shows a page to a session."""

        async def endpoint(request: Any) -> Any:
            session = self._find_session(request)
            if session is None and self._sessions.is_open:
                return _redirect(_address(request), self._sessions.begin(), request)
            if session is None and not is_public:
                return _redirect("/ui/sign-in")
            return await self._reply(handler, request, session, {})

        return endpoint

    def _form(self, handler: Handler, *, is_change: bool = True) -> Callable[[Any], Awaitable[Any]]:
        """Return an endpoint that takes a form of a session."""

        async def endpoint(request: Any) -> Any:
            session = self._find_session(request)
            if session is None:
                return _redirect("/ui/sign-in")
            try:
                self._limiter.check(session.key)
                form = await _read_form(request, session.key.max_body_bytes)
                if not session.is_form_token(form.get("token", "")):
                    raise HttpError(403, "the form is not of this session: load its page again")
                if is_change and session.key.is_read_only:
                    raise HttpError(403, "the key may only read")
            except HttpError as problem:
                return _respond(_show_problem(problem), None)
            return await self._reply(handler, request, session, form)

        return endpoint

    async def _reply(self, handler: Handler, request: Any, session: Session | None, form: Mapping[str, str]) -> Any:
        visit = None
        try:
            if session is None:
                return _respond(await self._show_sign_in(self._memory, None), None)
            if request.method == "GET":  # a form was counted before it was read
                self._limiter.check(session.key)
            visit = _build_visit(request, session, form)
            return _respond(await handler(self._memory, visit), visit)
        except Exception as error:  # noqa: BLE001 - every error becomes a page
            problem = find_problem(error)
            if problem.status >= 500:
                _log.error("%s %r failed", request.method, request.url.path, exc_info=error)
            return _respond(_show_problem(problem), visit)

    def _find_session(self, request: Any) -> Session | None:
        return self._sessions.find(request.cookies.get(_cookie_name(request), ""))

    async def _show_sign_in(self, memory: Memory, visit: Visit | None) -> Reply:
        """Ask for a key."""
        if visit is not None:
            return Redirect("/ui/")
        inputs = field_of("API key", "key", "", type="password", autocomplete="off", required=True)
        form = tag("form", inputs, tag("button", "Sign in"), method="post", action="/ui/sign-in")
        text = "`mem0-core keys --create` prints a key of a server; `mem0-core ui` opens these pages without one."
        return Page("Sign in", join([tag("p", text), form]))

    async def _sign_in(self, request: Any) -> Any:
        """Begin a session with a key."""
        try:
            session = self._sessions.begin_with_key((await _read_form(request)).get("key", "").strip())
            if session is None:
                raise HttpError(401, "the API key is unknown or revoked")
        except HttpError as problem:
            return _respond(_show_problem(problem), None)
        return _redirect("/ui/", session, request)

    async def _open(self, request: Any) -> Any:
        """Begin a session with a one-time token."""
        session = self._sessions.redeem(request.query_params.get("token", ""))
        if session is None:
            problem = HttpError(401, "the address was used already, or is too old: run `mem0-core ui` again")
            return _respond(_show_problem(problem), None)
        return _redirect("/ui/", session, request)

    async def _sign_out(self, memory: Memory, visit: Visit) -> Reply:
        """End the session."""
        self._sessions.end(visit.session)
        return Redirect("/ui/sign-in")

    async def _redirect_home(self, request: Any) -> Any:
        return _redirect("/ui/")

    def _file(self, name: str, kind: str) -> Callable[[Any], Awaitable[Any]]:
        content = (files("mem0_core.server.inspector") / name).read_bytes()

        async def endpoint(request: Any) -> Any:
            return _respond(Download(content, kind), None)

        return endpoint


def _build_visit(request: Any, session: Session, form: Mapping[str, str]) -> Visit:
    query = dict(request.query_params)
    given = {**query, **dict(parse_qsl(query.get("owner", "")))}
    named = {axis: value for axis in ("user_id", "agent_id", "run_id") if (value := given.get(axis, ""))}
    return Visit(session, merge_ids(session.key, named), query, dict(request.path_params), form, request.url.path)


async def _read_form(request: Any, max_bytes: int | None = None) -> dict[str, str]:
    """Return the fields of a form.

    Raises:
        HttpError: 403, 413, 415, 408 or 400.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise HttpError(403, "forms of other sites are refused")
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise HttpError(415, "the body must be a form")
    body = await read_body(request.receive, max_bytes)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"))
    except ValueError as error:
        raise HttpError(400, "the form is not valid UTF-8, or has too many fields") from error


def _show_problem(problem: HttpError) -> Page:
    title = str(problem.as_dict()["title"])
    back = tag("p", tag("a", "Back to the first page", href="/ui/"))
    return Page(
        title,
        join([tag("p", problem.detail, role="alert", class_="note"), back]),
        problem.status,
        headers=problem.headers,
    )


def _respond(reply: Reply, visit: Visit | None) -> Any:
    from starlette.responses import Response

    if isinstance(reply, Redirect):
        return _redirect(reply.path)
    if isinstance(reply, Download):
        return Response(reply.content, headers={**_HEADERS, **reply.headers}, media_type=reply.media_type)
    headers = {**_HEADERS, **reply.headers}
    if reply.frames:
        headers["Content-Security-Policy"] += "; frame-src 'self'"
    return Response(frame(reply, visit), reply.status, headers, media_type="text/html")


def _redirect(path: str, session: Session | None = None, request: Any = None) -> Any:
    from starlette.responses import Response

    reply = Response(status_code=303, headers={**_HEADERS, "Location": path})
    if session is not None:
        is_secure = request.url.scheme == "https"
        name = _cookie_name(request)
        reply.set_cookie(name, session.id, path="/ui", httponly=True, samesite="strict", secure=is_secure)
    return reply


def _cookie_name(request: Any) -> str:
    """Return a name for this port: cookies do not tell the ports of a machine apart."""
    return f"mem0-ui-{request.url.port or 0}"


def _address(request: Any) -> str:
    query = request.url.query
    return f"{request.url.path}?{query}" if query else str(request.url.path)
