"""Compare two names, or two relationships: a similarity score with its reason, or the reason why they are distinct.

Precision counts more than recall. Embedders place contrasts near one another (Anna and Anne, works_at and worked_at),
so a near vector alone is never enough: letters and words decide, and the cosine counts only where they leave a choice.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from mem0_core.domain.normalization import normalize

__all__ = [
    "DEFAULT_MERGE_THRESHOLD",
    "EntityName",
    "NameSimilarity",
    "compare_names",
    "compare_relationships",
    "fold_name",
    "get_initials",
    "is_part_of",
    "is_same_name",
]

DEFAULT_MERGE_THRESHOLD = 0.8
"""Default score from which two names are merged; tests/unit/language/test_name_similarity.py shows the effect."""


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


def compare_names(one: EntityName, other: EntityName, cosine: float) -> NameSimilarity:
    """Compare two names of one scope.

    Args:
        cosine: of the vectors of both, in [-1, 1].
    """
    words, others = _words(one.text), _words(other.text)
    if not words or not others:
        return NameSimilarity(0.0, "no words to compare", is_distinct=True)
    if one.type and other.type and one.type != other.type:
        return NameSimilarity(0.0, f"a {one.type} and a {other.type}", is_distinct=True)
    if _find_numbers(words) != _find_numbers(others):
        return NameSimilarity(0.0, "other numbers", is_distinct=True)
    titles = _get_title(words), _get_title(others)
    if all(titles) and titles[0] != titles[1]:
        return NameSimilarity(0.0, "other titles", is_distinct=True)
    if fold_name(one.text) == fold_name(other.text):
        return NameSimilarity(1.0, "the same letters")
    bare, bare_other = _strip_affixes(words), _strip_affixes(others)
    if bare and bare == bare_other:
        return NameSimilarity(0.95, "the same but for articles, titles and legal forms")
    if bare and sorted(bare) == sorted(bare_other) and "," in one.text + other.text:
        return NameSimilarity(0.9, "the same words in another order")
    if reason := _abbreviates(one.text, other.text, cosine) or _abbreviates(other.text, one.text, cosine):
        return NameSimilarity(0.9, reason)
    return _compare_words(bare, bare_other, cosine, one.type or other.type)


def _compare_words(words: tuple[str, ...], others: tuple[str, ...], cosine: float, type: str) -> NameSimilarity:
    if len(words) == len(others):
        differing = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
        if len(differing) == 1:
            return _compare_differing_word(*differing[0], is_single_word=len(words) == 1, cosine=cosine, type=type)
    shorter, longer = sorted((words, others), key=len)
    if shorter and set(shorter) < set(longer):
        rest = [word for word in longer if word not in shorter]
        if type not in ("", "person", "place", "location", "city") and set(rest) <= _KINDS and cosine >= 0.6:
            return NameSimilarity(0.85, f"the same but for {' '.join(rest)!r}")
        return NameSimilarity(min(0.75, max(0.0, cosine)), "one is part of the other")
    if set(words) & set(others):
        return NameSimilarity(0.0, "each has a word that the other lacks", is_distinct=True)
    return NameSimilarity(min(0.7, max(0.0, cosine)), "similar vectors only")


def _compare_differing_word(word: str, other: str, *, is_single_word: bool, cosine: float, type: str) -> NameSimilarity:
    """Compare two names that differ in one word."""
    if reason := _short_form(word, other):
        return NameSimilarity(0.75 if is_single_word else 0.9, reason)
    if (len(word) == 1 and other.startswith(word)) or (len(other) == 1 and word.startswith(other)):
        return NameSimilarity(0.0 if is_single_word else 0.75, "an initial", is_distinct=is_single_word)
    if _is_misspelling(word, other):
        return NameSimilarity(0.7 if type == "person" else 0.85, "one letter differs, as in a slip of the pen")
    if _singular(word) == _singular(other):
        return NameSimilarity(0.7 if is_single_word else 0.85, "singular and plural")
    if _are_synonyms(word, other) and cosine >= SYNONYM_COSINE:
        return NameSimilarity(0.7 if is_single_word else 0.85, f"{word} and {other} are synonyms")
    return (
        NameSimilarity(0.0, "each has a word that the other lacks", is_distinct=True)
        if not is_single_word
        else NameSimilarity(min(0.7, max(0.0, cosine)), "similar vectors only")
    )


def is_same_name(one: str, other: str, cosine: float) -> bool:
    """Return True if two names with near vectors can share a node without confirmation.

    A name that contains the other is a different name ("York" and "New York"), and so is a name in which one word has
    been exchanged, unless the words are a plural, a short form of a first name, or synonyms. Names without a common
    word need a higher cosine, and proper names among them are never one. In doubt both names are kept, and
    `compare_names` may still propose them for a merge.

    Args:
        cosine: of the vectors of both, in [-1, 1]; the caller has applied its threshold.
    """
    words, others = _words(one), _words(other)
    if not words or not others or _find_numbers(words) != _find_numbers(others):
        return False
    titles = _get_title(words), _get_title(others)
    if all(titles) and titles[0] != titles[1]:
        return False
    if fold_name(one) == fold_name(other) or _abbreviates(one, other, cosine) or _abbreviates(other, one, cosine):
        return True
    ours, theirs = _content(words), _content(others)
    if ours == theirs or _are_reordered(one, other, ours, theirs) or _are_clipped(ours, theirs):
        return True
    capitals = _capitals(one) & _capitals(other)
    if len(ours) == len(theirs) and all(
        _is_same_word(*pair, alone=len(ours) == 1, capitals=capitals) for pair in zip(ours, theirs, strict=True)
    ):
        return True
    return cosine >= DISJOINT_COSINE and not (_is_proper(one) and _is_proper(other)) and _are_unrelated(ours, theirs)


def is_part_of(one: str, other: str) -> bool:
    """Return True if all words of one name are words of the other: a question may mean it, a new fact may not."""
    words, others = _words(one), _words(other)
    ours, theirs = set(_content(words)), set(_content(others))
    return (
        _find_numbers(words) == _find_numbers(others) and bool(ours and theirs) and (ours <= theirs or theirs <= ours)
    )


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


def _split_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WORD = re.compile(r"[a-z]\.(?:[a-z]\.)+|[^\W_]+(?:'s\b)?[+#]*")
_TITLES = {
    "mr": "mr", "mister": "mr", "mrs": "mrs", "ms": "mrs", "miss": "mrs", "dr": "dr", "doctor": "dr", "prof": "prof",
    "professor": "prof", "sir": "sir",
}  # fmt: skip
_LEGAL = _split_set("inc incorporated ltd limited llc llp gmbh ag sa plc corp corporation co kg bv oy spa srl")
_ARTICLES = _split_set("the a an")
_KINDS = _split_set("university company group holding holdings bank technologies systems software labs airlines")
_SMALL = _split_set("of the and for in de la le du des di")
_NICKNAMES = """
robert: bob bobby rob robbie bert
william: bill billy will willy liam
elizabeth: liz lizzie beth betty eliza lisbeth
richard: rick ricky dick richie
james: jim jimmy jamie
john: johnny jack
michael: mike mikey mick
thomas: tom tommy
katherine: kate katie kathy kat catherine kathryn
margaret: maggie meg peggy greta
edward: ed eddie ted ned
charles: charlie chuck
joseph: joe joey
daniel: dan danny
matthew: matt
anthony: tony
andrew: andy drew
christopher: chris
samuel: sam sammy
benjamin: ben benny
alexander: alex sasha
alexandra: alex sandra sasha
nicholas: nick nicky
jennifer: jen jenny
patricia: pat patty trish
rebecca: becky becca
susan: sue susie
steven: steve stephen
timothy: tim timmy
david: dave davey
gregory: greg
frederick: fred freddy
victoria: vicky tori
deborah: debbie deb
"""
_FORMAL: dict[str, set[str]] = {}
for _line in _NICKNAMES.strip().splitlines():
    _whole, _, _short = _line.partition(": ")
    for _one in (_whole, *_short.split()):
        _FORMAL.setdefault(_one, set()).add(_whole)


def fold_name(name: str) -> str:
    """Return the letters and digits of a name, without case, accents and punctuation; + and # count, as in C++."""
    plain = normalize("NFKD", name.casefold())
    return "".join(mark for mark in plain if mark.isalnum() or mark in "+#")


