"""Immutable settings, read from a mapping of keys; ConfigError names every wrong key at once.

A class of settings declares its keys::

    class TraverseConfig(Settings):
        recency: float = key(number(at_least=0, below=1), default=0.1)

This module takes the place of a validation library, the import of which took a third of a short command.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self, TypeVar, dataclass_transform

from mem0_core._system.records import dataclass
from mem0_core.domain.suggestions import describe_value, suggest
from mem0_core.errors import ConfigError

Reader = Callable[[Any], Any]
"""Returns a value in its accepted form; raises `_UnacceptedError`, or a ValueError that says everything itself."""

_MISSING: Any = object()
_NOTHING: Mapping[str, Any] = {}


class _UnacceptedError(ValueError):
    """A value that a key does not accept: texts before and after the value, and a next step without a default."""

    def __init__(self, before: str, after: str = "", step: str = "") -> None:
        super().__init__(before, after, step)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of settings: its reader, and its default value or the function that makes it."""

    read: Reader
    default: Any
    default_factory: Callable[[], Any] | None
    is_shown: bool

    def make_default(self) -> Any:
        factory = self.default_factory
        if factory is None:
            return self.default
        return _make_defaults(factory) if isinstance(factory, type) and issubclass(factory, Settings) else factory()

    def describe(self, error: ValueError, value: Any) -> str:
        """Return the accepted values, the given one and the next step."""
        if not isinstance(error, _UnacceptedError):
            return str(error)
        before, after, step = error.args
        has_plain_default = isinstance(self.default, (str, int, float, bool))
        default = f"; leave the key out for the default {self.default!r}" if has_plain_default else step
        return f"{before}{describe_value(value)}{after}{default}"


def key(
    read: Reader = lambda value: value,
    *,
    default: Any = _MISSING,
    default_factory: Callable[[], Any] | None = None,
    is_shown: bool = True,
) -> Any:
    """Declare a key; it is required without a default.

    Args:
        is_shown: False leaves the value out of the settings' `repr`.
    """
    return Key(read, default, default_factory, is_shown)


@dataclass(frozen=True, slots=True)
class _Problem:
    """A wrong key: its path, and a text that follows it."""

    path: tuple[str, ...]
    text: str
    is_unknown: bool = False

    def below(self, name: str) -> _Problem:
        return _Problem((name, *self.path), self.text, self.is_unknown)

    def __str__(self) -> str:
        name = ".".join(self.path)
        if self.is_unknown:
            return f"unknown key {name!r}{self.text}"
        is_named = self.text.startswith((name, f"unknown key '{name}."))  # readers may name the key already
        return self.text if is_named else f"{name}: {self.text}"


