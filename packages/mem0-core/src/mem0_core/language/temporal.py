"""Temporal expressions of a query: read them as spans of days relative to a reference day, and score days against them.

English is read in full. Of German, French, Spanish, Italian, Portuguese and Russian, dates with month names are read;
of Chinese and Japanese, dates such as 2023年5月7日; dates in digits in any language. Words that may be names or verbs
(May, June, march, fall) count only in a context that makes them times. The first 2,000 characters of a text are read,
in linear time.

Seasons are those of the northern hemisphere, in whole months; weeks run from Monday to Sunday.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from math import log10

from mem0_core._system.records import dataclass
from mem0_core.domain.bounds import MAX_TIME_TEXT_CHARS
from mem0_core.domain.normalization import normalize
from mem0_core.domain.records import DateRange
from mem0_core.language._temporal_grammar import (
    CYCLE_YEAR,
    LAST_DAY,
    OPEN_END,
    Kind,
    Span,
    exists,
    find_time_word,
    move_to_year,
    parse,
    to_ordinal,
)

_KINDS = frozenset([Kind.WHOLE_YEAR, Kind.TIME, Kind.ANCHOR])
_RECURRING = re.compile(r"\b(?:every|each|always|usually|birthdays?|anniversar(?:y|ies)|annual(?:ly)?|yearly)\b", re.I)


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Days that a text names.

    Attributes:
        first, last: both inclusive; None if the span is open ("since June", "before 2021").
        precision: in (0, 1]: 1 for a day, and .2 less for each factor of ten in days (a week .83, a month .7, a year
            .49), but at least .25, the value of an open span.
        is_yearly: True if it recurs every year, as "in May" does. Then `last` is in the year 2000, with `first` in the
            same winter or summer, and days are compared without their year, so that a memory of any age can match. It
            is as precise as a span three times as long.
    """

    first: date | None
    last: date | None
    precision: float
    is_yearly: bool = False


def parse_time_spans(text: str, reference: date) -> tuple[TimeSpan, ...]:
    """Return the distinct times that a text names, in its order; `reference` is its today.

    A day, a month or a season without a year is in the only year that the text names ("In 2023, what did she do in
    May?", "in June and July 2022").
    """
    return _parse(text, reference, _KINDS)


def _parse(text: str, reference: date, kinds: frozenset[str]) -> tuple[TimeSpan, ...]:
    today = reference.toordinal()
    found = [
        (part.kind, span)
        for part in parse(_normalize(text), today)
        if part.kind in kinds
        for span in part.spans
        if exists(span)
    ]
    return tuple(dict.fromkeys(_to_time_span(span, today) for span in _assign_year(found) if exists(span)))


def score_day(spans: Iterable[TimeSpan], day: date) -> float:
    """Score how well a day matches the best of some spans, in [0, 1]: the precision of a span that contains it.

    Events are mentioned after they happened. So the score falls to zero within 10 days after a day and 20 days after a
    month, and three times as fast before it. Without spans it is 0.
    """
    return max((_score_span(span, day) for span in spans), default=0.0)


def score_days(spans: Iterable[TimeSpan], days: DateRange) -> float:
    """Score how well the days of an event match the best of some spans, in [0, 1]: `score_day` of the best day.

    The score is at most the precision of the range: 2023 is only a partial answer to a question about May.
    """
    first, last = (None if day is None else date.fromisoformat(day) for day in (days.first, days.last))
    precision = _compute_precision((last or date.max).toordinal() - first.toordinal() + 1 if first and last else 0)
    return max(
        (min(precision, _score_span(span, day)) for span in spans for day in _candidate_days(span, first, last)),
        default=0.0,
    )


def find_event_days(text: str, reference: date) -> DateRange | None:
    """Return the range of the days that a statement names; None if it names none, or recurring ones.

    `reference` is the day of the statement. A day without a year is the nearest one; the latest one before `reference`
    if the statement tells what happened ("I moved in May", said in November), and the next one if it tells what will
    happen ("I'm joining Galp in May"). Only then "in two weeks" and "from May" are times.
    """
    if _RECURRING.search(text):
        return None
    outlook = _find_outlook(text)
    spans = _parse(text, reference, _KINDS | {Kind.AHEAD} if outlook > 0 else _KINDS)
    found = [_choose_year(span, reference, outlook) if span.is_yearly else span for span in spans]
    if outlook and len(found) > 1:  # "on Monday" is the last one or the next
        found = [span for span in found if _fits(span.first, span.last, reference, outlook)] or found
    if not found:
        return None
    firsts, lasts = [span.first for span in found], [span.last for span in found]
    first = None if None in firsts else min(day.isoformat() for day in firsts if day)
    last = None if None in lasts else max(day.isoformat() for day in lasts if day)
    return DateRange(first, last) if first or last else None