def get_initials(name: str) -> str:
    """Return the initials of a name without its small words; empty if it has only one word."""
    words = [word for word in re.findall(r"[^\W_]+", name) if word.casefold() not in _SMALL]
    return "".join(word[0] for word in words).upper() if len(words) > 1 else ""


@lru_cache(maxsize=8192)
def _words(name: str) -> tuple[str, ...]:
    plain = normalize("NFKD", name.casefold().replace("’", "'"))
    plain = "".join(mark for mark in plain if not unicodedata.combining(mark))
    return tuple(word.replace(".", "") for word in _WORD.findall(plain))


def _find_numbers(words: tuple[str, ...]) -> list[str]:
    return sorted(number for word in words for number in re.findall(r"\d+", word)) + sorted(
        word for word in words if word in _ROMAN
    )


_ROMAN = _split_set("ii iii iv vi vii viii ix xi xii")


def _get_title(words: tuple[str, ...]) -> str:
    return _TITLES.get(words[0], "") if len(words) > 1 else ""


def _strip_affixes(words: tuple[str, ...]) -> tuple[str, ...]:
    left = words[1:] if len(words) > 1 and (words[0] in _ARTICLES or words[0] in _TITLES) else words
    while len(left) > 1 and left[-1] in _LEGAL:
        left = left[:-1]
    return left if left else words


