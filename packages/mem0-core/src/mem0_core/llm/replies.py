"""Read facts, operations, scores and summaries from model replies.

`_json_replies` finds the requested list in the reply; each item is checked here. Unusable parts are reported in
`Reading.problems`, never dropped silently. `merge` joins a first reading with that of the repaired reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from mem0_core._system.boundary import convert_errors
from mem0_core._system.records import dataclass
from mem0_core.domain.records import Event, Operation, is_valid_text, same_fact_key
from mem0_core.errors import InputError, ReplyError
from mem0_core.interfaces import Reply, ToolCall
from mem0_core.llm._json_replies import (
    EMPTY,
    MAX_CHARS,
    MAX_DECIMAL_BITS,
    NO_JSON,
    THOUGHT_TAG,
    WHOLE_REPLY,
    Problem,
    Reading,
    first_of,
    kind_of,
    only_of,
    problem_with,
    read_json,
    read_list,
    shorten,
    text_fault,
)

__all__ = [
    "EMPTY_ITEMS",
    "FactNumbers",
    "FactsReply",
    "OperationReply",
    "OperationsReply",
    "Problem",
    "Reading",
    "ScoresReply",
    "SourcedFactReply",
    "SourcedFactsReply",
    "StatedFact",
    "StrictModel",
    "fact_key",
    "merge",
    "operation_key",
    "read_citations",
    "read_facts",
    "read_operations",
    "read_scores",
    "read_summary",
]

T = TypeVar("T")


# --- schemas ---------------------------------------------------------------------------------------------------


class StrictModel(BaseModel):
    """A part of a reply, without further keys."""

    model_config = ConfigDict(extra="forbid")


class FactsReply(StrictModel):
    """The facts worth remembering; an empty list if there are none."""

    facts: list[str]


class SourcedFactReply(StrictModel):
    """A fact, and the positions of the messages that it comes from."""

    fact: str
    messages: list[int]


class SourcedFactsReply(StrictModel):
    """The facts worth remembering of several messages; an empty list if there are none."""

    facts: list[SourcedFactReply]


class OperationReply(StrictModel):
    """The operation on one memory, and the numbers of the facts that it settles."""

    id: str
    text: str
    event: Literal["ADD", "UPDATE", "DELETE", "NONE"]
    facts: list[int]
    old_memory: str | None = None


class OperationsReply(StrictModel):
    """The operations on all memories."""

    memory: list[OperationReply]


class ScoreReply(StrictModel):
    """The relevance of one text to the query, from 0 to 10."""

    id: int
    score: int


class ScoresReply(StrictModel):
    """A score for every text."""

    scores: list[ScoreReply]


# --- readers ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact of a reply.

    Attributes:
        messages: positions of its messages in the transcript, as the model names them, unchecked.
        position: place in the list of the reply, unusable items included.
    """

    text: str
    messages: tuple[int, ...] = ()
    position: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class FactNumbers:
    """Indexes of the facts that operations may name.

    Attributes:
        by_number: number as the reply writes it -> index.
        by_key: `fact_key` -> index.
    """

    by_number: Mapping[int, int]
    by_key: Mapping[Hashable, int]


def read_facts(reply: Reply) -> Reading[StatedFact]:
    """Read ``{"facts": ["...", ...]}`` or ``{"facts": [{"fact": "...", "messages": [0]}, ...]}``.

    A fact may come as an object with one obvious text. Facts that differ only in case, spacing and punctuation are kept
    once. An empty list is an answer. A text in place of the list has a fact per line or sentence.
    """
    listed = read_list(reply, names=_FACTS, is_item=_is_fact, split_text=_split_facts)
    facts: dict[Hashable, StatedFact] = {}
    problems = list(listed.problems)
    for position, item in enumerate(listed.items):
        fact = _read_fact(item)
        if isinstance(fact, Problem):
            problems.append(fact)
        else:
            facts.setdefault(fact_key(fact), replace(fact, position=position))
    return Reading(tuple(facts.values()), tuple(problems), listed.raw)


