"""The time words of a query, read against a reference day into spans of days, and how well a day fits them.

Each word becomes a part with a letter for its kind (`_KINDS` has the letters); phrases are patterns over the string of
letters (`_PHRASE_PATTERNS`), and a phrase becomes one part. The time taken is linear in the text, whose first 2,000
characters are read. English is read whole; of German, French, Spanish, Italian, Portuguese and Russian the dates with
month names, of Chinese and Japanese 2023年5月7日, and dates in digits in any language. A word that may be a name or a
verb (May, June, march, fall) counts only where what stands beside it makes it a time.

Seasons are those of the northern hemisphere, in whole months; weeks run from Monday to Sunday.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from math import log10
from typing import NamedTuple

from mem0_core.domain.normalization import normalize
from mem0_core.domain.records import DateRange

__all__ = ["TimeSpan", "find_event_days", "is_about_time", "parse_time_spans", "score_day", "score_days"]

_MAX_TEXT_CHARS = 2_000
_LAST_DAY = date.max.toordinal()
_OPEN_END = 10 * _LAST_DAY  # before or after it: where an open span ends
_RECURRING = re.compile(r"\b(?:every|each|always|usually|birthdays?|anniversar(?:y|ies)|annual(?:ly)?|yearly)\b", re.I)
_CYCLE_YEAR = 2000  # the year of what comes back every year; a leap year, so that it holds 29 February


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Some days that a text names.

    Attributes:
        first, last: both inclusive; None where the span is open ("since June", "before 2021").
        share: how precise it is, in (0, 1]: 1 for a day, and .2 less for ten times as many days (a week .83, a month
            .7, a year .49), but no less than .25, which is what "before 2021" has.
        yearly: whether it comes back every year, as "in May" does. Then `last` is of the year 2000, with `first` in the
            same winter or summer, and days are compared without their year: so a memory of any age can fit, however far
            it is from the reference. It is as precise as a span three times as long.
    """

    first: date | None
    last: date | None
    precision: float
    is_yearly: bool = False


def parse_time_spans(text: str, reference: date) -> tuple[TimeSpan, ...]:
    """What times a text names, each once, in its order; `reference` is its today.

    A day, a month or a season without a year is of the only year that the text names ("In 2023, what did she do in
    May?", "in June and July 2022").
    """
    text = _plain(text)
    if _DIGIT.search(text) is None and _NAMES_TIME.isdisjoint(_WORD.findall(text)):
        return ()
    today, parts = reference.toordinal(), [_part(word) for word in _TOKEN.findall(text)]
    if _TIMELY.isdisjoint(part.kind for part in parts):  # numbers of other things
        return ()
    for pattern, handlers in _PHRASES:
        parts = _join_parts(pattern, handlers, parts, today)
    found = [(part.kind, span) for part in parts if part.kind in "ATV" for span in part.spans if _exists(span)]
    return tuple(dict.fromkeys(_to_time_span(span, today) for span in _assign_year(found) if _exists(span)))


def score_day(spans: Iterable[TimeSpan], day: date) -> float:
    """How well a day fits the best of some spans, in [0, 1]: the `share` of a span that it is in, 0 without spans.

    Things are told after they happened, so it falls off to nothing within 10 days after a day, 20 after a month; and
    thrice as fast before it.
    """
    return max((_score_span(span, day) for span in spans), default=0.0)


def score_days(spans: Iterable[TimeSpan], days: DateRange) -> float:
    """How well days that something is told of fit the best of some spans, in [0, 1]; as `score_day` of the best of the
    days.

    Neither can be more precise than the other: who asks for May and is told 2023 has half an answer.
    """
    first, last = (None if day is None else date.fromisoformat(day) for day in (days.first, days.last))
    share = _compute_precision((last or date.max).toordinal() - first.toordinal() + 1 if first and last else 0)
    return max(
        (min(share, _score_span(span, day)) for span in spans for day in _inside(span, first, last)), default=0.0
    )


def find_event_days(text: str, reference: date) -> DateRange | None:
    """From the first to the last of the days that a statement tells of; None where it names none.

    `reference` is the day it was made. A day without a year is the nearest one; what it says of every year is no day.
    """
    if _RECURRING.search(text):
        return None
    found = [_nearest_year(span, reference) if span.is_yearly else span for span in parse_time_spans(text, reference)]
    if not found:
        return None
    firsts, lasts = [span.first for span in found], [span.last for span in found]
    first = None if None in firsts else min(day.isoformat() for day in firsts if day)
    last = None if None in lasts else max(day.isoformat() for day in lasts if day)
    return DateRange(first, last) if first or last else None


