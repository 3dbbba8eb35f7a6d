"""`Mem0Memory` in LlamaIndex's own chat engines, in all four ways to call them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.bridge.pydantic import Field
from llama_index.core.chat_engine import CondensePlusContextChatEngine, ContextChatEngine, SimpleChatEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.mock import MockLLM
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from mem0_core import Memory, StoreError
from mem0_llamaindex import Mem0Memory

from .conftest import Counted

CALLS = ("chat", "achat", "stream_chat", "astream_chat")


class Library(BaseRetriever):
    """Finds the same page for every question."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text="Tea is grown in Fujian."), score=1.0)]


def simple(llm: MockLLM, memory: Mem0Memory) -> BaseChatEngine:
    return SimpleChatEngine.from_defaults(llm=llm, memory=memory)


def context(llm: MockLLM, memory: Mem0Memory) -> BaseChatEngine:
    return ContextChatEngine.from_defaults(retriever=Library(), llm=llm, memory=memory)


def condense(llm: MockLLM, memory: Mem0Memory) -> BaseChatEngine:
    return CondensePlusContextChatEngine.from_defaults(retriever=Library(), llm=llm, memory=memory)


ENGINES = (simple, context, condense)
Engine = Callable[[MockLLM, Mem0Memory], BaseChatEngine]