class _WrongKeysError(ValueError):
    def __init__(self, problems: list[_Problem]) -> None:
        super().__init__(problems)
        self.problems = problems


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(key,))
class Settings:
    """Base class of settings. Keys are attributes; a missing one has its default.

    Raises:
        ConfigError: a key is unknown, wrong or missing.
    """

    ADVICE: ClassVar[Mapping[str, str]] = {}
    """Next steps for unknown keys that belong elsewhere."""
    _keys: ClassVar[dict[str, Key]] = {}

    def __init_subclass__(cls) -> None:
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Key)}
        cls._keys = {**cls._keys, **own}
        for name in own:
            delattr(cls, name)

    def __init__(self, **given: Any) -> None:
        self._set(self._read(given), frozenset(given))

    @classmethod
    def parse(cls, given: Mapping[str, Any], *, label: str) -> Self:
        """Return the settings of a mapping.

        Raises:
            ConfigError: a key is unknown, wrong or missing; each problem starts with the label.
        """
        made = cls.__new__(cls)
        made._set(cls._read(given, label=label), frozenset(given))
        return made

    @classmethod
    def list_keys(cls) -> list[str]:
        """Return the names of all keys."""
        return list(cls._keys)

    @property
    def given_keys(self) -> frozenset[str]:
        """Names of the keys that were given; the others have their defaults."""
        found: frozenset[str] = self.__dict__["_given_keys"]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all keys as a mapping, sections included; other objects are not copied."""
        values = {name: getattr(self, name) for name in self._keys}
        return {name: one.to_dict() if isinstance(one, Settings) else one for name, one in values.items()}

    def replace(self, **changes: Any) -> Self:
        """Return a copy with changed keys.

        Raises:
            ConfigError: a changed key is unknown or wrong.
        """
        made = type(self).__new__(type(self))
        made._set(self._read(changes, vars(self)), self.given_keys | changes.keys())
        return made

    def _set(self, values: Mapping[str, Any], given: frozenset[str]) -> None:
        self.__dict__.update(values, _given_keys=given)

    @classmethod
    def _read(cls, given: Mapping[str, Any], kept: Mapping[str, Any] = _NOTHING, *, label: str = "") -> dict[str, Any]:
        """Return all values: those of `given`, then those of `kept`, then the defaults."""
        try:
            return cls._read_keys(given, kept)
        except _WrongKeysError as error:
            problems = error.problems
        raise ConfigError("; ".join(f"{label}{problem}" for problem in problems))  # unchained: it may hold a secret

    @classmethod
    def _read_keys(cls, given: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        problems: list[_Problem] = []
        for name, one in cls._keys.items():
            value = given.get(name, _MISSING)
            try:
                if value is not _MISSING:
                    values[name] = one.read(value)
                else:
                    values[name] = kept[name] if name in kept else one.make_default()
            except _WrongKeysError as error:
                problems += [problem.below(name) for problem in error.problems]
            except ValueError as error:
                problems.append(_Problem((name,), one.describe(error, value)))
            if values.get(name) is _MISSING:
                problems.append(_Problem((name,), "the key is required and missing; add it"))
        for name in given:
            if name not in cls._keys:
                advice = cls.ADVICE.get(name, "rename it, or leave it out")
                hint = suggest(str(name), cls._keys)
                problems.append(_Problem((str(name),), f"{hint}; {advice}", is_unknown=True))
        if not problems and (conflict := cls._find_conflict(values)):
            problems.append(_Problem((), conflict))
        if problems:
            raise _WrongKeysError(problems)
        return values

    @classmethod
    def _find_conflict(cls, values: Mapping[str, Any]) -> str:
        """Return the problem of keys that contradict each other, or an empty text."""
        return ""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable: use replace({name}=...), which returns a copy")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name, one in self._keys.items() if one.is_shown)
        return f"{type(self).__name__}({', '.join(shown)})"


def _make_defaults(section: type[Settings]) -> Settings:
    """Return a section without given keys: one for all, unless it has a default that could be changed."""
    if any(one.default_factory is not None for one in section._keys.values()):
        return section()
    shared = _shared_defaults.get(section)
    if shared is None:
        shared = _shared_defaults[section] = section()
    return shared


_shared_defaults: dict[type[Settings], Settings] = {}


# --- readers -----------------------------------------------------------------------------------------------------

T = TypeVar("T")

_FLAG_WORDS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}


def text(value: Any) -> str:
    """Read a text."""
    if not isinstance(value, str):
        raise _not_a("string")
    return value


def flag(value: Any) -> bool:
    """Read a boolean, also as 0 or 1, or as a word of a configuration file ("yes", "off")."""
    if isinstance(value, str) and (found := _FLAG_WORDS.get(value.casefold())) is not None:
        return found
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return bool(value)
    raise _not_a("boolean")


def file_path(value: Any) -> Path:
    """Read a path."""
    if isinstance(value, (str, os.PathLike)):
        return Path(value)
    raise _UnacceptedError("a path is required, as text or Path, not ", "; pass, for example, 'data/memory.db'")


def integer(at_least: int, at_most: int | None = None) -> Reader:
    """Return the reader of an integer, also as a text or as a number without a fraction."""

    def read(value: Any) -> int:
        found = _parse_number(value)
        if found is None or found % 1 != 0:  # also infinity and NaN, of which the rest is NaN
            raise _not_a("integer")
        _check_bounds(found, at_least=at_least, at_most=at_most)
        return int(found)

    return read


def number(
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Reader:
    """Return the reader of a number, also as a text."""

    def read(value: Any) -> float:
        found = _parse_number(value)
        if found is None:
            raise _not_a("number")
        _check_bounds(found, at_least=at_least, at_most=at_most, above=above, below=below)
        return float(found)

    return read


def one_of(*names: str) -> Reader:
    """Return the reader of one of these names."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise _UnacceptedError("", f" is not accepted{suggest(str(value), names)}")
        return value

    return read


def mapping(example: str) -> Reader:
    """Return the reader of a mapping with text keys.

    Args:
        example: An accepted value, for the error.
    """

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _UnacceptedError(f"a mapping such as {example} is required, not ", "; pass one")
        _check_names(value)
        return dict(value)

    return read


def section(owner: type[Settings], example: str = "") -> Reader:
    """Return the reader of a section: settings of this class, or a mapping of their keys."""

    def read(value: Any) -> Settings:
        if isinstance(value, owner):
            return value
        given = mapping(example or f"{{{owner.list_keys()[0]!r}: ...}}")(value)
        made = owner.__new__(owner)
        made._set(owner._read_keys(given, {}), frozenset(given))
        return made

    return read


def optional(read: Reader) -> Reader:
    """Return a reader that accepts None, too."""
    return lambda value: None if value is None else read(value)


def _not_a(kind: str) -> _UnacceptedError:
    return _UnacceptedError(f"the value must be a valid {kind}, not ", step="; pass such a value")


def _check_names(names: Iterable[object]) -> None:
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"keys are texts, not {describe_value(name)}; write it in quotes")


def _parse_number(value: Any) -> float | None:
    """Return a number, also of a text; None if it is none."""
    if isinstance(value, (int, float)):
        return value
    if not isinstance(value, str) and not hasattr(type(value), "__float__"):
        return None
    for kind in (int, float) if isinstance(value, str) else (float,):
        try:
            found: float = kind(value)
        except (ValueError, TypeError, OverflowError):
            continue
        return found
    return None


def _check_bounds(
    value: float,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> None:
    limits = (
        (at_least, operator.ge, "greater than or equal to"),
        (above, operator.gt, "greater than"),
        (at_most, operator.le, "less than or equal to"),
        (below, operator.lt, "less than"),
    )
    for limit, holds, words in limits:
        if limit is not None and not holds(value, limit):
            raise _UnacceptedError(f"the value must be {words} {limit}, not ", step="; pass such a value")