def read_operations(
    reply: Reply,
    *,
    ids: Mapping[str, str],
    texts: Mapping[str, str],
    facts: Sequence[str],
    numbers: FactNumbers | None = None,
) -> Reading[Operation]:
    """Read ``{"memory": [{"id", "text", "event", "old_memory"?, "facts"?}]}``, or tool calls.

    A call of one of `prompts.operations_tools`, or of the names in the Mem0 paper (ADD, UPDATE, DELETE, NOOP), is the
    operation of that event. Calls take precedence over the text of the reply. Memories that are not named stay
    unchanged.

    Args:
        ids: short id, as in the prompt -> id of the memory.
        texts: short id -> current text of the memory.
        facts: the facts in the prompt, numbered from 0. With facts, an empty list is a problem, because it would lose
            them.
        numbers: how operations name the facts; by default by their places in `facts`.

    The text of a DELETE or NONE is the current text of the memory, whatever the model copied. An UPDATE to the current
    text is a NONE. There is at most one operation per memory: a NONE yields to any other, otherwise the first is kept
    and the second is a problem.
    """
    listed = _read_items(reply)
    known = _Known(ids, texts, numbers or _number_facts(facts))
    kept: dict[Hashable, Operation] = {}
    problems = list(listed.problems)
    for item in listed.items:
        read = _read_operation(item, known)
        problem = read if isinstance(read, Problem) else _keep_operation(kept, read, item)
        if problem is not None:
            problems.append(problem)
    if facts and not listed.items and not problems:
        problems.append(problem_with(_NO_OPERATION, list(facts), WHOLE_REPLY))
    return Reading(tuple(kept.values()), tuple(problems), listed.raw)


def read_summary(reply: Reply) -> str:
    """Read a summary in plain text, without thoughts, fences, or an introduction such as "Summary:".

    Control characters are dropped, and halves of surrogate pairs are replaced.

    Raises:
        ReplyError: nothing is left.
    """
    text = _HIDDEN_THOUGHTS.sub("", _THOUGHTS.sub("", reply.text))
    for _ in range(2):  # an introduction may precede the fence or follow its start
        text = _FENCE.sub(r"\1\2", _LEAD.sub("", text.strip()).strip())
    # Through UTF-16, matching halves of a surrogate pair become one character.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").translate(_CONTROLS).strip()
    if not text:
        raise ReplyError("the model returned an empty summary", raw=reply.text)
    return text


def read_scores(reply: Reply, *, count: int) -> Reading[tuple[int, float]]:
    """Read ``{"scores": [{"id", "score"}]}``: (position from 0, score in [0, 1]) of texts numbered from 1.

    The reply has scores from 0 to 10. A reply with scores from 0 to 1 is a problem, and so is a missing score.

    Args:
        count: number of texts.
    """
    listed = read_list(reply, names=_SCORES, is_item=_is_score)
    scores: dict[int, float] = {}
    problems = list(listed.problems)
    for item in listed.items:
        read = _read_score(item, count)
        if isinstance(read, Problem):
            problems.append(read)
        elif scores.setdefault(*read) != read[1]:
            problems.append(problem_with("a second score for one text", item, read[0]))
    if any(score % 1 for score in scores.values()) and max(scores.values()) <= 1:
        return Reading(
            (), (problem_with("scores from 0 to 1 instead of 0 to 10", listed.raw, WHOLE_REPLY),), listed.raw
        )
    if not problems or scores:
        problems += [problem_with("no score for a text", place + 1) for place in range(count) if place not in scores]
    return Reading(tuple((place, score / _BEST_SCORE) for place, score in scores.items()), tuple(problems), listed.raw)


def fact_key(fact: StatedFact) -> Hashable:
    """Return a key that is equal for facts that differ only in case, spacing and punctuation."""
    return same_fact_key(fact.text)


def operation_key(operation: Operation) -> Hashable:
    """Return a key that is equal for operations that exclude one another: on one memory, or with one new text."""
    if operation.memory_id is not None:
        return "memory", operation.memory_id
    return "text", same_fact_key(operation.text)


