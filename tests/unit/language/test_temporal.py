"""Times read from a query, words that are no times, and scores of days."""

from __future__ import annotations

import sys
from datetime import date, datetime, timedelta
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mem0_core.domain.records import DateRange
from mem0_core.language.temporal import (
    TimeSpan,
    find_event_days,
    is_about_time,
    parse_time_spans,
    score_day,
    score_days,
)

TODAY = date(2023, 10, 18)
"""A Wednesday, after summer and before winter."""


def read(text: str, reference: date = TODAY) -> list[str]:
    """The spans of a text: a day, or ``first..last`` with nothing where it is open; yearly ones bear no year."""
    return [_shown(span) for span in parse_time_spans(text, reference)]


def _shown(span: TimeSpan) -> str:
    days = [day.isoformat()[5 if span.is_yearly else 0 :] if day else "" for day in (span.first, span.last)]
    return ("every " if span.is_yearly else "") + (days[0] if days[0] == days[1] else "..".join(days))


DATES = {
    "What happened on 2023-05-07?": ["2023-05-07"],
    "What was said at 2023-05-07T10:00:00Z?": ["2023-05-07"],
    "the 2023/05/07 backup": ["2023-05-07"],
    "since the 7.5.2023": ["2023-05-07.."],
    "on 13/7/2023": ["2023-07-13"],
    "on 7/13/2023": ["2023-07-13"],
    "on 7/13/23": ["2023-07-13"],
    "on 5-5-2023": ["2023-05-05"],
    "in 2023-05": ["2023-05-01..2023-05-31"],
    "in 05/2023": ["2023-05-01..2023-05-31"],
    "What did we do on 7 May 2023?": ["2023-05-07"],
    "the 7th of May, 2023": ["2023-05-07"],
    "May 7th, 2023": ["2023-05-07"],
    "may 7 2023": ["2023-05-07"],
    "Sunday, May 7, 2023": ["2023-05-07"],
    "1 February, 2023": ["2023-02-01"],
    "29 Feb 2024": ["2024-02-29"],
    "What did Joanna do in MAY 2022?": ["2022-05-01..2022-05-31"],
    "Sept. 2022": ["2022-09-01..2022-09-30"],
    "in February 2024": ["2024-02-01..2024-02-29"],
    "in 2022": ["2022-01-01..2022-12-31"],
    "2022": ["2022-01-01..2022-12-31"],
    "In 2022 Melanie moved. Where to?": ["2022-01-01..2022-12-31"],
    "the war of 1812": ["1812-01-01..1812-12-31"],
    "in 1492": ["1492-01-01..1492-12-31"],
    "in 2021 and 2022": ["2021-01-01..2021-12-31", "2022-01-01..2022-12-31"],
    "What did I sell in Q3 2023?": ["2023-07-01..2023-09-30"],
    "the fourth quarter of 2022": ["2022-10-01..2022-12-31"],
    "What state did she visit in summer 2021?": ["2021-06-01..2021-08-31"],
    "the summer of 2022": ["2022-06-01..2022-08-31"],
    "winter 2022": ["2022-12-01..2023-02-28"],
    "winter 2023": ["2023-12-01..2024-02-29"],
    "the 1990s": ["1990-01-01..1999-12-31"],
    "music of the '90s": ["1990-01-01..1999-12-31"],
    "in the early 1990s": ["1990-01-01..1993-05-02"],
    "the 10s": ["2010-01-01..2019-12-31"],
    "Christmas 2022": ["2022-12-25"],
    "New Year’s Eve 2022": ["2022-12-31"],
    "the 4th of July 2021": ["2021-07-04"],
    "Thanksgiving 2022": ["2022-11-24"],
    "Thanksgiving 2024": ["2024-11-28"],
    "Easter 2023": ["2023-04-09"],
    "Easter 2038": ["2038-04-25"],
    "Easter 1954": ["1954-04-18"],
}
YEARLY = {
    "Which outdoor spot did Joanna visit in May?": ["every 05-01..05-31"],
    "my plans for May 7": ["every 05-07"],
    "May the 4th": ["every 05-04"],
    "Oct. 5": ["every 10-05"],
    "on 29 February": ["every 02-29"],
    "What happened in March?": ["every 03-01..03-31"],
    "in April and May": ["every 04-01..04-30", "every 05-01..05-31"],
    "October": ["every 10-01..10-31"],
    "in Q4": ["every 10-01..12-31"],
    "What are Caroline's plans for the summer?": ["every 06-01..08-31"],
    "in spring": ["every 03-01..05-31"],
    "during the fall": ["every 09-01..11-30"],
    "in winter": ["every 12-01..02-29"],
    "What did I get for Christmas?": ["every 12-25"],
    "Christmas Eve with Bob": ["every 12-24"],
    "on Valentine's Day": ["every 02-14"],
    "Halloween": ["every 10-31"],
    "at Easter": ["every 03-22..04-25"],
    "from 3 to 9 May": ["every 05-03..05-09"],
    "April to June": ["every 04-01..06-30"],
    "from November to February": ["every 11-01..02-29"],
    "early June": ["every 06-01..06-10"],
    "the week before Christmas": ["every 12-18..12-24"],
}
RELATIVE = {
    "What did I say today?": ["2023-10-18"],
    "tonight": ["2023-10-18"],
    "this morning": ["2023-10-18"],
    "What did Joanna write yesterday?": ["2023-10-17"],
    "last night": ["2023-10-17"],
    "tomorrow evening": ["2023-10-19"],
    "the day before yesterday": ["2023-10-16"],
    "the day after tomorrow": ["2023-10-20"],
    "this week": ["2023-10-16..2023-10-22"],
    "What did she find last week that she liked?": ["2023-10-09..2023-10-15"],
    "next week": ["2023-10-23..2023-10-29"],
    "this month": ["2023-10-01..2023-10-31"],
    "last month": ["2023-09-01..2023-09-30"],
    "next month": ["2023-11-01..2023-11-30"],
    "last quarter": ["2023-07-01..2023-09-30"],
    "this year": ["2023-01-01..2023-12-31"],
    "What did they see last year?": ["2022-01-01..2022-12-31"],
    "next year": ["2024-01-01..2024-12-31"],
    "last decade": ["2010-01-01..2019-12-31"],
    "this weekend": ["2023-10-21..2023-10-22"],
    "What event did John volunteer at last weekend?": ["2023-10-14..2023-10-15"],
    "next weekend": ["2023-10-28..2023-10-29"],
    "last Tuesday": ["2023-10-17"],
    "last Wednesday": ["2023-10-11"],
    "last Thursday": ["2023-10-12"],
    "next Friday": ["2023-10-20"],
    "next Wednesday": ["2023-10-25"],
    "this Friday": ["2023-10-20"],
    "on Monday": ["2023-10-16", "2023-10-23"],
    "on Wednesday": ["2023-10-18"],
    "Friday night": ["2023-10-13", "2023-10-20"],
    "3 days ago": ["2023-10-15"],
    "a week ago": ["2023-10-08..2023-10-14"],
    "two or three weeks ago": ["2023-09-24..2023-09-30"],
    "a couple of weeks ago": ["2023-09-24..2023-10-07"],
    "a few days ago": ["2023-10-13..2023-10-16"],
    "two months ago": ["2023-08-03..2023-09-02"],
    "Where did Caroline move from 4 years ago?": ["2019-01-01..2019-12-31"],
    "a year ago": ["2022-01-01..2022-12-31"],
    "a few years ago": ["2018-01-01..2021-12-31"],
    "in the last 3 days": ["2023-10-15..2023-10-18"],
    "in the past two weeks": ["2023-10-04..2023-10-18"],
    "over the last few months": ["2023-05-18..2023-10-18"],
    "in the last week": ["2023-10-11..2023-10-18"],
    "the past year": ["2022-10-18..2023-10-18"],
    "the next ten days": ["2023-10-18..2023-10-28"],
    "last summer": ["2023-06-01..2023-08-31"],
    "last fall": ["2022-09-01..2022-11-30"],
    "last winter": ["2022-12-01..2023-02-28"],
    "this winter": ["2023-12-01..2024-02-29"],
    "next spring": ["2024-03-01..2024-05-31"],
    "this past summer": ["2023-06-01..2023-08-31"],
    "last October": ["2022-10-01..2022-10-31"],
    "last May": ["2023-05-01..2023-05-31"],
    "this May": ["2023-05-01..2023-05-31"],
    "next June": ["2024-06-01..2024-06-30"],
    "last Christmas": ["2022-12-25"],
    "last Easter": ["2023-04-09"],
    "next Thanksgiving": ["2023-11-23"],
    "the end of the month": ["2023-10-24..2023-10-31"],
}
RANGES = {
    "between March and June 2023": ["2023-03-01..2023-06-30"],
    "between November and February 2023": ["2022-11-01..2023-02-28"],
    "from December 2022 to March": ["2022-12-01..2023-03-31"],
    "May 3-9, 2023": ["2023-05-03..2023-05-09"],
    "between 3 and 9 May 2023": ["2023-05-03..2023-05-09"],
    "from 28 April to 3 May 2023": ["2023-04-28..2023-05-03"],
    "2021-2023": ["2021-01-01..2023-12-31"],
    "from 2021 until 2023": ["2021-01-01..2023-12-31"],
    "April -- May 2022": ["2022-04-01..2022-05-31"],
    "from winter 2021 to the summer of 2022": ["2021-12-01..2022-08-31"],
    "from Monday to Friday": ["2023-10-16..2023-10-20"],
    "since June": ["2023-06-01.."],
    "since November": ["2022-11-01.."],
    "since last week": ["2023-10-09.."],
    "before 2021": ["..2020-12-31"],
    "before March 5, 2023": ["..2023-03-04"],
    "How many tournaments has Nate won by July 10, 2022?": ["..2022-07-10"],
    "until September": ["..2023-09-30"],
    "before Christmas": ["..2023-12-24"],
    "after March 5": ["2023-03-06.."],
    "after 2021": ["2022-01-01.."],
    "mid-June 2022": ["2022-06-11..2022-06-20"],
    "late June 2022": ["2022-06-21..2022-06-30"],
    "in the beginning of November 2022": ["2022-11-01..2022-11-08"],
    "the end of 2022": ["2022-10-01..2022-12-31"],
    "the first half of September 2022": ["2022-09-01..2022-09-15"],
    "the last week of May 2022": ["2022-05-24..2022-05-31"],
    "by the end of 2022": ["..2022-12-31"],
}
ANCHORED = {
    "What did John do the week before August 3, 2023?": ["2023-07-27..2023-08-02"],
    "the puppy she got two weeks before August 11, 2023": ["2023-07-25..2023-07-31"],
    "last weekend before April 10, 2023": ["2023-04-08..2023-04-09"],
    "on the Sunday before October 25, 2022": ["2022-10-23"],
    "the weekend after October 25, 2022": ["2022-11-05..2022-11-06"],
    "What did she finish last Friday on 23 January, 2022?": ["2022-01-21"],
    "the day after Christmas 2022": ["2022-12-26"],
    "the night before Christmas 2022": ["2022-12-24"],
    "3 days after Easter 2023": ["2023-04-12"],
    "the month before May 5, 2023": ["2023-04-05..2023-05-04"],
}
TOGETHER = {
    "In 2023, what did she do in May?": ["2023-05-01..2023-05-31"],
    "last year in May": ["2022-05-01..2022-05-31"],
    "Christmas last year": ["2022-12-25"],
    "in May two years ago": ["2021-05-01..2021-05-31"],
    "in June and July 2022": ["2022-06-01..2022-06-30", "2022-07-01..2022-07-31"],
    "May–June 2022": ["2022-05-01..2022-06-30"],
    "on 15 February, then on 19 February 2015": ["2015-02-15", "2015-02-19"],
    "yesterday, in May": ["2023-10-17", "every 05-01..05-31"],
    "in May 2021, May 2022 and in June": ["2021-05-01..2021-05-31", "2022-05-01..2022-05-31", "every 06-01..06-30"],
    "in 2021 or 2022, in May": ["2021-01-01..2021-12-31", "2022-01-01..2022-12-31", "every 05-01..05-31"],
    "since 2021, in June": ["2021-01-01..", "every 06-01..06-30"],
    "in May 2022, and May 2022 again": ["2022-05-01..2022-05-31"],
}
LANGUAGES = {
    "am 7. Mai 2023": ["2023-05-07"],
    "im März": ["every 03-01..03-31"],
    "le 1er août 2022": ["2022-08-01"],
    "en mai": ["every 05-01..05-31"],
    "el 7 de mayo de 2023": ["2023-05-07"],
    "en septiembre de 2022": ["2022-09-01..2022-09-30"],
    "il 3 maggio 2023": ["2023-05-03"],
    "a maggio": ["every 05-01..05-31"],
    "em março": ["every 03-01..03-31"],
    "1º de maio de 2022": ["2022-05-01"],
    "7 мая 2023 года": ["2023-05-07"],
    "май 2023": ["2023-05-01..2023-05-31"],
    "что было в марте?": ["every 03-01..03-31"],
    "我2023年5月7日在哪里？": ["2023-05-07"],
    "2023年5月に何をした": ["2023-05-01..2023-05-31"],
    "２０２３年": ["2023-01-01..2023-12-31"],
    "5月7日": ["every 05-07"],
}
NOT_TIMES = """
What instruments does Melanie play?
may I go
you may march on
this may take long
who may be next
May I ask what may happen?
What did May say?
What does April like?
Is June her sister?
What do April and June like?
What May and August did
a letter from August
march for our rights
her second child
the fall of Rome
in the fall of Rome
I fall asleep
spring roll recipes
a spring in my step
a summer camp
his winter coat
spring and autumn are short
2022 items
over 2000 people
$2022 and 2022 km and 2022%
room 2022
GPT2023
a 5K run, 3D, 12:30, 1,000 and 10.5.1
in her 90s
one-year-old twins
her 18th birthday
How many days passed?
last one standing, the next day, the last day of school
the last year of school
every last penny
every Wednesday and Thursday, Monday to Friday
life on Mars
fries in mayo
Christmas tree
Easter Island
the Winter Olympics
30 February 2023
29 February 2023
2023-13-45
32 May
""".strip().splitlines()


