"""Statements of a text: which subject has, gets or loses which value of a relation family.

"I moved from Rome to Milan" begins ``lives_in Milan`` and ends ``lives_in Rome``, for the speaker. A statement without
a value still says something of its slot: "I quit my job" ends every ``works_at``.
"""

from __future__ import annotations

import hashlib
from datetime import date
from functools import lru_cache
from typing import Literal, NamedTuple

from mem0_core.domain.records import DateRange, Triplet
from mem0_core.language.families import family_of_label, load_families
from mem0_core.language.rule_extractor import EndedRelation, extract_by_rules

__all__ = ["SPEAKER", "Effect", "Statement", "read_statements", "slot_key", "slots_of"]

SPEAKER = ""
"""The subject that stands for the speaker."""

Effect = Literal["holds", "begins", "ends", "past"]
"""``holds``: true when said; ``begins``: new, so it ends an earlier value; ``ends``: no longer true; ``past``: was true
once, and is over ("I used to live in Rome", "I lived in Rome until 2020")."""

_ANY_DAY = date(2000, 1, 1)  # slots do not depend on the day
_MAX_SLOTS = 32
_MAX_TEXT_CHARS = 4_000  # characters of a text that are read


class Statement(NamedTuple):
    """A statement about one slot: a subject and a relation family.

    Attributes:
        subject: a name as written; `SPEAKER` for the speaker; ``my sister`` for a relative without a name.
        family: name of a `Family`.
        value: the value as written; empty if the text names none.
        days: the days from which it holds, ends or in which it held, where the text says so.
        is_certain: True if subject, value and effect are plainly stated, so that it can become a relation.
    """

    subject: str
    family: str
    value: str
    effect: Effect
    days: DateRange | None = None
    is_certain: bool = True


def read_statements(text: str, *, said_on: date) -> tuple[Statement, ...]:
    """Return the statements of a text, in its order.

    Args:
        said_on: the day from which relative times count.
    """
    return _read_statements(text[:_MAX_TEXT_CHARS], said_on)


@lru_cache(maxsize=4096)
def _read_statements(text: str, said_on: date) -> tuple[Statement, ...]:
    found = extract_by_rules(text, speaker="\x01")
    statements: list[Statement] = []
    endings: list[EndedRelation | Triplet] = [*found.ended]
    for said in [*endings, *found.relations]:
        family = family_of_label(said.relationship)
        if family is not None:
            subject = SPEAKER if said.source == "\x01" else said.source
            effect: Effect = "begins" if isinstance(said, Triplet) else "ends"
            statements.append(Statement(subject, family.name, said.destination or "", effect))
    return tuple(statements)


def slot_key(subject: str, family: str) -> str:
    """Return the key under which statements about a subject and a family are found: 16 hexadecimal digits."""
    slot = f"{' '.join(subject.casefold().split())}|{family}"
    return hashlib.blake2b(slot.encode(), digest_size=8).hexdigest()


def slots_of(text: str, speaker: str | None = None) -> tuple[str, ...]:
    """Return the distinct keys of the slots that a text makes statements about, in both directions.

    Args:
        speaker: name of the speaker where several people speak; None for the user.
    """
    families, keys = load_families(), dict[str, None]()
    for one in read_statements(text, said_on=_ANY_DAY):
        keys[slot_key(one.subject or speaker or SPEAKER, one.family)] = None
        if families[one.family].inverse and one.value:
            keys[slot_key(one.value, families[one.family].inverse)] = None
    return tuple(keys)[:_MAX_SLOTS]
