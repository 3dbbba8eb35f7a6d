"""Messages for unknown names: of arguments, configuration keys, providers and models.

Every such message has the same parts: the name as it was written, the nearest accepted name, and all accepted names.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

from mem0_core.errors import ArgumentError, ConfigError, InputError

Owner = TypeVar("Owner", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])
Advice = Callable[[str], str]

_SECRET_NAME = re.compile(
    r"(?<!messages_)(?<!message_)(?<!memory_)(?<!input_)(?<!output_)key|token(?!s|_|izer)|secret|password|credential",
    re.IGNORECASE,
)

_MAX_VALUE_CHARS = 60
_MAX_LISTED_NAMES = 40
_MIN_SIMILARITY = 0.6
"""Below it, difflib proposes unrelated names, such as 'gemini' for 'gpt-4o-mini'."""

_SYNONYMS = {
    "user": ("user_id",),
    "username": ("user_id",),
    "owner": ("user_id",),
    "customer_id": ("user_id",),
    "agent": ("agent_id",),
    "assistant_id": ("agent_id",),
    "app_id": ("agent_id",),
    "run": ("run_id",),
    "thread_id": ("run_id",),
    "session_id": ("run_id",),
    "conversation_id": ("run_id",),
    "chat_id": ("run_id",),
    "k": ("limit", "top_k"),
    "topk": ("top_k", "k", "limit"),
    "top_k": ("k", "limit"),
    "similarity_top_k": ("k", "limit"),
    "search_msg_limit": ("k",),
    "limit": ("k", "max_tokens"),
    "token_limit": ("max_tokens",),
    "token_budget": ("max_tokens",),
    "session": ("run_id",),
    "n": ("limit",),
    "top_n": ("limit", "top_k"),
    "max_results": ("limit",),
    "hops": ("depth", "hops"),
    "max_depth": ("depth",),
    "max_hops": ("depth", "hops"),
    "uri": ("url",),
    "msgs": ("messages",),
    "n_results": ("limit",),
    "num_results": ("limit",),
    "size": ("limit",),
    "text": ("messages", "data", "query"),
    "content": ("messages", "data"),
    "message": ("messages",),
    "memory": ("messages", "data"),
    "id": ("memory_id",),
    "question": ("query",),
    "q": ("query",),
    "filter": ("filters",),
    "where": ("filters",),
    "min_score": ("threshold",),
    "score_threshold": ("threshold",),
    "date": ("timestamp", "as_of"),
    "time": ("timestamp", "as_of"),
    "expires": ("expiration_date", "ttl"),
    "folder": ("path",),
    "directory": ("path",),
    "dir": ("path",),
    "db": ("store", "path"),
    "database": ("store", "path"),
    "url": ("store", "base_url"),
    "model_name": ("model",),
    "chat_model": ("llm",),
    "embeddings": ("embedder",),
    "embedding": ("embedder",),
    "embedding_model": ("embedder",),
    "vector_index": ("index",),
    "postgres": ("pgvector",),
    "postgresql": ("postgres", "pgvector"),
    "vectorstore": ("index", "vector_store"),
    "graph_store": ("graph",),
    "endpoint": ("base_url",),
    "api_base": ("base_url",),
    "host": ("base_url", "url"),
    "key": ("api_key",),
    "token": ("api_key",),
    "dims": ("embedding_dims",),
    "dimensions": ("embedding_dims",),
    "memoryclient": ("Memory",),
    "asyncmemoryclient": ("AsyncMemory",),
    "mem0compressor": ("Mem0Rerank",),
    "mem0rerank": ("Mem0Compressor",),
    "batch_update": ("update",),
    "batch_delete": ("delete",),
    "delete_users": ("erase",),
    "users": ("stats",),
    "chat": ("answer",),
}
"""Names that other libraries use, each with our names for it, the best first."""


def find_nearest(name: str, known: Collection[str]) -> str | None:
    """Return the accepted name that `name` probably means, or None."""
    from difflib import get_close_matches  # for mistakes only

    folded = name.casefold().replace("-", "_")
    for synonym in _SYNONYMS.get(folded, ()):
        if synonym in known:
            return synonym
    by_key = {one.casefold().replace("-", "_"): one for one in known}
    near = get_close_matches(folded, by_key, n=1, cutoff=_MIN_SIMILARITY)
    return by_key[near[0]] if near else None


def suggest(name: str, known: Iterable[str], *, label: str = "accepted") -> str:
    """Return the end of a message about an unknown name: the nearest accepted name, and all of them."""
    names = list(dict.fromkeys(known))
    near = find_nearest(name, names)
    listed = ", ".join(names[:_MAX_LISTED_NAMES]) + (", ..." if len(names) > _MAX_LISTED_NAMES else "")
    return f"; did you mean {near!r}? ({label}: {listed})" if near else f"; {label}: {listed or 'none'}"


def describe_value(value: object) -> str:
    """Return a value for a message, cut to a readable length."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a broken __repr__ of the caller's class
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _MAX_VALUE_CHARS else f"{text[: _MAX_VALUE_CHARS - 3]}..."