def is_about_time(text: str, spans: Sequence[TimeSpan] | None = None) -> bool:
    """Return True if a text asks when (or how long, or which year), or names a time.

    Args:
        spans: the time spans of `text`, for a caller that has them.
    """
    if _ASKS_WHEN.search(_plain(text)) is not None:
        return True
    return bool(parse_time_spans(text, date(_CYCLE_YEAR, 6, 15)) if spans is None else spans)


def _assign_year(found: list[tuple[str, _Span]]) -> list[_Span]:
    """The yearly spans in the only year that is named; named for them alone, it is no span of its own."""
    dated = [span for kind, span in found if kind != "V" and not span.is_yearly]
    ends = [day for span in dated for day in (max(span.first, 1), min(span.end - 1, _LAST_DAY))]
    years = {date.fromordinal(day).year for day in ends}
    if len(years) != 1 or not any(span.is_yearly for _, span in found):
        return [span for _, span in found]
    (year,) = years
    return [_in_year(span, year) if span.is_yearly else span for kind, span in found if kind != "A"]


def _plain(text: str) -> str:
    text = text[:_MAX_TEXT_CHARS]
    return normalize("NFKC", text)[:_MAX_TEXT_CHARS].lower().replace("’", "'")


def _score_span(span: TimeSpan, day: date) -> float:
    here = day.toordinal()
    if span.is_yearly and span.first and span.last:
        first = span.first.toordinal()
        here = first + (_on(_CYCLE_YEAR, day.month, day.day) - first) % 366
        late, early = here - span.last.toordinal(), first + 366 - here
    else:
        late = here - span.last.toordinal() if span.last else 0
        early = span.first.toordinal() - here if span.first else 0
    if late <= 0 and (early <= 0 or span.is_yearly):
        return span.precision
    gap = min(gap for gap in (late, 3 * early) if gap > 0)
    return span.precision * max(0.0, 1 - gap / (10 + (1 - span.precision) * 33))


def _inside(span: TimeSpan, first: date | None, last: date | None) -> set[date]:
    """Days from `first` to `last`, among which is the one that a span fits best."""
    ends = {day for day in (first, last) if day is not None}
    wanted = {day for day in (span.first, span.last) if day is not None}
    if span.is_yearly:
        years = {end.year + by for end in ends for by in (-1, 0, 1)}
        wanted = {_in_this_year(day, year) for day in wanted for year in years if 1 <= year <= 9999}
    return ends | {day for day in wanted if (first is None or day >= first) and (last is None or day <= last)}


def _nearest_year(span: TimeSpan, reference: date) -> TimeSpan:
    """A span of every year as it is nearest to a day."""
    assert span.first is not None
    assert span.last is not None
    years = [year for year in (reference.year - 1, reference.year, reference.year + 1) if 1 < year <= 9999]
    over = span.last.year - span.first.year  # one that begins in the winter before
    ones = [(_in_this_year(span.first, year - over), _in_this_year(span.last, year)) for year in years]
    first, last = min(ones, key=lambda one: max((one[0] - reference).days, (reference - one[1]).days))
    return TimeSpan(first, last, span.precision)


def _in_this_year(day: date, year: int) -> date:
    return date.fromordinal(min(_on(year, day.month, day.day), _LAST_DAY))


def _compute_precision(days: int) -> float:
    """How precise so many days are, see `TimeSpan`; 0 for a span that is open."""
    return max(0.25, 1 - log10(days) / 5) if days > 0 else 0.25


class _Span(NamedTuple):
    """Days by their ordinals, `end` exclusive; a yearly one stands in the cycle's year, a moveable one says how."""

    first: int
    end: int
    is_yearly: bool = False
    moved: Callable[[int], int] | None = None


class _Part(NamedTuple):
    """A word or a phrase, its letter and what it says; `again` reads it against another day than the reference."""

    kind: str
    value: tuple[int, ...] = ()
    spans: tuple[_Span, ...] = ()
    again: Callable[[int], _Part] | None = None


