"""Messages: parse and check the caller's messages, write transcripts, parse timestamps."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Message, Messages, SkippedItem, is_valid_text
from mem0_core.domain.suggestions import describe_value, suggest
from mem0_core.domain.timestamps import parse_timestamp
from mem0_core.errors import InputError
from mem0_core.language.prompt_data import KNOWN_ROLES, format_messages

__all__ = [
    "KNOWN_ROLES",
    "ParsedMessages",
    "check_metadata",
    "format_transcript",
    "is_structured_output",
    "join_contents",
    "mentions_speaker",
    "parse_message",
    "parse_messages",
    "strip_recalled",
]

SPEAKER_ROLES = frozenset({"user", "assistant"})
"""Roles whose messages can become memories; the others carry instructions and machine output."""


@dataclass(frozen=True, slots=True)
class ParsedMessages:
    """The messages that were read, and the skipped parts with their reasons."""

    messages: tuple[Message, ...]
    skipped: tuple[SkippedItem, ...] = ()


def parse_messages(messages: Messages, name: str = "messages") -> ParsedMessages:
    """Parse the messages that a caller passes to `add`, or as the argument `name` to another method.

    A text is one user message. Content is a text or a list of OpenAI content parts: texts are joined, image parts are
    kept as URLs, and parts of other kinds are skipped with a reason. Blank messages, and assistant messages that only
    call tools, are skipped too.

    Raises:
        InputError: no message, an unknown role, no content, bytes, or text that is not valid Unicode.
    """
    if isinstance(messages, str):
        if not messages.strip():
            raise InputError(f"{name} is an empty text: give a text, or at least one message with content")
        messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, Mapping):
        messages = [messages]
    given: object = messages
    if isinstance(given, (bytes, bytearray)) or not isinstance(given, Sequence):
        raise InputError(
            f"{name} must be a text, a message or a list of messages, not {describe_value(given)}; pass, for example,"
            " [{'role': 'user', 'content': 'I like tea'}]"
        )
    if not messages:
        raise InputError(f"{name} is an empty list: give at least one message")
    parsed: list[Message] = []
    skipped: list[SkippedItem] = []
    for index, message in enumerate(messages):
        one = _parse_message(message, f"{name}[{index}]", skipped)
        if one is not None:
            parsed.append(one)
    return ParsedMessages(tuple(parsed), tuple(skipped))


def parse_message(message: object, label: str) -> ParsedMessages:
    """Parse one of many messages; a text is a user's.

    Args:
        label: names the message in errors.

    Raises:
        InputError: as `parse_messages` does.
    """
    skipped: list[SkippedItem] = []
    given = {"role": "user", "content": message} if isinstance(message, str) else message
    parsed = _parse_message(given, label, skipped)
    return ParsedMessages(() if parsed is None else (parsed,), tuple(skipped))


def _parse_message(message: object, label: str, skipped: list[SkippedItem]) -> Message | None:
    if not isinstance(message, Mapping):
        raise InputError(
            f"{label} must be a mapping with role and content, not {describe_value(message)}; pass, for example,"
            " {'role': 'user', 'content': 'I like tea'}"
        )
    role = message.get("role")
    if role is None:
        names = ", ".join(sorted(KNOWN_ROLES))
        raise InputError(f"{label} has no role: {describe_value(message)}; add the key 'role' (roles: {names})")
    if not isinstance(role, str) or role not in KNOWN_ROLES:
        hint = suggest(str(role), sorted(KNOWN_ROLES), label="roles")
        raise InputError(f"{label} has the role {role!r}{hint}; pass one of them")
    content = message.get("content")
    if content is None:
        if message.get("tool_calls") or message.get("function_call"):
            return None
        raise InputError(
            f"{label} has no content: {describe_value(message)}; add the key 'content' with the text of the message"
        )
    read, images = _read_content(content, label, skipped)
    text = strip_recalled(read)
    if not text.strip() and not images:
        empty = f"{label} is empty" if not read.strip() else f"{label} contains only recalled memories"
        skipped.append(SkippedItem(reason=empty, item=dict(message)))
        return None
    timestamp = message.get("timestamp")
    name = _read_name(message.get("name"), label)
    return Message(
        role=role,
        content=_check_text(text, label),
        name=name,
        key=_build_key(message.get("id"), (role, name, text, images), label),
        images=images,
        metadata=check_metadata(message.get("metadata"), label),
        timestamp=None if timestamp is None else parse_timestamp(timestamp, f"{label}.timestamp"),
    )


def _build_key(id: object, said: tuple[object, ...], label: str) -> str | None:
    """Return the key of a message with an id. An edited message has another key, although it keeps its id."""
    if id is None or id == "":
        return None
    if not isinstance(id, (str, int)):
        raise InputError(f"{label} has an id that is neither a string nor an integer: {id!r}")
    return hashlib.blake2b(repr((str(id), said)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _read_content(content: object, label: str, skipped: list[SkippedItem]) -> tuple[str, tuple[str, ...]]:
    if isinstance(content, str):
        return content, ()
    if isinstance(content, Mapping):
        content = [content]
    if isinstance(content, (bytes, bytearray)) or not isinstance(content, Sequence):
        raise InputError(f"{label} has content of type {type(content).__name__}; it must be text or a list of parts")
    texts: list[str] = []
    images: list[str] = []
    for part in content:
        if isinstance(part, str):
            texts.append(part)
        elif not isinstance(part, Mapping):
            raise InputError(f"{label} has a content part of type {type(part).__name__}")
        elif part.get("type") == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif part.get("type") == "image_url" and (url := _image_url(part.get("image_url"))):
            images.append(url)
        else:
            skipped.append(
                SkippedItem(reason=f"{label} has a part of the kind {part.get('type')!r}", item=_truncate_part(part))
            )
    return "\n".join(texts), tuple(images)


_RECALLED_BEGIN, _RECALLED_END = "<memories>\n", "\n</memories>"


def strip_recalled(text: str) -> str:
    """Remove the blocks of `prompts.memories_block` from a text, so that recalled memories are not learned again."""
    parts: list[str] = []
    start = 0
    while (begin := text.find(_RECALLED_BEGIN, start)) >= 0:
        end = text.find(_RECALLED_END, begin + len(_RECALLED_BEGIN))
        if end < 0:
            break
        parts.append(text[start:begin].rstrip(" \t"))
        start = end + len(_RECALLED_END)
        while text[start : start + 1] in (" ", "\t"):
            start += 1
        start += text[start : start + 1] == "\n"
    return "".join([*parts, text[start:]])


_CODE_FENCE = re.compile(r"\A```\w*\s*\n(.*)\n\s*```\Z", re.DOTALL)


def is_structured_output(text: str) -> bool:
    """Return True if a model's whole text is a JSON object or list: data for a program, and nothing that was said."""
    text = _CODE_FENCE.sub(r"\1", text.strip()).strip()
    if text[:1] not in ("{", "[") or text[-1:] not in ("}", "]"):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _image_url(value: object) -> str | None:
    url = value.get("url") if isinstance(value, Mapping) else value
    return url if isinstance(url, str) and url else None


