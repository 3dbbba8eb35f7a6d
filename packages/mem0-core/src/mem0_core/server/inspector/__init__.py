"""Pages to see and correct memories: rendered here, without a framework of their own and without a network.

The pages hold no logic: each calls methods of `Memory`, and every text passes through `_markup`.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any

from mem0_core._system.extras import import_extra
from mem0_core.errors import InputError
from mem0_core.memory import Memory
from mem0_core.server._guard import Guard
from mem0_core.server._limits import RateLimiter
from mem0_core.server.inspector._app import Inspector
from mem0_core.server.inspector._sessions import Sessions
from mem0_core.server.keys import ApiKey, KeyRing

__all__ = ["build_inspector_app", "inspector_routes", "listen_on_loopback", "run_inspector"]

LOOPBACK = ("127.0.0.1", "localhost")
GRACE_SECONDS = 5
MAX_CONNECTIONS = 64


def inspector_routes(memory: Memory, keys: KeyRing | None, limiter: RateLimiter) -> list[Any]:
    """Return the routes of the inspector for a server with keys; without keys, every browser may use it.

    Raises:
        MissingExtraError: Starlette is not installed.
    """
    import_extra("starlette.routing", "server")
    return Inspector(memory, Sessions(keys, is_open=keys is None), limiter).routes()


def build_inspector_app(
    memory: Memory, *, key: ApiKey | None = None, hosts: Iterable[str] = LOOPBACK
) -> tuple[Any, str]:
    """Return an ASGI application that serves the inspector alone, and the path that opens it once.

    Args:
        memory: The memory; the caller closes it.
        key: Owner and rights of the session. Default: everything.
        hosts: Names in the Host header of a request, against DNS rebinding.

    Raises:
        MissingExtraError: Starlette is not installed.
    """
    sessions = Sessions(None, local=key)
    app = import_extra("starlette.applications", "server").Starlette(
        routes=Inspector(memory, sessions, RateLimiter()).routes()
    )
    return Guard(app, hosts), f"/ui/open?token={sessions.issue_token()}"


def listen_on_loopback(port: int) -> socket.socket:
    """Return a socket that listens on a port of this machine only; port 0 is any free one.

    Raises:
        InputError: The port cannot be used.
    """
    try:
        return socket.create_server(("127.0.0.1", port))
    except (OSError, OverflowError) as error:
        raise InputError(f"port {port} cannot be used ({error}); port 0 is any free one") from error


def run_inspector(app: Any, listening: socket.socket) -> None:
    """Serve an application on a listening socket until SIGTERM or SIGINT.

    Raises:
        MissingExtraError: Uvicorn is not installed.
    """
    uvicorn = import_extra("uvicorn", "server")
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        limit_concurrency=MAX_CONNECTIONS,
        server_header=False,
    )
    uvicorn.Server(config).run(sockets=[listening])
