"""Replies as models really give them, case by case: what is read of each, and what is reported."""
# ruff: noqa: E501 - one case, one line

from __future__ import annotations

import contextlib
import inspect
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mem0_core.domain.records import Event, Operation, is_valid_text, same_fact_key
from mem0_core.errors import ModelError, ReplyError
from mem0_core.interfaces import Reply, ToolCall
from mem0_core.llm._json_replies import MAX_CHARS, MAX_LENIENT_CHARS, WHOLE_REPLY, read_json
from mem0_core.llm.replies import (
    FactsReply,
    OperationsReply,
    Problem,
    Reading,
    StatedFact,
    fact_key,
    merge,
    operation_key,
    read_facts,
    read_operations,
    read_summary,
)
from tests.support import hang_guard

NAME, PIZZA = "Name is Alice", "Loves pizza"


class FactCase(NamedTuple):
    name: str
    text: str
    facts: Sequence[str] = ()
    problems: Sequence[str] = ()
    """The exact reasons."""


BROKEN_OFF = "the reply breaks off"
SURROGATE = "a text that is not valid Unicode (half of a surrogate pair)"
CONTROL = "a text with control characters"

FACT_CASES = [
    # --- proper answers
    FactCase("the agreed form", '{"facts": ["Name is Alice", "Loves pizza"]}', [NAME, PIZZA]),
    FactCase("nothing to remember", '{"facts": []}'),
    FactCase("nothing, in a fence", '```json\n{"facts": []}\n```'),
    FactCase("the language is kept", '{"facts": ["Es alérgica a las nueces", "名字是张三"]}', ["Es alérgica a las nueces", "名字是张三"]),
    FactCase("an emoji as an escaped pair", r'{"facts": ["Likes \ud83c\udf55"]}', ["Likes 🍕"]),
    FactCase("braces, fences and tags inside a fact", '{"facts": ["Writes ``` and {x: [1]} and </think>"]}', ["Writes ``` and {x: [1]} and </think>"]),
    FactCase("an apostrophe", '{"facts": ["It\'s John\'s dog"]}', ["It's John's dog"]),
    FactCase("quotes, escaped", r'{"facts": ["Calls it \"home\""]}', ['Calls it "home"']),
    FactCase("a raw line break in a fact", '{"facts": ["Lives in\nBerlin"]}', ["Lives in\nBerlin"]),
    FactCase("a slash-slash in a fact", '{"facts": ["Blog is http://a.b # x"]}', ["Blog is http://a.b # x"]),
    FactCase("other keys beside", '{"facts": ["Loves pizza"], "language": "en", "n": 1}', [PIZZA]),
    FactCase("spaces around a fact", '{"facts": ["  Loves pizza \\n"]}', [PIZZA]),
    FactCase("one fact in three spellings", '{"facts": ["Loves pizza", "loves PIZZA", "Loves  pizza."]}', [PIZZA]),
    # --- wrappings
    FactCase("a fence with a language", 'Sure!\n```json\n{"facts": ["Loves pizza"]}\n```\nAnything else?', [PIZZA]),
    FactCase("a fence without one", '```\n{"facts": ["Loves pizza"]}\n```', [PIZZA]),
    FactCase("a fence that is not closed", '```json\n{"facts": ["Loves pizza"]}', [PIZZA]),
    FactCase("prose around", 'The facts are {"facts": ["Loves pizza"]}, I believe.', [PIZZA]),
    FactCase("prose with brackets", 'For [user] see [1] and {x}: {"facts": ["Loves pizza"]} :-[', [PIZZA]),
    FactCase("a stray bracket before", 'Here { it is: {"facts": ["Loves pizza"]}', [PIZZA]),
    FactCase("a stray bracket after", '{"facts": ["Loves pizza"]}}', [PIZZA]),
    FactCase("thoughts before", '<think>Maybe {"facts": ["Hates pizza"]}?</think>{"facts": ["Loves pizza"]}', [PIZZA]),
    FactCase("thoughts whose start is swallowed", 'Maybe {"facts": ["No"]}?\n</think>\n{"facts": ["Loves pizza"]}', [PIZZA]),
    FactCase("swallowed thoughts with a bracket", 'so {x... </think> {"facts": ["Loves pizza"]}', [PIZZA]),
    FactCase("thoughts in capitals", '<Thinking>[</Thinking>{"facts": ["Loves pizza"]}', [PIZZA]),
    FactCase("the same answer twice", '{"facts": ["Loves pizza"]}\n```json\n{"facts": ["Loves pizza"]}\n```', [PIZZA]),
    FactCase("doubled braces, as in a template", '{{"facts": ["Loves pizza"]}}', [PIZZA]),
    FactCase("a tool call written out", '<tool_call>{"name": "f", "arguments": {"facts": ["Loves pizza"]}}</tool_call>', [PIZZA]),
    # --- almost JSON
    FactCase("trailing commas", '{"facts": ["Name is Alice", "Loves pizza",],}', [NAME, PIZZA]),
    FactCase("single quotes", "{'facts': ['Name is Alice', 'Loves pizza']}", [NAME, PIZZA]),
    FactCase("Python's repr", "{'facts': [\"It's hers\", 'Loves pizza'], 'ok': True, 'x': None}", ["It's hers", PIZZA]),
    FactCase("literals of two languages", "{'facts': ['Loves pizza'], 'ok': True, 'x': null}", [PIZZA]),
    FactCase("a literal's name inside a fact", "{'facts': ['True love is None of yours'],}", ["True love is None of yours"]),
    FactCase("comments of all kinds", '{"facts": [ // it\'s one, [two]\n "Loves pizza", # three\n /* } */ ]}', [PIZZA]),
    FactCase("keys without quotes", '{facts: ["Loves pizza"]}', [PIZZA]),
    FactCase("an escaped apostrophe", r'{"facts": ["It\'s hers"]}', ["It's hers"]),
    FactCase("a missing last brace", '{"facts": ["Name is Alice", "Loves pizza"]', [NAME, PIZZA]),
    FactCase("a missing last brace, then prose", '```\n{"facts": ["Loves pizza"]\n```\nThat is all.', [PIZZA]),
    FactCase("one bracket too many", '{"facts": ["Loves pizza"]]}', [PIZZA]),
    FactCase("an empty place in the list", '{"facts": ["Name is Alice",, "Loves pizza"]}', [NAME, PIZZA]),
    # --- other shapes
    FactCase("a list on its own", '["Name is Alice", "Loves pizza"]', [NAME, PIZZA]),
    FactCase("an empty list on its own", "```json\n[]\n```"),
    FactCase("a list around the object", '[{"facts": ["Loves pizza"]}]', [PIZZA]),
    FactCase("a text instead of a list", '{"facts": "Loves pizza"}', [PIZZA]),
    FactCase("two sentences instead of a list", '{"facts": "Name is Alice. Loves pizza."}', ["Name is Alice.", "Loves pizza."]),
    FactCase("sentences in lower case instead of a list", '{"facts": "name is alice. loves pizza"}', ["name is alice.", "loves pizza"]),
    FactCase("abbreviations in a text instead of a list", '{"facts": "Met Dr. J. Smith. Has a dog! Works at Acme Inc. in Porto"}', ["Met Dr. J. Smith.", "Has a dog!", "Works at Acme Inc. in Porto"]),
    FactCase("lines instead of a list", '{"facts": "- Name is Alice\\n2. Loves pizza\\n"}', [NAME, PIZZA]),
    FactCase("a list within a text", '{"facts": "[\\"Name is Alice\\", \\"Loves pizza\\"]"}', [NAME, PIZZA]),
    FactCase("ideographic sentences", '{"facts": "名字是张三。喜欢茶。"}', ["名字是张三。", "喜欢茶。"]),
    FactCase("a blank text instead of a list", '{"facts": " "}', [], ["an empty text"]),
    FactCase("an object instead of a list", '{"facts": {"fact": "Loves pizza"}}', [PIZZA]),
    FactCase("the key in the singular", '{"fact": ["Loves pizza"]}', [PIZZA]),
    FactCase("the key in capitals", '{"Facts": ["Loves pizza"]}', [PIZZA]),
    FactCase("facts as objects", '{"facts": [{"fact": "Name is Alice"}, {"text": "Loves pizza"}, {"memory": "Is 30"}]}', [NAME, PIZZA, "Is 30"]),
    FactCase("facts as objects with more in them", '{"facts": [{"fact": "Loves pizza", "category": "food"}]}', [PIZZA]),
    FactCase("one object per line", '{"fact": "Name is Alice"}\n{"fact": "Loves pizza"}', [NAME, PIZZA]),
    FactCase("the key twice, with lists", '{"facts": ["Name is Alice"], "facts": ["Loves pizza"]}', [NAME, PIZZA]),
    FactCase("the key twice, with one list", '{"facts": ["Loves pizza"], "facts": ["Loves pizza"]}', [PIZZA]),
    # --- items that cannot be used
    FactCase("null among the facts", '{"facts": [null, "Loves pizza"]}', [PIZZA], ["null instead of a fact"]),
    FactCase("wrong types", '{"facts": [1, 2.5, true, ["a"], "Loves pizza"]}', [PIZZA], ["a number instead of a fact", "a number instead of a fact", "true or false instead of a fact", "a list instead of a fact"]),
    FactCase("an object without a text", '{"facts": [{"name": "Alice"}]}', [], ["an object instead of a fact"]),
    FactCase("an object with two texts", '{"facts": [{"fact": "Loves tea", "text": "Hates tea"}]}', [], ["an object instead of a fact"]),
    FactCase("an object with a text twice", '{"facts": [{"fact": "Loves tea", "fact": "Hates tea"}]}', [], ["an object instead of a fact"]),
    FactCase("blank facts", '{"facts": ["", "  \\n", "Loves pizza"]}', [PIZZA], ["an empty text", "an empty text"]),
    FactCase("placeholders", '{"facts": ["None", "N/A", "..."]}', [], ["a placeholder instead of a fact"] * 3),
    FactCase("half a surrogate pair", r'{"facts": ["Likes \ud83d", "Loves pizza"]}', [PIZZA], [SURROGATE]),
    FactCase("an escape gone wrong", r'{"facts": ["Prefers \beta", "Loves pizza"]}', [PIZZA], [CONTROL]),
    FactCase("a NUL", r'{"facts": ["a\u0000b"]}', [], [CONTROL]),
    FactCase("a backslash that is no escape", r'{"facts": ["Works in C:\data", "Loves pizza"]}', [PIZZA], ["an item that is not JSON"]),
    FactCase("quotes that are not escaped", '{"facts": ["Calls it "home" now", "Loves pizza"]}', [PIZZA], ["an item that is not JSON"]),
    FactCase("an apostrophe in single quotes", "{'facts': ['It's hers', 'Loves pizza']}", [PIZZA], ["an item that is not JSON"]),
    FactCase("a missing comma never joins two facts", '{"facts": ["Name is Alice" "Loves pizza", "Is 30"]}', ["Is 30"], ["an item that is not JSON"]),
    FactCase("a missing comma, in Python", "['Name is Alice' 'Loves pizza']", [], ["not JSON"]),
    # --- cut off
    FactCase("cut in a fact", '{"facts": ["Name is Alice", "Loves piz', [NAME], [BROKEN_OFF]),
    FactCase("cut in the first fact", '{"facts": ["Name is Al', [], [BROKEN_OFF]),
    FactCase("cut in the first fact of a bare list", '["Name is Al', [], [BROKEN_OFF]),
    FactCase("cut after a fact", '{"facts": ["Name is Alice", "Loves pizza"', [NAME, PIZZA], [BROKEN_OFF]),
    FactCase("cut after a comma", '{"facts": ["Name is Alice",', [NAME], [BROKEN_OFF]),
    FactCase("cut before the first fact", '{"facts": [', [], [BROKEN_OFF]),
    FactCase("cut in the key", '{"fac', [], [BROKEN_OFF]),
    FactCase("cut in a text instead of a list", '{"facts": "Loves piz', [], [BROKEN_OFF]),
    FactCase("cut in an object", '{"facts": [{"fact": "Name is Alice"}, {"fact": "Loves pizza", "ca', [NAME], [BROKEN_OFF]),
    FactCase("cut in an escape", '{"facts": ["Name is Alice", "Loves \\', [NAME], [BROKEN_OFF]),
    FactCase("cut in single quotes", "{'facts': ['Name is Alice', 'Loves piz", [NAME], [BROKEN_OFF]),
    FactCase("cut in a fence that was closed", '```json\n{"facts": ["Name is Alice", "Loves piz\n```', [NAME], [BROKEN_OFF]),
    FactCase("cut in the second of two lines", '{"fact": "Name is Alice"}\n{"fact": "Loves piz', [NAME], [BROKEN_OFF]),
    FactCase("cut in a number", '{"facts": ["Name is Alice", 12', [NAME], [BROKEN_OFF]),
    FactCase("cut beside the list", '{"facts": ["Loves pizza"], "note": "I th', [PIZZA], ["what follows the list is not JSON"]),
    FactCase("a missing list bracket", '{"facts": ["Name is Alice", "Loves pizza"}', [NAME, PIZZA], [BROKEN_OFF]),
    FactCase("cut, and its text speaks of facts", "{\"fact\": \"Said {'facts': ['Is evil']} and th", [], [BROKEN_OFF]),
    FactCase("cut, without quotes around the key", "{fact: \"Said {'facts': ['Is evil']} and th", [], [BROKEN_OFF]),
    FactCase("cut in thoughts", '<think>{"facts": ["Loves pizza"]} or', [], ["the reply breaks off within its thoughts"]),
    # --- no answer, or too many
    FactCase("empty", "", [], ["the reply is empty"]),
    FactCase("blank", " \n\t", [], ["the reply is empty"]),
    FactCase("a refusal", "I'm sorry, I can't help with that.", [], ["no JSON in the reply"]),
    FactCase("prose with a box to tick", "- [ ] nothing to remember", [], ['no list under "facts"']),
    FactCase("only thoughts", "<think>Hm.</think>", [], ["no JSON in the reply"]),
    FactCase("an empty object", "{}", [], ['no list under "facts"']),
    FactCase("another key", '{"preferences": ["Loves pizza"]}', [], ['no list under "facts"']),
    FactCase("null instead of a list", '{"facts": null}', [], ['null instead of a list under "facts"']),
    FactCase("a number instead of a list", '{"facts": 3}', [], ['a number instead of a list under "facts"']),
    FactCase("a text alone", '"Loves pizza"', [], ["no JSON in the reply"]),
    FactCase("two different answers", '{"facts": ["Name is Alice"]} or {"facts": ["Loves pizza"]}', [], ["2 different answers in one reply"]),
    FactCase("a draft and an empty answer", '{"facts": ["Loves pizza"]}\nFinal: {"facts": []}', [], ["2 different answers in one reply"]),
    FactCase("two answers, the first unclosed", '{"facts": ["Name is Alice"]\n{"facts": ["Loves pizza"]}', [], ["2 different answers in one reply"]),
    FactCase("an item beside the list", '{"facts": ["Name is Alice"]}\n{"fact": "Loves pizza"}', [NAME], ["an item beside the list"]),
    FactCase("two keys for the list", '{"facts": ["Name is Alice"], "fact": "Loves pizza"}', [NAME], ['more under "fact", beside "facts"']),
    FactCase("a broken answer beside a good one", '{"facts": ["Name is Alice"]} {"x" "y"}', [NAME], ["not JSON"]),
    FactCase("a second broken list", '{"facts": ["Name is Alice"], "more": ["Loves "it""]}', [NAME], ["what follows the list is not JSON"]),
    FactCase("nested too deep", '{"facts": ' + "[" * 50 + "]" * 50 + "}", [], ["brackets nested more than 20 deep"]),
    FactCase("brackets without end", "[" * 100_000, [], ["brackets nested more than 20 deep"]),
    FactCase("a number too long to be one", '{"facts": [' + "1" * 5000 + ', "Loves pizza"]}', [PIZZA], ["an item that is not JSON"]),
    FactCase("too long", '{"facts": ["' + "a" * MAX_CHARS + '"]}', [], [f"a reply of more than {MAX_CHARS} characters"]),
]  # fmt: skip

