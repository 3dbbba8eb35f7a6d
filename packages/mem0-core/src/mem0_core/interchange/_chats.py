"""Readers of chat formats: pure generators that convert a parsed document to messages for `Memory.add`.

`detect_format` looks at the content, because both ChatGPT and Claude name their export ``conversations.json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.errors import InputError

_ID_KEYS = ("user_id", "agent_id", "run_id")
_TEXT_KEYS = ("content", "text", "memory", "message")


@dataclass(frozen=True, slots=True)
class ImportedMessage:
    """One message of a chat.

    Attributes:
        location: Location in the file, for errors: "line 7", "conversation 2 (Trip), message 5".
        message: An argument of `Memory.add`.
        conversation: Name of its conversation, which may become its run_id.
        ids: user_id, agent_id and run_id that the file contains.
    """

    location: str
    message: Mapping[str, Any]
    conversation: str | None = None
    ids: Mapping[str, str] = field(default_factory=dict)


def detect_format(document: object) -> str | None:
    """Return the format of a parsed JSON document, or None if it is unknown."""
    first = next(iter(document), None) if isinstance(document, list) else document
    if isinstance(first, str):
        return "openai" if isinstance(document, list) else None
    if not isinstance(first, Mapping):
        return None
    for format, matches in _FORMAT_CHECKS:
        if matches(first):
            return format
    return None


_FORMAT_CHECKS: tuple[tuple[str, Callable[[Mapping[str, Any]], bool]], ...] = (
    ("chatgpt", lambda one: isinstance(one.get("mapping"), Mapping)),
    ("claude", lambda one: isinstance(one.get("chat_messages"), list)),
    ("locomo", lambda one: isinstance(one.get("conversation"), Mapping) and "speaker_a" in one["conversation"]),
    ("letta", lambda one: isinstance(one.get("agents"), list) and isinstance(one.get("blocks"), list)),
    ("letta", lambda one: isinstance(one.get("core_memory"), list) and isinstance(one.get("messages"), list)),
    ("llamaindex", lambda one: isinstance(one.get("store"), Mapping)),
    ("llamaindex", lambda one: "role" in one and ("blocks" in one or "additional_kwargs" in one)),
    (
        "langchain",
        lambda one: "lc" in one or ("type" in one and "role" not in one and ("data" in one or "content" in one)),
    ),
    ("openai", lambda one: "role" in one or isinstance(one.get("messages"), list)),
    ("openai", lambda one: any(isinstance(one.get(key), str) for key in _TEXT_KEYS)),
)


# --- exports of whole accounts -----------------------------------------------------------------------------------


def _read_chatgpt(document: object) -> Iterator[ImportedMessage]:
    """Read ChatGPT's export: a tree of messages per conversation, of which the current branch is imported."""
    for number, one in _enumerate_entries(document, "conversation"):
        location = f"conversation {number} ({one.get('title') or 'untitled'})"
        name = _text_or_none(one.get("conversation_id") or one.get("id")) or f"conversation-{number}"
        for count, message in enumerate(_read_branch(one, location), 1):
            read = _convert_chatgpt(message)
            if read is not None:
                yield ImportedMessage(f"{location}, message {count}", read, name)


def _read_branch(one: Mapping[str, Any], location: str) -> list[Mapping[str, Any]]:
    """Return the messages from the root to the current node."""
    nodes = one.get("mapping")
    if not isinstance(nodes, Mapping):
        raise InputError(f"{location} has no mapping of messages")
    here = one.get("current_node") or next(
        (key for key, node in reversed(list(nodes.items())) if not node.get("children")), None
    )
    messages: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while here is not None:
        if here in seen or here not in nodes:
            raise InputError(f"{location}: its messages do not form a tree at the node {here!r}")
        seen.add(here)
        message = nodes[here].get("message")
        if isinstance(message, Mapping):
            messages.append(message)
        here = nodes[here].get("parent")
    return messages[::-1]