# ---- days -----------------------------------------------------------------------------------------------------------


def _on(year: int, month: int, day: int = 1) -> int:
    """The ordinal of a day; months and days may run over, and a year that no calendar has is at its end."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    if not 1 <= year <= 9999:
        return 1 if year < 1 else _LAST_DAY + 1
    return date(year, month, 1).toordinal() + day - 1


def _exists(span: _Span) -> bool:
    """Whether some days of the calendar are in a span, and some are not."""
    return max(span.first, 1) < min(span.end, _LAST_DAY + 1) and (span.first > 1 or span.end <= _LAST_DAY)


def _to_time_span(span: _Span, today: int) -> TimeSpan:
    days = ((today + 1 if span.end == _OPEN_END else span.end) - span.first) * (3 if span.is_yearly else 1)
    share = _compute_precision(days)
    first = date.fromordinal(span.first) if span.first >= 1 else None
    return TimeSpan(first, date.fromordinal(span.end - 1) if span.end <= _LAST_DAY + 1 else None, share, span.is_yearly)


def _easter(year: int) -> int:
    """Western Easter (Meeus, Jones and Butcher)."""
    a, (b, c) = year % 19, divmod(year, 100)
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    left = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    return _on(year, 3, h + left - 7 * ((a + 11 * h + 22 * left) // 451) + 22)


def _thanksgiving(year: int) -> int:
    """The fourth Thursday of November, as in the United States."""
    first = _on(year, 11)
    return first + (4 - first) % 7 + 21


def _in_year(span: _Span, year: int) -> _Span:
    if span.moved is not None and 1 <= year <= 9999:
        return _Span(span.moved(year), span.moved(year) + 1)
    first, end = date.fromordinal(span.first), date.fromordinal(span.end)
    by = year - first.year
    return _Span(_on(first.year + by, first.month, first.day), _on(end.year + by, end.month, end.day))


def _one_of(span: _Span, today: int, which: str) -> _Span:
    """One of a yearly span: the `last` over, the last `begun`, the `next` to begin, `this` year's, or the nearest."""
    year = date.fromordinal(min(max(today, 1), _LAST_DAY)).year
    ones = [one for by in (-2, -1, 0, 1, 2) if _exists(one := _in_year(span, year + by))] or [_Span(1, 1)]
    meant = {
        "last": [one for one in ones if one.end <= today][-1:],
        "begun": [one for one in ones if one.first <= today][-1:],
        "next": [one for one in ones if one.first > today][:1],
        "this": [one for one in ones if one.first < _on(year + 1, 1) and one.end > _on(year, 1)],
    }
    return min(meant.get(which) or ones, key=lambda one: max(one.first - today, today + 1 - one.end))


def _month(month: int, day: int = 0, last_day: int = 0) -> _Span | None:
    """A month of every year, a day of it, or some; None if there is no such month or day."""
    first, over = _on(_CYCLE_YEAR, month, day or 1), _on(_CYCLE_YEAR, month + 1)
    end = _on(_CYCLE_YEAR, month, (last_day or day) + 1) if day else over
    return _Span(first, end, True) if 1 <= month <= 12 and first < end <= over else None


def _plus(day: int, unit: _Part, count: int) -> int:
    days, months = unit.value
    if not months:
        return day + days * count
    when = date.fromordinal(min(max(day, 1), _LAST_DAY))
    return _on(when.year, when.month + months * count, when.day)


def _unit(unit: _Part, day: int, by: int) -> _Span:
    """The week, weekend, month, quarter, year or decade of a day, or one before or after it."""
    days, months = unit.value
    if not months:
        sunday = day - (day - 1) % 7 + 6 + 7 * by
        return _Span(sunday + 1 - days, sunday + 1)
    when = date.fromordinal(min(max(day, 1), _LAST_DAY))
    at = (when.year * 12 + when.month - 1) // months + by
    return _Span(_on(0, at * months + 1), _on(0, (at + 1) * months + 1))


def _around(unit: _Part, day: int, low: int, high: int) -> _Span:
    """Some units from a day, half a unit more or less, as people count them."""
    slack = unit.value[0] // 2
    return _Span(_plus(day, unit, low) - slack, _plus(day, unit, high) + slack + 1)


# ---- words ----------------------------------------------------------------------------------------------------------

