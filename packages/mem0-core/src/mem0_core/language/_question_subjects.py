"""Noun phrases of a question: "my sister's husband", "the boss of Anna", "my son Pete", "the man I dated"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

from mem0_core._system.records import dataclass
from mem0_core.language._question_tokens import Token, is_name
from mem0_core.language._question_words import LISTS, is_known
from mem0_core.language._word_forms import is_plural
from mem0_core.language.families import VerbPhrase, families_of_noun, find_verbs, lemmas_of, load_families

_MAX_NESTING = 8
_MAX_TERM_WORDS = 5
_DO_FORMS = frozenset({"do", "does", "did"})


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a path: its term, its families and the noun at its head.

    `is_over` is True for a relation that has ended, `is_lasting` for one that a past event began ("who did I marry").
    """

    term: str
    families: tuple[str, ...]
    noun: str = ""
    is_over: bool = False
    is_lasting: bool = False


@dataclass(slots=True)
class NounPhrase:
    """A noun phrase: the name where its path starts (None for the speaker), its steps, and the position after it."""

    start: str | None
    end: int
    steps: list[Step] = field(default_factory=list)

    @property
    def is_plain(self) -> bool:
        """True for a phrase that is only a name or the speaker."""
        return not self.steps


class SubjectReader:
    """Reads the noun phrases of one question."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.lows = [token.low if token.kind in ("word", "owns") else "" for token in tokens]

    def read(self, index: int, *, is_subject: bool = False, depth: int = 0) -> NounPhrase | None:
        """Return the noun phrase at a position, None if there is none.

        Args:
            is_subject: an unknown lowercase word here is a name.
        """
        if index >= len(self.tokens) or depth > _MAX_NESTING:
            return None
        token = self.tokens[index]
        if token.kind == "quoted":
            return self._follow(NounPhrase(token.text[1:-1].strip(), index + 1))
        if token.kind != "word":
            return None
        if token.low in LISTS["self"]:
            return NounPhrase(None, index + 1)
        if token.low in LISTS["owners"]:
            return self.read_possessed(NounPhrase(None, index + 1), index + 1)
        name, end = self._read_name(index, is_subject=is_subject)
        if name:
            return self._follow(NounPhrase(name, end))
        if self._is_own_relative(index):
            return self._follow(NounPhrase(None, index + 1, [Step(token.low, families_of_noun(token.low), token.low)]))
        return self._read_described(index, depth)

    # --- names -------------------------------------------------------------------------------------------------------

    def _read_name(self, index: int, *, is_subject: bool) -> tuple[str, int]:
        """Return the name at a position ("" for none) and its end."""
        tokens, end = self.tokens, index
        if tokens[index].low in LISTS["titles"] and index + 1 < len(tokens) and tokens[index + 1].text[0].isupper():
            end = index + 1
        while end < min(len(tokens), index + 6) and tokens[end].kind == "word":
            is_capital = is_name(tokens[end], opens=end == 0) and not self._is_relative_word(end)
            if not (is_capital or (end > index and tokens[end].text.isdigit())):
                break
            end += 1
            if self.lows[end : end + 1] == ["of"] and end + 1 < len(tokens) and is_name(tokens[end + 1]):
                end += 1
        if end == index:
            end = self._lowercase_name_end(index, is_subject=is_subject)
        return " ".join(token.text for token in tokens[index:end]), end

    def _is_relative_word(self, index: int) -> bool:
        """Return True for "Mum" and the like, which a capital does not make a name."""
        return is_relative(self.lows[index]) and self.lows[index] in _OWN_RELATIVES

    def _is_own_relative(self, index: int) -> bool:
        """Return True for a relative without an owner, who is the speaker's: "Where does Mum live?"."""
        return self.lows[index] in _OWN_RELATIVES

    def _lowercase_name_end(self, index: int, *, is_subject: bool) -> int:
        """Return the end of a name in lower case: "where does karen work", "alice_123's boss"."""
        low = self.lows[index]
        if any(low in LISTS[name] for name in ("no_names", "wh", "aux", "articles", "prepositions", "generic")):
            return index
        if self._owns_at(index + 1) and not families_of_noun(low):
            return index + 1
        if not is_subject or is_known(low) or (len(low) > 4 and low.endswith(("ed", "ing", "ly"))):
            return index
        end = index + 1
        while (
            end < min(len(self.tokens), index + 3) and self.tokens[end].kind == "word" and not is_known(self.lows[end])
        ):
            end += 1
        return index + 1 if end == len(self.tokens) and end > index + 1 else end

    def _owns_at(self, index: int) -> bool:
        return index < len(self.tokens) and self.tokens[index].kind == "owns"

    # --- chains ------------------------------------------------------------------------------------------------------

    def _follow(self, phrase: NounPhrase) -> NounPhrase:
        """Follow the 's after a phrase."""
        while self._owns_at(phrase.end):
            before = phrase.end
            phrase = self.read_possessed(phrase, phrase.end + 1)
            if phrase.end == before:
                break
        return phrase

    def read_possessed(self, owner: NounPhrase, index: int) -> NounPhrase:
        """Add the steps of the nouns after an owner: those at a position, and what follows from them."""
        end = self._term_end(index)
        if end == index:
            return owner
        named = self._read_apposition(index, end)
        if named is not None:
            return self._follow(named)
        words = self.lows[index:end]
        step = _step_of(words)
        if step is not None and "studies_at" in step.families and owner.steps and _is_pupil(owner.steps[-1]):
            step = replace(step, families=("studies_at", *(one for one in step.families if one != "studies_at")))
        phrase = NounPhrase(owner.start, end, [*owner.steps, *([step] if step is not None else [])])
        if self._owns_at(end):
            return self._follow(phrase)
        if step is not None and self._is_missing_apostrophe(end):
            return self.read_possessed(phrase, end)
        return phrase

    def _term_end(self, index: int) -> int:
        """Return the end of the noun at a position, its adjectives included."""
        end = index
        while end < min(len(self.tokens), index + _MAX_TERM_WORDS) and self._is_term_word(end, is_first=end == index):
            end += 1
            low = self.lows[end - 1]
            if low in LISTS["ages"] | {"ex"} and not (end < len(self.tokens) and is_relative(self.lows[end])):
                return end
            compound = self.lows[end : end + 2]
            if compound in (["in", "law"],):
                return end + 2
            if self._owns_at(end):
                return end
            if families_of_noun(low) and low not in LISTS["adjectives"] and not self._goes_on(end):
                return self._trim(index, end - 1) if self._is_verb_of_unknown(index, end) else end
        return self._trim(index, end)

    def _is_verb_of_unknown(self, index: int, end: int) -> bool:
        """Return True if the last word is the verb of a noun that no family knows: "where does my labmate work"."""
        is_last = end == len(self.tokens) and bool(lemmas_of(self.lows[end - 1]))
        has_noun = any(low not in LISTS["adjectives"] for low in self.lows[index : end - 1])
        return is_last and has_noun and not _DO_FORMS.isdisjoint(self.lows[: max(0, index - 1)])

    def _goes_on(self, end: int) -> bool:
        """Return True if the noun that ends here only modifies the next one: "dog food", "work laptop"."""
        if end >= len(self.tokens) or not self._is_term_word(end):
            return False
        low, follows = self.lows[end - 1], self.lows[end]
        return (
            not is_relative(low) and bool(families_of_noun(follows)) and not lemmas_of(follows) and not is_plural(low)
        )

    def _trim(self, index: int, end: int) -> int:
        """Return the end of a noun that no family knows: its first word that is no adjective, before a verb."""
        noun = index
        while noun < end and self.lows[noun] in LISTS["adjectives"]:
            noun += 1
        is_clause = any(low in LISTS["aux"] for low in self.lows[: max(0, index - 1)])
        return min(end, noun + 1) if is_clause else end

    def _is_term_word(self, index: int, *, is_first: bool = False) -> bool:
        token = self.tokens[index]
        if token.kind != "word" or token.low in _TERM_ENDS:
            return False
        return is_first or index == 0 or not token.text[0].isupper()

    def _is_missing_apostrophe(self, end: int) -> bool:
        """Return True if the next noun belongs to this one: "my sisters husband", "my mums new flat"."""
        if not is_relative_or_pet(self.lows[end - 1]):
            return False
        while end < len(self.tokens) and self._is_term_word(end) and self.lows[end] in LISTS["adjectives"]:
            end += 1
        if end >= len(self.tokens) or not self._is_term_word(end):
            return False
        follows = self.lows[end]
        is_noun = bool(families_of_noun(follows)) or follows in LISTS["generic"]
        return is_noun and not lemmas_of(follows)

    def _read_apposition(self, index: int, end: int) -> NounPhrase | None:
        """Return the person that a name after a relative names: "my son Pete", "my eldest, Kai,"."""
        if not (is_relative(self.lows[end - 1]) or self.lows[end - 1] in LISTS["adjectives"]):
            return None
        first = end
        if first < len(self.tokens) and self.tokens[first].text == ",":
            first += 1
        elif self.lows[end - 1] in LISTS["adjectives"]:
            return None
        if first >= len(self.tokens) or self.tokens[first].kind != "word":
            return None
        last = first
        while last < min(len(self.tokens), first + 4) and is_name(self.tokens[last]):
            last += 1
        if last == first:
            low = self.lows[first]
            if not self._owns_at(first + 1) or is_known(low):
                return None
            last = first + 1
        name = " ".join(token.text for token in self.tokens[first:last])
        if last < len(self.tokens) and self.tokens[last].text == ",":
            last += 1
        return NounPhrase(name, last)

    # --- described ---------------------------------------------------------------------------------------------------

    def _read_described(self, index: int, depth: int) -> NounPhrase | None:
        """Return the phrase of "the boss of NOUN PHRASE" or "the man I dated"."""
        first = index + 1 if self.lows[index] in _DETERMINERS else index
        end = first
        while end < min(len(self.tokens), first + 4) and self._is_term_word(end):
            end += 1
        if end == first:
            return None
        if first > index and self.lows[first] in LISTS["persons"]:
            described = self._read_relative_clause(first + 1, depth)
            if described is not None:
                return described
        if self.lows[end : end + 1] != ["of"]:
            return self._read_thing_of_clause(first, end, depth) if first > index else None
        inner = None if self._is_name_with_of(first, end) else self.read(end + 1, depth=depth + 1)
        if inner is None:
            return None
        step = _step_of(self.lows[first:end])
        return NounPhrase(inner.start, inner.end, [*inner.steps, *([step] if step is not None else [])])

    def _is_name_with_of(self, first: int, end: int) -> bool:
        """Return True for "University of Oxford", which names one place, at the start of a text."""
        names = (token.text[:1].isupper() for token in (self.tokens[first], *self.tokens[end + 1 : end + 2]))
        families = families_of_noun(self.lows[end - 1])
        return all(names) and any(load_families()[name].answer == "organization" for name in families)

    def _read_thing_of_clause(self, first: int, end: int, depth: int) -> NounPhrase | None:
        """Return the thing of "the company my husband works for", "the place where I work", "any dog I have"."""
        noun = self.lows[end - 1]
        families = families_of_noun(noun)
        if not (families or noun in LISTS["generic"]):
            return None
        begin = end + (self.lows[end : end + 1] in (["where"], ["which"], ["that"], ["who"], ["whom"]))
        if begin > end and (turned := match_verb(self.lows, begin, is_turned=True)) is not None:
            return self._read_thing_that_acts(first, end, turned, depth)
        inner = self.read(begin, is_subject=True, depth=depth + 1)
        if inner is None:
            return None
        term = " ".join(self.lows[first:end])
        rest = [low for low in self.lows[inner.end :] if low not in LISTS["adverbs"]]
        if families and rest and (_OWNING.issuperset(rest) or rest in (["go", "to"], ["goes", "to"], ["attend"])):
            return NounPhrase(inner.start, len(self.lows), [*inner.steps, Step(term, families, noun)])
        matched = match_verb(self.lows, inner.end, is_where=True, answers=_ANSWERS_OF_NOUNS.get(noun.rstrip("s")))
        if matched is None:
            return None
        verbs, after = matched
        after += len(self.lows) == after + 1 and self.lows[after] in LISTS["prepositions"]
        kinds = {load_families()[name].answer for name in families} & {"place", "person"}
        shared = tuple(
            dict.fromkeys(
                verb.family
                for verb in verbs
                if not families or verb.family in families or load_families()[verb.family].answer in kinds
            )
        )
        if not shared:
            return None
        return NounPhrase(inner.start, after, [*inner.steps, Step(term, shared, noun)])

    def _read_thing_that_acts(
        self, first: int, end: int, turned: tuple[list[VerbPhrase], int], depth: int
    ) -> NounPhrase | None:
        """Return the thing of "the firm that employs my brother"."""
        verbs, after = turned
        inner = self.read(after, is_subject=True, depth=depth + 1)
        if inner is None:
            return None
        families = tuple(dict.fromkeys(verb.family for verb in verbs))
        return NounPhrase(inner.start, inner.end, [*inner.steps, Step(" ".join(self.lows[first:end]), families)])

    def _read_relative_clause(self, index: int, depth: int) -> NounPhrase | None:
        """Return the person of "I dated in Lisbon", "I am married to", "my sister married"."""
        if self.lows[index : index + 1] and self.lows[index] in {"who", "that", "whom"}:
            index += 1
        inner = self.read(index, is_subject=True, depth=depth + 1)
        if inner is None:
            return None
        matched = match_verb(self.lows, inner.end, answers={"person"})
        if matched is None:
            return None
        verbs, end = matched
        while end + 1 < len(self.tokens) and self.lows[end] in {"in", "at", "on"} and is_name(self.tokens[end + 1]):
            end += 2
        families = tuple(dict.fromkeys(verb.family for verb in verbs))
        term = " ".join(verbs[0].words)
        is_over = verbs[0].words[0] in _ENDINGS or (families[0] == "partner" and _is_past(self.lows[inner.end]))
        return NounPhrase(inner.start, end, [*inner.steps, Step(term, families, is_over=is_over)])


