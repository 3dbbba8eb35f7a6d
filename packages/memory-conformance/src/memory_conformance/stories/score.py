"""Figures of the answers: shares in percent, by type of question and by language."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memory_conformance.stories.data import LANGUAGES, TYPES, has_answers
from memory_conformance.stories.play import Asked

FIGURES = ("hit@1", "hit@3", "hit@10", "answer@1", "all@5", "stale", "context")
_CHARS_PER_TOKEN = 4


def score(answers: Sequence[Asked]) -> dict[str, Any]:
    """Return the figures of all questions with an answer, and of those without one.

    hit@k: one of the first k texts repeats a gold message or fact, or has the answer and is not stale. answer@1: the
    first text has the answer. all@5: the first five have all parts of it. stale: where something is out of date, a
    stale text ranks above the first right one; lower is better. context: the text for a prompt has the answer.
    """
    rows = [(asked, _measure(asked)) for asked in answers if not asked.question["unanswerable"]]
    groups = (*TYPES[:-1], *LANGUAGES, "all")
    figures = {
        name: _average([row for asked, row in rows if name in (asked.question["type"], asked.language, "all")])
        for name in groups
    }
    contexts = [len(asked.context) for asked in answers if asked.context is not None]
    return {
        "questions": {name: one for name, one in figures.items() if one["questions"]},
        "declined": {
            "unanswerable": _share(asked.declined for asked in answers if asked.question["unanswerable"]),
            "answerable": _share(asked.declined for asked in answers if not asked.question["unanswerable"]),
        },
        "context_tokens": round(sum(contexts) / len(contexts) / _CHARS_PER_TOKEN) if contexts else None,
    }


def _measure(asked: Asked) -> dict[str, bool | None]:
    question = asked.question
    expected, texts = question["answers"], asked.texts
    gold = {*question["gold"], *question["gold_facts"]}
    stale = {*question["stale"], *question["stale_facts"]}
    is_past = question["type"] in ("past", "change")  # "I left the bank for the bakery" says where I worked before
    is_answer = [has_answers(text, expected) for text in texts]
    is_stale = [
        bool(origins & stale) and not (origins & gold) and not (is_past and answers)
        for origins, answers in zip(asked.origins, is_answer, strict=True)
    ]
    is_right = [
        bool(origins & gold) or (answers and not old)
        for origins, answers, old in zip(asked.origins, is_answer, is_stale, strict=True)
    ]
    first_right = is_right.index(True) if True in is_right else len(texts)
    first_stale = is_stale.index(True) if True in is_stale else len(texts) + 1
    parts = " | ".join(texts[: max(5, len(expected))])
    return {
        "hit@1": first_right < min(1, len(texts)),
        "hit@3": first_right < min(3, len(texts)),
        "hit@10": first_right < min(10, len(texts)),
        "answer@1": bool(texts) and is_answer[0],
        "all@5": has_answers(parts, expected),
        "stale": first_stale < first_right if stale else None,
        "context": None if asked.context is None else has_answers(asked.context, expected),
    }


def _average(rows: Sequence[Mapping[str, bool | None]]) -> dict[str, float | None]:
    return {"questions": len(rows), **{name: _share(row[name] for row in rows) for name in FIGURES}}


def _share(values: Iterable[bool | None]) -> float | None:
    """Return the share of True in percent; None without a value."""
    known = [value for value in values if value is not None]
    return round(100 * sum(known) / len(known), 1) if known else None


def render_figures(name: str, figures: Mapping[str, Any]) -> str:
    """Return the figures as a Markdown table and a sentence."""
    rows = [["questions", "number", *FIGURES], ["---", *(["---:"] * (len(FIGURES) + 1))]]
    for group, values in figures["questions"].items():
        cells = ["" if values[figure] is None else f"{values[figure]:.1f}" for figure in FIGURES]
        rows.append([group, str(values["questions"]), *cells])
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    declined = figures["declined"]
    sentence = "It never says that it knows no answer."
    if declined["unanswerable"] is not None:
        sentence = (
            f"It declines {declined['unanswerable']:.1f} % of the unanswerable questions, and"
            f" {declined['answerable']:.1f} % of the others."
        )
    if figures["context_tokens"] is not None:
        sentence += f" Its context has {figures['context_tokens']} tokens."
    return f"{name}\n\n{table}\n{sentence}\n"
