"""Compare two names, or two relationships: a similarity score with its reason, or the reason why they are distinct.

Embedders place contrasts near one another (Anna and Anne, works_at and worked_at), so a near vector alone is never
enough. Letters and words decide: two near names are one if they differ only in spelling, number, a short form of a
first name, or synonyms. A name that is part of another one is a different name. Names between are candidates.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from mem0_core._system.records import dataclass
from mem0_core._system.text_caches import text_cache
from mem0_core.language._name_words import (
    ARTICLES,
    HEAD_NOUNS,
    INSTITUTIONS,
    KINDS,
    LEGAL_FORMS,
    MODIFIERS,
    SMALL_WORDS,
    TWO_SENSES,
    are_opposite,
    are_synonyms,
    fold_name,
    get_formal_names,
    get_initials,
    get_numbers,
    get_title,
    is_given_name,
    join_phrases,
    singular,
    split_name,
    standard_spelling,
)

__all__ = [
    "CANDIDATE_SCORE",
    "DEFAULT_MERGE_THRESHOLD",
    "EntityName",
    "NameSimilarity",
    "compare_names",
    "compare_relationships",
    "fold_name",
    "get_initials",
    "is_part_of",
]

DEFAULT_MERGE_THRESHOLD = 0.8
"""Default score from which two names are merged; tests/unit/language/test_name_similarity.py shows the effect."""
CANDIDATE_SCORE = 0.7
"""Score from which two names that are not merged may mean the same: the threshold t of the Mem0 paper."""
_SYNONYM_COSINE = 0.7  # synonyms in two names count as one word from this cosine on
_MAX_UNSURE = 0.75  # highest score of names that only a person can tell to be one


@dataclass(frozen=True, slots=True)
class EntityName:
    """An entity's name, with its type if known."""

    text: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class NameSimilarity:
    """Confidence in [0, 1] that two names mean the same, with its reason.

    Attributes:
        is_distinct: True if there is evidence against it.
    """

    score: float
    reason: str
    is_distinct: bool = False

    @property
    def is_same(self) -> bool:
        """True if the two names can share a node without confirmation."""
        return self.score >= DEFAULT_MERGE_THRESHOLD


def compare_names(one: EntityName, other: EntityName, cosine: float) -> NameSimilarity:
    """Compare two names of one scope.

    A name that contains the other, or has another word where the other has one, is a different name unless that word is
    a plural, a short form of a first name, a synonym or a slip of the pen. Different numbers, titles and types speak
    against one entity as well.

    Args:
        cosine: of the vectors of both, in [-1, 1].
    """
    first, second = _Name.parse(one.text), _Name.parse(other.text)
    if not first.words or not second.words:
        return _distinct("no words to compare")
    if _are_types_different(one.type, other.type):
        return _distinct(f"a {one.type} and a {other.type}")
    if first.numbers != second.numbers:
        return _distinct("other numbers")
    if first.title and second.title and first.title != second.title:
        return _distinct("other titles")
    return (
        _compare_spelling(first, second)
        or _compare_abbreviations(first, second, cosine)
        or _compare_words(
            first,
            second,
            cosine,
            is_person="person" in {_TYPE_GROUP.get(one.type.casefold()), _TYPE_GROUP.get(other.type.casefold())},
        )
    )


def is_part_of(one: str, other: str) -> bool:
    """Return True if all words of one name are words of the other: a question may mean it, a new fact may not."""
    first, second = _Name.parse(one), _Name.parse(other)
    ours, theirs = set(first.content), set(second.content)
    return first.numbers == second.numbers and bool(ours and theirs) and (ours <= theirs or theirs <= ours)


def compare_relationships(one: str, other: str, cosine: float) -> NameSimilarity:
    """Compare two relationships, ``snake_case``, of one scope."""
    label, label_other = _Label.parse(one), _Label.parse(other)
    if label.is_past != label_other.is_past:
        return NameSimilarity(0.0, "one is past, the other is not", is_distinct=True)
    if label.is_negated != label_other.is_negated:
        return NameSimilarity(0.0, "one negates the other", is_distinct=True)
    if label.words == label_other.words:
        return NameSimilarity(0.95 if one != other else 1.0, "the same words in other forms")
    group = _SYNONYM_GROUP.get(" ".join(label.words))
    if group is not None and group == _SYNONYM_GROUP.get(" ".join(label_other.words)):
        return NameSimilarity(0.9, "synonyms")
    if _get_link_words(label.words) != _get_link_words(label_other.words):
        return NameSimilarity(0.0, "the same words with other prepositions", is_distinct=True)
    return NameSimilarity(min(0.75, max(0.0, cosine)), "similar vectors only")


