"""Readers of the values of clauses: places, people, jobs, things and the like, at a position of a text."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mem0_core.language._grammar import Grammar
from mem0_core.language._tokens import TokenizedText

MAX_PHRASE_WORDS = 20
MAX_VALUE_WORDS = 5
MAX_ROLE_WORDS = 4
_COUNTED = frozenset({"times", "days", "hours", "nights", "years", "yrs", "months", "weeks"})


class Value(NamedTuple):
    """A value as written.

    Attributes:
        text: empty if the text names none.
        family, label: of a noun that names the relation ("two sons, Kai and Jordan").
        is_unnamed: True for a person or a pet with a name that may follow ("a cat", "someone new").
        gender: ``m`` or ``f``, where a noun tells it ("a guy called Felix").
    """

    text: str
    family: str = ""
    label: str = ""
    is_unnamed: bool = False
    gender: str = ""


class Found(NamedTuple):
    """Values, and the index after them."""

    values: tuple[Value, ...]
    stop: int


class SlotReader:
    """Reads slots of patterns.

    Args:
        mention: reads a person at an index, and returns the name and the index after it; None if there is none.
    """

    def __init__(
        self, text: TokenizedText, grammar: Grammar, mention: Callable[[int, int], tuple[str, int] | None]
    ) -> None:
        self._text, self._grammar, self._mention = text, grammar, mention
        self._clauses = grammar.clauses
        self._words = grammar.words
        self._job_endings = grammar.endings("job_endings")

    def read(self, slot: str, at: int, end: int, strict: bool) -> Found | None:
        """Return the values of a slot at `at`; None if there are none.

        Args:
            strict: True if another word may not limit the value ("I don't like tea in the morning").
        """
        if at >= end:
            return None
        return _READERS[slot](self, at, end, strict)

    # Phrases

    def phrase_end(self, at: int, end: int) -> int:
        """Return the end of the noun phrase that begins at `at`."""
        stop, last = at, min(end, at + MAX_PHRASE_WORDS)
        lows, breaks, joins = self._text.lows, self._grammar.breaks, self._words["joins"]
        while (
            stop < last
            and lows[stop] not in breaks
            and lows[stop] not in joins
            and (lows[stop][:1].isalnum() or lows[stop] == "'s")
            and not (stop > at and self._begins_aside(stop))
        ):
            stop += 1
        return stop

    def _begins_aside(self, index: int) -> bool:
        """Return True for the subject of another clause (``I``), or a count of times (``four times``)."""
        low, after = self._text.lows[index], self._text.low(index + 1)
        if low in self._words["first"] or low in {"he", "she", "they"}:
            return True
        return after in _COUNTED and (low.isdecimal() or low in self._words["numbers"])

    def skip(self, at: int, end: int, name: str) -> int:
        """Return the index after one word of a list, or `at`."""
        return at + (at < end and self._text.lows[at] in self._words[name])

    def _is_plain(self, start: int, stop: int, most: int = MAX_VALUE_WORDS) -> bool:
        return 0 < stop - start <= most and self._words["vague"].isdisjoint(self._text.lows[start:stop])

    def _single(self, start: int, stop: int) -> Found:
        return Found((Value(self._text.join(start, stop)),), stop)

    def is_break(self, index: int, end: int) -> bool:
        """Return True if no word follows that belongs to the words before `index`."""
        if index >= end:
            return True
        low = self._text.lows[index]
        return not low[:1].isalnum() or low in self._grammar.breaks or low in self._words["joins"]

    # Names

    def proper_name(self, at: int, end: int) -> int:
        """Return the end of a name that may hold a possessive (``Queen's Hospital``, ``McDonald's``); `at` if none."""
        text = self._text
        stop = text.name_end(at, end)
        if stop > at and text.low(stop) == "'s" and stop < end:
            after = text.name_end(stop + 1, end)
            if after > stop + 1:
                return after
            return stop + 1 if self.is_break(stop + 1, end) else at
        return stop

    def _casual_end(self, at: int, end: int) -> int:
        """Return the end of a name in lower case, in a text that has no others; `at` if none begins."""
        if not self._text.is_casual:
            return at
        stop = at
        while stop < min(end, at + 2) and self._is_casual_word(stop):
            stop += 1
        return stop if stop > at and self.is_break(stop, end) else at

    def _is_casual_word(self, index: int) -> bool:
        low = self._text.lows[index]
        return len(low) > 1 and low.isalpha() and low not in self._grammar.no_names and low not in self._words["common"]

    def _named(self, at: int, end: int, strict: bool) -> Found | None:
        first = at + (self._text.low(at) == "the")
        stop = self.proper_name(first, end)
        return self._single(first, stop) if stop > first else None

    def _name(self, at: int, end: int, strict: bool) -> Found | None:
        stop = self._text.name_end(at, end) or at
        if stop == at:
            stop = self._casual_end(at, min(end, at + 1))
        if stop == at or self._text.low(stop) == "'s" or self._is_person_noun(at):
            return None
        return self._single(at, stop)

    def _is_person_noun(self, index: int) -> bool:
        low = self._text.low(index)
        return low in self._grammar.kin or low in self._words["peoples"]

    def _names(self, at: int, end: int, strict: bool) -> Found | None:
        found = self.list_of_names(at, end)
        return found if found.values else None

    def list_of_names(self, at: int, end: int, is_plural: bool = False) -> Found:
        """Return ``A``, ``A and B`` or ``A, B and C``.

        Args:
            is_plural: True if several are expected, so that a verb may follow the last one.
        """
        names: list[Value] = []
        text, index = self._text, at
        while index < end:
            index += bool(names) and text.low(index) in {"young", "little", "baby", "old"}
            stop = text.name_end(index, end) or index
            if stop == index or text.low(stop) == "'s":
                break
            names.append(Value(text.join(index, stop)))
            index = self._skip_age(stop, end) if is_plural else stop
            joint = index
            while joint < min(end, index + 2) and text.lows[joint] in self._words["joins"]:
                joint += 1
            named = joint + (text.low(joint) in {"young", "little", "baby", "old"})
            if joint == index or named >= end or not text.is_name(named):
                break
            if not is_plural and not self._continues_list(joint, end):
                break
            index = joint
        return Found(tuple(names), index)

    def _skip_age(self, at: int, end: int) -> int:
        """Return the index after the age of a child (``Isla, fourteen, and Dev``)."""
        text = self._text
        index = at + (text.low(at) in {",", "("} and at < end)
        is_age = text.low(index).isdecimal() or text.low(index) in self._words["numbers"]
        if index >= end or not is_age or (text.low(index + 1)[:1].isalpha() and text.low(index + 1) != "and"):
            return at
        return index + 1 + (text.low(index + 1) == ")")

    def _continues_list(self, at: int, end: int) -> bool:
        """Return True if the name at `at` is an item of a list, not the subject of a clause."""
        stop = self._text.name_end(at, end)
        after = self._text.low(stop) if stop < end else ""
        return (
            not after
            or after in self._words["joins"]
            or (
                self.is_break(stop, end)
                and after
                not in {
                    "is",
                    "was",
                    "has",
                    "had",
                    "'s",
                    "who",
                }
            )
        )

    # People

    def _person(self, at: int, end: int, strict: bool) -> Found | None:
        mentioned = self._mention(at, end)
        if mentioned is not None:
            return Found((Value(mentioned[0]),), mentioned[1])
        text = self._text
        stop = text.name_end(at, end)
        if stop > at:
            names = self.list_of_names(at, end)
            return None if not names.values or self._is_person_noun(at) else names
        stranger = self._stranger(at, end)
        if stranger is not None:
            return stranger
        stop = self._casual_end(at, min(end, at + 1)) if text.low(at).isalpha() else at
        return self._single(at, stop) if stop > at else None

    def _stranger(self, at: int, end: int) -> Found | None:
        """Read ``a guy called Felix``, ``someone new``."""
        text, stop = self._text, min(end, at + 7)
        first = self.skip(at, end, "articles")
        noun = next((i for i in range(first, min(stop, first + 3)) if text.lows[i] in self._words["someone"]), -1)
        if noun < 0 and first > at:
            return self._described_person(first, end)
        if noun < 0 or (first == at and not text.lows[noun].startswith("some")):
            return None
        if text.low(noun + 1) == "," and (named := self._described_person(first, end)) is not None:
            return named
        low = text.lows[noun]
        gender = "m" if low in self._words["male"] else "f" if low in self._words["female"] else ""
        for index in range(noun + 1, min(end, noun + 7)):
            if text.lows[index] in {"called", "named"} or text.lows[index - 1 : index + 1] == ["name", "of"]:
                name = self._name(index + 1, end, strict=False)
                if name is None and index + 1 < end and text.words[index + 1][:1].isupper():
                    name = self._single(index + 1, index + 2)
                if name is not None:
                    return Found((name.values[0]._replace(gender=gender),), name.stop)
        return Found((Value("", is_unnamed=True, gender=gender),), noun + 1)

    def _described_person(self, first: int, end: int) -> Found | None:
        """Read ``Frenchman, Luc``, ``girl from work, Ana`` after an article: the name at the end of the clause."""
        text = self._text
        comma = next((i for i in range(first + 1, min(end, first + MAX_VALUE_WORDS)) if text.lows[i] == ","), -1)
        if comma < 0 or any(text.lows[i] in self._words["objects"] for i in range(first, comma)):
            return None
        stop = text.name_end(comma + 1, end)
        is_alone = stop > comma + 1 and (stop >= end or text.low(stop) in {",", ";", "and", "but", ")"})
        return self._single(comma + 1, stop) if is_alone else None

    # Places

    def _place(self, at: int, end: int, strict: bool) -> Found | None:
        first = at + (self._text.low(at) == "the")
        if first > at and self._text.low(first) in self._words["homes"] and self._text.low(first + 1) == "of":
            first += 2  # "the city of Basel"
        stop = self._text.name_end(first, end)
        if stop == first:
            stop = self._casual_end(first, end) if first == at else first
        elif self._text.low(stop) == "'s" and stop < end and not self.is_break(stop + 1, end):
            return None
        return self._single(first, stop) if stop > first else None

    def _home(self, at: int, end: int, strict: bool) -> Found | None:
        """Read ``a little house near Bergen``: the place is the value."""
        text = self._text
        for noun in range(at, min(end, at + 6)):
            low = text.lows[noun]
            if low in self._words["homes"] and text.low(noun + 1) not in self._words["homes"]:  # "a two-bed flat"
                return self._place_of_home(noun + 1, end, strict)
            is_word = low.replace("-", "").isalnum() and low not in self._words["objects"]
            if not is_word or low in self._grammar.breaks:
                return None
        return None

    def _place_of_home(self, at: int, end: int, strict: bool) -> Found | None:
        """Read ``in Splott``, ``above a launderette in Splott`` after a home."""
        text, first = self._text, at
        if text.low(at) in {"above", "over", "behind", "opposite", "beside"}:
            first = self.skip(at + 1, end, "determiners") + 1
            if first == at + 2 or text.low(first) not in {"in", "near", "outside"}:
                return None  # "above Tesco", "above a shop that opened in London"
        for index in range(first, min(end, first + 3)):
            if text.lows[index] in {"in", "near", "outside", "by", "called", "named"}:
                return self._place(index + 1, end, strict)
        return None

    def _tour(self, at: int, end: int, strict: bool) -> Found | None:
        """Read ``the Japan trip``, ``our trip to Japan``."""
        text, first = self._text, self.skip(at, end, "determiners")
        tours = {"trip", "holiday", "vacation", "tour", "visit", "journey", "honeymoon", "getaway", "plan", "plans"}
        if text.low(first) in tours:
            return self._place(first + 2, end, strict) if text.low(first + 1) in {"to", "in"} else None
        stop = text.name_end(first, end) or first
        if stop == first and text.is_casual:
            stop = next((i for i in range(first, min(end, first + 3)) if text.lows[i] in tours), first)
        return self._single(first, stop) if stop > first and text.low(stop) in tours else None

    # Organizations and groups

    def _organization(self, at: int, end: int, strict: bool) -> Found | None:
        text = self._text
        first = self.skip(at, end, "articles")
        stop = self.proper_name(first, end)
        if stop == first and text.name_end(first, end) > first:  # "John's company"
            stop = self.phrase_end(first, end)
            return self._single(first, stop) if self._is_plain(first, stop, 4) else None
        if stop > first and not self.is_break(stop, end):
            named = self._naming_word(first, self.phrase_end(first, end), end)
            if named >= 0:  # "a Danish company called X"
                return self._named(named + 1, end, strict)
        if stop > first:
            is_site = text.low(stop) in self._words["sites"]
            return self._single(first, stop) if is_site or self.is_break(stop, end) else None
        stop = self.phrase_end(first, end)
        named = self._naming_word(first, stop, end)
        if named >= 0:
            return self._named(named + 1, end, strict)
        name = next((i for i in range(first, stop) if text.is_name(i)), -1)
        if name > first and text.name_end(name, end) >= stop and first > at:
            return self._single(name, text.name_end(name, end))
        if first == at:
            stop = self._casual_end(at, end)
            return self._single(at, stop) if stop > at else None
        closer = text.name_end(stop + 1, end) if text.low(stop) == "," else stop
        if closer > stop + 1 and (closer >= end or text.low(closer) in {",", ";", ")"}):
            return self._single(stop + 1, closer)  # "a Swiss insurer, Helvetia"
        is_kind = stop > first and text.lows[stop - 1] not in self._words["no_employers"]
        return self._single(first, stop) if is_kind and self._is_plain(first, stop, 4) else None

    def _naming_word(self, first: int, stop: int, end: int) -> int:
        """Return the index of ``called`` in ``a firm called X``, of ``of`` in ``a firm by the name of X``.

        -1 if the phrase from `first` to `stop` has no name.
        """
        lows = self._text.lows
        for index in range(first, min(end, stop + MAX_VALUE_WORDS)):
            if lows[index] in {"called", "named"}:
                return index
            if lows[index : index + 4] == ["by", "the", "name", "of"]:
                return index + 3
            if index < stop:
                continue
            is_noun = self._text.is_name(index) or lows[index - 1] in self._words["articles"]
            if not (is_noun or lows[index] in {",", "in", "near"} or lows[index] in self._words["articles"]):
                return -1
        return -1

    def _employer(self, at: int, end: int, strict: bool) -> Found | None:
        named = self._named(at, end, strict)
        if named is not None or self._text.low(at) != "the":
            return named
        stop = self.phrase_end(at + 1, end)
        fits = stop > at + 1 and self._text.lows[stop - 1] in self._words["employers"] and stop - at <= MAX_VALUE_WORDS
        return self._single(at + 1, stop) if fits else None

    def _school(self, at: int, end: int, strict: bool) -> Found | None:
        first = at + (self._text.low(at) == "the")
        stop = self.proper_name(first, end)
        if stop == first:
            return None
        return self._single(first, stop + (self._text.low(stop) in {"uni", "university", "college"}))

    def _university(self, at: int, end: int, strict: bool) -> Found | None:
        found = self._school(at, end, strict)
        if found is None:
            return None
        return found if not self._words["schools"].isdisjoint(found.values[0].text.lower().split()) else None

    def _department(self, at: int, end: int, strict: bool) -> Found | None:
        first = self.skip(at, end, "determiners")
        stop = self.phrase_end(first, end)
        return Found((), stop) if stop > first and self._text.lows[stop - 1] in self._words["departments"] else None

    def _group(self, at: int, end: int, strict: bool) -> Found | None:
        text, first = self._text, self.skip(at, end, "determiners")
        stop = self.phrase_end(first, end)
        named = next((i for i in range(first, stop) if text.lows[i] in {"called", "named"}), -1)
        if named >= 0:
            return self._named(named + 1, end, strict)
        fits = first > at and any(low in self._words["groups"] for low in text.lows[first:stop])
        closer = text.name_end(stop + 1, end) if fits and text.low(stop) == "," else stop
        if closer > stop + 1 and text.low(closer) == "'s":
            closer += 1
        if closer > stop + 1 and (closer >= end or text.low(closer) in {",", ";", ")"}):
            return self._single(stop + 1, closer)  # "a choir, St Cuthbert's"
        return self._single(first, stop) if fits and stop - first <= MAX_VALUE_WORDS else None

    def _business(self, at: int, end: int, strict: bool) -> Found | None:
        text, first = self._text, self.skip(at, end, "determiners")
        stop = self.phrase_end(first, end)
        named = next((i for i in range(first, stop) if text.lows[i] in {"called", "named"}), -1)
        if named >= 0:
            return self._named(named + 1, end, strict)
        found = self._ownable(at, end, strict) or self._own_business(at, first, end)
        if found is not None and text.low(found.stop) in {"called", "named"} and found.stop < end:
            return self._named(found.stop + 1, end, strict)
        return found

    def _own_business(self, at: int, first: int, end: int) -> Found | None:
        """Read ``a surf school``, ``her own consultancy``."""
        first += self._text.low(first) == "own"
        stop = self.phrase_end(first, end)
        is_named = first > at or self._text.low(at - 1) == "own"
        fits = is_named and self._is_plain(first, stop) and self._text.lows[stop - 1] in self._words["businesses"]
        return self._single(first, self._with_place(stop, end)) if fits else None

    def _workplace(self, at: int, end: int, strict: bool) -> Found | None:
        """Read ``the library``, ``an oil rig``: the kind of a place of work, with its article."""
        first = self.skip(at, end, "articles")
        stop = self.phrase_end(first, end)
        fits = first > at and self._is_plain(first, stop, 3) and self._text.lows[stop - 1] in self._words["workplaces"]
        return self._single(first, stop) if fits else None

    # Work

    def is_job(self, low: str) -> bool:
        """Return True for the last word of an occupation."""
        return low in self._words["jobs"] or low.endswith(self._job_endings)

    def is_job_title(self, at: int) -> bool:
        """Return True if an occupation begins at `at` and a place, a time or the end of the clause follows it."""
        text, words = self._text, self._words
        stop, low = at, text.low(at)
        if low in words["determiners"] or low in words["pronouns"]:
            return False
        jobs, endings, breaks, lows = words["jobs"], self._job_endings, self._grammar.breaks, text.lows
        last = min(at + MAX_ROLE_WORDS, len(lows))
        while stop < last and not ((low := lows[stop]) in jobs or low.endswith(endings)):
            if low in breaks or not (low.isalpha() or low.replace("-", "").isalpha()):
                return False
            stop += 1
        if stop == len(lows):
            return False
        while self.is_job(text.low(stop)):
            stop += 1
        is_count = text.low(stop) == "," and (text.low(stop + 1).isdecimal() or text.low(stop + 1) in words["numbers"])
        return is_count or text.low(stop) in words["title_ends"]

    def _job(self, at: int, end: int, strict: bool) -> Found | None:
        text = self._text
        first = self.skip(at, end, "articles")
        if first < end and text.lows[first] in {"my", "your", "our"}:
            return None
        stop = self.phrase_end(first, end)
        head = next((i for i in range(first, min(stop, first + MAX_ROLE_WORDS)) if self.is_job(text.lows[i])), -1)
        while head >= 0 and head + 1 < stop and self.is_job(text.lows[head + 1]):
            head += 1
        if head < 0 or any(
            text.lows[i] == "'s" and text.lows[i - 1] not in self._words["possessive_jobs"] for i in range(first, head)
        ):
            return None
        if first == at and any(
            low in self._clauses.heads for low in set(text.lows[first:head]) - self._words["job_adjectives"]
        ):
            return None
        after = text.low(head + 1) if head + 1 < end else ""
        if not (self.is_break(head + 1, end) or after in {"of", "living", "working", "based", "trying"}):
            return None
        is_title = head > first or after == "of" or text.words[at].isupper() or text.low(at - 1) in {"to", "of"}
        if first == at and not is_title:
            return None
        return self._single(first, self._with_field(head + 1, end) if after == "of" else head + 1)

    def _with_field(self, at: int, end: int) -> int:
        """Return the end of ``of logistics`` after a job; `at` for the employer of ``director of the Louvre``."""
        stop = self.phrase_end(at + 1, end)
        field = self._text.words[at + 1 : stop]
        fits = 0 < len(field) < MAX_ROLE_WORDS and all(word.isalpha() and word.islower() for word in field)
        fits = fits and self._words["vague"].isdisjoint(field) and field[0] not in self._words["articles"]
        return stop if fits else at

    def _role(self, at: int, end: int, strict: bool) -> Found | None:
        text = self._text
        first = self.skip(at, end, "articles")
        stop = next((i for i in range(first, end) if text.lows[i] == "of"), end)
        stop = min(stop, self.phrase_end(first, end))
        is_role = self._is_plain(first, stop, MAX_ROLE_WORDS) and text.lows[first] not in self._words["no_roles"]
        return self._single(first, stop) if is_role else None

    def _subject_matter(self, at: int, end: int, strict: bool) -> Found | None:
        stop = self.phrase_end(at, end)
        dull = self._words["not_studied"]
        fits = self._is_plain(at, stop, 3) and dull.isdisjoint(self._text.lows[at:stop])
        return self._single(at, stop) if fits and self._text.lows[at] not in self._words["articles"] else None

    # Things

    def _list(self, at: int, end: int, kind: str, strict: bool) -> Found | None:
        """Return the items of ``A, B and C``; if `strict`, only if no other word limits them."""
        text, items, first = self._text, list[Value](), at
        stop, joins = self._list_end(at, end), self._words["joins"]
        for index in range(at, stop + 1):
            if index == stop or text.lows[index] in joins:
                item = self._item(first, index, kind, strict or bool(items))
                if not item and (index > first or not items):
                    items = items if "," in text.lows[max(at, first - 2) : first] else items[:1]
                    stop = first - 1
                    break
                items, first = [*items, Value(item)] if item else items, index + 1
        after = text.low(stop) if stop < end else ""
        is_doing = kind == "things" and len(items) == 1 and _is_gerund(items[0].text)
        if (strict or is_doing) and after[:1].isalnum() and after not in self._words["goes_on"]:
            return None
        if kind == "things" and after in {"that", "which", "who", "how", "when", "where"}:
            return None
        if kind == "things" and len(items) > 1 and after[:1].isalnum() and after not in self._words["goes_on"]:
            items = items[:-1] if _is_gerund(items[-1].text) and " " not in items[-1].text else items
        items = self._keep_whole(items, kind)
        if len(items) > 1 and {"and", "or", "&", "n", "plus"}.isdisjoint(text.lows[at:first]):
            return self._before_aside(at, stop, items[0], kind)
        if not items:
            return None
        return Found(tuple(items), max(stop, at + 1))

    def _before_aside(self, at: int, stop: int, item: Value, kind: str) -> Found | None:
        """Return the value before an aside (``shellfish, allergic``) if it is one known word for food."""
        comma = next((i for i in range(at, stop) if self._text.lows[i] == ","), -1)
        fits = kind == "things" and comma > at and item.text.lower() in self._words["foods"]
        return Found((item,), comma) if fits else None

    def _list_end(self, at: int, end: int) -> int:
        stop, lows = at, self._text.lows
        joins, breaks = self._words["joins"], self._grammar.breaks
        while stop < min(end, at + MAX_PHRASE_WORDS) and lows[stop] not in breaks:
            if not (lows[stop][:1].isalnum() or lows[stop] == "'s" or lows[stop] in joins):
                break
            if stop > at and lows[stop - 1] not in joins and self._begins_aside(stop):
                break
            stop += 1
        return stop

    def _keep_whole(self, items: list[Value], kind: str) -> list[Value]:
        """Drop the items that need the last one: "action and horror films" says nothing of action."""
        if kind == "things" and len(items) > 1 and " " in items[-1].text and not _is_gerund(items[-1].text):
            return [item for item in items if " " in item.text or item.text.endswith(("s", "ing"))]
        return items

    def _item(self, at: int, end: int, kind: str, strict: bool) -> str:
        """Return the item between two positions; empty if it is none, or needs its context."""
        text = self._text
        first = self.skip(at, end, "articles")
        if kind == "languages":
            return self._language(at, end)
        said = text.lows[first:end]
        fits = self._is_plain(first, end, 3 if strict else 4)
        if (
            not fits
            and end - first <= MAX_VALUE_WORDS
            and said
            and _is_gerund(said[0])
            and said[0] not in self._words["vague"]
        ):
            first, said = self._gerund_phrase(first, end)
            fits = bool(said)
        if kind == "games":
            fits &= bool(said) and said[-1] in self._words["games"]
            fits &= not strict or len(said) < 2 or said[0] not in self._clauses.heads  # "(quit judo and) plays golf"
        elif kind == "things":
            stop = text.name_end(first, end)
            fits &= stop > first or text.lows[at : at + 1] != ["the"]
            fits &= not strict or _is_gerund(said[0] if said else "") or self._clauses.heads.keys().isdisjoint(said[1:])
            fits &= not (
                strict and said and any(form in ("s", "past") for _, form in self._clauses.heads.get(said[0], ()))
            )
        return text.join(first, end) if fits else ""

    def _gerund_phrase(self, first: int, end: int) -> tuple[int, list[str]]:
        """Return ``playing the guitar``: after a gerund an article is no obstacle, another word without sense is."""
        said = self._text.lows[first:end]
        rest = [low for low in said[1:] if low not in self._words["articles"]]
        return first, said if rest and self._words["vague"].isdisjoint(rest) and len(rest) < 4 else []

    def _language(self, at: int, end: int) -> str:
        lows = self._text.lows
        index = next((i for i in range(at, end) if lows[i] in self._words["languages"]), -1)
        if index < 0 or (index > at and lows[index - 1] in self._words["objects"]):
            return ""
        return self._text.join(index, index + 1 + (index + 1 < end and lows[index + 1] == "language"))

    def _languages(self, at: int, end: int, strict: bool) -> Found | None:
        return self._list(at, end, "languages", strict)

    def _things(self, at: int, end: int, strict: bool) -> Found | None:
        return self._list(at, end, "things", strict)

    def _games(self, at: int, end: int, strict: bool) -> Found | None:
        if self._text.is_name(at) and self._text.low(at + 1) in self._words["games"]:
            return self._single(at, at + 2)  # American football
        return self._list(at, end, "games", strict)

    def _pastimes(self, at: int, end: int, strict: bool) -> Found | None:
        at += self._text.low(at) == "the"
        if at >= end:
            return None
        found = self._list(at, end, "things", strict=False)
        if found is None:
            found = self._single(at, at + 1)
        kept = tuple(value for value in found.values if self._is_pastime(value.text))
        return Found(kept, found.stop) if kept else None

    def _is_pastime(self, value: str) -> bool:
        words = value.lower().split()
        if not words or words[0] in self._words["no_pastimes"]:
            return False
        return words[0] in self._words["pastimes"] or words[-1] in self._words["pastimes"] or _is_gerund(words[0])

    def _known_pastimes(self, at: int, end: int, strict: bool) -> Found | None:
        if self._text.lows[at] in {"a", "an", "this", "that", "another"}:
            return None
        first = self.skip(at, end, "determiners")
        found = self._pastimes(first, end, strict)
        if found is None:
            return None
        known = self._words["pastimes"] | self._words["going"]
        kept = tuple(v for v in found.values if not known.isdisjoint(v.text.lower().split()))
        return Found(kept, found.stop) if kept else None

    def _ability(self, at: int, end: int, strict: bool) -> Found | None:
        """Read the base form of a sport: ``(can't) run (anymore)`` is running."""
        low = self._text.low(at)
        known = self._words["going"]
        doubled = low + low[-1:] + "ing"
        doing = next((form for form in (low + "ing", doubled, low.removesuffix("e") + "ing") if form in known), "")
        return Found((Value(doing),), at + 1) if doing else None

    def _medicines(self, at: int, end: int, strict: bool) -> Found | None:
        found = self._drugs(at, end, strict)
        if found is None:
            return None
        kept = tuple(value for value in found.values if self._is_medicine(value.text))
        return Found(kept, found.stop) if kept else None

    def _is_medicine(self, value: str) -> bool:
        endings = self._grammar.endings("medicine_endings")
        return any(w in self._words["medicines"] or (len(w) > 5 and w.endswith(endings)) for w in value.lower().split())

    def _drugs(self, at: int, end: int, strict: bool) -> Found | None:
        lows, first = self._text.lows, self.skip(at, end, "determiners")
        while first < min(end, at + 5) and (
            lows[first][:1].isdigit() or lows[first] in {"mg", "milligrams", "of", "a", "dose", "daily", "low"}
        ):
            first += 1
        if first >= end:
            return None
        found = self._list(first, end, "things", strict=False)
        if found is None:
            return None
        kept = [v for number, v in enumerate(found.values) if not number or self._is_medicine(v.text)]
        kept = [v for v in kept if self._is_medicine(v.text)] or kept
        return Found(tuple(v for v in kept if len(v.text.split()) < 4), found.stop)

    def _conditions(self, at: int, end: int, strict: bool) -> Found | None:
        first = self.skip(at, end, "determiners")
        found = self._ailment(first, end, strict)
        if found is None:
            return None
        known = self._words["conditions"]
        return found if not known.isdisjoint(found.values[0].text.lower().replace("’", "'").split()) else None

    def _ailment(self, at: int, end: int, strict: bool) -> Found | None:
        text, first = self._text, self.skip(at, end, "articles")
        stop = self.phrase_end(first, end)
        fits = 0 < stop - first <= MAX_VALUE_WORDS and self._words["vague"].isdisjoint(text.lows[first:stop])
        return self._single(first, stop) if fits else None

    def _body_part(self, at: int, end: int, strict: bool) -> Found | None:
        index = at + (self._text.low(at) in {"left", "right"})
        return self._single(at, index + 1) if self._text.low(index) in self._words["body"] else None

    def _allergen(self, at: int, end: int, strict: bool) -> Found | None:
        low = self._text.low(at)
        fits = low.isalpha() and low not in self._words["vague"] and low not in self._grammar.breaks
        return self._single(at, at + 1) if fits else None

    def _allergens(self, at: int, end: int, strict: bool) -> Found | None:
        found = self._things(at, end, strict=False)
        if found is None or (found.stop < end and self._text.low(found.stop) in self._words["food_limits"]):
            return None
        kept = tuple(value for value in found.values if value.text.lower() in self._words["allergens"])
        return Found(kept, found.stop) if kept else None

    def _foods(self, at: int, end: int, strict: bool) -> Found | None:
        """Read foods and drinks that no meal or time limits ("I don't eat meat on Fridays")."""
        first = at + (self._text.low(at) in {"any", "the", "my"})
        found = self._things(first, end, strict=False) if first < end else None
        if found is None:
            return None
        foods = self._words["foods"]
        if any(value.text.lower().split()[-1] not in foods for value in found.values):
            return None
        after = self._text.low(found.stop) if found.stop < end else ""
        is_limited = after in self._words["food_limits"] or (
            after in {"for", "in"} and not self._words["meals"].isdisjoint(self._text.lows[found.stop : found.stop + 3])
        )
        return None if is_limited else found

    def _diet(self, at: int, end: int, strict: bool) -> Found | None:
        index = at
        while index < min(end, at + 2) and self._text.lows[index] in {"a", "an", "strict", "fully", "mostly"}:
            index += 1
        joined = f"{self._text.low(index)}-{self._text.low(index + 1)}"
        if joined in self._words["diets"] and self._text.low(index + 2) == "diet":
            return Found((Value(joined),), index + 2)
        fits = self._text.low(index) in self._words["diets"] and (
            self.is_break(index + 1, end) or self._text.low(index + 1) in {"diet", "food", "household"}
        )
        return self._single(index, index + 1) if fits else None

    def _vehicle(self, at: int, end: int, strict: bool) -> Found | None:
        text, first = self._text, self.skip(at, end, "determiners")
        stop = self.phrase_end(first, end)
        if text.low(stop) == "," and text.low(stop + 1) in {"a", "an"}:  # "a new car, a silver Polo"
            closer = self._vehicle(stop + 1, end, strict) if stop > first else None
            if closer is not None and stop < end:
                return closer
        said = text.lows[first:stop]
        if not self._is_plain(first, stop) or not any(self.is_vehicle(i) for i in range(first, stop)):
            return None
        if said[-1] in {"cab", "bus", "lesson", "lessons", "keyboard", "guitar", "piano"} or "'s" in said:
            return None
        return self._single(first, stop)

    def is_vehicle(self, index: int) -> bool:
        """Return True for a word for a vehicle; one that means other things as well needs a capital."""
        low = self._text.lows[index]
        if low not in self._words["vehicles"]:
            return False
        if low in self._words["plain_vehicles"] or self._text.words[index][:1].isupper():
            return True
        return self._text.is_casual and low not in self._words["doubtful_vehicles"]

    def _any_vehicle(self, at: int, end: int, strict: bool) -> Found | None:
        first = self.skip(at, end, "articles")
        stop = self.phrase_end(first, end)
        fits = first > at and 0 < stop - first <= MAX_VALUE_WORDS and self._is_plain(first, stop)
        return self._single(first, stop) if fits else None

    def _gadget(self, at: int, end: int, strict: bool) -> Found | None:
        """Read ``an iPhone``, ``the new ThinkPad``, ``a Pixel 9``: a device."""
        text, first = self._text, self.skip(at, end, "determiners")
        stop = self.phrase_end(first, end)
        said = text.lows[first:stop]
        fits = self._is_plain(first, stop, 4) and not self._words["gadgets"].isdisjoint(said)
        first += said[:1] == ["new"]
        is_device = fits and (said[-1] in self._words["gadgets"] | self._words["models"] or said[-1].isdecimal())
        return self._single(first, stop) if is_device else None

    def _owned(self, at: int, end: int, strict: bool) -> Found | None:
        """Read a thing with its article; its place belongs to it (``a cabin near Tampere``)."""
        text, first = self._text, self.skip(at, end, "determiners")
        stop = self.phrase_end(first, end)
        if first == at or not self._is_plain(first, stop):
            return None
        if any(low in self._grammar.kin for low in text.lows[first:stop]):
            return None
        return self._single(first, self._with_place(stop, end))

    def _with_place(self, stop: int, end: int) -> int:
        text = self._text
        if text.low(stop) in {"in", "near", "on", "by", "outside"} and stop + 1 < end:
            after = text.name_end(stop + 1 + (text.low(stop + 1) == "the"), end)
            if after > stop + 2 or (after == stop + 2 and text.is_name(stop + 1)):
                return after
        return stop

    def _chattel(self, at: int, end: int, strict: bool) -> Found | None:
        """Read a thing of some worth: one with a name or in a list."""
        found = self._owned(at, end, strict)
        if found is None or any(word[:1].isupper() for word in found.values[0].text.split()):
            return found
        return self._ownable(at, end, strict)

    def _ownable(self, at: int, end: int, strict: bool) -> Found | None:
        found = self._owned(at, end, strict)
        if found is None:
            return None
        return found if any(w in self._words["ownable"] for w in found.values[0].text.lower().split()) else None

    # Animals and relatives

    def _pets(self, at: int, end: int, strict: bool) -> Found | None:
        return self._relatives(at, end, {"has_pet"})

    def _kin(self, at: int, end: int, strict: bool) -> Found | None:
        return self._relatives(at, end, frozenset())

    def _relatives(self, at: int, end: int, only: set[str] | frozenset[str]) -> Found | None:
        """Read ``a dog named Rex``, ``two sons, Kai and Jordan``, ``a brother, Milan, and a sister, Jana``."""
        text, values, index = self._text, list[Value](), at
        while index < end:
            noun = self._find_noun(index, end)
            if noun < 0:
                break
            kin = self._grammar.kin[text.lows[noun]]
            if kin.family == "has_pet" and self._is_no_pet(index, noun, end):
                break
            if (kin.family in only) != bool(only):
                break
            names, stop = self._names_after(noun + 1, end)
            values += [Value(name, kin.family, kin.label, gender=kin.gender) for name in names]
            if not names and kin.family == "has_pet":
                first = next((i for i in range(index, noun) if text.lows[i] not in self._words["articles"]), noun)
                values.append(Value(text.join(first, noun + 1), kin.family, kin.label, is_unnamed=True))
            index = stop
            if text.low(index) == "," and index < end:
                index += 1
            if text.low(index) not in {"and", "&", "n"} and text.low(index - 1) != ",":
                break
            index += text.low(index) in {"and", "&", "n"}
            if index >= end or (
                text.lows[index] not in self._words["articles"] | self._words["numbers"]
                and not text.lows[index].isdigit()
            ):
                return Found(tuple(values), stop) if values else None
        return Found(tuple(values), min(end, max(index, at + 1))) if values else None

    def _is_no_pet(self, index: int, noun: int, end: int) -> bool:
        """Return True for ``ordered chicken``, ``a ceramic cat`` and ``a dog bed``."""
        text = self._text
        is_thing = noun + 1 < end and text.lows[noun + 1] in self._words["pet_things"]
        is_lifeless = not self._words["lifeless"].isdisjoint(text.lows[index:noun])
        is_lifeless = is_lifeless and not self._names_after(noun + 1, end)[0]  # "a toy poodle called Bella"
        return is_thing or is_lifeless or (noun > index and (self._is_participle(index) or text.is_name(index)))

    def _is_participle(self, index: int) -> bool:
        """Return True for ``ordered`` in ``I have ordered chicken``."""
        low = self._text.lows[index]
        return low.endswith("ed") or any(form == "done" for _, form in self._clauses.heads.get(low, ()))

    def _find_noun(self, at: int, end: int) -> int:
        """Return the index of the noun of ``two grown boys``; -1 if there is none."""
        lows = self._text.lows
        for index in range(at, min(end, at + 6)):
            if lows[index] in self._grammar.kin and lows[index + 1 : index + 2] != ["'s"]:
                following = lows[index + 1] if index + 1 < min(end, at + 6) else ""
                if following not in self._grammar.kin:
                    return index
            elif (
                lows[index] in self._words["objects"]
                or not lows[index].replace("-", "").isalnum()
                or lows[index] in self._grammar.breaks - {"more"}
            ):
                return -1
        return -1

    def _names_after(self, at: int, end: int) -> tuple[list[str], int]:
        text = self._text
        index = at + (text.low(at) in {",", ":", "-", "–", "—", "("} and at < end)
        if text.low(index) in {"from", "of", "by"} and index < end:
            near = range(index, min(end, index + 5))
            index = next((i for i in near if text.lows[i] in {"called", "named"} or text.lows[i] == "of"), index)
            index += text.lows[index : index + 1] == ["of"]
        index += text.low(index) in {"called", "named"} and index < end
        found = self.list_of_names(index, end, is_plural=True)
        if not found.values and text.is_casual and text.low(index - 1) in {"called", "named"}:
            name = self._name(index, end, strict=False)
            found = name or found
        return [value.text for value in found.values], found.stop if found.values else at

    # Numbers

    def _age(self, at: int, end: int, strict: bool) -> Found | None:
        text, low = self._text, self._text.low(at)
        fits = (low.isdecimal() and 0 < int(low[:4]) < 120) or all(
            part in self._words["numbers"] for part in low.split("-")
        )
        after = text.low(at + 1) if at + 1 < end else ""
        fits &= after not in {"'", "of", "%", "/", "$", "€", "£", ":", "-", "–", "°", "+"}
        fits &= after != "and" or not text.low(at + 2).isdecimal()
        fits &= not after[:1].isalnum() or after in {
            "years",
            "yrs",
            "now",
            "today",
            "and",
            "yesterday",
            "last",
            "in",
            "on",
            "but",
            "next",
        }
        fits &= after not in {"years", "yrs"} or text.low(at + 2) == "old"
        return self._single(at, at + 1) if fits else None

    def _name_and_age(self, at: int, end: int, strict: bool) -> Found | None:
        """Read the name in ``I'm Theo``."""
        text = self._text
        stop = text.name_end(at, end)
        if stop == at and text.is_casual and text.low(at + 1) == "," and self._is_casual_word(at):
            after = text.low(at + 2)
            stop = at + 1 if after.isdigit() or after == "i" else at
        if stop == at or stop - at > 3 or not self.is_break(stop, end) or self._is_person_noun(at):
            return None
        if text.low(stop) in {"in", "at", "on", "'s", "is", "and"} or text.words[at].isupper():
            return None
        return None if text.lows[at] in self._words["languages"] | self._words["peoples"] else self._single(at, stop)

    def _date(self, at: int, end: int, strict: bool) -> Found | None:
        text, first = self._text, at
        while first < min(end, at + 2) and text.lows[first] in {"on", "in", "the"}:
            first += 1
        stop = first
        while stop < min(end, first + 5) and (
            text.lows[stop][0:1].isdigit()
            or text.lows[stop] in self._words["months"]
            or text.lows[stop] in {"of", "the"}
        ):
            stop += 1
        said = text.lows[first:stop]
        fits = any(low in self._words["months"] for low in said) or sum(low[:1].isdigit() for low in said) > 1
        return self._single(first, stop) if fits else None

    def _time(self, at: int, end: int, strict: bool) -> Found | None:
        return Found((), end) if end - at < MAX_VALUE_WORDS else None

    def _frequency(self, at: int, end: int, strict: bool) -> Found | None:
        low, after = self._text.lows[at], self._text.low(at + 1)
        fits = low in self._words["frequently"] or low.isdecimal() or low in {"once", "twice"}
        fits |= after == "times" and low in self._words["numbers"]
        fits |= low == "a" and after in {"lot", "bit", "ton"}
        fits |= low == "on" and (after in self._words["timely"] or after.endswith(("days", "weekends")))
        fits |= self._text.lows[at : at + 3] == ["as", "a", "hobby"] or self._text.lows[at : at + 2] == ["at", "the"]
        return Found((), at + 1) if fits else None

    def _ailing(self, at: int, end: int, strict: bool) -> Found | None:
        is_typed = self._text.low(at) == "type" and self._text.low(at + 1)[:1].isdigit()
        noun = at + 2 if is_typed else at  # "type 1 diabetic"
        fits = self._text.low(noun) in self._words["ailing"] and noun < end and self.is_break(noun + 1, end)
        return self._single(at, noun + 1) if fits else None

    def _rest(self, at: int, end: int, strict: bool) -> Found | None:
        return Found((), self.phrase_end(at, end))

    def _tools(self, at: int, end: int, strict: bool) -> Found | None:
        first = self.skip(at, end, "determiners")
        found = self.list_of_names(first, end)
        if found.values:
            return found
        stop = first + 1
        mixed = first < end and any(c.isupper() for c in self._text.words[first][1:])  # iPhone
        stop += stop < end and self._text.lows[stop].isdecimal()
        return self._single(first, stop) if mixed and self.is_break(stop, end) else None


def _is_gerund(text: str) -> bool:
    first = text.split(" ", 1)[0]
    return len(first) > 5 and first.endswith("ing") and first.replace("-", "").isalpha()


_READERS: dict[str, Callable[[SlotReader, int, int, bool], Found | None]] = {
    name: reader
    for names, reader in (
        ("PLACE TOWN TRIP", SlotReader._place),
        ("HOME", SlotReader._home),
        ("TOUR", SlotReader._tour),
        ("ORG", SlotReader._organization),
        ("NAMED TEAM", SlotReader._named),
        ("EMPLOYER", SlotReader._employer),
        ("WORKPLACE", SlotReader._workplace),
        ("CHATTEL", SlotReader._chattel),
        ("ALLERGENS", SlotReader._allergens),
        ("SCHOOL", SlotReader._school),
        ("UNIVERSITY", SlotReader._university),
        ("DEPARTMENT", SlotReader._department),
        ("GROUP", SlotReader._group),
        ("BUSINESS", SlotReader._business),
        ("PERSON", SlotReader._person),
        ("NAME", SlotReader._name),
        ("NAMES", SlotReader._names),
        ("JOB", SlotReader._job),
        ("ROLE", SlotReader._role),
        ("SUBJECT", SlotReader._subject_matter),
        ("LANGS", SlotReader._languages),
        ("THINGS THING", SlotReader._things),
        ("GAMES", SlotReader._games),
        ("PASTIMES", SlotReader._pastimes),
        ("SPORT", SlotReader._known_pastimes),
        ("ABILITY", SlotReader._ability),
        ("MEDS", SlotReader._medicines),
        ("DRUGS", SlotReader._drugs),
        ("CONDITION", SlotReader._conditions),
        ("AILMENT", SlotReader._ailment),
        ("BODY", SlotReader._body_part),
        ("ALLERGEN", SlotReader._allergen),
        ("FOODS", SlotReader._foods),
        ("DIET", SlotReader._diet),
        ("VEHICLE", SlotReader._vehicle),
        ("ANYVEHICLE", SlotReader._any_vehicle),
        ("OWNED", SlotReader._owned),
        ("GADGET", SlotReader._gadget),
        ("OWNABLE", SlotReader._ownable),
        ("PET", SlotReader._pets),
        ("KIN", SlotReader._kin),
        ("AGE", SlotReader._age),
        ("NAMEDAGE", SlotReader._name_and_age),
        ("DATE", SlotReader._date),
        ("TIME", SlotReader._time),
        ("REST", SlotReader._rest),
        ("FREQUENTLY", SlotReader._frequency),
        ("AILING", SlotReader._ailing),
        ("TOOLS", SlotReader._tools),
    )
    for name in names.split()
}
