"""Bringing chats into a memory: all is read and checked first, then added, a scope at a time, and resumable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mem0_core.domain.records import Scope
from mem0_core.errors import InputError
from mem0_core.interchange.chats import ImportedMessage
from mem0_core.interchange.exporters import EXPORT_FORMAT as EXPORT
from mem0_core.interchange.exporters import read_export
from mem0_core.interchange.files import read_chats
from mem0_core.interchange.mem0_v1 import MEM0_V1_FORMAT, read_installation
from mem0_core.language.messages import parse_message

if TYPE_CHECKING:
    from mem0_core.memory import Memory

__all__ = ["ScopeBatch", "group_by_scope", "import_chats", "import_export", "import_mem0_v1"]


@dataclass(slots=True)
class ScopeBatch:
    """The messages of one scope, in their order.

    Attributes:
        key: under which `Memory.add_many` keeps how far it came: the same messages have the same key.
    """

    scope: Scope
    key: str = ""
    messages: list[Mapping[str, Any]] = field(default_factory=list)


def import_chats(
    memory: Memory,
    path: str | Path,
    *,
    format: str | None = None,
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
    run_per_conversation: bool = True,
    metadata: Mapping[str, Any] | None = None,
    infer: bool = False,
    key: str | None = None,
    chunk: int = 256,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Import a file of chats (`files.CHAT_FORMATS`) through `Memory.add_many`.

    Nothing is written before the whole file was read and checked. A second call with the same file goes on where the
    first was cut short; one with a newer export of the same account brings what is new.

    Args:
        user_id, agent_id, run_id: whose memories they become; ids that are not given here are those of the file.
        runs: whether each conversation is a run of its own, by its name in the file. What was said together then
            counts in searches; a relation of one conversation does not end one of another.
        key: a name for the import, by which it is resumed; by default told from the messages.
        on_progress: called with how many messages are done, and how many there are.

    Returns:
        ``format``, ``messages``, ``conversations``, and the sums of what `add_many` returns: ``added``, ``known``,
        ``resumed``, ``jobs``, ``skipped``.

    Raises:
        InputError: naming the file, the place in it and the reason; nothing is written.
        ScopeError: neither the call nor the file names an id.
    """
    file = Path(path)
    detected_format, said = read_chats(file, format)
    given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    work = group_by_scope(said, given, run_per_conversation=run_per_conversation, key=key, name=str(file))
    total = sum(len(batch.messages) for batch in work)
    result: dict[str, Any] = {"format": detected_format, "messages": total, "conversations": len(work)}
    result |= {"added": 0, "known": 0, "resumed": 0, "jobs": 0, "skipped": []}
    before = 0
    for batch in work:

        def report_progress(done: int, _: int | None, before: int = before) -> None:
            if on_progress is not None:
                on_progress(before + done, total)

        report = memory.add_many(
            batch.messages,
            **batch.scope.ids,
            metadata=metadata,
            infer=infer,
            key=batch.key,
            chunk=chunk,
            on_progress=report_progress,
        )
        for count in ("added", "known", "resumed", "jobs"):
            result[count] += report[count]
        result["skipped"] += report["skipped"]
        if "pending" in report:
            result["pending"] = report["pending"]
        before += len(batch.messages)
        report_progress(0, None, before)
    return result


def import_mem0_v1(
    memory: Memory,
    path: str | Path,
    *,
    history: str | Path | None = None,
    collection: str | None = None,
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
    on_progress: Callable[[int, int | None], object] | None = None,
) -> dict[str, Any]:
    """Take the memories of a mem0 1.x installation over, with their ids, times, metadata and history.

    Args:
        path: a folder that holds its Qdrant or FAISS folder; see `mem0_v1.read_installation`.
        user_id, agent_id, run_id: whose memories those are that name nobody.

    Returns:
        ``format``, ``messages`` (memories found), ``conversations`` (collections), what `Memory.adopt` returns, and as
        ``skipped`` entries of the vector store that are no memories.

    Raises:
        InputError, ScopeError: naming the file, the memory and the reason; nothing is written.
    """
    given = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    ids = {axis: value for axis, value in given.items() if value is not None}
    file = None if history is None else Path(history)
    found = read_installation(Path(path), history=file, collection=collection, ids=ids)
    adopted = memory.adopt(found.memories, history=found.history, on_progress=on_progress)
    skipped = [{"reason": "is no memory", "item": found.skipped}] * min(1, found.skipped)
    counts = {"format": MEM0_V1_FORMAT, "messages": len(found.memories), "conversations": len(found.collections)}
    return {**counts, "resumed": 0, "jobs": 0, **adopted, "skipped": skipped}


def import_export(
    memory: Memory, path: str | Path, *, on_progress: Callable[[int, int | None], object] | None = None
) -> dict[str, Any]:
    """Take over what `Memory.export` wrote: memories with their ids, times, metadata, history and pins, and messages.

    They are embedded anew, and rules read their relations again, where there is no model.

    Returns:
        as `import_mem0_v1` does.
    """
    found = read_export(Path(path))
    adopted = memory.adopt(found.memories, history=found.history, messages=found.messages, on_progress=on_progress)
    for one in found.memories:
        if one.get("pinned") and memory.get(one["id"]) is not None:
            memory.pin(one["id"])
    return {
        "format": EXPORT,
        "messages": len(found.memories),
        "conversations": 1,
        "resumed": 0,
        "jobs": 0,
        **adopted,
        "skipped": [],
    }


def group_by_scope(
    said: Iterable[ImportedMessage],
    given: Mapping[str, str | None],
    *,
    run_per_conversation: bool,
    key: str | None,
    name: str,
) -> list[ScopeBatch]:
    """The messages by the scope they go to, each of them checked.

    Raises:
        InputError: a message cannot be stored, and where it stands; or there is none.
        ScopeError: a message without an id.
    """
    found: dict[Scope, ScopeBatch] = {}
    for one in said:
        parse_message(one.message, f"{name}: {one.location}")
        scope = _resolve_scope(one, given, run_per_conversation)
        found.setdefault(scope, ScopeBatch(scope)).messages.append(one.message)
    if not found:
        raise InputError(f"{name} holds no message")
    for batch in found.values():
        batch.key = key if key is not None else f"import {_digest_messages(batch.messages)}"
    return list(found.values())


def _resolve_scope(one: ImportedMessage, given: Mapping[str, str | None], run_per_conversation: bool) -> Scope:
    """What the caller says goes before what the file says; a conversation is a run where neither names one."""
    ids = {**one.ids, **{axis: value for axis, value in given.items() if value is not None}}
    named = Scope(**ids)
    if run_per_conversation and "run_id" not in ids and one.conversation is not None:
        return Scope(**ids, run_id=one.conversation)
    return named


def _digest_messages(messages: list[Mapping[str, Any]]) -> str:
    whole = hashlib.blake2b(digest_size=16)
    for message in messages:
        whole.update(json.dumps(message, sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
    return whole.hexdigest()