# --- names -------------------------------------------------------------------------------------------------------

# Types that one entity does not have at the same time; other types, and "thing", tell nothing.
_TYPE_GROUPS = """
person: human people man woman user speaker contact relative friend
place: location city town country village region state address continent
organization: organisation company institution employer business school university team
animal: pet dog cat
matter: food dish drink ingredient product vehicle activity hobby sport language medicine medication condition disease
 job profession occupation skill subject
time: date day event holiday
"""
_TYPE_GROUP = {
    word: group
    for group, words in re.findall(r"^(\w+): (.*(?:\n .*)*)", _TYPE_GROUPS, re.MULTILINE)
    for word in (group, *words.split())
}
_COMPATIBLE_GROUPS = frozenset({"place", "organization"})  # a hospital is both


@dataclass(frozen=True, slots=True)
class _Name:
    """A name, taken apart.

    Attributes:
        text: the name as given.
        words: its words, folded.
        bare: the words in standard spelling, without articles, titles and legal forms.
        content: `bare` without small words; phrases that have a synonym are one word.
        numbers, title: see `get_numbers` and `get_title`.
        capitals: the singular forms of its capitalized words.
        is_proper: True if no word begins with a small letter, as in scripts that have none.
        owner: the words up to an 's, as in "Anna's car".
    """

    text: str
    words: tuple[str, ...]
    bare: tuple[str, ...]
    content: tuple[str, ...]
    numbers: tuple[str, ...]
    title: str
    capitals: frozenset[str]
    is_proper: bool
    owner: tuple[str, ...]

    @staticmethod
    @text_cache(8192)
    def parse(text: str) -> _Name:
        words = split_name(text)
        bare = standard_spelling(_strip_affixes(words))
        content = join_phrases(tuple(word for word in bare if word not in SMALL_WORDS)) or bare
        spelled = re.findall(r"[^\W_]+", text)
        owner = next((index for index, word in enumerate(bare) if word.endswith("'s")), -1)
        return _Name(
            text=text,
            words=words,
            bare=bare,
            content=content,
            numbers=tuple(get_numbers(words)),
            title=get_title(words),
            capitals=frozenset(singular(part) for word in spelled if word[0].isupper() for part in split_name(word)),
            is_proper=not any(word[0].islower() for word in spelled if word.casefold() not in SMALL_WORDS),
            owner=bare[: owner + 1],
        )


def _strip_affixes(words: tuple[str, ...]) -> tuple[str, ...]:
    left = words[1:] if len(words) > 1 and (words[0] in ARTICLES or get_title(words)) else words
    while len(left) > 1 and left[-1] in LEGAL_FORMS:
        left = left[:-1]
    return left if left else words


def _distinct(reason: str) -> NameSimilarity:
    return NameSimilarity(0.0, reason, is_distinct=True)


def _unsure(cosine: float, reason: str) -> NameSimilarity:
    return NameSimilarity(min(_MAX_UNSURE, max(0.0, cosine)), reason)


def _are_types_different(one: str, other: str) -> bool:
    """Return True for types of which one entity has only one."""
    groups = {_TYPE_GROUP.get(one.casefold(), ""), _TYPE_GROUP.get(other.casefold(), "")}
    return "" not in groups and len(groups) > 1 and not groups <= _COMPATIBLE_GROUPS


def _compare_spelling(one: _Name, other: _Name) -> NameSimilarity | None:
    """Compare two names by their letters alone."""
    if fold_name(one.text) == fold_name(other.text):
        return NameSimilarity(1.0, "the same letters")
    if one.bare == other.bare or ("".join(one.content) == "".join(other.content) and _are_linked_alike(one, other)):
        return NameSimilarity(0.95, "the same but for spelling, articles, titles and legal forms")
    if sorted(one.content) == sorted(other.content) and _may_be_reordered(one, other):
        return NameSimilarity(0.9, "the same words in another order")
    return None


