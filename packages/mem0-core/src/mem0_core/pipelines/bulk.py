"""Remembering in bulk: an import of many messages, each of them kept as it was said, or put off.

`take` a chunk -> `remember` it with one embedding and one commit, or put its messages off -> the next. How far the
import has come is committed with each chunk, so that after a crash the same call goes on from there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from mem0_core.errors import InputError, LimitError
from mem0_core.flow import Flow, do
from mem0_core.pipelines.relate import Said, read_by_rules
from mem0_core.pipelines.remember import remember
from mem0_core.pipelines.request import Request, options_of
from mem0_core.policy import REFUSED, judged
from mem0_core.ports import Ports, Turn
from mem0_core.records import Event, Message, Pending, Skipped
from mem0_core.text import SPEAKERS, parse_one

__all__ = ["Imported", "Source", "import_messages"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One of the messages given: what is left of it, and what of it is skipped."""

    place: int
    message: Message | None
    skipped: tuple[Skipped, ...] = ()


@dataclass(slots=True)
class Imported:
    """What an import has done so far.

    Attributes:
        done: how many of the messages are done, those of earlier calls included.
    """

    done: int
    added: int = 0
    known: int = 0
    jobs: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    pending: tuple[Pending, ...] = ()


class Source:
    """The messages of an import, read and judged a chunk at a time.

    Args:
        messages: what has a length is read as a whole before anything of it is taken, anything else as it comes.
        request: whose messages they are, and the policy they are under.
        by_rules: whether rules read relations in them: then a chunk ends where a message takes back what another
            message of it says, since a plan cannot both begin and end a relation.
        message_chars: characters that a message may have; None for any.
    """

    def __init__(
        self, messages: Iterable[Any], request: Request, *, by_rules: bool, message_chars: int | None = None
    ) -> None:
        if isinstance(messages, (str, bytes, bytearray, Mapping)) or not isinstance(messages, Iterable):
            raise InputError(f"messages must be a list of texts or messages, not {type(messages).__name__}")
        self.total = len(messages) if isinstance(messages, Sized) else None
        self._messages = messages
        self._request = request
        self._by_rules = by_rules
        self._message_chars = message_chars
        self._entries: Iterator[Entry] = iter(())
        self._waiting: list[Entry] = []  # read already, for the next chunk

    def open(self, after: int) -> None:
        """Begin after so many messages.

        Raises:
            InputError: there are not as many, or one cannot be read; names its position.
        """
        messages = iter(self._messages)
        if (passed := sum(1 for _ in islice(messages, after))) < after:
            raise InputError(f"key: the import it stands for has done {after} messages, and here are {passed}")
        entries = (self._read(place, message) for place, message in enumerate(messages, after))
        self._entries = entries if self.total is None else iter(list(entries))

    def take(self, most: int) -> list[Entry]:
        """The next messages, at most so many; none where there are no more."""
        entries = [*self._waiting, *map(self._judge, islice(self._entries, most - len(self._waiting)))]
        taken = self._in_one_breath(entries) if self._by_rules else len(entries)
        self._waiting = entries[taken:]
        return entries[:taken]

    def _read(self, place: int, given: object) -> Entry:
        what = f"messages[{place}]"
        parsed = parse_one(given, what)
        message = next(iter(parsed.messages), None)
        skipped = list(parsed.skipped)
        if message is None:
            skipped = skipped or [Skipped(reason=f"{what} says nothing", item=given)]
        elif message.role not in SPEAKERS:
            skipped.append(Skipped(reason=f"{what} has the role {message.role!r}", item=message.content[:100]))
        elif self._message_chars is not None and len(message.content) > self._message_chars:
            size = len(message.content)
            raise LimitError(f"limits.message_chars: {what} has {size}, {self._message_chars} allowed")
        return Entry(place, message, tuple(skipped))

    def _judge(self, entry: Entry) -> Entry:
        """What the policy leaves of a message."""
        message = entry.message
        if message is None or not message.content.strip() or self._request.policy is None:
            return entry
        left = judged(self._request.policy, message.content, self._request.scope)
        if left is None:
            refused = Skipped(reason=f"messages[{entry.place}]: {REFUSED}", item={"role": message.role})
            return Entry(entry.place, None, (*entry.skipped, refused))
        return dataclasses.replace(entry, message=dataclasses.replace(message, content=left))

    def _in_one_breath(self, entries: list[Entry]) -> int:
        """How many of the messages, from the first, take back nothing of one another."""
        said = Said()
        for count, entry in enumerate(entries):
            if entry.message is None:
                continue
            found = read_by_rules(entry.message, self._request.scope)
            if said.is_at_odds_with(found):
                return count
            said.add(found)
        return len(entries)


def import_messages(
    ports: Ports,
    request: Request,
    source: Source,
    *,
    after: int,
    chunk: int,
    key: str | None,
    put_off: bool,
    wake: Callable[[], None],
    on_progress: Callable[[int, int | None], None] | None,
) -> Flow[Imported]:
    """Remember, or put off, all that `source` gives, in one transaction per chunk.

    Args:
        request: what holds for each of the messages.
        after: how many messages an earlier call has done.
        key: under which the number of messages done is kept.
        wake: starts the workers.

    Raises:
        whatever `remember` does; the chunks before are kept.
    """
    so_far = Imported(after)
    while entries := (yield from do(source.take, chunk)):
        so_far.done += len(entries)
        so_far.skipped += [skipped for entry in entries for skipped in entry.skipped]
        mark = None if key is None else (key, so_far.done)
        messages = tuple(entry.message for entry in entries if entry.message is not None)
        now = dataclasses.replace(request, messages=messages, at=datetime.now(UTC).isoformat())
        working = yield from (_put_off if put_off else _keep)(ports, now, mark, so_far)
        if working:
            yield from do(wake)
        if on_progress is not None:
            on_progress(so_far.done, source.total)
    return so_far


def _keep(ports: Ports, request: Request, mark: tuple[str, int] | None, so_far: Imported) -> Flow[bool]:
    """Remember a chunk; returns whether there is a summary to be made."""
    if not request.messages and mark is None:
        return False
    done = yield from remember(ports, request, mark=mark, apart=True)
    added = sum(change.event is Event.ADD for change in done.changes)
    so_far.added += added
    so_far.known += len(done.changes) - added
    so_far.skipped += done.skipped
    so_far.pending = done.pending
    return done.put_off


def _put_off(ports: Ports, request: Request, mark: tuple[str, int] | None, so_far: Imported) -> Flow[bool]:
    """Put the messages of a chunk off, each as a turn of its own; returns whether there are any."""
    turns = [
        Turn(
            at=message.timestamp or request.at,
            messages=(message,),
            options=options_of(dataclasses.replace(request, messages=(message,))),
        )
        for message in request.messages
        if message.role in SPEAKERS
    ]
    so_far.jobs += len((yield from do(ports.store.jobs.put_turns, request.scope, turns, mark=mark)))
    return bool(turns)
