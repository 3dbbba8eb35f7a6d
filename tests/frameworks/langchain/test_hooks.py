"""Approval of recalled memories and of messages to store, and reports about both to the user and to tracers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from mem0_core import ArgumentError, ConfigError, ContextDict, Memory, Scope
from mem0_langchain import MemoryMiddleware
from tests.frameworks.langchain.fakes import Chatbot, calls

Mode = Literal["sync", "async"]
MODES: tuple[Mode, ...] = ("sync", "async")
MAYA: Any = {"configurable": {"user_id": "maya", "thread_id": "1"}}
QUESTION = "Which tea do I drink in Porto?"
FACTS = ["I drink green tea.", "I drink mint tea in Porto."]


def run(agent: Any, text: Any, mode: Mode, config: Any = MAYA) -> Any:
    input = {"messages": [("user", text)]} if isinstance(text, str) else text
    return asyncio.run(agent.ainvoke(input, config)) if mode == "async" else agent.invoke(input, config)


def stream_custom(agent: Any, text: str, mode: Mode) -> list[Any]:
    input = {"messages": [("user", text)]}

    async def collect() -> list[Any]:
        return [part async for part in agent.astream(input, MAYA, stream_mode="custom")]

    return asyncio.run(collect()) if mode == "async" else list(agent.stream(input, MAYA, stream_mode="custom"))


def middleware(memory: Memory, **options: Any) -> MemoryMiddleware:
    return MemoryMiddleware(memory, **{"background": False, "threshold": 0, **options})


def shown(model: Chatbot) -> list[str]:
    """The memories that the model's last call shows."""
    lines = [json.loads(line) for line in model.systems[-1].splitlines() if line.startswith("{")]
    return sorted(line["memory"] for line in lines)


def known(memory: Memory) -> list[str]:
    return [each["memory"] for each in memory.get_all(user_id="maya")["results"]]


@pytest.fixture
def facts(memory: Memory) -> Memory:
    for text in FACTS:
        memory.add(text, user_id="maya")
    return memory


# --- approval -----------------------------------------------------------------------------------------------------


def drop_mint(recalled: ContextDict, scope: Scope) -> Any:
    return [each for each in recalled["memories"] if "mint" not in each["memory"]]


def mask_tea(recalled: ContextDict, scope: Scope) -> Any:
    return [{**each, "memory": each["memory"].replace("tea", "***")} for each in recalled["memories"]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        (lambda recalled, scope: None, FACTS),
        (lambda recalled, scope: True, FACTS),
        (lambda recalled, scope: False, []),
        (lambda recalled, scope: [], []),
        (drop_mint, FACTS[:1]),
        (mask_tea, ["I drink green ***.", "I drink mint *** in Porto."]),
        (lambda recalled, scope: [{"memory": "Has no id."}], ["Has no id."]),
    ],
)
def test_a_recall_hook_decides_what_the_model_is_shown(
    facts: Memory, mode: Mode, hook: Callable[..., Any], expected: list[str]
) -> None:
    model = Chatbot()
    run(create_agent(model, middleware=[middleware(facts, on_recall=hook)]), QUESTION, mode)
    assert shown(model) == expected


@pytest.mark.parametrize("mode", MODES)
def test_a_recall_hook_sees_memories_and_scope_and_is_not_asked_about_nothing(memory: Memory, mode: Mode) -> None:
    seen: list[tuple[list[str], Scope]] = []

    def watch(recalled: ContextDict, scope: Scope) -> None:
        seen.append(([each["memory"] for each in recalled["memories"]], scope))

    agent = create_agent(Chatbot(), middleware=[middleware(memory, on_recall=watch)])
    run(agent, FACTS[0], mode)
    assert seen == []
    run(agent, "Which tea do I drink?", mode)
    assert seen == [([FACTS[0]], Scope(user_id="maya"))]


def mask_card(messages: list[dict[str, Any]], scope: Scope) -> Any:
    return [{**message, "content": message["content"].replace("4111", "#")} for message in messages]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        (lambda messages, scope: None, ["My card is 4111."]),
        (lambda messages, scope: False, []),
        (
            lambda messages, scope: [{**m, "content": m["content"].replace("4111", "#")} for m in messages],
            ["My card is #."],
        ),
    ],
)
def test_a_remember_hook_decides_what_is_stored(
    memory: Memory, mode: Mode, hook: Callable[..., Any], expected: list[str]
) -> None:
    agent = create_agent(Chatbot(), middleware=[middleware(memory, on_remember=hook)], checkpointer=InMemorySaver())
    run(agent, "My card is 4111.", mode)
    assert known(memory) == expected
    run(agent, "Thanks!", mode)  # a refused message is not stored with the next turn
    assert known(memory) == expected


def test_hooks_may_be_coroutine_functions_in_async_runs_only(facts: Memory) -> None:
    async def refuse(*_: Any) -> bool:
        await asyncio.sleep(0)
        return False

    model = Chatbot()
    hooked = create_agent(model, middleware=[middleware(facts, on_recall=refuse, on_remember=refuse)])
    run(hooked, "I live in Porto and drink tea.", "async")
    assert (shown(model), known(facts)) == ([], FACTS)
    with pytest.raises(ConfigError, match="on_recall is a coroutine function"):
        run(hooked, QUESTION, "sync")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("approved", [True, False])