def check_instance(value: object, kind: type, name: str, example: str) -> None:
    """Raise ConfigError unless a value is an instance of a class, for example a model and not its name."""
    if not isinstance(value, kind):
        given = describe_value(value)
        raise ConfigError(
            f"{name} must be an object of the class {kind.__name__}, not {given}; pass, for example, {example}"
        )


def check_list(value: object, name: str) -> None:
    """Raise ArgumentError for a text in the place of a list of texts: each of its letters would count as one text."""
    if isinstance(value, (str, bytes)):
        given = describe_value(value)
        raise ArgumentError(f"{name} must be a list of texts, not {given}; pass {name}=[{given}]")


def describe_misspelled_id(names: Iterable[object], place: str) -> str:
    """Return the end of a message about a missing owner: the name among `names` that probably means an id."""
    for name in names:
        near = find_nearest(name, _IDS) if isinstance(name, str) and name not in _NO_IDS else None
        if near is not None and name not in _IDS:
            return f"; {place} has {name!r}: did you mean {near!r}?"
    return ""


_IDS = ("user_id", "agent_id", "run_id")
_NO_IDS = frozenset({"thread_id", "graph_id", "assistant_id"})
"""Keys of LangGraph's own."""


def describe_unknown(name: str, value: object, accepted: Collection[str], advice: str = "") -> str:
    """Return the end of a message about an unknown argument of a call: its value, the nearest name, the next step."""
    shown = "" if _SECRET_NAME.search(name) else f"={describe_value(value)}"
    step = advice or ("" if find_nearest(name, accepted) else "leave it out, or pass an accepted one")
    hint = suggest(name, accepted)
    return f"got an unexpected keyword argument {name!r} ({name}{shown}){hint}" + (step and f"; {step}")


def check_flag(value: object, name: str) -> None:
    """Raise InputError unless a flag is True or False: texts such as "no" would count as True."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, not {describe_value(value)}; pass {name}=True or {name}=False")


def describe_field(owner: str, problem: Mapping[str, Any], *, required: Collection[str] = ()) -> str:
    """Return a message for an entry of a pydantic error: the field of a class, its value, and the next step."""
    place, given = [*problem["loc"]], describe_value(problem["input"])
    if not place:
        return f"{owner}(): {problem['msg'].removeprefix('Value error, ')}"
    name = ".".join(map(str, place))
    if problem["type"] == "missing":
        return f"{owner}() is missing the required argument {name!r}; pass it by name"
    wanted = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    if problem["type"] != "literal_error":  # its commas separate the accepted values
        wanted = wanted.partition(", ")[0]
    shown = "" if _SECRET_NAME.search(name) else f", not {given}"
    step = "pass such a value" if name in required else f"pass such a value, or leave {name} out"
    return f"{owner}(): {name} {wanted}{shown}; {step}"


# --- calls ---------------------------------------------------------------------------------------------------------


def check_arguments(*, advise: Advice = lambda name: "") -> Callable[[Owner], Owner]:
    """Class decorator: a public method called with wrong argument names raises ArgumentError with the right ones.

    The constructor and class methods are included; methods with ``**keywords`` accept any name. Signatures,
    docstrings and types of the methods do not change.

    Args:
        advise: Returns the next step for an unknown argument of the constructor, or an empty text.
    """

    def check(owner: Owner) -> Owner:
        for name, member in list(vars(owner).items()):
            label = owner.__name__ if name == "__init__" else f"{owner.__name__}.{name}"
            if name == "__init__":
                setattr(owner, name, _check(member, label, 1, advise))
            elif name.startswith("_"):
                continue
            elif inspect.isfunction(member):
                setattr(owner, name, _check(member, label, 1))
            elif isinstance(member, classmethod):
                setattr(owner, name, classmethod(_check(member.__func__, label, 1)))
        return owner

    return check


def check_constructor(owner: Owner) -> Owner:
    """Class decorator: like `check_arguments`, for the constructor alone."""
    setattr(owner, "__init__", _check(vars(owner)["__init__"], owner.__name__, 1))  # noqa: B010 - mypy refuses the assignment
    return owner


def check_inherited(*names: str) -> Callable[[Owner], Owner]:
    """Class decorator: like `check_arguments`, for methods of a framework's base class."""

    def check(owner: Owner) -> Owner:
        for name in names:
            setattr(owner, name, _check(getattr(owner, name), f"{owner.__name__}.{name}", 1))
        return owner

    return check


