"""Backends of deepagents: a memory is a file below the folder of its owner."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

from memory_conformance.api import Record, Records, System
from memory_conformance.systems.loading import load_object


class DeepAgentsBackend(System):
    """`FilesystemBackend` in the folder, or the backend that the factory of an environment variable returns.

    It has no search: `grep` finds lines with the exact letters of a pattern, and ranks none.
    """

    capabilities = frozenset({"keys", "owned_ids", "threads"})

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        if spec := os.environ.get("MEMORY_CONFORMANCE_BACKEND"):
            self._backend: Any = load_object(spec)(folder)
            return
        from deepagents.backends import FilesystemBackend

        self._backend = FilesystemBackend(root_dir=folder, virtual_mode=True)
        self.capabilities |= {"durable", "crash_safe", "shared", "files", "erasure"}

    def add(self, owner: str, text: str, *, key: str | None = None, **_: Any) -> str:
        """Write a new file, or replace that of the key."""
        memory_id = f"{uuid.uuid4()}.md" if key is None else f"{to_name(key)}.md"
        self._upload(owner, memory_id, text)
        return memory_id

    def get(self, owner: str, memory_id: str) -> Record | None:
        """Read a file."""
        [found] = self._backend.download_files([to_path(owner, memory_id)])
        if found.error == "file_not_found":
            return None
        check(found)
        return Record(memory_id, found.content.decode("utf-8"))

    def update(self, owner: str, memory_id: str, text: str) -> None:
        """Replace the content of a file that exists."""
        if self.get(owner, memory_id) is None:
            raise KeyError(memory_id)
        self._upload(owner, memory_id, text)

    def delete(self, owner: str, memory_id: str) -> None:
        """Delete a file."""
        check(self._backend.delete(to_path(owner, memory_id)))

    def list(self, owner: str, *, limit: int | None = None, offset: int = 0, **_: Any) -> Records:
        """Read all files of the owner; a folder that is missing is empty."""
        entries = self._backend.ls(to_path(owner, "")).entries or []
        names = [entry["path"].rsplit("/", 1)[1] for entry in entries if not entry.get("is_dir")]
        return [record for name in names if (record := self.get(owner, name)) is not None][offset:][:limit]

    def erase(self, owner: str) -> None:
        """Delete all files of the owner."""
        for record in self.list(owner):
            self.delete(owner, record.id)

    def _upload(self, owner: str, memory_id: str, text: str) -> None:
        [answer] = self._backend.upload_files([(to_path(owner, memory_id), text.encode("utf-8"))])
        check(answer)


def to_path(owner: str, memory_id: str) -> str:
    """Return the path of a file; an empty id gives that of the owner's folder."""
    return f"/{to_name(owner)}/{memory_id}"


def to_name(text: str) -> str:
    """Return a file name without letters that a backend may treat specially."""
    return "n" + text.encode("utf-8", "surrogatepass").hex()


def check(answer: Any) -> None:
    """Raise the error of an answer."""
    if answer.error is not None:
        raise ValueError(answer.error)
