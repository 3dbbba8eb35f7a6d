"""Conversion of foreign exceptions where they would leave a public call or enter from a caller's function.

`call_hook` runs a function of the caller whose result is needed; `guard_hook` one that only observes.
`to_library_error` converts all other exceptions that leave a public call: it names an argument of a wrong type or the
component that failed, and the rest is an `InternalError`. MemoryError and every `BaseException` that is no `Exception`
(KeyboardInterrupt, SystemExit, a cancellation) always pass.
"""

from __future__ import annotations

import functools
import inspect
import logging
import types
import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from typing import Any, Literal, ParamSpec, Protocol, TypeVar, Union

from mem0_core.domain.suggestions import describe_value
from mem0_core.errors import (
    ArgumentError,
    CallbackError,
    InputError,
    InternalError,
    Mem0Error,
    ModelError,
    StoreError,
)

_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")
Owner = TypeVar("Owner", bound=type)

_MODEL_METHODS = frozenset({"complete", "embed", "score", "count_tokens"})
_TEXTS = (str, bytes, bytearray)  # sequences that are no lists of items
_OWN_PACKAGES = ("mem0_core.", "mem0_langchain.", "mem0_llamaindex.")
_MAX_CHECKED_ITEMS = 1_000  # of a list argument, in the search for one of a wrong type


def call_hook(name: str, hook: Callable[..., T], *args: Any) -> T:
    """Call a function that the caller passed as the argument `name`.

    Raises:
        CallbackError: it failed; the cause is chained.
    """
    try:
        return hook(*args)
    except (Mem0Error, MemoryError):
        raise
    except Exception as error:
        raise CallbackError(f"{name} failed: {describe_error(error)}") from error


def guard_hook(name: str, hook: Callable[..., object] | None) -> Callable[..., None] | None:
    """Return an observing function whose errors are logged and change nothing; None for None.

    Raises:
        ArgumentError: it cannot be called.
    """
    if hook is None:
        return None
    if not callable(hook):
        raise ArgumentError(f"{name} must be a function, not {describe_value(hook)}")
    return functools.partial(_run_hook, name, hook)


def _run_hook(name: str, hook: Callable[..., object], *args: Any) -> None:
    try:
        hook(*args)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - a hook only observes
        _log.warning("%s failed, and is ignored", name, exc_info=True)


