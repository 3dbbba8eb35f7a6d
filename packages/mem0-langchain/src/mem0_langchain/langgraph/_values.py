"""Values of items as JSON: the types that LangGraph's SQL stores serialize too."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import date, datetime, time
from enum import Enum
from typing import Any
from uuid import UUID

from pydantic import BaseModel

_JSON_TYPES = (str, int, float, bool, type(None))


def plain_value(value: Any) -> Any:
    """Return a value made of JSON's types only; unknown types stay as they are.

    Times become ISO 8601, UUIDs text, enumerations their values, dataclasses and pydantic models mappings.
    """
    if type(value) in _JSON_TYPES:
        return value
    if isinstance(value, Mapping):
        return {key: plain_value(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(part) for part in value]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, Enum):
        return plain_value(value.value)
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value
