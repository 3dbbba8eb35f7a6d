"""The caller's policy on every text, and limits on the amount of input."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from mem0_core._system.boundary import call_hook
from mem0_core._system.locks import SignalSafeLock
from mem0_core.domain.options import LimitsConfig
from mem0_core.domain.records import Message, Scope, SkippedItem, is_valid_text
from mem0_core.errors import InputError, LimitError

Policy = Callable[[str, Scope], str | None]
"""A function called with every message and memory before it is stored. Returns the text to store, or None to refuse."""

POLICY_REFUSAL = "the policy refuses it"


def apply_policy(policy: Policy | None, text: str, scope: Scope) -> str | None:
    """Return the text as the policy allows it, or None if it refuses.

    Raises:
        InputError: the policy returned something other than a text or None.
        CallbackError: it failed.
    """
    if policy is None:
        return text
    left = call_hook("policy", policy, text, scope)
    if left is not None and (not isinstance(left, str) or not is_valid_text(left)):
        raise InputError(f"a policy returns a text or None, not {left!r}")
    return left if left is not None and left.strip() else None


def filter_messages(
    policy: Policy | None, messages: Sequence[Message], scope: Scope
) -> tuple[tuple[Message, ...], tuple[SkippedItem, ...]]:
    """Return the messages as the policy allows them, and the refused ones."""
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


def check_sizes(limits: LimitsConfig, messages: Sequence[Message]) -> None:
    """Check the messages of one call against the limits.

    Raises:
        LimitError: a limit is exceeded; the message names it.
    """
    if limits.messages is not None and len(messages) > limits.messages:
        raise LimitError(f"limits.messages: {len(messages)} messages in one add, {limits.messages} allowed")
    for place, message in enumerate(messages):
        if limits.message_chars is not None and len(message.content) > limits.message_chars:
            size = len(message.content)
            raise LimitError(f"limits.message_chars: messages[{place}] has {size}, {limits.message_chars} allowed")


class RateLimiter:
    """Counter of the adds to each partition over the last minute. Safe to share between threads."""

    _MAX_PARTITIONS = 10_000  # the partitions that were idle longest are dropped first

    def __init__(self, limits: LimitsConfig) -> None:
        self._adds_per_minute = limits.adds_per_minute
        self._times: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._lock = SignalSafeLock()

    def record_add(self, scope: Scope) -> None:
        """Count one add.

        Raises:
            LimitError: the limit is reached; the message says in how many seconds the next add is allowed.
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
