"""Relations as lines, ``SOURCE - RELATION - DESTINATION`` in upper case.

`to_third_person` prepares the transcript for the model, with the speaker's name in place of "I", "me" and "my":
models that write in upper case lose track of the speaker. `read_triplets` reads the answer and restores the spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mem0_core.domain.bounds import MAX_SPELLINGS
from mem0_core.domain.mention_index import words_of
from mem0_core.domain.records import Message, Triplet, entity_key
from mem0_core.interfaces import Reply
from mem0_core.language.messages import SPEAKER_ROLES
from mem0_core.llm._json_replies import EMPTY, WHOLE_REPLY, Problem, Reading, problem_with
from mem0_core.llm.graph_replies import build_triplet, read_relations, triplet_key

_WORD = re.compile(r"\w+")
_MAX_LINE_CHARS = 400  # longer lines are prose

_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_MARK = re.compile(r"^\s*(?:[-*+\u2022\u25cf\u2023>]\s+|\(?\d{1,3}[.):]\s*|#+\s+|`+|\"|')+")
_END = re.compile(r"[\s`\"'.;,]+$")
_DASH = re.compile(r"\s+(?:-{1,3}>?|[\u2010-\u2015\u2212]|\u2192|\|)\s+|\s*(?:-{1,2}>|\u2192|\|)\s*")
_DASHED = r"\s*[-\u2010-\u2015\u2212]\s*"
_NOTHING = re.compile(r"^\W*(?:none|no (?:relations?|triplets?)(?: found)?|n/a|nothing)\W*$", re.IGNORECASE)
_BRACKETS = {"(": ")", "[": "]", "<": ">", "{": "}"}


def read_triplets(reply: Reply, *, text: str, self_name: str) -> Reading[Triplet]:
    """Read lines of three parts between dashes, or JSON and tool calls as `read_relations` does.

    Lines may be numbered, bulleted, quoted or in lower case. A dash within a name is no separator if the names in
    `text` decide it. NONE is an answer. A reply without any line is a problem, and so is each unreadable line, unless
    it only introduces others (``Here they are:``).
    """
    written = _THOUGHT.sub("", reply.text).strip()
    if reply.tool_calls or written.lstrip("`json \n").startswith(("{", "[{", "[[")):
        return read_relations(reply, self_name=self_name)
    spellings = _Spellings(text)
    kept: dict[object, Triplet] = {}
    problems: list[Problem] = []
    lines = [line for line in map(_strip_marks, written.splitlines()) if line and not line.endswith(":")]
    nothing = [line for line in lines if _NOTHING.match(line)]
    for line in lines:
        if line in nothing:
            continue
        found = _read_line(line, spellings, self_name)
        if isinstance(found, str):
            problems.append(problem_with(found, line))
        else:
            kept.setdefault(triplet_key(found), found)
    if not kept and not problems and not nothing:
        problems.append(problem_with(EMPTY, reply.text, WHOLE_REPLY))
    return Reading(tuple(kept.values()), tuple(problems), reply.text)


def _strip_marks(line: str) -> str:
    """Strip the number, bullet, fence or brackets of a line."""
    line = _END.sub("", _MARK.sub("", line))
    if line[:1] in _BRACKETS and line.endswith(_BRACKETS[line[:1]]):
        line = line[1:-1]
    return line.strip().strip("*_").strip()


def _read_line(line: str, text: _Spellings, self_name: str) -> Triplet | str:
    """Return the triplet of a line, or the reason why there is none."""
    if len(line) > _MAX_LINE_CHARS:
        return "a line too long for a triplet"
    readings = [read for read in _split_line(line) if all(read)]
    if not readings:
        return "not SOURCE - RELATION - DESTINATION"
    known = [read for read in readings if text.has_end(read[0], self_name) and text.has_end(read[2], self_name)]
    if len(readings) > 1 and len(known) != 1:
        return "more than two dashes, and the text does not decide which ones are part of a name"
    source, relationship, destination = (known or readings)[0]
    return build_triplet(
        text.restore(source, self_name),
        relationship,
        text.restore(destination, self_name),
        self_name=self_name,
    )


def _split_line(line: str) -> Iterator[tuple[str, str, str]]:
    """Yield all ways to split a line into three parts."""
    parts = [part.strip() for part in _DASH.split(line)]
    if len(parts) < 3:
        parts = [part.strip() for part in re.split(_DASHED, line)]
        parts = parts if len(parts) == 3 else []
    for place in range(1, len(parts) - 1):
        yield " - ".join(parts[:place]), parts[place], " - ".join(parts[place + 1 :])


class _Spellings:
    """The words of a text, to look up names in it; a lookup takes no longer for a longer text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._is_upper = text == text.upper()
        self._words: list[str] = []
        self._starts: list[int] = []
        self._positions: dict[str, tuple[int, ...]] = {}  # the garbage collector reads lists again and again
        for position, match in enumerate(_WORD.finditer(text)):
            word = match[0].casefold()
            self._words.append(word)
            self._starts.append(match.start())
            places = self._positions.get(word, ())
            if len(places) < MAX_SPELLINGS:
                self._positions[word] = (*places, position)

    def has_end(self, name: str, self_name: str) -> bool:
        """Return True if the text mentions a name, or it is the speaker's."""
        if " - " in name:
            return self._find(name) is not None
        return entity_key(name) == entity_key(self_name) or any(True for _ in self._find_words(words_of(name)))

    def restore(self, name: str, self_name: str) -> str:
        """Return a name in upper case as the text spells it, or else word by word."""
        if entity_key(name) == entity_key(self_name):
            return self_name
        if name != name.upper() or self._is_upper:
            return name
        whole = self._find(name)
        if whole is not None:
            return whole
        words = name.split()
        spelt = [self._find(word) for word in words]
        if not any(spelt):
            return name.title()
        return " ".join(known or word.lower() for known, word in zip(spelt, words, strict=True))

    def _find(self, name: str) -> str | None:
        """Return a name as the text spells it: the first lower-case form, else the first form, else None."""
        pattern = r"\s+".join(_DASHED if part == "-" else re.escape(part) for part in name.split())
        pattern = pattern.replace(rf"\s+{_DASHED}\s+", _DASHED)
        whole = re.compile(rf"(?<!\w){pattern}(?!\w)", re.IGNORECASE)
        first = _WORD.search(name.strip())
        lead = first.start() if first else 0
        starts = (max(0, self._starts[at] - lead) for at in self._find_words(words_of(name)))
        found = (whole.match(self._text, start) for start in starts)
        spelt = [" ".join(one[0].split()) for one in found if one]
        return next((one for one in spelt if one == one.lower()), spelt[0] if spelt else None)

    def _find_words(self, words: Sequence[str]) -> Iterator[int]:
        """Yield the positions of some words in sequence, by the rarest of them."""
        if not words or any(word not in self._positions for word in words):
            return
        rarest = min(range(len(words)), key=lambda at: len(self._positions[words[at]]))
        for position in self._positions[words[rarest]]:
            start = position - rarest
            if start >= 0 and self._words[start : start + len(words)] == list(words):
                yield start


