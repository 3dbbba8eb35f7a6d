"""Life stories: consistent annotations, figures that mean what they say, and the command."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from memory_conformance import Said
from memory_conformance.__main__ import main
from memory_conformance.stories import LANGUAGES, TYPES, find_problems, load_people, play, score
from memory_conformance.systems.mem0_core import Mem0Core
from tests.conformance.dict_store import DictStore

PEOPLE = load_people()
DICT_STORE = f"{Path(__file__).parent / 'dict_store.py'}:DictStore"


def test_the_set_has_24_people_in_three_languages_with_all_types_of_questions() -> None:
    assert len({person["id"] for person in PEOPLE}) == 24
    for language in LANGUAGES:
        people = load_people(languages=[language])
        assert len(people) >= 6
        assert {question["type"] for person in people for question in person["questions"]} == set(TYPES)
    assert len([question for person in PEOPLE for question in person["questions"]]) > 450


@pytest.mark.parametrize("person", PEOPLE, ids=lambda person: person["id"])
def test_the_annotations_of_each_person_are_consistent(person: dict[str, Any]) -> None:
    assert find_problems(person) == []


def answerable(person: dict[str, Any]) -> dict[str, Any]:
    found = next(question for question in person["questions"] if question["type"] == "present")
    assert isinstance(found, dict)
    return found


def swap_times(person: dict[str, Any]) -> None:
    first, second = person["messages"][:2]
    first["time"], second["time"] = second["time"], first["time"]


def end_what_does_not_hold(person: dict[str, Any]) -> None:
    person["messages"][-1]["ends"].append(["nobody", "likes", "nothing"])


CONTRADICTIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "not later than": swap_times,
    "which does not hold": end_what_does_not_hold,
    "differ from what begins": lambda person: person["relations"].pop(),
    "the names differ": lambda person: person["names"].append("Nobody"),
    "exists twice": lambda person: person["messages"][3]["facts"].append(person["messages"][0]["facts"][0]),
    "was not said before": lambda person: person["messages"][0]["facts"][0]["replaces"].append("later"),
    "ended fact x does not exist": lambda person: person["ended_facts"].update(x=3),
    "names a message or fact that does not exist": lambda person: answerable(person)["gold"].append(99),
    "without its answer": lambda person: answerable(person).update(answers=[["nowhere to be found"]]),
    "has no gold or no answers": lambda person: answerable(person).update(gold=[]),
    "has gold that is stale too": lambda person: answerable(person).update(stale=answerable(person)["gold"]),
    "is unanswerable and has an answer": lambda person: answerable(person).update(
        type="unanswerable", unanswerable=True
    ),
    "no question is of the types ['advice']": lambda person: person.update(
        questions=[
            {**question, "id": f"{person['id']}-{number}"}
            for number, question in enumerate(one for one in person["questions"] if one["type"] != "advice")
        ]
    ),
    "is not in the schema": lambda person: person["messages"][0].pop("facts"),
}  # fmt: skip


@pytest.mark.parametrize("problem", CONTRADICTIONS)
def test_each_contradiction_is_found_and_named(problem: str) -> None:
    person = copy.deepcopy(PEOPLE[0])
    CONTRADICTIONS[problem](person)
    assert any(problem in found for found in find_problems(person)), find_problems(person)


class Oracle(DictStore):
    """Recalls the gold messages of a question, or the stale ones before them."""

    stale_first = False

    def recall(self, owner: str, question: str, *, now: datetime, limit: int) -> Sequence[str]:
        person = next(one for one in PEOPLE if one["id"] == owner)
        asked = next(one for one in person["questions"] if one["question"] == question)
        indexes = [*asked["stale"], *asked["gold"]] if self.stale_first else asked["gold"]
        return [f"- {person['messages'][index]['text']}" for index in indexes]

    def make_context(self, owner: str, question: str, *, now: datetime, max_tokens: int) -> str | None:
        return " | ".join(self.recall(owner, question, now=now, limit=10))

    def declines(self, owner: str, question: str, *, now: datetime) -> bool | None:
        return not self.recall(owner, question, now=now, limit=10)


class StaleOracle(Oracle):
    stale_first = True


class Silent(DictStore):
    """Recalls nothing."""

    def recall(self, owner: str, question: str, *, now: datetime, limit: int) -> Sequence[str]:
        return []


def figures_of(store: type[DictStore], tmp_path: Path) -> dict[str, Any]:
    return score(list(play(store(tmp_path), PEOPLE)))


def test_a_perfect_memory_has_perfect_figures(tmp_path: Path) -> None:
    figures = figures_of(Oracle, tmp_path)
    whole = figures["questions"]["all"]
    assert {name: whole[name] for name in ("hit@1", "hit@10", "all@5", "stale", "context")} == {
        "hit@1": 100.0, "hit@10": 100.0, "all@5": 100.0, "stale": 0.0, "context": 100.0
    }  # fmt: skip
    assert figures["declined"] == {"unanswerable": 100.0, "answerable": 0.0}


def test_stale_memories_in_front_are_counted(tmp_path: Path) -> None:
    perfect, stale = (figures_of(store, tmp_path)["questions"] for store in (Oracle, StaleOracle))
    assert stale["present"]["stale"] == 100.0
    assert stale["present"]["hit@1"] < perfect["present"]["hit@1"]
    assert stale["all"]["hit@10"] == 100.0


def test_a_memory_that_recalls_nothing_scores_nothing(tmp_path: Path) -> None:
    figures = figures_of(Silent, tmp_path)
    assert {figures["questions"]["all"][name] for name in ("hit@1", "hit@10", "answer@1", "all@5", "stale")} == {0.0}
    assert (figures["questions"]["all"]["context"], figures["context_tokens"]) == (None, None)
    assert figures["declined"] == {"unanswerable": None, "answerable": None}


def test_a_turn_is_a_message_and_the_reply_to_it(tmp_path: Path) -> None:
    turns: list[list[Said]] = []

    class Listener(Silent):
        def tell(self, owner: str, turn: Sequence[Said]) -> None:
            turns.append(list(turn))

    person = next(one for one in PEOPLE if any(message["role"] == "assistant" for message in one["messages"]))
    list(play(Listener(tmp_path), [person]))
    assert [said.text for turn in turns for said in turn] == [message["text"] for message in person["messages"]]
    assert all([said.role for said in turn] in (["user"], ["user", "assistant"]) for turn in turns)


def test_the_adapter_of_mem0_core_answers_at_the_time_of_the_question(tmp_path: Path) -> None:
    system = Mem0Core(tmp_path)
    try:
        answers = list(play(system, load_people(languages=["en"])[:1]))
    finally:
        system.close()
    assert all(answer.texts and answer.context is not None and answer.declined is not None for answer in answers)
    assert all(answer.origins[0] for answer in answers)


def test_the_command_asks_a_store_of_a_stranger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "stories.json"
    assert main(["stories", DICT_STORE, "--language", "es", "--json", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "6 people" in shown
    assert "| es | 102 |" in shown
    written = json.loads(out.read_text(encoding="utf-8"))
    assert written["format"] == "memory-conformance-stories/1"
    assert len(written["systems"][DICT_STORE]["answers"]) == 119


def test_the_command_refuses_contradictory_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    person = copy.deepcopy(PEOPLE[0])
    person["ended_facts"]["x"] = 3
    file = tmp_path / "people.json"
    file.write_text(json.dumps({"personas": [person]}), encoding="utf-8")
    assert main(["stories", DICT_STORE, "--file", str(file)]) == 1
    assert "the ended fact x does not exist" in capsys.readouterr().err


def test_an_embedder_of_the_caller_is_used(tmp_path: Path) -> None:
    (tmp_path / "people.json").write_text(json.dumps({"personas": PEOPLE[:1]}), encoding="utf-8")
    (tmp_path / "embedder.py").write_text(
        "def embed(texts):\n"
        "    open('called.txt', 'a').write(f'{len(texts)}\\n')\n"
        "    return [[1.0, 0.0, 0.0] for _ in texts]\n"
    )
    command = [sys.executable, "-m", "memory_conformance", "stories", "mem0-core", "--file", "people.json"]
    subprocess.run([*command, "--embedder", "embedder.py:embed"], cwd=tmp_path, check=True, capture_output=True)
    assert len((tmp_path / "called.txt").read_text().split()) > len(PEOPLE[0]["questions"])
