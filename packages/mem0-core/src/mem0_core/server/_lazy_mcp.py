"""The Model Context Protocol over HTTP, whose SDK is imported at the first request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mem0_core.memory import Memory
from mem0_core.server._guard import Event, Receive, Send
from mem0_core.server._limits import RateLimiter
from mem0_core.server.keys import KeyRing

if TYPE_CHECKING:
    from mem0_core.server._mcp_http import McpEndpoint


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
            endpoint = await asyncio.to_thread(_make_endpoint, *self._arguments)
            async with endpoint.run():
                made.set_result(endpoint)
                await self._stopped.wait()
        except Exception as error:
            if made.done():
                raise
            made.set_exception(error)


def _make_endpoint(*arguments: Any) -> McpEndpoint:
    from mem0_core.server._mcp_http import McpEndpoint

    return McpEndpoint(*arguments)
