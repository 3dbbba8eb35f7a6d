"""Messages that agents share, replay or repeat: each is remembered once, and only if a person or the assistant said it.

Also the state, the streams and the events of a graph: they show no recalled text and no model of the memory.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.structured_output import ProviderStrategy
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send
from pydantic import BaseModel

from mem0_core import Memory
from mem0_core.interfaces import Reply
from mem0_langchain import MemoryMiddleware
from mem0_langchain.langgraph import RememberNode
from tests.frameworks.langchain.fakes import Chatbot, calls
from tests.support import open_memory

Mode = Literal["sync", "async"]
MODES: tuple[Mode, ...] = ("sync", "async")
MAYA: Any = {"configurable": {"user_id": "maya", "thread_id": "1"}}


def run(graph: Any, text: Any, mode: Mode, config: Any = MAYA) -> Any:
    """One turn; `text` is the user's, or a Command, or None to resume."""
    input = {"messages": [HumanMessage(text)]} if isinstance(text, str) else text
    return asyncio.run(graph.ainvoke(input, config)) if mode == "async" else graph.invoke(input, config)


def log_of(memory: Memory, role: str | None = None) -> list[str]:
    assert memory.flush(timeout=30)
    seen = memory.context(None, user_id="maya", recent=100)["messages"]
    return [str(message["content"]) for message in seen if role in (None, message["role"])]


def remembering(memory: Memory, **options: Any) -> MemoryMiddleware:
    return MemoryMiddleware(memory, **{"background": False, **options})


# --- identical, replayed and regenerated turns --------------------------------------------------------------------


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_an_identical_turn_is_another_turn(memory: Memory, mode: Mode, background: bool) -> None:
    agent = create_agent(
        Chatbot(), middleware=[remembering(memory, background=background)], checkpointer=InMemorySaver()
    )
    for _ in range(3):
        run(agent, "Yes, please.", mode)
    assert log_of(memory) == ["Yes, please.", "Noted."] * 3


@pytest.mark.parametrize("mode", MODES)
def test_replaying_a_finished_turn_asks_the_memorys_model_nothing(tmp_path: Path, mode: Mode) -> None:
    asked: list[str] = []

    def script(task: str, messages: Any) -> Any:
        asked.append(task)
        return {"facts": []}

    with open_memory(tmp_path, script) as memory:
        agent = create_agent(Chatbot(), middleware=[remembering(memory)], checkpointer=InMemorySaver())
        run(agent, "I drink tea.", mode)
        assert asked == ["facts"]
        before_remembering = next(
            state for state in agent.get_state_history(MAYA) if state.next == ("Mem0Middleware.after_agent",)
        )
        run(agent, None, mode, before_remembering.config)
        assert asked == ["facts"]
        assert log_of(memory) == ["I drink tea.", "Noted."]


@pytest.mark.parametrize("mode", MODES)
def test_of_a_regenerated_answer_only_the_answer_is_learned_from(tmp_path: Path, mode: Mode) -> None:
    inputs: list[str] = []

    def script(task: str, messages: Any) -> Any:
        inputs.append(messages[-1]["content"].partition("Input:")[2])
        return {"facts": []}

    answers = iter(["First answer.", "Second answer."])
    with open_memory(tmp_path, script) as memory:
        agent = create_agent(
            Chatbot(answer=lambda _: next(answers)), middleware=[remembering(memory)], checkpointer=InMemorySaver()
        )
        run(agent, "I drink tea.", mode)
        before_model = next(state for state in agent.get_state_history(MAYA) if state.next == ("model",))
        run(agent, None, mode, before_model.config)
        assert log_of(memory) == ["I drink tea.", "First answer.", "Second answer."]
        assert [("tea" in input, "answer" in input) for input in inputs] == [(True, True), (False, True)]


# --- several agents -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_two_remembering_agents_of_a_graph_learn_the_user_once(tmp_path: Path, mode: Mode) -> None:
    inputs: list[str] = []

    def script(task: str, messages: Any) -> Any:
        inputs.append(messages[-1]["content"].partition("Input:")[2])
        return {"facts": []}

    with open_memory(tmp_path, script) as memory:
        first = create_agent(Chatbot(answer=lambda _: "From one."), middleware=[remembering(memory)], name="one")
        second = create_agent(Chatbot(answer=lambda _: "From two."), middleware=[remembering(memory)], name="two")
        builder: Any = StateGraph(MessagesState)
        builder.add_node("one", first)
        builder.add_node("two", second)
        builder.add_edge(START, "one")
        builder.add_edge("one", "two")
        builder.add_node("remember", RememberNode(memory))
        builder.add_edge("two", "remember")
        graph = builder.compile(checkpointer=InMemorySaver())
        for turn in (1, 2):
            run(graph, "I drink tea.", mode)
            assert log_of(memory) == ["I drink tea.", "From one.", "From two."] * turn
        assert "\n".join(inputs).count("I drink tea.") == 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("depth", [1, 2])
