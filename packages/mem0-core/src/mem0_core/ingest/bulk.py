"""Bulk import: keep many messages verbatim, or queue them, one chunk at a time.

`MessageSource.next_chunk` reads a chunk, and `import_messages` ingests it with one embedding call and one commit, or
enqueues its messages. Each commit also stores the progress of the import, so that the same call resumes after a crash.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import field
from itertools import islice
from typing import Any

from mem0_core._system.boundary import call_hook
from mem0_core._system.records import dataclass
from mem0_core.domain.policy import POLICY_REFUSAL, apply_policy
from mem0_core.domain.records import Event, LaggingProjection, Message, SkippedItem, Trust
from mem0_core.domain.suggestions import describe_value
from mem0_core.domain.timestamps import utc_now
from mem0_core.domain.trust import name_origin
from mem0_core.errors import InputError, LimitError
from mem0_core.flow import Flow, do
from mem0_core.ingest.relations import StatementLog, extract_from_message
from mem0_core.ingest.remember import ingest
from mem0_core.ingest.request import AddRequest, stored_messages, to_job_options
from mem0_core.interfaces import Ports, QueuedTurn
from mem0_core.language.messages import SPEAKER_ROLES, parse_message


@dataclass(frozen=True, slots=True)
class _ImportEntry:
    """A given message as parsed, and its skipped parts.

    Attributes:
        position: index of the message in the import.
        message: None if nothing of it is kept.
    """

    position: int
    message: Message | None
    skipped: tuple[SkippedItem, ...] = ()


@dataclass(slots=True)
class ImportProgress:
    """Counts and skipped items of an import.

    Attributes:
        processed: messages processed, including those of earlier calls with the same key.
        added: new memories.
        known: messages that the scope already held.
        jobs: queued turns.
    """

    processed: int
    added: int = 0
    known: int = 0
    jobs: int = 0
    skipped: list[SkippedItem] = field(default_factory=list)
    pending: tuple[LaggingProjection, ...] = ()


class MessageSource:
    """Messages of an import, parsed and checked one chunk at a time.

    Args:
        messages: a sized collection is parsed completely before anything is stored; an iterator is read as needed.
        request: scope and policy of the import.
        by_rules: True if rules extract relations from the messages. A chunk then ends before a message that contradicts
            an earlier message of the chunk, because one plan cannot both start and end a relation.
        message_chars: maximum number of characters of a message; None for no maximum.
        origin: source and trust class of every message; None for none, and for that of its role.

    Raises:
        InputError: `messages` is not an iterable of messages.
    """

    def __init__(
        self,
        messages: Iterable[Any],
        request: AddRequest,
        *,
        by_rules: bool,
        message_chars: int | None = None,
        origin: tuple[str | None, Trust | None] = (None, None),
    ) -> None:
        if isinstance(messages, (str, bytes, bytearray, Mapping)) or not isinstance(messages, Iterable):
            raise InputError(
                f"messages must be a list of texts or messages, not {describe_value(messages)}; pass, for example,"
                " ['I like tea']"
            )
        self.total = call_hook("messages", len, messages) if isinstance(messages, Sized) else None
        self._messages = messages
        self._request = request
        self._by_rules = by_rules
        self._max_message_chars = message_chars
        self._origin = origin
        self._entries: Iterator[_ImportEntry] = iter(())
        self._next_entries: list[_ImportEntry] = []  # read already, for the next chunk

    def start_at(self, after: int) -> None:
        """Skip the first `after` messages.

        Raises:
            InputError: there are fewer messages than that, or a message cannot be parsed; the text names its position.
            LimitError: a message is too long.
        """
        messages = call_hook("messages", iter, self._messages)
        if (passed := sum(1 for _ in islice(_read_iterator(messages), after))) < after:
            raise InputError(
                f"key: its import has processed {after} messages, but only {passed} are given;"
                " give the same messages, or another key"
            )
        entries = (self._parse(index, message) for index, message in enumerate(_read_iterator(messages), after))
        self._entries = entries if self.total is None else iter(list(entries))

    def next_chunk(self, limit: int) -> list[_ImportEntry]:
        """Return at most `limit` further entries; an empty list at the end."""
        entries = [
            *self._next_entries,
            *map(self._apply_policy, islice(self._entries, limit - len(self._next_entries))),
        ]
        taken = self._count_compatible(entries) if self._by_rules else len(entries)
        self._next_entries = entries[taken:]
        return entries[:taken]

    def _parse(self, index: int, given: object) -> _ImportEntry:
        label = f"messages[{index}]"
        parsed = parse_message(given, label)
        message = next(iter(name_origin(parsed.messages, self._origin)), None)
        skipped = list(parsed.skipped)
        if message is None:
            skipped = skipped or [SkippedItem(reason=f"{label} is empty", item=given)]
        elif message.role not in SPEAKER_ROLES:
            skipped.append(SkippedItem(reason=f"{label} has the role {message.role!r}", item=message.content[:100]))
        elif self._max_message_chars is not None and len(message.content) > self._max_message_chars:
            size = len(message.content)
            raise LimitError(f"{label} has {size} characters; limits.message_chars allows {self._max_message_chars}")
        return _ImportEntry(index, message, tuple(skipped))

    def _apply_policy(self, entry: _ImportEntry) -> _ImportEntry:
        """Return an entry with its message as rewritten by the policy, or without it if the policy refuses it."""
        message = entry.message
        if message is None or not message.content.strip() or self._request.policy is None:
            return entry
        content = apply_policy(self._request.policy, message.content, self._request.scope)
        if content is None:
            refused = SkippedItem(reason=f"messages[{entry.position}]: {POLICY_REFUSAL}", item={"role": message.role})
            return _ImportEntry(entry.position, None, (*entry.skipped, refused))
        return dataclasses.replace(entry, message=dataclasses.replace(message, content=content))

    def _count_compatible(self, entries: list[_ImportEntry]) -> int:
        """Return how many leading entries do not contradict one another."""
        statements = StatementLog()
        for count, entry in enumerate(entries):
            if entry.message is None:
                continue
            at = entry.message.timestamp or self._request.at
            found = extract_from_message(entry.message, self._request.scope, at)
            if statements.conflicts_with(found):
                return count
            statements.add(found)
        return len(entries)


def _read_iterator(messages: Iterator[Any]) -> Iterator[Any]:
    """Yield the messages of the caller's iterator.

    Raises:
        CallbackError: it failed.
    """
    end = object()
    while (message := call_hook("messages", next, messages, end)) is not end:
        yield message


def import_messages(
    ports: Ports,
    request: AddRequest,
    source: MessageSource,
    *,
    after: int,
    chunk_size: int,
    key: str | None,
    enqueue: bool,
    wake_workers: Callable[[], None],
    on_progress: Callable[[int, int | None], None] | None,
) -> Flow[ImportProgress]:
    """Ingest or enqueue all messages of `source`, in one transaction per chunk.

    Args:
        request: settings that apply to every message.
        after: messages that an earlier call has processed.
        key: name under which the progress is stored; None to store none.
        enqueue: True to queue each message as a turn of its own instead of ingesting it.
        wake_workers: starts the workers.
        on_progress: called after each chunk with the processed and the total number of messages (None if unknown).

    Raises:
        Mem0Error: any error of `ingest`. Chunks that were committed before are kept.
    """
    progress = ImportProgress(after)
    while entries := (yield from do(source.next_chunk, chunk_size)):
        progress.processed += len(entries)
        progress.skipped += [skipped for entry in entries for skipped in entry.skipped]
        checkpoint = None if key is None else (key, progress.processed)
        messages = stored_messages([entry.message for entry in entries if entry.message is not None])
        chunk = dataclasses.replace(request, messages=messages, at=utc_now())
        has_jobs = yield from (_enqueue_chunk if enqueue else _ingest_chunk)(ports, chunk, checkpoint, progress)
        if has_jobs:
            yield from do(wake_workers)
        if on_progress is not None:
            on_progress(progress.processed, source.total)
    return progress


def _ingest_chunk(
    ports: Ports, request: AddRequest, checkpoint: tuple[str, int] | None, progress: ImportProgress
) -> Flow[bool]:
    """Ingest a chunk; return True if a summary was queued."""
    if not request.messages and checkpoint is None:
        return False
    result = yield from ingest(ports, request, import_checkpoint=checkpoint, distinct_sessions=True)
    added = sum(change.event is Event.ADD for change in result.changes)
    progress.added += added
    progress.known += len(result.changes) - added
    progress.skipped += result.skipped
    progress.pending = result.pending
    return result.summary_queued


def _enqueue_chunk(
    ports: Ports, request: AddRequest, checkpoint: tuple[str, int] | None, progress: ImportProgress
) -> Flow[bool]:
    """Enqueue each message of a chunk as a turn of its own; return True if there was any."""
    turns = [
        QueuedTurn(
            timestamp=message.timestamp or request.at,
            messages=(message,),
            options=to_job_options(dataclasses.replace(request, messages=stored_messages([message]))),
        )
        for message in request.messages
        if message.role in SPEAKER_ROLES
    ]
    progress.jobs += len(
        (yield from do(ports.store.jobs.enqueue_turns, request.scope, turns, import_checkpoint=checkpoint))
    )
    return bool(turns)