IDS = {"0": "mem-a", "1": "mem-b", "2": "mem-c"}
TEXTS = {"0": "Name is Bob", "1": "Likes burgers", "2": "Is a software engineer"}
FACTS = [NAME, PIZZA]

ADD, UPDATE, DELETE, NONE = Event.ADD, Event.UPDATE, Event.DELETE, Event.NONE
RENAMED = Operation(UPDATE, NAME, "mem-a")
ADDED = Operation(ADD, PIZZA)
SAME = Operation(NONE, "Likes burgers", "mem-b")
GONE = Operation(DELETE, "Likes burgers", "mem-b")


class OperationCase(NamedTuple):
    name: str
    text: str
    operations: Sequence[Operation] = ()
    problems: Sequence[str] = ()


SEED = """{
  "memory": [
    {"id": "0", "text": "Name is Alice",
     "event": "UPDATE", "old_memory": "Name is Bob"},
    {"id": "1", "text": "Likes burgers", "event": "NONE"},
    {"id": "2", "text": "Loves pizza", "event": "ADD"}
  ]
}"""

OPERATION_CASES = [
    # --- proper answers
    OperationCase("mem0's own example", SEED, [RENAMED, SAME, ADDED]),
    OperationCase("a deletion", '{"memory": [{"id": "1", "text": "Likes burgers", "event": "DELETE"}]}', [GONE]),
    OperationCase("a deletion without a text", '{"memory": [{"id": "1", "event": "DELETE"}]}', [GONE]),
    OperationCase("a deletion with a garbled text", '{"memory": [{"id": "1", "text": "burger", "event": "DELETE"}]}', [GONE]),
    OperationCase("an update without the old text", '{"memory": [{"id": "0", "text": "Name is Alice", "event": "UPDATE"}]}', [RENAMED]),
    OperationCase("an update with null for the old text", '{"memory": [{"id": "0", "text": "Name is Alice", "event": "UPDATE", "old_memory": null}]}', [RENAMED]),
    OperationCase("an addition without an id", '{"memory": [{"text": "Loves pizza", "event": "ADD"}]}', [ADDED]),
    OperationCase("a fence", f"```json\n{SEED}\n```", [RENAMED, SAME, ADDED]),
    OperationCase("thoughts that speak of the answer", '<think>{"memory": []}</think>' + SEED, [RENAMED, SAME, ADDED]),
    # --- sloppy, but clear
    OperationCase("numbers for ids", '{"memory": [{"id": 0, "text": "Name is Alice", "event": "UPDATE"}]}', [RENAMED]),
    OperationCase("spaces around", '{"memory": [{"id": " 0 ", "text": " Name is Alice\\n", "event": " UPDATE "}]}', [RENAMED]),
    OperationCase("lower case", '{"memory": [{"id": "0", "text": "Name is Alice", "event": "update"}]}', [RENAMED]),
    OperationCase("keys in capitals", '{"memory": [{"ID": "0", "Text": "Name is Alice", "Event": "Update"}]}', [RENAMED]),
    OperationCase("the paper's NOOP", '{"memory": [{"id": "1", "text": "Likes burgers", "event": "NOOP"}]}', [SAME]),
    OperationCase("an alias of the key: memories", '{"memories": [{"id": "1", "event": "NONE"}]}', [SAME]),
    OperationCase("an alias of the key: operations", '{"operations": [{"id": "1", "event": "NONE"}]}', [SAME]),
    OperationCase("mem0's results", '{"results": [{"id": "0", "memory": "Name is Alice", "event": "UPDATE"}]}', [RENAMED]),
    OperationCase("an alias of the event", '{"memory": [{"id": "1", "action": "delete"}]}', [GONE]),
    OperationCase("a list on its own", '[{"id": "1", "event": "NONE"}, {"text": "Loves pizza", "event": "ADD"}]', [SAME, ADDED]),
    OperationCase("one operation, not in a list", '{"id": "0", "text": "Name is Alice", "event": "UPDATE"}', [RENAMED]),
    OperationCase("one operation under the key", '{"memory": {"id": "0", "text": "Name is Alice", "event": "UPDATE"}}', [RENAMED]),
    OperationCase("one operation per line", '{"id": "0", "text": "Name is Alice", "event": "UPDATE"}\n{"id": "1", "event": "NONE"}', [RENAMED, SAME]),
    OperationCase("Python's repr", "{'memory': [{'id': 0, 'text': \"Name is Alice\", 'event': 'UPDATE', 'old_memory': None}]}", [RENAMED]),
    OperationCase("comments, as in mem0's prompt", '{"memory": [{"id": "1", # existing id\n "event": "DELETE" // or NONE\n}]}', [GONE]),
    OperationCase("an addition under an id that exists", '{"memory": [{"id": "0", "text": "Loves pizza", "event": "ADD"}]}', [ADDED]),
    OperationCase("an addition twice", '{"memory": [{"text": "Loves pizza", "event": "ADD"}, {"text": "loves pizza.", "event": "ADD"}]}', [ADDED]),
    OperationCase("an update to the same text", '{"memory": [{"id": "1", "text": "Likes burgers", "event": "UPDATE"}]}', [SAME]),
    OperationCase("an update of the case only", '{"memory": [{"id": "1", "text": "likes Burgers", "event": "UPDATE"}]}', [Operation(UPDATE, "likes Burgers", "mem-b")]),
    OperationCase("the same operation twice", '{"memory": [{"id": "1", "event": "DELETE"}, {"id": 1, "event": "DELETE"}]}', [GONE]),
    OperationCase("NONE gives way to an update", '{"memory": [{"id": "0", "event": "NONE"}, {"id": "0", "text": "Name is Alice", "event": "UPDATE"}]}', [RENAMED]),
    OperationCase("an update stands against NONE", '{"memory": [{"id": "0", "text": "Name is Alice", "event": "UPDATE"}, {"id": "0", "event": "NONE"}]}', [RENAMED]),
    OperationCase("NONE of a fact, without an id", '{"memory": [{"text": "Loves pizza", "event": "NONE"}]}', [Operation(NONE, PIZZA)]),
    OperationCase("an old text that no memory has", '{"memory": [{"id": "0", "text": "Name is Alice", "event": "UPDATE", "old_memory": "Is Bob"}]}', [RENAMED]),
    # --- items that cannot be used
    OperationCase("an unknown id", '{"memory": [{"id": "7", "text": "Name is Alice", "event": "UPDATE"}, {"id": "1", "event": "NONE"}]}', [SAME], ["an id that was not given"]),
    OperationCase("an unknown id to delete", '{"memory": [{"id": "7", "event": "DELETE"}]}', [], ["an id that was not given"]),
    OperationCase("an unknown id left alone", '{"memory": [{"id": "7", "event": "NONE"}]}', [], ["an id that was not given"]),
    OperationCase("an id in words", '{"memory": [{"id": "id 0", "text": "Name is Alice", "event": "UPDATE"}]}', [], ["an id that was not given"]),
    OperationCase("the memory's own id", '{"memory": [{"id": "mem-a", "text": "Name is Alice", "event": "UPDATE"}]}', [], ["an id that was not given"]),
    OperationCase("true for an id", '{"memory": [{"id": true, "event": "DELETE"}]}', [], ["an id that was not given"]),
    OperationCase("a fraction for an id", '{"memory": [{"id": 1.0, "event": "DELETE"}]}', [], ["an id that was not given"]),
    OperationCase("two ids in one item", '{"memory": [{"id": "0", "id": "1", "event": "DELETE"}]}', [], ["an id that was not given"]),
    OperationCase("no id", '{"memory": [{"text": "Name is Alice", "event": "UPDATE"}]}', [], ["no id"]),
    OperationCase("no event", '{"memory": [{"id": "0", "text": "Name is Alice"}]}', [], ["no event"]),
    OperationCase("null for an event", '{"memory": [{"id": "0", "text": "Name is Alice", "event": null}]}', [], ["no event"]),
    OperationCase("an unknown event", '{"memory": [{"id": "0", "text": "Name is Alice", "event": "MERGE"}]}', [], ["an unknown event"]),
    OperationCase("a choice of events", '{"memory": [{"id": "0", "text": "Name is Alice", "event": "UPDATE|NONE"}]}', [], ["an unknown event"]),
    OperationCase("two events in one item", '{"memory": [{"id": "0", "event": "DELETE", "event": "NONE"}]}', [], ["an unknown event"]),
    OperationCase("an update without a text", '{"memory": [{"id": "0", "event": "UPDATE"}]}', [], ["no text"]),
    OperationCase("an update to nothing", '{"memory": [{"id": "0", "text": " ", "event": "UPDATE"}]}', [], ["an empty text"]),
    OperationCase("an update with two texts", '{"memory": [{"id": "0", "text": "Name is Al", "text": "Name is Eve", "event": "UPDATE"}]}', [], ["two values instead of a text"]),
    OperationCase("an addition without a text", '{"memory": [{"id": "3", "event": "ADD"}]}', [], ["no text"]),
    OperationCase("an addition of a list", '{"memory": [{"text": ["Loves pizza"], "event": "ADD"}]}', [], ["a list instead of a text"]),
    OperationCase("an addition of half a surrogate pair", r'{"memory": [{"text": "\ud83d", "event": "ADD"}]}', [], [SURROGATE]),
    OperationCase("null among the operations", '{"memory": [null, {"id": "1", "event": "NONE"}]}', [SAME], ["null instead of an operation"]),
    OperationCase("texts instead of operations", '{"memory": ["Loves pizza"]}', [], ["a text instead of an operation"]),
    OperationCase("a text instead of a list", '{"memory": "Loves pizza"}', [], ["a text instead of an operation"]),
    OperationCase("two updates of one memory", '{"memory": [{"id": "0", "text": "Name is Alice", "event": "UPDATE"}, {"id": "0", "text": "Name is Eve", "event": "UPDATE"}]}', [RENAMED], ["a second operation on one memory"]),
    OperationCase("an update and a deletion of one memory", '{"memory": [{"id": "0", "text": "Name is Alice", "event": "UPDATE"}, {"id": "0", "event": "DELETE"}]}', [RENAMED], ["a second operation on one memory"]),
    OperationCase("an id beside another memory's text", '{"memory": [{"id": "1", "text": "Name is Alice", "event": "UPDATE", "old_memory": "Name is Bob"}]}', [], ["its id and its text name two different memories"]),
    OperationCase("a deletion with another memory's text", '{"memory": [{"id": "2", "text": "Likes burgers", "event": "DELETE"}]}', [], ["its id and its text name two different memories"]),
    # --- cut off, no answer, too many
    OperationCase("cut in the second", '{"memory": [{"id": "1", "event": "NONE"}, {"id": "0", "text": "Name is Al', [SAME], [BROKEN_OFF]),
    OperationCase("cut where it could pass for whole", '{"memory": [{"id": "1", "event": "NONE"}, {"id": "0", "event": "DELETE", "te', [SAME], [BROKEN_OFF]),
    OperationCase("cut, on its own", '{"id": "0", "text": "Name is Alice", "event": "UPDATE", "old_', [], [BROKEN_OFF]),
    OperationCase("cut between two", '{"memory": [{"id": "1", "event": "NONE"},', [SAME], [BROKEN_OFF]),
    OperationCase("an item that is not closed", '{"memory": [{"id": "1", "event": "NONE"}, {"id": "0", "event": "DELETE"]}', [SAME], [BROKEN_OFF]),
    OperationCase("one item with quotes not escaped", '{"memory": [{"id": "1", "event": "NONE"}, {"text": "Is "Al"", "event": "ADD"}, {"text": "Loves pizza", "event": "ADD"}]}', [SAME, ADDED], ["an item that is not JSON"]),
    OperationCase("no operation for the facts", '{"memory": []}', [], ["no operation for the facts"]),
    OperationCase("no operation, as a bare list", "[]", [], ["no operation for the facts"]),
    OperationCase("empty", "", [], ["the reply is empty"]),
    OperationCase("a refusal", "I cannot do that.", [], ["no JSON in the reply"]),
    OperationCase("the question as the answer", '{"memories": [{"id": "0", "text": "Name is Bob"}], "facts": ["Name is Alice"]}', [], ["no event"]),
    OperationCase("facts instead of operations", '{"facts": ["Name is Alice"]}', [], ['no list under "memory"']),
    OperationCase("null instead of a list", '{"memory": null}', [], ['null instead of a list under "memory"']),
    OperationCase("two different answers", '{"memory": [{"id": "1", "event": "NONE"}]} {"memory": [{"id": "1", "event": "DELETE"}]}', [], ["2 different answers in one reply"]),
    OperationCase("two keys for the list", '{"memory": [{"id": "1", "event": "NONE"}], "results": [{"id": "0", "event": "DELETE"}]}', [SAME], ['more under "results", beside "memory"']),
]  # fmt: skip


