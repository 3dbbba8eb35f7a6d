"""A reader for each format of chats: pure generators from a parsed document to messages as `Memory.add` takes them.

Formats are told apart by content (`format_of`), not by a file's name: both ChatGPT and Claude call theirs
``conversations.json``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mem0_core.errors import InputError

__all__ = ["READERS", "Said", "format_of", "read_lines", "read_text"]

_AXES = ("user_id", "agent_id", "run_id")
_TEXTS = ("content", "text", "memory", "message")


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a chat.

    Attributes:
        place: where it stands, for errors: "line 7", "conversation 2 (Trip), message 5".
        message: as `Memory.add` takes it.
        conversation: the name of the conversation it belongs to, by which it becomes a run of its own.
        ids: user_id, agent_id and run_id, as far as the file names them.
    """

    place: str
    message: Mapping[str, Any]
    conversation: str | None = None
    ids: Mapping[str, str] = field(default_factory=dict)


def format_of(document: object) -> str | None:
    """The format of a parsed JSON document, None where it is none we know."""
    first = next(iter(document), None) if isinstance(document, list) else document
    if isinstance(first, str):
        return "openai" if isinstance(document, list) else None
    if not isinstance(first, Mapping):
        return None
    for format, marks in _MARKS:
        if marks(first):
            return format
    return None


_MARKS: tuple[tuple[str, Callable[[Mapping[str, Any]], bool]], ...] = (
    ("chatgpt", lambda one: isinstance(one.get("mapping"), Mapping)),
    ("claude", lambda one: isinstance(one.get("chat_messages"), list)),
    ("locomo", lambda one: isinstance(one.get("conversation"), Mapping) and "speaker_a" in one["conversation"]),
    ("llamaindex", lambda one: isinstance(one.get("store"), Mapping)),
    ("llamaindex", lambda one: "role" in one and ("blocks" in one or "additional_kwargs" in one)),
    (
        "langchain",
        lambda one: "lc" in one or ("type" in one and "role" not in one and ("data" in one or "content" in one)),
    ),
    ("openai", lambda one: "role" in one or isinstance(one.get("messages"), list)),
    ("openai", lambda one: any(isinstance(one.get(key), str) for key in _TEXTS)),
)


# --- exports of whole accounts -----------------------------------------------------------------------------------


def read_chatgpt(document: object) -> Iterator[Said]:
    """ChatGPT's export: a tree of messages for each conversation, of which the branch shown last is read."""
    for number, one in _numbered(document, "conversation"):
        place = f"conversation {number} ({one.get('title') or 'untitled'})"
        name = _text(one.get("conversation_id") or one.get("id")) or f"conversation-{number}"
        for count, message in enumerate(_branch(one, place), 1):
            read = _of_chatgpt(message)
            if read is not None:
                yield Said(f"{place}, message {count}", read, name)


def _branch(one: Mapping[str, Any], place: str) -> list[Mapping[str, Any]]:
    """The messages from the root to the node shown last."""
    nodes = one.get("mapping")
    if not isinstance(nodes, Mapping):
        raise InputError(f"{place} has no mapping of messages")
    here = one.get("current_node") or next(
        (key for key, node in reversed(list(nodes.items())) if not node.get("children")), None
    )
    messages: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while here is not None:
        if here in seen or here not in nodes:
            raise InputError(f"{place}: its messages are no tree, at the node {here!r}")
        seen.add(here)
        message = nodes[here].get("message")
        if isinstance(message, Mapping):
            messages.append(message)
        here = nodes[here].get("parent")
    return messages[::-1]


