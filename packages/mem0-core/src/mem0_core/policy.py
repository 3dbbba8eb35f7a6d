"""What may be remembered: the caller's say on every text, and how much one scope may bring."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from mem0_core.errors import InputError, LimitError
from mem0_core.records import Message, Scope, Skipped, is_valid_text

__all__ = ["Limits", "Policy", "Rates", "check_sizes", "governed", "judged"]

Policy = Callable[[str, Scope], str | None]
"""Asked for every message and every memory before it is kept: the text as it may be kept, or None for not at all."""

REFUSED = "the policy refuses it"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one call, and one scope, may bring; None for any.

    Attributes:
        message_chars: characters of one message.
        messages: messages of one add.
        adds_per_minute: adds of one partition (the first id of a scope) in one process.
    """

    message_chars: int | None = None
    messages: int | None = None
    adds_per_minute: int | None = None


def judged(policy: Policy | None, text: str, scope: Scope) -> str | None:
    """What the policy leaves of a text; None for nothing.

    Raises:
        InputError: the policy gave something that is no text.
    """
    if policy is None:
        return text
    left = policy(text, scope)
    if left is not None and (not isinstance(left, str) or not is_valid_text(left)):
        raise InputError(f"a policy returns a text or None, not {left!r}")
    return left if left is not None and left.strip() else None


def governed(
    policy: Policy | None, messages: Sequence[Message], scope: Scope
) -> tuple[tuple[Message, ...], tuple[Skipped, ...]]:
    """The messages as they may be kept, and those that may not. Instructions to the model are not kept anyway."""
    if policy is None:
        return tuple(messages), ()
    kept: list[Message] = []
    skipped: list[Skipped] = []
    for place, message in enumerate(messages):
        left = judged(policy, message.content, scope) if message.content.strip() else message.content
        if left is None:
            skipped.append(Skipped(reason=f"messages[{place}]: {REFUSED}", item={"role": message.role}))
        else:
            kept.append(replace(message, content=left))
    return tuple(kept), tuple(skipped)


def check_sizes(limits: Limits, messages: Sequence[Message]) -> None:
    """Refuse what is too much for one call.

    Raises:
        LimitError: naming the limit and what exceeds it.
    """
    if limits.messages is not None and len(messages) > limits.messages:
        raise LimitError(f"limits.messages: {len(messages)} messages in one add, {limits.messages} allowed")
    for place, message in enumerate(messages):
        if limits.message_chars is not None and len(message.content) > limits.message_chars:
            size = len(message.content)
            raise LimitError(f"limits.message_chars: messages[{place}] has {size}, {limits.message_chars} allowed")


class Rates:
    """Counts the adds of each partition over the last minute. Safe to share between threads."""

    _KEPT = 10_000  # partitions; the longest idle are forgotten first

    def __init__(self, limits: Limits) -> None:
        self._most = limits.adds_per_minute
        self._times: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._lock = Lock()

    def count(self, scope: Scope) -> None:
        """Count one add.

        Raises:
            LimitError: it is one too many; says in how many seconds the next is welcome.
        """
        if self._most is None:
            return
        axis, value = scope.partition
        now = time.monotonic()
        with self._lock:
            times = self._times.setdefault((axis.value, value), deque())
            self._times.move_to_end((axis.value, value))
            while times and times[0] <= now - 60:
                times.popleft()
            if len(times) >= self._most:
                wait = times[0] + 60 - now
                raise LimitError(f"limits.adds_per_minute: {axis.value}={value!r} may add again in {wait:.0f} s")
            times.append(now)
            if len(self._times) > self._KEPT:
                self._times.popitem(last=False)