def merge(first: Reading[T], second: Reading[T], key: Callable[[T], Hashable]) -> Reading[T]:
    """Join the reading of a reply with the reading of its repair.

    All items of the first are kept, and the second adds items with new keys. An item that the first reading contested
    (`Problem.about`) is replaced by that of the second.

    The problems of the second stay. The problems of the first are resolved if the second has none and brings at least
    as many items as were unreadable; problems of the whole reply are resolved by any reply without problems. Otherwise
    they
    stay too: a problem reported twice is better than a lost one.
    """
    answers = {key(item): item for item in second.items}
    contested = {problem.about for problem in first.problems} & answers.keys()
    kept = {key(item): answers[key(item)] if key(item) in contested else item for item in first.items}
    new = [item for found, item in answers.items() if found not in kept]
    unreadable = sum(problem.about != WHOLE_REPLY for problem in first.problems)
    settled = not second.problems and len(new) + len(contested) >= unreadable
    problems = second.problems if settled else first.problems + second.problems
    return Reading((*kept.values(), *new), problems, second.raw)


# --- facts -----------------------------------------------------------------------------------------------------

_FACTS = ("facts", "fact")
_FACT_TEXTS = ("fact", "text", "memory")
_FACT_MESSAGES = ("message", "sources", "source")
_MAX_DIGITS = 6  # of the number of a message or fact
_PLACEHOLDER = "a placeholder instead of a fact"
_NO_OPERATION = "no operation for the facts"
EMPTY_ITEMS = frozenset({_PLACEHOLDER, _NO_OPERATION, "an empty text", "null instead of a fact"})
"""Reasons of problems that lose nothing: the reply says that there is nothing, in a form that was not agreed."""

_PLACEHOLDERS = frozenset(
    {"none", "none.", "null", "nil", "n/a", "no facts", "no facts.", "...", "\N{HORIZONTAL ELLIPSIS}"}
)


_BREAK = re.compile(r"\s*\n\s*|(?<=[\u3002\uff01\uff1f])|(?<=[.!?])\s+(?=[^\Wa-z_])")
"""Lines, ideographic sentences, and sentences of which the next begins in upper case."""

_LOWER_CASE_BREAK = re.compile(rf"{_BREAK.pattern}|(?<=[.!?])\s+")
_ABBREVIATION = re.compile(r"(?:\A|[\s.(])(?:[^\W\d_]|Dr|Mr|Mrs|Ms|Prof|Rev|Gen|St|vs|No|etc)\.\Z", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]*(?:[-*+\u2022]|\(?[0-9]{1,3}[.)])[ \t]+", re.MULTILINE)


def _split_facts(text: str) -> list[Any]:
    """Return the facts of a text in place of a list: a list written as text, or else lines and sentences."""
    if text.lstrip().startswith("["):
        listed = read_json(Reply(text))
        if len(listed.items) == 1 and isinstance(listed.items[0], list) and not listed.problems:
            return list(listed.items[0])
    facts: list[Any] = []
    sentence_break = _LOWER_CASE_BREAK if text == text.lower() else _BREAK
    for part in sentence_break.split(_BULLET.sub("", text).strip()):
        if facts and _ABBREVIATION.search(facts[-1]):
            facts[-1] += f" {part}"
        elif part:
            facts.append(part)
    return facts or [text]


def _is_fact(item: Any) -> bool:
    return isinstance(item, str) or (isinstance(item, dict) and isinstance(only_of(item, _FACT_TEXTS), str))


def _read_fact(item: Any) -> StatedFact | Problem:
    if not _is_fact(item):
        return problem_with(f"{kind_of(item)} instead of a fact", item)
    text = item if isinstance(item, str) else only_of(item, _FACT_TEXTS)
    if fault := text_fault(text):
        return problem_with(fault, item)
    fact: str = text.strip()
    if fact.casefold() in _PLACEHOLDERS:
        return problem_with(_PLACEHOLDER, item)
    messages = first_of(item, "messages", _FACT_MESSAGES) if isinstance(item, dict) else None
    return StatedFact(fact, _read_numbers(messages))


