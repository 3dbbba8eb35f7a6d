"""Forms of English nouns and verbs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

_PLURALS = {"child": "children", "person": "people", "man": "men", "woman": "women", "wife": "wives", "life": "lives"}
_PLURAL_FORMS = frozenset(_PLURALS.values())
_IRREGULAR = """
go goes went gone going, come came coming, do does did done doing, have has had having, be am is are was were been
 being,
buy bought, teach taught, keep kept, run ran running, drive drove driven, ride rode ridden, speak spoke spoken,
sing sang sung, take took taken, eat ate eaten, get got gotten, give gave given, leave left, lose lost, sell sold,
meet met, begin began begun, grow grew grown, fly flew flown, wear wore worn, write wrote written, say said, tell told,
make made, see saw seen, find found, think thought, know knew known, stand stood, die died dying, split splitting,
quit quitting, break broke broken, swim swam swimming, belong belonged, marry married marrying, study studied studying,
lead led, win won, build built, feel felt, mean meant, hold held, sleep slept, dwell dwelt, wed wedded, choose chose
"""
_PRESENT_FORMS = frozenset({"am", "are"})
_OTHER_VERBS = """
say tell suggest recommend advise mention propose explain stop quit give leave divorce lose sell retire split break
finish end separate die drop start begin join take move meet marry adopt buy get open hire call relocate graduate happen
attend follow
"""


def plurals_of(noun: str) -> Iterator[str]:
    """Yield the plurals of a noun; ``wifes`` too, as which "wife's" is typed in a hurry."""
    if noun in _PLURALS:
        yield _PLURALS[noun]
        yield noun + "s"
    elif noun.endswith("y") and noun[-2:-1] not in set("aeiou"):
        yield noun[:-1] + "ies"
    elif noun.endswith(("s", "x", "ch", "sh")):
        yield noun + "es"
    else:
        yield noun + "s"
    if "-in-law" in noun:
        yield noun.replace("-in-law", "s-in-law")


def is_plural(noun: str) -> bool:
    """Return True for a noun in the plural."""
    if noun in _PLURAL_FORMS:
        return True
    return len(noun) > 3 and noun.endswith("s") and not noun.endswith(("ss", "us", "is", "news", "series"))


def is_past_form(word: str) -> bool:
    """Return True for a past form of a verb that is not its base form as well: "taught", "moved"."""
    return word in _irregular_past_forms() or (len(word) > 4 and word.endswith("ed") and not word.endswith("eed"))


@cache
def _irregular_past_forms() -> frozenset[str]:
    forms = {form for verb in _irregular_forms().values() for form in verb if not form.endswith(("s", "ing"))}
    return frozenset(forms - _PRESENT_FORMS)


@cache
def _irregular_forms() -> Mapping[str, tuple[str, ...]]:
    """Return the other forms of each irregular verb by its base form."""
    verbs = (words.split() for words in _IRREGULAR.replace("\n", " ").split(","))
    return {base: tuple(forms) for base, *forms in verbs}


def verb_forms(bases: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the base forms of each form of some verbs, and of the common ones."""
    irregular = _irregular_forms()
    found: dict[str, tuple[str, ...]] = {}
    for base in sorted({*bases, *irregular, *_OTHER_VERBS.split()}):
        for form in (base, *irregular.get(base, ()), *_regular_forms(base)):
            if base not in found.get(form, ()):
                found[form] = (*found.get(form, ()), base)
    return found


def _regular_forms(base: str) -> Iterator[str]:
    is_soft_y = base.endswith("y") and base[-2:-1] not in set("aeiou")
    yield base[:-1] + "ies" if is_soft_y else base + ("es" if base.endswith(("s", "x", "ch", "sh", "o")) else "s")
    stem = base[:-1] if base.endswith("e") else base
    yield base[:-1] + "ied" if is_soft_y else stem + "ed"
    yield stem + "ing"
    if re.search(r"[^aeiou][aeiou][^aeiouwxy]$", base):
        yield base + base[-1] + "ed"
        yield base + base[-1] + "ing"
