"""The change feed over HTTP: pages by cursor, and server-sent events."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

from pydantic_core import to_json

from mem0_core.errors import Mem0Error
from mem0_core.memory import Memory
from mem0_core.server._problems import HttpError
from mem0_core.server._requests import merge_ids
from mem0_core.server.keys import ApiKey
from mem0_core.server.scope import ScopeIds

_log = logging.getLogger(__name__)

MAX_EVENTS = 1_000
STREAM_SECONDS = 60.0
"""Length of a stream. The client connects again with the number of its last event, and its key is checked again."""

MAX_STREAMS = 32
"""Streams of one API key at a time: each occupies a connection, and those of a process are limited."""

_DEFAULT_EVENTS = 100
_POLL_SECONDS = 0.5
_KEEP_ALIVE_SECONDS = 15.0
_RETRY_MILLISECONDS = 1_000
_MAX_DIGITS = 18  # every number of 18 digits is one of SQLite and of PostgreSQL


class EventHandlers:
    """Handlers of the change feed, for `RestApi`."""

    _memory: Memory
    _streams: Counter[str]

    async def events(self, request: Any, key: ApiKey) -> Any:
        """Return the next changes in the scope of a key, or stream them to a client that accepts event streams."""
        given = dict(request.query_params)
        ids = merge_ids(key, given)
        after, limit = _read_cursor(given.get("after"), "after"), _read_limit(given.get("limit"))
        if "text/event-stream" not in request.headers.get("accept", ""):
            return await self._memory.achanges(after=after, limit=limit, **ids)
        last = _read_cursor(request.headers.get("last-event-id"), "Last-Event-ID")
        if self._streams[key.id] >= MAX_STREAMS:
            raise HttpError(429, f"the API key has {MAX_STREAMS} streams already", {"Retry-After": "1"})
        return import_module("starlette.responses").StreamingResponse(
            self._count_stream(key, _stream(self._memory, ids, max(after, last), limit)),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    async def _count_stream(self, key: ApiKey, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self._streams[key.id] += 1
        try:
            async for part in stream:
                yield part
        finally:
            self._streams[key.id] -= 1


async def _stream(memory: Memory, ids: ScopeIds, after: int, limit: int) -> AsyncIterator[bytes]:
    """Yield changes as server-sent events until the stream has had its time."""
    yield b"retry: %d\n\n" % _RETRY_MILLISECONDS
    end = time.monotonic() + STREAM_SECONDS
    quiet_since = time.monotonic()
    while time.monotonic() < end:
        try:
            page = await memory.achanges(after=after, limit=limit, **ids)
        except Mem0Error:
            _log.exception("a stream of events ended")
            return
        after = page["cursor"]
        for change in page["results"]:
            yield b"id: %d\nevent: change\ndata: %s\n\n" % (change["seq"], to_json(change))
        if page["results"]:
            quiet_since = time.monotonic()
        elif time.monotonic() - quiet_since > _KEEP_ALIVE_SECONDS:
            quiet_since = time.monotonic()
            yield b": no change\n\n"
        if len(page["results"]) < limit:
            await asyncio.sleep(_POLL_SECONDS)


def _read_cursor(text: str | None, name: str) -> int:
    if text is None:
        return 0
    if not text.isascii() or not text.isdecimal() or len(text) > _MAX_DIGITS:
        raise HttpError(400, f"{name} must be the cursor of an earlier reply, not {text[:40]!r}")
    return int(text)


def _read_limit(text: str | None) -> int:
    limit = _DEFAULT_EVENTS if text is None else _read_cursor(text, "limit")
    if not 0 < limit <= MAX_EVENTS:
        raise HttpError(400, f"limit must be 1 to {MAX_EVENTS}")
    return limit
