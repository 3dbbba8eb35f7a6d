"""Vocabulary of questions: the nouns and verbs of the relation families with their forms, and correction of slips."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from mem0_core._system.text_caches import text_cache
from mem0_core.language._english_words import is_common
from mem0_core.language._tables import load_tables
from mem0_core.language.families import all_nouns, all_verb_forms, all_verb_phrases, load_families

_LISTS = """
be: am is are was were be been being
aux: do does did can could will would shall should has have had is are was were am be been may might must
wh: what which who whom whose where when why how
self: i me we us myself
owners: my our
determiners: my our his her their its your
past: did was were had used
future: will going gonna shall
light: have get do go be use call see hold attend follow
adverbs: still ever also currently usually really actually always often originally again already just exactly even
 presently both then
now: now nowadays currently presently still today these days moment present
articles: a an the any some
prepositions: in at on to for with as from of by about into near under
titles: dr mr mrs ms prof st
adjectives: older younger elder eldest youngest oldest little big best good close dear twin new old former first second
 late favorite favourite fave fav next current previous main own only other dead married ex
bare_leads: current present previous former favorite favourite fave fav
past_adjectives: ex former previous old
persons: man woman person guy girl boy lady gentleman one bloke people
generic: kind kinds type types sort sorts name names thing things stuff food foods place places person people full first
 last kinda make model brand
assistant_verbs: tell say suggest recommend advise mention give propose write explain advice
assistant_nouns: tip tips advice suggestion suggestions recommendation recommendations idea ideas recipe answer
 finding opinion verdict view diagnosis proposal instructions tipp tipps rat ratschlag vorschlag empfehlung consejo
 consejos sugerencia sugerencias recomendación conseil conseils
assistant_owners: your dein deine deinen deinem deiner tu tus ton tes ta votre
assistant_past: recomendaste aconsejaste sugeriste dijiste propusiste indicaste
german_you: du
german_advice: empfohlen geraten vorgeschlagen gesagt gemeint erklärt
spanish_you: usted tú
spanish_advice: recomendó aconsejó sugirió dijo
french_you: tu vous
french_advice: conseillé recommandé suggéré proposé
assistant_pairs: i_supposed sollte_ich soll_ich rieten_sie empfahlen_sie sagten_sie me_dijo me_recomendó me_aconsejó
 me_sugirió
other_leads: el la los las mi mis un una der die das mein meine
assistant_participles: recommended suggested advised proposed
subjects: i he she they we you it who
no_names: that it he she there here let this one everyone everybody someone you they them him her his hers its it's not
 no yes ok okay hello hi hey please thanks the a an and or but so then if anyone anybody nobody something anything all
 every each more most much many people
openers: tell show find give list please remind
time_nouns: year years month months week weeks day days weekend summer autumn fall spring winter morning evening night
 christmas easter yesterday tomorrow tonight century decade january february march april june july august september
 october november december jan feb mar apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday
 saturday sunday pandemic
time_leads: as last next this past previous early late mid the of in on during since until till around about by from
 that summer spring autumn fall winter year month week end beginning start middle back
every: every all each
pay: salary wages wage paycheck paychecks paycheque paycheques payslip payslips
calendar: day date year month
supposing: would could should might may must
ages: eldest oldest youngest firstborn
term_ends: and or but if while than then that not called named you they he she it him them his her their
own_relatives: mum mom mommy mummy dad daddy grandma grandpa granny nana granddad grandad
verb_leads: have has had used to will did do does going
clause_openers: you the a an to that who
hurry: whats=what_is wheres=where_is whos=who_is hows=how_is whens=when_is whys=why_is im=i_am ive=i_have i'm=i_am
 i've=i_have i'd=i_had i'll=i_will we're=we_are we've=we_have we'd=we_had dont=do_not doesnt=does_not didnt=did_not
 cant=can_not cannot=can_not isnt=is_not arent=are_not wasnt=was_not havent=have_not hasnt=has_not u=you ur=your
 wat=what wats=what_is wot=what wots=what_is wanna=want_to wana=want_to rn=right_now
 atm=at_the_moment r=are
 don't=do_not doesn't=does_not didn't=did_not can't=can_not couldn't=could_not isn't=is_not aren't=are_not
 wasn't=was_not weren't=were_not haven't=have_not hasn't=has_not hadn't=had_not won't=will_not wouldn't=would_not
 you've=you_have you're=you_are they're=they_are who'd=who_did where'd=where_did
"""
LISTS: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split()) for name, words in re.findall(r"^(\w+): (.*(?:\n .*)*)", _LISTS, re.MULTILINE)
}
BE = LISTS["be"]


class Template(NamedTuple):
    """A question with a place for its subject: the words before and after it, with the base forms of auxiliaries."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    family: str


def base_of_word(low: str) -> str:
    """Return "be" or "do" for their forms, "a" for owners and articles, any other word as it is."""
    if low in BE:
        return "be"
    if low in {"do", "does", "did", "doing"}:
        return "do"
    return "a" if low in LISTS["determiners"] or low in {"the", "an"} else low