def _read_numbers(value: Any) -> tuple[int, ...]:
    """Return the small numbers in a list, or alone, once each; other values are left out."""
    parts = value if isinstance(value, list) else [value]
    split = [part for each in parts for part in (each.split(",") if isinstance(each, str) else [each])]
    normalized = [_normalize_id(part) or "" for part in split]
    return tuple(dict.fromkeys(int(part) for part in normalized if part.isdecimal() and len(part) <= _MAX_DIGITS))


# --- scores ----------------------------------------------------------------------------------------------------

_BEST_SCORE = 10
"""The highest score of a text in a reply."""

_SCORES = ("scores", "relevance", "results", "ranking")
_SCORE_IDS = ("index", "number", "text_id")
_SCORE_VALUES = ("relevance", "relevance_score", "rating")


def _is_score(item: Any) -> bool:
    return isinstance(item, dict) and _get_score(item) is not None and first_of(item, "id", _SCORE_IDS) is not None


def _get_score(item: dict[str, Any]) -> Any:
    return first_of(item, "score", _SCORE_VALUES)


def _read_score(item: Any, count: int) -> tuple[int, float] | Problem:
    if not isinstance(item, dict):
        return problem_with(f"{kind_of(item)} instead of a score", item)
    short = _normalize_id(first_of(item, "id", _SCORE_IDS))
    if short is None or not short.isdecimal() or not 1 <= int(short) <= count:
        return problem_with("an id that was not given", item)
    said = _get_score(item)
    if isinstance(said, str) and _SCORE.fullmatch(said.strip()):
        said = float(said)
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said <= _BEST_SCORE:
        return problem_with(f"no score from 0 to {_BEST_SCORE}", item)
    return int(short) - 1, float(said)


_SCORE = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,9})?")


# --- operations ------------------------------------------------------------------------------------------------

_OPERATIONS = ("memory", "memories", "operations", "results")
_OPERATION_TEXTS = ("memory", "fact", "content")
_OPERATION_EVENTS = ("action", "operation")
_FACT_NUMBERS = ("fact_numbers", "fact_ids", "settles")
_EVENTS = {
    **{event.value: event for event in Event},
    "NOOP": Event.NONE,  # the word of the Mem0 paper
    "NO-OP": Event.NONE,
    "NO_OP": Event.NONE,
}


@dataclass(frozen=True, slots=True)
class _Known:
    """The memories in the prompt, by short id, and the numbers of the facts."""

    ids: Mapping[str, str]
    texts: Mapping[str, str]
    facts: FactNumbers


def _number_facts(facts: Sequence[str]) -> FactNumbers:
    places = range(len(facts))
    return FactNumbers({place: place for place in places}, {same_fact_key(facts[place]): place for place in places})


def _is_operation(item: Any) -> bool:
    return isinstance(item, dict) and _get_event(item) is not None


def _get_event(item: dict[str, Any]) -> Any:
    return first_of(item, "event", _OPERATION_EVENTS)


def _read_operation(item: Any, known: _Known) -> Operation | Problem:
    if not isinstance(item, dict):
        return problem_with(f"{kind_of(item)} instead of an operation", item)
    operation = _read_decision(item, known)
    return operation if isinstance(operation, Problem) else replace(operation, facts=_read_fact_numbers(item, known))


def _read_fact_numbers(item: dict[str, Any], known: _Known) -> tuple[int, ...]:
    """Return the facts that an operation names, by number or by text."""
    said = first_of(item, "facts", _FACT_NUMBERS)
    texts = [text for text in (said if isinstance(said, list) else [said]) if isinstance(text, str)]
    quoted = [known.facts.by_key.get(same_fact_key(text)) for text in texts if is_valid_text(text)]
    numbered = [known.facts.by_number.get(number) for number in _read_numbers(said)]
    return tuple(dict.fromkeys(index for index in (*numbered, *quoted) if index is not None))