def test_the_task_of_a_sub_agent_is_not_what_the_user_said(memory: Memory, mode: Mode, depth: int) -> None:
    worker: Any = create_agent(
        Chatbot(answer=lambda _: "Sencha is grown in Uji."), middleware=[remembering(memory)], name="worker"
    )
    for level in range(depth):
        worker = boss_of(worker, [remembering(memory, name=f"level {level}")])
    run(worker, "I like sencha. Where is it from?", mode, {"configurable": {"user_id": "maya"}})
    assert set(log_of(memory, "user")) == {"I like sencha. Where is it from?"}
    assert "Sencha is grown in Uji." in log_of(memory, "assistant")


def boss_of(worker: Any, middleware: list[Any]) -> Any:
    @tool
    def research(task: str) -> str:
        """Research a question."""
        return str(worker.invoke({"messages": [HumanMessage(task)]})["messages"][-1].text)

    @tool("research")
    async def aresearch(task: str) -> str:
        """Research a question."""
        return str((await worker.ainvoke({"messages": [HumanMessage(task)]}))["messages"][-1].text)

    research.coroutine = aresearch.coroutine  # type: ignore[attr-defined]

    def answer(messages: list[BaseMessage]) -> AIMessage | str:
        if isinstance(messages[-1], ToolMessage):
            return "It is from Uji."
        return calls("research", task="Find the origin of the tea the customer named.")

    return create_agent(Chatbot(answer=answer), tools=[research], middleware=middleware)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("user_input", "kept"), [(None, 2), (True, 2), (False, 1)])
def test_an_agent_that_is_sent_tasks_can_be_told_so(
    memory: Memory, mode: Mode, user_input: bool | None, kept: int
) -> None:
    worker = create_agent(Chatbot(answer=lambda _: "Done."), middleware=[remembering(memory, user_input=user_input)])
    builder: Any = StateGraph(MessagesState)
    builder.add_node("boss", create_agent(Chatbot(), middleware=[remembering(memory)]))
    builder.add_node("worker", worker)
    builder.add_edge(START, "boss")
    builder.add_conditional_edges(
        "boss", lambda state: Send("worker", {"messages": [HumanMessage("Look for the customer's tea.")]})
    )
    builder.add_edge("worker", END)
    run(builder.compile(), "I drink tea.", mode, {"configurable": {"user_id": "maya"}})
    assert len(log_of(memory, "user")) == kept


# --- structured output --------------------------------------------------------------------------------------------


class Weather(BaseModel):
    place: str
    rain: bool


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fenced", [False, True])
def test_structured_output_is_not_remembered(memory: Memory, mode: Mode, fenced: bool) -> None:
    said = '{"place": "Porto", "rain": true}'
    agent: Any = create_agent(
        Chatbot(answer=lambda _: said), middleware=[remembering(memory)], response_format=ProviderStrategy(Weather)
    )
    assert run(agent, "I live in Porto. Will it rain?", mode)["structured_response"] == Weather(
        place="Porto", rain=True
    )
    assert log_of(memory) == ["I live in Porto. Will it rain?"]
    node = RememberNode(memory)
    answer = f"```json\n{said}\n```" if fenced else f"[{said}]"
    node.invoke({"messages": [HumanMessage("And in Faro?"), AIMessage(answer)]}, MAYA)
    node.invoke({"messages": [HumanMessage("And here?"), AIMessage("Use {braces}: [1] or {2}.")]}, MAYA)
    assert log_of(memory)[1:] == ["And in Faro?", "And here?", "Use {braces}: [1] or {2}."]


# --- states, streams and events -----------------------------------------------------------------------------------


@tool
def weather(place: str) -> str:
    """Look up the weather."""
    return f"Rain in {place}."


def rainy(messages: list[BaseMessage]) -> AIMessage | str:
    return "Take an umbrella." if isinstance(messages[-1], ToolMessage) else calls("weather", place="there")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("stream_mode", ["values", "updates", "checkpoints", "tasks", "debug"])
def test_no_stream_and_no_checkpoint_shows_a_recalled_text(memory: Memory, mode: Mode, stream_mode: Any) -> None:
    memory.add("I live in Porto.", user_id="maya")
    model, saver = Chatbot(answer=rainy), InMemorySaver()
    agent: Any = create_agent(model, tools=[weather], middleware=[remembering(memory)], checkpointer=saver)
    input = {"messages": "Will it rain where I live?"}

    async def collect() -> list[Any]:
        return [part async for part in agent.astream(input, MAYA, stream_mode=stream_mode)]

    parts = asyncio.run(collect()) if mode == "async" else list(agent.stream(input, MAYA, stream_mode=stream_mode))
    assert all("I live in Porto." in system for system in model.systems)
    assert "I live in Porto." not in str(parts)
    assert not any("I live in Porto." in str(state) for state in agent.get_state_history(MAYA))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_broken", [False, True])
