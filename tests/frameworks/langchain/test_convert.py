"""Messages and memories, from one shape to the other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from mem0_core import Memory
from mem0_core.language.messages import parse_messages
from mem0_langchain.convert import extract_question, find_last_turn, format_memory_prompt, to_mem0_messages

CALL: Any = {"name": "look", "args": {}, "id": "1"}
URL = "https://example.org/a.png"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (HumanMessage("Hi."), {"role": "user", "content": "Hi."}),
        (HumanMessage("Hi.", name="Ana"), {"role": "user", "content": "Hi.", "name": "Ana"}),
        (AIMessage("Hello."), {"role": "assistant", "content": "Hello."}),
        (AIMessageChunk(content="Hello."), {"role": "assistant", "content": "Hello."}),
        (AIMessage("Let me look.", tool_calls=[CALL]), {"role": "assistant", "content": "Let me look."}),
        (ChatMessage(content="Hi.", role="user"), {"role": "user", "content": "Hi."}),
        (ChatMessage(content="Hi.", role="critic"), None),
        (AIMessage("", tool_calls=[CALL]), None),
        (AIMessage([{"type": "tool_use", "id": "1", "name": "look", "input": {}}], tool_calls=[CALL]), None),
        (ToolMessage("RAW", tool_call_id="1"), None),
        (FunctionMessage(content="RAW", name="look"), None),
        (SystemMessage("Be brief."), None),
        (HumanMessage(""), None),
        (AIMessage("Transferring back to boss", response_metadata={"__is_handoff_back": True}), None),
        (HumanMessage("A summary.", additional_kwargs={"lc_source": "summarization"}), None),
        (HumanMessage(["Hi", " there."]), {"role": "user", "content": "Hi there."}),
        (
            AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Yes."}]),
            {"role": "assistant", "content": "Yes."},
        ),
        (
            AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "Yes."}]),
            {"role": "assistant", "content": "Yes."},
        ),
        (AIMessage([{"type": "reasoning", "reasoning": "hm"}]), None),
        (
            HumanMessage([{"type": "image_url", "image_url": {"url": URL}}]),
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": URL}}]},
        ),
        (
            HumanMessage([{"type": "text", "text": "My cat."}, {"type": "image", "url": URL}]),
            {
                "role": "user",
                "content": [{"type": "text", "text": "My cat."}, {"type": "image_url", "image_url": {"url": URL}}],
            },
        ),
        (
            HumanMessage([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}]),
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]},
        ),
        (
            HumanMessage([{"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}]),
            {"role": "user", "content": [{"type": "audio"}]},
        ),
        (HumanMessage([{"type": "file", "file_id": "f1"}]), {"role": "user", "content": [{"type": "file"}]}),
        (HumanMessage([{"type": "image", "file_id": "f1"}]), {"role": "user", "content": [{"type": "image"}]}),
        (HumanMessage([{"type": "hologram", "x": 1}]), {"role": "user", "content": [{"type": "hologram"}]}),
    ],
)
def test_what_was_said(message: BaseMessage, expected: dict[str, Any] | None) -> None:
    found = to_mem0_messages([message])
    assert found == ([] if expected is None else [expected])
    if found:
        parse_messages(found)  # mem0 takes it


@pytest.mark.parametrize("content", [[{"no": "type"}], [{"type": "text"}], [{"type": "image"}], [{"type": None}]])
def test_malformed_parts_break_nothing(content: Any) -> None:
    found = to_mem0_messages(
        [HumanMessage.model_construct(content=content, type="human", additional_kwargs={}), HumanMessage("x")]
    )
    assert found[-1] == {"role": "user", "content": "x"}
    parse_messages(found)


U, A, T, S = HumanMessage("u"), AIMessage("a"), ToolMessage("t", tool_call_id="1"), SystemMessage("s")
SUMMARY = HumanMessage("sum", additional_kwargs={"lc_source": "summarization"})


@pytest.mark.parametrize(
    ("messages", "start"),
    [
        ([], 0),
        ([A], 0),
        ([U], 0),
        ([U, A], 0),
        ([U, U, A, T, A], 0),
        ([U, A, U], 2),
        ([S, U, A, U, U, A], 3),
        ([U, A, T], 0),
        ([SUMMARY, U], 1),
        ([SUMMARY, A], 0),
    ],
)
def test_where_the_last_turn_starts(messages: list[BaseMessage], start: int) -> None:
    assert find_last_turn(messages) == start


def test_the_question_is_the_users_text_of_the_last_turn() -> None:
    assert extract_question([HumanMessage("a"), A, HumanMessage("b"), HumanMessage("c"), AIMessage("d")]) == "b\nc"
    assert extract_question([HumanMessage([{"type": "image", "url": URL}])]) == ""
    assert extract_question([A]) == ""


def test_a_prompt_of_memories(memory: Memory) -> None:
    assert format_memory_prompt([]) == ""
    memory.add("Line one\nline two </memories>", user_id="ana", timestamp="2025-05-02")
    shown = format_memory_prompt(memory.search("line", user_id="ana")["results"], introduction="Notes:")
    first, introduction, line, last = shown.split("\n")
    assert (first, introduction, last) == ("<memories>", "Notes:", "</memories>")
    assert json.loads(line) == {"memory": "Line one\nline two </memories>", "from": "user", "date": "2025-05-02"}
    assert "</memories>" not in line
