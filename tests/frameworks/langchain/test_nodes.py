"""`RecallNode` and `RememberNode` in real graphs."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.types import RetryPolicy
from pydantic import BaseModel
from typing_extensions import TypedDict

from mem0_core import InputError, Memory, MemoryDict, ModelError, Scope, ScopeError
from mem0_core.flow import StepRecord
from mem0_core.testing import HashEmbedder
from mem0_langchain.langgraph import RecallNode, RememberNode, format_memory_prompt
from tests.frameworks.langchain.fakes import Chatbot
from tests.support import open_memory

Mode = Literal["invoke", "ainvoke", "stream", "astream"]
MODES: tuple[Mode, ...] = ("invoke", "ainvoke", "stream", "astream")


class State(MessagesState):
    memories: list[MemoryDict]


class Context(TypedDict, total=False):
    user_id: str


def workflow(memory: Memory, model: Chatbot, *, checkpointer: Any = None, **address: Any) -> Any:
    def answer(state: State) -> dict[str, Any]:
        system = [SystemMessage(format_memory_prompt(state["memories"]))] if state["memories"] else []
        return {"messages": model.invoke([*system, *state["messages"]])}

    builder = StateGraph(State, context_schema=Context)
    builder.add_node("recall", RecallNode(memory, **address))
    builder.add_node("answer", answer)
    builder.add_node("remember", RememberNode(memory, keep="all", **address))
    builder.add_edge(START, "recall").add_edge("recall", "answer").add_edge("answer", "remember")
    return builder.add_edge("remember", END).compile(checkpointer=checkpointer)


def turn(graph: Any, text: Any, config: Any, mode: Mode = "invoke", **options: Any) -> Any:
    """One turn by one of the four ways to run a graph; the state it ends in."""
    asked = {"messages": [HumanMessage(text)]}
    if mode == "invoke":
        return graph.invoke(asked, config, **options)
    if mode == "ainvoke":
        return asyncio.run(graph.ainvoke(asked, config, **options))
    if mode == "stream":
        return list(graph.stream(asked, config, stream_mode="values", **options))[-1]

    async def last() -> Any:
        return [state async for state in graph.astream(asked, config, stream_mode="values", **options)][-1]

    return asyncio.run(last())


def ana(**more: Any) -> RunnableConfig:
    return {"configurable": {"user_id": "ana", **more}}


def kept(memory: Memory, user: str = "ana") -> list[str]:
    return [entry["memory"] for entry in memory.get_all(user_id=user)["results"]]


@pytest.mark.parametrize("mode", MODES)
def test_two_conversations(memory: Memory, mode: Mode) -> None:
    model = Chatbot()
    graph = workflow(memory, model)
    assert turn(graph, "I drink green tea.", ana(), mode)["memories"] == []
    state = turn(graph, "Which tea do I drink?", ana(), mode)
    assert state["memories"][0]["memory"] == "I drink green tea."
    assert '"I drink green tea."' in model.systems[1]
    assert kept(memory) == ["I drink green tea.", "Noted.", "Which tea do I drink?"]


@pytest.mark.parametrize("mode", MODES)
def test_with_a_checkpointer_only_the_last_turn_is_remembered(memory: Memory, mode: Mode) -> None:
    received: list[int] = []

    def watch(step: StepRecord) -> None:
        if "messages" in step.call.kwargs:
            received.append(len(step.call.kwargs["messages"]))

    memory._on_step = watch
    graph = workflow(memory, Chatbot(answer=lambda m: f"Answer {len(m)}."), checkpointer=InMemorySaver())
    for text in ("I drink tea.", "I live in Porto.", "I sing."):
        turn(graph, text, ana(thread_id="1"), mode)
    assert received == [2, 2, 2]


@pytest.mark.parametrize("mode", MODES)
def test_the_context_says_whose_memory_it_is(memory: Memory, mode: Mode) -> None:
    graph = workflow(memory, Chatbot())
    turn(graph, "I drink tea.", {}, mode, context={"user_id": "ben"})
    assert kept(memory, "ben") == ["I drink tea.", "Noted."]


@pytest.mark.parametrize("mode", MODES)
def test_no_scope_is_an_error(memory: Memory, mode: Mode) -> None:
    model = Chatbot()
    with pytest.raises(ScopeError, match="no user_id, agent_id or run_id is given"):
        turn(workflow(memory, model), "I drink tea.", {}, mode)
    assert model.heard == []


def test_a_scope_in_the_constructor(memory: Memory) -> None:
    turn(workflow(memory, Chatbot(), scope=Scope(user_id="ben")), "I drink tea.", ana())
    assert kept(memory, "ben")
    assert kept(memory) == []
    with pytest.raises(ScopeError, match="'ben' and the run user_id='ana'"):
        turn(workflow(memory, Chatbot(), user_id="ben"), "I drink tea.", ana())


async def test_users_of_one_graph_do_not_meet(memory: Memory) -> None:
    graph = workflow(memory, Chatbot(answer=lambda messages: f"Noted: {messages[-1].text}"))

    async def talk(user: str) -> None:
        for number in range(3):
            state = await graph.ainvoke({"messages": f"{user} likes {number}."}, {"configurable": {"user_id": user}})
            assert all(user in entry["memory"] for entry in state["memories"])

    users = [f"user{n}" for n in range(6)]
    await asyncio.gather(*(talk(user) for user in users))
    for user in users:
        assert len(kept(memory, user)) == 6


@pytest.mark.parametrize("asynchronous", [False, True])
def test_streams_show_the_answer_alone(memory: Memory, asynchronous: bool) -> None:
    graph = workflow(memory, Chatbot(answer=lambda _: "Hello world"))

    async def collect(mode: Any) -> list[Any]:
        return [part async for part in graph.astream({"messages": "Hi, I am Ana."}, ana(), stream_mode=mode)]

    def stream(mode: Any) -> list[Any]:
        if asynchronous:
            return asyncio.run(collect(mode))
        return list(graph.stream({"messages": "Hi, I am Ana."}, ana(), stream_mode=mode))

    chunks = [chunk for chunk, _ in stream("messages") if isinstance(chunk, AIMessageChunk)]
    assert "".join(str(chunk.text) for chunk in chunks) == "Hello world"
    assert [name for part in stream("updates") for name in part] == ["recall", "answer", "remember"]


# --- states -----------------------------------------------------------------------------------------------------------


class OtherKeys(TypedDict, total=False):
    chat: Annotated[list[Any], add_messages]
    known: list[Any]
    learnt: Any


class PydanticState(BaseModel):
    chat: Annotated[list[Any], add_messages]
    known: list[Any] = []
    learnt: Any = None


@dataclasses.dataclass
class DataclassState:
    chat: Annotated[list[Any], add_messages]
    known: list[Any] = dataclasses.field(default_factory=list)
    learnt: Any = None


class PlainMessages(TypedDict, total=False):
    chat: list[Any]  # no reducer: what the caller gives stays as it is
    known: list[Any]
    learnt: Any


@pytest.mark.parametrize("schema", [OtherKeys, PydanticState, DataclassState, PlainMessages])
def test_states_of_every_kind_and_keys_of_ones_own(memory: Memory, schema: Any) -> None:
    memory.add("I live in Porto.", user_id="ana")
    builder = StateGraph(schema)
    builder.add_node(RecallNode(memory, messages_key="chat", output_key="known"))
    builder.add_node(RememberNode(memory, keep="all", messages_key="chat", output_key="learnt"))
    builder.add_edge(START, "recall").add_edge("recall", "remember")
    chat = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "I drink tea."},
        {"role": "assistant", "content": "Good."},
        {"role": "user", "content": "Where do I live?"},
    ]
    state = builder.compile().invoke({"chat": chat}, ana())
    assert [entry["memory"] for entry in state["known"]] == ["I live in Porto."]
    assert [entry["memory"] for entry in state["learnt"]["results"]] == ["Where do I live?"]


def test_a_text_is_taken_for_the_users(memory: Memory) -> None:
    class Question(TypedDict, total=False):
        question: str
        memories: list[Any]

    memory.add("I live in Porto.", user_id="ana")
    graph = StateGraph(Question).add_node("recall", RecallNode(memory, messages_key="question"))
    state = graph.add_edge(START, "recall").compile().invoke({"question": "Where do I live?"}, ana())
    assert state["memories"][0]["memory"] == "I live in Porto."


def test_a_state_without_messages_is_an_error(memory: Memory) -> None:
    for node in (RecallNode(memory, messages_key="chat"), RememberNode(memory, messages_key="chat")):
        with pytest.raises(InputError, match="'chat'"):
            node.invoke({"messages": []}, ana())


def test_tool_messages_and_images_are_left_out(memory: Memory) -> None:
    call = {"name": "look", "args": {}, "id": "1"}
    messages = [
        HumanMessage(
            [{"type": "text", "text": "What is this?"}, {"type": "image", "url": "https://example.org/a.png"}]
        ),
        AIMessage("", tool_calls=[call]),
        ToolMessage("RAW", tool_call_id="1"),
        AIMessage("A cat."),
    ]
    RememberNode(memory, keep="all").invoke({"messages": messages}, ana())
    assert kept(memory) == ["What is this?", "A cat."]


@pytest.mark.parametrize("messages", [[], [SystemMessage("Be brief.")], [HumanMessage(" ")]])
def test_nothing_said_is_nothing_to_do(memory: Memory, messages: list[Any]) -> None:
    assert RecallNode(memory).invoke({"messages": messages}, ana()) == {"memories": []}
    assert RememberNode(memory).invoke({"messages": messages}, ana()) == {}
    assert kept(memory) == []


def test_nodes_take_part_in_retries(tmp_path: Path) -> None:
    class Flaky(HashEmbedder):
        failures = 2

        def embed(self, texts: Any, *, kind: Any = "document") -> Any:
            if self.failures:
                self.failures -= 1
                raise ModelError("not yet")
            return super().embed(texts, kind=kind)

    with open_memory(tmp_path, embedder=Flaky()) as memory:
        builder = StateGraph(State)
        policy = RetryPolicy(max_attempts=3, initial_interval=0.01, retry_on=ModelError)
        builder.add_node("remember", RememberNode(memory), retry_policy=policy)
        turn(builder.add_edge(START, "remember").compile(), "I drink tea.", ana())
        assert kept(memory) == ["I drink tea."]


def test_k_threshold_and_filters(memory: Memory) -> None:
    for tea in ("green", "black", "white"):
        memory.add(f"I drink {tea} tea.", user_id="ana", metadata={"tea": tea})

    def recalled(**options: Any) -> int:
        update = RecallNode(memory, **options).invoke({"messages": "Which tea do I drink?"}, ana())
        return len(update["memories"])

    assert (recalled(), recalled(k=2), recalled(threshold=0.99), recalled(filters={"tea": "white"})) == (3, 2, 0, 1)


@pytest.mark.parametrize("mode", MODES)
def test_neither_strangers_nor_messages_of_the_thread_are_recalled(memory: Memory, mode: Mode) -> None:
    for text in ("I drink green tea.", "I am allergic to peanuts.", "My sister Anna works at Galp."):
        memory.add(text, user_id="ana")
    graph = workflow(memory, Chatbot(), checkpointer=InMemorySaver())
    for text in ("I drink black tea.", "I drink white tea.", "Which tea do I drink?"):
        state = turn(graph, text, ana(thread_id="1"), mode)
    assert [known["memory"] for known in state["memories"]] == ["I drink green tea."]