# Letter of the kind, what it is, its words with a value of one or more numbers. Those without words: 1 a number up to
# 31, 0 any other, Y a year of our times, B of others, Z one by its distance ("last year"), A a whole year, T a time, V
# one that hangs on the reference, D a decade, K one without its century, x any other word, a blank what separates.
_KINDS = """
R days from today: today=0 tonight=0 yesterday=-1 tomorrow=1
N time of day, as a unit: night=1,0 morning=1,0 afternoon=1,0 evening=1,0
W weekday: monday=0 tuesday=1 wednesday=2 thursday=3 friday=4 saturday=5 sunday=6 mon=0 tue=1 tues=1 wed=2 thu=3 thur=3
 thurs=3 fri=4
S season, month and day of its begin and of what follows (month 0 is the December before): spring=3,1,6,1
 summer=6,1,9,1 autumn=9,1,12,1 fall=9,1,12,1 winter=0,1,3,1
Q quarter: q1=1,1,4,1 q2=4,1,7,1 q3=7,1,10,1 q4=10,1,13,1 first_quarter=1,1,4,1 second_quarter=4,1,7,1
 third_quarter=7,1,10,1 fourth_quarter=10,1,13,1
H holiday: christmas=12,25,12,26 christmas_day=12,25,12,26 christmas_eve=12,24,12,25 xmas=12,25,12,26
 boxing_day=12,26,12,27 new_year's_eve=12,31,13,1 new_years_eve=12,31,13,1 new_year's_day=1,1,1,2 new_years_day=1,1,1,2
 halloween=10,31,11,1 valentine's_day=2,14,2,15 valentines_day=2,14,2,15 independence_day=7,4,7,5
 thanksgiving=11,22,11,29 easter=3,22,4,26
d day, the days and months of the unit: day=1,0 days=1,0
U longer unit: week=7,0 weeks=7,0 month=30,1 months=30,1 quarter=91,3 decade=3652,120 decades=3652,120
y year: year=365,12 years=365,12
E weekend: weekend=2,0
# count, at least and at most: a=1,1 an=1,1 one=1,1 two=2,2 three=3,3 four=4,4 five=5,5 six=6,6 seven=7,7 eight=8,8
 nine=9,9 ten=10,10 eleven=11,11 twelve=12,12 couple=2,3 few=2,5 several=3,7
e part of a time, from and to in twelfths: early=0,4 mid=4,8 late=8,12 first_week_of=0,3 last_week_of=9,12
c part, with "of" after it: beginning=0,3 start=0,3 middle=4,8 end=9,12 first_half=0,6 second_half=6,12
l: last
k: past
t: this
n: next coming upcoming
g: ago
p: in during throughout
P in, elsewhere: en em im nel в во
i: on
r: at over for around
o: of de del di do
h: the
s: since
<: before
u: until till by through
>: after
b: between
f: from
- to: to - -- – —
&: and
, comma: ,
. dot: .
j what has a number: room flat apartment suite page route highway bus flight number no version model windows office
w about nothing: did do does was were is are has have had will would can could should i you he she it we they me my your
 his her our their what who where which how why with or but that so as if when not than be been about there
"""
_MONTHS = """
M nothing else: january february _ _ _ _ july _ september october november december
m a name as well: jan feb mar april|apr _ june|jun jul august|aug sep|sept oct nov dec
v a verb as well: _ _ march _ may
G elsewhere, a word of English: _ _ mars _ mai|mayo
F elsewhere: januar|jänner|janvier|enero|gennaio|janeiro|январь|января|январе
 februar|février|fevrier|febrero|febbraio|fevereiro|февраль|февраля|феврале märz|marzo|março|март|марта|марте
 avril|abril|aprile|апрель|апреля|апреле maggio|maio|май|мая|мае juni|juin|junio|giugno|junho|июнь|июня|июне
 juli|juillet|julio|luglio|julho|июль|июля|июле août|aout|agosto|август|августа|августе
 septembre|septiembre|setiembre|settembre|setembro|сентябрь|сентября|сентябре
 oktober|octobre|octubre|ottobre|outubro|октябрь|октября|октябре novembre|noviembre|novembro|ноябрь|ноября|ноябре
 dezember|décembre|decembre|diciembre|dicembre|dezembro|декабрь|декабря|декабре
"""


