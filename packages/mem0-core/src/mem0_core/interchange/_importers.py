"""Import files into a memory: read and check everything first, then add it, one scope at a time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

from mem0_core._system.boundary import convert_errors, guard_hook
from mem0_core._system.files import validate_path
from mem0_core._system.records import dataclass
from mem0_core.domain.records import AddManyResult, MemoryDict, Scope
from mem0_core.domain.trust import MAX_SOURCE_CHARS, TrustClass, parse_origin
from mem0_core.errors import InputError
from mem0_core.interchange._chats import ImportedMessage
from mem0_core.interchange._exporters import EXPORT_FORMAT, read_export
from mem0_core.interchange._files import read_chats, read_json
from mem0_core.interchange._mem0_v1 import MEM0_V1_FORMAT, read_installation
from mem0_core.interchange._portable import PORTABLE_FORMATS, detect_portable, read_document
from mem0_core.interfaces.maintenance import ProgressCallback
from mem0_core.language.messages import parse_message


class ImportTarget(Protocol):
    """Methods of `Memory` that importers call."""

    @property
    def add_many(self) -> Callable[..., AddManyResult]: ...

    @property
    def adopt(self) -> Callable[..., dict[str, Any]]: ...

    def get(self, memory_id: str) -> MemoryDict | None: ...

    def pin(self, memory_id: str) -> None: ...


@dataclass(slots=True)
class _ScopeBatch:
    """Messages of one scope, in their order.

    Attributes:
        key: Key of `Memory.add_many` for the progress of this batch; equal messages give an equal key.
    """

    scope: Scope
    key: str = ""
    messages: list[Mapping[str, Any]] = field(default_factory=list)


@convert_errors
def import_chats(
    memory: ImportTarget,
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
    source: str | None = None,
    trust: TrustClass = "import",
    on_progress: Callable[[int, int], object] | None = None,
) -> dict[str, Any]:
    """Import a file of chats, in one of `CHAT_FORMATS`, through `Memory.add_many`.

    The whole file is checked before anything is written. A second call with the same file resumes an interrupted
    import; a newer export of the same account adds only the new messages.

    Args:
        user_id, agent_id, run_id: Owner of the memories; they override the ids in the file.
        run_per_conversation: Import each conversation as its own run. A search then relates its messages, and its
            relations do not end those of another conversation.
        key: Name of the import, for resuming it. Default: a digest of the messages.
        source: Name for `Memory.retract`. Default: ``import:FORMAT:NAME`` of the file, such as
            ``import:chatgpt:conversations.json``.
        trust: Class of the origin of the messages.
        on_progress: Called with the number of imported messages and the total.

    Returns:
        ``format``, ``messages``, ``conversations``, and the sums of the results of `add_many`: ``added``, ``known``,
        ``resumed``, ``jobs``, ``skipped``.

    Raises:
        InputError: The file cannot be imported; names the file, the location and the reason. Nothing is written.
        ScopeError: Neither the call nor the file has an id.
    """
    file = validate_path(path, "path")
    on_progress = guard_hook("on_progress", on_progress)
    detected_format, messages = read_chats(file, format)
    source = f"import:{detected_format}:{file.name}"[:MAX_SOURCE_CHARS] if source is None else source
    parse_origin(source, trust)
    ids = _given_ids(user_id, agent_id, run_id)
    batches = _group_by_scope(messages, ids, run_per_conversation=run_per_conversation, key=key, name=str(file))
    result = {"format": detected_format, "messages": 0, "conversations": len(batches)}
    options: dict[str, Any] = {"metadata": metadata, "infer": infer, "chunk": chunk, "source": source, "trust": trust}
    return result | _add_batches(memory, batches, on_progress, **options)


def _add_batches(
    memory: ImportTarget,
    batches: Sequence[_ScopeBatch],
    on_progress: Callable[[int, int], object] | None,
    **options: Any,
) -> dict[str, Any]:
    """Add each batch with `Memory.add_many`, and return the sums of the results."""
    total = sum(len(batch.messages) for batch in batches)
    sums: dict[str, Any] = {"messages": total, "added": 0, "known": 0, "resumed": 0, "jobs": 0, "skipped": []}
    before = 0

    def report_progress(done: int, _: int | None = None) -> None:
        if on_progress is not None:
            on_progress(before + done, total)

    for batch in batches:
        result = memory.add_many(
            batch.messages,
            user_id=batch.scope.user_id,
            agent_id=batch.scope.agent_id,
            run_id=batch.scope.run_id,
            key=batch.key,
            on_progress=report_progress,
            **options,
        )
        for count in ("added", "known", "resumed", "jobs"):
            sums[count] += result[count]
        sums["skipped"] += result["skipped"]
        if "pending" in result:
            sums["pending"] = result["pending"]
        before += len(batch.messages)
        report_progress(0)
    return sums


@convert_errors
def import_mem0_v1(
    memory: ImportTarget,
    path: str | Path,
    *,
    history: str | Path | None = None,
    collection: str | None = None,
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
    on_progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Import the memories of an installation of mem0 1.x or 2.x with their ids, times, metadata and history.

    The memories get the trust class ``import``.

    Args:
        path: Folder that contains the Qdrant or FAISS folder of the installation.
        history: History file, if it is not ``history.db`` in the folder.
        collection: Import only this collection.
        user_id, agent_id, run_id: Owner of the memories that have no id.

    Returns:
        ``format``, ``messages`` (number of memories), ``conversations`` (number of collections), the result of
        `Memory.adopt`, and as ``skipped`` the vector store entries that are not memories.

    Raises:
        InputError, ScopeError: A memory cannot be imported; names the file, the memory and the reason. Nothing is
            written.
    """
    file = None if history is None else validate_path(history, "history")
    ids = _given_ids(user_id, agent_id, run_id)
    installation = read_installation(validate_path(path, "path"), history=file, collection=collection, ids=ids)
    memories = [{**one, "trust": "import"} for one in installation.memories]
    adopted = memory.adopt(memories, history=installation.history, on_progress=on_progress)
    skipped = [{"reason": "is no memory", "item": installation.skipped}] * min(1, installation.skipped)
    result = _adoption_result(MEM0_V1_FORMAT, len(installation.memories), len(installation.collections), adopted)
    return {**result, "skipped": skipped}