def _is_past(low: str) -> bool:
    """Return True for "dated" and "met", False for "date" and for "is" in "is dating"."""
    return low not in LISTS["aux"] and (low.endswith("ed") or (bool(lemmas_of(low)) and low not in lemmas_of(low)))


_ENDINGS = frozenset({"break", "split", "divorce"})


_TERM_ENDS = (
    LISTS["aux"] | LISTS["wh"] | LISTS["self"] | LISTS["prepositions"] | LISTS["articles"] | LISTS["owners"]
) - {"will"}
_TERM_ENDS |= LISTS["term_ends"]
_DETERMINERS = LISTS["articles"] | LISTS["every"]
_OWNING = frozenset({"have", "has", "had", "own", "owned", "got"})
_ANSWERS_OF_NOUNS = {"place": {"place", "organization"}, "person": {"person"}, "people": {"person"}}
_OWN_RELATIVES = LISTS["own_relatives"]


def _is_pupil(step: Step) -> bool:
    """Return True for a child, whose school is no employer."""
    return not _PUPILS.isdisjoint(step.families)


_PUPILS = frozenset({"child", "son", "daughter", "niece", "nephew", "grandchild"})


def is_relative(noun: str) -> bool:
    """Return True for a noun that names a person by their relation to another."""
    return any(load_families()[family].answer == "person" for family in families_of_noun(noun))


