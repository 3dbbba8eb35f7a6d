"""The file tree of one scope, computed from its memories."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from mem0_core._system.records import dataclass
from mem0_core.domain.records import MemoryItem, Scope
from mem0_core.views.files._paths import (
    FileAccessError,
    derive_path,
    find_digest,
    is_inside,
    memory_digest,
    normalize_path,
    parent_folders,
)

PATH_KEY = "mem0_path"
"""Metadata key with the path of a memory that was written, edited or renamed as a file."""

TITLED_KEY = "mem0_titled"
"""Metadata key, true if the memory's text begins with the path: two memories of a scope cannot have one text."""


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A memory as a file.

    Attributes:
        text: content of the file.
        created_at, modified_at: ISO 8601.
    """

    path: str
    text: str
    memory_id: str
    created_at: str
    modified_at: str

    @property
    def size(self) -> int:
        """Length of the content in bytes."""
        return len(self.text.encode())


def titled_text(path: str, text: str) -> str:
    """Return a memory's text for a content that is blank, or that another memory has already."""
    return f"{path}\n\n{text}"


def file_metadata(path: str, *, titled: bool) -> dict[str, object]:
    """Return the metadata of a memory that is a file at `path`."""
    return {PATH_KEY: path, TITLED_KEY: titled}


def with_metadata(item: MemoryItem, metadata: Mapping[str, object]) -> MemoryItem:
    """Return a memory with `metadata` added to its own."""
    return dataclasses.replace(item, metadata={**item.metadata, **metadata})


def move_item(item: MemoryItem, path: str) -> tuple[MemoryItem, str]:
    """Return a memory with a new path, and its text there."""
    titled = item.metadata.get(TITLED_KEY) is True
    text = titled_text(path, file_content(item)) if titled else item.text
    return with_metadata(item, file_metadata(path, titled=titled)), text


def file_content(item: MemoryItem) -> str:
    """Return the content of the file that a memory is."""
    path = item.metadata.get(PATH_KEY)
    if item.metadata.get(TITLED_KEY) is True and isinstance(path, str):
        return item.text.removeprefix(titled_text(path, ""))
    return item.text


class FileTree:
    """The files and folders of a scope. A folder exists as long as a file is in it; the root always does.

    Each memory has one path: the one in its metadata, or one derived from its text and id. If several memories of
    narrower scopes have one path in their metadata, the first of the scope itself keeps it, and the others have derived
    paths.
    """

    def __init__(self, items: Iterable[MemoryItem], scope: Scope) -> None:
        self._items: dict[str, MemoryItem] = {}
        self._folders = {"/"}
        self._derived: dict[str, str] = {}
        unplaced: list[MemoryItem] = []
        for item in sorted(items, key=lambda item: item.scope != scope):
            path = _own_path(item)
            if path is None or path in self._items:
                unplaced.append(item)
            else:
                self._place(path, item)
        for item in unplaced:
            digest = memory_digest(item.id)
            path = derive_path(file_content(item), digest)
            if path in self._items:
                path = derive_path(file_content(item), item.id.replace("/", "-"))
            self._derived[digest] = path
            self._place(path, item)

    def _place(self, path: str, item: MemoryItem) -> None:
        self._items[path] = item
        self._folders.update(parent_folders(path))

    def find_item(self, path: str) -> MemoryItem | None:
        """Return the memory at a normalized path; one without a path of its own is also found by an earlier name."""
        if path not in self._items and (digest := find_digest(path)) is not None:
            path = self._derived.get(digest, path)
        return self._items.get(path)

    def find_fact(self, text: str, scope: Scope) -> MemoryItem | None:
        """Return the memory of exactly this scope with a text and without a path of its own."""
        unplaced = (self._items[path] for path in self._derived.values())
        return next((item for item in unplaced if item.text == text and item.scope == scope), None)

    def is_folder(self, path: str) -> bool:
        return path in self._folders

    def check_free(self, path: str) -> None:
        """Check that a new file can have this path.

        Raises:
            FileAccessError: it exists, or a file is where a folder is needed.
        """
        if self.find_item(path) is not None or self.is_folder(path):
            raise FileAccessError("exists", path, f"{path} exists already")
        for folder in parent_folders(path):
            if folder in self._items:
                raise FileAccessError("not_a_directory", folder, f"{folder} is a file, not a folder")

    def file_at(self, path: str) -> MemoryFile:
        """Return the file at a normalized path.

        Raises:
            FileAccessError: nothing is there, or a folder.
        """
        item = self.find_item(path)
        if item is None:
            if self.is_folder(path):
                raise FileAccessError("is_directory", path, f"{path} is a folder")
            raise FileAccessError("not_found", path, f"{path} does not exist")
        return _to_file(path, item)

    def files(self, folder: str = "/") -> Iterator[MemoryFile]:
        """Return the files below a folder, by path; the file itself if the path is one."""
        for path in sorted(self._items):
            if path == folder or is_inside(path, folder):
                yield _to_file(path, self._items[path])

    def items(self, folder: str) -> dict[str, MemoryItem]:
        """Return the memories below a folder or at a path, by path."""
        if (item := self.find_item(folder)) is not None:
            return {folder: item}
        return {path: item for path, item in self._items.items() if is_inside(path, folder)}

    def path_of(self, memory_id: str) -> str | None:
        """Return the path of a memory, None if it is not in the tree."""
        return next((path for path, item in self._items.items() if item.id == memory_id), None)


def _to_file(path: str, item: MemoryItem) -> MemoryFile:
    return MemoryFile(path, file_content(item), item.id, item.created_at, item.said_at)


def _own_path(item: MemoryItem) -> str | None:
    """Return the path in a memory's metadata; None if it has none that is usable."""
    path = item.metadata.get(PATH_KEY)
    if not isinstance(path, str):
        return None
    try:
        normalized = normalize_path(path)
    except FileAccessError:
        return None
    return None if normalized == "/" else normalized
