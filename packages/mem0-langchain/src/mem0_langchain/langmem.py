"""langmem's tools over a memory: its function signatures and its tool arguments, so that prompts need no change.

langmem itself works on `Mem0Store`. These tools work on the memories of conversations instead, which the middleware
recalls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Optional
from uuid import UUID

from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field, create_model
from pydantic_core import to_jsonable_python

from mem0_core import AsyncMemory, ConfigError, InputError, Memory, NotFoundError, QueryError, Scope, ScopeError
from mem0_core.api.options import check_call, unwrap_memory
from mem0_core.domain.records import list_added
from mem0_core.domain.suggestions import describe_value
from mem0_core.flow import Flow, do
from mem0_core.language.prompt_data import escape_line
from mem0_langchain.convert import extract_memories
from mem0_langchain.runs import to_ids
from mem0_langchain.tools import MemoryTool, ToolResult, format_memory, refuse_unknown

__all__ = ["create_manage_memory_tool", "create_search_memory_tool"]

Action = Literal["create", "update", "delete"]
ACTIONS: tuple[Action, ...] = ("create", "update", "delete")

INSTRUCTIONS = (
    "Proactively call this tool when the user asks for something to be remembered, tells something that will matter"
    " later, or says that a memory is wrong."
)


class _NamespacedTool(MemoryTool):
    """Base of both tools: the scope is what a namespace names, or else the run."""

    namespace: tuple[str, ...] = ()

    def _check_arguments(self, given: Mapping[str, Any]) -> None:
        """Leave the arguments to LangChain, as langmem's tools do."""

    def _resolve_scope(self, config: RunnableConfig | None) -> Scope:
        if not self.namespace:
            return super()._resolve_scope(config)
        configurable: Mapping[str, Any] = ensure_config(config).get("configurable") or {}
        fixed = [label for label in self.namespace if not label.startswith("{")]
        named = [_fill_label(label, configurable) for label in self.namespace if label.startswith("{")]
        return Scope(user_id=_join_labels(named), agent_id=_join_labels(fixed))


class ManageMemoryTool(_NamespacedTool):
    """`manage_memory`: create, update or delete a memory."""

    name: str = "manage_memory"
    description: str = ""
    actions: tuple[Action, ...] = ACTIONS

    def _execute(  # type: ignore[override]
        self, scope: Scope, *, content: Any = None, action: Action = "create", id: UUID | None = None
    ) -> Flow[ToolResult]:
        text, metadata = _read_content(content)
        problem = self._find_problem(text, action, id)
        if problem:
            return f"Error: {problem}", {"error": problem}
        try:
            if action == "create":
                return (yield from self._create(scope, text, metadata))
            if (yield from self._get_own_memory(scope, str(id))) is None:
                return refuse_unknown(str(id))
            if action == "delete":
                yield from do(self.memory.delete, str(id), **to_ids(scope))
                return f"Deleted memory {id}", {"id": str(id)}
            yield from do(self.memory.update, str(id), text, metadata=metadata, **to_ids(scope))
            return f"updated memory {id}", {"id": str(id), "memory": text}
        except InputError as error:
            return f"Error: {escape_line(str(error))}", {"error": str(error)}
        except NotFoundError:  # deleted concurrently
            return refuse_unknown(str(id))

    def _find_problem(self, text: str, action: str, id: UUID | None) -> str:
        """Return the reason to refuse the arguments, "" if there is none."""
        if action not in self.actions:
            return f"the action {action!r} is not permitted; use one of {', '.join(self.actions)}."
        if action == "create" and id is not None:
            return "a new memory has no id yet: omit the id."
        if action != "create" and id is None:
            return f"the id of the memory to {action} is missing: search for memories to learn their ids."
        if action != "delete" and not text.strip():
            return f"the content of the memory to {action} is missing."
        return ""

    def _create(self, scope: Scope, text: str, metadata: dict[str, Any] | None) -> Flow[ToolResult]:
        result: Any = yield from do(self.memory.add, text, **to_ids(scope), infer=False, metadata=metadata)
        changes = list_added(result) if isinstance(result, Mapping) else result
        if not changes:
            return "Error: there is nothing in the content that can be kept.", {"error": "nothing to keep"}
        return f"created memory {changes[0]['id']}", changes


class SearchTool(_NamespacedTool):
    """`search_memory` with langmem's arguments."""

    name: str = "search_memory"
    description: str = ""

    def _execute(  # type: ignore[override]
        self,
        scope: Scope,
        *,
        query: str,
        limit: int = 10,
        offset: int = 0,
        filter: dict[str, Any] | None = None,
    ) -> Flow[ToolResult]:
        if not query.strip():
            return "The query is empty: say what to look for.", []
        try:
            found = yield from do(
                self.memory.search, query, **to_ids(scope), limit=limit + offset, filters=filter or None
            )
        except (InputError, QueryError) as error:
            return f"Error: {escape_line(str(error))}", {"error": str(error)}
        memories = extract_memories(found)[offset:]
        return "\n".join(format_memory(memory) for memory in memories) or "Nothing is known about this.", memories


