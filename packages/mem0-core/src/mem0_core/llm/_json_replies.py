"""Find the JSON in a model reply: read every readable value, report the rest, never guess.

Models answer with fences, prose, thoughts, trailing commas, single quotes, two answers, or half of one:

- `read_json` finds the JSON values of a reply. A list that is cut off or has a broken item is read item by item.
- `read_list` finds the one requested list among those values. Two different lists are no answer.

`replies` and `graph_replies` interpret the values. Unused parts are reported in `Reading.problems`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any, Generic, TypeVar

from mem0_core._system.records import dataclass
from mem0_core.domain.records import is_valid_text
from mem0_core.interfaces import Reply

T = TypeVar("T")

WHOLE_REPLY = "whole reply"
"""`Problem.about` of a problem that concerns the reply as a whole, not one item of it."""

EMPTY = "the reply is empty"
NO_JSON = "no JSON in the reply"
"""`Problem.reason` of a reply with nothing to read; no problem for a request that may have an empty answer."""

MAX_CHARS = 500_000
"""Longer replies are refused unread."""

MAX_LENIENT_CHARS = 20_000
"""json5 is pure Python (some 50 ms per 1,000 characters at worst): longer replies must be proper JSON."""

_MAX_DEPTH = 20
_MAX_VALUES = 200
_MAX_STRAY_BRACKETS = 8
"""Unreadable brackets that are skipped before reading stops; keeps reading linear in the reply."""

_MAX_SHOWN_CHARS = 500
"""Characters of unreadable text in a problem; `Reading.raw` has the whole text."""

MAX_DECIMAL_BITS = 2_000
"""A longer whole number is shown shortened, in hexadecimal: Python writes no more than some 4,300 decimal digits."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a reply that could not be used.

    Attributes:
        item: the part as the model gave it (JSON, or text if it was none), always valid Unicode.
        about: `WHOLE_REPLY`; or the key of an item that this one contests; else None.
        loses_facts: False if the facts of the reply are readable without this part.
    """

    reason: str
    item: Any
    about: Hashable = None
    loses_facts: bool = field(default=True, compare=False)

    def __str__(self) -> str:
        """Return one line for a log or a repair request."""
        return f"{self.reason}: {json.dumps(self.item, ensure_ascii=False, default=repr)}"


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """Items read from a reply, its problems, and the reply itself."""

    items: tuple[T, ...]
    problems: tuple[Problem, ...]
    raw: str


def read_json(reply: Reply) -> Reading[Any]:
    """Read the JSON objects and lists of a reply, in order: the arguments of its tool calls, or else its text.

    Keys are in lower case. The values of a repeated key are joined if they are lists; otherwise they form a list of
    their own, which is no valid text. There is at least one item or one problem.
    """
    calls = _call_texts(reply)
    if not calls:
        return _read_text(reply.text)
    readings = [_read_text(text) for text in calls]
    return Reading(
        tuple(value for reading in readings for value in reading.items),
        tuple(problem for reading in readings for problem in reading.problems),
        "\n".join(calls),
    )


def _call_texts(reply: Reply) -> list[str]:
    """Return the arguments of the reply's tool calls as text; calls without arguments are left out."""
    return [_arguments_to_text(call.arguments) for call in reply.tool_calls if call.arguments]


def _arguments_to_text(arguments: Mapping[str, Any] | str) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return json.dumps(arguments)
    except (TypeError, ValueError, RecursionError):
        return "(arguments that are no JSON)"


def _read_text(text: str) -> Reading[Any]:
    if len(text) > MAX_CHARS:
        return Reading(
            (), (problem_with(f"a reply of more than {MAX_CHARS} characters", shorten(text), WHOLE_REPLY),), text
        )
    if (value := _parse_whole(text)) is not _UNREADABLE:
        return Reading((_unwrap_call(value),), (), text)
    scan = _Scan(text)
    scan.run()
    if not scan.values and not scan.problems:
        reason = NO_JSON if text.strip() else EMPTY
        scan.problems.append(problem_with(reason, shorten(text), WHOLE_REPLY))
    return Reading(tuple(map(_unwrap_call, scan.values)), tuple(scan.problems), text)