def _read_decision(item: dict[str, Any], known: _Known) -> Operation | Problem:
    said = _get_event(item)
    event = _EVENTS.get(said.strip().upper()) if isinstance(said, str) else None
    if event is None:
        return problem_with("no event" if said is None else "an unknown event", item)
    if event is Event.ADD:
        return _read_add(item)
    if event is Event.NONE and item.get("id") is None:
        return _read_none(item)
    short = _normalize_id(item.get("id"))
    if short is None or short not in known.ids:
        return problem_with("no id" if item.get("id") is None else "an id that was not given", item)
    if event is not Event.NONE and _names_other_memory(item, event, short, known):
        return problem_with("its id and its text name two different memories", item)
    if event is Event.UPDATE:
        return _read_update(item, short, known)
    return Operation(event, known.texts.get(short, ""), known.ids[short])


# --- operations by tool call -----------------------------------------------------------------------------------

_TOOL_EVENTS = {**{f"{event}_MEMORY": event for event in (Event.ADD, Event.UPDATE, Event.DELETE)}, **_EVENTS}


@dataclass(frozen=True, slots=True)
class _CallReading:
    """A tool call with its arguments as read."""

    call: ToolCall
    given: Reading[Any]

    @property
    def event(self) -> Event | None:
        return _TOOL_EVENTS.get(self.call.name.strip().upper())

    @property
    def raw(self) -> str:
        return f'{{"name": {json.dumps(self.call.name)}, "arguments": {self.given.raw}}}'


def _read_items(reply: Reply) -> Reading[Any]:
    """Return the unchecked operations of a reply: those of its calls, or of its text if there are no calls."""
    calls = [_CallReading(call, _read_arguments(call)) for call in reply.tool_calls or _find_written_calls(reply.text)]
    read = [(called, _read_call(called)) for called in calls]
    answers = [reading for _, reading in read if reading is not None]
    unknown = [_report_unknown_tool(called) for called, reading in read if reading is None]
    if not answers:
        listed = read_list(Reply(reply.text), names=_OPERATIONS, is_item=_is_operation)
        return _add_unknown_calls(listed, calls, unknown) if unknown else listed
    return Reading(
        tuple(item for reading in answers for item in reading.items),
        (*unknown, *(problem for reading in answers for problem in reading.problems)),
        "\n".join(reading.raw for reading in answers) if reply.tool_calls else reply.text,
    )


def _read_arguments(call: ToolCall) -> Reading[Any]:
    given = call.arguments
    if not given or (isinstance(given, str) and given.strip() in ("", "null")):
        return Reading(({},), (), "{}")
    return read_json(Reply(tool_calls=(call,)))


def _read_call(called: _CallReading) -> Reading[Any] | None:
    """Return the operations of a call; None for an unknown tool without operations in its arguments."""
    call, given, event = called.call, called.given, called.event
    in_json = any(_holds_operations(value) or (event is None and _is_operation(value)) for value in given.items)
    if in_json or (call.name in _OPERATIONS and call.arguments):
        return read_list(Reply(tool_calls=(call,)), names=_OPERATIONS, is_item=_is_operation)
    if event is None:
        return None
    # A problem of one call concerns one operation, not the whole reply.
    problems = [replace(problem, about=None) for problem in given.problems]
    problems += [
        problem_with("its tool and its event differ", item) for item in given.items if _has_other_event(item, event)
    ]
    items = tuple({**item, "event": event.value} for item in given.items if not _has_other_event(item, event))
    return Reading(items, tuple(problems), called.raw)


def _holds_operations(value: Any) -> bool:
    return isinstance(value, list) or any(isinstance(value.get(name), list | dict) for name in _OPERATIONS)


def _has_other_event(item: dict[str, Any], event: Event) -> bool:
    """Return True if a call names another event in its arguments than in its name."""
    said = _get_event(item)
    return said is not None and (not isinstance(said, str) or _EVENTS.get(said.strip().upper()) is not event)


