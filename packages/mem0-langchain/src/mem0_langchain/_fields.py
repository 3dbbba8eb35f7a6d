"""Errors for constructor arguments of pydantic classes, which ignore unknown ones otherwise."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from mem0_core import Mem0Error
from mem0_core.domain.suggestions import describe_field, describe_value, suggest
from mem0_core.errors import ArgumentError

__all__ = ["KnownFields"]


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
                raise ArgumentError(
                    f"{owner}() got an unexpected keyword argument {name!r} ({name}={describe_value(value)})"
                    f"{suggest(name, fields)}; leave it out, or pass an accepted one"
                )
        try:
            super().__init__(**values)
        except ValidationError as error:
            problem = error.errors()[0]
            cause = problem.get("ctx", {}).get("error")
            if isinstance(cause, Mem0Error):
                raise cause from error
            listed = f" (accepted: {', '.join(fields)})" if problem["type"] == "missing" else ""
            raise ArgumentError(f"{describe_field(owner, problem)}{listed}") from error
