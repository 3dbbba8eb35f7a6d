"""Settings: accepted forms of a value, all wrong keys in one error, immutability."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from mem0_core.config import LimitsConfig
from mem0_core.domain.settings import (
    Settings,
    file_path,
    flag,
    integer,
    key,
    mapping,
    number,
    one_of,
    optional,
    section,
    text,
)
from mem0_core.errors import ConfigError


class Oven(Settings):
    """Settings with a required key, and with keys that depend on each other."""

    ADVICE: ClassVar = {"temp": "write it in degrees"}

    name: str = key(text)
    low: float = key(number(at_least=0, below=300), default=50.0)
    high: float = key(number(above=0, at_most=300), default=250.0)

    @classmethod
    def _find_conflict(cls, values: Mapping[str, Any]) -> str:
        return "low must be below high" if values["low"] >= values["high"] else ""


class Kitchen(Settings):
    oven: Oven | None = key(optional(section(Oven)), default=None)
    cooks: int = key(integer(1, 4), default=2)
    is_open: bool = key(flag, default=False)
    recipes: Path | None = key(optional(file_path), default=None)
    style: Literal["plain", "rich"] = key(one_of("plain", "rich"), default="plain")
    stock: dict[str, Any] = key(mapping("{'flour': 2}"), default_factory=dict)
    chef: Any = key(default=None, is_shown=False)


def test_missing_keys_have_their_defaults() -> None:
    kitchen = Kitchen()
    assert kitchen.to_dict() == {
        "oven": None,
        "cooks": 2,
        "is_open": False,
        "recipes": None,
        "style": "plain",
        "stock": {},
        "chef": None,
    }
    assert kitchen.given_keys == frozenset()
    assert Kitchen().stock is not kitchen.stock


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("cooks", "3", 3),
        ("cooks", " 4 ", 4),
        ("cooks", 3.0, 3),
        ("is_open", "Yes", True),
        ("is_open", "off", False),
        ("is_open", 1, True),
        ("recipes", "books/bread", Path("books/bread")),
        ("oven", {"name": "a", "low": "1.5"}, Oven(name="a", low=1.5)),
        ("oven", Oven(name="a"), Oven(name="a")),
    ],
    ids=str,
)
def test_a_value_is_read_in_the_forms_of_a_configuration_file(name: str, given: Any, read: Any) -> None:
    kitchen = Kitchen(**{name: given})
    assert getattr(kitchen, name) == read
    assert type(getattr(kitchen, name)) is type(read)
    assert kitchen.given_keys == {name}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cooks": 5}, "cooks: the value must be less than or equal to 4, not 5; leave the key out for the default 2"),
        ({"cooks": 1.5}, "cooks: the value must be a valid integer, not 1.5; leave the key out for the default 2"),
        ({"cooks": float("nan")}, "cooks: the value must be a valid integer, not nan; leave the key out for the"),
        ({"cooks": "x"}, "cooks: the value must be a valid integer, not 'x'; leave the key out for the default 2"),
        ({"is_open": "maybe"}, "is_open: the value must be a valid boolean, not 'maybe'; leave the key out for the"),
        ({"recipes": 3}, "recipes: a path is required, as text or Path, not 3; pass, for example, 'data/memory.db'"),
        ({"style": "rihc"}, "style: 'rihc' is not accepted; did you mean 'rich'? (accepted: plain, rich)"),
        ({"stock": [1]}, "stock: a mapping such as {'flour': 2} is required, not [1]; pass one"),
        ({"stock": {1: 2}}, "stock: keys are texts, not 1; write it in quotes"),
        ({"oven": 3}, "oven: a mapping such as {'name': ...} is required, not 3; pass one"),
        ({"oven": {}}, "oven.name: the key is required and missing; add it"),
        ({"oven": {"name": 3}}, "oven.name: the value must be a valid string, not 3; pass such a value"),
        ({"oven": {"name": "a", "low": 300}}, "oven.low: the value must be less than 300, not 300; leave the key"),
        ({"oven": {"name": "a", "high": "inf"}}, "oven.high: the value must be less than or equal to 300, not 'inf'"),
        ({"oven": {"name": "a", "low": 200, "high": 100}}, "oven: low must be below high"),
        ({"oven": {"name": "a", "temp": 1}}, "unknown key 'oven.temp'; accepted: name, low, high; write it in degrees"),
        ({"coks": 3}, "unknown key 'coks'; did you mean 'cooks'? (accepted: oven, cooks, is_open,"),
    ],
    ids=str,
)
def test_an_error_names_the_key_the_value_the_accepted_values_and_the_next_step(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Kitchen(**given)
    assert str(caught.value).startswith(message)


def test_one_error_names_all_wrong_keys() -> None:
    with pytest.raises(ConfigError) as caught:
        Kitchen.parse({"cooks": 0, "oven": {"name": 1, "x": 2}, "y": 3}, label="file: ")
    problems = str(caught.value).split("; file: ")
    assert [problem.split(";")[0].split(": the")[0] for problem in problems] == [
        "file: oven.name",
        "unknown key 'oven.x'",
        "cooks",
        "unknown key 'y'",
    ]


def test_a_copy_has_the_changed_keys_checked() -> None:
    kitchen = Kitchen(oven=Oven(name="a"), chef=object())
    copied = kitchen.replace(cooks="4")
    assert (copied.cooks, kitchen.cooks) == (4, 2)
    assert copied.oven is kitchen.oven
    assert copied.chef is kitchen.chef
    assert copied.given_keys == {"oven", "chef", "cooks"}
    with pytest.raises(ConfigError, match="cooks: the value must be less"):
        kitchen.replace(cooks=9)
    with pytest.raises(ConfigError, match="low must be below high"):
        Oven(name="a").replace(high=10)


def test_settings_are_immutable() -> None:
    kitchen = Kitchen()
    with pytest.raises(AttributeError, match=r"use replace\(cooks=\.\.\.\)"):
        kitchen.cooks = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="immutable"):
        del kitchen.cooks
    assert kitchen.cooks == 2


def test_settings_compare_by_value_and_show_all_but_hidden_keys() -> None:
    assert Oven(name="a") == Oven(name="a")
    assert Oven(name="a") != Oven(name="b")
    assert repr(Oven(name="a")) == "Oven(name='a', low=50.0, high=250.0)"
    assert "chef" not in repr(Kitchen(chef="Ann"))


def test_settings_can_be_copied_and_pickled() -> None:
    limits = LimitsConfig(messages=3)
    for copied in (copy.copy(limits), copy.deepcopy(limits), pickle.loads(pickle.dumps(limits))):  # noqa: S301
        assert copied == limits
        assert copied.given_keys == {"messages"}


class House(Settings):
    kitchen: Kitchen = key(section(Kitchen), default_factory=Kitchen)
    limits: LimitsConfig = key(section(LimitsConfig), default_factory=LimitsConfig)


def test_default_sections_are_shared_unless_they_have_a_value_that_can_be_changed() -> None:
    one, other = House(), House()
    assert one == other
    assert one.limits is other.limits
    assert one.limits == LimitsConfig()
    one.kitchen.stock["flour"] = 2
    assert other.kitchen.stock == {}
    assert one.limits.replace(messages=1) != other.limits
