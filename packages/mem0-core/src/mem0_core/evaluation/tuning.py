"""Suggest recipe, floor and budget from one's own questions, by cross-validation.

The utility of a setting for a question is the share of its answering messages that the prompt contains, less the price
of the injected tokens. Settings are searched one after the other: recipe, then floor, then budget. The expected gain
over the current setting is that on questions which the choice has not seen: the transcripts are split into folds (the
questions, if there are few transcripts), and each fold is scored with the setting that the other folds choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from mem0_core.domain.recipes import RECIPES
from mem0_core.evaluation.arms import MemoryArm, Settings
from mem0_core.evaluation.figures import Figure, bootstrap_intervals, measure
from mem0_core.evaluation.questions import Question, digest_key
from mem0_core.evaluation.transcripts import Transcript
from mem0_core.interfaces.maintenance import ProgressCallback

FLOORS: tuple[float | None, ...] = (None, 0.0, 0.2, 0.3, 0.4, 0.5)
BUDGET_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
TOKENS_PER_ANSWER = 20_000
"""Default price: so many injected tokens cost as much as one answer is worth."""
MIN_QUESTIONS = 20
_FOLDS = 5
_MIN_FOLDS = 3  # by transcripts; with fewer, questions are split


class _Scores:
    """Utility, share found and tokens of settings for each question; each is measured once."""

    def __init__(
        self,
        arm: MemoryArm,
        transcripts: Mapping[str, Transcript],
        questions: Sequence[Question],
        tokens_per_answer: float,
        on_progress: ProgressCallback | None,
    ) -> None:
        self._arm, self._transcripts, self._questions = arm, transcripts, questions
        self._price = 1 / tokens_per_answer
        self._known: dict[Settings, Any] = {}
        self._on_progress = on_progress

    def of(self, settings: Settings) -> Any:
        """Return (questions, 3): utility, share found, tokens."""
        if settings not in self._known:
            self._known[settings] = np.array([self._score(question, settings) for question in self._questions])
        return self._known[settings]

    def _score(self, question: Question, settings: Settings) -> tuple[float, float, float]:
        arm = self._arm.with_settings(**asdict(settings))
        values = measure(question, arm.inject(question, self._transcripts[question.transcript]))
        found, tokens = values.get("found", 0.0), values["tokens"]
        if self._on_progress is not None:
            self._on_progress(len(self._known) * len(self._questions), None)
        return found - tokens * self._price, found, tokens


def suggest_settings(
    arm: MemoryArm,
    transcripts: Sequence[Transcript],
    questions: Sequence[Question],
    *,
    recipes: Sequence[str] = tuple(RECIPES),
    tokens_per_answer: float = TOKENS_PER_ANSWER,
    on_progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Suggest settings for a memory.

    Args:
        arm: the memory with its current settings.
        recipes: recipes to try.
        tokens_per_answer: price of tokens, see `TOKENS_PER_ANSWER`.

    Returns:
        ``settings``, None if the current ones should stay; ``gain``, ``found`` and ``tokens``: the expected differences
        with their intervals; ``advice``, a sentence that says it.
    """
    asked = [one for one in questions if one.gold or not one.answerable]
    if sum(bool(one.gold) for one in asked) < MIN_QUESTIONS:
        return _keep_settings(f"fewer than {MIN_QUESTIONS} questions have an answer in the chats", None)
    scores = _Scores(arm, {one.name: one for one in transcripts}, asked, tokens_per_answer, on_progress)
    start = arm.settings
    folds = _split(asked)
    chosen = [_search(scores, start, np.flatnonzero(folds != fold), recipes) for fold in range(_FOLDS)]
    gains = np.zeros((len(asked), 3))
    for fold, settings in enumerate(chosen):
        held = folds == fold
        gains[held] = (scores.of(settings) - scores.of(start))[held]
    expected = _expected(gains)
    best = _search(scores, start, np.arange(len(asked)), recipes)
    if best == start:
        return _keep_settings("no other setting is better on these questions", expected)
    if expected["gain"]["low"] <= 0:
        return _keep_settings("no other setting is reliably better on questions that it was not chosen by", expected)
    return {"settings": asdict(best), **expected, "advice": _describe(best, start, expected)}


def _split(questions: Sequence[Question]) -> Any:
    """Return the fold of each question: whole transcripts, if there are enough of them."""
    names = list(dict.fromkeys(question.transcript for question in questions))
    by_transcript = len(names) >= _MIN_FOLDS
    keys = [question.transcript if by_transcript else question.key for question in questions]
    order = sorted(dict.fromkeys(keys), key=digest_key)
    fold_of = {key: place % _FOLDS for place, key in enumerate(order)}
    return np.array([fold_of[key] for key in keys])


def _search(scores: _Scores, start: Settings, rows: Any, recipes: Sequence[str]) -> Settings:
    """Return the best settings for some questions: first the recipe, then the floor, then the budget."""
    best = start
    best = _choose(scores, best, rows, [replace(best, recipe=recipe) for recipe in recipes])
    best = _choose(scores, best, rows, [replace(best, floor=floor) for floor in FLOORS])
    budgets = [max(1, round(best.max_tokens * factor)) for factor in BUDGET_FACTORS]
    return _choose(scores, best, rows, [replace(best, max_tokens=budget) for budget in budgets])


def _choose(scores: _Scores, current: Settings, rows: Any, others: Sequence[Settings]) -> Settings:
    """Return the setting with the highest utility; the current one, unless another is better."""
    best, most = current, float(scores.of(current)[rows, 0].mean())
    for one in others:
        utility = float(scores.of(one)[rows, 0].mean())
        if utility > most + _MIN_GAIN:
            best, most = one, utility
    return best


_MIN_GAIN = 0.002  # smaller gains are noise of any set of questions


def _expected(gains: Any) -> dict[str, dict[str, float]]:
    means, bounds = gains.mean(axis=0).tolist(), bootstrap_intervals(gains)
    return {
        name: Figure(mean, *bound, len(gains)).as_dict()
        for name, mean, bound in zip(("gain", "found", "tokens"), means, bounds, strict=True)
    }


def _keep_settings(reason: str, expected: Mapping[str, Any] | None) -> dict[str, Any]:
    advice = f"Keep the current settings: {reason}."
    if expected is not None:
        advice += f" Expected gain of the best other one: {_span(expected['gain'])}."
    return {"settings": None, **(expected or {}), "advice": advice}


def _describe(best: Settings, start: Settings, expected: Mapping[str, Any]) -> str:
    words = {"recipe": "recipe", "floor": "threshold", "max_tokens": "max_tokens"}
    changes = [
        f"{word}={getattr(best, name)!r}" for name, word in words.items() if getattr(best, name) != getattr(start, name)
    ]
    tokens = expected["tokens"]
    span = f"{tokens['value']:+,.0f} ({tokens['low']:+,.0f} to {tokens['high']:+,.0f})"
    return (
        f"Use {', '.join(changes)}. Expected on other questions: utility {_span(expected['gain'])}; messages found"
        f" {_span(expected['found'])}; tokens {span}."
    )


def _span(figure: Mapping[str, float]) -> str:
    low, high = 100 * figure["low"], 100 * figure["high"]
    return f"{100 * figure['value']:+.1f} points ({low:+.1f} to {high:+.1f})"
