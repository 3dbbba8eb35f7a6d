"""Order of messages for a question about the present: of several on one subject, the one that holds comes first.

Statements that rules read decide where there are any. People also say in passing that something changed ("Ranger failed
its MOT, Carys's cousin found me an Isuzu"), and no rule reads that. So the best messages are ordered by a linear model
of their scores, their times, their likeness to others and the traits of their texts. `training.current` fits its
weights by a softmax over the messages of each question (ListNet: Cao et al., "Learning to Rank: From Pairwise Approach
to Listwise Approach", ICML 2007, page 131).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING

from mem0_core.domain.recipes import DEFAULT_RERANK_CHARS
from mem0_core.domain.records import Hit
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Ports
from mem0_core.language.families import load_families
from mem0_core.language.message_traits import MAX_TRAIT_CHARS, read_traits
from mem0_core.language.terms import extract_terms, split_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mem0_core.language.parsed_query import ParsedQuery
    from mem0_core.recall._plan import Search
    from mem0_core.recall._timeline import Period
    from mem0_core.recall.validity import SlotAnswer

ORDERED_HITS = 10
"""Number of the best hits that are ordered anew."""

FEATURES = {
    "is_first": 1.1,
    "relative": 2.4,
    "score": 1.7,
    "nearness": 3.1,
    "is_later": 1.0,
    "later_length": -1.1,
    "later_likeness": 1.8,
    "likeness": 0.3,
    "reports_change": 0.2,
    "looks_back": -0.3,
    "has_speaker": 0.8,
    "is_of_other": -1.1,
}
"""Features of a hit with their weights.

- ``is_first``: it is the best by its score; ``relative``, ``score``: its score as a share of the best, and as it is.
- ``nearness``: its cosine to the query, less that of the best.
- ``is_later``: it was said after the best. ``later_length``, ``later_likeness``: the same, times the typical length of
  the hits, in units of 30 words, and times its cosine to the best. Long messages tell of many things.
- ``likeness``: its highest cosine to an earlier message, times the square of the relative score of that.
- ``reports_change``, ``looks_back``, ``has_speaker``: traits of its text.
- ``is_of_other``: it begins with another person, and the question is about its speaker.
"""

_PERSONAL_SHARE = 0.1  # of messages in which "I" or "my" occur; most leave it out ("Sold the Honda."), facts always do
_LENGTH_WORDS, _MAX_LENGTH = 30, 3.0


def prefer_current(ports: Ports, search: Search, hits: list[Hit]) -> Flow[list[Hit]]:
    """Return hits in the order of the model, for a question about the present; the scores stay in their places.

    The model was fitted to what people write of themselves in a few sentences. Other texts stay where they are: those
    of named speakers, passages, and facts that a chat model wrote, and reconciled. Where a statement answers the
    question, only a later message that reports the end of its value ("Ranger failed its test") may come before it;
    others on the same thing ("my dog got a new bed") seldom say anything else of its name.
    """
    best = hits[:ORDERED_HITS]
    if not search.request.query.asks_of_now or not _are_own_messages(best):
        return hits
    movable = _find_movable(search, best)
    if max(movable, default=0) == 0:
        return hits
    features = describe_hits(best, search.request.query, (yield from _read_vectors(ports, search, best)))
    return [*order_hits(best, features @ list(FEATURES.values()), movable), *hits[ORDERED_HITS:]]


def order_hits(hits: Sequence[Hit], sums: Sequence[float] | NDArray[np.float64], movable: Collection[int]) -> list[Hit]:
    """Return hits, highest sum first; the scores stay in their places.

    If only some are movable, one of these may become the first.
    """
    order = _order(sums, movable)
    return [replace(hits[index], score=hit.score) for index, hit in zip(order, hits, strict=True)]


def _order(sums: Sequence[float] | NDArray[np.float64], movable: Collection[int]) -> list[int]:
    """Return the indexes of hits in the order of `order_hits`."""
    indexes = range(len(sums))
    if len(movable) == len(sums):
        return sorted(indexes, key=lambda index: -sums[index])
    first = max((0, *movable), key=lambda index: sums[index])
    return [first, *(index for index in indexes if index != first)]


def describe_hits(hits: Sequence[Hit], query: ParsedQuery, vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the features of some hits, best first, (n, features).

    Args:
        vectors: their embeddings, (n, dims); zeros for a hit without one.
    """
    import numpy as np

    traits, asked = [read_traits(hit.item.text) for hit in hits], read_traits(query.text)
    scores = np.array([hit.score for hit in hits])
    relative = scores / max(float(scores.max()), 1e-9)
    nearness = np.array([hit.signals.get("dense", 0.0) for hit in hits])
    times = np.array([hit.item.said_at for hit in hits])
    is_said = np.array([_is_said(hit) for hit in hits])
    cosines = (vectors @ vectors.T).clip(0.0)
    is_earlier = (times < times[:, None]) & is_said  # in each row, of the others
    is_later = is_said & (times > times[0])
    lengths = [min(_MAX_LENGTH, len(hit.item.text.split()) / _LENGTH_WORDS) for hit in hits]
    is_of_speaker = (asked.has_speaker or asked.is_owned) and not asked.mentions_other
    columns = {
        "is_first": np.arange(len(hits)) == 0,
        "relative": relative,
        "score": scores,
        "nearness": nearness - nearness[0],
        "is_later": is_later,
        "later_length": is_later * np.median(lengths),
        "later_likeness": is_later * cosines[0],
        "likeness": (is_earlier * relative**2 * cosines).max(axis=1),
        "reports_change": [one.reports_change for one in traits],
        "looks_back": [one.looks_back for one in traits],
        "has_speaker": [one.has_speaker for one in traits],
        "is_of_other": [one.begins_with_other and is_of_speaker for one in traits],
    }
    return np.array([columns[name] for name in FEATURES], dtype=np.float64).T