def is_about_time(text: str, spans: Sequence[TimeSpan] | None = None) -> bool:
    """Return True if a text asks for a time (when, how long, which year), or names one.

    Args:
        spans: the time spans of `text`, for a caller that has them.
    """
    if re.search(_ASKS_WHEN, _normalize(text)) is not None:
        return True
    return bool(parse_time_spans(text, date(CYCLE_YEAR, 6, 15)) if spans is None else spans)


def _normalize(text: str) -> str:
    text = text[:MAX_TIME_TEXT_CHARS]
    return normalize("NFKC", text)[:MAX_TIME_TEXT_CHARS].lower().replace("’", "'")


def _assign_year(found: list[tuple[str, Span]]) -> list[Span]:
    """Move yearly spans to the only named year; a year that was named only for them is no span of its own."""
    dated = [span for kind, span in found if kind != Kind.ANCHOR and not span.is_yearly]
    ends = [day for span in dated for day in (max(span.first, 1), min(span.end - 1, LAST_DAY))]
    years = {date.fromordinal(day).year for day in ends}
    if len(years) != 1 or not any(span.is_yearly for _, span in found):
        return [span for _, span in found]
    (year,) = years
    return [move_to_year(span, year) if span.is_yearly else span for kind, span in found if kind != Kind.WHOLE_YEAR]


def _to_time_span(span: Span, today: int) -> TimeSpan:
    days = ((today + 1 if span.end == OPEN_END else span.end) - span.first) * (3 if span.is_yearly else 1)
    first = date.fromordinal(span.first) if span.first >= 1 else None
    last = date.fromordinal(span.end - 1) if span.end <= LAST_DAY + 1 else None
    return TimeSpan(first, last, _compute_precision(days), span.is_yearly)


def _score_span(span: TimeSpan, day: date) -> float:
    here = day.toordinal()
    if span.is_yearly and span.first and span.last:
        first = span.first.toordinal()
        here = first + (to_ordinal(CYCLE_YEAR, day.month, day.day) - first) % 366
        late, early = here - span.last.toordinal(), first + 366 - here
    else:
        late = here - span.last.toordinal() if span.last else 0
        early = span.first.toordinal() - here if span.first else 0
    if late <= 0 and (early <= 0 or span.is_yearly):
        return span.precision
    gap = min(gap for gap in (late, 3 * early) if gap > 0)
    return span.precision * max(0.0, 1 - gap / (10 + (1 - span.precision) * 33))


def _candidate_days(span: TimeSpan, first: date | None, last: date | None) -> set[date]:
    """Return days from `first` to `last` that include the best match of a span."""
    ends = {day for day in (first, last) if day is not None}
    wanted = {day for day in (span.first, span.last) if day is not None}
    if span.is_yearly:
        years = {end.year + by for end in ends for by in (-1, 0, 1)}
        wanted = {_in_this_year(day, year) for day in wanted for year in years if 1 <= year <= 9999}
    return ends | {day for day in wanted if (first is None or day >= first) and (last is None or day <= last)}


def _find_outlook(text: str) -> int:
    """Return -1 if a text tells what happened, 1 if it tells what will happen, and 0 if it may do either."""
    said = _normalize(text)
    is_over = _HAPPENED.search(said) is not None
    if _AHEAD.search(said) is not None and not (is_over and _is_time_of_past_clause(said)):
        return 1
    return -1 if is_over and _PLANNED.search(said) is None else 0


def _is_time_of_past_clause(said: str) -> bool:
    """Return True for ``I'm wearing the coat I bought in May``, in which the verb before the time is a past one."""
    before = said[: find_time_word(said)]
    for past in reversed(list(_HAPPENED.finditer(before))):
        subject = before[max(0, past.start() - _MAX_SUBJECT_CHARS) : past.start()].split()[-1:]
        if past[0] in {"was", "were"} or not _SUBJECTS.isdisjoint(subject):  # "Anna is getting married" has no past
            return _AHEAD.search(before, past.start()) is None
    return False


