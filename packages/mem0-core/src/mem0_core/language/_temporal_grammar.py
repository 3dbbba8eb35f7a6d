"""Grammar of temporal expressions: words of a text become parts, and phrases of parts become spans of days.

Each word becomes a `Part` with a `Kind`. A kind is one letter, so that phrases are regular expressions over the string
of kinds; the grammar below writes them with the names of the kinds. The patterns are applied pass by pass, and a phrase
that is read becomes one part. The time taken is linear in the number of words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from functools import cache, partial
from typing import NamedTuple

LAST_DAY = date.max.toordinal()
OPEN_END = 10 * LAST_DAY
"""Ordinal at which an open span ends; negative where one begins."""
CYCLE_YEAR = 2000
"""Year that stands for every year in yearly spans; a leap year, so that it has 29 February."""


class Span(NamedTuple):
    """Days by their ordinals, `end` exclusive.

    Attributes:
        is_yearly: True for days of every year; they are then given in `CYCLE_YEAR`.
        moved: for a movable feast, its ordinal in a year.
    """

    first: int
    end: int
    is_yearly: bool = False
    moved: Callable[[int], int] | None = None


class Part(NamedTuple):
    """A word or phrase, with its kind and value.

    Attributes:
        reread: reads the phrase again relative to another day than the reference.
    """

    kind: str
    value: tuple[int, ...] = ()
    spans: tuple[Span, ...] = ()
    reread: Callable[[int], Part] | None = None


class Kind:
    """Kinds of parts, one letter each: the alphabet of the grammar."""

    # Results of phrases.
    TIME = "T"
    ANCHOR = "V"  # a time relative to the reference day
    WHOLE_YEAR = "A"
    AHEAD = "I"  # a time only in a text about the future: in two weeks, from May
    # Words that name a time.
    RELATIVE_DAY = "R"
    TIME_OF_DAY = "N"
    WEEKDAY = "W"
    SEASON = "S"
    QUARTER = "Q"
    HOLIDAY = "H"
    MONTH = "M"
    MONTH_OR_NAME = "m"
    MONTH_OR_VERB = "v"
    FOREIGN_MONTH = "F"
    FOREIGN_MONTH_OR_WORD = "G"
    # Units, with their length in days and in months.
    DAYS = "d"
    UNIT = "U"
    YEARS = "y"
    WEEKEND = "E"
    # Numbers.
    DAY_NUMBER = "1"  # 1 to 31
    YEAR = "Y"  # 1900 to 2100
    RARE_YEAR = "B"  # 1000 to 2999
    RELATIVE_YEAR = "Z"  # last year, two years ago
    NUMBER = "0"
    COUNT = "C"
    DECADE = "D"
    SHORT_DECADE = "K"  # without its century
    # Words that limit a time.
    EDGE = "e"  # early, mid, late
    PORTION = "c"  # the beginning of
    LAST = "l"
    PAST = "k"
    THIS = "t"
    NEXT = "n"
    AGO = "g"
    FROM_NOW = "2"
    # Prepositions and signs.
    IN = "p"
    FOREIGN_IN = "P"
    ON = "i"
    AT = "r"
    OF = "o"
    THE = "h"
    SINCE = "s"
    BEFORE = "b"
    UNTIL = "u"
    AFTER = "a"
    BETWEEN = "w"
    FROM = "f"
    TO = "X"
    AND = "J"
    COMMA = "L"
    DOT = "O"
    # Other words.
    NUMBERED = "j"  # words before a number that is no year: room 2021
    FUNCTION_WORD = "q"
    OTHER = "x"
    BREAK = "z"


_MONTH_KINDS = (
    Kind.MONTH,
    Kind.MONTH_OR_NAME,
    Kind.MONTH_OR_VERB,
    Kind.FOREIGN_MONTH,
    Kind.FOREIGN_MONTH_OR_WORD,
)
_CALENDAR_KINDS = (Kind.SEASON, Kind.QUARTER, Kind.HOLIDAY)
_TIMES = frozenset((Kind.WHOLE_YEAR, Kind.TIME, Kind.ANCHOR))


def find_time_word(text: str) -> int:
    """Return the index of the first word of a lower-case text that can name a time; its length if there is none."""
    return next((word.start() for word in _WORD.finditer(text) if word[0] in _TIME_WORDS), len(text))


def parse(text: str, today: int) -> list[Part]:
    """Return the parts of a lower-case text after all phrases are read; an empty list if it names no time.

    Args:
        today: ordinal of the reference day.
    """
    if _DIGIT.search(text) is None and _TIME_WORDS.isdisjoint(_WORD.findall(text)):
        return []
    parts = [_to_part(word) for word in _compile_words()[0].findall(text)]
    if _TIME_KINDS.isdisjoint(part.kind for part in parts):  # the digits are other numbers
        return []
    for pattern, handlers in _compile_passes():
        parts = _join_phrases(pattern, handlers, parts, today)
    return parts


# ---- days -----------------------------------------------------------------------------------------------------------


def to_ordinal(year: int, month: int, day: int = 1) -> int:
    """Return the ordinal of a day; months and days may overflow, and years are clipped to the calendar."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    if not 1 <= year <= 9999:
        return 1 if year < 1 else LAST_DAY + 1
    return date(year, month, 1).toordinal() + day - 1


