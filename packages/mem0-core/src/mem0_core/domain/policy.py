"""What may be remembered: the caller's say on every text, and how much one scope may bring."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from mem0_core.domain.records import Message, Scope, SkippedItem, is_valid_text
from mem0_core.errors import InputError, LimitError

__all__ = ["Limits", "Policy", "RateLimiter", "apply_policy", "check_sizes", "filter_messages"]

Policy = Callable[[str, Scope], str | None]
"""Asked for every message and every memory before it is kept: the text as it may be kept, or None for not at all."""

POLICY_REFUSAL = "the policy refuses it"


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


def apply_policy(policy: Policy | None, text: str, scope: Scope) -> str | None:
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


def filter_messages(
    policy: Policy | None, messages: Sequence[Message], scope: Scope
) -> tuple[tuple[Message, ...], tuple[SkippedItem, ...]]:
    """The messages as they may be kept, and those that may not. Instructions to the model are not kept anyway."""
    if policy is None:
        return tuple(messages), ()
    kept: list[Message] = []
    skipped: list[SkippedItem] = []
    for place, message in enumerate(messages):
        left = apply_policy(policy, message.content, scope) if message.content.strip() else message.content
        if left is None:
            skipped.append(SkippedItem(reason=f"messages[{place}]: {POLICY_REFUSAL}", item={"role": message.role}))
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


class RateLimiter:
    """Counts the adds of each partition over the last minute. Safe to share between threads."""

    _MAX_PARTITIONS = 10_000  # partitions; the longest idle are forgotten first

    def __init__(self, limits: Limits) -> None:
        self._adds_per_minute = limits.adds_per_minute
        self._times: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._lock = Lock()

    def record_add(self, scope: Scope) -> None:
        """Count one add.

        Raises:
            LimitError: it is one too many; says in how many seconds the next is welcome.
        """
        if self._adds_per_minute is None:
            return
        axis, value = scope.partition
        now = time.monotonic()
        with self._lock:
            times = self._times.setdefault((axis.value, value), deque())
            self._times.move_to_end((axis.value, value))
            while times and times[0] <= now - 60:
                times.popleft()
            if len(times) >= self._adds_per_minute:
                wait = times[0] + 60 - now
                raise LimitError(f"limits.adds_per_minute: {axis.value}={value!r} may add again in {wait:.0f} s")
            times.append(now)
            if len(self._times) > self._MAX_PARTITIONS:
                self._times.popitem(last=False)