def _of_chatgpt(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """What was said by the user or by the model; None for what is hidden, and for tools and their output."""
    author, content = message.get("author") or {}, message.get("content") or {}
    hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
    if author.get("role") not in ("user", "assistant") or hidden or message.get("recipient", "all") != "all":
        return None
    if content.get("content_type", "text") not in ("text", "multimodal_text"):
        return None  # code, thoughts, quotes of web pages
    parts = [part if isinstance(part, str) else _text(part.get("text")) for part in content.get("parts") or ()]
    return _message(author["role"], "\n".join(filter(None, parts)), at=message.get("create_time"))


def read_claude(document: object) -> Iterator[Said]:
    """Claude's export: ``chat_messages`` with a ``sender``, and text in blocks."""
    roles = {"human": "user", "assistant": "assistant"}
    for number, one in _numbered(document, "conversation"):
        place = f"conversation {number} ({one.get('name') or 'untitled'})"
        name = _text(one.get("uuid")) or f"conversation-{number}"
        for count, message in enumerate(_list(one, "chat_messages", place), 1):
            here = f"{place}, message {count}"
            role = roles.get(str(_mapping(message, here).get("sender")))
            if role is None:
                raise InputError(f"{here} has the sender {message.get('sender')!r}; known: human, assistant")
            blocks = [block for block in message.get("content") or () if isinstance(block, Mapping)]
            said = "\n".join(block["text"] for block in blocks if block.get("type") == "text" and block.get("text"))
            read = _message(role, said or message.get("text"), at=message.get("created_at"))
            if read is not None:
                yield Said(here, read, name)


def read_locomo(document: object) -> Iterator[Said]:
    """LoCoMo: two people talk in dated sessions. Each conversation is a user, each session a run of it."""
    for number, one in _numbered(document, "sample"):
        place = f"sample {number} ({one.get('sample_id')})"
        talk = _mapping(one.get("conversation"), place)
        user = {"user_id": _text(one.get("sample_id")) or f"sample-{number}"}
        sessions = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
        for session in sessions:
            turns = f"session_{session}"
            at = _moment(talk.get(f"{turns}_date_time"), f"{place}, {turns}")
            for count, turn in enumerate(_list(talk, turns, place), 1):
                here = f"{place}, {turns}, turn {count}"
                read = _of_locomo(_mapping(turn, here), talk, at)
                if read is not None:
                    yield Said(here, read, turns, user)


def _of_locomo(turn: Mapping[str, Any], talk: Mapping[str, Any], at: str) -> dict[str, Any] | None:
    speaker = turn.get("speaker")
    first = speaker == talk.get("speaker_a")
    kept = {"dia_id": turn.get("dia_id"), "caption": turn.get("blip_caption")}
    kept = {key: value for key, value in kept.items() if value}
    return _message("user" if first else "assistant", turn.get("text"), name=speaker, at=at, metadata=kept)


def _moment(text: object, place: str) -> str:
    """``1:56 pm on 8 May, 2023``; LoCoMo names no zone."""
    try:
        return datetime.strptime(str(text), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).isoformat()
    except ValueError as error:
        raise InputError(f"{place} has the date {text!r}: {error}") from error


# --- lists of messages -------------------------------------------------------------------------------------------


def read_openai(document: object) -> Iterator[Said]:
    """Messages with role and content, as the OpenAI API takes them; also ``{"messages": [...]}``, and lists of it."""
    yield from _listed(document, _of_openai)


def read_langchain(document: object) -> Iterator[Said]:
    """LangChain's messages: ``messages_to_dict``, ``dumpd``, or ``model_dump`` of each."""
    yield from _listed(document, _of_langchain)


def read_llamaindex(document: object) -> Iterator[Said]:
    """LlamaIndex's ``ChatMessage``, with blocks or content, also as ``SimpleChatStore`` persists them by key."""
    if isinstance(document, Mapping) and isinstance(document.get("store"), Mapping):
        for key, messages in document["store"].items():
            for said in _listed(messages, _of_llamaindex):
                yield Said(f"{key}: {said.place}", said.message, str(key))
        return
    yield from _listed(document, _of_llamaindex)


Read = Callable[[Mapping[str, Any], str], "dict[str, Any] | None"]


def _listed(document: object, read: Read) -> Iterator[Said]:
    """A list of messages, of texts, or of conversations under ``messages``."""
    entries = document if isinstance(document, list) else [document]
    for number, entry in enumerate(entries, 1):
        place = f"message {number}"
        if isinstance(entry, str):
            yield Said(place, {"role": "user", "content": entry})
            continue
        if isinstance(entry, Mapping) and isinstance(entry.get("messages"), list):
            whole = len(entries) == 1 and not _conversation(entry)
            name = None if whole else _conversation(entry) or f"conversation-{number}"
            for said in _listed(entry["messages"], read):
                ids = {**_ids(entry), **said.ids}
                yield Said(said.place if whole else f"conversation {number}, {said.place}", said.message, name, ids)
            continue
        message = read(_mapping(entry, place), place)
        if message is not None:
            yield Said(place, message, ids=_ids(_mapping(entry, place)))


def _conversation(entry: Mapping[str, Any]) -> str | None:
    return next(
        (str(entry[key]) for key in ("conversation_id", "thread_id", "session_id", "id") if entry.get(key)), None
    )


def _of_openai(entry: Mapping[str, Any], place: str) -> dict[str, Any] | None:
    said = next((entry[key] for key in _TEXTS if entry.get(key) is not None), None)
    if said is None:
        if entry.get("tool_calls") or entry.get("function_call"):
            return None
        raise InputError(f"{place} has no content")
    role = entry.get("role", "user")
    at = next((entry[key] for key in ("timestamp", "created_at", "create_time") if entry.get(key) is not None), None)
    name = entry.get("name") or entry.get("speaker")
    return _message(role, said, name=name, at=at, metadata=entry.get("metadata"))


_LANGCHAIN = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "function",
    "developer": "developer",
}


