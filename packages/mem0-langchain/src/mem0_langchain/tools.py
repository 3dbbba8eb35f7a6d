"""Tools that let an agent manage its own memory: search, answer, save, update, delete, and history.

The owner of the memories comes from the run or from the constructor, never from the model. No argument of a tool names
a user, and an id of another owner's memory is treated as unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field, ValidationError

from mem0_core import AnswerDict, ArgumentError, AsyncMemory, InputError, Memory, MemoryDict, NotFoundError, Scope
from mem0_core.api.options import check_call, unwrap_memory
from mem0_core.domain.records import list_added
from mem0_core.domain.suggestions import describe_field, describe_unknown, describe_value
from mem0_core.flow import Flow, arun, do, run
from mem0_core.language.prompt_data import encode_data, escape_line
from mem0_core.llm.prompts import memory_line
from mem0_langchain._fields import OwnedFields
from mem0_langchain.convert import extract_memories
from mem0_langchain.runs import build_recall_request, to_ids

__all__ = [
    "AnswerQuestionTool",
    "DeleteMemoryTool",
    "MemoryHistoryTool",
    "MemoryTool",
    "SaveMemoryTool",
    "SearchMemoryTool",
    "ToolResult",
    "UpdateMemoryTool",
    "format_memory",
    "memory_tools",
    "refuse_unknown",
]

_MAX_DEPTH = 16  # of nested arguments
_NOT_FOUND_TEMPLATE = "There is no memory with the id {!r}. Search for memories to learn their ids."

ToolResult = tuple[str, Any]
"""Text for the model, and data for programs, as the artifact of the message; never None."""


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


class MemoryTool(OwnedFields, BaseTool):
    """Base of the tools: a memory and its owner; see `mem0_langchain.scope`."""

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"

    def invoke(
        self, input: str | dict[str, Any] | ToolCall, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """Check the arguments, and run the tool.

        Raises:
            ArgumentError: an argument is nested too deeply, or cannot be printed.
        """
        self._check_input(input)
        return super().invoke(input, config, **kwargs)

    async def ainvoke(
        self, input: str | dict[str, Any] | ToolCall, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Any:
        """Async version of `invoke`."""
        self._check_input(input)
        return await super().ainvoke(input, config, **kwargs)

    def _check_input(self, given: object) -> None:
        _check_plain(self.name, given)
        if isinstance(given, dict) and given.get("type") != "tool_call" and not self.handle_validation_error:
            self._check_arguments(given)

    def _check_arguments(self, given: Mapping[str, Any]) -> None:
        """Raise ArgumentError for wrong arguments of a program; LangChain answers a model that gives such."""
        schema: type[BaseModel] = self.tool_call_schema  # type: ignore[assignment]
        try:
            schema.model_validate(given)
        except ValidationError as error:
            fields, first = schema.model_fields, error.errors()[0]
            unknown = [name for name in given if name not in fields] if first["type"] == "missing" else []
            if unknown:  # a misspelled name; other names are ignored
                text = describe_unknown(str(unknown[0]), given[unknown[0]], fields)
                raise ArgumentError(f"{self.name} {text}") from error
            required = [name for name, field in fields.items() if field.is_required()]
            raise ArgumentError(describe_field(self.name, first, required=required)) from error

    def _run(self, *values: Any, config: RunnableConfig, **arguments: Any) -> ToolResult:
        arguments |= self._name_values(values)
        return run(self._execute(self._resolve_scope(config), **arguments))

    async def _arun(self, *values: Any, config: RunnableConfig, **arguments: Any) -> ToolResult:
        arguments |= self._name_values(values)
        return await arun(self._execute(self._resolve_scope(config), **arguments))

    def _name_values(self, values: tuple[Any, ...]) -> dict[str, Any]:
        """Return the value of a call by a bare text, ``tool.invoke("...")``, under the name of its argument.

        Raises:
            ArgumentError: the tool takes several arguments.
        """
        names = list(self.tool_call_schema.model_fields) if values else []  # type: ignore[union-attr]
        if len(names) != len(values):
            raise ArgumentError(f"{self.name} takes a mapping with {', '.join(names)}, not {describe_value(values[0])}")
        return dict(zip(names, values, strict=True))

    def _execute(self, scope: Scope, **arguments: Any) -> Flow[ToolResult]:
        raise NotImplementedError

    def _get_own_memory(self, scope: Scope, memory_id: str) -> Flow[MemoryDict | None]:
        """Return the memory with this id if it belongs to the scope, else None."""
        if not memory_id:
            return None
        memory = yield from do(self.memory.get, memory_id, **to_ids(scope))
        if memory is None or any(memory.get(axis.value) != value for axis, value in scope.ids.items()):
            return None
        return memory


class SearchMemoryTool(MemoryTool):
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
    k: int = Field(default=10, ge=1)
    threshold: float | None = Field(default=None, ge=0, le=1)
    filters: dict[str, Any] | None = None
    recipe: Any = None

    def _execute(self, scope: Scope, *, query: str) -> Flow[ToolResult]:  # type: ignore[override]
        if not query.strip():
            return "The query is empty: say what to look for.", []
        asked = build_recall_request(
            query, scope, k=self.k, threshold=self.threshold, filters=self.filters, recipe=self.recipe
        )
        memories = extract_memories((yield from do(self.memory.search, **asked)))
        return "\n".join(format_memory(memory) for memory in memories) or "Nothing is known about this.", memories


class AnswerQuestionTool(MemoryTool):
    """`answer_question`: return the value that a question asks for, with its dates and the memories that prove it."""

    name: str = "answer_question"
    description: str = (
        "Look up one fact in long-term memory, by a question such as 'Where does my sister work?' or 'Where did I live"
        " in 2021?'. Returns the answer that held at that time as JSON data, or that it is unknown."
    )
    args_schema: Any = _QuestionArguments

    def _execute(self, scope: Scope, *, question: str) -> Flow[ToolResult]:  # type: ignore[override]
        if not question.strip():
            return "The question is empty: ask for one fact.", {"error": "the question is empty"}
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
        return encode_data(known), found


class SaveMemoryTool(MemoryTool):
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
            result: Any = yield from do(
                self.memory.add, text, **to_ids(scope), infer=False, metadata=self.memory_metadata
            )
        except InputError as error:
            return f"Not saved: {escape_line(str(error))}", []
        changes = list_added(result) if isinstance(result, Mapping) else result
        if not changes and not isinstance(result, Mapping):  # version "v1.0" lists no unchanged memories
            return "Not saved: it was known already, or there is nothing in it that can be kept.", []
        if not changes:
            return "Not saved: there is nothing in it that can be kept.", []
        known = "It was known already, with the id" if changes[0]["event"] == "NONE" else "Saved with the id"
        return f"{known} {changes[0]['id']}.", changes


class UpdateMemoryTool(MemoryTool):
    """`update_memory`: replace the text of a memory."""

    name: str = "update_memory"
    description: str = "Correct a memory that is no longer true, or not quite: it then says something else."
    args_schema: Any = _UpdateArguments

    def _execute(self, scope: Scope, *, memory_id: str, text: str) -> Flow[ToolResult]:  # type: ignore[override]
        if (yield from self._get_own_memory(scope, memory_id)) is None:
            return refuse_unknown(memory_id)
        try:
            yield from do(self.memory.update, memory_id, text, **to_ids(scope))
        except InputError as error:
            return f"Not updated: {escape_line(str(error))}", {"id": memory_id, "error": str(error)}
        except NotFoundError:  # deleted concurrently
            return refuse_unknown(memory_id)
        return f"Updated: {memory_id} now says {encode_data(text)}.", {"id": memory_id, "memory": text}


class DeleteMemoryTool(MemoryTool):
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
            return refuse_unknown(memory_id)
        try:
            yield from do(self.memory.delete, memory_id, **to_ids(scope), purge=self.purge)
        except NotFoundError:
            return refuse_unknown(memory_id)
        return f"Deleted: {memory_id}.", {"id": memory_id}


class MemoryHistoryTool(MemoryTool):
    """`memory_history`: list the changes of a memory that still exists."""

    name: str = "memory_history"
    description: str = "Show how a memory came to say what it says: every change of it, oldest first, with its date."
    args_schema: Any = _MemoryIdArguments

    def _execute(self, scope: Scope, *, memory_id: str) -> Flow[ToolResult]:  # type: ignore[override]
        if (yield from self._get_own_memory(scope, memory_id)) is None:
            return _NOT_FOUND_TEMPLATE.format(memory_id), []
        rows = yield from do(self.memory.history, memory_id, **to_ids(scope))
        lines = [
            encode_data(
                {"event": row["event"], "memory": row["new_memory"], "date": row["updated_at"] or row["created_at"]}
            )
            for row in rows
        ]
        return "\n".join(lines), rows


@check_call
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


def _check_plain(name: str, given: object) -> None:
    """Raise ArgumentError for values that LangChain fails to copy and print, which it does before it validates."""
    if not _is_plain(given, _MAX_DEPTH):
        raise ArgumentError(f"{name}: its arguments must be JSON values, at most {_MAX_DEPTH} deep; pass strings")


def _is_plain(value: object, depth: int) -> bool:
    if isinstance(value, dict):
        return bool(depth) and all(_is_plain(one, depth - 1) for pair in value.items() for one in pair)
    if isinstance(value, (list, tuple, set, frozenset)):
        return bool(depth) and all(_is_plain(one, depth - 1) for one in value)
    try:
        repr(value)
    except Exception:  # noqa: BLE001 - an object of the caller
        return False
    return True


def refuse_unknown(memory_id: str) -> ToolResult:
    """Return the answer to an id that the scope does not have."""
    return _NOT_FOUND_TEMPLATE.format(memory_id), {"id": memory_id, "error": "not found"}


def format_memory(memory: MemoryDict) -> str:
    """Return a memory as one line of JSON, with its id."""
    return f'{{"id": {encode_data(memory["id"])}, {memory_line(memory)[1:]}'
