"""The decorator of the package's dataclasses behaves like the standard one."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import typing
from typing import Any

import pytest

from mem0_core._system.records import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: int = 2
    tags: list[str] = dataclasses.field(default_factory=list)
    row: int | None = dataclasses.field(default=None, compare=False)
    key: str = dataclasses.field(default="", repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class StandardPoint:
    """The same by the standard library."""

    x: int
    y: int = 2
    tags: list[str] = dataclasses.field(default_factory=list)
    row: int | None = dataclasses.field(default=None, compare=False)
    key: str = dataclasses.field(default="", repr=False)


@dataclass(slots=True)
class Counter:
    """A counter, which may change."""

    count: int = 0
    default: int = 1

    def __post_init__(self) -> None:
        self.count += self.default


@dataclass(frozen=True)
class Labeled:
    """Equal to everything with the same first letter; it has no slots."""

    label: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labeled) and other.label[0] == self.label[0]


@dataclass(frozen=True)
class Empty: ...


@dataclass(eq=False, slots=True)
class Token:
    """Equal to itself only."""

    text: str


def test_a_record_has_the_signature_fields_and_text_of_the_standard_one() -> None:
    ours, standard = Point(1, key="k"), StandardPoint(1, key="k")
    assert repr(ours) == repr(standard).removeprefix("Standard")
    assert dataclasses.asdict(ours) == dataclasses.asdict(standard)
    assert Point.__match_args__ == StandardPoint.__match_args__
    parameters = list(inspect.signature(Point).parameters.values())
    wanted = list(inspect.signature(StandardPoint).parameters.values())
    assert [one.replace(default=None) for one in parameters] == [one.replace(default=None) for one in wanted]
    assert typing.get_type_hints(Point.__init__) == typing.get_type_hints(StandardPoint.__init__)
    assert repr(Empty()) == "Empty()"


def test_records_are_compared_and_hashed_by_their_values() -> None:
    first, second = Point(1, 2, (), row=1), Point(1, 2, (), row=2)  # type: ignore[arg-type]
    assert first == second
    assert hash(first) == hash(second)
    assert first != Point(2)
    assert Counter(1) == Counter(1)
    assert Token("a") != Token("a")
    assert Labeled("ab") == Labeled("ac")
    assert Empty() == Empty()
    assert Point(1) != StandardPoint(1)  # type: ignore[comparison-overlap]
    with pytest.raises(TypeError):
        hash(Counter())
    assert len({Token("a"), Token("a")}) == 2


def test_each_record_gets_a_default_value_of_its_own() -> None:
    first, second = Point(1), Point(1)
    first.tags.append("a")
    assert second.tags == []
    assert Counter(2).count == 3


def test_a_frozen_record_cannot_change() -> None:
    point: Any = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert dataclasses.replace(point, x=3) == Point(3)


def test_records_are_pickled_and_copied() -> None:
    for record in (Point(1, tags=["a"]), Counter(4), Labeled("ab"), Token("a")):
        for copied in (pickle.loads(pickle.dumps(record)), copy.deepcopy(record), copy.copy(record)):  # noqa: S301
            assert repr(copied) == repr(record)


def test_wrong_arguments_are_refused_as_in_any_function() -> None:
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        Point(1, z=1)  # type: ignore[call-arg]


def test_a_field_that_is_no_parameter_is_refused() -> None:
    @dataclass(slots=True)
    class Derived:
        """Has a field without parameter."""

        size: int = dataclasses.field(default=0, init=False)

    with pytest.raises(TypeError, match=r"Derived\.size"):
        Derived()