def reasons(reading: Reading[Any]) -> list[str]:
    return [problem.reason for problem in reading.problems]


def texts_of(reading: Reading[StatedFact]) -> tuple[str, ...]:
    return tuple(fact.text for fact in reading.items)


def operations(text: str) -> Reading[Operation]:
    return read_operations(Reply(text), ids=IDS, texts=TEXTS, facts=FACTS)


def test_the_tables_are_long_enough_and_name_each_case_once() -> None:
    names = [("facts", case.name) for case in FACT_CASES] + [("operations", case.name) for case in OPERATION_CASES]
    assert len(names) == len(set(names)) >= 80


@pytest.mark.parametrize("case", FACT_CASES, ids=lambda case: case.name)
def test_facts(case: FactCase) -> None:
    reading = read_facts(Reply(case.text))
    assert texts_of(reading) == tuple(case.facts)
    assert reasons(reading) == list(case.problems)
    assert reading.raw == case.text


@pytest.mark.parametrize("case", OPERATION_CASES, ids=lambda case: case.name)
def test_operations(case: OperationCase) -> None:
    reading = operations(case.text)
    assert reading.items == tuple(case.operations)
    assert reasons(reading) == list(case.problems)
    assert reading.raw == case.text


# --- problems --------------------------------------------------------------------------------------------------


