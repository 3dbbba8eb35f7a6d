"""Run an evaluation: ask every arm every question, and collect the result as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mem0_core.evaluation.arms import Arm, MemoryArm, Outcome
from mem0_core.evaluation.figures import measure, measure_citations, summarize
from mem0_core.evaluation.questions import Question
from mem0_core.evaluation.transcripts import Transcript

RESULT_FORMAT = "mem0-core-eval-1"
_THOUSAND, _MILLION = 1_000, 1_000_000

Judge = Callable[[Question, Outcome], "Mapping[str, Any]"]
"""Answers a question from a prompt and judges the answer: ``correct`` in [0, 1] or None, and the ``reply``."""


def evaluate(
    arms: Sequence[Arm],
    transcripts: Sequence[Transcript],
    questions: Sequence[Question],
    *,
    judge: Judge | None = None,
    price: float | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> dict[str, Any]:
    """Ask every arm every question.

    Args:
        judge: answers the questions with a model. The first arm is the one that lift and harm are relative to.
        price: price of a million input tokens.

    Returns:
        ``arms``: for each its ``figures``, ``kinds`` (figures by kind of question) and one row for each question;
        ``questions`` and ``transcripts``, as counts.
    """
    by_name = {transcript.name: transcript for transcript in transcripts}
    total = len(arms) * len(questions)
    baseline: dict[str, float] = {}
    results: dict[str, Any] = {}
    for number, arm in enumerate(arms):
        rows = []
        for place, question in enumerate(questions):
            row = _ask(arm, question, by_name[question.transcript], judge, price)
            _compare_to_baseline(row, question, baseline, is_baseline=number == 0)
            rows.append(row)
            if on_progress is not None:
                on_progress(number * len(questions) + place + 1, total)
        results[arm.name] = _summarize_arm(arm, rows)
    return {
        "format": RESULT_FORMAT,
        "transcripts": {one.name: len(one.lines) for one in transcripts},
        "questions": dict(Counter(question.kind for question in questions)),
        "arms": results,
    }


def _ask(
    arm: Arm, question: Question, transcript: Transcript, judge: Judge | None, price: float | None
) -> dict[str, Any]:
    outcome = arm.ask(question, transcript)
    values = measure(question, outcome)
    if price is not None:
        values["cost"] = outcome.tokens * price * _THOUSAND / _MILLION
    row: dict[str, Any] = {"question": question.key, "kind": question.kind, "values": values}
    if judge is not None:
        judged = judge(question, outcome)
        row["reply"] = judged["reply"]
        values |= measure_citations(question, outcome, judged["reply"] or "")
        if judged["correct"] is not None:
            values["correct"] = float(judged["correct"])
    return row


def _compare_to_baseline(
    row: dict[str, Any], question: Question, baseline: dict[str, float], *, is_baseline: bool
) -> None:
    correct = row["values"].get("correct")
    if correct is None:
        return
    if is_baseline:
        baseline[question.key] = correct
        return
    without = baseline.get(question.key)
    if without is not None:
        row["values"]["lift"] = float(correct > without)
        row["values"]["harm"] = float(correct < without)


def _summarize_arm(arm: Arm, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    kinds = sorted({row["kind"] for row in rows})
    values = {kind: [row["values"] for row in rows if row["kind"] == kind] for kind in kinds}
    figures = summarize([row["values"] for row in rows])
    for row in rows:
        row["values"] = {name: round(value, 4) for name, value in row["values"].items()}
    return {
        "settings": asdict(arm.settings) if isinstance(arm, MemoryArm) else None,
        "figures": {name: figure.as_dict() for name, figure in figures.items()},
        "kinds": {
            kind: {name: figure.as_dict() for name, figure in summarize(of_kind).items()}
            for kind, of_kind in values.items()
        },
        "rows": rows,
    }
