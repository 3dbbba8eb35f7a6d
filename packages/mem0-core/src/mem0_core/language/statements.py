"""Statements of a text: which subject has, gets or loses which value of a relation family.

"I moved from Rome to Milan" begins ``lives_in Milan`` and ends ``lives_in Rome``, for the speaker. A statement without
a value still says something of its slot: "I quit my job" ends every ``works_at``.
"""

from __future__ import annotations

import hashlib
import json
import os
from datetime import date, timedelta
from functools import cache
from pathlib import Path

from mem0_core._system.text_caches import text_cache
from mem0_core.domain.bounds import MAX_STATEMENTS
from mem0_core.domain.records import DateRange, content_hash
from mem0_core.language._grammar import load_grammar
from mem0_core.language._phrases import detect_language, read_phrases
from mem0_core.language._reader import SPEAKER, Effect, Statement, StatementReader
from mem0_core.language._tokens import TokenizedText, tokenize
from mem0_core.language.families import load_families
from mem0_core.language.temporal import find_event_days

__all__ = [
    "MAX_SLOT_TEXT_CHARS",
    "SPEAKER",
    "Effect",
    "Statement",
    "ending_key",
    "find_days",
    "pack_statements",
    "read_all_statements",
    "read_statements",
    "slot_key",
    "slots_of",
    "unpack_statements",
]

MAX_SLOT_TEXT_CHARS = 600
"""Number of characters from which a text is too long to be ranked by its statements."""
_PLAN_DAYS = 30
_MAX_SLOTS = 32
_MAX_TEXT_CHARS = 4_000  # characters of a text that are read


def read_statements(text: str, *, said_on: date, packed: str = "") -> tuple[Statement, ...]:
    """Return the statements of a text, in its order, with their days.

    Args:
        said_on: the day from which relative times count.
        packed: what `pack_statements` made of the text, if it is known.
    """
    known = unpack_statements(packed, text) if packed else None
    said = read_all_statements(text[:_MAX_TEXT_CHARS]) if known is None else known
    dated = {(one.when, one.is_planned) for one in said if one.when or one.is_planned}
    days = {(when, is_planned): find_days(when, said_on, is_planned=is_planned) for when, is_planned in dated}
    return tuple(one._replace(days=days.get((one.when, one.is_planned))) for one in said) if days else said


def find_days(when: str, said_on: date, *, is_planned: bool) -> DateRange | None:
    """Return the days from which a statement holds, ends or in which it held; None for those of the text itself.

    Args:
        when: the words that say when.
        said_on: the day from which relative times count.
        is_planned: True for a plan; one without a time, or for "this year", counts as done after 30 days.
    """
    days = find_event_days(when, said_on) if when else None
    if not is_planned:
        return days
    today, later = said_on.isoformat(), (said_on + timedelta(days=_PLAN_DAYS)).isoformat()
    if days is None or (days.last or today) < today:  # "the flat we bought in May"
        return DateRange(later, None)
    has_begun = days.first is not None and days.first < today < (days.last or later)  # "this year"
    return DateRange(min(days.last or later, later), days.last) if has_begun else days


def pack_statements(text: str) -> str:
    """Return the statements of a text, without their days, as one line of JSON."""
    said = read_all_statements(text[:_MAX_TEXT_CHARS])
    return f"{_packed_head(text)}{json.dumps(said, ensure_ascii=False, separators=(',', ':'))}"


def unpack_statements(packed: str, text: str) -> tuple[Statement, ...] | None:
    """Return the statements that `pack_statements` made of a text; None if it was another one, or other rules did."""
    head = _packed_head(text)
    if not packed.startswith(head):
        return None
    return tuple(map(Statement._make, json.loads(packed[len(head) :])))


def _packed_head(text: str) -> str:
    return f"{_digest_rules()} {content_hash(text)} "


@cache
def _digest_rules() -> str:
    """Return a digest of the rules: statements that others have read may be wrong.

    An installation without sources cannot tell: then each process trusts its own alone.
    """
    digest = hashlib.blake2b(str(MAX_STATEMENTS).encode(), digest_size=8)
    folder = Path(__file__).parent
    sources = sorted(folder.glob("*.py"))
    for path in (*sources, *sorted(folder.glob("data/*.toml"))):
        digest.update(path.read_bytes())
    if not sources:
        digest.update(os.urandom(8))
    return digest.hexdigest()


def read_all_statements(text: str, *, tokens: TokenizedText | None = None) -> tuple[Statement, ...]:
    """Return the statements of a text of any length, without their days.

    Args:
        tokens: the tokens of the text, if they are known.
    """
    return _read_short(text) if len(text) <= _MAX_TEXT_CHARS else _read(text, tokens)


@text_cache(4096)
def _read_short(text: str) -> tuple[Statement, ...]:
    return _read(text)


def _read(text: str, tokens: TokenizedText | None = None) -> tuple[Statement, ...]:
    language = detect_language(text)
    if language != "english":
        return tuple(read_phrases(text, language))
    return tuple(StatementReader(tokens or tokenize(text, "english"), load_grammar("english")).read())


def slot_key(subject: str, family: str) -> str:
    """Return the key under which statements about a subject and a family are found: 16 hexadecimal digits."""
    slot = f"{' '.join(subject.casefold().split())}|{family}"
    return hashlib.blake2b(slot.encode(), digest_size=8).hexdigest()


def ending_key(subject: str, family: str) -> str:
    """Return the key under which the statements are found that end a value of a slot."""
    return slot_key(subject, f"{family}/ends")


def slots_of(text: str, speaker: str | None = None) -> tuple[str, ...]:
    """Return the distinct keys of the slots that a text makes statements about, in both directions.

    A text of more than `MAX_SLOT_TEXT_CHARS` has none: it says many things, and none of them decides its rank.

    Args:
        speaker: name of the speaker where several people speak; None for the user.
    """
    if len(text) > MAX_SLOT_TEXT_CHARS:
        return ()
    families, keys = load_families(), dict[str, None]()
    for one in read_all_statements(text[:_MAX_TEXT_CHARS]):
        subject = one.subject or speaker or SPEAKER
        keys[slot_key(subject, one.family)] = None
        if one.effect == "ends":
            keys[ending_key(subject, one.family)] = None
        if families[one.family].inverse and one.value:
            keys[slot_key(one.value, families[one.family].inverse)] = None
            if one.effect == "ends":
                keys[ending_key(one.value, families[one.family].inverse)] = None
    return tuple(keys)[:_MAX_SLOTS]