def is_relative_or_pet(noun: str) -> bool:
    """Return True for a noun of a living being."""
    return any(load_families()[family].answer in {"person", "animal"} for family in families_of_noun(noun))


def _step_of(words: Sequence[str]) -> Step | None:
    """Return the step of a noun with its adjectives; None for "name", as every path ends at a name."""
    kept = list(words)
    if kept and kept[-1] in LISTS["generic"] and not families_of_noun(kept[-1]):
        kept.pop()
    if kept[-1:] in (["name"], ["names"], ["surname"], ["nickname"]):
        kept.pop()
    if not kept or all(word in {"full", "first", "last"} for word in kept):
        return None
    head = kept[-1]
    if kept[-2:] == ["in", "law"]:
        kept = ["-".join(kept[-3:])]
        head = kept[0]
    is_over = head.startswith("ex-") or (
        len(kept) > 1 and bool(LISTS["past_adjectives"].intersection(kept[:-1]) - {"old"})
    )
    head = head.removeprefix("ex-")
    families = families_of_noun(head)
    if head == "ex":
        families, is_over = ("partner", "married_to", "engaged_to"), True
    if not families and head in LISTS["ages"]:
        families = ("child",)
    if "old" in kept[:-1] and _is_replaced(families):
        is_over = True
    favorites = {"favorite", "favourite", "fave", "fav"}
    if favorites.intersection(kept):
        families = ("favorite",)
    return Step(" ".join(kept), families, head, is_over)


