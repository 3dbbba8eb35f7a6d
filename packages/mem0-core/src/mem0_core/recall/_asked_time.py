"""Order of hits by the time that a question asks about, for memories in which no slot could be read.

A question about the present prefers what still holds, and the later of similar memories. A question about a past time
lowers what began later. A question about what was before an event lowers the event itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from mem0_core.domain.recipes import DEFAULT_RERANK_CHARS
from mem0_core.domain.records import Hit
from mem0_core.language.families import load_families
from mem0_core.language.question import Question, reaches_back
from mem0_core.language.statements import MAX_SLOT_TEXT_CHARS
from mem0_core.language.temporal import TimeSpan, parse_time_spans
from mem0_core.language.terms import extract_terms, split_words
from mem0_core.recall._slots import current_time

if TYPE_CHECKING:
    from mem0_core.recall._plan import Search

_YEAR_DAYS, _MONTH_DAYS = 365, 28  # shortest times that a question can ask a state of
_SIMILAR_SHARE, _LATEST_GAIN = 0.6, 0.3  # scores near the best, and the gain of the latest among them
_LATER_SHARE = 0.6  # of the score that a memory of a time not asked about keeps
_SUPERSEDED_SHARE = 0.6  # of the score that a superseded memory keeps for a query about the present
_MAX_EVENT_HITS = 10  # hits among which an event is looked for
_MIN_EVENT_SHARE = 0.5  # of the terms of an event that a memory of it has


def prefer_latest(hits: Sequence[Hit], search: Search) -> list[Hit]:
    """Return hits with the later of similar ones higher, for a question about a state of the speaker.

    Of several messages on one subject the last one holds, even where no statement could be read from them. A question
    about a past time takes the last message up to its end.
    """
    query = search.request.query
    is_stateful = query.mentions_speaker and any(
        load_families()[name].is_single for families in query.question.path[-1:] for name in families
    )
    end = _end_of_interest(search)
    if not is_stateful or end is None or not hits:
        return list(hits)
    nearest = max(hit.score for hit in hits) * _SIMILAR_SHARE
    times = sorted({hit.item.said_at for hit in hits if _is_similar(hit, nearest, end)})
    if len(times) < 2:
        return list(hits)
    gain = {time: _LATEST_GAIN * rank / (len(times) - 1) for rank, time in enumerate(times)}
    raised = [
        replace(hit, score=min(1.0, hit.score * (1 + gain[hit.item.said_at])))
        if _is_similar(hit, nearest, end)
        else hit
        for hit in hits
    ]
    return sorted(raised, key=lambda hit: -hit.score)


def demote_superseded(hits: Sequence[Hit], search: Search) -> list[Hit]:
    """Return hits with those lower that are over, for a query about the present; without a change for others."""
    query = search.request.query
    is_personal = query.mentions_speaker and query.question.tense == "any" and not reaches_back(query.question)
    is_about_now = query.question.tense == "now" or is_personal
    if not is_about_now or search.request.as_of is not None:
        return list(hits)
    return _lower(hits, is_over, _SUPERSEDED_SHARE)


def demote_out_of_time(hits: Sequence[Hit], search: Search) -> list[Hit]:
    """Return hits with those lower that are of another time than the question asks about.

    A question about a state at a past time lowers what began later. It is about a state if its relation is known, its
    time is a year or longer, or it asks where or what a person was in a month or longer; else about an event, which may
    be reported later. The time of a memory is the first that its text names, else the time at which it was said.
    """
    query, question = search.request.query, search.request.query.question
    if question.anchor is not None:
        return _demote_by_event(hits, question)
    spans = [span for span in query.time_spans if not span.is_yearly]
    days = max(map(_count_days, spans), default=0)
    is_about_state = bool(question.path) or days >= _YEAR_DAYS or (question.asks_state and days >= _MONTH_DAYS)
    end = _find_last_day(spans)
    if _asks_of_change(question) or not is_about_state or end is None or end >= query.reference:
        return list(hits)
    return _lower(hits, lambda hit: _begins_on(hit) > end)


def _demote_by_event(hits: Sequence[Hit], question: Question) -> list[Hit]:
    """Lower what a question is not about: for ``before`` the event that it names, for ``after`` what was said earlier.

    What was before an event may be said after it, so times decide nothing there.
    """
    relation, event = question.anchor or ("during", "")
    terms = frozenset(extract_terms(event))
    telling = [hit for hit in hits[:_MAX_EVENT_HITS] if _tells_of(hit, terms, relation)]
    if relation == "during" or question.asks in ("when", "count") or not telling:
        return list(hits)
    if relation == "before":
        return _lower(hits, lambda hit: hit in telling)
    day = min(map(_begins_on, telling))
    return _lower(hits, lambda hit: hit not in telling and _begins_on(hit) < day)


def _tells_of(hit: Hit, terms: frozenset[str], relation: str) -> bool:
    """Return True if a short memory tells of an event; one that says "before" itself, as the question, answers it."""
    text = hit.item.text
    if not terms or len(text) > DEFAULT_RERANK_CHARS or relation in split_words(text):
        return False
    return len(terms.intersection(extract_terms(text))) >= _MIN_EVENT_SHARE * len(terms)


def _lower(hits: Sequence[Hit], is_lower: Callable[[Hit], bool], share: float = _LATER_SHARE) -> list[Hit]:
    """Return hits with a share of their score where they are meant, best first; answers keep theirs."""
    lowered = [replace(hit, score=hit.score * share) if not hit.is_answer and is_lower(hit) else hit for hit in hits]
    return sorted(lowered, key=lambda hit: -hit.score)


def _end_of_interest(search: Search) -> str | None:
    """Return the end of the time that a question is about, ISO 8601; None if it is about a change or unclear."""
    question = search.request.query.question
    if _asks_of_change(question):
        return None
    spans = [span for span in question.spans if not span.is_yearly]
    if spans:
        last = _find_last_day(spans)
        return None if last is None else f"{last.isoformat()}T24"
    return None if question.tense == "past" else current_time(search)


def _asks_of_change(question: Question) -> bool:
    return question.anchor is not None or bool(question.event) or question.asks == "when"


def _find_last_day(spans: Sequence[TimeSpan]) -> date | None:
    """Return the last day of some times; None if there is none, or one of them has no end."""
    days = [span.last for span in spans if span.last is not None]
    return max(days, default=None) if len(days) == len(spans) else None


def _is_similar(hit: Hit, nearest: float, end: str) -> bool:
    return hit.score >= nearest and hit.item.is_said and hit.item.said_at <= end


def _count_days(span: TimeSpan) -> int:
    return (span.last - span.first).days + 1 if span.first is not None and span.last is not None else _YEAR_DAYS


def _begins_on(hit: Hit) -> date:
    """Return the first day that the text of a hit names, else the day on which it was said."""
    said_on = date.fromisoformat(hit.item.said_at[:10])
    spans = parse_time_spans(hit.item.text[:MAX_SLOT_TEXT_CHARS], said_on)
    return min((span.first or date.min for span in spans if not span.is_yearly), default=said_on)


def is_over(hit: Hit) -> bool:
    """Return True if everything that a memory states has ended."""
    return hit.validity is not None and hit.validity.valid_to is not None