# --- prompt text ---------------------------------------------------------------------------------------------------

_FORMS = {"i'm": "{} is", "i've": "{} has", "i'll": "{} will", "i'd": "{} would", "my": "{}'s", "mine": "{}'s"}
_SELF = re.compile(
    r"(?<![\w'])(?:I['\u2019](?:m|ve|ll|d)|I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself|i['\u2019]m|i)(?![\w'\u2019])"
)
_NUMBERED = re.compile(r"[A-Z]\w+ [A-Z]\w+ $")  # before the number: World War I
_MAX_NAME_CHARS = 80
_QUOTED = re.compile(r"(\"[^\"\n]*\"|\u201c[^\u201c\u201d\n]*\u201d)")


def to_third_person(messages: Sequence[Message], self_name: str) -> list[Message]:
    """Replace users' I, me and my by their name; quotations stay unchanged."""
    return [
        Message(message.role, _in_third_person(message.content, message.name or self_name), message.name)
        if message.role == "user" or (message.name and message.role in SPEAKER_ROLES)
        else message
        for message in messages
    ]


def _in_third_person(text: str, name: str) -> str:
    parts = _QUOTED.split(text)
    parts[::2] = [
        _SELF.sub(lambda match: _replace_pronoun(match, name), part) for part in parts[::2]
    ]  # quotations stay
    return "".join(parts)


def _replace_pronoun(match: re.Match[str], name: str) -> str:
    said = match.group().replace("\u2019", "'")
    if said == "I" and _NUMBERED.search(match.string[max(0, match.start() - _MAX_NAME_CHARS) : match.start()]):
        return said  # World War I
    return _FORMS.get(said.lower(), "{}").replace("{}", name)