def _of_langchain(entry: Mapping[str, Any], place: str) -> dict[str, Any] | None:
    kind = entry.get("type")
    inner = entry.get("data") if "data" in entry else entry.get("kwargs") if "lc" in entry else entry
    inner = _mapping(inner, place)
    if "lc" in entry:
        kind = inner.get("type") or str((entry.get("id") or [""])[-1]).removesuffix("Message").removesuffix("Chunk")
    kind = str(kind).removesuffix("MessageChunk").lower()
    role = inner.get("role") if kind == "chat" else _LANGCHAIN.get(kind)
    if role is None:
        raise InputError(f"{place} has the type {kind!r}; known: {', '.join([*_LANGCHAIN, 'chat'])}")
    at = (inner.get("additional_kwargs") or {}).get("timestamp")
    return _message(role, _said_in_blocks(inner.get("content")), name=inner.get("name"), at=at)


_LLAMAINDEX = {"chatbot": "assistant", "model": "assistant"}


def _of_llamaindex(entry: Mapping[str, Any], place: str) -> dict[str, Any] | None:
    role = str(entry.get("role", "user")).removeprefix("MessageRole.").lower()
    more = entry.get("additional_kwargs") or {}
    said = _said_in_blocks(entry.get("content") if entry.get("blocks") is None else entry["blocks"])
    return _message(_LLAMAINDEX.get(role, role), said, name=more.get("name"), at=more.get("timestamp"))


def _said_in_blocks(content: Any) -> str | None:
    """The text of content that is a text or a list of blocks, of which those without text are left out."""
    if content is None or isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    texts = [block if isinstance(block, str) else _text(block.get("text")) for block in blocks if block]
    return "\n".join(filter(None, texts))


# --- lines and plain text ----------------------------------------------------------------------------------------


