"""Relations as lines, ``SOURCE - RELATION - DESTINATION`` in upper case (seed 003, part 2), and back.

`spoken` is the text that a model is given: with the speaker's name in place of "I", "me" and "my", since models that
write in upper case forget who speaks. `read_triplets` reads what it answered; names get back the spelling of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mem0_core.domain.records import Message, Triplet, entity_key, mentions_name
from mem0_core.interfaces import Reply
from mem0_core.language.messages import SPEAKER_ROLES, format_transcript
from mem0_core.llm.graph_replies import read_relations, relation_of, triplet_key
from mem0_core.llm.json_replies import EMPTY, WHOLE_REPLY, Problem, Reading, problem_with

__all__ = ["read_triplets", "spoken"]

_LONGEST = 400  # characters of a line: more is prose

_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_MARK = re.compile(r"^\s*(?:[-*+\u2022\u25cf\u2023>]\s+|\(?\d{1,3}[.):]\s*|#+\s+|`+|\"|')+")
_END = re.compile(r"[\s`\"'.;,]+$")
_DASH = re.compile(r"\s+(?:-{1,3}>?|[\u2010-\u2015\u2212]|\u2192|\|)\s+|\s*(?:-{1,2}>|\u2192|\|)\s*")
_DASHED = r"\s*[-\u2010-\u2015\u2212]\s*"
_NOTHING = re.compile(r"^\W*(?:none|no (?:relations?|triplets?)(?: found)?|n/a|nothing)\W*$", re.IGNORECASE)
_BRACKETS = {"(": ")", "[": "]", "<": ">", "{": "}"}


def read_triplets(reply: Reply, *, text: str, self_name: str) -> Reading[Triplet]:
    """Read lines of three parts between dashes; JSON, or calls of tools, as `read_relations` reads them.

    Lines may be numbered, bulleted, quoted or in lower case. A dash inside a name is no parting where what `text` names
    tells the two apart. NONE is an answer; a reply without any line is a problem, and so is each line that cannot be
    read, unless it only announces others (``Here they are:``).
    """
    written = _THOUGHT.sub("", reply.text).strip()
    if reply.tool_calls or written.lstrip("`json \n").startswith(("{", "[{", "[[")):
        return read_relations(reply, self_name=self_name)
    kept: dict[object, Triplet] = {}
    problems: list[Problem] = []
    lines = [line for line in map(_bare, written.splitlines()) if line and not line.endswith(":")]
    nothing = [line for line in lines if _NOTHING.match(line)]
    for line in lines:
        if line in nothing:
            continue
        found = _read_line(line, text, self_name)
        if isinstance(found, str):
            problems.append(problem_with(found, line))
        else:
            kept.setdefault(triplet_key(found), found)
    if not kept and not problems and not nothing:
        problems.append(problem_with(EMPTY, reply.text, WHOLE_REPLY))
    return Reading(tuple(kept.values()), tuple(problems), reply.text)


def _bare(line: str) -> str:
    """A line without its number, bullet, fence or brackets."""
    line = _END.sub("", _MARK.sub("", line))
    if line[:1] in _BRACKETS and line.endswith(_BRACKETS[line[:1]]):
        line = line[1:-1]
    return line.strip().strip("*_").strip()


def _read_line(line: str, text: str, self_name: str) -> Triplet | str:
    """The triplet of a line, or why there is none."""
    if len(line) > _LONGEST:
        return "a line too long for a triplet"
    readings = [read for read in _readings(line) if all(read)]
    if not readings:
        return "not SOURCE - RELATION - DESTINATION"
    known = [read for read in readings if _is_known(read[0], text, self_name) and _is_known(read[2], text, self_name)]
    if len(readings) > 1 and len(known) != 1:
        return "more than two dashes, and the text does not tell which of them are inside of a name"
    source, relationship, destination = (known or readings)[0]
    return relation_of(
        _spelt(source, text, self_name), relationship, _spelt(destination, text, self_name), self_name=self_name
    )


def _readings(line: str) -> Iterator[tuple[str, str, str]]:
    """All ways to part a line in three."""
    parts = [part.strip() for part in _DASH.split(line)]
    if len(parts) < 3:
        parts = [part.strip() for part in re.split(_DASHED, line)]
        parts = parts if len(parts) == 3 else []
    for place in range(1, len(parts) - 1):
        yield " - ".join(parts[:place]), parts[place], " - ".join(parts[place + 1 :])


def _is_known(name: str, text: str, self_name: str) -> bool:
    if " - " in name:
        return _found(name, text) is not None
    return mentions_name(text, name) or entity_key(name) == entity_key(self_name)


def _spelt(name: str, text: str, self_name: str) -> str:
    """A name in upper case as the text spells it; word by word where it is not there as a whole."""
    if entity_key(name) == entity_key(self_name):
        return self_name
    if name != name.upper() or text == text.upper():
        return name
    whole = _found(name, text)
    if whole is not None:
        return whole
    words = name.split()
    spelt = [_found(word, text) for word in words]
    if not any(spelt):
        return name.title()
    return " ".join(known or word.lower() for known, word in zip(spelt, words, strict=True))


def _found(name: str, text: str) -> str | None:
    """A name as it stands in a text, the first time or, where it is a word in lower case as well, like that."""
    pattern = r"\s+".join(_DASHED if part == "-" else re.escape(part) for part in name.split())
    pattern = pattern.replace(rf"\s+{_DASHED}\s+", _DASHED)
    found = re.findall(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE)
    spelt = [" ".join(one.split()) for one in found]
    return next((one for one in spelt if one == one.lower()), spelt[0] if spelt else None)


# --- what a model is given -----------------------------------------------------------------------------------------

_FORMS = {"i'm": "{} is", "i've": "{} has", "i'll": "{} will", "i'd": "{} would", "my": "{}'s", "mine": "{}'s"}
_SELF = re.compile(
    r"(?<![\w'])(?:I['\u2019](?:m|ve|ll|d)|I|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself|i['\u2019]m|i)(?![\w'\u2019])"
)
_QUOTED = re.compile(r"(\"[^\"\n]*\"|\u201c[^\u201d\n]*\u201d)")


def spoken(messages: Sequence[Message], self_name: str) -> str:
    """The transcript, with their name where users say I, me or my; what they quote stays as it is."""
    named = [
        Message(message.role, _in_third_person(message.content, message.name or self_name), message.name)
        if message.role == "user" or (message.name and message.role in SPEAKER_ROLES)
        else message
        for message in messages
    ]
    return format_transcript(named)


def _in_third_person(text: str, name: str) -> str:
    parts = _QUOTED.split(text)
    parts[::2] = [_SELF.sub(lambda match: _as_name(match, name), part) for part in parts[::2]]  # not what is quoted
    return "".join(parts)


def _as_name(match: re.Match[str], name: str) -> str:
    said = match.group().replace("\u2019", "'")
    if said == "I" and re.search(r"[A-Z]\w+ [A-Z]\w+ $", match.string[: match.start()]):
        return said  # World War I
    return _FORMS.get(said.lower(), "{}").replace("{}", name)