@pytest.mark.parametrize(
    ("text", "expected"), [*DATES.items(), *RANGES.items(), *ANCHORED.items(), *TOGETHER.items(), *LANGUAGES.items()]
)
def test_a_date_is_read_whatever_its_form(text: str, expected: list[str]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(("text", "expected"), RELATIVE.items())
def test_what_hangs_on_today_is_read_against_the_reference(text: str, expected: list[str]) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(("text", "expected"), YEARLY.items())
def test_what_bears_no_year_comes_back_every_year(text: str, expected: list[str]) -> None:
    assert read(text) == expected
    assert read(text, date(1950, 1, 1)) == expected


@pytest.mark.parametrize("text", NOT_TIMES)
def test_words_and_numbers_that_only_look_like_times_are_left_alone(text: str) -> None:
    assert read(text) == []


def test_a_date_of_slashes_is_read_both_ways_where_it_can_be() -> None:
    assert read("on 5/7/2023") == ["2023-07-05", "2023-05-07"]
    assert read("on 5/5/2023") == ["2023-05-05"]
    assert read("on 13/13/2023") == []


def test_a_year_without_that_day_has_no_such_span() -> None:
    assert read("on 29 February 2024") == ["2024-02-29"]
    assert read("on 29 February 2023") == []


@pytest.mark.parametrize(("today", "expected"), [(1, "2022-06-01..2022-08-31"), (9, "2023-06-01..2023-08-31")])
def test_last_summer_is_the_last_one_that_is_over(today: int, expected: str) -> None:
    assert read("last summer", date(2023, today, 15)) == [expected]
    assert read("last summer", date(2023, 7, 15)) == ["2022-06-01..2022-08-31"]


def test_a_winter_belongs_to_the_year_in_which_it_begins() -> None:
    assert read("last winter", date(2024, 1, 15)) == ["2022-12-01..2023-02-28"]
    assert read("this winter", date(2024, 1, 15)) == ["2023-12-01..2024-02-29"]
    assert read("in winter 2023") == ["2023-12-01..2024-02-29"]


def test_a_moment_serves_as_reference_as_its_day_does() -> None:
    assert read("yesterday", datetime(2023, 10, 18, 23, 59)) == ["2023-10-17"]


def test_case_and_the_form_of_the_apostrophe_do_not_matter() -> None:
    assert read("NEW YEAR'S EVE") == read("new year’s eve") == ["every 12-31"]


def test_a_time_is_named_once_however_often_it_is_said() -> None:
    assert read("yesterday, I mean yesterday, " * 20) == ["2023-10-17"]


def test_only_the_beginning_of_a_long_text_is_read() -> None:
    assert read("x " * 900 + "in May 2022") == ["2022-05-01..2022-05-31"]
    assert read("x " * 1000 + "in May 2022") == []


@pytest.mark.parametrize("reference", [date.min, date.min + timedelta(40), date.max - timedelta(40), date.max])
def test_the_ends_of_the_calendar_are_no_trouble(reference: date) -> None:
    for text in [*DATES, *YEARLY, *RELATIVE, *RANGES, *ANCHORED, *TOGETHER, *LANGUAGES]:
        for span in parse_time_spans(text, reference):
            assert 0 <= score_day([span], date.min) <= 1
            assert 0 <= score_day([span], date.max) <= 1
    assert read("yesterday", date.min) == []
    assert read("last year", date.min) == []
    assert read("tomorrow", date.max) == []
    assert read("on 0001-01-01") == ["0001-01-01"]
    assert read("on 9999-12-31") == ["9999-12-31"]
    assert read("on 0000-01-01") == []
    assert read("since 1000000 years ago") == read("before 99999999999999999999 days ago") == []


_VOCABULARY = (
    " ".join([*DATES, *YEARLY, *RELATIVE, *RANGES, *ANCHORED, *TOGETHER, *LANGUAGES, *NOT_TIMES]).replace("-", " - ")
).split()
_texts = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(_VOCABULARY), max_size=14).map(" ".join),
    st.text("0123456789/-.年月日,:' stamy", max_size=30),
)
_days = st.dates()


