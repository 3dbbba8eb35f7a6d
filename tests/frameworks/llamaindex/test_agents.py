"""`Mem0Memory` in LlamaIndex's agents and in a saved and restored Context."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentStream, AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import (
    ChatMessage,
    CompletionResponse,
    CompletionResponseGen,
    MessageRole,
    ToolCallBlock,
)
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from llama_index.core.memory import InsertMethod
from llama_index.core.workflow import Context

from mem0_core import ConfigError
from mem0_llamaindex import Mem0Memory

from .conftest import Counted, texts_of

Runner = FunctionAgent | ReActAgent | AgentWorkflow


def brew(tea: str) -> str:
    """Make tea."""
    return f"{tea} is ready"


class Agent:
    """A function agent that calls one tool before it answers, and what its model was shown."""

    def __init__(
        self,
        *,
        tool: str = "brew",
        arguments: dict[str, Any] | None = None,
        tools: Sequence[Callable[..., Any]] = (brew,),
        **options: Any,
    ) -> None:
        self.prompts: list[list[ChatMessage]] = []
        self._call = ToolCallBlock(tool_call_id="1", tool_name=tool, tool_kwargs=arguments or {"tea": "oolong"})
        llm = MockFunctionCallingLLM(response_generator=self._answer)
        self.agent = FunctionAgent(tools=list(tools), llm=llm, **options)

    def _answer(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatMessage:
        self.prompts.append(list(messages))
        if any(message.role == MessageRole.TOOL for message in messages[-2:]):
            return ChatMessage(role="assistant", content="Here it is.")
        return ChatMessage(role="assistant", blocks=[self._call])

    @property
    def shown(self) -> str:
        return "\n".join(str(message.content) for message in self.prompts[-1])


@pytest.mark.parametrize("streaming", [True, False])
async def test_one_recall_and_one_remember_per_turn(counted: Counted, streaming: bool) -> None:
    counted.memory.add("Maya prefers oolong.", user_id="maya")
    counted.taken()
    made = Agent(streaming=streaming, system_prompt="You serve tea.")
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all")

    await made.agent.run("Make the tea I prefer.", memory=memory)
    assert counted.taken() == {"recalls": 1, "remembers": 1}
    assert len(made.prompts) == 2  # before the tool, and after it
    for prompt in made.prompts:
        assert sum("Maya prefers oolong." in str(message.content) for message in prompt) == 1
    assert sum(message.content == "Make the tea I prefer." for message in made.prompts[-1]) == 1
    assert await counted.texts(user_id="maya") == ["Maya prefers oolong.", "Make the tea I prefer.", "Here it is."]
    assert [message.role.value for message in memory.get_all()] == ["user", "assistant", "tool", "assistant"]

    await made.agent.run("Make another.", memory=memory)
    assert counted.taken() == {"recalls": 1, "remembers": 1}
    assert made.shown.count("Make the tea I prefer.") == 1


class Thinker(MockLLM):
    """A model for a ReActAgent: it calls a tool once, then it answers; `prompts` has what it was shown."""

    prompts: list[str] = Field(default_factory=list)

    def __init__(self) -> None:
        super().__init__(max_tokens=None)

    def _think(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if "Observation" in prompt.rpartition("Current Conversation")[2]:
            return "Thought: I can answer.\nAnswer: Here it is."
        return 'Thought: I brew.\nAction: brew\nAction Input: {"tea": "oolong"}'

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self._think(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        text = self._think(prompt)
        return (CompletionResponse(text=text[:end], delta=text[end - 1]) for end in range(1, len(text) + 1))


def function_agent(streaming: bool) -> tuple[Runner, Callable[[], str]]:
    made = Agent(streaming=streaming, system_prompt="You serve tea.")
    return made.agent, lambda: made.shown


def react_agent(streaming: bool) -> tuple[Runner, Callable[[], str]]:
    llm = Thinker()
    agent = ReActAgent(tools=[brew], llm=llm, streaming=streaming, system_prompt="You serve tea.")
    return agent, lambda: llm.prompts[-1]


def workflow(streaming: bool) -> tuple[Runner, Callable[[], str]]:
    to_cook = {"to_agent": "cook", "reason": "tea"}
    more: dict[str, Any] = {"description": "serves", "streaming": streaming}
    host = Agent(tool="handoff", arguments=to_cook, name="host", can_handoff_to=["cook"], **more)
    cook = Agent(name="cook", **more)
    return AgentWorkflow(agents=[host.agent, cook.agent], root_agent="host"), lambda: cook.shown


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("make", [function_agent, react_agent, workflow])
async def test_users_at_once_are_each_told_their_own(
    counted: Counted, make: Callable[[bool], tuple[Runner, Callable[[], str]]], streaming: bool
) -> None:
    async def turn(user: str) -> str:
        shown = ""
        for said in (f"{user} wants tea.", "Who wants tea?"):
            agent, last_prompt = make(streaming)
            handler = agent.run(said, memory=Mem0Memory.from_defaults(counted.memory, user_id=user, keep="all"))
            tokens = [event.delta async for event in handler.stream_events() if isinstance(event, AgentStream)]
            assert bool(tokens) is streaming
            assert "Here it is." in str(await handler)
            shown = last_prompt()
        return shown

    users = ("ana", "ben", "cleo")
    for user, prompt in zip(users, await asyncio.gather(*map(turn, users)), strict=True):
        assert [name for name in users if f"{name} wants tea." in prompt] == [user]
    assert counted.taken() == {"recalls": 6, "remembers": 6}
    for user in users:
        assert await counted.texts(user_id=user) == [f"{user} wants tea.", "Here it is.", "Who wants tea?"]


async def test_the_state_an_agent_writes_into_its_prompt_is_not_remembered(counted: Counted) -> None:
    made = Agent(initial_state={"mood": "calm"})
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all")
    await made.agent.run("Make tea.", memory=memory)
    assert "calm" in made.shown
    assert await counted.texts(user_id="maya") == ["Make tea.", "Here it is."]
    assert memory.get_all()[0].content == "Make tea."


async def test_a_tool_that_edits_the_state_does_not_fork_the_conversation(counted: Counted) -> None:
    async def note(ctx: Any, tea: str) -> str:
        """Note a wish."""
        async with ctx.store.edit_state() as state:
            state["wish"] = tea
        return "noted"

    note.__annotations__["ctx"] = Context  # LlamaIndex reads no annotation that is a string
    made = Agent(tool="note", tools=[note])
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all")
    await made.agent.run("I want tea.", memory=memory)
    assert "noted" in made.shown
    assert [message.role.value for message in memory.get_all()] == ["user", "assistant", "tool", "assistant"]
    assert counted.taken() == {"recalls": 1, "remembers": 1}


async def test_a_handoff_does_not_end_the_turn(counted: Counted) -> None:
    host = Agent(
        tool="handoff",
        arguments={"to_agent": "cook", "reason": "tea"},
        name="host",
        description="greets",
        can_handoff_to=["cook"],
    )
    cook = Agent(name="cook", description="cooks")
    team = AgentWorkflow(agents=[host.agent, cook.agent], root_agent="host")
    counted.memory.add("Maya prefers oolong.", user_id="maya")
    counted.taken()
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all")
    await team.run("Make the tea I prefer.", memory=memory)
    assert counted.taken() == {"recalls": 1, "remembers": 1}
    assert "Maya prefers oolong." in host.shown
    assert "Maya prefers oolong." in cook.shown
    assert (await counted.texts(user_id="maya"))[1:] == ["Make the tea I prefer.", "Here it is."]


@pytest.mark.parametrize("insert", list(InsertMethod))
async def test_a_react_agent_is_told_and_its_reasoning_is_not_remembered(
    counted: Counted, insert: InsertMethod
) -> None:
    """Without a system prompt a ReActAgent drops the first system message, whichever memory it is from."""
    counted.memory.add("Maya prefers oolong.", user_id="maya")
    counted.taken()
    llm = Thinker()
    prompt: dict[str, Any] = {"system_prompt": "You serve tea."} if insert is InsertMethod.SYSTEM else {}
    agent = ReActAgent(tools=[brew], llm=llm, streaming=False, **prompt)
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all", insert_method=insert)
    await agent.run("Make the tea I prefer.", memory=memory)
    assert counted.taken() == {"recalls": 1, "remembers": 1}
    assert ["Maya prefers oolong." in prompt for prompt in llm.prompts] == [True, True]
    assert (await counted.texts(user_id="maya"))[1:] == ["Make the tea I prefer.", "Here it is."]


# --- a Context, saved and restored -------------------------------------------------------------------------------


def config_in(folder: Path) -> dict[str, Any]:
    return {"path": str(folder), "embedder": {"provider": "hash", "config": {"dims": 64}}}


async def test_a_restored_context_goes_on_with_the_same_memory(tmp_path: Path) -> None:
    made = Agent()
    memory = Mem0Memory.from_config(config_in(tmp_path), user_id="maya", keep="all", k=3)
    ctx = Context(made.agent)
    await made.agent.run("I prefer oolong.", memory=memory, ctx=ctx)
    saved = json.dumps(ctx.to_dict())
    await memory.long_term.aclose()

    again = Agent()
    restored = Context.from_dict(again.agent, json.loads(saved))
    await again.agent.run("Which tea do I prefer?", ctx=restored)
    assert again.shown.startswith("I prefer oolong.")  # the short-term messages
    kept: Mem0Memory = await restored.store.get("memory")
    assert (kept.user_id, kept.k, len(kept.get_all())) == ("maya", 3, 8)
    texts = await texts_of(kept.long_term, user_id="maya")
    assert texts == ["I prefer oolong.", "Here it is.", "Which tea do I prefer?"]
    await kept.long_term.aclose()


async def test_a_context_restored_in_another_process_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another working directory, too; and what the first process had no time to learn, the second learns."""
    monkeypatch.chdir(tmp_path)
    made = Agent()
    config = {**config_in(Path("data")), "background": {"drain": 0}, "graph_store": {"threshold": 0.8}}
    memory = Mem0Memory.from_config(config, user_id="maya", keep="all")
    ctx = Context(made.agent)
    await made.agent.run("I prefer oolong.", memory=memory, ctx=ctx)
    await memory.long_term.aclose()
    (tmp_path / "context.json").write_text(json.dumps(ctx.to_dict()), encoding="utf-8")
    program = """if True:
        import asyncio, json, sys
        from llama_index.core.agent.workflow import FunctionAgent
        from llama_index.core.base.llms.types import ChatMessage
        from llama_index.core.llms.mock import MockFunctionCallingLLM
        from llama_index.core.workflow import Context
        from mem0_llamaindex import Mem0Memory

        def answer(messages, **kwargs):
            print(json.dumps([str(message.content) for message in messages]))
            return ChatMessage(role="assistant", content="Oolong.")

        async def main():
            agent = FunctionAgent(llm=MockFunctionCallingLLM(response_generator=answer))
            ctx = Context.from_dict(agent, json.load(open(sys.argv[1])))
            await agent.run("Which tea do I prefer?", ctx=ctx)
            memory = await ctx.store.get("memory")
            await memory.long_term.aflush()
            print(json.dumps([m["memory"] for m in (await memory.long_term.aget_all(user_id="maya"))["results"]]))
            memory.reset()
            print(json.dumps([memory.get("What do I prefer?")[0].content]))
            await memory.long_term.aclose()

        asyncio.run(main())
    """
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    command = [sys.executable, "-c", program, str(tmp_path / "context.json")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=elsewhere).stdout
    prompt, kept, block = map(json.loads, printed.splitlines())
    assert prompt[:2] == ["I prefer oolong.", "None"]  # the short-term messages, of which the second calls a tool
    assert prompt[-1] == "Which tea do I prefer?"
    assert kept == ["I prefer oolong.", "Here it is.", "Which tea do I prefer?", "Oolong."]
    assert '"I prefer oolong."' in block[0]


