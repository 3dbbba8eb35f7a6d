"""Checks of every request before it reaches a route: its host and its origin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from mem0_core.server._problems import HttpError, send_problem

__all__ = ["Guard"]

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


class Guard:
    """ASGI application that refuses requests for other hosts, and of pages of other origins.

    A page in a browser can reach a server on this machine by a name of its own (DNS rebinding), or send forms to it;
    it can change neither the Host header nor the Origin header.

    Args:
        app: Application behind it.
        hosts: Accepted names in the Host header.
    """

    def __init__(self, app: Any, hosts: Iterable[str]) -> None:
        self._app = app
        self._hosts = {host.casefold() for host in hosts}

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        problem = self._check(scope) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
            return
        await send_problem(problem, send)

    def _check(self, scope: Event) -> HttpError | None:
        given: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.lower(), []).append(value)
        hosts = [value.decode("latin-1").casefold() for value in given.get(b"host", [])]
        if len(hosts) != 1 or _find_host(hosts[0]) not in self._hosts:
            return HttpError(421, "this server has another name; name it with --allow-host")
        origins = [value.decode("latin-1").casefold() for value in given.get(b"origin", [])]
        if any(origin not in (f"http://{hosts[0]}", f"https://{hosts[0]}") for origin in origins):
            return HttpError(403, "pages of other origins may not use this server")
        return None


def _find_host(address: str) -> str | None:
    """Return the host of ``host:port``; None for anything else."""
    if set(address) & set("@/?#"):
        return None
    try:
        return urlsplit(f"//{address}").hostname
    except ValueError:
        return None
