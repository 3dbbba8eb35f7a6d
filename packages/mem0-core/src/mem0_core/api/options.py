"""Checks of a memory and of the options that adapters keep, and pass to the memory when they run.

A wrong option raises when the adapter is made, with the message that the memory's own method has for it, and under the
name that the caller wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Protocol, TypeVar, cast

from mem0_core.api._arguments import validate_count, validate_threshold
from mem0_core.api._runtime import MemoryRuntime
from mem0_core.api.factory import resolve_component
from mem0_core.components import check_spec
from mem0_core.domain import suggestions
from mem0_core.domain.filters import parse_filters
from mem0_core.domain.missing_names import SuggestsMethods
from mem0_core.domain.recipes import resolve_recipe
from mem0_core.domain.records import Scope
from mem0_core.domain.suggestions import check_list, describe_value, suggest
from mem0_core.errors import ArgumentError, InputError
from mem0_core.ingest.request import KEEP

Owner = TypeVar("Owner", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])
AnyMemory = TypeVar("AnyMemory", bound=MemoryRuntime)
AnyMemory_co = TypeVar("AnyMemory_co", bound=MemoryRuntime, covariant=True)


class _Async(Protocol[AnyMemory_co]):
    """An `AsyncMemory`, which is defined in a higher layer."""

    @property
    def memory(self) -> AnyMemory_co: ...


def unwrap_memory(memory: AnyMemory | _Async[AnyMemory]) -> AnyMemory:
    """Return the `Memory` behind a `Memory` or `AsyncMemory`.

    Raises:
        ArgumentError: it is neither.
    """
    is_async = isinstance(memory, SuggestsMethods) and not isinstance(memory, MemoryRuntime)
    inner: object = getattr(memory, "memory", None) if is_async else memory
    if not isinstance(inner, MemoryRuntime):
        raise ArgumentError(
            f"memory must be a mem0_core.Memory, not {describe_value(memory)}; pass, for example, Memory('data')"
        )
    return cast(AnyMemory, inner)


def check_options(given: Mapping[str, Any]) -> None:
    """Check the options of an adapter by their names; None is an omitted option, and unknown names are ignored.

    Raises:
        InputError, QueryError, ConfigError, ArgumentError: an option has a wrong value.
    """
    for name, value in given.items():
        if value is not None and (check := _CHECKS.get(name)) is not None:
            check(value)


def check_constructor(owner: Owner) -> Owner:
    """Class decorator: a wrong name or option in a call of the constructor raises an error that explains it."""
    suggestions.check_constructor(owner)
    setattr(owner, "__init__", _check_given(vars(owner)["__init__"]))  # noqa: B010 - mypy refuses the assignment
    return owner


def check_call(function: Function) -> Function:
    """Decorator: like `check_constructor`, for a function."""
    checked: Any = _check_given(suggestions.check_call(function))
    return checked  # type: ignore[no-any-return]


def _check_given(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        check_options(given)
        return function(*args, **given)

    return checked


def _check_choice(value: object, name: str, accepted: Sequence[str]) -> None:
    if value not in accepted:
        raise InputError(f"unknown {name} {value!r}{suggest(str(value), accepted)}; pass one of them")


def _check_reranker(value: object) -> None:
    if isinstance(value, (str, Mapping)):
        check_spec("reranker", value)  # its library is imported when it is first used
    else:
        resolve_component("reranker", "score", value)


def _check_scope(value: object) -> None:
    if not isinstance(value, Scope):
        raise ArgumentError(f"scope must be a mem0_core.Scope, not {describe_value(value)}; pass Scope(user_id=...)")


_CHECKS: dict[str, Callable[[Any], object]] = {
    "k": partial(validate_count, name="k", example=10),
    "limit": partial(validate_count, name="limit", minimum=0, example=100),
    "max_tokens": partial(validate_count, name="max_tokens", example=2000),
    "max_pending": partial(validate_count, name="max_pending", minimum=0, example=1000),
    "threshold": validate_threshold,
    "filters": parse_filters,
    "recipe": resolve_recipe,
    "keep": partial(_check_choice, name="keep", accepted=KEEP),
    "on_error": partial(_check_choice, name="on_error", accepted=("raise", "log")),
    "reranker": _check_reranker,
    "scope": _check_scope,
    "fields": partial(check_list, name="fields"),
    "only": partial(check_list, name="only"),
}
