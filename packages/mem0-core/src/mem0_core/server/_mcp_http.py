"""The Model Context Protocol over HTTP: each request has a key, and acts in its scope.

The SDK is imported at the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from mem0_core.memory import Memory
from mem0_core.server._guard import Event, Receive, Send
from mem0_core.server._limits import RateLimiter
from mem0_core.server._problems import HttpError, find_problem, send_problem
from mem0_core.server._requests import authenticate, read_body
from mem0_core.server._routes import MCP_PATH
from mem0_core.server.keys import ApiKey, KeyRing
from mem0_core.server.scope import ServerScope

_scope: ContextVar[ServerScope] = ContextVar("mem0_core_mcp_scope")


class McpEndpoint:
    """ASGI application for one path.

    It keeps no sessions: a request runs in the context of its own connection, which has the scope of its key.

    Args:
        memory: The memory that the tools call.
        keys: Keys of the callers. Each must be bound to a user, agent or run.
        limiter: Limits of the requests of a key.
    """

    def __init__(self, memory: Memory, keys: KeyRing | None, limiter: RateLimiter) -> None:
        from mem0_core.server.mcp import build_mcp_server

        self._limiter = limiter
        self._app = _build_app(build_mcp_server(memory, _scope.get))
        self._keys = keys

    def run(self) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that runs the endpoint."""
        context: AbstractAsyncContextManager[Any] = self._app.router.lifespan_context(self._app)
        return context

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        try:
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            key = authenticate(headers, self._keys)
            self._limiter.check(key)
            bound = _bind(key)
            if scope["method"] == "GET":  # a stream of messages of a session, and there are no sessions
                raise HttpError(
                    405, "this server sends no messages of its own; send requests by POST", {"Allow": "POST"}
                )
            body = await read_body(receive, key.max_body_bytes)
        except Exception as error:  # noqa: BLE001 - every error becomes a response
            await send_problem(find_problem(error), send)
            return
        token = _scope.set(bound)
        try:
            await self._app(scope, _replay(body, receive), send)
        finally:
            _scope.reset(token)


class LazyMcpEndpoint:
    """An `McpEndpoint` that is made at the first request: the import of the SDK is a third of the start of a server.

    Args:
        memory, keys, limiter: As for `McpEndpoint`.
    """

    def __init__(self, memory: Memory, keys: KeyRing | None, limiter: RateLimiter) -> None:
        self._arguments = memory, keys, limiter
        self._running: asyncio.Task[None] | None = None
        self._made: asyncio.Future[McpEndpoint] | None = None
        self._stopped = asyncio.Event()

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """End the endpoint with the context, if a request began it."""
        try:
            yield
        finally:
            self._stopped.set()
            if self._running is not None:
                await self._running

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if self._made is None or (self._made.done() and self._made.exception() is not None):
            self._made = asyncio.get_running_loop().create_future()
            self._running = asyncio.create_task(self._serve(self._made))
        endpoint = await asyncio.shield(self._made)
        await endpoint(scope, receive, send)

    async def _serve(self, made: asyncio.Future[McpEndpoint]) -> None:
        """Keep the endpoint running: one task enters and leaves its context."""
        try:
            endpoint = await asyncio.to_thread(McpEndpoint, *self._arguments)
            async with endpoint.run():
                made.set_result(endpoint)
                await self._stopped.wait()
        except Exception as error:
            if made.done():
                raise
            made.set_exception(error)


def _bind(key: ApiKey) -> ServerScope:
    if not any(key.ids.values()):
        raise HttpError(403, "MCP needs a key that is bound to a user, an agent or a run")
    return ServerScope(key.user_id, key.agent_id, key.run_id, is_read_only=key.is_read_only)


def _build_app(server: Any) -> Any:
    """Return the SDK's application without sessions; hosts and origins are checked before it."""
    security = import_module("mcp.server.transport_security").TransportSecuritySettings(
        enable_dns_rebinding_protection=False
    )
    options = {"stateless_http": True, "transport_security": security}
    if not hasattr(server.settings, "stateless_http"):
        return server.streamable_http_app(streamable_http_path=MCP_PATH, **options)
    for name, value in {"streamable_http_path": MCP_PATH, **options}.items():  # version 1 of the SDK
        setattr(server.settings, name, value)
    return server.streamable_http_app()


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a function that receives the whole body, and then what the connection sends."""
    events = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Event:
        return events.pop() if events else await receive()

    return receive_again
