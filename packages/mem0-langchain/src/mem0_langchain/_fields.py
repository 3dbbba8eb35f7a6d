"""Errors for constructor arguments, at once instead of in the first turn."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import RunnableConfig, ensure_config
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from mem0_core import Mem0Error, Memory, Scope
from mem0_core.api.options import check_options, unwrap_memory
from mem0_core.domain.suggestions import describe_field, describe_unknown, describe_value
from mem0_core.errors import ArgumentError
from mem0_langchain.scope import ScopeAddress, get_run_context


class KnownFields(BaseModel):
    """Base of classes whose constructor explains wrong arguments.

    Raises:
        ArgumentError: An argument is unknown, missing, without a name, or has a wrong value.
    """

    def __init__(self, *given: Any, **values: Any) -> None:
        owner, fields = type(self).__name__, type(self).model_fields
        if given:
            name = next((name for name in ("memory", *fields) if name in fields and name not in values), "memory")
            raise ArgumentError(
                f"{owner}() takes no value without a name and got {describe_value(given[0])}; pass it by name, for"
                f" example {name}=... (accepted: {', '.join(fields)})"
            )
        accepted = {*fields, *(one.alias for one in fields.values() if one.alias)}
        for name, value in values.items():
            if name not in accepted:
                raise ArgumentError(f"{owner}() {describe_unknown(name, value, fields)}")
        try:
            super().__init__(**values)
        except ValidationError as error:
            problem = error.errors()[0]
            cause = problem.get("ctx", {}).get("error")
            if isinstance(cause, Mem0Error):
                raise cause from error
            listed = f" (accepted: {', '.join(fields)})" if problem["type"] == "missing" else ""
            raise ArgumentError(f"{describe_field(owner, problem)}{listed}") from error
        check_options({name: getattr(self, name) for name in values if name in fields})


class MemoryFields(KnownFields):
    """Base of components with a memory."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Memory

    @field_validator("memory", mode="before")
    @classmethod
    def _unwrap_memory(cls, value: Any) -> Any:
        return unwrap_memory(value)


class OwnedFields(MemoryFields):
    """Base of components that are called with a config: a memory and its owner; see `mem0_langchain.scope`.

    Raises:
        ScopeError: An id is invalid, or ids exclude each other.
    """

    user_id: str | None = None
    agent_id: str | None = None
    run_id: str | None = None
    scope: Scope | None = None
    thread_as_run: bool = False

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._build_address()  # reject invalid ids early

    def _resolve_scope(self, config: RunnableConfig | None) -> Scope:
        return self._build_address().resolve(ensure_config(config), get_run_context())

    def _build_address(self) -> ScopeAddress:
        return ScopeAddress(
            user_id=self.user_id,
            agent_id=self.agent_id,
            run_id=self.run_id,
            scope=self.scope,
            thread_as_run=self.thread_as_run,
        )