def convert_errors(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a public function so that only errors of this library leave it."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (Mem0Error, MemoryError):
            raise
        except Exception as error:
            raise _convert_call_error(error, function, args, kwargs) from error

    return call


def aconvert_errors(function: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """`convert_errors` for a coroutine function."""

    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await function(*args, **kwargs)
        except (Mem0Error, MemoryError):
            raise
        except Exception as error:
            raise _convert_call_error(error, function, args, kwargs) from error

    return call


def convert_errors_of(*names: str) -> Callable[[Owner], Owner]:
    """Decorate a class so that only errors of this library leave its methods `names`."""

    def convert(owner: Owner) -> Owner:
        for name in names:
            member = vars(owner)[name]
            if isinstance(member, classmethod):
                setattr(owner, name, classmethod(convert_errors(member.__func__)))
            else:
                wrap = aconvert_errors if inspect.iscoroutinefunction(member) else convert_errors
                setattr(owner, name, wrap(member))
        return owner

    return convert


def _convert_call_error(
    error: Exception, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception:
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return error  # an unknown or a missing argument is Python's own TypeError
    return to_library_error(error, function, bound.arguments)


def to_library_error(error: Exception, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Mem0Error:
    """Return the library's error for an exception that would leave a public function."""
    if isinstance(error, Mem0Error):
        return error
    if isinstance(error, RecursionError):
        return InputError(f"{function.__name__}: the input is nested too deeply")
    if isinstance(error, OSError):
        return StoreError(f"{function.__name__}: {error}")
    if (failed := _find_failed_call(error)) is not None:
        return failed
    with suppress(Exception):  # arguments whose special methods fail
        if (blamed := blame_argument(function, arguments)) is not None:
            return ArgumentError(blamed)
    return InternalError(f"{function.__name__} failed unexpectedly: {describe_error(error)}")


def to_caller_error(error: Exception, caller: types.FrameType | None) -> Mem0Error:
    """Return the library's error for an exception that would leave the public method that runs in `caller`."""
    owner = None if caller is None else caller.f_locals.get("self")
    method = None if caller is None or owner is None else getattr(type(owner), caller.f_code.co_name, None)
    if caller is None or not isinstance(method, types.FunctionType):
        return to_library_error(error, to_caller_error, {})
    return to_library_error(error, method, caller.f_locals)


def _find_failed_call(error: BaseException) -> Mem0Error | None:
    """Return the error of the component whose call raised `error`; None if it was no component of the caller."""
    for frame in _frames(error):
        call = frame.f_locals.get("self") if frame.f_code.co_name == "execute" else frame.f_locals.get("call")
        method = getattr(call, "method", None)
        owner = getattr(method, "__self__", None)
        if owner is None:
            continue
        name = getattr(method, "__name__", "call")
        if name in _MODEL_METHODS:
            return ModelError(f"{type(owner).__name__}.{name} failed: {describe_error(error)}")
        if not f"{type(owner).__module__}.".startswith(_OWN_PACKAGES):
            return StoreError(f"{type(owner).__name__}.{name} failed: {describe_error(error)}")
    return None


def _frames(error: BaseException) -> Iterator[types.FrameType]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def describe_error(error: BaseException) -> str:
    """Return the class and the text of an exception."""
    try:
        return f"{type(error).__name__}: {error}".removesuffix(": ")
    except Exception:  # noqa: BLE001 - an exception of the caller's may not have a text
        return type(error).__name__


# --- Arguments of a wrong type -----------------------------------------------------------------------------------


def blame_argument(function: Callable[..., Any], arguments: Mapping[str, Any]) -> str | None:
    """Return a sentence about the first argument whose value does not match its annotation; None if all match."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):  # an annotation that is imported for type checkers only
        return None
    for name, value in arguments.items():
        if name in hints and not _matches(hints[name], value):
            hint = _name_hint(hints[name])
            return f"{name} must be {hint}, not {describe_value(value)}; pass such a value, or leave {name} out"
    return None


def _matches(hint: Any, value: object) -> bool:
    """Return True if `value` may have the type `hint`; True too for a hint that cannot be checked."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_matches(part, value) for part in parts)
    if origin is Literal:
        return any(value is part or (type(value) is type(part) and value == part) for part in parts)
    if hint is None or hint is types.NoneType:
        return value is None
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if origin is Callable:
        return callable(value)
    return _matches_class(origin or hint, parts, value)


def _matches_class(kind: Any, parts: tuple[Any, ...], value: object) -> bool:
    if typing.is_typeddict(kind):
        return isinstance(value, Mapping)
    if not isinstance(kind, type):
        return True
    if getattr(kind, "_is_protocol", False):
        return all(_has(value, name) for name in _list_members(kind))
    if not isinstance(value, kind):
        return False
    if issubclass(kind, Mapping) or not parts or not issubclass(kind, Iterable) or isinstance(value, _TEXTS):
        return not (isinstance(value, _TEXTS) and parts)
    items = value if isinstance(value, (Sequence, Set)) else ()
    return all(_matches(parts[0], item) for _, item in zip(range(_MAX_CHECKED_ITEMS), items, strict=False))


def _list_members(protocol: type) -> list[str]:
    """Return the public members that a protocol names."""
    owners = [owner for owner in protocol.__mro__ if getattr(owner, "_is_protocol", False) and owner is not Protocol]
    return [name for owner in owners for name in vars(owner) if not name.startswith("_")]


def _has(value: object, name: str) -> bool:
    """Return True if an object has an attribute; False too if its `__getattr__` fails."""
    try:
        return hasattr(value, name)
    except Exception:  # noqa: BLE001 - code of the caller's class
        return False


def _name_hint(hint: Any) -> str:
    parts = typing.get_args(hint)
    if typing.get_origin(hint) in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_name_hint(part) for part in parts))
    if typing.get_origin(hint) is Literal:
        return " or ".join(map(repr, parts))
    if hint is types.NoneType:
        return "None"
    origin = typing.get_origin(hint)
    if parts and isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, Mapping):
        return f"a {origin.__name__} of {_name_hint(parts[0])}"
    return getattr(hint, "__name__", str(hint))