def test_a_problem_carries_what_could_not_be_read() -> None:
    reading = read_facts(Reply('{"facts": ["Name is Alice", {"name": "Alice"}, "Loves piz'))
    assert [problem.item for problem in reading.problems] == ['"Loves piz', {"name": "Alice"}]


def test_a_problem_of_the_whole_reply_carries_it() -> None:
    (problem,) = read_facts(Reply(" I can't. ")).problems
    assert problem == Problem("no JSON in the reply", "I can't.", WHOLE_REPLY)


def test_facts_without_an_operation_are_named() -> None:
    (problem,) = operations('{"memory": []}').problems
    assert problem.item == FACTS


def test_without_facts_an_empty_list_is_an_answer() -> None:
    assert not read_operations(Reply('{"memory": []}'), ids=IDS, texts=TEXTS, facts=[]).problems


def test_a_problem_can_be_printed_and_stored_whatever_its_item() -> None:
    reading = read_facts(Reply(r'{"facts": ["x \ud83d", {"\ud83d": ["\ud83d"]}]} ' + "\ud83d"))
    for problem in reading.problems:
        str(problem).encode()
        json.dumps(problem.item, ensure_ascii=False).encode()
    assert reading.problems[0].item == r"x \ud83d"


def test_a_number_too_long_to_be_written_can_be_shown() -> None:
    (problem,) = read_facts(Reply("{facts: [0x" + "f" * 5_000 + "]}")).problems
    assert str(problem).startswith('a number instead of a fact: "0xfff')


