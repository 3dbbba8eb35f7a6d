"""Signs that no memory answers a query: an empty slot, an attribute not stated, a comparison, or a low score."""

from __future__ import annotations

from collections.abc import Sequence

from mem0_core.domain.records import Hit
from mem0_core.language.attributes import find_nouns, states_attribute
from mem0_core.language.message_traits import find_people
from mem0_core.language.parsed_query import ParsedQuery
from mem0_core.language.terms import term_set
from mem0_core.recall._plan import Search
from mem0_core.recall.validity import SlotAnswer, proves_absence

_UNLIKELY = 0.6  # probability that no hit is the answer, from which none is taken for it
_LIKELY = 0.1  # and below which one is, even where no statement of its slot was read
_CERTAIN_SCORE = 0.65  # from which a memory may answer even where no statement of its slot was read
_NEAR_HITS = 5  # that may state the attribute that a query asks for
# Shares of the gate:
_ADVICE_SHARE = 0.5  # for a question about words of the assistant: it rarely repeats them
_PERSONAL_SHARE = 0.7  # for a question about the speaker: nearly all memories are, questions of others not
_UNHEARD_SHARE = 0.83  # for the same, if no memory has any word of it


def explain_no_answer(search: Search, hits: Sequence[Hit]) -> str:
    """Return why the hits of a search, best first, are no answer; empty if they may be one.

    Where the query asks for an attribute, a memory has to state it. Where it asks for a slot, the slot decides: it was
    filled or it was not. Else the listwise reranker does, if it compared the hits, and the best score if it did not;
    and so they do where an empty slot proves little.
    """
    answer, query, best, chance = search.slot_answer, search.request.query, hits[0], search.no_answer_probability
    is_unlikely = chance is not None and chance >= _UNLIKELY
    if query.question.attribute:
        is_missing = not find_stating(search, hits) or (is_unlikely and query.question.attribute != "surname")
        return describe_missing(query) if is_missing else ""
    if answer is not None and answer.is_of_other_kind:
        return describe_empty(answer)
    if answer is not None and answer.is_known:
        return ""
    if answer is not None and proves_absence(answer, query.question, hits):
        is_told = bool(search.graph.paths) or best.score >= _CERTAIN_SCORE or is_likely(search, best)
        return "" if is_told and not is_unlikely else describe_empty(answer)
    return explain_low_chance(search, best)


def is_likely(search: Search, best: Hit) -> bool:
    """Return True if a listwise reranker finds an answer among the hits, whatever statements were read.

    It confuses people, so the best hit has to mention one of those of the query, if there are any.
    """
    chance, query, text = search.no_answer_probability, search.request.query, best.item.text
    if chance is None or chance >= _LIKELY:
        return False
    people = find_people(query.text)
    return not people or not people.isdisjoint(find_people(text)) or any(name in text for name in query.names)


def explain_low_chance(search: Search, best: Hit) -> str:
    """Return why the best hit of a search is too unlikely an answer to a query whose slot is not known; else empty."""
    chance = search.no_answer_probability
    if chance is not None:
        return f"a comparison of the best hits found no answer ({chance:.0%})" if chance >= _UNLIKELY else ""
    gate = find_gate(search)
    return f"the best hit scores {best.score:.2f}, below the gate of {gate:.2g}" if best.score < gate else ""


def describe_missing(query: ParsedQuery) -> str:
    return f"no memory near the question states the {query.question.attribute.replace('_', ' ')}"


def describe_empty(answer: SlotAnswer) -> str:
    return f"no memory is about {' or '.join(answer.families).replace('_', ' ')} of that subject"


def find_stating(search: Search, hits: Sequence[Hit]) -> list[Hit]:
    """Return those of the best hits that state the attribute that a query asks for.

    They state the slot of the query, if it is known: "Tom has a red car" says nothing of mine. Else they share a word
    with the query, other than the noun of the attribute; with that noun, if the query has no other.
    """
    query, slot, near = search.request.query, search.slot_answer, hits[:_NEAR_HITS]
    if query.question.attribute == "surname" and find_surname(search):
        return [hit for hit in hits if hit.is_answer]
    if slot is not None and slot.memories:
        near = [hit for hit in near if hit.is_answer]
    else:
        others = set(query.terms) - term_set(find_nouns(query.question.attribute))
        wanted = others or set(query.terms)
        sharing = [hit for hit in near if wanted & term_set(hit.item.text)]
        is_best_near = not others and near[0].score >= search.request.recipe.gate
        near = sharing or (near[:1] if is_best_near else [])
    return [hit for hit in near if states_attribute(query.question.attribute, hit.item.text, query.names)]


def find_surname(search: Search) -> str:
    """Return the surname of the person that the slot of a query names in full; empty if it is not known."""
    slot = search.slot_answer
    values = [] if slot is None else [one.statement.value for one in slot.periods]
    return next((value.split(maxsplit=1)[1] for value in values if " " in value), "")


def find_gate(search: Search) -> float:
    """Return the score that the best hit of a search has to reach to answer: less where questions share few words."""
    request = search.request
    query, gate = request.query, request.recipe.gate
    if query.question.asks_assistant:
        return gate * _ADVICE_SHARE
    if not query.mentions_speaker:
        return gate
    is_unheard = bool(query.terms) and not search.word_weights and not request.recipe.is_dense_only
    return gate * (_UNHEARD_SHARE if is_unheard else _PERSONAL_SHARE)