def test_work_grows_with_the_text_and_no_faster() -> None:
    def calls(text: str) -> int:
        count = 0

        def note(_frame: FrameType, event: str, _argument: object) -> None:
            nonlocal count
            count += event == "call"

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            parse_time_spans(text, TODAY)
        finally:
            sys.setprofile(before)
        return count

    for unit in ["7 May to ", "the day before ", "1-", "last few ", "May ", "since 2021 ", "from May and "]:
        assert calls(unit * (1600 // len(unit))) < 4.5 * calls(unit * (400 // len(unit))) + 200


@settings(max_examples=600, deadline=None)
@given(_texts, _days, _days)
def test_any_text_on_any_day_gives_spans_in_order_and_fits_between_0_and_1(
    text: str, reference: date, day: date
) -> None:
    found = parse_time_spans(text, reference)
    assert len(set(found)) == len(found)
    for span in found:
        assert span.first is not None or span.last is not None
        assert span.first is None or span.last is None or span.first <= span.last
        assert 0 < span.precision <= 1
        assert 0 <= score_day([span], day) <= span.precision
    assert is_about_time(text) or not parse_time_spans(text, date(2000, 6, 15))


def one(text: str) -> TimeSpan:
    (span,) = parse_time_spans(text, TODAY)
    return span


def test_the_shorter_a_span_the_more_precise_it_is() -> None:
    texts = ["7 May 2023", "last week", "May 2023", "last summer", "in 2022", "the 1990s", "before 2021"]
    shares = [one(text).precision for text in texts]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1
    assert shares[-1] == 0.25
    assert one("May 2023").precision > one("in May").precision > one("in 2022").precision
    assert one("since last week").precision > one("since 2021").precision > one("before 2021").precision


def test_a_day_inside_a_span_fits_as_well_as_the_span_is_precise() -> None:
    may = one("May 2023")
    assert {score_day([may], date(2023, 5, day)) for day in range(1, 32)} == {may.precision}
    assert score_day([one("7 May 2023")], date(2023, 5, 7)) == 1


def test_no_span_fits_nothing() -> None:
    assert score_day([], TODAY) == 0


def test_what_is_told_some_days_later_fits_less_and_less_and_then_not_at_all() -> None:
    day = [one("7 May 2023")]
    later = [score_day(day, date(2023, 5, 7) + timedelta(days)) for days in range(12)]
    assert later[:11] == sorted(set(later), reverse=True)
    assert later[9] > 0
    assert later[10] == later[11] == 0
    month = [one("May 2023")]
    assert score_day(month, date(2023, 6, 19)) > 0
    assert score_day(month, date(2023, 6, 22)) == 0


def test_what_is_told_before_fits_far_less_than_what_is_told_as_long_after() -> None:
    day = [one("7 May 2023")]
    assert 0 < score_day(day, date(2023, 5, 5)) < score_day(day, date(2023, 5, 9))
    assert score_day(day, date(2023, 5, 3)) == 0


def test_an_open_span_falls_off_at_its_one_end_only() -> None:
    since, before = one("since June"), one("before 2021")
    assert score_day([since], date(2030, 1, 1)) == score_day([since], date(2023, 6, 1)) == since.precision
    assert score_day([since], date(2023, 5, 1)) == 0
    assert score_day([before], date(1, 1, 1)) == score_day([before], date(2020, 12, 31)) == before.precision
    assert 0 < score_day([before], date(2021, 1, 5)) < before.precision
    assert score_day([before], date(2022, 1, 1)) == 0


@pytest.mark.parametrize("year", [1, 1999, 2000, 2023, 9999])
def test_a_yearly_span_fits_its_days_of_any_year_and_the_days_after(year: int) -> None:
    winter = one("in winter")
    assert score_day([winter], date(year, 12, 1)) == score_day([winter], date(year, 2, 28)) == winter.precision
    assert winter.precision > score_day([winter], date(year, 3, 10)) > score_day([winter], date(year, 4, 1)) == 0
    assert 0 < score_day([winter], date(year, 11, 28)) < winter.precision


def test_29_february_fits_in_a_leap_year_and_next_to_it_in_others() -> None:
    leap, winter = one("on 29 February"), one("in winter")
    assert score_day([leap], date(2024, 2, 29)) == leap.precision
    assert 0 < score_day([leap], date(2023, 3, 1)) < leap.precision
    assert score_day([winter], date(2024, 2, 29)) == winter.precision


def test_the_best_of_several_spans_counts() -> None:
    found = parse_time_spans("on 7 May 2023 or in 2021", TODAY)
    assert score_day(found, date(2023, 5, 7)) == 1
    assert score_day(found, date(2021, 3, 1)) == one("in 2021").precision
    assert score_day(found, date(2019, 3, 1)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "When did Melanie paint a sunrise?",
        "When Jon has lost his job as a banker?",
        "Since when?",
        "Do you remember when she moved?",
        "What date was the party?",
        "What's the exact date?",
        "In which year did she move?",
        "How long ago was her birthday?",
        "How many weeks passed between the two?",
        "What did we do last week?",
        "What happened on 7 May?",
        "Wann war das?",
        "Когда это было?",
        "你什么时候搬家的？",
    ],
)
def test_what_asks_when_or_names_a_time_is_about_time(text: str) -> None:
    assert is_about_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What instruments does Melanie play?",
        "How did she feel when she saw it?",
        "When I was at home, what did I cook?",
        "How many dogs does she have?",
        "What kind of date did they go on?",
        "Whenever she sings",
        "いつもの店",
    ],
)
def test_what_neither_asks_when_nor_names_a_time_is_not(text: str) -> None:
    assert not is_about_time(text)


