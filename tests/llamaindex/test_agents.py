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
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse, MessageRole, ToolCallBlock
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from llama_index.core.workflow import Context

from mem0_core import ConfigError
from mem0_llamaindex import Mem0Memory

from .conftest import Counted


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
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya")

    await made.agent.run("Make the tea I prefer.", memory=memory)
    assert counted.taken() == {"recalls": 1, "remembers": 1}
    assert len(made.prompts) == 2  # before the tool, and after it
    for prompt in made.prompts:
        assert sum("Maya prefers oolong." in str(message.content) for message in prompt) == 1
    assert sum(message.content == "Make the tea I prefer." for message in made.prompts[-1]) == 1
    assert counted.texts(user_id="maya") == ["Maya prefers oolong.", "Make the tea I prefer.", "Here it is."]
    assert [message.role.value for message in memory.get_all()] == ["user", "assistant", "tool", "assistant"]

    await made.agent.run("Make another.", memory=memory)
    assert counted.taken() == {"recalls": 1, "remembers": 1}
    assert made.shown.count("Make the tea I prefer.") == 1


async def test_two_agents_at_once(counted: Counted) -> None:
    async def turn(user: str) -> str:
        made = Agent()
        await made.agent.run(f"{user} wants tea.", memory=Mem0Memory.from_defaults(counted.memory, user_id=user))
        await made.agent.run("Who wants tea?", memory=Mem0Memory.from_defaults(counted.memory, user_id=user))
        return made.shown

    for user, prompt in zip(("ana", "ben"), await asyncio.gather(turn("ana"), turn("ben")), strict=True):
        assert [name for name in ("ana", "ben") if f"{name} wants tea." in prompt] == [user]


async def test_the_state_an_agent_writes_into_its_prompt_is_not_remembered(counted: Counted) -> None:
    made = Agent(initial_state={"mood": "calm"})
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya")
    await made.agent.run("Make tea.", memory=memory)
    assert "calm" in made.shown
    assert counted.texts(user_id="maya") == ["Make tea.", "Here it is."]
    assert memory.get_all()[0].content == "Make tea."


async def test_a_tool_that_edits_the_state_does_not_fork_the_conversation(counted: Counted) -> None:
    async def note(ctx: Any, tea: str) -> str:
        """Note a wish."""
        async with ctx.store.edit_state() as state:
            state["wish"] = tea
        return "noted"

    note.__annotations__["ctx"] = Context  # LlamaIndex reads no annotation that is a string
    made = Agent(tool="note", tools=[note])
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya")
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
    memory = Mem0Memory.from_defaults(counted.memory, user_id="maya")
    await team.run("Make the tea I prefer.", memory=memory)
    assert counted.taken() == {"recalls": 1, "remembers": 1}
    assert "Maya prefers oolong." in host.shown
    assert "Maya prefers oolong." in cook.shown
    assert counted.texts(user_id="maya")[1:] == ["Make the tea I prefer.", "Here it is."]


async def test_a_react_agent_is_told_and_its_reasoning_is_not_remembered(counted: Counted) -> None:
    prompts: list[str] = []

    class Thinker(MockLLM):
        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
            prompts.append(prompt)
            if "Observation" in prompt.rpartition("Current Conversation")[2]:
                return CompletionResponse(text="Thought: I can answer.\nAnswer: Here it is.")
            return CompletionResponse(text='Thought: I brew.\nAction: brew\nAction Input: {"tea": "oolong"}')

    counted.memory.add("Maya prefers oolong.", user_id="maya")
    counted.taken()
    # Without a system prompt a ReActAgent drops the first system message, whichever memory it is from.
    agent = ReActAgent(tools=[brew], llm=Thinker(max_tokens=None), streaming=False, system_prompt="You serve tea.")
    await agent.run("Make the tea I prefer.", memory=Mem0Memory.from_defaults(counted.memory, user_id="maya"))
    assert counted.taken() == {"recalls": 1, "remembers": 1}
    assert ["Maya prefers oolong." in prompt for prompt in prompts] == [True, True]
    assert counted.texts(user_id="maya")[1:] == ["Make the tea I prefer.", "Here it is."]


# --- a Context, saved and restored -------------------------------------------------------------------------------


def config_in(folder: Path) -> dict[str, Any]:
    return {"path": str(folder), "embedder": {"provider": "hash", "config": {"dims": 64}}}


async def test_a_restored_context_goes_on_with_the_same_memory(tmp_path: Path) -> None:
    made = Agent()
    memory = Mem0Memory.from_config(config_in(tmp_path), user_id="maya", k=3)
    ctx = Context(made.agent)
    await made.agent.run("I prefer oolong.", memory=memory, ctx=ctx)
    saved = json.dumps(ctx.to_dict())
    memory.long_term.close()

    again = Agent()
    restored = Context.from_dict(again.agent, json.loads(saved))
    await again.agent.run("Which tea do I prefer?", ctx=restored)
    assert again.shown.startswith("I prefer oolong.")  # the short-term messages
    kept: Mem0Memory = await restored.store.get("memory")
    assert (kept.user_id, kept.k, len(kept.get_all())) == ("maya", 3, 8)
    texts = [item["memory"] for item in kept.long_term.get_all(user_id="maya")["results"]]
    assert texts == ["I prefer oolong.", "Here it is.", "Which tea do I prefer?"]
    kept.long_term.close()


async def test_a_context_restored_in_another_process(tmp_path: Path) -> None:
    made = Agent()
    memory = Mem0Memory.from_config(config_in(tmp_path / "data"), user_id="maya")
    ctx = Context(made.agent)
    await made.agent.run("I prefer oolong.", memory=memory, ctx=ctx)
    memory.long_term.close()
    (tmp_path / "context.json").write_text(json.dumps(ctx.to_dict()), encoding="utf-8")
    program = """if True:
        import asyncio, json, sys
        from llama_index.core.agent.workflow import FunctionAgent
        from llama_index.core.llms.mock import MockFunctionCallingLLM
        from llama_index.core.workflow import Context
        from mem0_llamaindex import Mem0Memory

        async def main():
            agent = FunctionAgent(llm=MockFunctionCallingLLM())
            ctx = Context.from_dict(agent, json.load(open(sys.argv[1])))
            memory = await ctx.store.get("memory")
            memory.reset()
            print(memory.get("Which tea do I prefer?")[0].content)

        asyncio.run(main())
    """
    command = [sys.executable, "-c", program, str(tmp_path / "context.json")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert '"I prefer oolong."' in printed


async def test_a_turn_under_way_is_saved_and_remembered_when_it_ends(tmp_path: Path) -> None:
    memory = Mem0Memory.from_config(config_in(tmp_path), user_id="maya")
    await memory.aput(ChatMessage(role="user", content="I prefer oolong."))
    memory.long_term.close()
    restored = Mem0Memory.from_dict(json.loads(json.dumps(memory.to_dict())))
    await restored.aput(ChatMessage(role="assistant", content="Noted."))
    texts = [item["memory"] for item in restored.long_term.get_all(user_id="maya")["results"]]
    assert texts == ["I prefer oolong.", "Noted."]
    restored.long_term.close()


async def test_a_live_memory_is_missing_after_a_round_trip_and_can_be_bound(counted: Counted) -> None:
    made = Agent()
    ctx = Context(made.agent)
    await made.agent.run("I prefer oolong.", ctx=ctx, memory=Mem0Memory.from_defaults(counted.memory, user_id="maya"))
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
    assert counted.texts(user_id="maya") == ["I prefer oolong.", "Here it is.", "Which tea?"]
