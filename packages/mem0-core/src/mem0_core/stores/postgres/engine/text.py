r"""Text as PostgreSQL can store it: NUL is written as a pair of characters.

The pair begins with ``\x10`` (data link escape), which is therefore written as a pair, too. Stored and searched text
is escaped alike, and read back unchanged.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_ESCAPE = "\x10"


def escape(text: str) -> str:
    """Return a text without NUL, which PostgreSQL does not store; reading a row reverts it."""
    if "\0" not in text and _ESCAPE not in text:
        return text
    return text.replace(_ESCAPE, _ESCAPE + "e").replace("\0", _ESCAPE + "0")


def _unescape(text: str) -> str:
    return text.replace(_ESCAPE + "0", "\0").replace(_ESCAPE + "e", _ESCAPE)


def to_json(value: Mapping[str, Any] | None) -> str:
    """Return a JSON object that PostgreSQL can parse: its ``jsonb`` has no NUL either."""
    if not value:
        return "{}"
    text = json.dumps(dict(value), ensure_ascii=False, separators=(",", ":"))
    if "\\u0000" in text or "\\u0010" in text:
        text = json.dumps(_map_strings(dict(value), escape), ensure_ascii=False, separators=(",", ":"))
    return text


def from_json(text: str) -> dict[str, Any]:
    """Parse a stored JSON object and restore its NUL characters."""
    if text == "{}":
        return {}
    value: dict[str, Any] = json.loads(text)
    return _map_strings(value, _unescape) if "\\u0010" in text else value


def _map_strings(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _map_strings(part, change) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_strings(part, change) for part in value]
    return value


def adapt_text(db: Any) -> None:
    """Make a connection with UTF-8 as its client encoding escape the text that it writes, and unescape it again."""
    from psycopg.adapt import Loader
    from psycopg.pq import Format
    from psycopg.types.string import StrDumperUnknown

    class Dumper(StrDumperUnknown):
        def dump(self, obj: str) -> Any:
            return super().dump(escape(obj))

    class TextLoader(Loader):
        def load(self, data: Any) -> str:  # the hottest line of a search: hundreds of values, each of them one call
            text = str(data, "utf-8")
            return _unescape(text) if _ESCAPE in text else text

    class BinaryLoader(TextLoader):
        format = Format.BINARY

    db.adapters.register_dumper(str, Dumper)
    db.adapters.register_loader("text", TextLoader)
    db.adapters.register_loader("text", BinaryLoader)
