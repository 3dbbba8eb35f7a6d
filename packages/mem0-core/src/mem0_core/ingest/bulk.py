"""Remembering in bulk: an import of many messages, each of them kept as it was said, or put off.

`next_chunk` a chunk -> `ingest` it with one embedding and one commit, or put its messages off -> the next. How far the
import has come is committed with each chunk, so that after a crash the same call goes on from there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from mem0_core.domain.policy import POLICY_REFUSAL, apply_policy
from mem0_core.domain.records import Event, LaggingProjection, Message, SkippedItem
from mem0_core.errors import InputError, LimitError
from mem0_core.flow import Flow, do
from mem0_core.ingest.relations import StatementLog, extract_from_message
from mem0_core.ingest.remember import ingest
from mem0_core.ingest.request import AddRequest, to_job_options
from mem0_core.interfaces import Ports, QueuedTurn
from mem0_core.language.messages import SPEAKER_ROLES, parse_message

__all__ = ["ImportProgress", "MessageSource", "import_messages"]


@dataclass(frozen=True, slots=True)
class ImportEntry:
    """One of the messages given: what is left of it, and what of it is skipped."""

    position: int
    message: Message | None
    skipped: tuple[SkippedItem, ...] = ()


@dataclass(slots=True)
class ImportProgress:
    """What an import has done so far.

    Attributes:
        done: how many of the messages are done, those of earlier calls included.
    """

    processed: int
    added: int = 0
    known: int = 0
    jobs: int = 0
    skipped: list[SkippedItem] = field(default_factory=list)
    pending: tuple[LaggingProjection, ...] = ()


class MessageSource:
    """The messages of an import, read and judged a chunk at a time.

    Args:
        messages: what has a length is read as a whole before anything of it is taken, anything else as it comes.
        request: whose messages they are, and the policy they are under.
        by_rules: whether rules read relations in them: then a chunk ends where a message takes back what another
            message of it says, since a plan cannot both begin and end a relation.
        message_chars: characters that a message may have; None for any.
    """

    def __init__(
        self, messages: Iterable[Any], request: AddRequest, *, by_rules: bool, message_chars: int | None = None
    ) -> None:
        if isinstance(messages, (str, bytes, bytearray, Mapping)) or not isinstance(messages, Iterable):
            raise InputError(f"messages must be a list of texts or messages, not {type(messages).__name__}")
        self.total = len(messages) if isinstance(messages, Sized) else None
        self._messages = messages
        self._request = request
        self._by_rules = by_rules
        self._max_message_chars = message_chars
        self._entries: Iterator[ImportEntry] = iter(())
        self._next_entries: list[ImportEntry] = []  # read already, for the next chunk

    def start_at(self, after: int) -> None:
        """Begin after so many messages.

        Raises:
            InputError: there are not as many, or one cannot be read; names its position.
        """
        messages = iter(self._messages)
        if (passed := sum(1 for _ in islice(messages, after))) < after:
            raise InputError(f"key: the import it stands for has done {after} messages, and here are {passed}")
        entries = (self._parse(place, message) for place, message in enumerate(messages, after))
        self._entries = entries if self.total is None else iter(list(entries))

    def next_chunk(self, limit: int) -> list[ImportEntry]:
        """The next messages, at most so many; none where there are no more."""
        entries = [
            *self._next_entries,
            *map(self._apply_policy, islice(self._entries, limit - len(self._next_entries))),
        ]
        taken = self._count_compatible(entries) if self._by_rules else len(entries)
        self._next_entries = entries[taken:]
        return entries[:taken]

    def _parse(self, place: int, given: object) -> ImportEntry:
        what = f"messages[{place}]"
        parsed = parse_message(given, what)
        message = next(iter(parsed.messages), None)
        skipped = list(parsed.skipped)
        if message is None:
            skipped = skipped or [SkippedItem(reason=f"{what} says nothing", item=given)]
        elif message.role not in SPEAKER_ROLES:
            skipped.append(SkippedItem(reason=f"{what} has the role {message.role!r}", item=message.content[:100]))
        elif self._max_message_chars is not None and len(message.content) > self._max_message_chars:
            size = len(message.content)
            raise LimitError(f"limits.message_chars: {what} has {size}, {self._max_message_chars} allowed")
        return ImportEntry(place, message, tuple(skipped))

    def _apply_policy(self, entry: ImportEntry) -> ImportEntry:
        """What the policy leaves of a message."""
        message = entry.message
        if message is None or not message.content.strip() or self._request.policy is None:
            return entry
        left = apply_policy(self._request.policy, message.content, self._request.scope)
        if left is None:
            refused = SkippedItem(reason=f"messages[{entry.position}]: {POLICY_REFUSAL}", item={"role": message.role})
            return ImportEntry(entry.position, None, (*entry.skipped, refused))
        return dataclasses.replace(entry, message=dataclasses.replace(message, content=left))

    def _count_compatible(self, entries: list[ImportEntry]) -> int:
        """How many of the messages, from the first, take back nothing of one another."""
        said = StatementLog()
        for count, entry in enumerate(entries):
            if entry.message is None:
                continue
            found = extract_from_message(entry.message, self._request.scope)
            if said.conflicts_with(found):
                return count
            said.add(found)
        return len(entries)


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
    """Remember, or put off, all that `source` gives, in one transaction per chunk.

    Args:
        request: what holds for each of the messages.
        after: how many messages an earlier call has done.
        key: under which the number of messages done is kept.
        wake: starts the workers.

    Raises:
        whatever `ingest` does; the chunks before are kept.
    """
    so_far = ImportProgress(after)
    while entries := (yield from do(source.next_chunk, chunk_size)):
        so_far.processed += len(entries)
        so_far.skipped += [skipped for entry in entries for skipped in entry.skipped]
        mark = None if key is None else (key, so_far.processed)
        messages = tuple(entry.message for entry in entries if entry.message is not None)
        now = dataclasses.replace(request, messages=messages, at=datetime.now(UTC).isoformat())
        working = yield from (_enqueue_chunk if enqueue else _ingest_chunk)(ports, now, mark, so_far)
        if working:
            yield from do(wake_workers)
        if on_progress is not None:
            on_progress(so_far.processed, source.total)
    return so_far


def _ingest_chunk(
    ports: Ports, request: AddRequest, mark: tuple[str, int] | None, so_far: ImportProgress
) -> Flow[bool]:
    """Remember a chunk; returns whether there is a summary to be made."""
    if not request.messages and mark is None:
        return False
    done = yield from ingest(ports, request, mark=mark, apart=True)
    added = sum(change.event is Event.ADD for change in done.changes)
    so_far.added += added
    so_far.known += len(done.changes) - added
    so_far.skipped += done.skipped
    so_far.pending = done.pending
    return done.summary_queued


def _enqueue_chunk(
    ports: Ports, request: AddRequest, mark: tuple[str, int] | None, so_far: ImportProgress
) -> Flow[bool]:
    """Put the messages of a chunk off, each as a turn of its own; returns whether there are any."""
    turns = [
        QueuedTurn(
            timestamp=message.timestamp or request.at,
            messages=(message,),
            options=to_job_options(dataclasses.replace(request, messages=(message,))),
        )
        for message in request.messages
        if message.role in SPEAKER_ROLES
    ]
    so_far.jobs += len((yield from do(ports.store.jobs.enqueue_turns, request.scope, turns, import_checkpoint=mark)))
    return bool(turns)
