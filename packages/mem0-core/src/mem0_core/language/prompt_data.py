r"""Data in prompts: texts, names and ids that cannot pass for the words of another speaker or for a delimiter.

A message is one line, ``role (name): content``. A content or name is written as it is if it has only harmless
characters, and else as a JSON string. So there is no line break in a message, and no text starts a line. In JSON,
characters that end a line, hide, reverse the direction, mark a turn or look like a delimiter are written as ``\uXXXX``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from mem0_core._system.text_caches import text_cache
from mem0_core.domain.records import Message

_MAX_CACHED_CHARS = 4_000  # of a text

KNOWN_ROLES = frozenset({"user", "assistant", "system", "developer", "tool", "function"})

_BREAKS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
_INVISIBLE = (
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    r"\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
_SURROGATES = r"\ud800-\udfff"
_LOOKALIKES = r"\uff02\uff1c\uff1e\uff3b-\uff3d\uff5b\uff5d\ufe5b\ufe5c\ufe64\ufe65\ufe68"  # of quotes and brackets
_ALWAYS = rf"{_BREAKS}{_INVISIBLE}{_SURROGATES}{_LOOKALIKES}"
_MARKUP = r"(?<=<)(?=[/|!?<\w])|(?<=\[)(?=/?[A-Z_]{2,20}\])"  # </memories>, <|im_start|>, <<SYS>>, [INST]
_JOINERS = r"\u200c\u200d"
_STRAY = rf"(?<=[{_JOINERS}])(?:(?<![^\x00-\x7f][{_JOINERS}])|(?![^\x00-\x7f]))"  # but for emoji, Persian and the like
_IN_CONTEXT = rf"(?<=[{_ALWAYS}])|{_MARKUP}|{_STRAY}"
# One set of characters, then conditions: `re` scans for a set many times faster than it tries alternatives.
_DANGEROUS = rf"[{_ALWAYS}{_JOINERS}<\[](?:{_IN_CONTEXT})"
_COLONS = (
    r":\u02d0\u02f8\u0589\u05c3\u0703\u0704\u16ec\u1803\u1809\u205a\u2236\u2a74\ua4fd\ua789\ufe13\ufe30\ufe55\uff1a"
)

# Compiled by `re` at their first use, which a search does not need.
_LONE_COLON = rf"(?<=[{_COLONS}])(?:(?<!\d[{_COLONS}])|(?!\d))"
_UNSAFE = rf"[{_ALWAYS}{_JOINERS}<\[{_COLONS}](?:{_IN_CONTEXT}|{_LONE_COLON})"
_PLAIN_NAME = re.compile(r"\w[\w .,'’@+-]{0,79}(?<!\s)")
_ENCODER = json.JSONEncoder(ensure_ascii=False)  # `json.dumps` would create one per line


def encode_data(value: Any) -> str:
    r"""Write data as JSON on one line, in which no text can pass for a delimiter: ``</`` becomes ``\u003c/``."""
    return re.sub(_DANGEROUS, _escape, _ENCODER.encode(value))


def escape_line(text: str) -> str:
    r"""Write a text on one line, with ``\uXXXX`` for the same characters as in JSON."""
    return re.sub(_DANGEROUS, _escape, text)


@text_cache(1024, max_chars=_MAX_CACHED_CHARS)  # the next adds show a message again, as what was said before
def quote_text(text: str) -> str:
    """Write a text as it is, or as a JSON string if it could pass for more than one text."""
    has_quote_or_edge = text[:1].isspace() or text[-1:].isspace() or text.startswith('"')
    return encode_data(text) if has_quote_or_edge or re.search(_UNSAFE, text) else text


def format_message(message: Message) -> str:
    """Write a message as one line: ``role: content``, or ``role (name): content``."""
    name = f" ({_quote_name(message.name)})" if message.name else ""
    return f"{message.role}{name}: {quote_text(message.content)}"


def format_messages(messages: Iterable[Message]) -> str:
    """Write messages, one on each line."""
    return "\n".join(map(format_message, messages))


def _quote_name(name: str) -> str:
    is_plain = _PLAIN_NAME.fullmatch(name) and not re.search(_DANGEROUS, name) and name.casefold() not in KNOWN_ROLES
    return name if is_plain else encode_data(name)


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] > "\x7f" or match[0] < " " else f"\\u{ord(match[0]):04x}"
