"""Paths of memory files: normalization, and the names of memories that have no path of their own."""

from __future__ import annotations

import hashlib
import re
from typing import Literal

from mem0_core.domain.normalization import normalize
from mem0_core.domain.records import is_valid_text
from mem0_core.errors import InputError

FACTS_FOLDER = "/facts"
"""Folder of the memories that were not written as files."""

_MAX_PATH_BYTES = 1024
_MAX_NAME_BYTES = 255  # as in common file systems
_SLUG_CHARS = 48
_DIGEST = re.compile(r"-([0-9a-f]{8})\.md$")
_WORD = re.compile(r"[^\W_]+")

FileErrorCode = Literal[
    "not_found", "exists", "is_directory", "not_a_directory", "invalid_path", "outside", "is_root", "inside_itself"
]


class FileAccessError(InputError):
    """A path of a memory file cannot be used as the operation needs it.

    Attributes:
        code: kind of the problem.
        path: the path it is about.
    """

    def __init__(self, code: FileErrorCode, path: str, message: str) -> None:
        super().__init__(message)
        self.code: FileErrorCode = code
        self.path = path


def normalize_path(path: object) -> str:
    """Return an absolute path without ``.``, ``..`` and repeated slashes; the root is ``/``.

    Paths are keys of one scope's memories and never reach a file system; ``..`` is resolved in the text.

    Raises:
        FileAccessError: the path is not absolute, leads out of the root, is too long, or has a control character.
    """
    if not isinstance(path, str) or not path.startswith("/"):
        raise FileAccessError("invalid_path", str(path), f"a path starts with /, and this one does not: {path!r}")
    if not is_valid_text(path) or any(ord(char) < 32 or ord(char) == 127 for char in path):
        raise FileAccessError("invalid_path", path, f"the path has a character that no path may have: {path!r}")
    names: list[str] = []
    for name in normalize("NFC", path).split("/"):
        if name == "..":
            if not names:
                raise FileAccessError("outside", path, f"the path {path!r} leads out of the root")
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    normalized = "/" + "/".join(names)
    if len(normalized.encode()) > _MAX_PATH_BYTES or any(len(name.encode()) > _MAX_NAME_BYTES for name in names):
        raise FileAccessError(
            "invalid_path", path, f"a path has up to {_MAX_PATH_BYTES} bytes, and a name in it up to {_MAX_NAME_BYTES}"
        )
    return normalized


def is_inside(path: str, folder: str) -> bool:
    """Return True if a normalized path is below a folder."""
    return path != folder and path.startswith(folder if folder == "/" else f"{folder}/")


def parent_folders(path: str) -> list[str]:
    """Return the folders that contain a normalized path, nearest first, without the root."""
    names = path.split("/")[1:-1]
    return ["/" + "/".join(names[:count]) for count in range(len(names), 0, -1)]


def derive_path(text: str, digest: str) -> str:
    """Return the path of a memory without one: the first words of its text, and a digest of its id."""
    slug = ""
    for word in _WORD.findall(normalize("NFC", text[:400]).lower()):
        if len(slug) + len(word) >= _SLUG_CHARS:
            break
        slug = f"{slug}-{word}" if slug else word
    return f"{FACTS_FOLDER}/{slug or 'memory'}-{digest}.md"


def memory_digest(memory_id: str) -> str:
    """Return eight hexadecimal digits for a memory id, the own first digits of which are its time."""
    return hashlib.blake2b(memory_id.encode(), digest_size=4).hexdigest()


def find_digest(path: str) -> str | None:
    """Return the digest in a derived path, None for another path."""
    found = _DIGEST.search(path) if is_inside(path, FACTS_FOLDER) else None
    return found[1] if found else None
