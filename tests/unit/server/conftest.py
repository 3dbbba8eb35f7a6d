"""A memory, keys, and a running server of both."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mem0_core import Memory
from mem0_core.server.keys import KeyRing
from tests.support import open_memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(tmp_path / "data") as memory:
        yield memory


@pytest.fixture
def keys(tmp_path: Path) -> KeyRing:
    return KeyRing(tmp_path / "keys" / "keys.json")


@pytest.fixture
def url(memory: Memory, keys: KeyRing) -> Iterator[str]:
    """Yield the URL of a server on a free port of this machine."""
    uvicorn = pytest.importorskip("uvicorn")
    from mem0_core.server.rest import SERVER_OPTIONS, build_rest_app

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(build_rest_app(memory, keys), **SERVER_OPTIONS))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()