def _truncate_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a content part without its payload, such as an audio clip."""
    return {key: value if len(str(value)) < 200 else "..." for key, value in part.items()}


def _read_name(name: object, label: str) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str):
        raise InputError(f"{label} has a name that is not a string: {name!r}")
    return _check_text(name, label).strip() or None


def _check_text(text: str, label: str) -> str:
    if not is_valid_text(text):
        raise InputError(f"{label} is not valid Unicode (it contains a lone surrogate)")
    return text


def check_metadata(metadata: object, label: str) -> dict[str, Any]:
    """Return a copy of `metadata` as JSON carries it.

    Raises:
        InputError: it is not a JSON object with string keys; the text names the key.
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise InputError(
            f"the metadata of {label} must be a mapping, not {describe_value(metadata)}; pass, for example,"
            " metadata={'topic': 'work'}"
        )
    for key, value in metadata.items():
        if not isinstance(key, str):
            raise InputError(
                f"the metadata of {label} has a key that is not a string, {key!r}; pass texts as keys, for example"
                f" {str(key)!r}"
            )
        try:
            json.dumps({key: value}, allow_nan=False, ensure_ascii=False).encode()
            _check_storable([key, value])
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(
                f"the metadata of {label} cannot be stored as JSON at {key!r}: {error}; pass text, numbers,"
                " booleans, null,"
                " lists or mappings"
            ) from error
    copied: dict[str, Any] = json.loads(json.dumps(dict(metadata))) if metadata else {}
    return copied


def _check_storable(value: object) -> None:
    """Reject values that JSON allows and databases do not: NUL in texts, integers beyond 64 bits."""
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a text holds NUL")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is beyond 64 bits")
    if isinstance(value, Mapping):
        value = [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple)):
        for element in value:
            _check_storable(element)


def format_transcript(messages: Sequence[Message], roles: frozenset[str] = SPEAKER_ROLES) -> str:
    """Write each message as one line, ``role: content`` or ``role (name): content``, as `prompt_data` does."""
    return format_messages(message for message in messages if message.role in roles)


def join_contents(messages: Sequence[Message]) -> str:
    """Join the contents of the speakers' messages, to look up names in them."""
    return "\n".join(message.content for message in messages if message.role in SPEAKER_ROLES)


_SELF = re.compile(r"\b(?:i|me|my|mine|myself)\b", re.IGNORECASE)


def mentions_speaker(text: str) -> bool:
    """Return True if a text mentions its speaker in English: I, me, my, mine, myself."""
    return _SELF.search(text) is not None