def check_call(function: Function) -> Function:
    """Decorator: like `check_arguments`, for a function."""
    checked: Any = _check(function, function.__name__, 0)
    return checked  # type: ignore[no-any-return]


def _check(
    function: Callable[..., Any], label: str, bound: int, advise: Advice = lambda name: ""
) -> Callable[..., Any]:
    """Return a function that checks the names of its arguments before it runs.

    Args:
        bound: Number of leading arguments that the caller does not write: 1 for ``self`` or ``cls``.
    """
    code = function.__code__
    if code.co_flags & (inspect.CO_VARKEYWORDS | inspect.CO_VARARGS):
        return function
    positional = code.co_varnames[: code.co_argcount]
    names = frozenset(code.co_varnames[bound : code.co_argcount + code.co_kwonlyargcount])
    required = positional[: len(positional) - len(function.__defaults__ or ())]
    named = _list_required_names(function)
    hints = function.__annotations__.items()
    flags = {name for name, hint in hints if hint in ("bool", "bool | None")}

    def is_wrong(args: Sequence[object], given: dict[str, object]) -> bool:
        if len(args) > len(positional) or not given.keys() <= names or not given.keys() >= named:
            return True
        return len(args) < len(required) and any(name not in given for name in required[len(args) :])

    @wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        if is_wrong(args, given):
            raise ArgumentError(f"{label}() {_describe_mistake(function, args[bound:], given, bound, advise)}")
        for name in flags & given.keys():
            if given[name] is not None or function.__annotations__[name] == "bool":
                check_flag(given[name], name)
        return function(*args, **given)

    return _mark_coroutine_function(checked) if inspect.iscoroutinefunction(function) else checked


def _list_required_names(function: Callable[..., Any]) -> frozenset[str]:
    """Return the arguments that a function requires by name."""
    code = function.__code__
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    return frozenset(by_name) - (function.__kwdefaults__ or {}).keys()


def _mark_coroutine_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns a coroutine, recognized as a coroutine function.

    It is none, so that wrong arguments raise when it is called, as Python's own errors do, and not when it is awaited.
    """
    if sys.version_info >= (3, 12):
        return inspect.markcoroutinefunction(function)
    code = function.__code__
    function.__code__ = code.replace(co_flags=code.co_flags | inspect.CO_COROUTINE)
    return function


def _describe_mistake(
    function: Callable[..., Any], args: Sequence[object], given: dict[str, object], bound: int, advise: Advice
) -> str:
    """Return the mistake of a call: an unknown name, a value too many, or a missing argument."""
    code = function.__code__
    positional = code.co_varnames[bound : code.co_argcount]
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    accepted = [*positional, *by_name]
    for name, value in given.items():
        if name not in accepted:
            return describe_unknown(name, value, accepted, advise(name))
    listed = ", ".join(accepted) or "no argument"
    if len(args) > len(positional):
        extra = describe_value(args[len(positional)])
        advice = f"pass it by name, for example {by_name[0]}={extra}" if by_name else "leave it out"
        takes = f"({', '.join(positional)}) " if positional else ""
        count = "one value" if len(positional) == 1 else f"{len(positional)} values"
        return (
            f"takes {count} without a name {takes}and got {len(args)}: {extra} is one too many; {advice}"
            f" (accepted: {listed})"
        )
    required = positional[: len(positional) - len(function.__defaults__ or ())]
    missing = [name for name in required[len(args) :] if name not in given]
    advice = "pass it first or by name" if missing else "pass it by name"
    missing += [name for name in by_name if name in _list_required_names(function) and name not in given]
    names = ", ".join(map(repr, missing))
    return f"is missing the required argument {names}; {advice} (accepted: {listed})"
