"""Import of libraries that optional extras install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from mem0_core.errors import MissingExtraError


def import_extra(module: str, extra: str) -> Any:
    """Import a library of an optional extra.

    Raises:
        MissingExtraError: the library is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(module.partition(".")[0], extra) from error