def read_lines(rows: Iterable[tuple[int, Any]]) -> Iterator[Said]:
    """JSON Lines, parsed: each row a text, a message of any of the formats above, or a conversation."""
    for number, row in rows:
        place = f"line {number}"
        if isinstance(row, str):
            yield Said(place, {"role": "user", "content": row})
            continue
        format = format_of(row)
        if format is None:
            raise InputError(f"{place} is neither a text, nor a message, nor a conversation: {_short(row)}")
        several = (isinstance(row, Mapping) and isinstance(row.get("messages"), list)) or format in (
            "chatgpt",
            "claude",
            "locomo",
        )
        try:
            for said in READERS[format](row):
                where = f"{place}, {said.place}" if several else place
                name = (said.conversation or f"line-{number}") if several else None
                yield Said(where, said.message, name, said.ids)
        except InputError as error:
            raise InputError(_at_line(str(error), place)) from error


def _at_line(reason: str, place: str) -> str:
    return reason.replace("message 1", place, 1) if reason.startswith("message 1 ") else f"{place}: {reason}"


_SPEAKER = re.compile(r"(?P<name>[^\W\d_][\w .'-]{0,39}?): +(?P<said>\S.*)")
_ROLES = {"user": "user", "human": "user", "me": "user", "you": "user"}
_ASSISTANTS = {"assistant", "ai", "bot", "chatgpt", "claude", "model"}


def read_text(text: str) -> Iterator[Said]:
    """Plain text. Where each line begins with ``Name:`` it is a transcript; else each paragraph is a message, or each
    line, where no empty lines part paragraphs."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    written = [(number, line) for number, line in lines if line]
    spoken = [_SPEAKER.fullmatch(line) for _, line in written]
    if len(written) > 1 and all(spoken):
        for (number, _), match in zip(written, spoken, strict=True):
            assert match is not None
            yield Said(f"line {number}", _spoken(match["name"], match["said"]))
        return
    if len(written) == len(lines) or not any(not line for _, line in lines[written[0][0] : written[-1][0]]):
        for number, line in written:
            yield Said(f"line {number}", {"role": "user", "content": line})
        return
    yield from _paragraphs(lines)


def _paragraphs(lines: Sequence[tuple[int, str]]) -> Iterator[Said]:
    begun, held = 0, list[str]()
    for number, line in [*lines, (0, "")]:
        if line:
            begun = begun or number
            held.append(line)
        elif held:
            yield Said(f"line {begun}", {"role": "user", "content": " ".join(held)})
            begun, held = 0, []


def _spoken(name: str, said: str) -> dict[str, Any]:
    folded = name.casefold()
    if folded in _ASSISTANTS:
        return {"role": "assistant", "content": said}
    return {"role": "user", "content": said} if folded in _ROLES else {"role": "user", "content": said, "name": name}


# --- pieces ------------------------------------------------------------------------------------------------------


def _message(
    role: object, said: object, *, name: object = None, at: object = None, metadata: object = None
) -> dict[str, Any] | None:
    """A message with what there is of it; None where nothing was said."""
    if said is None or (isinstance(said, str) and not said.strip()):
        return None
    more = {"name": name, "timestamp": at, "metadata": metadata}
    return {"role": role, "content": said, **{key: value for key, value in more.items() if value not in (None, "", {})}}


def _numbered(document: object, what: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, one in enumerate(document if isinstance(document, list) else [document], 1):
        yield number, _mapping(one, f"{what} {number}")


def _ids(entry: Mapping[str, Any]) -> dict[str, str]:
    return {axis: str(entry[axis]) for axis in _AXES if entry.get(axis) not in (None, "")}


def _mapping(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{place} is no JSON object: {_short(value)}")
    return value


def _list(one: Mapping[str, Any], key: str, place: str) -> list[Any]:
    value = one.get(key)
    if not isinstance(value, list):
        raise InputError(f"{place} has no list {key!r}")
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


READERS: dict[str, Callable[[object], Iterator[Said]]] = {
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "openai": read_openai,
    "langchain": read_langchain,
    "llamaindex": read_llamaindex,
    "locomo": read_locomo,
}
"""The formats that are one JSON document."""