def test_a_problem_is_one_line() -> None:
    assert str(Problem("an empty text", {"fact": "\n"})) == r'an empty text: {"fact": "\n"}'


def test_a_problem_shows_only_the_start_of_a_long_text() -> None:
    (problem,) = read_facts(Reply("a" * 10_000)).problems
    assert len(problem.item) < 600


def test_a_long_proper_reply_is_read_whole() -> None:
    facts = [f"Fact number {n}" for n in range(5_000)]
    text = json.dumps({"facts": facts})
    assert len(text) > MAX_LENIENT_CHARS
    assert texts_of(read_facts(Reply(text))) == tuple(facts)


def test_a_long_reply_with_a_trailing_comma_is_read_item_by_item() -> None:
    facts = [f"Fact number {n}" for n in range(5_000)]
    reading = read_facts(Reply(json.dumps({"facts": facts})[:-2] + ",]}"))
    assert texts_of(reading) == tuple(facts)
    assert not reading.problems


# --- tool calls ------------------------------------------------------------------------------------------------


def test_arguments_of_a_tool_call() -> None:
    reading = read_facts(Reply("Let me see.", [ToolCall("facts", {"facts": [NAME]})]))
    assert (texts_of(reading), reading.problems) == ((NAME,), ())
    assert json.loads(reading.raw) == {"facts": [NAME]}


def test_arguments_as_the_raw_text_that_was_no_json() -> None:
    reading = read_facts(Reply("", [ToolCall("facts", '{"facts": ["Name is Alice", "Loves piz')]))
    assert (texts_of(reading), reasons(reading)) == ((NAME,), [BROKEN_OFF])


def test_each_of_several_tool_calls_is_meant() -> None:
    calls = [ToolCall("facts", {"facts": [NAME]}), ToolCall("facts", {"facts": [PIZZA]})]
    assert texts_of(read_facts(Reply("", calls))) == (NAME, PIZZA)


def test_one_operation_per_tool_call() -> None:
    calls = [ToolCall("memory", {"id": 1, "event": "DELETE"}), ToolCall("memory", {"event": "ADD", "text": PIZZA})]
    assert read_operations(Reply("", calls), ids=IDS, texts=TEXTS, facts=FACTS).items == (GONE, ADDED)


def test_a_tool_call_without_arguments_leaves_the_text() -> None:
    assert texts_of(read_facts(Reply('{"facts": ["Loves pizza"]}', [ToolCall("think", {})]))) == (PIZZA,)


@pytest.mark.parametrize("arguments", [{"facts": {1, 2}}, {"facts": [object()]}, {("a", "b"): 1}])
def test_arguments_that_are_no_json(arguments: Any) -> None:
    assert reasons(read_facts(Reply("", [ToolCall("facts", arguments)]))) == ["no JSON in the reply"]


def test_arguments_that_hold_themselves() -> None:
    arguments: dict[str, Any] = {}
    arguments["facts"] = arguments
    assert reasons(read_facts(Reply("", [ToolCall("facts", arguments)]))) == ["no JSON in the reply"]


def test_read_json_gives_all_values_in_order() -> None:
    reading = read_json(Reply('First {"Entities": [1]}, then [{"a": {"B": null}}] and {"x": 1, "X": 2}.'))
    assert reading.items == ({"entities": [1]}, [{"a": {"b": None}}], {"x": [1, 2]})
    assert not reading.problems


# --- what tests draw from --------------------------------------------------------------------------------------

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["facts", "fact", "text", "memory", "id", "event", "old_memory", "x"]), inner, max_size=4
    ),
    max_leaves=12,
)  # fmt: skip
operation_items = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["0", "1", "2", "9", 0, 1, None, True]),
        "text": st.sampled_from([*TEXTS.values(), NAME, PIZZA, "", None, 3, "\ud83d"]),
        "event": st.sampled_from([*Event, "NOOP", "update", "MERGE", None, 1]),
        "old_memory": st.sampled_from([*TEXTS.values(), None, 1, "\ud83d"]),
    },
)
FRAGMENTS = [
    *("{", "}", "[", "]", ",", ":", '"', "'", "\\", "\\u", "\\ud83d", "//", "/*", "*/", "#", "None", "True", "1", "-"),
    *("{{", "}}", "Infinity", "0x1", "é", "<think>", "</think>", "```json", "```", "\n", " ", "\x00", "\ud83d"),
    *(
        '"facts"',
        '"memory"',
        '"event"',
        '"ADD"',
        '{"facts": [',
        "]}",
        '"Loves pizza"',
        "'it's'",
        '{"id": 0, "event": "DELETE"}',
    ),
]
fragments = st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)


# --- operations by tool call -----------------------------------------------------------------------------------


def called(*calls: tuple[str, Any], text: str = "", facts: Sequence[str] = FACTS) -> Reading[Operation]:
    reply = Reply(text, [ToolCall(name, arguments) for name, arguments in calls])
    return read_operations(reply, ids=IDS, texts=TEXTS, facts=facts)


ADD_PIZZA = ("add_memory", {"text": PIZZA})
RENAME = ("update_memory", {"id": "0", "text": NAME, "old_memory": "Name is Bob"})
FORGET = ("delete_memory", {"id": "1"})
JSON_FORM = {"memory": [{"id": "1", "event": "DELETE"}]}


def test_each_call_is_an_operation() -> None:
    reading = called(RENAME, FORGET, ADD_PIZZA, ("noop", {"id": "2"}))
    assert reading.items == (RENAMED, GONE, ADDED, Operation(NONE, "Is a software engineer", "mem-c"))
    assert not reading.problems


def test_what_no_call_names_is_left_alone() -> None:
    assert called(ADD_PIZZA) == Reading((ADDED,), (), called(ADD_PIZZA).raw)


