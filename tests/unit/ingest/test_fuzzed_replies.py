"""No reply of a model loses a fact or raises an error, whatever it looks like."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mem0_core import Memory
from mem0_core.domain.records import AddResult, Event, Operation, list_added, same_fact_key
from mem0_core.flow import run
from mem0_core.interfaces import Reply, ToolCall
from mem0_core.language.terms import extract_terms
from mem0_core.llm.ask import ask_with_repair
from mem0_core.llm.graph_replies import FusedItem, fused_key, read_fused, split_fused
from mem0_core.llm.replies import Reading, fact_key, read_facts, read_operations
from mem0_core.testing import ScriptedChat
from tests.support import open_memory

T = TypeVar("T")

KNOWN = ["Likes tea", "Lives in Rome", "Has a dog named Rex", "Works at Acme"]
FACTS = [
    *(
        "Likes milk",
        "likes TEA",
        "Does not like tea",
        "Lives in Porto",
        "Moved from Rome to Milan in 2024",
        "Has a dog",
    ),
    *(
        "Works at Acme as a baker",
        "Rex is six",
        "Es alérgica a las nueces",
        "名字是张三",
        "It is.",
        'Said "hi" {x: [1]}',
    ),
]
TEXTS = [*KNOWN, *FACTS, "Likes tea and milk", "Nothing", "", " ", "\ud83d", "x" * 3_000, "None"]

numbers = st.sampled_from([0, 1, 2, 7, -1, "0", "1, 2", None, True, 10**30, 1.5, "Likes milk", [0]])
ids = st.sampled_from(["0", "1", "2", "3", "9", 0, 1, None, True, "new", "id 0", [1]])
events = st.sampled_from([*map(str, Event), "NOOP", "update", "MERGE", "", None, 1])
operation = st.fixed_dictionaries(
    {},
    optional={
        "id": ids,
        "text": st.sampled_from([*TEXTS, None, 3, ["a"]]),
        "event": events,
        "old_memory": st.sampled_from([*KNOWN, None, 1]),
        "facts": st.lists(numbers, max_size=4) | numbers,
    },
)
decision = st.fixed_dictionaries(
    {
        "id": st.sampled_from(["0", "1", "2", "3"]),
        "text": st.sampled_from([*KNOWN, *FACTS, "Likes tea and milk"]),
        "event": st.sampled_from(list(map(str, Event))),
    },
    optional={"facts": st.lists(st.integers(0, 4), max_size=3)},
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(TEXTS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["facts", "memory", "id", "event", "text", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
stated = st.sampled_from(FACTS) | st.fixed_dictionaries(
    {"fact": st.sampled_from(FACTS)}, optional={"messages": st.lists(numbers, max_size=3) | numbers}
)


def mostly(usual: st.SearchStrategy[Any], *others: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw from the usual values three times as often as from the others."""
    return st.one_of(usual, usual, usual, *others)


facts_answer = st.fixed_dictionaries(
    {"facts": mostly(st.lists(mostly(stated, junk), min_size=1, max_size=5), st.sampled_from(TEXTS), junk)}
)
operations_answer = st.fixed_dictionaries(
    {"memory": mostly(st.lists(mostly(decision, operation, junk), min_size=1, max_size=6), junk)}
)
tool_name = st.sampled_from(["add_memory", "update_memory", "delete_memory", "noop", "ADD", "memory", "forget"])
calls = st.lists(st.tuples(tool_name, mostly(decision, operation, junk.map(str))), max_size=4)
PROSE = ["", "Sorry, no.", "<think>Hm", "{", "[1]", '{"facts": [', "```json\n[]\n```", "null"]


@st.composite
def replies(draw: st.DrawFn, answer: st.SearchStrategy[Any]) -> Reply:
    """A reply in JSON, in Python's notation, cut off, in prose, or as tool calls."""
    kind = draw(st.sampled_from([*["json"] * 8, "repr", "cut", "prose", "calls", "calls", "twice"]))
    if kind == "calls":
        return Reply("", tuple(ToolCall(name, arguments) for name, arguments in draw(calls)))
    value = draw(answer)
    text = repr(value) if kind == "repr" else json.dumps(value)
    if kind == "cut":
        text = text[: draw(st.integers(0, len(text)))]
    elif kind == "twice":
        text = f"Maybe {text} or {json.dumps(draw(answer))}"
    return Reply(draw(st.sampled_from(PROSE)) if kind == "prose" else text)


lists: dict[str, Any] = {"entities": [], "relations": [], "outdated": [], "refined": []}
fused_answer = st.tuples(facts_answer, operations_answer).map(lambda parts: {**parts[0], **parts[1], **lists})
scripts = st.fixed_dictionaries(
    {
        "facts": replies(facts_answer),
        "operations": replies(operations_answer),
        "fused": replies(fused_answer),
        "repair of facts": replies(facts_answer),
        "repair of operations": replies(operations_answer),
        "repair of fused": replies(fused_answer),
    }
)