class _SearchArguments(BaseModel):
    query: str = Field(description="What to look for, in plain words.")
    limit: int = Field(10, ge=1, le=100, description="Maximum number of memories.")
    offset: int = Field(0, ge=0, le=1000, description="Number of memories to skip.")
    filter: dict[str, Any] | None = Field(None, description="Conditions on the metadata of memories.")


@check_call
def create_manage_memory_tool(
    namespace: tuple[str, ...] | str = (),
    *,
    memory: Memory | AsyncMemory,
    instructions: str = INSTRUCTIONS,
    schema: Any = str,
    actions_permitted: Sequence[Action] = ACTIONS,
    name: str = "manage_memory",
) -> BaseTool:
    """Return a tool with langmem's arguments ``content``, ``action`` and ``id``.

    Args:
        namespace: labels, as in langmem. Labels in braces, such as ``"{langgraph_user_id}"``, are keys of
            ``configurable``; their values name the user. The other labels name the agent. Without a namespace, the run
            names the owner, as for `memory_tools`.
        memory: a `mem0_core.Memory`.
        instructions: added to the description of the tool.
        schema: the type of ``content``, as in langmem: a pydantic model, a dataclass or a typed dictionary. Such a
            memory has its fields as text, and as JSON in its metadata, under ``content``; ``schema`` names the type.
        actions_permitted: some of ``"create"``, ``"update"`` and ``"delete"``.

    Raises:
        ConfigError: an action or a label is not of this form.
    """
    actions = tuple(actions_permitted)
    if not actions or not set(actions) <= set(ACTIONS):
        raise ConfigError(
            f"actions_permitted must be one or more of {', '.join(ACTIONS)}, not {describe_value(actions_permitted)}"
        )
    description = (
        f"{' or '.join(actions).capitalize()} a memory that persists across conversations. Give the id to update or"
        f" delete a memory, and omit it to create one.\n{instructions}"
    )
    return ManageMemoryTool(
        memory=unwrap_memory(memory),
        namespace=_read_namespace(namespace),
        actions=actions,
        name=name,
        description=description.strip(),
        args_schema=_manage_arguments(actions, schema),
    )


@check_call
def create_search_memory_tool(
    namespace: tuple[str, ...] | str = (),
    *,
    memory: Memory | AsyncMemory,
    instructions: str = "",
    response_format: Literal["content", "content_and_artifact"] = "content",
    name: str = "search_memory",
) -> BaseTool:
    """Return a tool with langmem's arguments ``query``, ``limit``, ``offset`` and ``filter``.

    Args:
        namespace, memory, instructions: as for `create_manage_memory_tool`.
        response_format: accepted as in langmem; the message has the memories as its artifact in both cases.
    """
    description = f"Search long-term memory for what bears on the current conversation.\n{instructions}"
    return SearchTool(
        memory=unwrap_memory(memory),
        namespace=_read_namespace(namespace),
        name=name,
        description=description.strip(),
        args_schema=_SearchArguments,
    )


def _manage_arguments(actions: tuple[Action, ...], schema: Any) -> type[BaseModel]:
    """Return the arguments of the tool, with the permitted actions only."""
    is_text = schema is str
    says = (
        "What the memory says, as one sentence that stands alone." if is_text else "The whole memory, field by field."
    )
    fields: dict[str, Any] = {
        "content": (Optional[schema], Field(None, description=says)),  # noqa: UP045 - a type at run time
        "action": (Literal[actions], Field("create" if "create" in actions else actions[0])),
        "id": (UUID | None, Field(None, description="The id of the memory to update or delete.")),
    }
    return create_model("ManageMemoryArguments", **fields)


def _read_content(content: Any) -> tuple[str, dict[str, Any] | None]:
    """Return the text of a memory, and the metadata of a structured one."""
    if content is None or isinstance(content, str):
        return content or "", None
    value: Any = to_jsonable_python(content, fallback=str)
    if not isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False), {"content": value}
    known = {key: each for key, each in value.items() if each not in (None, "", [], {})}
    text = "; ".join(
        f"{str(key).replace('_', ' ')}: {each if isinstance(each, str) else json.dumps(each, ensure_ascii=False)}"
        for key, each in known.items()
    )
    schema = type(content).__name__
    return text, {"content": dict(value)} | ({} if isinstance(content, dict) else {"schema": schema})


def _read_namespace(namespace: tuple[str, ...] | str) -> tuple[str, ...]:
    labels = (namespace,) if isinstance(namespace, str) else tuple(namespace)
    for label in labels:
        if not isinstance(label, str) or not label.strip("{} "):
            raise ConfigError(
                f"namespace must be labels, not {describe_value(label)}; pass, for example,"
                ' ("memories", "{langgraph_user_id}")'
            )
    return labels


def _fill_label(label: str, configurable: Mapping[str, Any]) -> str:
    key = label.strip("{}")
    value = configurable.get(key)
    if value is None:
        raise ScopeError(
            f"the run names no {key!r}, which the namespace needs; pass config={{'configurable': {{{key!r}: ...}}}}"
        )
    return str(value)


def _join_labels(labels: Sequence[str]) -> str | None:
    """Return labels as one id; several of them stay apart, whatever they contain."""
    if len(labels) < 2:
        return labels[0] if labels else None
    return "/".join(label.replace("%", "%25").replace("/", "%2F") for label in labels)