@pytest.mark.parametrize(
    ("call", "operation"),
    [
        (("ADD", {"text": PIZZA}), ADDED),
        (("Update", {"id": 0, "text": NAME}), RENAMED),
        ((" delete ", {"id": "1"}), GONE),
        (("NOOP", {"id": "1"}), SAME),
        (("NONE", {"id": "1"}), SAME),
        (("Add_Memory", {"Text": PIZZA}), ADDED),
        (("update_memory", {"id": "0", "text": NAME, "old_memory": None}), RENAMED),
        (("update_memory", {"id": "1", "text": "Likes burgers"}), SAME),
        (("add_memory", {"id": "0", "text": PIZZA}), ADDED),
        (("add_memory", {"memory": PIZZA}), ADDED),
        (("add_memory", {"text": PIZZA, "event": "add"}), ADDED),
        (("noop", {}), Operation(NONE)),
        (("noop", ""), Operation(NONE)),
        (("noop", "null"), Operation(NONE)),
        (("noop", {"id": None}), Operation(NONE)),
        (("add_memory", '{"text": "Loves pizza"}'), ADDED),
        (("add_memory", "```json\n{'text': 'Loves pizza',}\n```"), ADDED),
        (("delete_memory", JSON_FORM), GONE),
        (("memory", JSON_FORM), GONE),
        (("anything", JSON_FORM), GONE),
        (("anything", json.dumps(JSON_FORM)), GONE),
        (("anything", {"id": "1", "event": "DELETE"}), GONE),
    ],
)
def test_a_call_in_all_its_forms(call: tuple[str, Any], operation: Operation) -> None:
    reading = called(call)
    assert (reading.items, reading.problems) == ((operation,), ())


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("add_memory", {}), "no text"),
        (("add_memory", {"text": " "}), "an empty text"),
        (("add_memory", {"text": ["a", "b"]}), "a list instead of a text"),
        (("add_memory", {"text": "\ud83d"}), SURROGATE),
        (("add_memory", '{"text": "Loves piz'), BROKEN_OFF),
        (("add_memory", '{"text": "Loves", "text": "Hates"}'), "two values instead of a text"),
        (("add_memory", "Loves pizza"), "no JSON in the reply"),
        (("add_memory", {"text": {1, 2}}), "no JSON in the reply"),
        (("add_memory", {"text": PIZZA, "event": "DELETE"}), "its tool and its event differ"),
        (("noop", {"id": "1", "event": 1}), "its tool and its event differ"),
        (("update_memory", {"text": NAME}), "no id"),
        (("update_memory", {"id": "0"}), "no text"),
        (("update_memory", {"id": "7", "text": NAME}), "an id that was not given"),
        (
            ("update_memory", {"id": "1", "text": NAME, "old_memory": "Name is Bob"}),
            "its id and its text name two different memories",
        ),
        (("delete_memory", {}), "no id"),
        (("delete_memory", {"id": "7"}), "an id that was not given"),
        (("delete_memory", '{"id": "1"'), BROKEN_OFF),
        (("noop", {"id": "7"}), "an id that was not given"),
    ],
)
def test_a_call_that_cannot_be_used_is_named_and_the_others_stand(call: tuple[str, Any], reason: str) -> None:
    assert (called(call).items, reasons(called(call))) == ((), [reason])
    reading = called(ADD_PIZZA, call, RENAME)
    assert (reading.items, reasons(reading)) == ((ADDED, RENAMED), [reason])
    assert all(problem.about != WHOLE_REPLY for problem in reading.problems)


@pytest.mark.parametrize("arguments", [{}, "", {"id": "1"}, {"text": NAME}, '{"id": "1", "te', "1", {"a": {1}}])
def test_an_unknown_tool_is_named(arguments: Any) -> None:
    alone = called(("merge_memories", arguments))
    assert (alone.items, reasons(alone)) == ((), ['an unknown tool "merge_memories"'])
    assert "merge_memories" in alone.raw
    reading = called(FORGET, ("merge_memories", arguments), ADD_PIZZA)
    assert (reading.items, reasons(reading)) == ((GONE, ADDED), ['an unknown tool "merge_memories"'])


def test_an_unknown_tool_beside_an_answer_in_json_is_named_and_the_answer_read() -> None:
    reading = called(("think", {}), text=json.dumps(JSON_FORM))
    assert (reading.items, reasons(reading)) == ((GONE,), ['an unknown tool "think"'])


def test_any_name_of_a_tool_can_be_shown() -> None:
    (problem,) = called(("\ud83d" + "x" * 10_000, {"\ud83d": "\ud83d"})).problems
    str(problem).encode()
    assert len(problem.reason) < 100


@pytest.mark.parametrize("text", ['{"memory": [{"id": "0", "event": "DELETE"}]}', "Let me {see}.", '{"memory": []}'])
def test_calls_win_over_the_text_beside_them(text: str) -> None:
    reading = called(FORGET, ADD_PIZZA, text=text)
    assert (reading.items, reading.problems) == ((GONE, ADDED), ())


@pytest.mark.parametrize("text", ["", "Nothing to do.", '{"memory": []}', '{"tool_calls": []}', "[]"])
def test_neither_a_call_nor_json_is_a_problem(text: str) -> None:
    assert called(text=text).problems
    assert called(("memory", {"memory": []}), text=text).problems


def test_two_calls_on_one_memory_are_contested() -> None:
    reading = called(RENAME, ("delete_memory", {"id": "0"}), ("noop", {"id": "0"}))
    assert (reading.items, reasons(reading)) == ((RENAMED,), ["a second operation on one memory"])


def test_several_objects_in_the_arguments_of_one_call_are_all_meant() -> None:
    assert called(("delete_memory", '{"id": "0"}{"id": "1"}')).items == (
        Operation(DELETE, "Name is Bob", "mem-a"),
        GONE,
    )


def test_the_raw_reply_names_the_tools() -> None:
    assert [json.loads(line) for line in called(FORGET, ("noop", {})).raw.splitlines()] == [
        {"name": "delete_memory", "arguments": {"id": "1"}},
        {"name": "noop", "arguments": {}},
    ]


def test_calls_mend_calls() -> None:
    first = called(RENAME, ("add_memory", '{"text": "Loves piz'))
    assert merge(first, called(ADD_PIZZA), operation_key).items == (RENAMED, ADDED)
    assert not merge(first, called(ADD_PIZZA), operation_key).problems


WRITTEN = [
    '{"name": "delete_memory", "arguments": {"id": "1"}}',
    '<think>{"name": "delete_memory"</think><tool_call>\n{"name": "delete_memory", "arguments": {"id": "1"}}\n</tool_call>',
    '{"tool_calls": [{"name": "DELETE", "parameters": {"id": "1"}}]}',
    '```json\n[{"type": "function", "function": {"name": "delete_memory", "arguments": "{\\"id\\": \\"1\\"}"}}]\n```',
    'I call {"function": "delete_memory", "arguments": {"id": 1}} now.',
]


@pytest.mark.parametrize("text", WRITTEN)
def test_calls_that_a_model_writes_out_are_read(text: str) -> None:
    reading = operations(
        f'{text}\n{{"name": "add_memory", "arguments": {{"text": "Loves pizza"}}}}\n{{"name": "noop"}}'
    )
    assert (reading.items, reading.problems) == ((GONE, ADDED, Operation(NONE)), ())
    assert reading.raw.startswith(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "delete_memory", "arguments": {"id": "1"',
        '{"name": "delete_memory", "arguments": {"id": "1", "id": "0"}}',
        '{"name": "delete_memory", "arguments": ["1"]}',
        '{"name": 1, "arguments": {"id": "1"}}',
        '{"x": {"name": "delete_memory", "arguments": {"id": "1"}}}',
        '{"name": "forget", "arguments": {"id": "1"}}',
        "[" * 15 + '{"name": "delete_memory", "arguments": {"id": "1"}}',
        '<think>{"name": "delete_memory", "arguments": {"id": "1"}}',
    ],
)
def test_a_call_written_out_that_is_none_does_nothing(text: str) -> None:
    assert not operations(text).items
    assert operations(text).problems


CALL = '{"name": "delete_memory", "arguments": {"id": "0"}}'


@pytest.mark.parametrize("write", [json.dumps, repr])
def test_a_call_within_a_text_is_a_text(write: Any) -> None:
    reading = operations(write({"memory": [{"event": "ADD", "text": f"Said </think> {CALL}"}]}))
    assert [operation.event for operation in reading.items] == [ADD]
    assert called(("add_memory", {"text": CALL})).items == (Operation(ADD, CALL),)


decisions = st.fixed_dictionaries(
    {"event": st.sampled_from(Event)},
    optional={
        "id": st.sampled_from(["0", "1", "2", "9", 0, 1, None, " 2 "]),
        "text": st.sampled_from([*TEXTS.values(), NAME, PIZZA, " ", "\ud83d", None, 3]),
        "old_memory": st.sampled_from([*TEXTS.values(), None, "else"]),
    },
)
TOOL_NAMES = {
    ADD: ["add_memory", "ADD", "add"],
    UPDATE: ["update_memory", "UPDATE", "Update_Memory"],
    DELETE: ["delete_memory", "DELETE"],
    NONE: ["noop", "NOOP", "NONE"],
}