def _parse_whole(text: str) -> Any:
    """Return the value of a reply that is nothing but JSON, without tokenizing it; else `_UNREADABLE`."""
    if not text.startswith(("{", "[")) or text.count("{") + text.count("[") > _MAX_DEPTH:
        return _UNREADABLE
    return _parse(text, lenient=False)


def _unwrap_call(value: Any) -> Any:
    """Return the arguments of a tool call that a model wrote as text; any other value unchanged."""
    if isinstance(value, dict) and isinstance(value.get("name", value.get("function")), str):
        arguments = value.get("arguments", value.get("parameters"))
        return arguments if isinstance(arguments, dict) else value
    return value


# --- the values in a text --------------------------------------------------------------------------------------

THOUGHT_TAG = "(?:think|thinking|thought|reasoning)"

_BETWEEN = re.compile(rf"(?P<think><{THOUGHT_TAG}>)|(?P<thought></{THOUGHT_TAG}>)|[\[{{]", re.IGNORECASE)
"""Marks between the values of a reply: a thought begins or ends, or a value begins."""

_THOUGHT = re.compile(rf"</{THOUGHT_TAG}>", re.IGNORECASE)

_TOKEN = re.compile(
    r"""
    (?P<string> "(?:[^"\\]++|\\.?)*+"? | (?<![^\s\[{,:])'(?:[^'\\]++|\\.?)*+'? )
  | (?P<comment> //[^\n]*+ | \#[^\n]*+ | /\*.*?(?:\*/|\Z) )
  | (?P<open> [\[{] )
  | (?P<close> [\]}] )
  | (?P<comma> , )
  | (?P<word> \w++ )
    """,
    re.VERBOSE | re.DOTALL,
)
"""The tokens of JSON, JSON5 and Python literals. A single quote after a letter is an apostrophe."""

_CLOSER = {"[": "]", "{": "}"}


@dataclass(slots=True)
class _Block:
    """A bracketed span, and the first list in it: the block itself, or a direct value of it."""

    start: int
    end: int = 0
    closed: bool = False
    deep: bool = False
    quoted: bool = False
    list_start: int | None = None
    list_end: int | None = None
    commas: list[int] = field(default_factory=list)

    def after_list(self, text: str) -> str:
        return "" if self.list_end is None else text[self.list_end + 1 : self.end].strip()


def _find_block(text: str, start: int) -> _Block:
    """Return the block that opens at `start`; it stays unclosed if a bracket does not fit or the text ends."""
    block = _Block(start, end=len(text))
    stack: list[str] = []
    list_depth = 0
    for token in _TOKEN.finditer(text, start):
        kind, at = token.lastgroup, token.start()
        if kind == "string":
            block.quoted = True
        elif kind == "open":
            stack.append(token[0])
            if token[0] == "[" and block.list_start is None and len(stack) <= 2:
                block.list_start, list_depth = at, len(stack)
            if len(stack) > _MAX_DEPTH:
                block.deep, block.end = True, at
                return block
        elif kind == "comma" and len(stack) == list_depth and block.list_end is None:
            block.commas.append(at)
        elif kind == "close":
            if _CLOSER[stack[-1]] != token[0]:
                block.end = at
                return block
            if len(stack) == list_depth and block.list_end is None:
                block.list_end = at
            stack.pop()
            if not stack:
                block.closed, block.end = True, token.end()
                return block
    return block


_TRUE_START = re.compile(r"""\{\s*(?:\w+\s*:\s*)?["']|\[\s*["'\[{]""")
"""The start of a value that is more than a bracket in prose."""