def _find_movable(search: Search, hits: Sequence[Hit]) -> Collection[int]:
    """Return the indexes of the hits that may come first.

    These are all of them, unless a statement answers the question, or the first hit has all words of the question:
    "my blood type is O negative" gives way to no message that lacks one of them.
    """
    answer = search.slot_answer
    if answer is None or not answer.memories:
        return _find_covering(search.request.query, hits)
    return find_successors(answer, hits)


def find_successors(answer: SlotAnswer, hits: Sequence[Hit]) -> list[int]:
    """Return the indexes of hits that may replace an answer: later messages that report the end of one of its values.

    Living things and places have none, since messages name them whatever happens.
    """
    values = [one.statement.value for one in answer.periods if _is_thing(one)]
    words = {word.casefold() for value in values for word in value.split() if word[:1].isupper()}
    return [
        index
        for index, hit in enumerate(hits)
        if hit.item.said_at > hits[0].item.said_at and not hit.is_answer and _reports_end_of(words, hit.item.text)
    ]


def _find_covering(query: ParsedQuery, hits: Sequence[Hit]) -> Collection[int]:
    """Return the indexes of the hits that have all terms of a query, if the first one has; else all indexes."""
    asked = frozenset(query.terms)

    def covers(hit: Hit) -> bool:
        return asked.issubset(extract_terms(hit.item.text[:MAX_TRAIT_CHARS]))

    if not asked or not hits or not covers(hits[0]):
        return range(len(hits))
    return [index for index, hit in enumerate(hits) if covers(hit)]


def _is_thing(period: Period) -> bool:
    """Return True if a value is no living thing and no place."""
    return load_families()[period.statement.family].answer not in ("person", "animal", "name", "place")


def _reports_end_of(words: AbstractSet[str], text: str) -> bool:
    traits = read_traits(text)
    return traits.reports_end and not traits.looks_back and not words.isdisjoint(split_words(text))


def _are_own_messages(hits: Sequence[Hit]) -> bool:
    """Return True if hits are mostly short messages in which unnamed people write of themselves."""
    short = find_short_messages(hits)
    traits = [read_traits(hit.item.text) for hit in short]
    personal = sum(one.has_speaker or one.is_owned for one in traits)
    return personal > _PERSONAL_SHARE * len(short)


def find_short_messages(hits: Sequence[Hit]) -> list[Hit]:
    """Return the short messages of unnamed people; none unless they are most of what was said."""
    said = [hit for hit in hits if _is_said(hit)]
    short = [hit for hit in said if hit.item.actor_id is None and len(hit.item.text) <= DEFAULT_RERANK_CHARS]
    return short if len(said) > 1 and 2 * len(short) > len(said) else []


def _is_said(hit: Hit) -> bool:
    """Return True if a hit is what a person said."""
    return hit.item.role == "user" or (hit.item.role == "assistant" and hit.item.actor_id is not None)


def _read_vectors(ports: Ports, search: Search, hits: Sequence[Hit]) -> Flow[NDArray[np.float32]]:
    """Return the embeddings of hits, (n, dims); zeros for messages that are not memories yet."""
    import numpy as np

    vectors = np.zeros((len(hits), search.vectors.shape[1]), dtype=np.float32)
    indexes = {hit.item.row: index for index, hit in enumerate(hits) if hit.item.row is not None}
    if search.active is not None:
        known = search.active.find(list(indexes))
        rows, found = search.active.memories.rows[known], search.active.vectors[known]
    else:
        rows, found = yield from do(ports.store.vectors, list(indexes))
    if len(rows):  # else the array of the store has no dims either
        vectors[[indexes[row] for row in rows.tolist()]] = found
    return vectors