def _words() -> Iterable[tuple[str, _Part]]:
    for kind, listed in re.findall(r"^(.)[^:]*: (.*(?:\n .*)*)", _KINDS, re.MULTILINE):
        for word, _, value in (each.replace("_", " ").partition("=") for each in listed.split()):
            numbers = tuple(map(int, value.split(","))) if value else ()
            days: tuple[_Span, ...] = ()
            if kind in "SQH":
                moved = {"easter": _easter, "thanksgiving": _thanksgiving}.get(word)
                days = (_Span(_on(_CYCLE_YEAR, *numbers[:2]), _on(_CYCLE_YEAR, *numbers[2:]), True, moved),)
            yield word, _Part(kind, numbers, days)
    for kind, listed in re.findall(r"^(.)[^:]*: (.*(?:\n .*)*)", _MONTHS, re.MULTILINE):
        for month, names in enumerate(listed.split(), 1):
            yield from ((word, _Part(kind, (month,))) for word in names.split("|"))


_WORDS = dict(_words())
_OTHER, _BREAK = _Part("x"), _Part(" ")
_TIMELY = frozenset("RNWSQHdUyEMmvFGTAYBDK")  # kinds of parts, one of which a text has that names a time
_NAMES_TIME = {word.split()[-1] for word, part in _WORDS.items() if part.kind in _TIMELY}
_DIGIT, _WORD = re.compile(r"\d"), re.compile(r"[^\W\d_]+")
_DATE = (
    r"\d{4}(?:-\d\d?-|/\d\d?/|\.\d\d?\.)\d\d?(?!\d)|\d{4}-\d\d(?![\d-])|\d{4}年(?:\d\d?月(?:\d\d?[日号])?)?"
    r"|\d\d?(?:-\d\d?-|/(?:\d\d?/)?|\.\d\d?\.)\d{4}(?![\d/])|\d\d?/\d\d?/\d\d(?![\d/])|\d\d?月(?:\d\d?[日号])?"
)
_NUMBER = r"\d+(?:st|nd|rd|th|er|o|a|'?s|)(?!\w)"  # 1º has become 1o
_TOKEN = re.compile(
    r"spring (?:roll|onion|water|clean)\w*|(?:summer|winter) (?:camp|school|job|house|coat|olympic|game)\w*"
    r"|easter (?:egg|island|bunn)\w*|[a-z_]++\d\w*|[$€£#]\d[\d.,]*"
    rf"|(?:{'|'.join(re.escape(word) for word in sorted(_WORDS, reverse=True) if ' ' in word)})(?!\w)|[^\W\d_]+"
    rf"|{_DATE}|\d+(?:[.,:/]\d+)+\w*|\d+%|{_NUMBER}|\d\w*|--|\S"
)
_IS_DATE, _IS_NUMBER = re.compile(_DATE), re.compile(_NUMBER)


def _part(word: str) -> _Part:
    if word in _WORDS:
        return _WORDS[word]
    if not word[0].isdecimal():
        return _OTHER if word[0].isalnum() else _BREAK
    numbers = [int(digits) for digits in re.findall(r"\d+", word)]
    if _IS_DATE.fullmatch(word):
        return _date_in_digits(word, numbers)
    if not _IS_NUMBER.fullmatch(word):
        return _OTHER
    number = numbers[0]
    if word[-1] == "s" and number % 10 == 0 and (number < 100 or number > 999):
        return _Part("D" if number > 99 else "K", (number,))
    kinds = (("1", 1, 31), ("Y", 1900, 2100), ("B", 1000, 2999))
    return _Part(next((kind for kind, low, high in kinds if low <= number <= high), "0"), (number, number))


def _date_in_digits(word: str, numbers: list[int]) -> _Part:
    """5/7/2023 is both 5 July and May 7, 7.5.2023 is 7 May."""
    if word[:4].isdecimal():
        year, readings = numbers[0], [numbers[1:]]
    elif "月" in word:
        return _time(_month(*numbers))
    else:
        *rest, year = numbers
        year += 2000 * (year < 100)
        readings = [rest[::-1], rest][: 1 if "." in word or rest == rest[::-1] else 2]
    if not readings[0]:
        return _Part("A", spans=(_Span(_on(year, 1), _on(year + 1, 1)),))
    return _time(*(_in_year(each, year) for reading in readings if (each := _month(*reading))))