def _report_unknown_tool(called: _CallReading) -> Problem:
    name = called.call.name.encode("utf-8", "backslashreplace").decode()
    return problem_with(f'an unknown tool "{name[:60]}"', shorten(called.given.raw))


def _add_unknown_calls(listed: Reading[Any], calls: Sequence[_CallReading], unknown: Sequence[Problem]) -> Reading[Any]:
    """Return the reading of a text with the unknown calls of the reply, which explain missing operations."""
    of_text = (problem for problem in listed.problems if problem.reason not in (EMPTY, NO_JSON))
    raw = "\n".join([*(called.raw for called in calls), listed.raw]).strip()
    return replace(listed, problems=(*unknown, *of_text), raw=raw)


def _reject_repeated_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key given twice")
    return made


_CALLS = json.JSONDecoder(strict=False, object_pairs_hook=_reject_repeated_keys)
_BRACKET = re.compile(r"[\[{]")


def _find_written_calls(text: str) -> tuple[ToolCall, ...]:
    """Return the calls that a model wrote as text, ``{"name", "arguments"}`` each, if the reply has no other JSON.

    Nested values are not searched, so that no text in them can pass for a call.
    """
    text = _THOUGHTS.sub("", text[: MAX_CHARS + 1])
    calls: list[ToolCall] = []
    position = 0
    while len(text) <= MAX_CHARS and (match := _BRACKET.search(text, position)):
        try:
            value, position = _CALLS.raw_decode(text, match.start())
            calls += _calls_in(value)
        except (ValueError, RecursionError):
            return ()
    return tuple(calls) if any(call.name.strip().upper() in _TOOL_EVENTS for call in calls) else ()


def _calls_in(value: Any) -> list[ToolCall]:
    """Return the calls that a value is, or lists.

    Raises:
        ValueError: the value is anything else.
    """
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    if isinstance(value, list):
        return [call for each in value for call in _calls_in(each)]
    if isinstance(value, dict) and isinstance(value.get("function"), dict):
        value = value["function"]
    name = only_of(value, ("name", "function")) if isinstance(value, dict) else None
    if not isinstance(name, str):
        raise ValueError("no call")
    arguments = first_of(value, "arguments", ("parameters",))
    if not isinstance(arguments, dict | str | None):
        raise ValueError("no arguments")
    return [ToolCall(name, arguments or {})]


# --- one operation ---------------------------------------------------------------------------------------------


def _get_text(item: dict[str, Any]) -> Any:
    return first_of(item, "text", _OPERATION_TEXTS)


def _read_add(item: dict[str, Any]) -> Operation | Problem:
    # The id of an ADD is made up by the model; a new memory gets its own.
    text = _get_text(item)
    if fault := text_fault(text):
        return problem_with(fault, item)
    return Operation(Event.ADD, text.strip())


def _read_update(item: dict[str, Any], short: str, known: _Known) -> Operation | Problem:
    text = _get_text(item)
    if fault := text_fault(text):
        return problem_with(fault, item)
    now = known.texts.get(short)
    if now is not None and text.strip() == now.strip():
        return Operation(Event.NONE, now, known.ids[short])
    return Operation(Event.UPDATE, text.strip(), known.ids[short])


def _read_none(item: dict[str, Any]) -> Operation:
    """Return a NONE without an id: it concerns a fact, not a memory."""
    text = _get_text(item)
    return Operation(Event.NONE, "" if text_fault(text) else text.strip())


def _normalize_id(value: Any) -> str | None:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int) or value.bit_length() > MAX_DECIMAL_BITS:
        return None  # more digits than Python writes
    return str(value)


def _names_other_memory(item: dict[str, Any], event: Event, short: str, known: _Known) -> bool:
    """Return True if the old text given with an id is another memory's: models confuse numbers, not quotations."""
    quoted = item.get("old_memory")
    if not isinstance(quoted, str) and event is Event.DELETE:
        quoted = _get_text(item)
    if not isinstance(quoted, str) or not is_valid_text(quoted):
        return False
    key = same_fact_key(quoted)
    quoted_from = {other for other, text in known.texts.items() if same_fact_key(text) == key}
    return bool(quoted_from) and short not in quoted_from


