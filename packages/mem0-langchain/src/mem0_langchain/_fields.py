"""Errors for constructor arguments of pydantic classes, which ignore unknown ones otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, model_validator

from mem0_core.domain.suggestions import describe_value, suggest
from mem0_core.errors import ArgumentError

__all__ = ["KnownFields"]


class KnownFields(BaseModel):
    """Base of classes whose constructor refuses unknown arguments.

    Raises:
        ArgumentError: An argument is unknown; names the nearest and all accepted ones.
    """

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: Any) -> Any:
        if isinstance(values, Mapping):
            accepted = {*cls.model_fields, *(one.alias for one in cls.model_fields.values() if one.alias)}
            for name, value in values.items():
                if name not in accepted:
                    raise ArgumentError(
                        f"{cls.__name__}() got an unexpected keyword argument {name!r} ({name}={describe_value(value)})"
                        f"{suggest(str(name), cls.model_fields)}; leave it out, or pass an accepted one"
                    )
        return values