def test_a_hook_may_ask_a_person(facts: Memory, mode: Mode, approved: bool) -> None:
    def ask(what: Any, scope: Scope) -> Any:
        return interrupt({"memory of": scope.user_id})

    model = Chatbot()
    hooks = middleware(facts, on_recall=ask, on_remember=ask)
    agent = create_agent(model, middleware=[hooks], checkpointer=InMemorySaver())
    (asked,) = run(agent, "I drink tea in Oslo.", mode)["__interrupt__"]
    assert asked.value == {"memory of": "maya"}
    assert model.heard == []
    paused = run(agent, Command(resume=approved), mode)
    assert paused["__interrupt__"]
    assert (shown(model), known(facts)) == (FACTS if approved else [], FACTS)
    run(agent, Command(resume=approved), mode)
    assert ("I drink tea in Oslo." in known(facts)) is approved
    assert len(model.heard) == 1


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("decision", ["yes", [7], [{"text": "no memory"}]])
def test_a_decision_of_no_known_form_ends_the_turn(facts: Memory, mode: Mode, decision: Any) -> None:
    agent = create_agent(Chatbot(), middleware=[middleware(facts, on_recall=lambda *_: decision, on_error="log")])
    with pytest.raises(ArgumentError, match="on_recall returned"):
        run(agent, QUESTION, mode)


def test_a_hook_that_is_no_function_is_refused(memory: Memory) -> None:
    with pytest.raises(ConfigError, match="on_remember must be a function"):
        MemoryMiddleware(memory, on_remember="yes")  # type: ignore[arg-type]


@tool
def weather(city: str) -> str:
    """The weather of a city."""
    return "rain"


@pytest.mark.parametrize("mode", MODES)
def test_a_turn_that_another_process_resumes_asks_the_hook_again(facts: Memory, mode: Mode) -> None:
    saver = InMemorySaver()

    def build(model: Chatbot) -> Any:
        hooks = middleware(facts, on_recall=drop_mint)
        parts = [hooks, HumanInTheLoopMiddleware(interrupt_on={"weather": True})]
        return create_agent(model, tools=[weather], middleware=parts, checkpointer=saver)

    run(build(Chatbot(answer=lambda _: calls("weather", city="Porto"))), QUESTION, mode)
    model = Chatbot()
    run(build(model), Command(resume={"decisions": [{"type": "approve"}]}), mode)
    assert shown(model) == FACTS[:1]


# --- reports ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_the_custom_stream_shows_the_user_what_was_recalled_and_stored(facts: Memory, mode: Mode) -> None:
    agent = create_agent(Chatbot(), middleware=[middleware(facts, stream_memories=True)])
    recall, remember = stream_custom(agent, "I drink black tea in Oslo.", mode)
    assert (recall["type"], recall["name"]) == ("mem0.recall", "Mem0Middleware")
    assert sorted(each["memory"] for each in recall["memories"]) == FACTS
    assert recall["tokens"] > 0
    assert remember["type"] == "mem0.remember"
    assert remember["messages"][0] == {"role": "user", "content": "I drink black tea in Oslo."}
    assert [each["memory"] for each in remember["results"]] == ["I drink black tea in Oslo."]
    json.dumps([recall, remember])  # a server sends it


@pytest.mark.parametrize("mode", MODES)
def test_the_custom_stream_names_the_job_of_a_turn_in_the_background(memory: Memory, mode: Mode) -> None:
    agent = create_agent(Chatbot(), middleware=[middleware(memory, stream_memories=True, background=True)])
    (remember,) = stream_custom(agent, FACTS[0], mode)  # nothing is known yet
    assert (remember["results"], remember["job_id"].isdecimal()) == ([], True)
    assert memory.flush(timeout=30)


@pytest.mark.parametrize("mode", MODES)
def test_the_custom_stream_shows_nothing_by_default(facts: Memory, mode: Mode) -> None:
    assert stream_custom(create_agent(Chatbot(), middleware=[middleware(facts)]), QUESTION, mode) == []


class ModelRuns(BaseCallbackHandler):
    """The metadata of the runs of chat models, and of tools."""

    def __init__(self) -> None:
        self.metadata: list[dict[str, Any]] = []
        self.tools: list[dict[str, Any]] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, **kwargs: Any) -> None:
        self.metadata.append(kwargs["metadata"])

    def on_tool_start(self, serialized: Any, input_str: str, **kwargs: Any) -> None:
        self.tools.append(kwargs["metadata"] or {})


@pytest.mark.parametrize("mode", MODES)
def test_the_metadata_of_a_models_run_counts_its_memories_and_tokens(facts: Memory, mode: Mode) -> None:
    answers: Iterator[AIMessage | str] = iter([calls("weather", city="Porto"), "Take an umbrella.", "You are welcome."])
    watch = ModelRuns()
    config = MAYA | {"callbacks": [watch], "metadata": {"request": 7}}
    agent = create_agent(
        Chatbot(answer=lambda _: next(answers)), tools=[weather], middleware=[middleware(facts, remember=False)]
    )
    run(agent, QUESTION, mode, config)
    assert [(each["mem0_memories"], each["request"]) for each in watch.metadata] == [(2, 7), (2, 7)]
    assert all(each["mem0_tokens"] > 0 for each in watch.metadata)
    assert not any("mem0_tokens" in each for each in watch.tools)
    run(agent, "Thanks!", mode, MAYA | {"callbacks": [watch], "configurable": {"user_id": "ana"}})
    assert "mem0_memories" not in watch.metadata[-1]


@pytest.mark.parametrize("mode", MODES)
def test_two_memories_of_an_agent_count_together(facts: Memory, mode: Mode) -> None:
    watch = ModelRuns()
    facts.add("Tea of the house is black.", agent_id="house")
    parts = [
        middleware(facts, remember=False),
        middleware(facts, remember=False, scope=Scope(agent_id="house"), name="house"),
    ]
    run(create_agent(Chatbot(), middleware=parts), QUESTION, mode, MAYA | {"callbacks": [watch]})
    assert [each["mem0_memories"] for each in watch.metadata] == [3]