def _keep_operation(kept: dict[Hashable, Operation], operation: Operation, item: Any) -> Problem | None:
    key = operation_key(operation)
    earlier = kept.setdefault(key, operation)
    same = operation.event is earlier.event and same_fact_key(operation.text) == same_fact_key(earlier.text)
    if not same and Event.NONE not in (operation.event, earlier.event):
        return problem_with("a second operation on one memory", item, key)
    # A NONE for one fact does not contradict the operation of another fact on the same memory.
    facts = tuple(dict.fromkeys((*earlier.facts, *operation.facts)))
    kept[key] = replace(operation if earlier.event is Event.NONE else earlier, facts=facts)
    return None


# --- plain text ------------------------------------------------------------------------------------------------

_THOUGHTS = re.compile(rf"\A\s*<{THOUGHT_TAG}>.*?(?:</{THOUGHT_TAG}>|\Z)", re.DOTALL | re.IGNORECASE)
_HIDDEN_THOUGHTS = re.compile(rf"\A.*?</{THOUGHT_TAG}>", re.DOTALL | re.IGNORECASE)
"""Thoughts without the opening tag, which some servers drop."""

_FENCE = re.compile(r"\A```(?:[\w-]*[ \t]*\n(.*?)(?:^```.*)?|([^\n`]+)```)\Z", re.DOTALL | re.MULTILINE)

_LEAD = re.compile(
    r"""
    \A (?: (?:sure|certainly|of\ course|okay|ok) [,.!:]? \s++ )?
    (?:
        here (?:'s|’s|\ is) \ [^\n:]{0,60} summary [^\n:]{0,60} : [*\ ]*+
      | [\#*\ ]*+ (?:(?:the|new|updated|current|whole)\ ){0,3} (?:conversation\ )? summary
        (?:\ of\ the\ (?:whole\ )?conversation)? (?:\ so\ far)? [*\ ]*+ (?: : [*\ ]*+ | (?=\n|\Z) )
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Introduction of a summary, on a line of its own or up to a colon."""

_CONTROLS = {code: None for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n\r"}


# --- citations ---------------------------------------------------------------------------------------------------

_BRACKETS = re.compile(r"[\[【]([^\[\]【】]*)[\]】]")
_CITED_NUMBERS = re.compile(
    r"(?:(?:id|ids|memory|memories):? ?|#)?(?P<first>\d{1,6})(?: ?[-–—] ?(?P<last>\d{1,6}))?", re.IGNORECASE
)
_BETWEEN = re.compile(r"\s*(?:[,;&،，、]|\band\b)\s*")


@convert_errors
def read_citations(answer: str, citations: Mapping[str, str]) -> list[str]:
    """Return the ids of the memories that an answer cites, in the order of the text, each once.

    ``[1]``, ``[1][3]``, ``[1, 3]``, ``[1-3]``, ``[1 and 3]``, ``[id 1]`` and ``【1】`` are citations. Numbers that are
    not in `citations` are ignored; brackets with any other content are part of the text.

    Args:
        answer: text of the model.
        citations: ids by number, as `Memory.context` returns them.
    """
    try:
        known = {int(number): memory_id for number, memory_id in citations.items()}
    except ValueError as error:
        raise InputError(f"citations must be ids by numbers, as `Memory.context` returns them: {error}") from error
    found: dict[str, None] = {}
    for held in _BRACKETS.findall(answer):
        numbers = [_CITED_NUMBERS.fullmatch(part) for part in _BETWEEN.split(held.strip())]
        for number in numbers if all(numbers) else ():
            assert number is not None
            first, last = int(number["first"]), int(number["last"] or number["first"])
            found |= {known[place]: None for place in sorted(known) if first <= place <= last}
    return list(found)