def _abbreviates(short: str, name: str, cosine: float) -> str | None:
    letters = short.replace(".", "").strip()
    if not (letters.isupper() and letters.isalpha() and 2 <= len(letters) <= 6):
        return None
    if any(word[:1].islower() for word in name.split() if word.casefold() not in _SMALL):
        return None
    if letters != get_initials(name) or (len(letters) == 2 and cosine < 0.6):
        return None
    return f"{short} are its initials"


def _short_form(word: str, other: str) -> str:
    """Return the reason why two first names can be one, or nothing."""
    both = _get_formal_names(word) & _get_formal_names(other)
    if not both:
        return ""
    if word in both or other in both:
        short, whole = (other, word) if word in both else (word, other)
        return f"{short} is short for {whole}"
    return f"{' and '.join(sorted((word, other)))} are short for {min(both)}"


def _get_formal_names(name: str) -> set[str]:
    return _FORMAL.get(name, set())


# --- names that share a node -------------------------------------------------------------------------------------

SYNONYM_COSINE = 0.7
"""Synonyms in two names count as one word from this cosine on: the threshold t of the Mem0 paper."""
DISJOINT_COSINE = 0.8
"""Names without a common word are one from this cosine on; all-MiniLM-L6-v2 gives breakfast and lunch 0.72."""
_STEM_LETTERS = 3  # letters that words of one stem begin with: guitar, guitarist
_CLIPPED_LETTERS = 3  # letters of a clipped word at most: sci-fi

_CONTENTLESS = _SMALL | {"with"}
_INSTITUTIONS = _KINDS | _split_set("hospital school college institute academy clinic")
_TWO_SENSES = _split_set("glass arm custom good new work mean water spirit manner minute spectacle brain ground time")
"""Words with a different meaning in the plural."""
_SYNONYMS = """
company firm business
car automobile
flat apartment
movie film
bicycle bike
mother mom mum mommy mummy mama
father dad daddy papa
doctor physician
lawyer attorney
shop store
holiday vacation
sofa couch
television tv
child kid
friend buddy pal
refrigerator fridge
photograph photo
airplane plane aeroplane
motorcycle motorbike
cellphone cell
lesson class
favorite favourite
color colour
theater theatre
center centre
grandmother grandma
grandfather grandpa
colleague coworker
neighbor neighbour
"""
_SYNONYM_OF = {word: line.split()[0] for line in _SYNONYMS.strip().splitlines() for word in line.split()}
_CONTRASTS = """
mother father mom dad son daughter brother sister sibling parent child
husband wife fiance fiancee boyfriend girlfriend partner spouse
uncle aunt nephew niece cousin
grandmother grandfather grandma grandpa grandson granddaughter
man woman boy girl
king queen prince princess
monday tuesday wednesday thursday friday saturday sunday
january february march april may june july august september october november december
spring summer autumn fall winter
morning noon afternoon evening night midnight
breakfast lunch dinner supper brunch
north south east west
left right
red orange yellow green blue purple pink brown black white gray grey
cat kitten dog puppy
buyer seller
lender borrower
landlord tenant
teacher student
employer employee
running jogging walking
shrimp lobster crab
tennis badminton squash soccer basketball volleyball baseball rugby hockey
beer wine tea coffee
"""
_CONTRAST_SETS = tuple(_split_set(line) for line in _CONTRASTS.strip().splitlines())