# ---- what a statement tells of -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("I moved to Porto in May", "2024-05-01", "2024-05-31"),
        ("I move to Porto in May", "2025-05-01", "2025-05-31"),
        ("We meet on 7 May", "2025-05-07", "2025-05-07"),
        ("In December we flew to Rome", "2024-12-01", "2024-12-31"),  # the nearest, said in March
        ("In June and July 2022 I lived in Rome", "2022-06-01", "2022-07-31"),
        ("I work at Galp since 2019", "2019-01-01", None),
        ("Yesterday Anna left", "2025-03-07", "2025-03-07"),
        ("I was there before 2021", None, "2020-12-31"),
    ],
)
def test_the_days_that_a_statement_tells_of(text: str, first: str | None, last: str | None) -> None:
    assert find_event_days(text, date(2025, 3, 8)) == DateRange(first, last)


@pytest.mark.parametrize(
    "text", ["I like tea", "My birthday is on 5 May", "We meet every Monday", "They march in line"]
)
def test_what_tells_of_no_day_or_of_all_years(text: str) -> None:
    assert find_event_days(text, date(2025, 3, 8)) is None


@pytest.mark.parametrize(
    ("asked", "first", "last", "least", "most"),
    [
        ("in May 2021", "2021-05-01", "2021-05-31", 0.69, 0.71),
        ("in May 2021", "2021-05-07", "2021-05-07", 0.69, 0.71),  # no more precise than what was asked
        ("on 7 May 2021", "2021-05-01", "2021-05-31", 0.69, 0.71),  # nor than what was told
        ("in 2021", "2021-05-07", "2021-05-07", 0.48, 0.5),
        ("in May", "2021-05-07", "2021-05-07", 0.5, 0.7),
        ("in May 2021", "2019-01-01", None, 0.25, 0.25),
        ("in May 2021", "2022-01-01", None, 0.0, 0.0),
        ("in May 2021", "2023-05-01", "2023-05-31", 0.0, 0.0),
        ("in winter", "2021-05-07", "2021-05-07", 0.0, 0.0),
    ],
)
def test_how_well_days_fit_what_is_asked(
    asked: str, first: str | None, last: str | None, least: float, most: float
) -> None:
    assert least <= score_days(parse_time_spans(asked, date(2025, 3, 8)), DateRange(first, last)) <= most


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("I moved to Lisbon in May.", "2026"),
        ("We visited Rome in April.", "2026"),
        ("I left Galp in January.", "2026"),
        ("I ran a marathon in December.", "2025"),
        ("I got married to Ann on 3 May.", "2026"),
        ("I have been at Shell since February.", "2026"),
        ("I will visit Rome in May.", "2027"),
        ("We are moving to Oslo in March.", "2027"),
        ("I'm excited to start at Galp in March.", "2027"),
        ("We decided to marry in May.", "2027"),
        ("I've booked a flight for 3 April.", "2027"),
        ("I signed up for the half marathon in April.", "2027"),
        ("I need a visa in May.", "2027"),
        ("The wedding is on 2 May.", "2027"),
        ("I've accepted a job at Galp, starting in April.", "2027"),
        ("I'll be joining Galp in October.", "2027"),
        ("I'm getting married to Ann in June.", "2027"),
        ("I was going to move in May.", "2027"),
    ],
)
def test_what_happened_in_a_month_without_a_year_is_not_in_the_future(text: str, year: str) -> None:
    days = find_event_days(text, date(2026, 11, 26))
    assert days is not None
    assert str(days.first)[:4] == year


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("We're moving to Oslo in two weeks.", "2026-12-07", "2026-12-13"),
        ("I'll start in 3 months.", "2027-02-11", "2027-03-13"),
        ("We will be living in Oslo from May.", "2027-05-01", "2027-05-31"),
        ("I move the week after next.", "2026-12-07", "2026-12-13"),
        ("The lease ends two weeks from now.", "2026-12-07", "2026-12-13"),
    ],
)
def test_what_will_happen_has_the_days_that_are_to_come(text: str, first: str, last: str) -> None:
    assert find_event_days(text, date(2026, 11, 26)) == DateRange(first, last)


@pytest.mark.parametrize(
    "text", ["I learned to drive in two weeks.", "I got a letter from May.", "How far is it in a day?"]
)
def test_how_long_it_took_and_who_sent_it_are_no_days(text: str) -> None:
    assert find_event_days(text, date(2026, 11, 26)) is None


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("I'm wearing the coat I bought in May", "2025"),
        ("We're celebrating, Anna was born in May", "2025"),
        ("I quit my job and I'm moving to Oslo in May", "2026"),
        ("I'm moving in May, as I got a job", "2026"),
        ("Anna is getting married in May", "2026"),
    ],
)
def test_a_month_is_that_of_the_verb_before_it(text: str, year: str) -> None:
    days = find_event_days(text, date(2026, 2, 10))
    assert days is not None
    assert days.first == f"{year}-05-01"
