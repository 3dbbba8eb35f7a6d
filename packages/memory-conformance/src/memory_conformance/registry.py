"""Checks by name, and the kit that each check receives."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_conformance.api import Record, Records, System

SUITES = (
    "isolation",
    "reads",
    "idempotence",
    "updates",
    "erasure",
    "filters",
    "paging",
    "ttl",
    "as_of",
    "names",
    "unicode",
    "concurrency",
    "crash",
    "cost",
    "interchange",
)


class CheckError(Exception):
    """A store did not keep a property that a check asks for."""


class InapplicableError(Exception):
    """A check found at run time that it does not apply."""


Factory = Callable[[Path], System]
CheckFunction = Callable[["Kit"], str | None]


@dataclass(frozen=True, slots=True)
class Check:
    """One property of memory stores, and the capabilities that it needs.

    Attributes:
        needs: Verbs and capabilities without which the check cannot run.
        promises: Capabilities without which the check runs, and its result is an observation.
    """

    name: str
    suite: str
    title: str
    needs: frozenset[str]
    promises: frozenset[str]
    function: CheckFunction


CHECKS: dict[str, Check] = {}


def check(suite: str, needs: str, promises: str = "") -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as a check; its name, and the first line of its docstring, describe it."""

    def register(function: CheckFunction) -> CheckFunction:
        title = (function.__doc__ or "").strip().splitlines()[0].rstrip(".")
        name = f"{suite}.{function.__name__}"
        CHECKS[name] = Check(name, suite, title, frozenset(needs.split()), frozenset(promises.split()), function)
        return function

    return register


def load_checks() -> dict[str, Check]:
    """Import all suites and return their checks in order."""
    for suite in SUITES:
        importlib.import_module(f"memory_conformance.checks.{suite}")
    return CHECKS


class Kit:
    """Access of a check to the store under test.

    Args:
        factory: Opens the system in a folder.
        spec: Name by which another process finds the factory.
        root: Folder of all folders of data.
        token: Part of all owner names, so that runs in one database do not meet.
    """

    def __init__(self, factory: Factory, spec: str, root: Path, token: str) -> None:
        self.factory = factory
        self.spec = spec
        self.cache: dict[str, Any] = {}
        self._root = root
        self._token = token
        self._owners = 0
        self._folders = 0
        self._system: System | None = None

    @property
    def folder(self) -> Path:
        """Folder of the current data."""
        return self._root / str(self._folders)

    @property
    def system(self) -> System:
        """The open system."""
        if self._system is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._system = self.factory(self.folder)
        return self._system

    def close(self) -> None:
        """Close the system; the next use opens it again."""
        if self._system is not None:
            system, self._system = self._system, None
            system.close()

    def renew(self) -> None:
        """Close the system, however broken it is, and go on in an empty folder."""
        try:
            self.close()
        except Exception as error:  # noqa: BLE001 a broken store must not end the run
            print(f"close: {type(error).__name__}: {error}", file=sys.stderr)
        self._folders += 1

    def reopen(self) -> System:
        """Close the system and open it in the same folder."""
        self.close()
        return self.system

    def new_owner(self, label: str = "owner") -> str:
        """Return the name of an owner that has no memories."""
        self._owners += 1
        return f"{label}-{self._token}-{self._owners}"

    def add_texts(self, owner: str, texts: Iterable[str]) -> list[str]:
        """Add texts and return their ids."""
        return [self.system.add(owner, text) for text in texts]

    def list_texts(self, owner: str) -> list[str]:
        """Return the texts of an owner, sorted."""
        return read_texts(self.system.list(owner))

    def search_texts(self, owner: str, query: str) -> list[str]:
        """Return the texts that a search finds, best first."""
        return [record.text for record in self.system.search(owner, query)]

    def require(self, owner: str, memory_id: str) -> Record:
        """Return a memory that must exist."""
        record = self.system.get(owner, memory_id)
        expect(record is not None, "get() returned None for a memory that was added")
        assert record is not None
        return record


def read_texts(records: Records) -> list[str]:
    """Return the texts of records, sorted."""
    return sorted(record.text for record in records)


def expect(condition: object, message: str) -> None:
    """Fail the check with the message unless the condition holds."""
    if not condition:
        raise CheckError(message)


def expect_equal(actual: object, expected: object, subject: str) -> None:
    """Fail the check unless two values are equal."""
    if actual != expected:
        raise CheckError(f"{subject}: expected {shorten(expected)}, got {shorten(actual)}")


def shorten(value: object, length: int = 160) -> str:
    """Return the representation of a value, cut to a length."""
    text = ascii(value) if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= length else f"{text[: length - 3]}..."


def is_refused(function: Callable[..., object], *args: object, **keywords: object) -> bool:
    """Return True if a call raises an error."""
    try:
        function(*args, **keywords)
    except Exception:  # noqa: BLE001 any error of the store under test is a refusal
        return True
    return False