def _content(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a name that tell it from others: no articles, titles, legal forms and small words."""
    return tuple(word for word in _strip_affixes(words) if word not in _CONTENTLESS) or words


def _are_reordered(one: str, other: str, ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Return True for the same words in an order that means the same: Porto University, University of Porto."""
    if sorted(ours) != sorted(theirs):
        return False
    linked = "," in one + other or any(" of " in name.casefold() for name in (one, other))
    return linked or not _INSTITUTIONS.isdisjoint(ours)


def _are_clipped(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Return True if each word of one name is clipped in the other: science fiction, sci-fi."""
    if len(ours) != len(theirs) or len(ours) < 2:
        return False
    clipped, whole = sorted((ours, theirs), key=lambda words: sum(map(len, words)))
    return all(
        1 < len(short) <= _CLIPPED_LETTERS and len(short) < len(word) and word.startswith(short)
        for short, word in zip(clipped, whole, strict=True)
    )


def _is_same_word(word: str, other: str, *, alone: bool, capitals: frozenset[str]) -> bool:
    """Return True if two words at one place of two names are one word.

    Args:
        alone: the names have no other words.
        capitals: the singular forms that both names capitalize.
    """
    if word == other or _are_synonyms(word, other):
        return True
    if _get_formal_names(word) & _get_formal_names(other):
        return not alone  # two friends may be called Bob and Robert
    singular = _singular(word)
    if singular == _singular(other):
        is_surname = singular in capitals and singular not in _INSTITUTIONS  # Adam, Adams
        return not is_surname and singular not in _TWO_SENSES
    return min(len(word), len(other)) >= 8 and _is_misspelling(word, other) and not _is_inner_letter(word, other)


def _is_inner_letter(word: str, other: str) -> bool:
    """Return True if one word has a letter more that is not a doubled one: Alexandra, Alexandria."""
    shorter, longer = sorted((word, other), key=len)
    squeezed = (re.sub(r"(.)\1", r"\1", shorter), re.sub(r"(.)\1", r"\1", longer))
    return len(shorter) != len(longer) and squeezed[0] != squeezed[1]


def _are_synonyms(word: str, other: str) -> bool:
    root = _SYNONYM_OF.get(_singular(word))
    return root is not None and root == _SYNONYM_OF.get(_singular(other))


def _are_unrelated(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """Return True if no word of one name is akin to a word of the other, in letters or as its opposite."""
    return not any(_are_akin(word, other) for word in ours for other in theirs)


def _are_akin(word: str, other: str) -> bool:
    if (
        word[:_STEM_LETTERS] == other[:_STEM_LETTERS]
        or _are_synonyms(word, other)
        or _get_formal_names(word) & _get_formal_names(other)
    ):
        return True
    shorter, longer = sorted((word, other), key=len)
    if len(shorter) >= _STEM_LETTERS and shorter in longer:
        return True
    one, two = _singular(word), _singular(other)
    return any(one in group and two in group for group in _CONTRAST_SETS)


def _singular(word: str) -> str:
    """Return the singular of a word that looks like a plural."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("shes", "ches", "sses", "xes", "zes", "toes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is", "'s")) and len(word) > 3 else word


def _capitals(name: str) -> frozenset[str]:
    """Return the words of a name that begin with a capital, each in the singular."""
    capitals = (word for word in re.findall(r"[^\W_]+", name) if word[0].isupper())
    return frozenset(_singular(word) for capital in capitals for word in _words(capital))


def _is_proper(name: str) -> bool:
    """Return True if no word begins with a small letter, as in scripts that have none."""
    return not any(word[0].islower() for word in re.findall(r"[^\W_]+", name) if word.casefold() not in _CONTENTLESS)


def _is_misspelling(word: str, other: str) -> bool:
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


# --- relationships -----------------------------------------------------------------------------------------------

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
