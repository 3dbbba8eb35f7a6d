"""`Mem0MemoryBlock` in LlamaIndex's own `Memory`: it writes through, once, and shows what bears on the question."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, TextBlock
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from llama_index.core.memory import Memory as LlamaIndexMemory
from llama_index.core.memory import StaticMemoryBlock
from llama_index.core.workflow import Context

from mem0_core import ConfigError, InputError, ScopeError, StoreError
from mem0_llamaindex import Mem0MemoryBlock, WriteThroughMemory

from .conftest import Counted
from .test_event_loop import an_agent


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


def assistant(text: str) -> ChatMessage:
    return ChatMessage(role="assistant", content=text)


def with_block(counted: Counted, cls: type[LlamaIndexMemory] = LlamaIndexMemory, **options: Any) -> LlamaIndexMemory:
    more = {
        name: options.pop(name)
        for name in ("token_limit", "session_id", "token_flush_size", "async_database_uri")
        if name in options
    }
    block = Mem0MemoryBlock(counted.memory, user_id="maya", keep="all", **options)
    return cls.from_defaults(memory_blocks=[block], **more)


def shown(messages: list[ChatMessage]) -> str:
    return "\n".join(str(message.content) for message in messages)


async def test_an_agents_turn_is_one_recall_and_one_remember_at_its_end(counted: Counted) -> None:
    counted.memory.add("Maya prefers oolong.", user_id="maya")
    counted.taken()
    memory = with_block(counted)
    await an_agent().run("Make the tea I prefer.", memory=memory)
    assert counted.taken() == {"recalls": 1, "remembers": 1}
    assert (await counted.texts(user_id="maya"))[1:] == ["Make the tea I prefer.", "Here it is."]
    await an_agent().run("Make the tea I prefer.", memory=memory)
    assert counted.taken() == {"recalls": 1, "remembers": 1}


async def test_a_question_is_answered_by_what_bears_on_it_and_is_not_its_own_echo(counted: Counted) -> None:
    counted.memory.add("Maya prefers oolong.", user_id="maya")
    counted.memory.add("Ben prefers milk.", user_id="ben")
    memory = with_block(counted)
    await memory.aput(user("Which tea do I prefer?"))
    block, question = await memory.aget()
    assert block.role == "system"
    assert "Maya prefers oolong." in str(block.content)
    assert "Which tea" not in str(block.content)
    assert "Ben" not in str(block.content)
    assert question.content == "Which tea do I prefer?"


@pytest.mark.parametrize("cls", [LlamaIndexMemory, WriteThroughMemory])
async def test_turns_are_written_long_before_the_memory_is_full(counted: Counted, cls: type[LlamaIndexMemory]) -> None:
    memory = with_block(counted, cls)
    for said in ("I like figs.", "And plums."):
        await memory.aput(user(said))
        await memory.aget()
        await memory.aput(assistant("Noted."))
    seen_at_once = counted.taken()["remembers"]
    assert seen_at_once == (2 if cls is WriteThroughMemory else 1)
    await memory.aput(user("What do I like?"))
    await memory.aget()
    assert seen_at_once + counted.taken()["remembers"] == 2
    assert await counted.texts(user_id="maya") == ["I like figs.", "Noted.", "And plums."]


def test_a_sync_chat_engine_leaves_nothing_behind(counted: Counted) -> None:
    engine = SimpleChatEngine.from_defaults(llm=MockLLM(max_tokens=1), memory=with_block(counted, WriteThroughMemory))
    engine.chat("I like figs.")
    engine.chat("And plums.")
    assert counted.memory.flush(timeout=20)  # its workers outlive the event loops that `Memory` makes for each call
    texts = [item["memory"] for item in counted.memory.get_all(user_id="maya")["results"]]
    assert texts == ["I like figs.", "text", "And plums."]


async def test_what_the_memory_flushes_is_not_written_again_and_what_it_never_showed_is(counted: Counted) -> None:
    memory = with_block(counted, token_limit=40, token_flush_size=5)
    for number in range(3):  # never read: only flushing shows it to the block
        await memory.aput(user(f"I climbed the hill number {number} on foot."))
        await memory.aput(assistant(f"Hill {number}, well done."))
    await memory.aput(user("What did I climb?"))
    await memory.aget()
    await memory.aput(assistant("Hills."))
    for number in range(3, 6):
        await memory.aput(user(f"I climbed the hill number {number} on foot."))
        await memory.aget()
        await memory.aput(assistant(f"Hill {number}, well done."))
    await memory.aget()
    expected = [f"I climbed the hill number {number} on foot." for number in range(6)]
    assert [text for text in await counted.texts(user_id="maya") if "climbed" in text] == expected
    said = (await counted.memory.acontext(None, user_id="maya", recent=100, max_tokens=100_000))["messages"]
    assert len(said) == 14  # each message once


async def test_another_process_does_not_write_what_the_memory_knows(counted: Counted, tmp_path: Path) -> None:
    database = f"sqlite+aiosqlite:///{tmp_path / 'chat.db'}"

    def a_process() -> LlamaIndexMemory:
        block = Mem0MemoryBlock(counted.memory, user_id="maya", keep="all")
        return LlamaIndexMemory.from_defaults("monday", memory_blocks=[block], async_database_uri=database)

    first = a_process()
    await first.aput_messages([user("I like figs."), assistant("Noted.")])
    await first.aget()
    assert counted.taken()["remembers"] == 1
    second = a_process()
    await second.aput(user("What do I like?"))
    await second.aget()
    await second.aput(assistant("Figs."))
    assert counted.taken()["remembers"] == 0
    await second.aget()
    assert counted.taken()["remembers"] == 1
    assert await counted.texts(user_id="maya") == ["I like figs.", "Noted.", "What do I like?", "Figs."]


@pytest.mark.parametrize("kind", [LlamaIndexMemory, WriteThroughMemory])
async def test_a_session_that_begins_like_an_earlier_one_is_written_whole(
    counted: Counted, kind: type[LlamaIndexMemory]
) -> None:
    for session in ("monday", "friday"):
        memory = with_block(counted, kind, session_id=session)
        await memory.aput_messages([user("Good morning."), assistant("Good morning, Maya.")])
        await memory.aget()
    said = (await counted.memory.acontext(None, user_id="maya", recent=9))["messages"]
    assert [message["content"] for message in said] == ["Good morning.", "Good morning, Maya."] * 2


async def test_a_session_is_withdrawn_by_its_source(counted: Counted) -> None:
    for session in ("monday", "friday"):
        memory = with_block(counted, WriteThroughMemory, session_id=session)
        await memory.aput_messages([user(f"I swim on {session}."), assistant("Noted.")])
    assert await counted.texts(user_id="maya") == ["I swim on monday.", "Noted.", "I swim on friday."]
    await counted.memory.aretract("chat:monday", user_id="maya")
    assert await counted.texts(user_id="maya") == ["Noted.", "I swim on friday."]


async def test_a_session_that_cannot_name_a_source_is_refused_by_its_name(counted: Counted) -> None:
    memory = with_block(counted, WriteThroughMemory, session_id="mon\0day")
    with pytest.raises(InputError, match=r"^session_id 'mon\\x00day' .*; give the memory another session_id$"):
        await memory.aput_messages([user("I swim."), assistant("Noted.")])


async def test_a_turn_that_waited_shows_no_memory_that_has_changed(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    (added,) = counted.memory.add("My boat is in Porto.", user_id="maya")["results"]
    memory = with_block(counted)
    await memory.aput(user("Where is my boat?"))
    assert "Porto" in shown(await memory.aget())
    monkeypatch.setattr("mem0_core.recall.freshness.FRESH_SECONDS", 0)
    counted.taken()
    assert "Porto" in shown(await memory.aget())
    assert counted.taken()["recalls"] == 0  # checked, and not searched again
    await counted.memory.aupdate(added["id"], "My boat is in Faro.")
    assert "Faro" in shown(await memory.aget())
    await counted.memory.adelete(added["id"])
    assert "Faro" not in shown(await memory.aget())


async def test_what_another_process_flushes_is_not_written_again(counted: Counted, tmp_path: Path) -> None:
    options: dict[str, Any] = {"session_id": "monday", "token_limit": 40, "token_flush_size": 5}
    options["async_database_uri"] = f"sqlite+aiosqlite:///{tmp_path / 'chat.db'}"
    questions = [f"Is the hill number {number} as high as the last?" for number in range(3)]
    first, second = with_block(counted, WriteThroughMemory, **options), with_block(counted, **options)
    await first.aput_messages([user(questions[0]), assistant("Yes.")])
    for question in questions[1:]:  # never read: only flushing shows it to the block
        await second.aput_messages([user(question), assistant("Yes.")])
    await second.aget()
    said = (await counted.memory.acontext(None, user_id="maya", recent=99, max_tokens=10_000))["messages"]
    assert [message["content"] for message in said if message["role"] == "user"] == questions


async def test_equal_words_that_are_flushed_one_after_another_are_all_written(counted: Counted) -> None:
    block = Mem0MemoryBlock(counted.memory, user_id="maya", keep="all", background=False)
    turn = [user("Yes."), assistant("Booked.")]
    await block._aput(turn)
    await block._aput([*turn, user("I moved to Rome.")])
    await block.write_finished_turns(turn)
    said = (await counted.memory.acontext(None, user_id="maya", recent=99))["messages"]
    assert [message["content"] for message in said] == [
        "Yes.",
        "Booked.",
        "Yes.",
        "Booked.",
        "I moved to Rome.",
        "Yes.",
        "Booked.",
    ]


async def test_a_turn_that_could_not_be_written_is_written_later(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise StoreError("full")

    memory = with_block(counted, WriteThroughMemory)
    with monkeypatch.context() as broken:
        broken.setattr(
            type(counted.memory._store.jobs),
            "enqueue",
            lambda *args, **kwargs: (_ for _ in ()).throw(StoreError("full")),
        )
        with pytest.raises(StoreError):
            await memory.aput_messages([user("I like figs."), assistant("Noted.")])
    await memory.aput_messages([user("And plums."), assistant("Fine.")])
    assert await counted.texts(user_id="maya") == ["I like figs.", "Noted.", "And plums.", "Fine."]


async def test_it_is_cut_line_by_line_from_the_end(counted: Counted) -> None:
    for fruit in ("figs", "plums", "pears"):
        counted.memory.add(f"I like {fruit}.", user_id="maya")
    block = Mem0MemoryBlock(counted.memory, user_id="maya", tokenizer_fn=str.split, threshold=0)
    whole = await block.aget([user("Do I like figs?")])
    lines = whole.splitlines()
    assert [line.startswith("{") for line in lines] == [False, False, True, True, True, False]
    assert await block.atruncate(whole, 1) == "\n".join([*lines[:4], lines[5]])
    assert await block.atruncate(whole, len(lines[4].split()) + 1) == "\n".join([*lines[:3], lines[5]])
    assert await block.atruncate(whole, len(whole.split())) is None


async def test_a_memory_that_is_too_full_cuts_it_by_its_priority(counted: Counted) -> None:
    for number in range(20):
        counted.memory.add(f"Long ago, on a day in spring, I climbed mountain {number}.", user_id="maya")

    async def prompt(priority: int) -> str:
        blocks: list[Any] = [
            Mem0MemoryBlock(counted.memory, user_id="maya", priority=priority, k=20),
            StaticMemoryBlock(name="rules", static_content=[TextBlock(text="Be kind. " * 20)], priority=0),
        ]
        memory = LlamaIndexMemory.from_defaults(memory_blocks=blocks, token_limit=400)
        await memory.aput(user("Which mountain did I climb?"))
        return shown(await memory.aget())

    cut, whole = await prompt(1), await prompt(0)
    assert 0 < cut.count("I climbed mountain") < 20
    assert whole.count("I climbed mountain") == 20
    assert "Be kind." in cut


async def test_a_long_message_of_a_new_user_leaves_the_block_out(counted: Counted) -> None:
    memory = with_block(counted, token_limit=20, token_flush_size=10)
    await memory.aput(user("tea " * 50))
    assert "<memor" not in shown(await memory.aget())


async def test_two_users_in_two_sessions_at_once(counted: Counted) -> None:
    async def turn(name: str) -> str:
        block = Mem0MemoryBlock(counted.memory, user_id=name)
        memory = LlamaIndexMemory.from_defaults(session_id=name, memory_blocks=[block])
        agent = FunctionAgent(llm=MockFunctionCallingLLM(response_generator=lambda messages, **_: assistant("Noted.")))
        await agent.run(f"{name} likes figs.", memory=memory)
        fresh = LlamaIndexMemory.from_defaults(session_id=f"{name} later", memory_blocks=[block])
        await fresh.aput(user("Who likes figs?"))
        return shown(await fresh.aget())

    for name, prompt in zip(("ana", "ben"), await asyncio.gather(turn("ana"), turn("ben")), strict=True):
        assert [other for other in ("ana", "ben") if f"{other} likes" in prompt] == [name]


@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_restored_context_has_its_blocks_and_writes_each_turn_once(tmp_path: Path, is_stored: bool) -> None:
    """Also where messages are only in a temporary chat store, and where turns are equal."""
    config = {"path": str(tmp_path), "embedder": {"provider": "hash", "config": {"dims": 64}}}
    uri = f"sqlite+aiosqlite:///{tmp_path}/chats.db" if is_stored else None
    rules: list[Any] = [TextBlock(text="Be brief.")]
    blocks: list[Any] = [
        StaticMemoryBlock(name="rules", static_content=rules, priority=0),
        Mem0MemoryBlock(config=config, user_id="maya", k=3),
    ]
    memory = WriteThroughMemory.from_defaults(session_id="monday", memory_blocks=blocks, async_database_uri=uri)
    agent = FunctionAgent(llm=MockFunctionCallingLLM(response_generator=lambda messages, **_: assistant("Noted.")))
    ctx = Context(agent)
    await agent.run("I like figs.", ctx=ctx, memory=memory)
    await agent.run("I like figs.", ctx=ctx)
    restored = Context.from_dict(agent, json.loads(json.dumps(ctx.to_dict())))
    await agent.run("I like plums.", ctx=restored)
    kept: WriteThroughMemory = await restored.store.get("memory")
    assert len(await kept.aget_all()) == 6
    static, block = kept.memory_blocks
    assert isinstance(static, StaticMemoryBlock)
    assert isinstance(block, Mem0MemoryBlock)
    assert (static.static_content, block.user_id, block.k) == (rules, "maya", 3)
    said = block.long_term.context(None, user_id="maya", recent=20)["messages"]
    assert [message["content"] for message in said if message["role"] == "user"] == [
        "I like figs.",
        "I like figs.",
        "I like plums.",
    ]
    await block.long_term.aclose()


async def test_a_block_finds_its_live_memory_in_one_process(counted: Counted) -> None:
    memory = with_block(counted, WriteThroughMemory)
    assert isinstance(memory, WriteThroughMemory)
    (block,) = WriteThroughMemory.from_dict(json.loads(json.dumps(memory.to_dict()))).memory_blocks
    assert isinstance(block, Mem0MemoryBlock)
    assert block.long_term is counted.memory


@pytest.mark.usefixtures("forget_live_memories")
async def test_a_block_of_a_live_memory_is_bound_again_and_others_are_not_saved(counted: Counted) -> None:
    memory = with_block(counted, WriteThroughMemory)
    assert isinstance(memory, WriteThroughMemory)
    (block,) = WriteThroughMemory.from_dict(json.loads(json.dumps(memory.to_dict()))).memory_blocks
    assert isinstance(block, Mem0MemoryBlock)
    with pytest.raises(ConfigError, match="bind"):
        _ = block.long_term
    block.bind(counted.memory)
    assert block.long_term.store is counted.memory.store

    class OwnBlock(StaticMemoryBlock):
        pass

    memory.memory_blocks.append(OwnBlock(static_content=[TextBlock(text="a")]))
    with pytest.raises(ConfigError, match="OwnBlock cannot be saved"):
        memory.to_dict()
    uri = "postgresql+asyncpg://maya:secret@host/chats"
    with pytest.raises(ConfigError, match="password"):
        WriteThroughMemory.from_defaults(async_database_uri=uri).to_dict()


class GoneMapping(Mapping[str, Any]):
    """A mapping whose items cannot be read."""

    def __getitem__(self, key: str) -> Any:
        raise OSError("the file is gone")

    def __iter__(self) -> Iterator[str]:
        return iter(["config", "written"])

    def __len__(self) -> int:
        return 2


@pytest.mark.parametrize("data", [GoneMapping(), {}, {"config": None}, ["config", "written"], None])
@pytest.mark.parametrize("owner", [Mem0MemoryBlock, WriteThroughMemory])
def test_data_that_was_not_saved_is_refused(owner: Any, data: Any) -> None:
    with pytest.raises(ConfigError, match="that to_dict returned"):
        owner.from_dict(data)


def test_what_makes_no_sense_is_refused(counted: Counted) -> None:
    with pytest.raises(ScopeError):
        Mem0MemoryBlock(counted.memory)
    with pytest.raises(ConfigError, match="missing memory or config"):
        Mem0MemoryBlock(user_id="maya")
    with pytest.raises(ConfigError, match="unexpected keyword argument 'limit'"):
        Mem0MemoryBlock(counted.memory, user_id="maya", limit=3)
