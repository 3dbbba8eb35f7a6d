"""Keep a run of the documentation or an example offline: no API keys, no connections except to this machine.

Python imports this module at startup if its folder is on PYTHONPATH.
"""

from __future__ import annotations

import os
import sys
from typing import Any

LOCAL = ("127.", "::1", "localhost", "0.0.0.0")


def refuse(event: str, args: tuple[Any, ...]) -> None:
    host = None
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event == "socket.connect" and isinstance(args[1], tuple):  # the address of a Unix socket is not a tuple
        host = args[1][0]
    if isinstance(host, str) and not host.startswith(LOCAL):
        raise ConnectionRefusedError(f"this run is offline, but a connection to {host} was requested")


for name in [name for name in os.environ if name.endswith("_API_KEY")]:
    del os.environ[name]
os.environ |= {"HF_HUB_OFFLINE": "1", "LANGSMITH_TRACING": "false"}
sys.addaudithook(refuse)