# ---- phrases --------------------------------------------------------------------------------------------------------


def _time(*found: _Span | None) -> _Part:
    spans = tuple(span for span in found if span is not None)
    return _Part("T", spans=spans) if spans else _OTHER


def _make_anchor_part(*found: _Span) -> _Part:
    return _Part("V", spans=found)


def _the(parts: Sequence[_Part], kinds: str) -> _Part | None:
    """The last part of one of these kinds ("a few" is a few)."""
    return next((part for part in reversed(parts) if part.kind in kinds), None)


def _by(parts: Sequence[_Part]) -> int:
    """How many units on: last -1, this 0, next 1."""
    return -1 if _the(parts, "lk") else 1 if _the(parts, "n") else 0


def _count(parts: Sequence[_Part]) -> tuple[int, ...]:
    count = _the(parts, "#10")
    return count.value if count else (1, 1)


def _far_year(parts: Sequence[_Part], today: int) -> _Part:
    """``last year``, ``two years ago``: a year by its distance, so that May can stand beside it."""
    low, high = _count(parts)
    return _Part("Z", (-high, -low) if parts[-1].kind == "g" else (_by(parts), _by(parts)))


def _years(part: _Part, today: int) -> range:
    by = date.fromordinal(today).year if part.kind == "Z" else 0
    return range(by + part.value[0], by + part.value[-1] + 1)


def _year(parts: Sequence[_Part], today: int) -> _Part:
    years = _years(parts[0], today)
    return _Part("A" if len(years) == 1 else "T", spans=(_Span(_on(years[0], 1), _on(years[-1] + 1, 1)),))


def _calendar(parts: Sequence[_Part], today: int) -> _Part:
    """``7 May 2023``, ``May``, ``last summer``, ``Q3 2023``, ``Christmas``: of each year, unless a year is said."""
    named, year = _the(parts, "MmvFGSQH") or _OTHER, _the(parts, "YBZ")
    days = [part.value[0] for part in parts if part.kind == "1"]
    window = named.spans[0] if named.spans else _month(*named.value, *days)
    if window is None or year is None:
        turned = window and _the(parts, "ltnk") and _one_of(window, today, ("this", "next", "last")[_by(parts)])
        return _time(turned or window)
    return _time(*(_in_year(window, each) for each in _years(year, today)))


def _decade(parts: Sequence[_Part], today: int) -> _Part:
    year, now = parts[0].value[0], date.fromordinal(today).year
    year = year if year > 99 else now - (now - year) % 100
    return _time(_Span(_on(year, 1), _on(year + 10, 1)))


def _offset(parts: Sequence[_Part], today: int) -> _Part:
    day = today + (parts[0].value[0] if parts[0].value else _by(parts))
    return _make_anchor_part(_Span(day, day + 1))


def _trailing(parts: Sequence[_Part], today: int) -> _Part:
    """``the last two weeks``, ``the past year``, ``the next few days``: up to today, or from it."""
    other = _plus(today, parts[-1], _by(parts) * _count(parts)[1])
    return _make_anchor_part(_Span(min(today, other), max(today, other) + 1))


def _ago(parts: Sequence[_Part], today: int) -> _Part:
    low, high = _count(parts)
    return _make_anchor_part(_around(parts[-2], today, -high, -low))


def _this_unit(parts: Sequence[_Part], today: int) -> _Part:
    return _make_anchor_part(_unit(parts[-1], today, _by(parts)))


def _weekday(parts: Sequence[_Part], today: int) -> _Part:
    """``last Tuesday`` is of the seven days before today, ``this`` one of its week, ``on Tuesday`` on either side."""
    named, by = _the(parts, "W"), _by(parts)
    on = (named.value[0] if named else 0) - (today - 1) % 7
    if by:
        days = {today + by * ((by * on - 1) % 7 + 1)}
    else:
        days = {today + on} if _the(parts, "t") else {today - -on % 7, today + on % 7}
    return _make_anchor_part(*(_Span(day, day + 1) for day in sorted(days)))


