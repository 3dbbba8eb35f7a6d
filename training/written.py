"""Questions written for this project: over dialogues of its own, over pools of other sources, and over statements.

- ``training/written/*.tsv``: pool, golds and question over a pool of `training.sources`. ``NAME@START`` names the part
  of a pool that begins with unit START: only those units were read for the question.
- ``training/written/*.txt``: dialogues or passages (``# name``, ``@ date``, ``0 Speaker: text``) with their questions
  (``? golds | question``).
- `training.statement_data`: a question for a slot is answered by the messages that state a value of that slot.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from training.statement_data import FOLDER as STATEMENTS
from training.statement_data import Message, read_messages

__all__ = ["FOLDER", "is_valid", "read_written"]

FOLDER = Path(__file__).parent / "written"
PASSAGES = "own_passages"
_VALID_SHARE = 12  # percent of the pools, messages and questions that are kept for validation
_PART_UNITS = {"realmem": 60, "rhelm": 80}
_DEFAULT_PART_UNITS = 220
_TURN = re.compile(r"(\d+) ([^:]+): (.+)")
_QUESTION = re.compile(r"\? ([\d ]+) \| (.+)")
_STATEMENT_POOLS, _STATEMENT_UNITS = {"train": 160, "valid": 6}, 120
_QUESTIONS_PER_SLOT = 2
_ALIKE = tuple(
    frozenset(group.split())
    for group in (
        "works_at works_as teaches",
        "studies studies_at learns",
        "partner engaged_to married_to",
        "plays plays_for hobby runs",
        "likes favorite hobby",
        "dislikes avoids allergic_to diet",
        "owns drives uses",
        "has_condition takes allergic_to",
        "lives_in lives_with is_from",
        "visited plans_trip_to",
        "age birthday",
        "speaks learns is_from",
    )
)
"""Slots whose messages may answer questions for each other: neither golds nor negatives there."""

Entries = tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]
"""Questions, and units by pool, as in the files of a source."""


def read_written(name: str, split: str, data: Path) -> Entries:
    """Return the questions of one split, and the units of its pools.

    Args:
        name: ``statements``, or the name of a file in `FOLDER` without its suffix.
        data: folder of the sources, whose pools the questions of a ``.tsv`` file search.
    """
    if name == "statements":
        return _read_statements(split)
    if (FOLDER / f"{name}.tsv").exists():
        return _read_questions(FOLDER / f"{name}.tsv", split, data)
    return _read_dialogues(FOLDER / f"{name}.txt", split)


def is_valid(key: str) -> bool:
    """Return True for the texts and pools that are kept for validation."""
    return int(hashlib.sha256(key.encode()).hexdigest(), 16) % 100 < _VALID_SHARE


# --- questions over pools of other sources -----------------------------------------------------------------------


def _read_questions(file: Path, split: str, data: Path) -> Entries:
    questions: list[dict[str, Any]] = []
    pools: dict[str, list[dict[str, Any]]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        name, golds, text = line.split("\t")
        pool, _, start = name.partition("@")
        source = pool.partition("-")[0]
        found = _load_pools(data, source).get(pool)
        if found is None or found["split"] != split:
            continue  # the source is not at hand, or the pool is of the other split
        first = int(start or 0)
        size = _PART_UNITS.get(source, _DEFAULT_PART_UNITS) if start else len(found["units"])
        pools.setdefault(name, found["units"][first : first + size])
        gold = sorted({int(one) - first for one in golds.split()})
        questions.append({"question": text, "pool": name, "gold": gold, "split": split})
    return questions, pools


@cache
def _load_pools(data: Path, source: str) -> dict[str, dict[str, Any]]:
    file = data / f"{source}.pools.jsonl.gz"
    if not file.exists():
        return {}
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return {entry["pool"]: entry for entry in map(json.loads, lines)}


# --- dialogues of our own ----------------------------------------------------------------------------------------


def _read_dialogues(file: Path, split: str) -> Entries:
    questions: list[dict[str, Any]] = []
    pools: dict[str, list[dict[str, Any]]] = {}
    name, time = "", ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            name, time = f"{file.stem} {len(pools)} {line[2:]}", ""
            pools[name] = []
        elif line.startswith("@ "):
            time = line[2:].strip()
        elif found := _QUESTION.fullmatch(line):
            gold = sorted({int(one) for one in found[1].split()})
            questions.append({"question": found[2], "pool": name, "gold": gold, "split": split})
        elif found := _TURN.fullmatch(line):
            pools[name].append(_read_turn(file.stem, found, time, len(pools[name])))
        elif line.strip():
            raise ValueError(f"{file.name}: neither a turn nor a question: {line!r}")
    kept = {pool: units for pool, units in pools.items() if is_valid(pool) == (split == "valid")}
    return [one for one in questions if one["pool"] in kept], kept


def _read_turn(source: str, found: re.Match[str], time: str, place: int) -> dict[str, Any]:
    if source == PASSAGES:  # the label is a title, and each passage stands alone
        title, text = found[2], found[3]
        return {"text": text if title in text else f"{title}: {text}", "session": place}
    return {"text": found[3], "speaker": found[2], "session": time, "time": time}


# --- statements --------------------------------------------------------------------------------------------------


def _read_statements(split: str) -> Entries:
    """Return pools of messages of many people, and questions for the slots that they state."""
    messages = [one for one in read_messages() if is_valid(one.text) == (split == "valid")]
    asked = _read_slot_questions(split)
    rng = random.Random(f"statements {split}")
    questions: list[dict[str, Any]] = []
    pools: dict[str, list[dict[str, Any]]] = {}
    for number in range(_STATEMENT_POOLS[split]):
        name = f"statements-{number}"
        drawn = rng.sample(messages, min(_STATEMENT_UNITS, len(messages)))
        pools[name] = [{"text": one.text, "speaker": "user", "session": place} for place, one in enumerate(drawn)]
        questions += _ask_for_slots(name, drawn, asked, split, rng)
    return questions, pools


def _read_slot_questions(split: str) -> dict[str, list[str]]:
    asked: dict[str, list[str]] = {}
    for line in (STATEMENTS / "questions.tsv").read_text(encoding="utf-8").splitlines():
        slot, text = line.split("\t")
        if slot != "none" and is_valid(text) == (split == "valid"):
            asked.setdefault(slot, []).append(text)
    return asked


def _ask_for_slots(
    pool: str, messages: list[Message], asked: dict[str, list[str]], split: str, rng: random.Random
) -> Iterator[dict[str, Any]]:
    for slot, texts in sorted(asked.items()):
        alike = {slot}.union(*(group for group in _ALIKE if slot in group))
        gold = [place for place, one in enumerate(messages) if _states(one, slot)]
        soft = [place for place, one in enumerate(messages) if any(mark.family in alike for mark in one.marks)]
        soft = [place for place in soft if place not in gold]
        for text in rng.sample(texts, min(_QUESTIONS_PER_SLOT, len(texts))) if gold else ():
            yield {"question": text, "pool": pool, "gold": gold, "soft": soft, "split": split}


def _states(message: Message, slot: str) -> bool:
    return any(mark.family == slot and mark.has_value and mark.effect in ("holds", "begins") for mark in message.marks)