def _are_linked_alike(one: _Name, other: _Name) -> bool:
    """Return True unless the names have different prepositions: cooking for kids, cooking with kids."""
    links, links_other = ({*name.bare} & SMALL_WORDS - {"and", "the"} for name in (one, other))
    return links <= links_other or links_other <= links


def _may_be_reordered(one: _Name, other: _Name) -> bool:
    """Return True if the order of words means nothing: Porto University and University of Porto, Smith, Anna."""
    if one.content == other.content:
        return False
    linked = "," in one.text + other.text or "of" in {*one.words, *other.words}
    return linked or not INSTITUTIONS.isdisjoint(one.content)


def _compare_abbreviations(one: _Name, other: _Name, cosine: float) -> NameSimilarity | None:
    reason = _abbreviates(one.text, other.text, cosine) or _abbreviates(other.text, one.text, cosine)
    if reason:
        return NameSimilarity(0.9, reason)
    return NameSimilarity(0.85, "its words are clipped") if _are_clipped(one.content, other.content) else None


def _abbreviates(short: str, name: str, cosine: float) -> str | None:
    letters = short.replace(".", "").strip()
    if not (letters.isupper() and letters.isalpha() and 2 <= len(letters) <= 6):
        return None
    if any(word[:1].islower() for word in name.split() if word.casefold() not in SMALL_WORDS):
        return None
    if letters != get_initials(name) or (len(letters) == 2 and cosine < 0.6):
        return None
    return f"{short} are its initials"


_CLIPPED_LETTERS = 3  # letters of a clipped word at most: sci-fi