def test_memories_restored_in_one_process_share_what_they_open(tmp_path: Path) -> None:
    first = Mem0Memory.from_config(config_in(tmp_path), user_id="maya", keep="all")
    saved = json.loads(json.dumps(first.to_dict()))
    second, third = Mem0Memory.from_dict(saved), Mem0Memory.from_dict(saved)
    assert first.long_term is second.long_term is third.long_term
    first.long_term.close()
    fourth = Mem0Memory.from_dict(saved)
    assert fourth.long_term is not first.long_term  # which is closed
    fourth.long_term.close()


async def test_a_turn_under_way_is_saved_and_remembered_when_it_ends(tmp_path: Path) -> None:
    memory = Mem0Memory.from_config(config_in(tmp_path), user_id="maya", keep="all")
    await memory.aput(ChatMessage(role="user", content="I prefer oolong."))
    await memory.long_term.aclose()
    restored = Mem0Memory.from_dict(json.loads(json.dumps(memory.to_dict())))
    await restored.aput(ChatMessage(role="assistant", content="Noted."))
    texts = await texts_of(restored.long_term, user_id="maya")
    assert texts == ["I prefer oolong.", "Noted."]
    await restored.long_term.aclose()


async def test_a_context_goes_on_with_a_live_memory_in_one_process(counted: Counted) -> None:
    made = Agent()
    ctx = Context(made.agent)
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all")
    await made.agent.run("I prefer oolong.", ctx=ctx, memory=memory)
    await made.agent.run("Which tea?", ctx=ctx)
    restored = Context.from_dict(made.agent, json.loads(json.dumps(ctx.to_dict())))
    await made.agent.run("And coffee?", ctx=restored, memory=memory)
    assert [text for text in await counted.texts(user_id="maya") if text != "Here it is."] == [
        "I prefer oolong.",
        "Which tea?",
        "And coffee?",
    ]


@pytest.mark.usefixtures("forget_live_memories")
async def test_a_live_memory_is_missing_in_another_process_and_can_be_bound(counted: Counted) -> None:
    made = Agent()
    ctx = Context(made.agent)
    await made.agent.run(
        "I prefer oolong.", ctx=ctx, memory=Mem0Memory.from_defaults(counted.memory, user_id="maya", keep="all")
    )
    again = Agent()
    restored = Context.from_dict(again.agent, json.loads(json.dumps(ctx.to_dict())))
    with pytest.raises(ConfigError, match=r"from_config.*bind"):
        await again.agent.run("Which tea?", ctx=restored)
    assert again.prompts == []  # no model was asked behind its back

    restored = Context.from_dict(again.agent, json.loads(json.dumps(ctx.to_dict())))
    kept: Mem0Memory = await restored.store.get("memory")
    kept.bind(counted.memory)
    await restored.store.set("memory", None)  # what a Context holds before a run is written and read once more
    await again.agent.run("Which tea?", ctx=restored, memory=kept)
    assert again.shown.startswith("I prefer oolong.")
    assert await counted.texts(user_id="maya") == ["I prefer oolong.", "Here it is.", "Which tea?"]
