"""LlamaIndex's contracts of a memory, a chat store and a property graph: its own classes and ours pass the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    AudioBlock,
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.chat_engine.types import BaseChatEngine, StreamingAgentChatResponse
from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import EntityNode, PropertyGraphStore, Relation
from llama_index.core.llms.mock import MockLLM
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from llama_index.core.memory import Memory as LlamaIndexMemory
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.chat_store import SimpleChatStore

from mem0_core import InputError, Memory
from mem0_llamaindex import Mem0ChatStore, Mem0Memory, Mem0PropertyGraphStore
from tests.frameworks.llamaindex.test_chat_engines import Library

QUESTION, ANSWER = (
    ChatMessage(role=MessageRole.USER, content="first message"),
    ChatMessage(role=MessageRole.ASSISTANT, content="first answer"),
)
LATER = [
    ChatMessage(role=MessageRole.USER, content="second message"),
    ChatMessage(role=MessageRole.ASSISTANT, content="second answer"),
]
FAR = 0.99  # a threshold that no memory reaches: the contracts are about the short-term messages


def count_words(text: str) -> list[str]:
    return text.split()


Make = Callable[..., BaseMemory]


@pytest.fixture(params=["buffer", "memory", "mem0"])
def make(request: pytest.FixtureRequest, core: Memory) -> Make:
    """Return a function that makes a memory, with `chat_history` and `token_limit`."""
    if request.param == "buffer":
        return lambda **options: ChatMemoryBuffer.from_defaults(tokenizer_fn=count_words, **options)
    if request.param == "memory":  # it keeps a whole buffer of messages, and its limit is that of a queue
        return lambda **options: LlamaIndexMemory.from_defaults(
            tokenizer_fn=count_words, token_flush_size=1, chat_history_token_ratio=1.0, **options
        )
    return lambda **options: Mem0Memory.from_defaults(
        core, user_id="maya", threshold=FAR, tokenizer_fn=count_words, chat_history_token_ratio=1.0, **options
    )


# --- a memory --------------------------------------------------------------------------------------------------------


def test_messages_come_back_in_their_order(make: Make) -> None:
    memory = make(chat_history=[QUESTION])
    assert memory.get() == memory.get_all() == [QUESTION]
    memory.put(ANSWER)
    memory.put_messages(LATER)
    assert memory.get() == memory.get_all() == [QUESTION, ANSWER, *LATER]
    memory.set([QUESTION])
    assert memory.get() == [QUESTION]
    memory.reset()
    assert memory.get() == memory.get_all() == []


async def test_messages_come_back_in_their_order_by_async_calls(make: Make) -> None:
    memory = make()
    await memory.aput(QUESTION)
    await memory.aput_messages([ANSWER, *LATER])
    assert await memory.aget() == await memory.aget_all() == [QUESTION, ANSWER, *LATER]
    await memory.aset([QUESTION])
    assert await memory.aget() == [QUESTION]
    await memory.areset()
    assert await memory.aget() == await memory.aget_all() == []


def test_a_full_memory_shows_the_last_whole_turn(make: Make) -> None:
    memory = make(token_limit=7)
    memory.put_messages([QUESTION, ANSWER, *LATER])  # eight words
    assert memory.get() == LATER
    memory.put(ChatMessage(role=MessageRole.USER, content="a third one"))
    assert memory.get()[-1].content == "a third one"
    assert memory.get()[0].role == MessageRole.USER


@pytest.mark.parametrize("make", ["memory", "mem0"], indirect=True)  # older buffers show nothing
def test_a_message_longer_than_the_limit_is_shown_alone(make: Make) -> None:
    memory = make(token_limit=3)
    memory.put_messages([QUESTION, ANSWER])
    memory.put(ChatMessage(role=MessageRole.USER, content="a question of six words exactly"))
    assert [message.content for message in memory.get()] == ["a question of six words exactly"]


def test_a_tool_result_follows_its_call(make: Make) -> None:
    memory = make(token_limit=9)
    call = ChatMessage(
        role=MessageRole.ASSISTANT,
        blocks=[TextBlock(text="let me"), ToolCallBlock(tool_call_id="1", tool_name="look", tool_kwargs={})],
    )
    memory.put_messages(
        [QUESTION, ANSWER, LATER[0], call, ChatMessage(role=MessageRole.TOOL, content="found it"), LATER[1]]
    )
    shown = memory.get()
    assert shown[0].role == MessageRole.USER
    tools = [place for place, message in enumerate(shown) if message.role == MessageRole.TOOL]
    assert all(shown[place - 1].role == MessageRole.ASSISTANT for place in tools)
    assert shown[-1] == LATER[1]


def test_every_block_of_a_message_comes_back(make: Make) -> None:
    message = ChatMessage(
        role=MessageRole.USER,
        blocks=[
            TextBlock(text="Look"),
            ImageBlock(url="https://example.com/a.png"),
            AudioBlock(url="https://example.com/a.mp3"),
            DocumentBlock(url="https://example.com/a.pdf", document_mimetype="application/pdf"),
        ],
        additional_kwargs={"order": 7},
    )
    thought = ChatMessage(role=MessageRole.ASSISTANT, blocks=[ThinkingBlock(content="hm"), TextBlock(text="Seen")])
    memory = make()
    memory.put_messages([message, thought])
    assert memory.get() == [message, thought]


def test_a_memory_is_saved_and_restored(core: Memory) -> None:
    memory = Mem0Memory.from_defaults(core, user_id="maya", token_limit=500, chat_history=[QUESTION])
    for restored in (
        Mem0Memory.from_dict(memory.to_dict()),
        Mem0Memory.from_json(memory.to_json()),
        Mem0Memory.from_string(memory.to_string()),
    ):
        restored.bind(core)
        assert restored.get() == [QUESTION]
        assert restored.token_limit == 500


@pytest.mark.parametrize("saved", ["a text", "[]", b"\xff", None])
def test_a_memory_is_not_restored_from_another_text(saved: Any) -> None:
    with pytest.raises(InputError, match="json_str must be a text that to_string returned, not"):
        Mem0Memory.from_string(saved)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_streamed_answer_is_stored_whole(make: Make, mode: str) -> None:
    def answer(text: str) -> ChatMessage:
        return ChatMessage(role=MessageRole.ASSISTANT, content=text, additional_kwargs={"run": 1})

    def stream() -> ChatResponseGen:
        yield ChatResponse(message=answer("hello "), delta="hello ")
        yield ChatResponse(message=answer("hello there"), delta="there")

    async def astream() -> ChatResponseAsyncGen:
        for part in stream():
            yield part

    memory = make()
    memory.put(QUESTION)
    if mode == "sync":
        StreamingAgentChatResponse(chat_stream=stream()).write_response_to_history(memory)
    else:
        response = StreamingAgentChatResponse(achat_stream=astream())
        asyncio.run(response.awrite_response_to_history(memory))
    _, stored = memory.get_all()
    assert stored.content == "hello there"
    assert stored.additional_kwargs == {"run": 1}


# --- chat engines ----------------------------------------------------------------------------------------------------

ENGINES: dict[str, Callable[[BaseMemory], BaseChatEngine]] = {
    "simple": lambda memory: SimpleChatEngine.from_defaults(llm=MockLLM(), memory=memory),
    "context": lambda memory: ContextChatEngine.from_defaults(
        Library(), llm=MockLLM(), memory=memory, system_prompt="Talk like a pirate."
    ),
    "condense": lambda memory: CondensePlusContextChatEngine.from_defaults(
        Library(), llm=MockLLM(), memory=memory, system_prompt="Talk like a pirate."
    ),
    "question": lambda memory: CondenseQuestionChatEngine.from_defaults(
        RetrieverQueryEngine.from_args(Library(), llm=MockLLM()), llm=MockLLM(), memory=memory
    ),
}


@pytest.mark.parametrize("kind", ENGINES)
def test_an_engine_keeps_its_history(make: Make, kind: str) -> None:
    engine = ENGINES[kind](make())
    engine.chat("Hello World!")
    assert [message.role for message in engine.chat_history] == [MessageRole.USER, MessageRole.ASSISTANT]
    second = str(engine.chat("What is the capital of the moon?"))
    assert len(engine.chat_history) == 4
    if kind != "question":  # it shows the model a single question
        assert "Hello World!" in second
        assert "capital of the moon" in second
    engine.reset()
    assert engine.chat_history == []
    if kind == "question":
        return  # its chat_history replaces that of the question only
    engine.chat("And now?", chat_history=[QUESTION, ANSWER])
    assert [message.content for message in engine.chat_history][:3] == ["first message", "first answer", "And now?"]


@pytest.mark.parametrize("make", ["buffer", "mem0"], indirect=True)  # the database of theirs is one thread's
@pytest.mark.parametrize("kind", ["simple", "context", "condense"])
def test_an_engine_streams_and_keeps_its_history(make: Make, kind: str) -> None:
    engine = ENGINES[kind](make())
    response = engine.stream_chat("Hello World!")
    text = "".join(response.response_gen)
    assert "Hello World!" in text
    assert [message.role for message in engine.chat_history] == [MessageRole.USER, MessageRole.ASSISTANT]


async def test_an_answer_that_is_not_read_to_its_end_is_kept(make: Make) -> None:
    engine = ENGINES["simple"](make())
    response = await engine.astream_chat("Hello World!")
    assert [message.role for message in engine.chat_history] == [MessageRole.USER]
    async for _ in response.async_response_gen():
        break
    assert response.awrite_response_to_history_task is not None
    await response.awrite_response_to_history_task
    assert [message.role for message in engine.chat_history] == [MessageRole.USER, MessageRole.ASSISTANT]


# --- a chat store ----------------------------------------------------------------------------------------------------


@pytest.fixture(params=["simple", "mem0"])
def chats(request: pytest.FixtureRequest, core: Memory) -> Any:
    return SimpleChatStore() if request.param == "simple" else Mem0ChatStore(core)


def test_a_chat_store_keeps_each_key_apart(chats: Any) -> None:
    for key in ("maya", "ben"):
        chats.add_message(key, QUESTION)
        chats.add_message(key, ANSWER)
    assert chats.get_messages("maya") == chats.get_messages("ben") == [QUESTION, ANSWER]
    assert sorted(chats.get_keys()) == ["ben", "maya"]
    chats.add_message("maya", LATER[0], idx=0)
    assert chats.get_messages("maya") == [LATER[0], QUESTION, ANSWER]
    assert chats.delete_message("maya", 0) == LATER[0]
    assert chats.delete_last_message("maya") == ANSWER
    chats.delete_messages("maya")
    assert chats.get_messages("maya") == []
    assert chats.get_messages("ben") == [QUESTION, ANSWER]


# --- a property graph ------------------------------------------------------------------------------------------------


@pytest.fixture(params=["simple", "mem0"])
def graph(request: pytest.FixtureRequest, core: Memory) -> PropertyGraphStore:
    return SimplePropertyGraphStore() if request.param == "simple" else Mem0PropertyGraphStore(core, user_id="maya")


def relate(graph: PropertyGraphStore, *edges: tuple[str, str, str]) -> None:
    graph.upsert_relations([Relation(source_id=source, label=label, target_id=end) for source, label, end in edges])


def test_triplets_are_found_by_each_condition(graph: PropertyGraphStore) -> None:
    first, second = EntityNode(name="e1"), EntityNode(name="e2", properties={"key": "value"})
    relation = Relation(label="r", source_id=first.id, target_id=second.id, properties={"page": 3})
    graph.upsert_nodes([first, second])
    graph.upsert_relations([relation])
    for condition in (
        {"entity_names": ["e1"]},
        {"entity_names": ["e2"]},
        {"relation_names": ["r"]},
        {"properties": {"key": "value"}},
        {"properties": {"page": 3}},
        {"ids": ["e2"]},
    ):
        assert graph.get_triplets(**condition) == [(first, relation, second)], condition
    assert graph.get(ids=["e1"]) == [first]
    assert graph.get(properties={"key": "value"}) == [second]
    graph.delete(ids=["e1"])
    assert graph.get_triplets(relation_names=["r"]) == []


def test_llama_nodes_come_back_and_go_with_their_document(graph: PropertyGraphStore) -> None:
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="document")}
    page, other = TextNode(id_="n1", text="page", relationships=source), TextNode(id_="n2", text="other")
    graph.upsert_llama_nodes([page, other])
    assert graph.get_llama_nodes(["n1", "n2"]) == [page, other]
    graph.delete_llama_nodes(ref_doc_ids=["document"])
    assert graph.get_llama_nodes(["n1", "n2"]) == [other]
    graph.delete_llama_nodes(node_ids=["n2"])
    assert graph.get() == []


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_map_of_relations_goes_as_deep_as_it_may(core: Memory, depth: int) -> None:
    graph = Mem0PropertyGraphStore(core, user_id="maya")
    edges = [("A", "R", "B"), ("B", "R", "C"), ("C", "R", "D")]
    relate(graph, *edges, ("A", "IGNORE", "E"))
    around = graph.get_rel_map([EntityNode(name="A")], depth=depth, ignore_rels=["IGNORE"])
    assert [(source.id, relation.id, end.id) for source, relation, end in around] == edges[:depth]
    limited = graph.get_rel_map([EntityNode(name="A")], depth=depth, limit=1, ignore_rels=["IGNORE"])
    assert limited == around[:1]