class _Scan:
    """One pass over a text for the JSON values in it; fences and prose between them are skipped."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lenient = len(text) <= MAX_LENIENT_CHARS
        self.values: list[Any] = []
        self.problems: list[Problem] = []
        self.tries = 0
        self.astray: int | None = None  # position of the first bracket since the last value that opens no value

    def run(self) -> None:
        position: int | None = 0
        while position is not None and (match := _BETWEEN.search(self.text, position)):
            if match["thought"]:
                # Everything before was a thought; the server dropped its opening tag.
                self.values, self.problems, self.astray = [], [], None
                position = match.end()
            elif match["think"]:
                position = self._after_thoughts(match.end())
            else:
                position = self._read_block(_find_block(self.text, match.start()))
        if self.astray is not None and not self.values and not self.problems:
            self._report("the reply breaks off, or a bracket is missing", self.text[self.astray :], WHOLE_REPLY)

    def _after_thoughts(self, start: int) -> int | None:
        end = _THOUGHT.search(self.text, start)
        if end is None:
            self._report("the reply breaks off within its thoughts", self.text[start:], WHOLE_REPLY)
            return None
        return end.end()

    def _read_block(self, block: _Block) -> int | None:
        """Read the value at `block`; return the next position, or None to stop."""
        rest = self.text[block.start :]
        if len(self.values) + len(self.problems) >= _MAX_VALUES:
            self._report("too many separate values in one reply", rest)
            return None
        if block.deep:
            self._report(f"brackets nested more than {_MAX_DEPTH} deep", rest, WHOLE_REPLY)
            return None
        return self._read_closed(block) if block.closed else self._read_unclosed(block)

    def _read_closed(self, block: _Block) -> int | None:
        source = self.text[block.start : block.end]
        value = _parse(source, self.lenient)
        if value is not _UNREADABLE:
            self._add_value(value)
        elif self._read_items(block):
            self._report_rest(block.after_list(self.text).strip("]} \t\r\n"))
        elif source.startswith("{{"):  # copied from a template, where braces are doubled
            return self._next_try(block.start)
        elif block.quoted:  # without any text in it, it is prose: "[user]"
            self._report("not JSON", source)
        return block.end

    def _read_unclosed(self, block: _Block) -> int | None:
        if self._read_items(block):
            return self._after_list(block)
        if _TRUE_START.match(self.text, block.start):
            # Not a stray bracket but half a value: JSON found inside would be part of its texts.
            self._report("the reply breaks off", self.text[block.start :], None if self.values else WHOLE_REPLY)
            return None
        return self._next_try(block.start)

    def _after_list(self, block: _Block) -> int | None:
        if block.list_end is None:
            return None  # the rest belongs to the cut item and is reported with it
        rest = block.after_list(self.text)
        if rest.startswith(","):
            self._report_rest(rest)
            return block.end + 1
        return block.list_end + 1  # only the closing brackets are missing

    def _report_rest(self, rest: str) -> None:
        if rest:
            self._report("what follows the list is not JSON", rest)

    def _read_items(self, block: _Block) -> bool:
        """Read the list of a broken block item by item; return False if it has no list."""
        if block.list_start is None:
            return False
        opened = self.text[block.start : block.list_start + 1]
        around = _parse(f"{opened}]" if opened == "[" else f"{opened}]}}", self.lenient)
        items, problems = self._items(block)
        if around is _UNREADABLE or (isinstance(around, list) and not items):
            return False
        self._add_value(items if isinstance(around, list) else {list(around)[-1]: items})
        self.problems += problems
        return True

    def _items(self, block: _Block) -> tuple[list[Any], list[Problem]]:
        items: list[Any] = []
        problems: list[Problem] = []
        for piece, is_last in _split_list(self.text, block):
            is_cut = is_last and block.list_end is None
            value = _parse(piece, self.lenient and not is_cut) if piece.strip() else _UNREADABLE
            # A number at the cut may be half of one; a text that is closed, or an object, is whole.
            if is_whole := value is not _UNREADABLE and (not is_cut or isinstance(value, str | list | dict)):
                items.append(value)
            if is_cut:
                problems.append(self._broken_off(piece, is_whole, block))
            elif not is_whole and piece.strip():
                problems.append(problem_with("an item that is not JSON", shorten(piece)))
        return items, problems

    def _broken_off(self, piece: str, is_whole: bool, block: _Block) -> Problem:
        lost = self.text[block.end if is_whole else block.end - len(piece) :].strip()
        return problem_with("the reply breaks off", shorten(lost), None if lost else WHOLE_REPLY)

    def _add_value(self, value: Any) -> None:
        self.values.append(value)
        self.astray = None

    def _next_try(self, position: int) -> int | None:
        self.astray = position if self.astray is None else self.astray
        self.tries += 1
        return position + 1 if self.tries < _MAX_STRAY_BRACKETS else None

    def _report(self, reason: str, text: str, about: Hashable = None) -> None:
        self.problems.append(problem_with(reason, shorten(text), about))


def _split_list(text: str, block: _Block) -> Iterator[tuple[str, bool]]:
    """Yield the items of the block's list as text, each with True if it is the last."""
    if block.list_start is None:
        return
    last = block.end if block.list_end is None else block.list_end
    for start, end in pairwise([block.list_start, *block.commas, last]):
        yield text[start + 1 : end], end == last