def _is_replaced(families: Sequence[str]) -> bool:
    """Return True if a new value replaces the old one, so that "my old job" is a former one, unlike "my old friend"."""
    return bool(families) and all(
        load_families()[name].is_single and load_families()[name].answer in ("place", "organization", "job")
        for name in families
    )


def match_verb(
    lows: Sequence[str],
    index: int,
    *,
    has_be: bool = False,
    answers: set[str] | None = None,
    is_where: bool = False,
    is_turned: bool = False,
    is_negative: bool = False,
    max_words: int = 9,
) -> tuple[list[VerbPhrase], int] | None:
    """Return the longest phrases of families that a verb at a position begins, and the position after them.

    Args:
        has_be: a form of "be" is before the subject ("who is Tom dating").
        answers: kinds of values that are wanted; other families are left out if one fits.
        is_where: the question asks for a place, so that "at" and "in" may be missing.
        is_turned: only verbs with the value as their subject.
        is_negative: the clause is denied, so that "not stand" may be meant.
        max_words: number of words that the phrase takes at most.
    """
    while index < len(lows) and lows[index] in _VERB_LEADS:
        has_be = has_be or lows[index] in LISTS["be"]
        index += 1
    if index >= len(lows) or not lows[index]:
        return None
    found: list[tuple[int, VerbPhrase]] = []
    denied = [verb for verb in find_verbs("not") if verb.words[1] in lemmas_of(lows[index])] if is_negative else []
    for verb in (*denied, *find_verbs(lows[index])):
        if verb.is_turned != is_turned or (verb.has_be and not has_be):
            continue
        length = _match_words(verb, lows, index, is_where=is_where)
        if 0 < length <= max_words:
            found.append((length, verb))
    if answers is not None:
        fitting = [one for one in found if load_families()[one[1].family].answer in answers]
        found = fitting or found
    if not found:
        return None
    longest = max(length for length, _ in found)
    verbs = [verb for length, verb in found if length == longest]
    verbs = [verb for verb in verbs if verb.words[0] == "not"] or verbs
    return sorted(verbs, key=lambda verb: not verb.family.startswith(verb.words[0])), index + longest


_VERB_LEADS = LISTS["be"] | LISTS["adverbs"] | LISTS["verb_leads"]


def _match_words(verb: VerbPhrase, lows: Sequence[str], index: int, *, is_where: bool) -> int:
    """Return the number of words that a phrase takes at a position, 0 if it does not fit."""
    rest = verb.words[2 if verb.words[0] == "not" else 1 :]
    end = index + 1 + len(rest)
    said = lows[index + 1 : end]
    if tuple(said) == rest or (len(said) == len(rest) and all(map(_is_same_word, rest, said))):
        return 1 + len(rest)
    is_optional = bool(rest) and (
        (verb.has_be and len(rest) == 1) or (is_where and rest[-1] in {"at", "in", "from", "to"})
    )
    is_short = lows[index + 1 : end - 1] == list(rest[:-1]) and lows[end - 1 : end] in ([], [""])
    return len(rest) if is_optional and is_short else 0


def _is_same_word(word: str, low: str) -> bool:
    """Return True for equal words; "a" matches any determiner, "my" any owner."""
    if word == low:
        return True
    owners = LISTS["determiners"]
    return low in owners if word == "my" else word == "a" and (low in owners or low in LISTS["articles"])
