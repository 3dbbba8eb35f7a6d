"""No network for a test: what reaches for one is refused, and fails the test even if it takes that quietly."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["no_network"]

_REACHES = {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind", "socket.getaddrinfo"}
_REACHES |= {"socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}

_refused: list[str] | None = None
"""What was refused so far; None where nothing is refused. An audit hook cannot be taken away, so this switches it."""
_hooked = False


@contextmanager
def no_network() -> Iterator[None]:
    """Refuse every connection and every look-up of a name, loopback included, in all threads of this process.

    An audit hook, since it sees what goes past the `socket` module as well. Sockets of Unix stay, for an event loop
    wakes itself by a pair of them.
    """
    global _hooked, _refused
    if not _hooked:
        sys.addaudithook(_refuse)
        _hooked = True
    outer, seen = _refused, list[str]()
    _refused = seen
    try:
        yield
    finally:
        _refused = outer
    assert not seen, f"reached for the network: {seen}"


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if _refused is None or event not in _REACHES:
        return
    if event in ("socket.connect", "socket.bind") and not isinstance(arguments[1], tuple):  # a path
        return
    _refused.append(f"{event} {arguments[-1]!r}")
    raise PermissionError(f"no network here: {event} {arguments[-1]!r}")