_UNREADABLE = object()

_WORDS = {"True": "true", "False": "false", "None": "null"}

# JSON5 would drop the backslash of an escape it does not know ("C:\data" becomes "C:data"): that is a guess.
_STRANGE_ESCAPE = re.compile(r"""(?:[^\\]|\\["'\\/bfnrtuvx0\n])*+\\""", re.DOTALL)


def _parse(source: str, lenient: bool) -> Any:
    """The JSON value that `source` is, or `_UNREADABLE`. Lenient: JSON5 and Python's literals too."""
    try:
        return json.loads(source, strict=False, object_pairs_hook=_build_object)
    except (ValueError, RecursionError):
        return _parse_lenient(source) if lenient else _UNREADABLE


def _parse_lenient(source: str) -> Any:
    import json5

    if any(token.lastgroup == "string" and _STRANGE_ESCAPE.match(token[0]) for token in _TOKEN.finditer(source)):
        return _UNREADABLE
    # `ast.literal_eval` would read Python's literals, but also join two texts where a comma is missing.
    plain = _TOKEN.sub(lambda token: _normalize_token(token), source)
    try:
        return json5.loads(plain, object_pairs_hook=_build_object)
    except (ValueError, RecursionError):
        return _UNREADABLE


def _normalize_token(token: re.Match[str]) -> str:
    if token.lastgroup == "comment":
        return " "
    return _WORDS.get(token[0], token[0])


class _RepeatedValues(list[Any]):
    """The differing values of one key that an object holds more than once."""


