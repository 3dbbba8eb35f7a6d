"""Lineage of a memory: the messages behind each of its texts, and the texts that remain without some of them; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Trust


@dataclass(frozen=True, slots=True)
class SourceLink:
    """A message behind a memory.

    Attributes:
        message: row of the message.
        seq: number of the change that linked them; links of one change belong together.
        repeats: the memory had its text already.
        trust: class of the message.
        withdrawn: True for a message of a source that is withdrawn.
    """

    message: int
    seq: int
    repeats: bool
    trust: Trust
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class TextSupport:
    """The support of one text of a memory.

    Attributes:
        holds: True if it does not depend on a withdrawn message.
        trust: least trusted class in its lineage; None if no message is known.
        messages: rows of the messages that this text was made of, or that repeat it.
        promoted: if only a repetition remains, the number of its change and that of the change that made the text.
    """

    holds: bool
    trust: Trust | None
    messages: tuple[int, ...]
    promoted: tuple[int, int] | None = None


def assess_texts(last_seqs: Sequence[int], links: Iterable[SourceLink]) -> list[TextSupport]:
    """Return the support of each text of a memory, oldest first.

    The first text depends on the messages of its add, and a changed text also on the text before it. A text that other
    messages repeat holds on these too. A text without messages was written by the application, and holds on its own.

    Args:
        last_seqs: number of the last change of each text.
    """
    groups: dict[tuple[int, bool], list[SourceLink]] = {}
    for link in links:
        groups.setdefault((link.seq, link.repeats), []).append(link)
    births = [_find_birth(groups, last_seqs[index - 1] if index else -1, last) for index, last in enumerate(last_seqs)]
    starts = [last if birth is None else birth for birth, last in zip(births, last_seqs, strict=True)]
    texts: list[TextSupport] = []
    for index, birth in enumerate(births):
        end = starts[index + 1] if index + 1 < len(starts) else None
        repeated = [
            group
            for (seq, repeats), group in groups.items()
            if repeats and starts[index] <= seq and (end is None or seq < end)
        ]
        base = None if birth is None else groups[birth, False]
        texts.append(_assess(base, repeated, texts[-1] if texts else None))
    return texts


def _find_birth(groups: Iterable[tuple[int, bool]], after: int, until: int) -> int | None:
    """Return the number of the change that made a text; None if no message made it."""
    return max((seq for seq, repeats in groups if not repeats and after < seq <= until), default=None)


def _assess(
    base: Sequence[SourceLink] | None, repeated: Sequence[Sequence[SourceLink]], before: TextSupport | None
) -> TextSupport:
    messages = tuple(link.message for group in (base or (), *repeated) for link in group)
    others = [group for group in repeated if not any(link.withdrawn for link in group)]
    classes = [_least(group) for group in others]
    if base is None:
        return TextSupport(True, None, messages)
    holds = not any(link.withdrawn for link in base) and (before is None or before.holds)
    if holds:
        least = _least(base)
        classes.append(least if before is None or before.trust is None else min(least, before.trust))
    promoted = None if holds or not others else (min(group[0].seq for group in others), base[0].seq)
    return TextSupport(bool(classes), max(classes, default=None), messages, promoted)


def _least(group: Sequence[SourceLink]) -> Trust:
    return min(link.trust for link in group)