class Listener(MockLLM):
    """Answers ``noted`` and keeps the messages that it was shown."""

    shown: list[ChatMessage] = Field(default_factory=list)

    def __init__(self) -> None:
        super().__init__(max_tokens=None)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_chat_model=True)

    def _hear(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        self.shown = [message.model_copy(deep=True) for message in messages]
        return ChatResponse(message=ChatMessage(role="assistant", content="noted"), delta="noted")

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._hear(messages)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        def stream() -> ChatResponseGen:
            yield self._hear(messages)

        return stream()

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return self._hear(messages)

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        async def stream() -> ChatResponseAsyncGen:
            yield self._hear(messages)

        return stream()


async def say(engine: BaseChatEngine, call: str, text: Any) -> str:
    """One turn, read to its end."""
    if call == "chat":
        return str(engine.chat(text))
    if call == "achat":
        return str(await engine.achat(text))
    if call == "stream_chat":
        return "".join(engine.stream_chat(text).response_gen)
    streamed = await engine.astream_chat(text)
    return "".join([token async for token in streamed.async_response_gen()])


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("make", ENGINES)
async def test_the_next_session_is_told_what_the_first_was(counted: Counted, make: Engine, call: str) -> None:
    first = make(Listener(), Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all"))
    await say(first, call, "I drink oolong tea every morning.")
    assert await counted.texts(user_id="maya") == ["I drink oolong tea every morning.", "noted"]
    assert counted.taken() == {"recalls": 1, "remembers": 1}

    llm = Listener()
    second = make(llm, Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all"))
    await say(second, call, "Which tea do I drink?")
    (remembered,) = [message for message in llm.shown if "<memories>" in str(message.content)]
    assert remembered.role == MessageRole.SYSTEM
    assert '"I drink oolong tea every morning."' in str(remembered.content)
    assert "Which tea" not in str(remembered.content)
    assert str(llm.shown[-1].content).endswith("Which tea do I drink?")
    assert counted.taken() == {"recalls": 1, "remembers": 1}


@pytest.mark.parametrize("call", CALLS)
async def test_a_query_bundle_is_a_question(counted: Counted, call: str) -> None:
    counted.memory.add("I drink oolong tea every morning.", user_id="maya")
    llm = Listener()
    engine = context(llm, Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all"))
    await say(engine, call, QueryBundle("Which tea do I drink?"))
    assert any('"I drink oolong tea every morning."' in str(message.content) for message in llm.shown)
    assert (await counted.texts(user_id="maya"))[1:] == ["Which tea do I drink?", "noted"]


@pytest.mark.parametrize("call", CALLS)
async def test_every_turn_is_remembered_once_and_shown_once(counted: Counted, call: str) -> None:
    llm = Listener()
    engine = simple(llm, Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all"))
    for turn in ("I have a cat.", "Her name is Miso.", "What is her name?"):
        await say(engine, call, turn)
        assert counted.taken() == {"recalls": 1, "remembers": 1}
    prompt = "\n".join(str(message.content) for message in llm.shown)
    assert [prompt.count(text) for text in ("I have a cat.", "Her name is Miso.", "What is her name?")] == [1, 1, 1]


@pytest.mark.parametrize("make", ENGINES)
async def test_a_question_asked_again_is_no_memory_of_itself(counted: Counted, make: Engine) -> None:
    for _ in range(3):
        llm = Listener()
        engine = make(llm, Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all"))
        await say(engine, "chat", "Which tea do I drink?")
        remembered = [message for message in llm.shown if "<memories>" in str(message.content)]
        assert not any("Which tea" in str(message.content) for message in remembered)
    assert await counted.texts(user_id="maya") == ["Which tea do I drink?", "noted"]


def test_a_plain_mock_llm_echoes_the_memory(core: Memory) -> None:
    core.add("Maya is allergic to peanuts.", user_id="maya")
    engine = simple(MockLLM(), Mem0Memory.from_defaults(core, user_id="maya", keep="all"))
    assert "Maya is allergic to peanuts." in str(engine.chat("May I eat this peanut bar?"))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("make", ENGINES)
async def test_users_at_once_do_not_hear_of_one_another(core: Memory, make: Engine, call: str) -> None:
    users = {f"user{number}": f"The secret of user{number} is {number}." for number in range(4)}

    async def converse(user: str, secret: str) -> str:
        await say(make(Listener(), Mem0Memory.from_defaults(core, user_id=user, keep="all")), call, secret)
        llm = Listener()
        await say(make(llm, Mem0Memory.from_defaults(core, user_id=user, keep="all")), call, "What is the secret?")
        return "\n".join(str(message.content) for message in llm.shown)

    turns = [converse(*user) for user in users.items()]
    if call in ("chat", "stream_chat"):  # which would hold up the one loop: each has a thread and a loop of its own
        prompts = await asyncio.gather(*(asyncio.to_thread(asyncio.run, turn) for turn in turns))
    else:
        prompts = await asyncio.gather(*turns)
    for secret, prompt in zip(users.values(), prompts, strict=True):
        assert [other for other in users.values() if other in prompt] == [secret]


async def test_a_given_chat_history_is_shown_and_not_remembered(counted: Counted) -> None:
    history = [ChatMessage(role="user", content="I am Maya."), ChatMessage(role="assistant", content="Hello Maya.")]
    llm = Listener()
    engine = simple(llm, Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all"))
    engine.chat("I like figs.", chat_history=history)
    assert [message.content for message in llm.shown] == ["I am Maya.", "Hello Maya.", "I like figs."]
    assert await counted.texts(user_id="maya") == ["I like figs.", "noted"]


async def test_resetting_the_engine_leaves_long_term_memory(counted: Counted) -> None:
    llm = Listener()
    engine = simple(llm, Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all"))
    engine.chat("I like figs.")
    engine.reset()
    assert engine.chat_history == []
    engine.chat("Which fruit do I like, figs?")
    assert [message.role for message in llm.shown] == [MessageRole.SYSTEM, MessageRole.USER]
    assert "I like figs." in str(llm.shown[0].content)


@pytest.mark.parametrize(("background", "part", "call"), [(True, "jobs", "enqueue"), (False, "", "commit")])
async def test_a_failing_store_is_heard_of_and_the_turn_is_written_later(
    counted: Counted, monkeypatch: pytest.MonkeyPatch, background: bool, part: str, call: str
) -> None:
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all", background=background)
    engine = simple(Listener(), memory)
    store: Any = counted.memory._store

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(type(getattr(store, part, store)), call, full)
        with pytest.raises(StoreError, match="disk full"):
            engine.chat("I like figs.")
    engine.chat("And plums.")
    assert await counted.texts(user_id="maya") == ["I like figs.", "noted", "And plums."]