@settings(max_examples=400, deadline=None)
@given(st.lists(decisions, min_size=1, max_size=8), st.data())
def test_the_same_decisions_are_the_same_operations_in_either_form(
    decided: list[dict[str, Any]], data: st.DataObject
) -> None:
    calls = []
    for decision in decided:
        arguments = {key: value for key, value in decision.items() if key != "event"}
        name = data.draw(st.sampled_from(TOOL_NAMES[decision["event"]]))
        calls.append((name, json.dumps(arguments) if data.draw(st.booleans()) else arguments))
    listed = operations(json.dumps({"memory": decided}))
    by_tools = called(*calls)
    assert by_tools.items == listed.items
    assert reasons(by_tools) == reasons(listed)
    written = [{"name": name, "arguments": arguments} for name, arguments in calls]
    assert operations(json.dumps({"tool_calls": written})).items == listed.items


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add_memory", "DELETE", "noop", "memory", "forget", ""]),
            values | st.text() | fragments | values.map(json.dumps),
        ),
        max_size=4,
    ),
    fragments,
)
def test_no_call_ever_raises_and_each_leaves_a_trace(calls: list[tuple[str, Any]], text: str) -> None:
    reading = called(*calls, text=text)
    assert reading.items or reading.problems
    for problem in reading.problems:
        str(problem).encode()
    assert isinstance(reading.raw, str)


# --- the summary -----------------------------------------------------------------------------------------------

STORY = "Desmond has a sister, Jesica.\nShe has a dog."


@pytest.mark.parametrize(
    "text",
    [
        STORY,
        f"\n {STORY} \n",
        f"Summary: {STORY}",
        f"Summary:\n\n{STORY}",
        f"**Summary:** {STORY}",
        f"**Summary**: {STORY}",
        f"## Summary\n\n{STORY}",
        f"# Updated Conversation Summary\n{STORY}",
        f"The new summary: {STORY}",
        f"Summary of the conversation so far:\n{STORY}",
        f"Sure! Here is the updated summary of the whole conversation:\n\n{STORY}",
        f"Here's a summary in 100 words: {STORY}",
        f"```\n{STORY}\n```",
        f"```markdown\n{STORY}\n```\nAnything else?",
        f"```text\n{STORY}",
        f"Here is the summary:\n```\n{STORY}\n```",
        f"```\nSummary:\n{STORY}\n```",
        f"<think>Summary: hm.</think>\n{STORY}",
        f"so a summary it is</think>Summary: {STORY}",
    ],
)
def test_a_summary_is_read_without_what_is_around_it(text: str) -> None:
    assert read_summary(Reply(text)) == STORY


@pytest.mark.parametrize(
    "text",
    [
        "The summary of the meeting: approved.",
        "Summary judgment was granted to Ann.",
        "Here is where Ann lives: Oslo.",
        "名字是张三。",
        "Ann runs `make` and ```x``` daily.",
        "Sure of herself, Ann moved.",
    ],
)
def test_a_summary_that_only_looks_like_a_lead_is_kept(text: str) -> None:
    assert read_summary(Reply(text)) == text


def test_a_fence_on_one_line() -> None:
    assert read_summary(Reply("```Ann lives in Oslo.```")) == "Ann lives in Oslo."


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "Summary:",
        "## Summary\n",
        "```\n```",
        "```\nSummary:\n```",
        "<think>Hm.</think>",
        "<think>Hm.",
        "\x00\x07",
    ],
)
def test_an_empty_summary_is_an_error_that_carries_the_reply(text: str) -> None:
    with pytest.raises(ReplyError, match="summary") as caught:
        read_summary(Reply(text))
    assert caught.value.raw == text
    assert isinstance(caught.value, ModelError)


def test_halves_of_surrogate_pairs_do_not_survive() -> None:
    assert read_summary(Reply("Ann \ud83d likes \udf55 and \ud83c\udf55.")) == "Ann \ufffd likes \ufffd and 🍕."


def test_control_characters_do_not_survive() -> None:
    assert read_summary(Reply("Ann\x00 likes\ttea\x1b\x7f.\nA lot.")) == "Ann likes\ttea.\nA lot."


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters()) | fragments)
def test_every_summary_can_be_stored_and_sent(text: str) -> None:
    try:
        summary = read_summary(Reply(text))
    except ReplyError:
        return
    summary.encode()
    assert summary == summary.strip() != ""
    assert "\0" not in summary


# --- repair ----------------------------------------------------------------------------------------------------


def merged_facts(first: str, second: str) -> Reading[StatedFact]:
    return merge(read_facts(Reply(first)), read_facts(Reply(second)), fact_key)


def merged_operations(first: str, second: str) -> Reading[Operation]:
    return merge(operations(first), operations(second), operation_key)


def test_the_repair_adds_what_is_new() -> None:
    merged = merged_facts('{"facts": ["Name is Alice", "Loves piz', '{"facts": ["name is alice", "Loves pizza"]}')
    assert (texts_of(merged), merged.problems) == ((NAME, PIZZA), ())
    assert merged.raw == '{"facts": ["name is alice", "Loves pizza"]}'


def test_the_repair_takes_nothing_away() -> None:
    merged = merged_facts('{"facts": ["Name is Alice", null]}', '{"facts": ["Loves pizza"]}')
    assert (texts_of(merged), merged.problems) == ((NAME, PIZZA), ())


def test_what_the_repair_leaves_out_stays_reported() -> None:
    first = '{"facts": ["Name is Alice", {"name": "Bob"}]}'
    merged = merged_facts(first, '{"facts": ["Name is Alice"]}')
    assert (texts_of(merged), reasons(merged)) == ((NAME,), ["an object instead of a fact"])


def test_a_repair_that_is_no_better_reports_both() -> None:
    merged = merged_facts('{"facts": ["Name is Alice", 1]}', "Sorry.")
    assert (texts_of(merged), reasons(merged)) == ((NAME,), ["a number instead of a fact", "no JSON in the reply"])


def test_a_proper_empty_answer_settles_a_refusal() -> None:
    assert merged_facts("There are no facts.", '{"facts": []}') == Reading((), (), '{"facts": []}')


def test_two_answers_are_settled_by_one() -> None:
    merged = merged_facts('{"facts": ["Name is Alice"]} {"facts": []}', '{"facts": ["Name is Alice"]}')
    assert (texts_of(merged), merged.problems) == ((NAME,), ())


def test_a_list_that_only_lacked_its_end_is_settled_by_its_repetition() -> None:
    merged = merged_facts('{"facts": ["Name is Alice"', '{"facts": ["Name is Alice"]}')
    assert (texts_of(merged), merged.problems) == ((NAME,), ())


def test_an_operation_on_a_memory_already_decided_is_dropped() -> None:
    merged = merged_operations(
        '{"memory": [{"id": "1", "event": "DELETE"}, null]}',
        '{"memory": [{"id": "1", "text": "Likes fries", "event": "UPDATE"}, {"text": "Loves pizza", "event": "ADD"}]}',
    )
    assert (merged.items, merged.problems) == ((GONE, ADDED), ())


def test_a_contested_operation_gives_way_to_the_repaired_one() -> None:
    merged = merged_operations(
        '{"memory": [{"id": "0", "text": "Name is Al", "event": "UPDATE"}, {"id": "1", "event": "NONE"},'
        ' {"id": "0", "text": "Is 30", "event": "UPDATE"}]}',
        '{"memory": [{"id": "0", "text": "Name is Al, is 30", "event": "UPDATE"}, {"id": "1", "event": "NONE"}]}',
    )
    assert merged.items == (Operation(UPDATE, "Name is Al, is 30", "mem-a"), SAME)
    assert not merged.problems


