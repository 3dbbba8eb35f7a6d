"""Connections that do not wait forever: for the headers of a request, or for a client that reads no response."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
READ_SECONDS = 60.0  # for a client to read what the operating system buffers


class BoundedProtocol(H11Protocol):  # type: ignore[misc]
    """HTTP/1.1 of uvicorn, which bounds neither time: some hundred silent connections would occupy a server."""

    def connection_made(self, transport: Any) -> None:
        self._header_timer: asyncio.TimerHandle | None = None
        self._read_timer: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._header_timer, self._read_timer):
            if timer is not None:
                timer.cancel()
        self._header_timer = self._read_timer = None
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._read_timer = self.loop.call_later(READ_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _watch(self) -> None:
        """Start to wait for the headers of a request, or end it if a request is in progress."""
        is_busy = self.cycle is not None and not self.cycle.response_complete
        if is_busy and self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
        elif not is_busy and self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_SECONDS, self._expire)

    def _expire(self) -> None:
        self._header_timer = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
