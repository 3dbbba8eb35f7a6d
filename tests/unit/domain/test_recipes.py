"""Recipes: by name, by mapping, and refused when invalid."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mem0_core.domain.recipes import HYBRID, MEM0, RECIPES, SIGNALS, Recipe, Weights, resolve_recipe, shortness
from mem0_core.errors import ConfigError


def test_the_named_recipes_are_there() -> None:
    assert set(RECIPES) == {"hybrid", "mem0", "paper", "offline"}
    assert all(resolve_recipe(name) is recipe for name, recipe in RECIPES.items())
    assert MEM0.is_dense_only
    assert not HYBRID.is_dense_only


def test_a_recipe_can_be_made_from_another() -> None:
    made = resolve_recipe(
        {"name": "hybrid", "without": ["date"], "pool": 20, "short": {"bm25": 0.5}, "sources": ["dense"]}
    )
    assert made == dataclasses.replace(
        HYBRID.without("date"),
        pool=20,
        short=dataclasses.replace(HYBRID.short, date=0.0, bm25=0.5),
        sources=("dense",),
    )
    assert resolve_recipe({"name": "mem0", "long": {"bm25": 0.5}}).long == Weights(dense=1.0, bm25=0.5)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("hybird", "hybird"),
        ({"name": "hybrid", "poool": 3}, "poool"),
        ({"short": {"colour": 1.0}}, "colour"),
        ({"without": ["colour"]}, "colour"),
        ({"short": {"dense": 2.0}}, "dense"),
        ({"short": {"dense": "much"}}, "dense"),
        ({"sources": ["web"]}, "web"),
        ({"sources": []}, "sources"),
        ({"pool": 0}, "pool"),
        ({"hops": 9}, "hops"),
        ({"gate": 1.5}, "gate"),
        ({"threshold": -1}, "threshold"),
        (7, "not 7"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(given: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        resolve_recipe(given)


def test_a_signal_can_be_switched_off_for_all_texts() -> None:
    for signal in SIGNALS:
        assert signal not in HYBRID.without(signal).signals


@given(st.floats(1, 100_000))
def test_weights_lie_between_those_of_short_and_long_texts(typical: float) -> None:
    weights = HYBRID.weights(shortness(typical))
    assert HYBRID.long is not None
    for name in SIGNALS:
        ends = sorted((getattr(HYBRID.short, name), getattr(HYBRID.long, name)))
        assert ends[0] - 0.01 <= weights.get(name, 0.0) <= ends[1] + 0.01


def test_turns_of_a_chat_are_short_and_pages_are_long() -> None:
    assert shortness(5) == pytest.approx(1, abs=0.01)
    assert shortness(25) > 0.9
    assert shortness(300) < 0.01
    assert shortness(0) == shortness(1)
    assert shortness(24) == shortness(25)  # one more memory does not change the scores of the others


@given(st.floats(-5, 5))
def test_scores_lie_between_0_and_1(total: float) -> None:
    assert MEM0.score_scale(0.42) == 0.42
    assert -1 <= HYBRID.score_scale(total) <= 1


def test_a_recipe_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        HYBRID.pool = 3  # type: ignore[misc]
    assert isinstance(HYBRID, Recipe)
