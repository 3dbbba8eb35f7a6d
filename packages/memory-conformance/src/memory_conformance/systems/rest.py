"""A REST server with the routes of mem0's self-hosted server, over HTTP."""

from __future__ import annotations

import json
import os
import urllib.parse
import urllib.request
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_conformance.api import Fields, Record, Records, System
from memory_conformance.systems.mem0_core import to_record

ALL = 1000
"""The largest `top_k` that the routes accept."""


class RestServer(System):
    """The server at `MEMORY_CONFORMANCE_URL`, with the key of `MEMORY_CONFORMANCE_KEY`."""

    capabilities = frozenset({"metadata", "ranked", "timestamps", "ttl_days", "threads"})
    is_remote = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._url = os.environ["MEMORY_CONFORMANCE_URL"].rstrip("/")
        self._key = os.environ.get("MEMORY_CONFORMANCE_KEY", "")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """Send one request and return its JSON; an error status raises."""
        url = f"{self._url}{path}" + (f"?{urllib.parse.urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **({"X-API-Key": self._key} if self._key else {})}
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
        return json.loads(text) if text else None

    def add(self, owner: str, text: str, *, metadata: Fields = None, expires: datetime | None = None, **_: Any) -> str:
        """Add one message verbatim."""
        body: dict[str, Any] = {"messages": [{"role": "user", "content": text}], "user_id": owner, "infer": False}
        body |= {} if metadata is None else {"metadata": dict(metadata)}
        body |= {} if expires is None else {"expiration_date": expires.date().isoformat()}
        return str(self._call("POST", "/memories", body)["results"][0]["id"])

    def search(self, owner: str, query: str, *, limit: int = 10, **_: Any) -> Records:
        """Search the memories of a user."""
        found = self._call("POST", "/search", {"query": query, "filters": {"user_id": owner}, "top_k": limit})
        return [to_record(item) for item in found["results"]]

    def get(self, owner: str, memory_id: str) -> Record | None:
        """Get a memory by its id alone."""
        item = self._call("GET", f"/memories/{urllib.parse.quote(memory_id, safe='')}")
        return None if item is None else to_record(item)

    def update(self, owner: str, memory_id: str, text: str) -> None:
        """Replace the text of a memory."""
        self._call("PUT", f"/memories/{urllib.parse.quote(memory_id, safe='')}", {"text": text})

    def delete(self, owner: str, memory_id: str) -> None:
        """Delete a memory."""
        self._call("DELETE", f"/memories/{urllib.parse.quote(memory_id, safe='')}")

    def list(self, owner: str, *, limit: int | None = None, **_: Any) -> Records:
        """Return the memories of a user."""
        found = self._call("GET", "/memories", user_id=owner, top_k=ALL if limit is None else limit)
        return [to_record(item) for item in found["results"]]

    def erase(self, owner: str) -> None:
        """Delete all memories of a user."""
        self._call("DELETE", "/memories", user_id=owner)