def test_a_turn_that_another_process_resumes_recalls_again(
    memory: Memory, mode: Mode, is_broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add("I live in Porto.", user_id="maya")
    saver = InMemorySaver()

    def build(model: Chatbot) -> Any:
        middleware = [remembering(memory, on_error="log"), HumanInTheLoopMiddleware(interrupt_on={"weather": True})]
        return create_agent(model, tools=[weather], middleware=middleware, checkpointer=saver)

    run(build(Chatbot(answer=rainy)), "Will it rain where I live?", mode)
    model = Chatbot(answer=rainy)
    if is_broken:
        monkeypatch.setattr("mem0_langchain.runs.MemoryRuns._context", _fail)
        monkeypatch.setattr("mem0_langchain.runs.MemoryRuns._acontext", _afail)
    result = run(build(model), Command(resume={"decisions": [{"type": "approve"}]}), mode)
    assert result["messages"][-1].text == "Take an umbrella."
    assert ["I live in Porto." in system for system in model.systems] == [not is_broken]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", ["none", "delete", "update"])
def test_a_turn_that_waited_for_a_person_shows_no_memory_that_has_changed(
    memory: Memory, mode: Mode, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (added,) = memory.add("I live in Porto.", user_id="maya")["results"]
    recalls: list[Any] = []
    middleware = remembering(memory, on_recall=lambda recalled, scope: recalls.append(recalled))
    hooks = [middleware, HumanInTheLoopMiddleware(interrupt_on={"weather": True})]
    model = Chatbot(answer=rainy)
    agent: Any = create_agent(model, tools=[weather], middleware=hooks, checkpointer=InMemorySaver())
    run(agent, "Will it rain where I live?", mode)
    if change == "delete":
        memory.delete(added["id"])
    elif change == "update":
        memory.update(added["id"], "I live in Oslo.")
    monkeypatch.setattr("mem0_core.recall.freshness.FRESH_SECONDS", 0)
    run(agent, Command(resume={"decisions": [{"type": "approve"}]}), mode)
    before, after = model.systems
    assert "Porto" in before
    assert ("Porto" in after, "Oslo" in after) == (change == "none", change == "update")
    assert len(recalls) == (2 if change == "update" else 1)  # nothing is asked again about what is as it was


def _fail(self: Any, request: Any) -> Any:
    from mem0_core import StoreError

    raise StoreError("the store is down")


async def _afail(self: Any, request: Any) -> Any:
    _fail(self, request)


class LangChainScribe:
    """A memory's chat model that is LangChain's."""

    def __init__(self) -> None:
        self._model = GenericFakeChatModel(messages=iter(['{"facts": ["SECRET"]}', '{"memory": []}'] * 9))

    def complete(self, messages: Any, *, task: str, schema: Any = None, tools: Any = ()) -> Any:
        reply = self._model.invoke([(message["role"], message["content"]) for message in messages])
        return Reply(text=str(reply.text))

    async def acomplete(self, messages: Any, *, task: str, schema: Any = None, tools: Any = ()) -> Any:
        reply = await self._model.ainvoke([(message["role"], message["content"]) for message in messages])
        return Reply(text=str(reply.text))


@pytest.mark.parametrize("background", [False, True])
def test_events_show_no_run_of_the_memorys_model(tmp_path: Path, background: bool) -> None:
    with open_memory(tmp_path, llm=LangChainScribe()) as memory:
        agent: Any = create_agent(
            Chatbot(answer=lambda _: "Hello."), middleware=[remembering(memory, background=background)]
        )

        async def collect() -> list[Any]:
            events = [event async for event in agent.astream_events({"messages": "I drink tea."}, MAYA, version="v2")]
            assert await memory.aflush(timeout=30)
            return events

        events = asyncio.run(collect())
        assert len([event for event in events if event["event"] == "on_chat_model_start"]) == 1
        assert "SECRET" not in str([event for event in events if "chat_model" in event["event"]])


def test_the_state_of_a_turn_is_json(memory: Memory) -> None:
    memory.add("I live in Porto.", user_id="maya")
    agent: Any = create_agent(Chatbot(), middleware=[remembering(memory)], checkpointer=InMemorySaver())
    list(agent.stream({"messages": "Where do I live?"}, MAYA, stream_mode="values"))
    for state in agent.get_state_history(MAYA):
        turns = state.values.get("mem0_turns", {})
        assert json.loads(json.dumps(turns)) == turns