def _convert_chatgpt(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert a message of the user or the model; return None for hidden messages, tool calls and tool output."""
    author, content = message.get("author") or {}, message.get("content") or {}
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    if author.get("role") not in ("user", "assistant") or hidden or message.get("recipient", "all") != "all":
        return None
    if content.get("content_type", "text") not in ("text", "multimodal_text"):
        return None  # code, reasoning, quotes of web pages
    parts = [part if isinstance(part, str) else _text_or_none(part.get("text")) for part in content.get("parts") or ()]
    return _build_message(author["role"], "\n".join(filter(None, parts)), at=message.get("create_time"))


def _read_claude(document: object) -> Iterator[ImportedMessage]:
    """Read Claude's export: ``chat_messages`` with a ``sender``, and text in blocks."""
    roles = {"human": "user", "assistant": "assistant"}
    for number, one in _enumerate_entries(document, "conversation"):
        location = f"conversation {number} ({one.get('name') or 'untitled'})"
        name = _text_or_none(one.get("uuid")) or f"conversation-{number}"
        for count, message in enumerate(_require_list(one, "chat_messages", location), 1):
            here = f"{location}, message {count}"
            role = roles.get(str(_require_mapping(message, here).get("sender")))
            if role is None:
                raise InputError(f"{here} has the sender {message.get('sender')!r}; known: human, assistant")
            blocks = [block for block in message.get("content") or () if isinstance(block, Mapping)]
            said = "\n".join(block["text"] for block in blocks if block.get("type") == "text" and block.get("text"))
            read = _build_message(role, said or message.get("text"), at=message.get("created_at"))
            if read is not None:
                yield ImportedMessage(here, read, name)


def read_locomo(document: object) -> Iterator[ImportedMessage]:
    """Read LoCoMo: dated sessions of two speakers. Each conversation becomes a user, each session a run."""
    for number, one in _enumerate_entries(document, "sample"):
        location = f"sample {number} ({one.get('sample_id')})"
        talk = _require_mapping(one.get("conversation"), location)
        user = {"user_id": _text_or_none(one.get("sample_id")) or f"sample-{number}"}
        sessions = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
        for session in sessions:
            turns = f"session_{session}"
            at = _parse_locomo_date(talk.get(f"{turns}_date_time"), f"{location}, {turns}")
            for count, turn in enumerate(_require_list(talk, turns, location), 1):
                here = f"{location}, {turns}, turn {count}"
                read = _convert_locomo(_require_mapping(turn, here), talk, at)
                if read is not None:
                    yield ImportedMessage(here, read, turns, user)


def _convert_locomo(turn: Mapping[str, Any], talk: Mapping[str, Any], at: str) -> dict[str, Any] | None:
    speaker = turn.get("speaker")
    first = speaker == talk.get("speaker_a")
    kept = {"dia_id": turn.get("dia_id"), "caption": turn.get("blip_caption")}
    kept = {key: value for key, value in kept.items() if value}
    return _build_message("user" if first else "assistant", turn.get("text"), name=speaker, at=at, metadata=kept)


def _parse_locomo_date(text: object, location: str) -> str:
    """Parse a date such as ``1:56 pm on 8 May, 2023`` as UTC; LoCoMo has no time zones."""
    try:
        return datetime.strptime(str(text), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).isoformat()
    except ValueError as error:
        raise InputError(f"{location} has the date {text!r}: {error}") from error


# --- Letta's agent files -----------------------------------------------------------------------------------------


def _read_letta(document: object) -> Iterator[ImportedMessage]:
    """Read an agent file (``.af``) of Letta, also of its first version: the conversation, and the memory blocks.

    Each line of a block is a message of the agent, which wrote it. Its persona, and system and tool messages, are left
    out.
    """
    for number, file in _enumerate_entries(document, "file"):
        agents = file.get("agents") or [file]
        blocks = file.get("blocks") or file.get("core_memory") or ()
        for one in agents:
            name = _text_or_none(one.get("name")) or f"agent-{number}"
            for count, message in enumerate(one.get("messages") or (), 1):
                here = f"agent {name}, message {count}"
                read = _convert_letta(_require_mapping(message, here))
                if read is not None:
                    yield ImportedMessage(here, read, name)
        for block in blocks:
            label = str(_require_mapping(block, "block").get("label"))
            lines = () if label == "persona" else str(block.get("value") or "").splitlines()
            for count, line in enumerate(lines, 1):
                at = block.get("updated_at") or block.get("created_at") or file.get("created_at")
                read = _build_message("assistant", line.strip(), at=at, metadata={"block": label})
                if read is not None:
                    yield ImportedMessage(f"block {label}, line {count}", read, f"block-{label}")


def _convert_letta(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Convert a message of the user or the agent, which some versions wrap in JSON or in a call of a tool."""
    role, said = message.get("role"), _join_blocks(message.get("content") or message.get("text"))
    sent = [
        json.loads(call["function"]["arguments"]).get("message")
        for call in message.get("tool_calls") or ()
        if call["function"]["name"] == "send_message"
    ]
    if role == "assistant" and message.get("tool_calls"):
        said = "\n".join(filter(None, sent))  # the content of such a message is a thought
    elif role == "user" and (said or "").startswith("{"):
        try:
            event = json.loads(said or "")
        except ValueError:
            event = None
        if isinstance(event, Mapping) and "type" in event:  # logins and heartbeats are events, too
            said = _text_or_none(event.get("message")) if event["type"] == "user_message" else None
    elif role not in ("user", "assistant"):
        return None
    return _build_message(role, said, name=message.get("name"), at=message.get("created_at"))


# --- lists of messages -------------------------------------------------------------------------------------------


def _read_openai(document: object) -> Iterator[ImportedMessage]:
    """Read messages in the format of the OpenAI API; also ``{"messages": [...]}``, and lists of such objects."""
    yield from _read_list(document, _convert_openai)


def _read_langchain(document: object) -> Iterator[ImportedMessage]:
    """Read LangChain's messages: ``messages_to_dict``, ``dumpd``, or ``model_dump`` of each."""
    yield from _read_list(document, _convert_langchain)


def _read_llamaindex(document: object) -> Iterator[ImportedMessage]:
    """Read LlamaIndex's ``ChatMessage``, with blocks or content, also in the file format of ``SimpleChatStore``."""
    if isinstance(document, Mapping) and isinstance(document.get("store"), Mapping):
        for key, messages in document["store"].items():
            for said in _read_list(messages, _convert_llamaindex):
                yield ImportedMessage(f"{key}: {said.location}", said.message, str(key))
        return
    yield from _read_list(document, _convert_llamaindex)


ConvertMessage = Callable[[Mapping[str, Any], str], "dict[str, Any] | None"]


def _read_list(document: object, read: ConvertMessage) -> Iterator[ImportedMessage]:
    """Read a list of messages, of texts, or of conversations under ``messages``."""
    entries = document if isinstance(document, list) else [document]
    for number, entry in enumerate(entries, 1):
        location = f"message {number}"
        if isinstance(entry, str):
            yield ImportedMessage(location, {"role": "user", "content": entry})
            continue
        if isinstance(entry, Mapping) and isinstance(entry.get("messages"), list):
            whole = len(entries) == 1 and not _conversation_name(entry)
            name = None if whole else _conversation_name(entry) or f"conversation-{number}"
            for said in _read_list(entry["messages"], read):
                ids = {**_read_ids(entry), **said.ids}
                yield ImportedMessage(
                    said.location if whole else f"conversation {number}, {said.location}", said.message, name, ids
                )
            continue
        message = read(_require_mapping(entry, location), location)
        if message is not None:
            yield ImportedMessage(location, message, ids=_read_ids(_require_mapping(entry, location)))


def _conversation_name(entry: Mapping[str, Any]) -> str | None:
    return next(
        (str(entry[key]) for key in ("conversation_id", "thread_id", "session_id", "id") if entry.get(key)), None
    )


def _convert_openai(entry: Mapping[str, Any], location: str) -> dict[str, Any] | None:
    said = next((entry[key] for key in _TEXT_KEYS if entry.get(key) is not None), None)
    if said is None:
        if entry.get("tool_calls") or entry.get("function_call"):
            return None
        raise InputError(f"{location} has no content")
    role, name = entry.get("role", "user"), entry.get("name") or entry.get("speaker")
    if "role_type" in entry:  # a message of Zep, where the role may be a name
        role, name = entry["role_type"], name or entry.get("role")
    at = next((entry[key] for key in ("timestamp", "created_at", "create_time") if entry.get(key) is not None), None)
    return _build_message(role, said, name=name, at=at, metadata=entry.get("metadata"))


_LANGCHAIN_ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "function",
    "developer": "developer",
}


def _convert_langchain(entry: Mapping[str, Any], location: str) -> dict[str, Any] | None:
    kind = entry.get("type")
    inner = entry.get("data") if "data" in entry else entry.get("kwargs") if "lc" in entry else entry
    inner = _require_mapping(inner, location)
    if "lc" in entry:
        kind = inner.get("type") or str((entry.get("id") or [""])[-1]).removesuffix("Message").removesuffix("Chunk")
    kind = str(kind).removesuffix("MessageChunk").lower()
    role = inner.get("role") if kind == "chat" else _LANGCHAIN_ROLES.get(kind)
    if role is None:
        raise InputError(f"{location} has the type {kind!r}; known: {', '.join([*_LANGCHAIN_ROLES, 'chat'])}")
    at = (inner.get("additional_kwargs") or {}).get("timestamp")
    return _build_message(role, _join_blocks(inner.get("content")), name=inner.get("name"), at=at)


_LLAMAINDEX_ROLES = {"chatbot": "assistant", "model": "assistant"}


def _convert_llamaindex(entry: Mapping[str, Any], location: str) -> dict[str, Any] | None:
    role = str(entry.get("role", "user")).removeprefix("MessageRole.").lower()
    more = entry.get("additional_kwargs") or {}
    said = _join_blocks(entry.get("content") if entry.get("blocks") is None else entry["blocks"])
    return _build_message(_LLAMAINDEX_ROLES.get(role, role), said, name=more.get("name"), at=more.get("timestamp"))


def _join_blocks(content: Any) -> str | None:
    """Return the text of `content`, a text or a list of blocks; blocks without text are skipped."""
    if content is None or isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    texts = [block if isinstance(block, str) else _text_or_none(block.get("text")) for block in blocks if block]
    return "\n".join(filter(None, texts))


# --- lines and plain text ----------------------------------------------------------------------------------------


def read_lines(rows: Iterable[tuple[int, Any]]) -> Iterator[ImportedMessage]:
    """Read parsed JSON Lines: each row is a text, a message in any of these formats, or a conversation."""
    for number, row in rows:
        location = f"line {number}"
        if isinstance(row, str):
            yield ImportedMessage(location, {"role": "user", "content": row})
            continue
        format = detect_format(row)
        if format is None:
            raise InputError(f"{location} is neither a text, nor a message, nor a conversation: {_shorten(row)}")
        several = (isinstance(row, Mapping) and isinstance(row.get("messages"), list)) or format in (
            "chatgpt",
            "claude",
            "locomo",
        )
        try:
            for said in READERS[format](row):
                where = f"{location}, {said.location}" if several else location
                name = (said.conversation or f"line-{number}") if several else None
                yield ImportedMessage(where, said.message, name, said.ids)
        except InputError as error:
            raise InputError(_locate_error(str(error), location)) from error


def _locate_error(reason: str, location: str) -> str:
    return reason.replace("message 1", location, 1) if reason.startswith("message 1 ") else f"{location}: {reason}"


_SPEAKER_LINE = re.compile(r"(?P<name>[^\W\d_][\w .'-]{0,39}?): +(?P<said>\S.*)")
_USER_SPEAKERS = {"user": "user", "human": "user", "me": "user", "you": "user"}
_ASSISTANT_SPEAKERS = {"assistant", "ai", "bot", "chatgpt", "claude", "model"}


def read_text(text: str) -> Iterator[ImportedMessage]:
    """Read plain text: a transcript if each line begins with ``Name:``, else one message per paragraph.

    Without empty lines, each line is a message.
    """
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    written = [(number, line) for number, line in lines if line]
    if not written:
        return
    spoken = [_SPEAKER_LINE.fullmatch(line) for _, line in written]
    if len(written) > 1 and all(spoken):
        for (number, _), match in zip(written, spoken, strict=True):
            assert match is not None
            yield ImportedMessage(f"line {number}", _build_transcript_message(match["name"], match["said"]))
        return
    if len(written) == len(lines) or not any(not line for _, line in lines[written[0][0] : written[-1][0]]):
        for number, line in written:
            yield ImportedMessage(f"line {number}", {"role": "user", "content": line})
        return
    yield from _read_paragraphs(lines)


def _read_paragraphs(lines: Sequence[tuple[int, str]]) -> Iterator[ImportedMessage]:
    begun, held = 0, list[str]()
    for number, line in [*lines, (0, "")]:
        if line:
            begun = begun or number
            held.append(line)
        elif held:
            yield ImportedMessage(f"line {begun}", {"role": "user", "content": " ".join(held)})
            begun, held = 0, []


def _build_transcript_message(name: str, said: str) -> dict[str, Any]:
    folded = name.casefold()
    if folded in _ASSISTANT_SPEAKERS:
        return {"role": "assistant", "content": said}
    return (
        {"role": "user", "content": said}
        if folded in _USER_SPEAKERS
        else {"role": "user", "content": said, "name": name}
    )


# --- pieces ------------------------------------------------------------------------------------------------------


def _build_message(
    role: object, said: object, *, name: object = None, at: object = None, metadata: object = None
) -> dict[str, Any] | None:
    """Build a message from the given fields; return None if it has no content."""
    if said is None or (isinstance(said, str) and not said.strip()):
        return None
    more = {"name": name, "timestamp": at, "metadata": metadata}
    return {"role": role, "content": said, **{key: value for key, value in more.items() if value not in (None, "", {})}}


def _enumerate_entries(document: object, what: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, one in enumerate(document if isinstance(document, list) else [document], 1):
        yield number, _require_mapping(one, f"{what} {number}")


def _read_ids(entry: Mapping[str, Any]) -> dict[str, str]:
    return {axis: str(entry[axis]) for axis in _ID_KEYS if entry.get(axis) not in (None, "")}


def _require_mapping(value: object, location: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{location} is not a JSON object: {_shorten(value)}")
    return value


def _require_list(one: Mapping[str, Any], key: str, location: str) -> list[Any]:
    value = one.get(key)
    if not isinstance(value, list):
        raise InputError(f"{location} has no list {key!r}")
    return value


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _shorten(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


READERS: dict[str, Callable[[object], Iterator[ImportedMessage]]] = {
    "chatgpt": _read_chatgpt,
    "claude": _read_claude,
    "openai": _read_openai,
    "langchain": _read_langchain,
    "llamaindex": _read_llamaindex,
    "letta": _read_letta,
    "locomo": read_locomo,
}
"""Readers of the formats that consist of one JSON document."""