def _slice(parts: Sequence[_Part], today: int) -> _Part:
    """``early May``, ``the end of 2022``, ``the beginning of the month``."""
    part = _the(parts, "ec") or _OTHER
    found = []
    for first, end, is_yearly, _ in parts[-1].spans or (_unit(parts[-1], today, 0),):
        low, high = (number * (end - first) for number in part.value)
        found.append(_Span(first + low // 12, first - -high // 12, is_yearly))
    return _time(*found)


def _range(parts: Sequence[_Part], today: int) -> _Part:
    """``between March and June 2023``: an end without a year takes the other's."""
    (begin, *_), right = (part.spans for part in parts if part.kind in "ATV")
    over = next((span for span in right if span.first >= begin.first), right[0])
    if begin.is_yearly and not over.is_yearly:
        begin = _one_of(begin, over.first, "begun")
    elif over.is_yearly and not begin.is_yearly:
        over = _one_of(over, begin.first, "next")
    before = 366 if begin.is_yearly and over.end <= begin.first else 0
    return _time(_Span(begin.first - before, over.end, begin.is_yearly))


def _anchored(parts: Sequence[_Part], today: int) -> _Part:
    """``two weeks before 11 August``, ``the Sunday before Easter``, ``last Friday, on 23 January``."""
    (anchor, *_), unit, count = parts[-1].spans, _the(parts[:-1], "UdyNWEV") or _OTHER, _the(parts, "#10")
    sign = 1 if _the(parts, ">") else -1
    if anchor.is_yearly and (unit.kind not in "UdN" or unit.value[1] or (count and count.kind == "0")):
        anchor = _one_of(anchor, today, "nearest")
    day = anchor.first if sign < 0 else anchor.end - 1
    if unit.again is not None:
        again = unit.again(day).spans
        return _time(*([span for span in again if span.end <= day] or again))
    if unit.kind in "WE":
        return (_weekday if unit.kind == "W" else _this_unit)((_Part("l" if sign < 0 else "n"), unit), day)
    if count is not None:
        low, high = sorted(sign * number for number in count.value)
        return _time(_around(unit, day, low, high)._replace(is_yearly=anchor.is_yearly))
    other = _plus(day, unit, sign)
    return _time(_Span(min(day + 1, other), max(day, other + 1), anchor.is_yearly))


def _open(parts: Sequence[_Part], today: int) -> _Part:
    """``since June``, ``before 2021``, ``until May 5``, ``after Easter``."""
    word, found = parts[0].kind, []
    for span in parts[-1].spans:
        one = _one_of(span, today, "begun" if word in "s>" else "nearest") if span.is_yearly else span
        edge = one.first if word in "s<" else one.end
        found.append(_Span(edge, _OPEN_END) if word in "s>" else _Span(-_OPEN_END, edge))
    return _time(*found)


_Handler = Callable[[Sequence[_Part], int], _Part]
_M, _N, _T, _YEAR = "[MmvFG]", "(?:#{1,2}o?|[10])", "h?[ATV]", "(?:,?o?[YBZ])"
_MONTHS_AND_DAYS = (
    rf"(?:W,?)?(?:(?:1-1|(?<=b)1&1|(?<=f)1u1|1)(?:h?o?{_M}{_YEAR}?|\.(?:[FG]{_YEAR}?|[Mm]{_YEAR}))"  # 3-7 of May
    rf"|(?:{_M}h?|m\.)1(?:-1(?!o?{_M}))?(?![UydE1]){_YEAR}?|(?:{_M}|m\.){_YEAR}"  # May 7, 2023
    rf"|[YBZ]p{_M}(?:h?1)?|[YBZ],?{_M}1)"  # in 2022 in May
    rf"|t?(?:[ltnk][MmFG]|[lk]v(?!i)|[nt]v(?![wxir]))(?:h?1(?![Uyd]))?|Z[MmF]|M"  # last May
    rf"|(?<=[ps<>ueP])[mF]|(?<=P)G|(?<=#)F|(?<=[ps<>ue])v(?!i)|(?<=[cU]o)[mvFG]|(?<=e-)[mvF]"  # in May, mid-May
    rf"|(?<=[fb])[mvF](?=[-&u])|[mvF](?=-{_M}|&{_M}{_YEAR})"  # from April on, May and June 2022
    rf"|(?<=[YBZMmv1T][-u])[mvF]|(?<=[pb]{_M}&)[mvF]|(?<=M&)[mF]"  # from April to May
)
_SEASONS = (
    rf"t?[ltnk]S(?!o){_YEAR}?|h?S{_YEAR}|Zh?S|[YBZ]ph?S"  # last summer, the summer of 2022
    r"|(?<=[psuebf<>])h?S(?!ox)|(?<=[ir])h?S(?![xo])|(?<=[cU]o)h?S|(?<=e-)S"  # in the fall, but not of Rome
    r"|(?<=[prfb]S[-&])h?S|(?<=[prfb]hS[-&])h?S"  # in spring and fall
)
_HOLIDAYS = rf"t?[ltnk]H{_YEAR}?|H{_YEAR}|[YBZ][pir]?H|(?<=[psiruebfo<>&-])H|H(?!x)"  # not a Christmas tree
_QUARTERS = rf"Q{_YEAR}|[YBZ]h?Q|[ltn]Q|(?<=[psuebf<>])h?Q"
_PHRASE_PATTERNS: list[dict[_Handler, str]] = [
    {_far_year: rf"(?:t|(?<!h)[ln])y(?!o)|{_N}yg"},
    {
        _calendar: f"{_MONTHS_AND_DAYS}|{_SEASONS}|{_HOLIDAYS}|{_QUARTERS}",
        _year: r"(?<=[psy<>ubfeo&-])[YB](?![UydEx])|(?<=[psy])Y(?![UydE])|(?<!j)Y(?![xUyjdE#10])|Z",
        _decade: r"D|(?<=[hep])K|(?<=[hp] )K|(?<=[hp]e-)K",
        _offset: r"RN?|[tl]N",
        _trailing: rf"t?[lkn]{_N}[Udy]|(?:t?k|hl)[Uy](?!o)",
        _ago: rf"{_N}[Ud]g",
        _this_unit: r"(?:[lt]|(?<!h)n|t?k)[UE](?!o)",
        _weekday: r"t?[ltnk]W(?!o)N?|(?<=[is<>u])WN?|WN|(?<=f)W(?=[-u]W)|(?<=b)W(?=&W)|(?<=fW[-u])W|(?<=bW&)W",
    },
    {_slice: r"h?(?:e|co)-?h?[ATV]|h?coh[UyE]"},
    {_range: rf"b{_T}&{_T}|f?{_T}[-u]{_T}"},
    {_anchored: rf"h?(?:{_N}?[Udy]|[NWE])[<>]{_T}|V[<i]h?T"},
    {_open: rf"[su<>]{_T}"},
]
"""What joins, a pass after the other; a phrase that is read wins over those below it."""
_PHRASES = [
    (
        re.compile(rf"(?![wx ])(?:{'|'.join(f'(?P<{each.__name__}>{kinds})' for each, kinds in said.items())})"),
        {each.__name__: each for each in said},
    )
    for said in _PHRASE_PATTERNS
]


def _join_parts(pattern: re.Pattern[str], handlers: dict[str, _Handler], parts: list[_Part], today: int) -> list[_Part]:
    joined: list[_Part] = []
    at = 0
    for match in pattern.finditer("".join([part.kind for part in parts])):
        handler, said = handlers[match.lastgroup or ""], parts[match.start() : match.end()]
        made = handler(said, today)
        if made is not _OTHER:
            joined += parts[at : match.start()]
            joined.append(made._replace(again=partial(handler, said)) if made.kind == "V" else made)
            at = match.end()
    return joined + parts[at:] if joined else parts


_ASKS_WHEN = re.compile(
    r"^\W*when\b[^,?]*\?\W*$|\bsince when\b|\bhow (?:long|recently|soon|many (?:days|weeks|months|years))\b"
    r"|\bwhen(?:'s|\s+(?:did|do|does|was|were|is|are|will|would|has|have|had|can|could|should|shall)\b|\W*$)"
    r"|\b(?:know|remember|recall|tell|told|say|said|ask|sure|remind)(?: me| us)?(?: exactly)? when\b"
    r"|\b(?:what|which)(?:'s| is| was)?(?: the)?(?: exact| same)?"
    r" (?:date|day|weekday|week|weekend|month|season|year|time|decade)s?\b"
    r"|^\W*(?:wann|quand|cuándo|cuando|quando|когда)\b|什么时候|什麼時候|何时|何時|哪天|哪年|いつ(?!も)"
)
