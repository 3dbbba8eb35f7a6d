"""Open a file of chats, compressed or not, and detect its format from its content."""

from __future__ import annotations

import gzip
import json
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mem0_core._system.files import validate_path
from mem0_core.domain.suggestions import suggest
from mem0_core.errors import InputError
from mem0_core.interchange._chats import READERS, ImportedMessage, detect_format, read_lines, read_text
from mem0_core.interchange._portable import detect_portable

CHAT_FORMATS = (*READERS, "jsonl", "text")
"""Names of the chat formats; see docs/reference/cli.md."""


def read_chats(path: str | Path, format: str | None = None) -> tuple[str, Iterator[ImportedMessage]]:
    """Return the format of a file of chats, and an iterator over its messages in their order.

    Accepts plain files, ``.gz``, and the ``.zip`` of an account export (its ``conversations*.json``).

    Raises:
        InputError: The file cannot be read, or its format is unknown or not `format`. The iterator raises it too, with
            the file and the location in it.
    """
    parts = _read_texts(validate_path(path, "path"))
    detected = format if format is not None else _detect_text_format(parts[0][1], parts[0][0])
    if detected not in CHAT_FORMATS:
        raise InputError(f"{path}: unknown format {detected!r}{suggest(str(detected), CHAT_FORMATS)}; pass one of them")
    return detected, _read_parts(parts, detected)


def read_json(path: Path) -> Any:
    """Return the JSON document in a file, compressed or not.

    Raises:
        InputError: The file cannot be read, or is not JSON.
    """
    ((name, text), *_) = _read_texts(path)
    return _parse_document(text, name)


def find_portable_format(path: str | Path) -> str | None:
    """Return the form of a file of memories, one of `PORTABLE_FORMATS`; None for any other file."""
    file = validate_path(path, "path")
    if not file.is_file():
        return None
    try:
        return detect_portable(read_json(file))
    except InputError:
        return None


def _read_parts(parts: list[tuple[str, str]], format: str) -> Iterator[ImportedMessage]:
    for name, text in parts:
        try:
            yield from _read_part(text, format, name)
        except InputError as error:
            reason = str(error)
            raise InputError(reason if reason.startswith(name) else f"{name}: {reason}") from error
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(
                f"{name} is not in the format {format!r}: {type(error).__name__}: {error}; pass format= (--format) with"
                " its format"
            ) from error


def _read_part(text: str, format: str, name: str) -> Iterator[ImportedMessage]:
    if format == "text":
        yield from read_text(text)
    elif format == "jsonl":
        yield from read_lines(_parse_rows(text, name))
    else:
        yield from READERS[format](_parse_document(text, name))


def _detect_text_format(text: str, name: str) -> str:
    """Return the format of a text, from its content.

    Raises:
        InputError: The text is JSON in no known format, or malformed JSON.
    """
    begin = text.lstrip()
    if not begin:
        raise InputError(f"{name} is empty; pass a file with messages")
    if begin[0] not in '{["':
        return "text"
    try:
        document = json.loads(text)
    except ValueError:
        first = begin.splitlines()[0]
        try:
            json.loads(first)
        except ValueError:
            if begin[0] != "{" and not _looks_like_json(first):
                return "text"
            _parse_document(text, name)  # raises with the location of the error
        return "jsonl"
    if not document:
        raise InputError(f"{name} has no messages: it is {document}; pass a file with messages")
    format = detect_format(document)
    entry = document[0] if isinstance(document, list) else document
    if format is None and isinstance(entry, dict) and "question" in entry:
        raise InputError(
            f"{name} has questions in place of messages; pass a conversation, and this file to"
            " 'mem0-core eval' as --questions"
        )
    if format is None:
        known = ", ".join(CHAT_FORMATS)
        raise InputError(f"{name}: unrecognized JSON format; pass format= (--format), one of: {known}")
    return "jsonl" if isinstance(document, dict) and format == "openai" and "messages" not in document else format


def _looks_like_json(line: str) -> bool:
    return line.rstrip() in ("[", "{") or line.lstrip()[:2] in ("[{", '["', '{"')


def _parse_document(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InputError(
            f"{name} is not valid JSON: {error}; correct the file, or pass format= (--format) with its format"
        ) from error


def _parse_rows(text: str, name: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: JSON strings may contain U+2028
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise InputError(
                    f"{name}: line {number} is not valid JSON: {error}; correct the line, or pass"
                    " format= (--format) with the format of the file"
                ) from error


def _read_texts(path: Path) -> list[tuple[str, str]]:
    """Return the name and text of each part of a file."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            return [(str(path), _decode(gzip.decompress(data), str(path)))]
        if data[:4] == b"PK\x03\x04":
            return _unzip(path)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read: {error}; pass a file that exists and can be read") from error
    return [(str(path), _decode(data, str(path)))]


def _unzip(path: Path) -> list[tuple[str, str]]:
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if Path(name).match("conversations*.json"))
        if not names:
            raise InputError(f"{path} contains no conversations.json; pass the archive that ChatGPT or Claude exports")
        return [(f"{path}/{name}", _decode(archive.read(name), f"{path}/{name}")) for name in names]


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}: line {line} is not valid UTF-8: {error.reason} at byte {error.start}") from error