def _are_clipped(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Return True if each word of one name is clipped in the other: science fiction, sci-fi."""
    if len(ours) != len(theirs) or len(ours) < 2:
        return False
    clipped, whole = sorted((ours, theirs), key=lambda words: sum(map(len, words)))
    return all(
        1 < len(short) <= _CLIPPED_LETTERS and len(short) < len(word) and word.startswith(short)
        for short, word in zip(clipped, whole, strict=True)
    )


def _compare_words(one: _Name, other: _Name, cosine: float, *, is_person: bool) -> NameSimilarity:
    """Compare two names word by word."""
    ours, theirs = one.content, other.content
    if ours == theirs:
        return _unsure(cosine, "the same words with other prepositions")
    if len(ours) == len(theirs):
        pairs = [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]
        found = [_compare_word(pair, one, other, cosine, is_person=is_person) for pair in pairs]
        if all(similarity is not None for similarity in found):
            return min((similarity for similarity in found if similarity), key=lambda similarity: similarity.score)
    if set(ours) < set(theirs):
        return _compare_part(one, other, cosine, is_person=is_person)
    if set(theirs) < set(ours):
        return _compare_part(other, one, cosine, is_person=is_person)
    if any(are_opposite(word, word_other) for word in ours for word_other in theirs):
        return _distinct("opposites")
    if one.owner and one.owner == other.owner and cosine >= DEFAULT_MERGE_THRESHOLD:
        return _unsure(cosine, f"similar things of {' '.join(one.owner).removesuffix(chr(39) + 's')}")
    if set(ours) & set(theirs):
        return _distinct("each has a word that the other lacks")
    return _compare_disjoint(one, other, cosine)


def _compare_word(
    pair: tuple[str, str], one: _Name, other: _Name, cosine: float, *, is_person: bool
) -> NameSimilarity | None:
    """Compare two words at one place of two names of the same length; None if nothing joins them."""
    word, word_other = pair
    alone = len(one.content) == 1
    if are_synonyms(word, word_other):
        reason = f"{' and '.join(sorted(pair))} are synonyms"
        if cosine >= _SYNONYM_COSINE and not (alone and one.is_proper and other.is_proper):
            return NameSimilarity(0.85, reason)
        return _unsure(cosine, reason)
    if reason := _short_form(word, word_other):
        return NameSimilarity(_MAX_UNSURE if alone else 0.9, reason)  # two friends may be called Bob and Robert
    if are_opposite(word, word_other):
        return _distinct("opposites")
    if singular(word) == singular(word_other):
        return _compare_plurals(one, other, singular(word), alone=alone)
    if 1 in (len(word), len(word_other)) and word[0] == word_other[0] and not alone:
        return NameSimilarity(_MAX_UNSURE, "an initial")
    if _is_slip(word, word_other):
        is_sure = not is_person and min(len(word), len(word_other)) >= 8 and not _has_inner_letter(word, word_other)
        return NameSimilarity(0.85 if is_sure else 0.7, "one letter differs, as in a slip of the pen")
    return None


def _compare_plurals(one: _Name, other: _Name, word: str, *, alone: bool) -> NameSimilarity:
    """Compare two names that differ in the number of a word."""
    if word in TWO_SENSES:
        return _distinct(f"{word} means something else in the plural")
    if word in one.capitals & other.capitals and word not in INSTITUTIONS:
        return NameSimilarity(0.7, "a name that may be a plural")  # Adam, Adams
    if alone and (word in one.capitals) != (word in other.capitals):
        return NameSimilarity(0.7, "a plural, and perhaps a proper name")  # Apple, apples
    return NameSimilarity(0.85, "singular and plural")


def _short_form(word: str, other: str) -> str:
    """Return the reason why two first names can be one, or nothing."""
    both = get_formal_names(word) & get_formal_names(other)
    if not both:
        return ""
    if word in both or other in both:
        short, whole = (other, word) if word in both else (word, other)
        return f"{short} is short for {whole}"
    return f"{' and '.join(sorted((word, other)))} are short for {min(both)}"


def _is_slip(word: str, other: str) -> bool:
    """Return True if two words differ by a slip within a long word: a letter doubled, two swapped, or one left out."""
    shorter, longer = sorted((word, other), key=len)
    if len(shorter) < 5 or word[0] != other[0] or not (word.isalpha() and other.isalpha()):
        return False
    at = next(
        (place for place, pair in enumerate(zip(shorter, longer, strict=False)) if pair[0] != pair[1]), len(shorter)
    )
    if len(longer) == len(shorter):
        swapped = shorter[:at] + shorter[at + 1 : at + 2] + shorter[at : at + 1] + shorter[at + 2 :]
        return swapped == longer and at < len(shorter) - 2
    if len(longer) != len(shorter) + 1 or shorter[at:] != longer[at + 1 :]:
        return False
    doubled = at > 0 and longer[at] == longer[at - 1]
    return doubled or (len(shorter) >= 8 and 0 < at < len(shorter) - 1)


def _has_inner_letter(word: str, other: str) -> bool:
    """Return True if one word has a letter more that is not a doubled one: Alexandra, Alexandria."""
    shorter, longer = sorted((word, other), key=len)
    squeezed = (re.sub(r"(.)\1", r"\1", shorter), re.sub(r"(.)\1", r"\1", longer))
    return len(shorter) != len(longer) and squeezed[0] != squeezed[1]


# --- names that contain one another ------------------------------------------------------------------------------


def _compare_part(part: _Name, whole: _Name, cosine: float, *, is_person: bool) -> NameSimilarity:
    """Compare a name with a longer one that has all its words: never one name, at most a candidate."""
    rest = [word for word in whole.content if word not in part.content]
    is_prefix = whole.content[: len(part.content)] == part.content
    is_suffix = whole.content[-len(part.content) :] == part.content
    if any(word.endswith("'s") for word in rest) or f"{part.content[-1]}'s" in whole.content:
        return _distinct("something of another one")
    if not (part.is_proper and whole.is_proper):
        return _distinct("one is a special kind of the other" if is_suffix else "one is part of the other")
    if is_person or _is_person_name(part, whole):
        return NameSimilarity(_MAX_UNSURE, "part of a person's name")
    if "of" in whole.words and part.words[-1] == whole.words[-1]:
        return _distinct("one is part of the other")  # Porto, University of Porto
    if (is_prefix or is_suffix) and KINDS.issuperset(rest):
        return NameSimilarity(_MAX_UNSURE, f"the same but for {' '.join(rest)!r}")
    if not MODIFIERS.isdisjoint(rest) or not HEAD_NOUNS.isdisjoint(rest):
        return _distinct(f"{' '.join(rest)!r} makes it another name")
    return _unsure(cosine, "one is part of the other")


def _is_person_name(part: _Name, whole: _Name) -> bool:
    """Return True if a longer name begins with a common first name that the shorter one begins with or leaves out."""
    if not 2 <= len(whole.content) <= 4 or not is_given_name(whole.content[0]):
        return False
    return whole.content[0] == part.content[0] or whole.content[-1] == part.content[-1]


# --- names without a common word ---------------------------------------------------------------------------------

_STEM_LETTERS = 3  # letters that words of one stem begin with: guitar, guitarist
_MIN_LETTER_RATIO = 0.6  # of two proper names that may be spellings of one: Lisbon, Lisboa


def _compare_disjoint(one: _Name, other: _Name, cosine: float) -> NameSimilarity:
    """Compare names without a common word: different head nouns, unless a person knows better."""
    if one.is_proper and other.is_proper:
        ratio = SequenceMatcher(None, fold_name(one.text), fold_name(other.text)).ratio()
        if ratio >= _MIN_LETTER_RATIO and one.text[0] == other.text[0]:
            return _unsure(cosine, "similar spelling and similar vectors")
        return _distinct("different names")
    if one.is_proper != other.is_proper:
        return _distinct("a name and a word")
    if _are_akin(one.content, other.content):
        return _distinct("words of one stem")
    return _unsure(cosine, "similar vectors only")


def _are_akin(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    """Return True if a word of one name is akin to a word of the other, or part of it."""
    for word in ours:
        for other in theirs:
            shorter, longer = sorted((word, other), key=len)
            if word[:_STEM_LETTERS] == other[:_STEM_LETTERS] or (len(shorter) >= _STEM_LETTERS and shorter in longer):
                return True
    return False


# --- relationships -----------------------------------------------------------------------------------------------


def _split_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_FILLERS = _split_set("is are am be being currently now the a an has have does do who")
_PAST = _split_set("was were had did used formerly former previously ex once")
_NOT = _split_set("not no never isnt doesnt dont dislikes hates avoids")
_LINKS = _split_set("to from of in at for with as by on near into about under over after before against")
_GROUPS = (
    "work at|work for|employ by|employ at|have job at|be employee of|employee of",
    "live in|reside in|dwell in|live at|home in",
    "marry to|spouse of|wed to",
    "friend of|friend with|friends with|friends of",
    "study at|student at|student of|attend|enrol at|enroll at|enroll in|enrol in",
    "bear in|born in|birthplace",
    "own|owner of|possess",
    "colleague of|colleague with|coworker of|coworker with|work with",
    "like|enjoy|fond of",
    "dislike|hate|not like|not enjoy",
    "allergic to|allergy to",
    "come from|hail from|from|originate from",
    "sibling of|sibling with",
    "call|name|nickname",
    "interest in|interested in",
)
_SYNONYM_GROUP = {words: place for place, group in enumerate(_GROUPS) for words in group.split("|")}
_STEMS = {
    "has": "have", "does": "do", "lives": "live", "resides": "reside", "living": "live", "residing": "reside",
    "married": "marry", "employed": "employ", "employs": "employ", "studies": "study", "studying": "study",
    "wedded": "wed", "enrolled": "enroll", "attends": "attend", "attending": "attend", "called": "call",
    "named": "name", "allergies": "allergy", "interests": "interest",
}  # fmt: skip
_NO_PAST = _split_set("married employed born named called interested allergic located based enrolled related wed")
_IRREGULAR = _split_set("lived went met saw ate drank wrote taught left lost sold bought made ran sang drove knew")


@dataclass(frozen=True, slots=True)
class _Label:
    """A relationship: its words in their base form, tense, and polarity."""

    words: tuple[str, ...]
    is_past: bool
    is_negated: bool

    @classmethod
    def parse(cls, relationship: str) -> _Label:
        words = [word for word in re.split(r"[\W_]+", relationship.casefold()) if word]
        meant = [word for word in words if word not in _FILLERS | _PAST] or words
        over = "born" not in words and any(
            word in _PAST or word in _IRREGULAR or (word.endswith("ed") and word not in _NO_PAST and len(word) > 4)
            for word in words
        )
        return cls(tuple(map(_normalize_word, meant)), over, any(word in _NOT for word in words))


def _normalize_word(word: str) -> str:
    if word in _STEMS:
        return _STEMS[word]
    if word.endswith("ing") and len(word) > 5:
        stem = word[:-3]
        return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "ls" else stem
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("es") and word[:-2].endswith(("sh", "ch", "ss", "x")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


def _get_link_words(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if word in _LINKS)
