"""Turns that do not simply run through: parallel tools, retries, cancellation, time travel, early ends of streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    PIIMiddleware,
    hook_config,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from mem0_core import Memory, StoreError
from mem0_core.recall import freshness
from mem0_langchain import MemoryMiddleware, memory_tools
from tests.frameworks.langchain.fakes import Chatbot

Mode = Literal["sync", "async"]
MODES: tuple[Mode, ...] = ("sync", "async")
MAYA: Any = {"configurable": {"user_id": "maya", "thread_id": "1"}}


def run(agent: Any, text: Any, mode: Mode, config: Any = MAYA) -> Any:
    input = {"messages": [("user", text)]} if isinstance(text, str) else text
    return asyncio.run(agent.ainvoke(input, config)) if mode == "async" else agent.invoke(input, config)


def remembering(memory: Memory, **options: Any) -> MemoryMiddleware:
    return MemoryMiddleware(memory, **{"background": False, "keep": "all", **options})


def known(memory: Memory) -> list[str]:
    return [each["memory"] for each in memory.get_all(user_id="maya")["results"]]


def shown(system: str) -> list[str]:
    lines = [json.loads(line) for line in system.splitlines() if line.startswith("{")]
    return [line["memory"] for line in lines]


# --- parallel tools -----------------------------------------------------------------------------------------------


def call_tools(*requests: tuple[str, dict[str, Any]]) -> AIMessage:
    listed = [{"name": name, "args": args, "id": f"call-{n}"} for n, (name, args) in enumerate(requests)]
    return AIMessage("Let me look.", tool_calls=listed)


@pytest.mark.parametrize("mode", MODES)
def test_tools_that_run_in_parallel_share_one_recall(memory: Memory, mode: Mode) -> None:
    recalls: list[Any] = []

    @tool
    def weather(city: str) -> str:
        """The weather of a city."""
        return f"Rain in {city}."

    memory.add("I live in Porto.", user_id="maya")
    cities = [("weather", {"city": city}) for city in ("Porto", "Rome", "Oslo")]
    answers: Iterator[AIMessage | str] = iter([call_tools(*cities), "Rain everywhere."])
    model = Chatbot(answer=lambda _: next(answers))
    watched = remembering(memory, on_recall=lambda recalled, _: recalls.append(recalled))
    agent = create_agent(model, tools=[weather], middleware=[watched], checkpointer=InMemorySaver())
    run(agent, "Does it rain where I live?", mode)
    assert len(recalls) == 1
    assert [shown(system) for system in model.systems] == [["I live in Porto."]] * 2
    assert known(memory)[1:] == ["Does it rain where I live?", "Let me look.", "Rain everywhere."]


@pytest.mark.parametrize("mode", MODES)
def test_memory_tools_that_run_in_parallel_each_do_their_work(memory: Memory, mode: Mode) -> None:
    texts = ["I drink tea.", "I keep bees.", "My sister sings."]
    saves = [("save_memory", {"text": text}) for text in texts]
    answers: Iterator[AIMessage | str] = iter([call_tools(*saves, ("search_memory", {"query": "bees"})), "Saved."])
    agent = create_agent(
        Chatbot(answer=lambda _: next(answers)),
        tools=memory_tools(memory),
        middleware=[remembering(memory, remember=False)],
    )
    run(agent, "Note this.", mode)
    assert sorted(known(memory)) == sorted(texts)


# --- retries ------------------------------------------------------------------------------------------------------


def fail_then(failures: int) -> Any:
    calls = iter(range(10))

    def answer(messages: list[BaseMessage]) -> str:
        if next(calls) < failures:
            raise RuntimeError("the model is down")
        return "Noted."

    return answer


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("outermost", [True, False])
def test_a_model_that_is_asked_again_sees_the_memories_again(memory: Memory, mode: Mode, outermost: bool) -> None:
    memory.add("I drink green tea.", user_id="maya")
    model = Chatbot(answer=fail_then(2))
    parts: list[Any] = [remembering(memory), ModelRetryMiddleware(max_retries=2, initial_delay=0, jitter=False)]
    agent = create_agent(model, middleware=parts if outermost else parts[::-1])
    run(agent, "Which tea do I drink?", mode)
    assert [shown(system) for system in model.systems] == [["I drink green tea."]] * 3
    assert known(memory)[1:] == ["Which tea do I drink?", "Noted."]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("outermost", [True, False])
def test_an_answer_that_a_guard_redacts_is_remembered_as_redacted(memory: Memory, mode: Mode, outermost: bool) -> None:
    guard = PIIMiddleware("email", apply_to_input=False, apply_to_output=True)
    parts: list[Any] = [remembering(memory), guard]
    agent = create_agent(
        Chatbot(answer=lambda _: "Write to ann@example.org."), middleware=parts if outermost else parts[::-1]
    )
    run(agent, "I drink green tea.", mode)
    assert known(memory) == ["I drink green tea.", "Write to [REDACTED_EMAIL]."]


class Corrector(AgentMiddleware[Any, Any]):
    """Sends the first answer back, as guards of structured answers do."""

    def __init__(self, *instructions: str, then: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self.instructions, self.then = instructions, then

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: AgentState[Any], runtime: Any) -> dict[str, Any] | None:
        if len(state["messages"]) > 2:
            return None
        self.then()
        return {"messages": [HumanMessage(text) for text in self.instructions], "jump_to": "model"}


@pytest.mark.parametrize("mode", MODES)
def test_a_correction_that_a_program_asks_for_is_not_what_the_user_said(memory: Memory, mode: Mode) -> None:
    corrector = Corrector("I want the answer as one line.", "I want it in English.")
    agent = create_agent(Chatbot(), middleware=[remembering(memory), corrector], checkpointer=InMemorySaver())
    result = run(agent, "I drink green tea.", mode)
    assert len(result["messages"]) == 5
    run(agent, "I live in Oslo.", mode)
    assert [text for text in known(memory) if text != "Noted."] == ["I drink green tea.", "I live in Oslo."]


@pytest.mark.parametrize("mode", MODES)
def test_a_correction_in_a_turn_whose_model_fails_is_not_what_the_user_said(memory: Memory, mode: Mode) -> None:
    answers: Iterator[AIMessage | str] = iter(["Noted.", "Noted."])
    down = RuntimeError("the model is down")

    def answer(messages: list[BaseMessage]) -> AIMessage | str:
        if str(messages[-1].content).startswith("I want"):
            raise down
        return next(answers)

    corrector = Corrector("I want the answer as one line.", "I want it in English.")
    agent = create_agent(
        Chatbot(answer=answer), middleware=[remembering(memory), corrector], checkpointer=InMemorySaver()
    )
    with pytest.raises(RuntimeError):
        run(agent, "I drink green tea.", mode)
    run(agent, "I live in Oslo.", mode)
    assert [text for text in known(memory) if text != "Noted."] == ["I drink green tea.", "I live in Oslo."]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("on_error", ["log", "raise"])
def test_a_correction_in_a_turn_that_was_not_stored_is_not_what_the_user_said(
    memory: Memory, mode: Mode, on_error: Literal["log", "raise"], monkeypatch: pytest.MonkeyPatch
) -> None:
    corrector = Corrector("I want the answer as one line.")
    middleware = remembering(memory, on_error=on_error)
    agent = create_agent(Chatbot(), middleware=[middleware, corrector], checkpointer=InMemorySaver())
    with monkeypatch.context() as failing:
        failing.setattr(type(memory.store), "commit", fail_to_store)
        with pytest.raises(StoreError) if on_error == "raise" else nullcontext():
            run(agent, "I drink green tea.", mode)
    two = {"messages": [("user", "I live in Oslo."), ("user", "I keep bees.")]}
    run(agent, two if on_error == "log" else "I live in Oslo.", mode)  # in the state, or by the order of messages
    said = ["I drink green tea.", "I live in Oslo.", *(["I keep bees."] if on_error == "log" else [])]
    assert [text for text in known(memory) if text != "Noted."] == said


def fail_to_store(*args: Any, **kwargs: Any) -> Any:
    raise StoreError("the disk is full")


@pytest.mark.parametrize("mode", MODES)
def test_a_reply_of_a_person_after_an_answer_is_remembered_where_the_user_writes_all(
    memory: Memory, mode: Mode
) -> None:
    person = Corrector("I am allergic to nuts.")
    run(create_agent(Chatbot(), middleware=[remembering(memory, user_input=True), person]), "I live in Oslo.", mode)
    assert [text for text in known(memory) if text != "Noted."] == ["I live in Oslo.", "I am allergic to nuts."]


@pytest.mark.parametrize("mode", MODES)
def test_memories_are_recalled_again_for_the_user_and_not_for_a_correction(
    memory: Memory, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freshness, "FRESH_SECONDS", -1)
    tea = memory.add("I drink green tea.", user_id="maya")["results"][0]["id"]
    memory.add("I write JSON files every day.", user_id="maya")
    corrector = Corrector("Write the answer as JSON.", then=lambda: memory.update(tea, "I drink black tea."))
    model = Chatbot()
    run(create_agent(model, middleware=[remembering(memory), corrector]), "Which tea do I drink?", mode)
    assert "green tea" in model.systems[0]
    assert "black tea" in model.systems[1]
    assert "JSON files" not in model.systems[1]


@pytest.mark.parametrize("mode", MODES)
def test_a_model_that_stands_in_for_another_sees_the_memories(memory: Memory, mode: Mode) -> None:
    memory.add("I drink green tea.", user_id="maya")
    spare = Chatbot()
    agent = create_agent(Chatbot(answer=fail_then(9)), middleware=[remembering(memory), ModelFallbackMiddleware(spare)])
    run(agent, "Which tea do I drink?", mode)
    assert shown(spare.systems[0]) == ["I drink green tea."]


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_turn_that_is_run_again_from_its_checkpoint_is_remembered_once(memory: Memory, mode: Mode) -> None:
    agent = create_agent(Chatbot(answer=fail_then(1)), middleware=[remembering(memory)], checkpointer=InMemorySaver())
    with pytest.raises(RuntimeError):
        run(agent, "I drink green tea.", mode)
    assert known(memory) == []
    run(agent, None, mode)
    assert known(memory) == ["I drink green tea.", "Noted."]


# --- cancellation -------------------------------------------------------------------------------------------------


def test_a_cancelled_turn_stores_nothing_and_the_next_turn_stores_both(memory: Memory) -> None:
    async def talk() -> None:
        started, hang = asyncio.Event(), True

        class Slow(Chatbot):
            async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
                if hang:
                    started.set()
                    await asyncio.Event().wait()
                return self._generate(*args, **kwargs)

        agent: Any = create_agent(Slow(), middleware=[remembering(memory)], checkpointer=InMemorySaver())
        turn = asyncio.create_task(agent.ainvoke({"messages": "I drink green tea."}, MAYA))
        await asyncio.wait_for(started.wait(), 60)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        assert known(memory) == []
        hang = False
        await agent.ainvoke({"messages": "I live in Porto."}, MAYA)

    asyncio.run(talk())
    assert known(memory) == ["I drink green tea.", "I live in Porto.", "Noted."]


def test_a_turn_that_is_cancelled_while_it_is_stored_is_stored_once(memory: Memory) -> None:
    async def talk() -> None:
        started, go_on = asyncio.Event(), asyncio.Event()

        async def wait(messages: Any, scope: Any) -> None:
            started.set()
            await go_on.wait()

        agent: Any = create_agent(
            Chatbot(), middleware=[remembering(memory, on_remember=wait)], checkpointer=InMemorySaver()
        )
        turn = asyncio.create_task(agent.ainvoke({"messages": "I drink green tea."}, MAYA))
        await asyncio.wait_for(started.wait(), 60)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        go_on.set()
        await agent.ainvoke(None, MAYA)

    asyncio.run(talk())
    assert known(memory) == ["I drink green tea.", "Noted."]


@pytest.mark.parametrize("mode", MODES)
def test_a_stream_that_the_caller_leaves_loses_no_message(memory: Memory, mode: Mode) -> None:
    agent: Any = create_agent(Chatbot(), middleware=[remembering(memory)], checkpointer=InMemorySaver())
    input: Any = {"messages": [HumanMessage("I drink green tea.")]}

    async def leave() -> None:
        stream = agent.astream(input, MAYA, stream_mode="updates")
        await anext(stream)
        await stream.aclose()

    if mode == "async":
        asyncio.run(leave())
    else:
        stream = agent.stream(input, MAYA, stream_mode="updates")
        next(stream)
        stream.close()
    run(agent, "I live in Porto.", mode)
    assert [text for text in known(memory) if text != "Noted."] == ["I drink green tea.", "I live in Porto."]


# --- time travel --------------------------------------------------------------------------------------------------


def as_maya(checkpoint: Any) -> Any:
    return {"configurable": {**checkpoint["configurable"], "user_id": "maya"}}


@pytest.mark.parametrize("mode", MODES)
def test_a_fork_of_a_thread_recalls_for_its_own_question(memory: Memory, mode: Mode) -> None:
    for fact in ("I drink green tea.", "My sister plays the violin."):
        memory.add(fact, user_id="maya")
    model = Chatbot()
    agent = create_agent(model, middleware=[remembering(memory)], checkpointer=InMemorySaver())
    run(agent, "Which tea do I drink?", mode)
    begin = next(state for state in agent.get_state_history(MAYA) if state.next == ("Mem0Middleware.before_agent",))
    question = HumanMessage("What does my sister play?", id=begin.values["messages"][-1].id)
    fork = agent.update_state(begin.config, {"messages": [question]})
    run(agent, None, mode, as_maya(fork))
    assert [shown(system) for system in model.systems] == [["I drink green tea."], ["My sister plays the violin."]]


@pytest.mark.parametrize("mode", MODES)
def test_an_edited_message_of_a_fork_is_learned_from(memory: Memory, mode: Mode) -> None:
    agent = create_agent(Chatbot(), middleware=[remembering(memory)], checkpointer=InMemorySaver())
    run(agent, "I drink green tea.", mode)
    begin = next(state for state in agent.get_state_history(MAYA) if state.next == ("Mem0Middleware.before_agent",))
    fork = agent.update_state(begin.config, {"messages": [HumanMessage("I drink black tea.")]})
    run(agent, None, mode, as_maya(fork))
    assert "I drink black tea." in known(memory)
    assert known(memory).count("I drink green tea.") == 1


@pytest.mark.parametrize("mode", MODES)
def test_a_tool_that_ends_the_turn_has_it_remembered(memory: Memory, mode: Mode) -> None:
    @tool(return_direct=True)
    def finish() -> str:
        """End the turn."""
        return "Done."

    agent = create_agent(
        Chatbot(answer=lambda _: call_tools(("finish", {}))), tools=[finish], middleware=[remembering(memory)]
    )
    run(agent, "I drink green tea.", mode)
    assert known(memory) == ["I drink green tea.", "Let me look."]