@convert_errors
def import_export(
    memory: ImportTarget, path: str | Path, *, on_progress: ProgressCallback | None = None
) -> dict[str, Any]:
    """Import a file of `Memory.export`: memories with their ids, times, metadata and history, and messages.

    Pins and feedback are restored. Memories are embedded again, and rules extract their relations if there is no model.
    Sources and trust classes stay as they were.

    Returns:
        The keys of `import_mem0_v1`.
    """
    found = read_export(validate_path(path, "path"))
    adopted = memory.adopt(found.memories, history=found.history, messages=found.messages, on_progress=on_progress)
    _restore_pins(memory, found.memories)
    return _adoption_result(EXPORT_FORMAT, len(found.memories), 1, adopted)


@convert_errors
def import_portable(
    memory: ImportTarget,
    path: str | Path,
    *,
    format: str | None = None,
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
    on_progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Import the memories of a document of PAM 1.x or MIF 2.x, or the facts of a Zep graph, with their ids and times.

    They are embedded again, and rules extract their relations if there is no model. They get the trust class
    ``import``. Faulty items are skipped.

    Args:
        format: One of `PORTABLE_FORMATS`; detected by default.
        user_id, agent_id, run_id: Owner of the memories; they override the ids in the document.

    Returns:
        The keys of `import_mem0_v1`; ``skipped`` has the reason and the id of each item that was left out.

    Raises:
        InputError: The document has another form or version, or does not match its checksum. Nothing is written.
        ScopeError: A memory has no id of an owner, and the call names none. Nothing is written.
    """
    file = validate_path(path, "path")
    document = read_json(file)
    form = format or detect_portable(document)
    if form not in PORTABLE_FORMATS:
        raise InputError(f"{file} has no form of {', '.join(PORTABLE_FORMATS)}")
    found = read_document(document, form, _given_ids(user_id, agent_id, run_id))
    adopted = memory.adopt(found.memories, on_progress=on_progress)
    _restore_pins(memory, found.memories)
    return {**_adoption_result(form, len(found.memories), 1, adopted), "skipped": found.skipped}


def _restore_pins(memory: ImportTarget, memories: Iterable[Mapping[str, Any]]) -> None:
    for one in memories:
        if one.get("pinned") and memory.get(one["id"]) is not None:
            memory.pin(one["id"])


def _adoption_result(format: str, memories: int, collections: int, adopted: Mapping[str, Any]) -> dict[str, Any]:
    counts = {"format": format, "messages": memories, "conversations": collections, "resumed": 0, "jobs": 0}
    return {**counts, **adopted, "skipped": []}


def _given_ids(user_id: str | None, agent_id: str | None, run_id: str | None) -> dict[str, str]:
    ids = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
    return {axis: value for axis, value in ids.items() if value is not None}


def _group_by_scope(
    messages: Iterable[ImportedMessage],
    ids: Mapping[str, str],
    *,
    run_per_conversation: bool,
    key: str | None,
    name: str,
) -> list[_ScopeBatch]:
    """Check the messages, and group them by their target scope.

    Raises:
        InputError: A message cannot be stored (the error has its location), or there is none.
        ScopeError: A message has no id.
    """
    batches: dict[Scope, _ScopeBatch] = {}
    for one in messages:
        parse_message(one.message, f"{name}: {one.location}")
        scope = _resolve_scope(one, ids, run_per_conversation)
        batches.setdefault(scope, _ScopeBatch(scope)).messages.append(one.message)
    if not batches:
        raise InputError(f"{name} contains no messages")
    for batch in batches.values():
        batch.key = key if key is not None else f"import {_digest_messages(batch.messages)}"
    return list(batches.values())


def _resolve_scope(one: ImportedMessage, given: Mapping[str, str], run_per_conversation: bool) -> Scope:
    """Return the target scope: the caller's ids override the file's; a conversation is a run if neither has one."""
    ids = {**one.ids, **given}
    scope = Scope(**ids)
    if run_per_conversation and "run_id" not in ids and one.conversation is not None:
        return Scope(**ids, run_id=one.conversation)
    return scope


def _digest_messages(messages: list[Mapping[str, Any]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for message in messages:
        digest.update(json.dumps(message, sort_keys=True, default=str).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
