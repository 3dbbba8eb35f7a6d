"""Errors for names that a package or a class does not have, with the nearest name that it has."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any


def missing_name(
    module: str, name: str, known: Collection[str], elsewhere: Mapping[str, str] | None = None
) -> Exception:
    """Return the error for the ``__getattr__`` of a module: ImportError in ``from module import name``.

    Python replaces an AttributeError there by its own error, without a suggestion. Elsewhere it is an AttributeError,
    as `hasattr` requires.

    Args:
        elsewhere: Names that another module has, each with that module.
    """
    caller = sys._getframe(2)
    if name.startswith("_") or caller.f_code.co_name == "_handle_fromlist":  # the import of a submodule probes for it
        return AttributeError(f"module {module!r} has no attribute {name!r}")
    from opcode import opmap

    from mem0_core.domain.suggestions import suggest

    place = (elsewhere or {}).get(name)
    step = f"; write `from {place} import {name}`" if place else suggest(name, sorted(known))
    if caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import {name!r} from {module!r}{step}", name=module)
    return AttributeError(f"module {module!r} has no attribute {name!r}{step}")


class SuggestsMethods:
    """Base of a class whose unknown attributes raise an AttributeError with the nearest public name."""

    if not TYPE_CHECKING:  # a type checker reports unknown attributes itself

        def __getattr__(self, name: str) -> Any:
            owner = type(self).__name__
            if name.startswith("_"):
                raise AttributeError(f"{owner!r} object has no attribute {name!r}")
            from mem0_core.domain.suggestions import suggest

            names = {one for one in dir(type(self)) if not one.startswith("_")}
            names -= {f"a{one}" for one in names}  # the async version of each method
            raise AttributeError(f"{owner!r} object has no attribute {name!r}{suggest(name, sorted(names))}")
