"""Tools that let an agent manage its own memory: search, answer, save, update, delete, and history.

The owner of the memories comes from the run or from the constructor, never from the model. No argument of a tool names
a user, and an id of another owner's memory is treated as unknown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field, field_validator

from mem0_core import AnswerDict, AsyncMemory, InputError, Memory, MemoryDict, NotFoundError, Scope
from mem0_core.flow import Flow, arun, do, run
from mem0_core.llm.prompts import memory_line
from mem0_langchain.convert import extract_memories, unwrap_memory
from mem0_langchain.runs import build_recall_request, to_ids
from mem0_langchain.scope import ScopeAddress, get_run_context

__all__ = [
    "AnswerQuestionTool",
    "DeleteMemoryTool",
    "MemoryHistoryTool",
    "SaveMemoryTool",
    "SearchMemoryTool",
    "UpdateMemoryTool",
    "memory_tools",
]

_NOT_FOUND_TEMPLATE = "There is no memory with the id {!r}. Search for memories to learn their ids."

ToolResult = tuple[str, Any]
"""What the model reads, and beside it (as the message's artifact) what a program does."""


class _QueryArguments(BaseModel):
    query: str = Field(description="What to look for, in plain words.")


class _QuestionArguments(BaseModel):
    question: str = Field(description="A question for one fact, with names or 'my', as the user would ask it.")


class _TextArguments(BaseModel):
    text: str = Field(description="The fact to remember, as one sentence that stands alone.")


class _MemoryIdArguments(BaseModel):
    memory_id: str = Field(description="The id of a memory, as search_memory shows it.")


class _UpdateArguments(_MemoryIdArguments):
    text: str = Field(description="What the memory says from now on, as one sentence that stands alone.")


class _MemoryTool(BaseTool):
    """Base of the tools: a memory and its owner; see `mem0_langchain.scope`."""

    memory: Memory
    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    scope: Scope | None = None
    thread_as_run: bool = False
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    @field_validator("memory", mode="before")
    @classmethod
    def _unwrap_memory(cls, value: Any) -> Any:
        return unwrap_memory(value)

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._build_address()  # reject invalid ids early

    def _run(self, config: RunnableConfig, **arguments: Any) -> ToolResult:
        return run(self._execute(self._resolve_scope(config), **arguments))

    async def _arun(self, config: RunnableConfig, **arguments: Any) -> ToolResult:
        return await arun(self._execute(self._resolve_scope(config), **arguments))

    def _execute(self, scope: Scope, **arguments: Any) -> Flow[ToolResult]:
        raise NotImplementedError

    def _resolve_scope(self, config: RunnableConfig) -> Scope:
        return self._build_address().resolve(ensure_config(config), get_run_context())

    def _build_address(self) -> ScopeAddress:
        return ScopeAddress(
            user_id=self.user_id,
            agent_id=self.agent_id,
            run_id=self.run_id,
            scope=self.scope,
            thread_as_run=self.thread_as_run,
        )

    def _get_own_memory(self, scope: Scope, memory_id: str) -> Flow[MemoryDict | None]:
        """Return the memory with this id if it belongs to the scope, else None."""
        if not memory_id:
            return None
        memory = yield from do(self.memory.get, memory_id)
        if memory is None or any(memory.get(axis.value) != value for axis, value in scope.ids.items()):
            return None
        return memory


class SearchMemoryTool(_MemoryTool):
    """`search_memory`: return the memories nearest to a query.

    Args:
        k: maximum number of memories.
        threshold: minimum score (0 to 1).
        filters: mem0's filters on metadata.
        recipe: the memory's recipe for this search.
    """

    name: str = "search_memory"
    description: str = (
        "Search long-term memory: what is known about the user and what was said in earlier conversations. Returns"
        " memories as data, one JSON object a line, each with its id."
    )
    args_schema: Any = _QueryArguments
    k: int = 10
    threshold: float | None = None
    filters: dict[str, Any] | None = None
    recipe: Any = None

    def _execute(self, scope: Scope, *, query: str) -> Flow[ToolResult]:  # type: ignore[override]
        if not query.strip():
            return "The query is empty: say what to look for.", []
        asked = build_recall_request(
            query, scope, k=self.k, threshold=self.threshold, filters=self.filters, recipe=self.recipe
        )
        memories = extract_memories((yield from do(self.memory.search, **asked)))
        return "\n".join(_format_memory(memory) for memory in memories) or "Nothing is known about this.", memories


class AnswerQuestionTool(_MemoryTool):
    """`answer_question`: return the value that a question asks for, with its dates and the memories that prove it."""

    name: str = "answer_question"
    description: str = (
        "Look up one fact in long-term memory, by a question such as 'Where does my sister work?' or 'Where did I live"
        " in 2021?'. Returns the answer that held at that time as JSON data, or that it is unknown."
    )
    args_schema: Any = _QuestionArguments

    def _execute(self, scope: Scope, *, question: str) -> Flow[ToolResult]:  # type: ignore[override]
        if not question.strip():
            return "The question is empty: ask for one fact.", None
        found: AnswerDict = yield from do(self.memory.answer, question, **to_ids(scope))
        shown: dict[str, Any] = {
            "answer": found["answer"],
            "since": found.get("since", "")[:10],
            "until": found.get("until", "")[:10],
            "confidence": round(found["confidence"], 2),
            "note": found.get("note", ""),
            "memories": [memory["memory"] for memory in found["memories"]],
        }
        known = {key: value for key, value in shown.items() if value or key == "answer"}
        return json.dumps(known, ensure_ascii=False), found


class SaveMemoryTool(_MemoryTool):
    """`save_memory`: store a fact verbatim.

    Args:
        memory_metadata: stored with every memory that it saves.
    """

    name: str = "save_memory"
    description: str = (
        "Save one fact to long-term memory, for later conversations. What is said in the conversation may be remembered"
        " anyway: save what the user asks to be remembered."
    )
    args_schema: Any = _TextArguments
    memory_metadata: dict[str, Any] | None = None

    def _execute(self, scope: Scope, *, text: str) -> Flow[ToolResult]:  # type: ignore[override]
        try:
            result = yield from do(self.memory.add, text, **to_ids(scope), infer=False, metadata=self.memory_metadata)
        except InputError as error:
            return f"Not saved: {error}", []
        changes = result["results"] if isinstance(result, Mapping) else result
        if not changes:
            return "Not saved: there is nothing in it that can be kept.", []
        known = "It was known already, with the id" if changes[0]["event"] == "NONE" else "Saved with the id"
        return f"{known} {changes[0]['id']}.", changes


class UpdateMemoryTool(_MemoryTool):
    """`update_memory`: replace the text of a memory."""

    name: str = "update_memory"
    description: str = "Correct a memory that is no longer true, or not quite: it then says something else."
    args_schema: Any = _UpdateArguments

    def _execute(self, scope: Scope, *, memory_id: str, text: str) -> Flow[ToolResult]:  # type: ignore[override]
        if (yield from self._get_own_memory(scope, memory_id)) is None:
            return _NOT_FOUND_TEMPLATE.format(memory_id), None
        try:
            yield from do(self.memory.update, memory_id, text)
        except InputError as error:
            return f"Not updated: {error}", None
        except NotFoundError:  # deleted concurrently
            return _NOT_FOUND_TEMPLATE.format(memory_id), None
        return f"Updated: {memory_id} now says {text!r}.", {"id": memory_id, "memory": text}


class DeleteMemoryTool(_MemoryTool):
    """`delete_memory`: delete a memory and the messages it came from.

    Args:
        purge: delete its history as well.
    """

    name: str = "delete_memory"
    description: str = "Delete a memory for good, where the user asks for it to be forgotten."
    args_schema: Any = _MemoryIdArguments
    purge: bool = False

    def _execute(self, scope: Scope, *, memory_id: str) -> Flow[ToolResult]:  # type: ignore[override]
        if (yield from self._get_own_memory(scope, memory_id)) is None:
            return _NOT_FOUND_TEMPLATE.format(memory_id), None
        try:
            yield from do(self.memory.delete, memory_id, purge=self.purge)
        except NotFoundError:
            return _NOT_FOUND_TEMPLATE.format(memory_id), None
        return f"Deleted: {memory_id}.", {"id": memory_id}


class MemoryHistoryTool(_MemoryTool):
    """`memory_history`: list the changes of a memory that still exists."""

    name: str = "memory_history"
    description: str = "Show how a memory came to say what it says: every change of it, oldest first, with its date."
    args_schema: Any = _MemoryIdArguments

    def _execute(self, scope: Scope, *, memory_id: str) -> Flow[ToolResult]:  # type: ignore[override]
        if (yield from self._get_own_memory(scope, memory_id)) is None:
            return _NOT_FOUND_TEMPLATE.format(memory_id), []
        rows = yield from do(self.memory.history, memory_id)
        lines = [
            json.dumps(
                {"event": row["event"], "memory": row["new_memory"], "date": row["updated_at"] or row["created_at"]},
                ensure_ascii=False,
            )
            for row in rows
        ]
        return "\n".join(lines), rows


def memory_tools(
    memory: Memory | AsyncMemory,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    run_id: str | None = None,
    scope: Scope | None = None,
    thread_as_run: bool = False,
) -> list[BaseTool]:
    """Return all six tools, for ``create_agent(model, tools=memory_tools(memory))``.

    Args:
        user_id, agent_id, run_id, scope, thread_as_run: owner of the memories, if the same in every run; the
            run's context or ``configurable`` names the rest.
    """
    ids: dict[str, Any] = {
        "user_id": user_id,
        "agent_id": agent_id,
        "run_id": run_id,
        "scope": scope,
        "thread_as_run": thread_as_run,
    }
    kinds = (
        SearchMemoryTool,
        AnswerQuestionTool,
        SaveMemoryTool,
        UpdateMemoryTool,
        DeleteMemoryTool,
        MemoryHistoryTool,
    )
    return [kind(memory=unwrap_memory(memory), **ids) for kind in kinds]


def _format_memory(memory: MemoryDict) -> str:
    return f'{{"id": {json.dumps(memory["id"])}, {memory_line(memory)[1:]}'