def _choose_year(span: TimeSpan, reference: date, outlook: int) -> TimeSpan:
    """Return a yearly span in the year in which it is nearest to a day.

    Args:
        outlook: -1 if the span began by that day, 1 if it ends after it.
    """
    assert span.first is not None
    assert span.last is not None
    years = [year for year in (reference.year - 1, reference.year, reference.year + 1) if 1 < year <= 9999]
    over = span.last.year - span.first.year  # 1 for a winter, which begins in the year before
    ones = [(_in_this_year(span.first, year - over), _in_this_year(span.last, year)) for year in years]
    fitting = [one for one in ones if _fits(*one, reference, outlook)]
    first, last = min(fitting or ones, key=lambda one: max((one[0] - reference).days, (reference - one[1]).days))
    return TimeSpan(first, last, span.precision)


def _fits(first: date | None, last: date | None, reference: date, outlook: int) -> bool:
    """Return True if days began by a day, for a negative outlook, or end after it, for a positive one."""
    if outlook < 0:
        return first is None or first <= reference
    return outlook == 0 or last is None or last > reference


_MAX_SUBJECT_CHARS = 12
_SUBJECTS = frozenset(["i", "we", "you", "he", "she", "it", "they", "who", "that", "which"])
_AHEAD = re.compile(
    r"\b(?:will|shall|gonna|(?:i|we|he|she|they) starts?|(?<!was )(?<!were )(?:going|about) to)\b|'ll\b"
    r"|(?:\b(?:am|are|is|im)|'(?:m|re|s))\s+(?:(?:also|finally|now|then|officially|soon|not)\s+)?"
    r"(?!being\b)[a-z]{2,}ing\b"
)
"""Forms of the future: a progressive with a time that is to come ("moving in May")."""
_HAPPENED = re.compile(
    r"\b(?:was|were|did|had|got|went|came|met|left|began|bought|took|made|saw|became|lost|found|sold|gave|quit|broke"
    r"|spent|won|flew|ran|built|drove|chose|wrote|fell|told|taught|kept|felt|held|paid|(?:have|has|'ve|'s) been"
    r"|(?!need|feed|seed|speed|indeed|exceed|succeed|proceed|hundred|sacred)[a-z]{2,}ed)\b"
)
_PLANNED = re.compile(
    r"\b(?:will|shall|won't|gonna|going to|about to|hopefully|upcoming|next|due|would|could|should"
    r"|might|may be|if|(?<!since )start(?:s|ing)?"
    r"|(?:schedul|postpon|delay|book|reserv|arrang|cancel)(?:e|ed|led)?)\b|'ll\b"
    r"|\b(?:plann?|hop|want|need|excit|suppos|expect|decid|invit|ask|offer|agree|register|sign|promis|accept)"
    r"(?:e|ed|ing|s)?\s+(?:\w+\s+){0,3}?(?:to|for|until)\b"
)
"""Plans that forms of the past tell too: "excited to start in May", "postponed to May"."""


def _in_this_year(day: date, year: int) -> date:
    return date.fromordinal(min(to_ordinal(year, day.month, day.day), LAST_DAY))


def _compute_precision(days: int) -> float:
    """Return the precision of a number of days, see `TimeSpan`; 0 days mean an open span."""
    return max(0.25, 1 - log10(days) / 5) if days > 0 else 0.25


_ASKS_WHEN = (  # as text: a search does not need it compiled
    r"^\W*when\b[^,?]*\?\W*$|\bsince when\b|\bhow (?:long|recently|soon|many (?:days|weeks|months|years))\b"
    r"|\bwhen(?:'s|\s+(?:did|do|does|was|were|is|are|will|would|has|have|had|can|could|should|shall)\b|\W*$)"
    r"|\b(?:know|remember|recall|tell|told|say|said|ask|sure|remind)(?: me| us)?(?: exactly)? when\b"
    r"|\b(?:what|which)(?:'s| is| was)?(?: the)?(?: exact| same)?"
    r" (?:date|day|weekday|week|weekend|month|season|year|time|decade)s?\b"
    r"|^\W*(?:wann|quand|cuándo|cuando|quando|когда)\b|什么时候|什麼時候|何时|何時|哪天|哪年|いつ(?!も)"
)