def test_a_contested_operation_stands_where_the_repair_does_not_name_it() -> None:
    first = (
        '{"memory": [{"id": "0", "text": "Name is Alice", "event": "UPDATE"},'
        ' {"id": "0", "text": "Is 30", "event": "UPDATE"}]}'
    )
    merged = merged_operations(first, '{"memory": [{"id": "1", "event": "NONE"}, {"id": "2", "event": "NONE"}]}')
    assert RENAMED in merged.items


def test_facts_lost_twice_are_reported() -> None:
    assert "no operation for the facts" in reasons(merged_operations('{"memory": []}', '{"memory": []}'))


def test_keys_of_operations() -> None:
    assert operation_key(RENAMED) == operation_key(Operation(DELETE, "Name is Bob", "mem-a"))
    assert operation_key(ADDED) == operation_key(Operation(ADD, "loves pizza!"))
    assert operation_key(ADDED) != operation_key(Operation(ADD, NAME))


# --- whatever comes --------------------------------------------------------------------------------------------


@settings(max_examples=600, deadline=None)
@given(st.one_of(st.text(), fragments, values.map(json.dumps), values.map(repr)))
@example('{"facts": [' * 30)
@example("[" + "-" * 5_000 + "1]")
def test_no_text_ever_raises_and_each_leaves_a_trace(text: str) -> None:
    for reading in (read_facts(Reply(text)), operations(text)):
        assert reading.raw == text
        for problem in reading.problems:
            str(problem).encode()
    assert read_json(Reply(text)).items or read_json(Reply(text)).problems
    # No facts and no problem: only where the model said in so many words that there are none.
    facts = read_facts(Reply(text))
    assert facts.items or facts.problems or "[" in text


@settings(max_examples=300, deadline=None)
@given(st.lists(values | st.text(min_size=1), min_size=1))
def test_every_fact_is_read_or_reported(items: list[Any]) -> None:
    reading = read_facts(Reply(json.dumps({"facts": items})))
    read = {fact_key(fact) for fact in reading.items}
    texts = [item.strip() for item in items if isinstance(item, str) and is_valid_text(item)]
    objects = [item for item in items if isinstance(item, dict) and any(isinstance(v, str) for v in item.values())]
    usable = sum(same_fact_key(text) in read for text in texts)
    assert usable + len(objects) + len(reading.problems) >= len(items)
    assert len(reading.items) + len(reading.problems) <= len(items)


@settings(max_examples=300, deadline=None)
@given(st.lists(operation_items | values, min_size=1))
def test_every_operation_is_read_or_reported(items: list[Any]) -> None:
    reading = operations(json.dumps({"memory": items}))
    for operation in reading.items:
        assert operation.event is NONE or operation.memory_id in IDS.values() or operation.event is ADD
        assert operation.text.strip() or operation.event is NONE
    assert len({operation_key(operation) for operation in reading.items}) == len(reading.items)
    assert reading.items or reading.problems
    unusable = [item for item in items if not isinstance(item, dict)]
    assert len(reading.problems) >= len(unusable)


plain_facts = st.lists(
    # The leading word keeps placeholders ("None") out.
    st.text(st.characters(exclude_categories=["Cs", "Cc"])).map(lambda text: f"Likes {text}".strip()),
    min_size=1,
    unique_by=same_fact_key,
)


@settings(max_examples=300, deadline=None)
@given(plain_facts, st.booleans(), st.data())
def test_a_reply_cut_anywhere_never_gives_half_a_fact(facts: list[str], ascii: bool, data: st.DataObject) -> None:
    whole = json.dumps({"facts": facts}, ensure_ascii=ascii)
    assert texts_of(read_facts(Reply(whole))) == tuple(facts)
    reading = read_facts(Reply(whole[: data.draw(st.integers(0, len(whole) - 1))]))
    assert texts_of(reading) == tuple(facts[: len(reading.items)])
    assert reading.problems or len(reading.items) == len(facts)


@settings(max_examples=300, deadline=None)
@given(plain_facts, st.data())
def test_a_cut_reply_never_gives_half_an_operation(facts: list[str], data: st.DataObject) -> None:
    items = [
        {"id": str(n % 3), "text": fact, "event": data.draw(st.sampled_from(Event))} for n, fact in enumerate(facts)
    ]
    write = data.draw(st.sampled_from([json.dumps, repr]))
    whole = write({"memory": [{**item, "event": str(item["event"])} for item in items]})
    at = data.draw(st.integers(0, len(whole) - 1))
    cut, full = operations(whole[:at]), operations(whole)
    decided = {operation_key(operation): operation for operation in full.items}
    for operation in cut.items:
        later = decided[operation_key(operation)]
        assert operation == later or operation.event is NONE  # a NONE gives way to what follows it
    assert cut.problems or cut.items == full.items


@settings(max_examples=200, deadline=None)
@given(plain_facts)
def test_pythons_repr_is_read_like_json(facts: list[str]) -> None:
    facts = [fact for fact in facts if fact.isprintable()]
    assert texts_of(read_facts(Reply(repr({"facts": facts})))) == tuple(facts)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 400_000,
        "{ a " * 100_000,
        '{"a": "' * 50_000,
        '["a", ' * 60_000,
        "[]" * 200_000,
        '{"facts": [' + "'a'b, " * 60_000,
        "{x " + "a, " * 130_000,
        "</think>{" * 50_000,
        "<think>" * 60_000,
        '"' * 400_000,
        "[" + "'" * 400_000,
        "{" + "/*" * 200_000,
        '{"facts": [' + "1," * 2_000 + "x]}",
        '{"facts": [' + '{"a":[1],}, ' * 1_500 + "]}",
        "\\" * 400_000,
        '{"' + "\\" * 400_000,
        json.dumps({"memory": [{"id": "0", "event": "UPDATE", "text": f"t{n}"} for n in range(8_000)]}),
        '{"name": "noop"}' * 25_000,
        '{"name": "noop", "arguments": {"id": "' + "a" * 400_000,
        "a" + " " * 400_000 + "b",
        "Sure! " + "# " * 200_000 + "x",
        "```\n" + "\n" * 400_000 + "x",
        "```\n" + "```x" * 100_000,
        "Here is " * 50_000,
    ],
    ids=lambda text: text[:20],
)
def test_no_reply_takes_long(text: str) -> None:
    with hang_guard():  # seconds on a busy machine; a quadratic reading would take minutes
        read_facts(Reply(text))
        operations(text)
        with contextlib.suppress(ReplyError):
            read_summary(Reply(text))


@pytest.mark.parametrize("name", ["add_memory", "forget"])
@pytest.mark.parametrize(
    "text", ["{ a " * 100_000, '{"a": [' + "'a'b, " * 60_000, "\\" * 400_000, '{"memory": [' * 30_000]
)
def test_no_call_takes_long(name: str, text: str) -> None:
    with hang_guard():
        called((name, text))


def test_reading_deep_in_the_stack_does_not_raise() -> None:
    def dive(levels: int) -> Reading[StatedFact]:
        return dive(levels - 1) if levels else read_facts(Reply("{'facts': [" + "[" * 15 + "]" * 15 + "]}"))

    levels = sys.getrecursionlimit() - len(inspect.stack()) - 250
    assert dive(levels).problems


# --- schemas and cost ------------------------------------------------------------------------------------------


def test_schemas_describe_the_agreed_forms() -> None:
    assert FactsReply.model_validate_json('{"facts": ["Loves pizza"]}').facts == [PIZZA]
    numbered = SEED.replace('"event"', '"facts": [0], "event"')
    assert OperationsReply.model_validate_json(numbered).memory[0].old_memory == "Name is Bob"
    assert FactsReply.model_json_schema()["additionalProperties"] is False
    operation = OperationsReply.model_json_schema()["$defs"]["OperationReply"]
    assert operation["properties"]["event"]["enum"] == ["ADD", "UPDATE", "DELETE", "NONE"]


def test_importing_loads_no_parser() -> None:
    code = "import sys, mem0_core.llm.replies, mem0_core.llm.prompts; sys.exit('json5' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
