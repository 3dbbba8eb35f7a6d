"""Relations that each step of a question may follow, by the time that the question is about.

The last step follows the relations of that time. The steps before it lead to a person or thing that is known today:
"Where did my sister live in 2021?" is about the sister of now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

import numpy as np

from mem0_core.graph.adjacency import NEVER, Adjacency, microseconds
from mem0_core.language.families import read_label
from mem0_core.language.question import Anchor, Question
from mem0_core.language.temporal import TimeSpan

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Ints = NDArray[np.int64]

_ENDING = re.compile(r"\b(?:left|quit|lost|sold|divorced|died|broke|ended|stopped|retired|separated|split|finished)\b")


def edge_masks(adjacency: Adjacency, question: Question, as_of: str | None) -> Iterator[list[Bools]]:
    """Yield masks of the edges that each step may take, those that fit the question best first.

    Args:
        as_of: ISO 8601 in UTC; all steps take the relations of that time, whatever the question says.
    """
    count = max(1, len(question.steps))
    if as_of is not None:
        yield [adjacency.valid_edges(as_of)] * count
        return
    now, ever = adjacency.valid_edges(), ~adjacency.gone
    ended = (ever & ~now) | _edges_of_past_labels(adjacency)
    inner = [ended if index in question.over else now for index in range(count - 1)]
    lasts = list(_last_masks(adjacency, question, now, ended))
    for last in lasts:
        yield [*inner, last]
    if count > 1 and len(lasts) > 1:
        for last in lasts:
            yield [*([ever] * (count - 1)), last]


def _edges_of_past_labels(adjacency: Adjacency) -> Bools:
    """Return the edges with a label that says itself that they are over: ``ex_wife``."""
    senses = [read_label(label) for label in adjacency.labels]
    is_over = np.array([sense is not None and sense.is_over for sense in senses], np.bool_)
    found: Bools = is_over[adjacency.label] if len(is_over) else np.zeros(len(adjacency.rows), np.bool_)
    return found & ~adjacency.gone


def _last_masks(adjacency: Adjacency, question: Question, now: Bools, ended: Bools) -> Iterator[Bools]:
    """Yield masks for the last step."""
    ever = ~adjacency.gone
    if question.anchor is not None:
        yield from _anchored_masks(adjacency, question, question.anchor, ended)
        return
    spans = [span for span in question.spans if not span.is_yearly]
    if spans:
        for mask in (_hold_in_middle(adjacency, spans), _overlap(adjacency, spans)):
            yield mask & ever
    elif len(question.steps) - 1 in question.over:
        yield ended
    elif question.event == "begins" or question.tense != "past":
        yield now
        if question.event:
            yield ended
    else:
        yield ended
        yield now


# --- times -----------------------------------------------------------------------------------------------------------


def _to_microseconds(day: date) -> int:
    return microseconds(datetime.combine(day, time(), UTC).isoformat())


def _ends_of(span: TimeSpan) -> tuple[int, int]:
    first = _to_microseconds(span.first) if span.first else -NEVER
    last = _to_microseconds(span.last + timedelta(days=1)) if span.last and span.last < date.max else NEVER
    return first, last


def _hold_in_middle(adjacency: Adjacency, spans: list[TimeSpan]) -> Bools:
    """Return the edges that hold in the middle of a span; of an open one, at its end."""
    found = np.zeros(len(adjacency.rows), np.bool_)
    for first, last in map(_ends_of, spans):
        then = last - 1 if first == -NEVER else first if last == NEVER else (first + last) // 2
        found |= (adjacency.since <= then) & (adjacency.until > then)
    return found


def _overlap(adjacency: Adjacency, spans: list[TimeSpan]) -> Bools:
    found = np.zeros(len(adjacency.rows), np.bool_)
    for first, last in map(_ends_of, spans):
        found |= (adjacency.since < last) & (adjacency.until > first)
    return found


# --- anchors ---------------------------------------------------------------------------------------------------------


def _anchored_masks(adjacency: Adjacency, question: Question, anchor: Anchor, ended: Bools) -> Iterator[Bools]:
    """Yield masks for a time relative to an event: "before Oslo", "after I left Galp", "when I was at Galp"."""
    kind, event = anchor
    ever = ~adjacency.gone
    edges = _find_edges_of_event(adjacency, event, question)
    if not len(edges):
        yield ended if kind == "before" else ever
        return
    since, until = adjacency.since, adjacency.until
    is_ending = _ENDING.search(event.casefold()) is not None
    if kind == "during":
        yield ever & (since < until[edges].max()) & (until > since[edges].min())
        return
    if kind == "before":
        then = int((until if is_ending else since)[edges].min())
        others = ever.copy()
        others[edges] = is_ending
        yield others & (since < then) & (until >= then)
        yield others & (since < then)
        return
    then = int(until[edges].min())
    then = int(since[edges].min()) if then == NEVER else then
    others = ever.copy()
    others[edges] = False
    yield others & (since <= then) & (until > then)
    yield others & (since >= then)


def _find_edges_of_event(adjacency: Adjacency, event: str, question: Question) -> Ints:
    """Return the edges of the things that an event names; of the wanted family, if there are such."""
    said = f" {' '.join(event.casefold().split())} "
    named = [number for number, name in enumerate(adjacency.names) if _is_named(name, said)]
    if not named:
        return np.empty(0, np.int64)
    is_incident = np.isin(adjacency.destination, named) | np.isin(adjacency.source, named)
    edges = np.flatnonzero(is_incident & ~adjacency.gone)
    wanted = question.path[-1] if question.path else ()
    senses = [read_label(label) for label in adjacency.labels]
    is_wanted = np.array([sense is not None and sense.family in wanted for sense in senses], np.bool_)
    best = edges[is_wanted[adjacency.label[edges]]]
    return best if len(best) else edges


def _is_named(name: str, said: str) -> bool:
    """Return True if a text names an entity, or is a part of its name."""
    folded = f" {' '.join(name.casefold().split())} "
    return folded in said or (len(said) > 4 and said in folded)