def exists(span: Span) -> bool:
    """Return True if a span contains some, but not all days of the calendar."""
    return max(span.first, 1) < min(span.end, LAST_DAY + 1) and (span.first > 1 or span.end <= LAST_DAY)


def move_to_year(span: Span, year: int) -> Span:
    """Return a yearly span in one year."""
    if span.moved is not None and 1 <= year <= 9999:
        return Span(span.moved(year), span.moved(year) + 1)
    first, end = date.fromordinal(span.first), date.fromordinal(span.end)
    by = year - first.year
    return Span(to_ordinal(first.year + by, first.month, first.day), to_ordinal(end.year + by, end.month, end.day))


def _from_ordinal(day: int) -> date:
    return date.fromordinal(min(max(day, 1), LAST_DAY))


def _easter(year: int) -> int:
    """Return the ordinal of Western Easter (Meeus, Jones and Butcher)."""
    a, (b, c) = year % 19, divmod(year, 100)
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    left = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    return to_ordinal(year, 3, h + left - 7 * ((a + 11 * h + 22 * left) // 451) + 22)


def _thanksgiving(year: int) -> int:
    """Return the ordinal of the fourth Thursday of November, as in the United States."""
    first = to_ordinal(year, 11)
    return first + (4 - first) % 7 + 21


def _choose_year(span: Span, today: int, which: str) -> Span:
    """Return the `last`, last `begun`, `next`, `this` year's or nearest occurrence of a yearly span."""
    year = _from_ordinal(today).year
    found = [one for by in (-2, -1, 0, 1, 2) if exists(one := move_to_year(span, year + by))] or [Span(1, 1)]
    chosen = {
        "last": [one for one in found if one.end <= today][-1:],
        "begun": [one for one in found if one.first <= today][-1:],
        "next": [one for one in found if one.first > today][:1],
        "this": [one for one in found if one.first < to_ordinal(year + 1, 1) and one.end > to_ordinal(year, 1)],
    }
    return min(chosen.get(which) or found, key=lambda one: max(one.first - today, today + 1 - one.end))


def _month_span(month: int, day: int = 0, last_day: int = 0) -> Span | None:
    """Return a month of every year, a day of it, or several; None if there is no such month or day."""
    first, end_of_month = to_ordinal(CYCLE_YEAR, month, day or 1), to_ordinal(CYCLE_YEAR, month + 1)
    end = to_ordinal(CYCLE_YEAR, month, (last_day or day) + 1) if day else end_of_month
    return Span(first, end, True) if 1 <= month <= 12 and first < end <= end_of_month else None


def _add_units(day: int, unit: Part, count: int) -> int:
    days, months = unit.value
    if not months:
        return day + days * count
    when = _from_ordinal(day)
    return to_ordinal(when.year, when.month + months * count, when.day)


def _unit_span(unit: Part, day: int, by: int) -> Span:
    """Return the week, weekend, month, quarter, year or decade of a day, or one before or after it."""
    days, months = unit.value
    if not months:
        sunday = day - (day - 1) % 7 + 6 + 7 * by
        return Span(sunday + 1 - days, sunday + 1)
    when = _from_ordinal(day)
    number = (when.year * 12 + when.month - 1) // months + by
    return Span(to_ordinal(0, number * months + 1), to_ordinal(0, (number + 1) * months + 1))


def _span_around(unit: Part, day: int, low: int, high: int) -> Span:
    """Return the days that are `low` to `high` units from a day, give or take half a unit."""
    slack = unit.value[0] // 2
    return Span(_add_units(day, unit, low) - slack, _add_units(day, unit, high) + slack + 1)


# ---- words ----------------------------------------------------------------------------------------------------------

# Words, each with its value of one or more numbers; "_" is a space.
_VOCABULARY = {
    Kind.RELATIVE_DAY: "today=0 tonight=0 yesterday=-1 tomorrow=1",  # days from the reference
    Kind.TIME_OF_DAY: "night=1,0 morning=1,0 afternoon=1,0 evening=1,0",
    Kind.WEEKDAY: """
        monday=0 tuesday=1 wednesday=2 thursday=3 friday=4 saturday=5 sunday=6 mon=0 tue=1 tues=1 wed=2 thu=3 thur=3
        thurs=3 fri=4""",
    # Month and day of the first day, and of the day after the last; month 0 is the December before.
    Kind.SEASON: "spring=3,1,6,1 summer=6,1,9,1 autumn=9,1,12,1 fall=9,1,12,1 winter=0,1,3,1",
    Kind.QUARTER: """
        q1=1,1,4,1 q2=4,1,7,1 q3=7,1,10,1 q4=10,1,13,1 first_quarter=1,1,4,1 second_quarter=4,1,7,1
        third_quarter=7,1,10,1 fourth_quarter=10,1,13,1""",
    Kind.HOLIDAY: """
        christmas=12,25,12,26 christmas_day=12,25,12,26 christmas_eve=12,24,12,25 xmas=12,25,12,26
        boxing_day=12,26,12,27 new_year's_eve=12,31,13,1 new_years_eve=12,31,13,1 new_year's_day=1,1,1,2
        new_years_day=1,1,1,2 halloween=10,31,11,1 valentine's_day=2,14,2,15 valentines_day=2,14,2,15
        independence_day=7,4,7,5 thanksgiving=11,22,11,29 easter=3,22,4,26""",
    # Days and months of the unit.
    Kind.DAYS: "day=1,0 days=1,0",
    Kind.UNIT: "week=7,0 weeks=7,0 month=30,1 months=30,1 quarter=91,3 decade=3652,120 decades=3652,120",
    Kind.YEARS: "year=365,12 years=365,12",
    Kind.WEEKEND: "weekend=2,0",
    # At least and at most.
    Kind.COUNT: """
        a=1,1 an=1,1 one=1,1 two=2,2 three=3,3 four=4,4 five=5,5 six=6,6 seven=7,7 eight=8,8 nine=9,9 ten=10,10
        eleven=11,11 twelve=12,12 couple=2,3 few=2,5 several=3,7""",
    # From and to, in twelfths of a time.
    Kind.EDGE: "early=0,4 mid=4,8 late=8,12 first_week_of=0,3 last_week_of=9,12",
    Kind.PORTION: "beginning=0,3 start=0,3 middle=4,8 end=9,12 first_half=0,6 second_half=6,12",
    Kind.LAST: "last",
    Kind.PAST: "past",
    Kind.THIS: "this",
    Kind.NEXT: "next coming upcoming",
    Kind.AGO: "ago",
    Kind.FROM_NOW: "from_now from_today",
    Kind.IN: "in during throughout",
    Kind.FOREIGN_IN: "en em im nel в во",
    Kind.ON: "on",
    Kind.AT: "at over for around",
    Kind.OF: "of de del di do",
    Kind.THE: "the",
    Kind.SINCE: "since",
    Kind.BEFORE: "before",
    Kind.UNTIL: "until till by through",
    Kind.AFTER: "after",
    Kind.BETWEEN: "between",
    Kind.FROM: "from",
    Kind.TO: "to - -- – —",
    Kind.AND: "and",
    Kind.COMMA: ",",
    Kind.DOT: ".",
    Kind.NUMBERED: "room flat apartment suite page route highway bus flight number no version model windows office",
    Kind.FUNCTION_WORD: """
        about did do does was were is are has have had will would can could should i you he she it we they me my your
        his her our their what who where which how why with or but that so as if when not than be been about there""",
}
# Twelve months each, "_" for none.
_MONTHS = {
    Kind.MONTH: "january february _ _ _ _ july _ september october november december",
    Kind.MONTH_OR_NAME: "jan feb mar april|apr _ june|jun jul august|aug sep|sept oct nov dec",
    Kind.MONTH_OR_VERB: "_ _ march _ may",
    Kind.FOREIGN_MONTH_OR_WORD: "_ _ mars _ mai|mayo",
    Kind.FOREIGN_MONTH: """
        januar|jänner|janvier|enero|gennaio|janeiro|январь|января|январе
        februar|février|fevrier|febrero|febbraio|fevereiro|февраль|февраля|феврале märz|marzo|março|март|марта|марте
        avril|abril|aprile|апрель|апреля|апреле maggio|maio|май|мая|мае juni|juin|junio|giugno|junho|июнь|июня|июне
        juli|juillet|julio|luglio|julho|июль|июля|июле août|aout|agosto|август|августа|августе
        septembre|septiembre|setiembre|settembre|setembro|сентябрь|сентября|сентябре
        oktober|octobre|octubre|ottobre|outubro|октябрь|октября|октябре novembre|noviembre|novembro|ноябрь|ноября|ноябре
        dezember|décembre|decembre|diciembre|dicembre|dezembro|декабрь|декабря|декабре""",
}
_MOVABLE_FEASTS = {"easter": _easter, "thanksgiving": _thanksgiving}


def _read_vocabulary() -> Iterable[tuple[str, Part]]:
    for kind, entries in _VOCABULARY.items():
        for word, _, value in (entry.replace("_", " ").partition("=") for entry in entries.split()):
            numbers = tuple(map(int, value.split(","))) if value else ()
            spans: tuple[Span, ...] = ()
            if kind in _CALENDAR_KINDS:
                first, end = to_ordinal(CYCLE_YEAR, *numbers[:2]), to_ordinal(CYCLE_YEAR, *numbers[2:])
                spans = (Span(first, end, True, _MOVABLE_FEASTS.get(word)),)
            yield word, Part(kind, numbers, spans)
    for kind, entries in _MONTHS.items():
        for month, names in enumerate(entries.split(), 1):
            yield from ((word, Part(kind, (month,))) for word in names.split("|"))


_WORDS = dict(_read_vocabulary())
_OTHER, _BREAK = Part(Kind.OTHER), Part(Kind.BREAK)
_TIME_KINDS = frozenset(
    (
        *(Kind.RELATIVE_DAY, Kind.TIME_OF_DAY, Kind.WEEKDAY, Kind.DAYS, Kind.UNIT, Kind.YEARS, Kind.WEEKEND),
        *(*_CALENDAR_KINDS, *_MONTH_KINDS, *_TIMES, Kind.YEAR, Kind.RARE_YEAR, Kind.DECADE, Kind.SHORT_DECADE),
    )
)
"""Kinds of which a text has at least one if it names a time."""
_TIME_WORDS = {word.split()[-1] for word, part in _WORDS.items() if part.kind in _TIME_KINDS}
_DIGIT, _WORD = re.compile(r"\d"), re.compile(r"[^\W\d_]+")
_DATE = (
    r"\d{4}(?:-\d\d?-|/\d\d?/|\.\d\d?\.)\d\d?(?!\d)|\d{4}-\d\d(?![\d-])|\d{4}年(?:\d\d?月(?:\d\d?[日号])?)?"
    r"|\d\d?(?:-\d\d?-|/(?:\d\d?/)?|\.\d\d?\.)\d{4}(?![\d/])|\d\d?/\d\d?/\d\d(?![\d/])|\d\d?月(?:\d\d?[日号])?"
)
_NUMBER = r"\d+(?:st|nd|rd|th|er|o|a|'?s|)(?!\w)"  # 1º has become 1o
_TOKEN = (
    r"spring (?:roll|onion|water|clean)\w*|(?:summer|winter) (?:camp|school|job|house|coat|olympic|game)\w*"
    r"|easter (?:egg|island|bunn)\w*|[a-z_]++\d\w*|[$€£#]\d[\d.,]*"
    rf"|(?:{'|'.join(re.escape(word) for word in sorted(_WORDS, reverse=True) if ' ' in word)})(?!\w)|[^\W\d_]+"
    rf"|{_DATE}|\d+(?:[.,:/]\d+)+\w*|\d+%|{_NUMBER}|\d\w*|--|\S"
)


@cache
def _compile_words() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a token, a date and a number, compiled at the first text that may name a time."""
    return re.compile(_TOKEN), re.compile(_DATE), re.compile(_NUMBER)


def _to_part(word: str) -> Part:
    if word in _WORDS:
        return _WORDS[word]
    if not word[0].isdecimal():
        return _OTHER if word[0].isalnum() else _BREAK
    numbers = [int(digits) for digits in re.findall(r"\d+", word)]
    _, date_pattern, number_pattern = _compile_words()
    if date_pattern.fullmatch(word):
        return _read_date(word, numbers)
    if not number_pattern.fullmatch(word):
        return _OTHER
    number = numbers[0]
    if word[-1] == "s" and number % 10 == 0 and (number < 100 or number > 999):
        return Part(Kind.DECADE if number > 99 else Kind.SHORT_DECADE, (number,))
    kinds = ((Kind.DAY_NUMBER, 1, 31), (Kind.YEAR, 1900, 2100), (Kind.RARE_YEAR, 1000, 2999))
    return Part(next((kind for kind, low, high in kinds if low <= number <= high), Kind.NUMBER), (number, number))


def _read_date(word: str, numbers: list[int]) -> Part:
    """Read a date in digits: 5/7/2023 is both 5 July and May 7, 7.5.2023 is 7 May."""
    if word[:4].isdecimal():
        year, readings = numbers[0], [numbers[1:]]
    elif "月" in word:
        return _time(_month_span(*numbers))
    else:
        *rest, year = numbers
        year += 2000 * (year < 100)
        readings = [rest[::-1], rest][: 1 if "." in word or rest == rest[::-1] else 2]
    if not readings[0]:
        return Part(Kind.WHOLE_YEAR, spans=(Span(to_ordinal(year, 1), to_ordinal(year + 1, 1)),))
    return _time(*(move_to_year(each, year) for reading in readings if (each := _month_span(*reading))))


# ---- phrases --------------------------------------------------------------------------------------------------------


def _time(*found: Span | None) -> Part:
    spans = tuple(span for span in found if span is not None)
    return Part(Kind.TIME, spans=spans) if spans else _OTHER


def _anchor(*found: Span) -> Part:
    return Part(Kind.ANCHOR, spans=found)


def _find_last(parts: Sequence[Part], *kinds: str) -> Part | None:
    """Return the last part of one of these kinds ("a few" is a few)."""
    return next((part for part in reversed(parts) if part.kind in kinds), None)


def _direction(parts: Sequence[Part]) -> int:
    """Return the direction of a phrase: last -1, this 0, next 1."""
    return -1 if _find_last(parts, Kind.LAST, Kind.PAST) else 1 if _find_last(parts, Kind.NEXT) else 0


def _amount(parts: Sequence[Part]) -> tuple[int, ...]:
    count = _find_last(parts, *_AMOUNTS)
    return count.value if count else (1, 1)


_UNITS = (Kind.UNIT, Kind.DAYS, Kind.YEARS)
_AMOUNTS = (Kind.COUNT, Kind.DAY_NUMBER, Kind.NUMBER)


def _relative_year(parts: Sequence[Part], today: int) -> Part:
    """Read ``last year`` and ``two years ago`` as a distance, so that a month can follow."""
    low, high = _amount(parts)
    direction = _direction(parts)
    return Part(Kind.RELATIVE_YEAR, (-high, -low) if parts[-1].kind == Kind.AGO else (direction, direction))


def _years(part: Part, today: int) -> range:
    by = date.fromordinal(today).year if part.kind == Kind.RELATIVE_YEAR else 0
    return range(by + part.value[0], by + part.value[-1] + 1)


def _year(parts: Sequence[Part], today: int) -> Part:
    years = _years(parts[0], today)
    kind = Kind.WHOLE_YEAR if len(years) == 1 else Kind.TIME
    return Part(kind, spans=(Span(to_ordinal(years[0], 1), to_ordinal(years[-1] + 1, 1)),))


def _calendar(parts: Sequence[Part], today: int) -> Part:
    """Read ``7 May 2023``, ``May``, ``last summer``, ``Q3 2023``, ``Christmas``: yearly, unless a year is given."""
    named = _find_last(parts, *_MONTH_KINDS, *_CALENDAR_KINDS) or _OTHER
    year = _find_last(parts, Kind.YEAR, Kind.RARE_YEAR, Kind.RELATIVE_YEAR)
    days = [part.value[0] for part in parts if part.kind == Kind.DAY_NUMBER]
    window = named.spans[0] if named.spans else _month_span(*named.value, *days)
    if window is None:
        return _OTHER
    if year is not None:
        return _time(*(move_to_year(window, each) for each in _years(year, today)))
    if _find_last(parts, Kind.LAST, Kind.PAST, Kind.THIS, Kind.NEXT):
        return _time(_choose_year(window, today, ("this", "next", "last")[_direction(parts)]))
    return _time(window)


def _decade(parts: Sequence[Part], today: int) -> Part:
    year, now = parts[0].value[0], date.fromordinal(today).year
    year = year if year > 99 else now - (now - year) % 100
    return _time(Span(to_ordinal(year, 1), to_ordinal(year + 10, 1)))


def _relative_day(parts: Sequence[Part], today: int) -> Part:
    day = today + (parts[0].value[0] if parts[0].value else _direction(parts))
    return _anchor(Span(day, day + 1))


def _trailing(parts: Sequence[Part], today: int) -> Part:
    """Read ``the last two weeks``, ``the past year``, ``the next few days``: up to today, or from it."""
    other = _add_units(today, parts[-1], _direction(parts) * _amount(parts)[1])
    return _anchor(Span(min(today, other), max(today, other) + 1))


def _ago(parts: Sequence[Part], today: int) -> Part:
    low, high = _amount(parts)
    return _anchor(_span_around(parts[-2], today, -high, -low))


def _from_now(parts: Sequence[Part], today: int) -> Part:
    """Read ``two weeks from now``, ``the week after next``."""
    unit = _find_last(parts, *_UNITS) or _OTHER
    if parts[-1].kind == Kind.NEXT:
        return _anchor(_unit_span(unit, today, 2))
    return _anchor(_span_around(unit, today, *_amount(parts)))


def _ahead(parts: Sequence[Part], today: int) -> Part:
    """Read ``in two weeks``, ``from May``: after a verb of the past, those are a duration and a sender."""
    read = _from_now if _find_last(parts, *_UNITS) else _calendar
    return read(parts, today)._replace(kind=Kind.AHEAD)


def _this_unit(parts: Sequence[Part], today: int) -> Part:
    return _anchor(_unit_span(parts[-1], today, _direction(parts)))


def _weekday(parts: Sequence[Part], today: int) -> Part:
    """Read ``last Tuesday`` of the seven days before, ``this Tuesday`` of the week, ``on Tuesday`` on either side."""
    named, direction = _find_last(parts, Kind.WEEKDAY), _direction(parts)
    on = (named.value[0] if named else 0) - (today - 1) % 7
    if direction:
        days = {today + direction * ((direction * on - 1) % 7 + 1)}
    else:
        days = {today + on} if _find_last(parts, Kind.THIS) else {today - -on % 7, today + on % 7}
    return _anchor(*(Span(day, day + 1) for day in sorted(days)))


def _portion(parts: Sequence[Part], today: int) -> Part:
    """Read ``early May``, ``the end of 2022``, ``the beginning of the month``."""
    part = _find_last(parts, Kind.EDGE, Kind.PORTION) or _OTHER
    found = []
    for first, end, is_yearly, _ in parts[-1].spans or (_unit_span(parts[-1], today, 0),):
        low, high = (number * (end - first) for number in part.value)
        found.append(Span(first + low // 12, first - -high // 12, is_yearly))
    return _time(*found)


def _range(parts: Sequence[Part], today: int) -> Part:
    """Read ``between March and June 2023``: an end without a year takes the other's."""
    (begin, *_), right = (part.spans for part in parts if part.kind in _TIMES)
    over = next((span for span in right if span.first >= begin.first), right[0])
    if begin.is_yearly and not over.is_yearly:
        begin = _choose_year(begin, over.first, "begun")
    elif over.is_yearly and not begin.is_yearly:
        over = _choose_year(over, begin.first, "next")
    before = 366 if begin.is_yearly and over.end <= begin.first else 0
    return _time(Span(begin.first - before, over.end, begin.is_yearly))


def _anchored(parts: Sequence[Part], today: int) -> Part:
    """Read ``two weeks before 11 August``, ``the Sunday before Easter``, ``last Friday, on 23 January``."""
    (anchor, *_), count = parts[-1].spans, _find_last(parts, *_AMOUNTS)
    unit = _find_last(parts[:-1], *_ANCHORED_KINDS) or _OTHER
    sign = 1 if _find_last(parts, Kind.AFTER) else -1
    is_in_days = unit.kind in (Kind.UNIT, Kind.DAYS, Kind.TIME_OF_DAY) and not unit.value[1]
    if anchor.is_yearly and (not is_in_days or (count and count.kind == Kind.NUMBER)):
        anchor = _choose_year(anchor, today, "nearest")
    day = anchor.first if sign < 0 else anchor.end - 1
    if unit.reread is not None:
        spans = unit.reread(day).spans
        return _time(*([span for span in spans if span.end <= day] or spans))
    if unit.kind in (Kind.WEEKDAY, Kind.WEEKEND):
        direction = Part(Kind.LAST if sign < 0 else Kind.NEXT)
        return (_weekday if unit.kind == Kind.WEEKDAY else _this_unit)((direction, unit), day)
    if count is not None:
        low, high = sorted(sign * number for number in count.value)
        return _time(_span_around(unit, day, low, high)._replace(is_yearly=anchor.is_yearly))
    other = _add_units(day, unit, sign)
    return _time(Span(min(day + 1, other), max(day, other + 1), anchor.is_yearly))


_ANCHORED_KINDS = (
    *(Kind.UNIT, Kind.DAYS, Kind.YEARS, Kind.TIME_OF_DAY),
    *(Kind.WEEKEND, Kind.WEEKDAY, Kind.ANCHOR),
)


def _open(parts: Sequence[Part], today: int) -> Part:
    """Read ``since June``, ``before 2021``, ``until May 5``, ``after Easter``."""
    word, found = parts[0].kind, []
    is_open_after = word in (Kind.SINCE, Kind.AFTER)
    for span in parts[-1].spans:
        one = _choose_year(span, today, "begun" if is_open_after else "nearest") if span.is_yearly else span
        edge = one.first if word in (Kind.SINCE, Kind.BEFORE) else one.end
        found.append(Span(edge, OPEN_END) if is_open_after else Span(-OPEN_END, edge))
    return _time(*found)


# ---- grammar --------------------------------------------------------------------------------------------------------

# Patterns are regular expressions over kinds: names in capitals stand for a kind or one of these macros, white space
# and comments are ignored. A lookbehind keeps the words before a phrase out of it.
_MACROS = {
    "ANY_MONTH": "[MONTH MONTH_OR_NAME MONTH_OR_VERB FOREIGN_MONTH FOREIGN_MONTH_OR_WORD]",
    "ANY_YEAR": "[YEAR RARE_YEAR RELATIVE_YEAR]",
    "OF_YEAR": "(?: COMMA? OF? [YEAR RARE_YEAR RELATIVE_YEAR] )",
    "AMOUNT": "(?: COUNT{1,2} OF? | [DAY_NUMBER NUMBER] )",
    "SPAN": "THE? [WHOLE_YEAR TIME ANCHOR]",
}
_MONTHS_AND_DAYS = """
    (?: WEEKDAY COMMA? )?                                                       # Sunday, 3-7 of May 2023
    (?: (?: DAY_NUMBER TO DAY_NUMBER | (?<=BETWEEN) DAY_NUMBER AND DAY_NUMBER
          | (?<=FROM) DAY_NUMBER UNTIL DAY_NUMBER | DAY_NUMBER )
        (?: THE? OF? ANY_MONTH OF_YEAR?
          | DOT (?: [FOREIGN_MONTH FOREIGN_MONTH_OR_WORD] OF_YEAR? | [MONTH MONTH_OR_NAME] OF_YEAR ) )
      | (?: ANY_MONTH THE? | MONTH_OR_NAME DOT ) DAY_NUMBER                     # May 7, 2023
        (?: TO DAY_NUMBER (?! OF? ANY_MONTH ) )? (?! [UNIT YEARS DAYS WEEKEND DAY_NUMBER] ) OF_YEAR?
      | (?: ANY_MONTH | MONTH_OR_NAME DOT ) OF_YEAR
      | ANY_YEAR IN ANY_MONTH (?: THE? DAY_NUMBER )?                            # in 2022 in May
      | ANY_YEAR COMMA? ANY_MONTH DAY_NUMBER )
  | THIS?                                                                       # last May
    (?: [LAST THIS NEXT PAST] [MONTH MONTH_OR_NAME FOREIGN_MONTH FOREIGN_MONTH_OR_WORD]
      | [LAST PAST] MONTH_OR_VERB (?! ON )
      | [NEXT THIS] MONTH_OR_VERB (?! [FUNCTION_WORD OTHER ON AT] ) )
    (?: THE? DAY_NUMBER (?! [UNIT YEARS DAYS] ) )?
  | RELATIVE_YEAR [MONTH MONTH_OR_NAME FOREIGN_MONTH]
  | MONTH
  | (?<= [IN SINCE BEFORE AFTER UNTIL EDGE FOREIGN_IN] ) [MONTH_OR_NAME FOREIGN_MONTH]      # in May
  | (?<= FOREIGN_IN ) FOREIGN_MONTH_OR_WORD
  | (?<= COUNT ) FOREIGN_MONTH
  | (?<= [IN SINCE BEFORE AFTER UNTIL EDGE] ) MONTH_OR_VERB (?! ON )
  | (?<= [PORTION UNIT] OF ) [MONTH_OR_NAME MONTH_OR_VERB FOREIGN_MONTH FOREIGN_MONTH_OR_WORD]
  | (?<= EDGE TO ) [MONTH_OR_NAME MONTH_OR_VERB FOREIGN_MONTH]                              # mid-May
  | (?<= [FROM BETWEEN] ) [MONTH_OR_NAME MONTH_OR_VERB FOREIGN_MONTH] (?= [TO AND UNTIL] )  # from April on
  | [MONTH_OR_NAME MONTH_OR_VERB FOREIGN_MONTH] (?= TO ANY_MONTH | AND ANY_MONTH OF_YEAR )  # May and June 2022
  | (?<= [YEAR RARE_YEAR RELATIVE_YEAR MONTH MONTH_OR_NAME MONTH_OR_VERB DAY_NUMBER TIME] [TO UNTIL] )
    [MONTH_OR_NAME MONTH_OR_VERB FOREIGN_MONTH]                                             # from April to May
  | (?<= [IN BETWEEN] ANY_MONTH AND ) [MONTH_OR_NAME MONTH_OR_VERB FOREIGN_MONTH]
  | (?<= MONTH AND ) [MONTH_OR_NAME FOREIGN_MONTH]
"""
_SEASONS = """
    THIS? [LAST THIS NEXT PAST] SEASON (?! OF ) OF_YEAR?                        # last summer
  | THE? SEASON OF_YEAR                                                         # the summer of 2022
  | RELATIVE_YEAR THE? SEASON
  | ANY_YEAR IN THE? SEASON
  | (?<= [IN SINCE UNTIL EDGE BETWEEN FROM BEFORE AFTER] ) THE? SEASON (?! OF OTHER )       # but not the fall of Rome
  | (?<= [ON AT] ) THE? SEASON (?! [OTHER OF] )
  | (?<= [PORTION UNIT] OF ) THE? SEASON
  | (?<= EDGE TO ) SEASON
  | (?<= [IN AT FROM BETWEEN] SEASON [TO AND] ) THE? SEASON                     # in spring and fall
  | (?<= [IN AT FROM BETWEEN] THE SEASON [TO AND] ) THE? SEASON
"""
_HOLIDAYS = """
    THIS? [LAST THIS NEXT PAST] HOLIDAY OF_YEAR?
  | HOLIDAY OF_YEAR
  | ANY_YEAR [IN ON AT]? HOLIDAY
  | (?<= [IN SINCE ON AT UNTIL EDGE BETWEEN FROM OF BEFORE AFTER AND TO] ) HOLIDAY
  | HOLIDAY (?! OTHER )                                                         # not a Christmas tree
"""
_QUARTERS = """
    QUARTER OF_YEAR
  | ANY_YEAR THE? QUARTER
  | [LAST THIS NEXT] QUARTER
  | (?<= [IN SINCE UNTIL EDGE BETWEEN FROM BEFORE AFTER] ) THE? QUARTER
"""
_Handler = Callable[[Sequence[Part], int], Part]
_GRAMMAR: tuple[dict[_Handler, str], ...] = (
    {_relative_year: "(?: THIS | (?<!THE) [LAST NEXT] ) YEARS (?! OF ) | AMOUNT YEARS AGO"},
    {
        _calendar: "|".join((_MONTHS_AND_DAYS, _SEASONS, _HOLIDAYS, _QUARTERS)),
        _year: """
            (?<= [IN SINCE YEARS BEFORE AFTER UNTIL BETWEEN FROM EDGE OF AND TO] )
            [YEAR RARE_YEAR] (?! [UNIT YEARS DAYS WEEKEND OTHER] )
          | (?<= [IN SINCE YEARS] ) YEAR (?! [UNIT YEARS DAYS WEEKEND] )
          | (?<! NUMBERED ) YEAR (?! [OTHER UNIT YEARS NUMBERED DAYS WEEKEND COUNT DAY_NUMBER NUMBER] )
          | RELATIVE_YEAR""",
        _decade: """
            DECADE
          | (?<= [THE EDGE IN] ) SHORT_DECADE
          | (?<= [THE IN] BREAK ) SHORT_DECADE
          | (?<= [THE IN] EDGE TO ) SHORT_DECADE""",
        _relative_day: "RELATIVE_DAY TIME_OF_DAY? | [THIS LAST] TIME_OF_DAY",
        _trailing: """
            THIS? [LAST PAST NEXT] AMOUNT [UNIT DAYS YEARS]
          | (?: THIS? PAST | THE LAST ) [UNIT YEARS] (?! OF )""",
        _ago: "AMOUNT [UNIT DAYS] AGO",
        _from_now: "AMOUNT [UNIT DAYS YEARS] FROM_NOW | THE? UNIT AFTER NEXT",
        _ahead: """
            (?<= IN ) AMOUNT [UNIT DAYS YEARS] (?! [AGO OF BEFORE AFTER] )
          | (?<= FROM ) [MONTH_OR_NAME MONTH_OR_VERB] (?! OTHER )""",
        _this_unit: "(?: [LAST THIS] | (?<!THE) NEXT | THIS? PAST ) [UNIT WEEKEND] (?! OF )",
        _weekday: """
            THIS? [LAST THIS NEXT PAST] WEEKDAY (?! OF ) TIME_OF_DAY?
          | (?<= [ON SINCE BEFORE AFTER UNTIL] ) WEEKDAY TIME_OF_DAY?
          | WEEKDAY TIME_OF_DAY
          | (?<= FROM ) WEEKDAY (?= [TO UNTIL] WEEKDAY )
          | (?<= BETWEEN ) WEEKDAY (?= AND WEEKDAY )
          | (?<= FROM WEEKDAY [TO UNTIL] ) WEEKDAY
          | (?<= BETWEEN WEEKDAY AND ) WEEKDAY""",
    },
    {
        _portion: """
            THE? (?: EDGE | PORTION OF ) TO? THE? [WHOLE_YEAR TIME ANCHOR]
          | THE? PORTION OF THE [UNIT YEARS WEEKEND]"""
    },
    {_range: "BETWEEN SPAN AND SPAN | FROM? SPAN [TO UNTIL] SPAN"},
    {
        _anchored: """
            THE? (?: AMOUNT? [UNIT DAYS YEARS] | [TIME_OF_DAY WEEKDAY WEEKEND] ) [BEFORE AFTER] SPAN
          | ANCHOR [BEFORE ON] THE? TIME"""
    },
    {_open: "[SINCE UNTIL BEFORE AFTER] SPAN"},
)
"""Phrases of each pass, with their readers; of two phrases at one place, the first that is listed wins."""


def _compile(phrases: dict[_Handler, str]) -> tuple[re.Pattern[str], dict[str, _Handler]]:
    groups = "|".join(f"(?P<{handler.__name__}>{_to_regex(phrase)})" for handler, phrase in phrases.items())
    pattern = re.compile(_to_regex("(?! [FUNCTION_WORD OTHER BREAK] )") + f"(?:{groups})")
    return pattern, {handler.__name__: handler for handler in phrases}


def _to_regex(phrase: str) -> str:
    """Replace the names in a phrase by the letters of their kinds."""
    phrase = re.sub(r"#.*", "", phrase)
    phrase = re.sub(r"[A-Z_]{2,}", lambda name: _MACROS.get(name[0], name[0]), phrase)
    phrase = re.sub(r"[A-Z_]{2,}", lambda name: getattr(Kind, name[0]), phrase)
    return re.sub(r"\s+", "", phrase)


@cache
def _compile_passes() -> tuple[tuple[re.Pattern[str], dict[str, _Handler]], ...]:
    return tuple(map(_compile, _GRAMMAR))


def _join_phrases(pattern: re.Pattern[str], handlers: dict[str, _Handler], parts: list[Part], today: int) -> list[Part]:
    """Replace each phrase that a handler reads by one part."""
    joined: list[Part] = []
    at = 0
    for match in pattern.finditer("".join([part.kind for part in parts])):
        handler, phrase = handlers[match.lastgroup or ""], parts[match.start() : match.end()]
        made = handler(phrase, today)
        if made is not _OTHER:
            joined += parts[at : match.start()]
            joined.append(made._replace(reread=partial(handler, phrase)) if made.kind == Kind.ANCHOR else made)
            at = match.end()
    return joined + parts[at:] if joined else parts
