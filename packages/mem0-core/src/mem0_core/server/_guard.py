"""Checks of every request before it reaches a route: its host and its origin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from mem0_core.server._problems import HttpError, send_problem

Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]


class Guard:
    """ASGI application that refuses requests for other hosts, and of pages of other origins.

    A page in a browser can reach a server on this machine by a name of its own (DNS rebinding), send forms to it, or
    show it as an image; it can change neither the Host header, nor the Origin header, nor those of the fetch.

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
        if _is_foreign_fetch(scope["method"], given):
            return HttpError(403, "pages of other origins may not use this server")
        if b"transfer-encoding" in given and b"content-length" in given:  # a proxy may read another body than we do
            return HttpError(
                400, "a request has one length; send it without Transfer-Encoding", {"Connection": "close"}
            )
        return None


def _is_foreign_fetch(method: str, given: Mapping[bytes, list[bytes]]) -> bool:
    """Return True if a page of another origin asks for something; a link that a person follows is none."""
    site, mode, target = (given.get(b"sec-fetch-" + name, [b""])[0] for name in (b"site", b"mode", b"dest"))
    is_link = method == "GET" and mode == b"navigate" and target == b"document"
    return site in (b"cross-site", b"same-site") and not is_link


def _find_host(address: str) -> str | None:
    """Return the host of ``host:port``; None for anything else."""
    if set(address) & set("@/?#"):
        return None
    try:
        return urlsplit(f"//{address}").hostname
    except ValueError:
        return None