@lru_cache(maxsize=1)
def templates() -> tuple[Template, ...]:
    """Return the questions of the families that have a form of their own."""
    found: list[Template] = []
    for name, family in load_families().items():
        for phrase in family.asks:
            before, place, after = phrase.partition("*")
            if not place:
                continue
            words = [tuple(map(base_of_word, part.split())) for part in (before, after)]
            found.append(Template(words[0], words[1], name))
    return tuple(sorted(found, key=lambda one: -len(one.after)))


Replacements = Mapping[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]]


@lru_cache(maxsize=2)
def replacements(table: str = "replace") -> Replacements:
    """Return the phrases that mean words of the grammar, by their first word, the longest first."""
    found: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for words, phrases in load_tables("questions")[table].items():
        for phrase in phrases.split(","):
            first, *rest = phrase.split()
            found.setdefault(first, []).append(((first, *rest), tuple(words.split())))
    return {first: tuple(sorted(some, key=lambda one: -len(one[0]))) for first, some in found.items()}


@lru_cache(maxsize=1)
def tails() -> frozenset[tuple[str, ...]]:
    """Return the phrases after a comma that only ask to confirm a question."""
    return frozenset(tuple(phrase.split()) for phrase in load_tables("questions")["tails"]["tags"].split(","))


# --- slips ---------------------------------------------------------------------------------------------------------

_HURRY = {one: full.split("_") for one, _, full in (pair.partition("=") for pair in LISTS["hurry"])}


def expand(word: str) -> list[str] | None:
    """Return the words of a contraction, with or without its apostrophe; None for any other word."""
    return _HURRY.get(word)


@lru_cache(maxsize=1)
def _vocabulary() -> frozenset[str]:
    unlike = {"past", "future", "light", "titles", "hurry"}
    words = {word for name, some in LISTS.items() if name not in unlike for word in some}
    words |= {
        *all_nouns(),
        *all_verb_forms(),
        *(word for phrases in replacements().values() for one, _ in phrases for word in one),
    }
    for template in templates():
        words.update((*template.before, *template.after))
    words.update(word for phrase in all_verb_phrases() for word in phrase.words)
    return frozenset(words)


def is_known(word: str) -> bool:
    """Return True for a word of the vocabulary."""
    return word in _vocabulary()


@lru_cache(maxsize=1)
def _similar_words() -> Mapping[str, tuple[str, ...]]:
    """Return the words of the vocabulary that can be corrected to, by their sorted letters, and by `_shape`."""
    found: dict[str, list[str]] = {}
    for word in _vocabulary():
        if len(word) >= 3 and word.isalpha():
            found.setdefault("".join(sorted(word)), []).append(word)
            found.setdefault(_shape(word[0], len(word)), []).append(word)
    return {key: tuple(words) for key, words in found.items()}


def _shape(first: str, length: int) -> str:
    return f"{first}{length}"


def _find_similar_words(word: str) -> set[str]:
    """Return the words of the vocabulary that differ by one letter, or by two that have changed places."""
    keys = ["".join(sorted(word)), *(_shape(word[0], len(word) + more) for more in (-1, 0, 1))]
    letters, spellings = set(word), _without_a_letter(word)
    similar = {near for key in keys for near in _similar_words().get(key, ())}
    return {
        near
        for near in similar
        if len(letters.symmetric_difference(near)) <= 2 and not spellings.isdisjoint(_without_a_letter(near))
    }


def _without_a_letter(word: str) -> set[str]:
    return {word, *(word[:index] + word[index + 1 :] for index in range(len(word)))}


def drop_doubled(word: str) -> str:
    """Return a word with one of each two equal letters in a row."""
    return re.sub(r"(.)\1", r"\1", word)


@text_cache(4096)
def correct_word(word: str) -> str:
    """Return the word of the vocabulary that a word is a slip of; the word itself if there is none, or it is common."""
    if len(word) < 3 or len(word) > 16 or not word.isalpha() or is_known(word) or is_common(word):
        return word
    best = min(((_slip_cost(word, near), near) for near in _find_similar_words(word)), default=(9, word))
    return best[1] if best[0] <= (1 if len(word) < 6 else 2) else word


@text_cache(4096)
def nearest_auxiliary(word: str) -> str:
    """Return the auxiliary that a word is or is a slip of; empty if there is none."""
    if word in LISTS["aux"]:
        return word
    return next((near for near in sorted(LISTS["aux"]) if len(near) > 2 and _slip_cost(word, near) <= 1), "")


def _slip_cost(word: str, near: str) -> int:
    """Return 0 for two letters changed over, 1 for a letter too many or too few, 2 for a wrong one; 9 for more.

    In short words a letter is too many only if it is doubled: "noww", but not "herb" for "her".
    """
    if sorted(word) == sorted(near):
        return 0 if sum(one != other for one, other in zip(word, near, strict=True)) == 2 else 9
    if word[0] != near[0] or abs(len(word) - len(near)) > 1:
        return 9
    if len(word) != len(near):
        short, long = sorted((word, near), key=len)
        is_slip = len(near) > len(word) or len(near) > 4 or drop_doubled(word) == drop_doubled(near)
        return 1 if is_slip and short in _without_a_letter(long) and len(long) > 3 else 9
    return 2 if sum(one != other for one, other in zip(word, near, strict=True)) == 1 else 9
