"""`mem0.Memory` of mem0 2.x with a local vector store, and embeddings from a loopback server."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

from memory_conformance.api import Fields, Record, Records, System, Texts
from memory_conformance.systems.embedding import DIMS
from memory_conformance.systems.mem0_core import make_exact, to_record
from memory_conformance.systems.openai_server import OpenAIServer

ALL = 10_000


class Mem0System(System):
    """`Memory` that stores texts verbatim (``infer=False``), so that no model decides."""

    capabilities = frozenset(
        {"metadata", "filters", "operators", "ranked", "timestamps", "ttl_days", "durable", "crash_safe", "files"}
        | {"threads"}
    )
    provider = "qdrant"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ.setdefault("MEM0_DIR", str(folder / "mem0"))
        from mem0 import Memory

        self._server = OpenAIServer()
        models = {"api_key": "none", "openai_base_url": self._server.url}
        options = {"collection_name": "memories", "path": str(folder / "vectors"), "embedding_model_dims": DIMS}
        if self.provider == "qdrant":
            options["on_disk"] = True
        self.memory: Any = Memory.from_config(
            {
                "vector_store": {"provider": self.provider, "config": options},
                "embedder": {"provider": "openai", "config": {**models, "model": "hash", "embedding_dims": DIMS}},
                "llm": {"provider": "openai", "config": {**models, "model": "echo"}},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def add(self, owner: str, text: str, *, metadata: Fields = None, expires: datetime | None = None, **_: Any) -> str:
        """Add one message verbatim."""
        options = {} if expires is None else {"expiration_date": expires.date().isoformat()}
        given = None if metadata is None else dict(metadata)
        added = self.memory.add(text, user_id=owner, metadata=given, infer=False, **options)
        return str(added["results"][0]["id"])

    def search(self, owner: str, query: str, *, limit: int = 10, filters: Fields = None, **_: Any) -> Records:
        """Search the memories of a user."""
        found = self.memory.search(query, filters={**(make_exact(filters) or {}), "user_id": owner}, top_k=limit)
        return [to_record(item) for item in found["results"]]

    def get(self, owner: str, memory_id: str) -> Record | None:
        """Get a memory by its id alone; the interface knows no owner."""
        item = self.memory.get(memory_id)
        return None if item is None else to_record(item)

    def update(self, owner: str, memory_id: str, text: str) -> None:
        """Update a memory by its id alone."""
        self.memory.update(memory_id, text)

    def delete(self, owner: str, memory_id: str) -> None:
        """Delete a memory by its id alone."""
        self.memory.delete(memory_id)

    def list(self, owner: str, *, limit: int | None = None, filters: Fields = None, **_: Any) -> Records:
        """Return all memories of a user."""
        selected = {**(make_exact(filters) or {}), "user_id": owner}
        found = self.memory.get_all(filters=selected, top_k=ALL if limit is None else limit)
        return [to_record(item) for item in found["results"]]

    def history(self, owner: str, memory_id: str) -> Texts:
        """Return the new text of each change."""
        changes = self.memory.history(memory_id)
        return [change["new_memory"] for change in changes if change["new_memory"]]

    def erase(self, owner: str) -> None:
        """Delete all memories of a user."""
        self.memory.delete_all(user_id=owner)

    def close(self) -> None:
        """Close the databases and the server."""
        self.memory.close()
        client = getattr(self.memory.vector_store, "client", None)
        if client is not None:
            client.close()
        self._server.close()


class Mem0Qdrant(Mem0System):
    """The default vector store of mem0."""


class Mem0Faiss(Mem0System):
    """The FAISS vector store of mem0, which its documentation recommends for local use."""

    provider = "faiss"