def _build_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object with keys in lower case; no value of a repeated key is lost."""
    made: dict[str, Any] = {}
    for name, value in pairs:
        key = name.strip().lower()
        made[key] = _join_values(made[key], value) if key in made else value
    return made


def _join_values(first: Any, second: Any) -> Any:
    if first == second and type(first) is type(second):
        return first
    if isinstance(first, list) and isinstance(second, list):
        return [*first, *second]
    return _RepeatedValues([*first, second] if isinstance(first, _RepeatedValues) else [first, second])


# --- the requested list ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _SortedValues:
    """Values of a reply by kind: lists, single items, and others."""

    split_text: Callable[[str], list[Any]]
    lists: list[list[Any]] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def _keep_text(text: str) -> list[Any]:
    return [text]


def read_list(
    reply: Reply,
    *,
    names: tuple[str, ...],
    is_item: Callable[[Any], bool],
    split_text: Callable[[str], list[Any]] = _keep_text,
) -> Reading[Any]:
    """Return the unchecked items of the one list in `reply`.

    Args:
        names: the key of the list, and its aliases.
        is_item: returns True for a value that can be an item on its own, outside of a list.
        split_text: returns the items of a text in place of the list.
    """
    found = read_json(reply)
    sorted_ = _SortedValues(split_text, problems=list(found.problems))
    for value in found.items:
        _sort_value(value, names, is_item, sorted_)
    several = any(call.arguments for call in reply.tool_calls)  # each call is meant; of several texts only one is
    items = _choose_items(sorted_, found.raw, names[0], several)
    return Reading(tuple(items), tuple(sorted_.problems), found.raw)


def _sort_value(value: Any, names: tuple[str, ...], is_item: Callable[[Any], bool], into: _SortedValues) -> None:
    if isinstance(value, list) and len(value) == 1 and _holds_list(value[0], names):
        value = value[0]
    if isinstance(value, list):
        # A list without any item in it, such as a footnote's [1], is an answer only where there is no other.
        (into.lists if any(map(is_item, value)) else into.others).append(value)
    elif is_item(value) and not _holds_list(value, names):
        into.items.append(value)
    elif any(name in value for name in names):
        _sort_fields(value, names, into)
    else:
        into.others.append(value)


def _holds_list(value: Any, names: tuple[str, ...]) -> bool:
    return isinstance(value, dict) and any(isinstance(value.get(name), list) for name in names)


def _sort_fields(value: dict[str, Any], names: tuple[str, ...], into: _SortedValues) -> None:
    """Take the list under the first present name; lists under further aliases are reported."""
    name, *rest = [name for name in names if name in value]
    content = value[name]
    if isinstance(content, list):
        into.lists.append(content)
    elif isinstance(content, str):
        into.items += into.split_text(content)
    elif isinstance(content, dict):
        into.items.append(content)
    else:
        into.problems.append(problem_with(f'{kind_of(content)} instead of a list under "{name}"', value, WHOLE_REPLY))
    for alias in rest:
        if value[alias] and value[alias] != content:
            into.problems.append(problem_with(f'more under "{alias}", beside "{name}"', value[alias]))


def _choose_items(found: _SortedValues, raw: str, name: str, several: bool) -> list[Any]:
    """Return the items of the one answer in `found`; other values are added to its problems."""
    if not found.lists and not found.items:
        return _choose_among_others(found, raw, name)
    answers = found.lists if several else _drop_equal(found.lists)
    if len(answers) > 1 and not several:
        found.problems.append(problem_with(f"{len(answers)} different answers in one reply", answers, WHOLE_REPLY))
        return []
    chosen = [item for answer in answers for item in answer]
    if not answers or several:
        return [*chosen, *found.items]
    beside = [item for item in found.items if item not in chosen]
    found.problems += [problem_with("an item beside the list", item) for item in beside]
    return chosen


def _choose_among_others(found: _SortedValues, raw: str, name: str) -> list[Any]:
    only = found.others[0] if len(found.others) == 1 else None
    if isinstance(only, list) and (only or _is_bare(raw)):
        return only
    found.problems += [problem_with(f'no list under "{name}"', value, WHOLE_REPLY) for value in found.others]
    return []


def _drop_equal(lists: list[list[Any]]) -> list[list[Any]]:
    kept: list[list[Any]] = []
    for each in lists:
        if each not in kept:
            kept.append(each)
    return kept


def _is_bare(raw: str) -> bool:
    """Return True if a reply is an empty list and nothing else; in prose, "[]" may be a check box."""
    return re.sub(r"```\w*|\s", "", raw) == "[]"


# --- fields and texts ------------------------------------------------------------------------------------------


def only_of(item: dict[str, Any], names: Sequence[str]) -> Any:
    """Return the value under the present `names`; None if there is none, or if several differ."""
    values = [item[name] for name in names if item.get(name) is not None]
    return values[0] if values and all(value == values[0] for value in values) else None


def first_of(item: dict[str, Any], name: str, aliases: Sequence[str]) -> Any:
    """Return the value under `name`, or else the only value under its aliases."""
    value = item.get(name)
    return only_of(item, aliases) if value is None else value


# Tabs and line breaks are text; other control characters are escapes gone wrong ("\beta" is a backspace and "eta"),
# and a NUL cannot be stored in PostgreSQL.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def text_fault(text: Any) -> str | None:
    """Return the reason why `text` cannot be the text of a memory, or None."""
    if text is None:
        return "no text"
    if not isinstance(text, str):
        return f"{kind_of(text)} instead of a text"
    if not text.strip():
        return "an empty text"
    if not is_valid_text(text):
        return "a text that is not valid Unicode (half of a surrogate pair)"
    return "a text with control characters" if _CONTROL.search(text) else None


def kind_of(value: Any) -> str:
    """Return the kind of `value`, as problems name it."""
    if isinstance(value, _RepeatedValues):
        return "two values"
    if isinstance(value, bool):
        return "true or false"
    names = {str: "a text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return "null" if value is None else names.get(type(value), f"a {type(value).__name__}")


def problem_with(reason: str, item: Any, about: Hashable = None) -> Problem:
    """Return a problem that can be shown, logged and sent, whatever its item."""
    return Problem(reason, _printable(item), about)


def _printable(value: Any) -> Any:
    """Return `value` with lone surrogates escaped, and without numbers that Python refuses to write."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_printable(each) for each in value]
    if isinstance(value, dict):
        return {_printable(key): _printable(each) for key, each in value.items()}
    return shorten(hex(value)) if isinstance(value, int) and value.bit_length() > MAX_DECIMAL_BITS else value


def shorten(text: str) -> str:
    """Return the start of a text, short enough for a problem."""
    start = text.strip()[: _MAX_SHOWN_CHARS + 1]
    return start if len(start) <= _MAX_SHOWN_CHARS else f"{start[:_MAX_SHOWN_CHARS]} ..."