class FuzzedModel:
    """Answers each task from a script; a repair request has an answer of its own."""

    def __init__(self) -> None:
        self.chat = ScriptedChat(self._answer)
        self.script: dict[str, Reply] = {}
        self.shown: dict[str, str] = {}  # memories of the last request that has any, by their short ids
        self._asked = ""

    def _answer(self, task: str, messages: Any) -> Reply:
        if task == "repair":
            return self.script[f"repair of {self._asked}"]
        self._asked = task
        if task in ("operations", "fused"):
            self.shown = {memory["id"]: memory["text"] for memory in json.loads(messages[1]["content"])["memories"]}
        return self.script[task]

    def read(self, task: str, read: Callable[[Reply], Reading[T]], key: Callable[[T], Hashable]) -> tuple[T, ...]:
        """Return the readable items of the answers to a task."""
        chat = ScriptedChat([self.script[task], self.script[f"repair of {task}"]])
        return run(ask_with_repair(chat, [], task="facts", read=read, key=key)).items


@dataclass
class Bench:
    """A memory for fuzzed replies; each example has a user of its own."""

    memory: Memory
    model: FuzzedModel
    users: Iterator[int] = field(default_factory=itertools.count)

    def add(self, script: dict[str, Reply], known: Sequence[str]) -> tuple[AddResult, str, dict[str, str]]:
        """Add a conversation; returns the result, the user and the known memories (id -> text)."""
        user = f"u{next(self.users)}"
        if known:
            self.memory.add_many(known, user_id=user)
        memories = {entry["id"]: entry["memory"] for entry in self.memory.get_all(user_id=user)["results"]}
        self.model.script, self.model.shown = script, {}
        said = [{"role": "user", "content": "; ".join(FACTS)}, {"role": "assistant", "content": "I see."}]
        return self.memory.add(said, user_id=user), user, memories


def terms(text: str) -> set[str]:
    return set(extract_terms(text))


def find_lost(
    facts: Sequence[str], operations: Sequence[Operation], result: AddResult, stored: Sequence[str]
) -> list[str]:
    """Return the facts that are neither stored nor part of a change, and that no operation names."""
    keys = {same_fact_key(text) for text in stored}
    named = list_added(result)
    changed = [entry["memory"] for entry in named if entry["event"] != "DELETE"]
    deleted = [entry["memory"] for entry in result["results"] if entry["event"] == "DELETE"]

    def is_settled(index: int, fact: str) -> bool:
        named = [operation for operation in operations if index in operation.facts]
        return (
            same_fact_key(fact) in keys
            or any(terms(fact) and terms(fact) <= terms(text) for text in changed)
            or any(operation.event in (Event.DELETE, Event.NONE) for operation in named)
            or any(terms(operation.text) & terms(fact) and operation.text in stored for operation in named)
            or any(operation.event is Event.NONE and terms(fact) <= terms(operation.text) for operation in operations)
            or any(2 * len(terms(fact) & terms(text)) >= len(terms(fact)) > 0 for text in deleted)
        )

    return [fact for index, fact in enumerate(facts) if not is_settled(index, fact)]


def read_answers(bench: Bench, task: str) -> tuple[list[str], list[Operation]]:
    """Return the facts and operations that can be read of the answers."""
    texts = bench.model.shown
    ids = {short: short for short in texts}
    if task == "fused":
        numbered: dict[Hashable, int] = {}

        def read(reply: Reply) -> Reading[FusedItem]:
            return read_fused(reply, ids=ids, texts=texts, relations={}, self_name="u", numbered=numbered)

        fused = split_fused(bench.model.read("fused", read, fused_key))
        return [fact.text for fact in fused.facts], list(fused.operations)
    facts = [fact.text for fact in bench.model.read("facts", read_facts, fact_key)]
    answers = [bench.model.script["operations"], bench.model.script["repair of operations"]]
    readings = [read_operations(reply, ids=ids, texts=texts, facts=facts) for reply in answers]
    return facts, [operation for reading in readings for operation in reading.items]


def check(bench: Bench, task: str, script: dict[str, Reply], known: Sequence[str]) -> None:
    result, user, memories = bench.add(script, known)
    facts, operations = read_answers(bench, task)
    stored = [entry["memory"] for entry in bench.memory.get_all(user_id=user)["results"]]
    jobs = bench.memory.pending(user_id=user)
    if "job_id" in result:
        assert [job["id"] for job in jobs] == [result["job_id"]]
        assert len(jobs[0]["messages"]) == 2
        assert sorted(stored) == sorted(memories.values())
        return
    assert jobs == []
    assert find_lost(facts, operations, result, stored) == []


@pytest.fixture(scope="module", params=["json", "tools", "fused"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bench, str]]:
    model = FuzzedModel()
    form = request.param
    config = {"extraction": "fused"} if form == "fused" else {"operations": form}
    with open_memory(
        tmp_path_factory.mktemp(form), config={**config, "window": 0, "summary_every": 0}, llm=model.chat
    ) as memory:
        yield Bench(memory, model), "fused" if form == "fused" else "staged"


EXAMPLES = int(os.environ.get("MEM0_FUZZED_REPLIES", "60"))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(script=scripts, known=st.sampled_from([KNOWN, KNOWN[:1], []]))
def test_no_reply_loses_a_fact_or_raises(
    bench: tuple[Bench, str], script: dict[str, Reply], known: Sequence[str]
) -> None:
    check(*bench, script, known)
