"""The benchmarks themselves: they run, at sizes too small to measure anything, and count what they should."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mem0_core.testing import HashEmbedder
from tests.benchmarks import __main__ as command
from tests.benchmarks import converse, cost, crash, graph, langgraph_store, locomo, paths, recall, replay
from tests.benchmarks.bm25 import BM25
from tests.benchmarks.decisions import ModelCall, depth
from tests.benchmarks.plan import QUICK, Plan
from tests.benchmarks.relations import HUB, batches
from tests.benchmarks.report import Bar, Report

TINY = Plan(
    sizes=(0, 100, 300),
    calls=5,
    rounds=1,
    full_rounds=1,
    queries=20,
    big=300,
    exact_limit=100,
    processes=1,
    crash_runs=3,
    relations=(60, 120, 240),
    own=120,
    paths=(300,),
    growth=12,
    talks=2,
    memories=60,
    waiting=40,
    turns=24,
    messages=30,
    singles=10,
    imports=1,
    items=100,
    own_memories=20,
    turns_of_agent=2,
    resamples=50,
)
TALK: dict[str, Any] = {
    "sample_id": "talk",
    "conversation": {
        "speaker_a": "Ana",
        "speaker_b": "Ben",
        "session_2_date_time": "9:05 am on 3 June, 2023",
        "session_2": [
            {"speaker": "Ben", "dia_id": "D2:1", "text": "The kayak tour starts on Sunday."},
            {"speaker": "Ana", "dia_id": "D2:2", "text": " "},
            {"speaker": "Ana", "dia_id": "D2:3", "text": "See you!"},
        ],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ana", "dia_id": "D1:1", "text": "Look at this!", "blip_caption": "a red bicycle"},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "I play the cello every evening."},
            {"speaker": "Ana", "dia_id": "D1:3", "text": "See you!"},
        ],
    },
    "qa": [
        {"question": "Who plays the cello every evening?", "category": 4, "evidence": ["D1:2"]},
        {"question": "When does the kayak tour start?", "category": 2, "evidence": ["D2:01; D:1:3", "D9:9", "D"]},
        {"question": "Is there life elsewhere?", "category": 3, "evidence": []},
    ],
    "observation": {
        "session_1_observation": {
            "Ana": [["Ana has a red bicycle.", ["D1:1", "D1:3"]]],
            "Ben": [["Ben plays the cello every evening.", "D1:2"], ["Ben is silent.", "D2:2"]],
        },
        "session_2_observation": {
            "Ben": [["ben plays the  cello every evening.", "D2:1"], ["Ben goes on a kayak tour.", "D2:1; D2:3"]],
        },
    },
}


@pytest.mark.slow
def test_cost_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cost, "real_embedder", lambda: HashEmbedder(name="real"))
    report = cost.measure(TINY)
    assert not [row for row in report.rows if row.value is None]
    recalls = [row.value for row in report.rows if row.name.startswith("recall@10")]
    assert recalls
    assert set(recalls) == {1.0}, "a scan within one user is exact"
    written = json.loads(report.write(tmp_path).read_text(encoding="utf-8"))
    assert written["machine"]["cores"]
    assert len(written["rows"]) == len(report.rows)


@pytest.mark.slow
def test_graph_runs_and_counts_calls(tmp_path: Path) -> None:
    report = graph.measure(TINY)
    assert not [row for row in report.rows if row.value is None]
    values = {row.name: row.value for row in report.rows if row.value is not None}
    assert (values["calls, staged"], values["calls, fused"]) == (6, 1)
    assert values["tokens of messages, staged"] > values["tokens of messages, fused"] > 0
    assert {"facts", "operations", "entities", "relations", "outdated", "refined"} == set(
        report.details["estimated tokens of messages, by task"]["staged"]
    )
    assert [name for name in values if name.startswith("CPU per call, hub's")] == [
        *("CPU per call, hub's 60 of 60", "CPU per call, hub's 120 of 120", "CPU per call, hub's 120 of 240"),
    ]
    written = json.loads(report.write(tmp_path).read_text(encoding="utf-8"))
    assert len(written["rows"]) == len(report.rows)


@pytest.mark.slow
def test_paths_runs_and_finds() -> None:
    report = paths.measure(TINY)
    assert not [row for row in report.rows if row.value is None]
    assert any("100% led somewhere" in row.note for row in report.rows)


@pytest.mark.slow
def test_converse_runs_and_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(converse, "real_embedder", lambda: HashEmbedder(name="real"))
    monkeypatch.setattr(locomo, "PATH", tmp_path / "locomo.json.gz")
    with gzip.open(locomo.PATH, "wt", encoding="utf-8") as file:
        json.dump([TALK], file)
    report = converse.measure(TINY)
    assert not [row for row in report.rows if row.value is None or row.verdict == "MISS"]
    sections = list(dict.fromkeys(row.section for row in report.rows))
    (calls,) = [section for section in sections if section.startswith("model calls per turn, 24")]
    two = 2 / 24  # summaries; with a graph as many calls less, for in the first turn no relation can end or be refined
    counted = [report.value(calls, way.name) for way in converse.WAYS[:4]]
    assert counted == pytest.approx([2 + two, 6, 1 + two, 1 + two])
    assert [report.value(calls, f"of them summaries, {name}") for name in ("staged", "batched")] == [2 / 24, 1 / 24]
    assert report.value(calls, "batched") == (2 * 4 + 1) / 24, "one turn, then three batches, then a summary"
    assert {row.name for row in report.rows if row.bar} >= {"duplicate memories", "facts lost", "batched"}
    written = json.loads(report.write(tmp_path).read_text(encoding="utf-8"))
    assert written["details"]["LoCoMo"]["turns"] == 5
    assert "cello" not in json.dumps(written), "no text of the dataset"


@pytest.mark.slow
def test_langgraph_store_runs_and_compares(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(langgraph_store, "real_embedder", lambda: None)
    report = langgraph_store.measure(TINY)
    skipped = [row for row in report.rows if row.value is None]
    assert [row.note for row in skipped] == ["no local weights"]
    puts = [row for row in report.rows if row.section.startswith("put")]
    assert [row.name for row in puts] == [
        *("SqliteStore", "SqliteStore, WAL", "Mem0Store, full", "Mem0Store, process", "InMemoryStore"),
    ]
    assert [row.bar is not None for row in puts] == [False, False, True, True, False]
    assert sum(row.name.endswith(", added") for row in report.rows) == 4
    written = json.loads(report.write(tmp_path).read_text(encoding="utf-8"))
    assert len(written["rows"]) == len(report.rows)


@pytest.mark.parametrize("way", replay.WAYS, ids=lambda way: way.name)
def test_a_replay_keeps_every_fact_once_with_its_turns(way: replay.Way) -> None:
    done = replay.replay(locomo.read(TALK), way, HashEmbedder())
    assert (done.duplicates, done.lost, done.traced, done.left, done.skipped) == (0, 0, 3, 0, 0)
    turns = {memory.text: memory.turns for memory in done.kept}
    assert turns["Ben plays the cello every evening."] >= {"D1:2", "D2:1"}, "told in two sessions"
    assert [found >= {"D1", "D2"} for found in done.found] == [True, True, True]


def test_a_part_of_a_conversation_has_its_own_questions_only() -> None:
    first = replay.part(locomo.read(TALK), 1, None)
    assert {turn.id for turn in first.turns} == {"D1:1", "D1:2", "D1:3"}
    assert [question.gold for question in first.questions] == [("D1:2",), ()]
    assert set(first.facts) == {"D1:1", "D1:2", "D1:3"}


def test_relations_are_the_hubs_first() -> None:
    assert list(batches(50, 250, 120)) == [
        (HUB, range(50, 120)),
        ("user 1", range(120, 220)),
        ("user 2", range(220, 250)),
    ]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], 0),
        ([(0, 1)], 1),
        ([(0, 1), (0, 1)], 1),
        ([(2, 3), (0, 1), (1, 2), (0, 3)], 3),
    ],
)
def test_depth_is_the_longest_chain_of_calls(spans: list[tuple[float, float]], expected: int) -> None:
    assert depth([ModelCall("facts", started, ended, characters=0) for started, ended in spans]) == expected


def test_recall_scores_turns() -> None:
    report = recall.score(Report("recall"), [locomo.read(TALK)], HashEmbedder(), resamples=50, bar=Bar(">=", 44))
    section = "R@10, categories 1-4 (2 questions)"
    assert report.value(section, recall.OURS) == 100
    assert report.value(section, "BM25, the turn alone") == 100
    assert report.details["data"] == {
        "conversations": ["talk"],
        "turns": 5,
        "questions": 3,
        "questions without gold": 1,
    }


def test_recall_says_that_the_data_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(locomo, "PATH", tmp_path / "nothing.json.gz")
    (row,) = recall.measure(QUICK).rows
    assert row.verdict == "skipped"
    assert "not here" in row.note


def test_locomo_is_read_in_order_and_its_evidence_cleaned() -> None:
    talk = locomo.read(TALK)
    assert [turn.id for turn in talk.turns] == ["D1:1", "D1:2", "D1:3", "D2:1", "D2:3"]
    assert talk.turns[0].said_at == "2023-05-08T13:56:00+00:00"
    assert [question.gold for question in talk.questions] == [("D1:2",), ("D2:1", "D1:3"), ()]


def test_observations_of_locomo_are_told_by_the_turns_there_are() -> None:
    assert locomo.read(TALK).facts == {
        "D1:1": ("Ana has a red bicycle.",),
        "D1:3": ("Ana has a red bicycle.",),
        "D1:2": ("Ben plays the cello every evening.",),
        "D2:1": ("ben plays the  cello every evening.", "Ben goes on a kayak tour."),
        "D2:3": ("Ben goes on a kayak tour.",),
    }


@pytest.mark.parametrize(
    ("gold", "ranked", "expected"),
    [
        (["a"], ["a", "b"], [1, 1, 1, 1, 1]),
        (["a", "z"], ["b", "a"], [0.5, 0.5, 0.5, 0, 0.5]),
        (["a", "b"], ["c", "a|b"], [1, 1, 1, 1, 0.5]),
        (["a"], [*"bcdefghijk", "a"], [0, 0, 1, 0, 1 / 11]),
        (["z"], ["a"], [0, 0, 0, 0, 0]),
    ],
)
def test_measures(gold: list[str], ranked: list[str], expected: list[float]) -> None:
    assert recall._measures(gold, ranked) == pytest.approx(expected)


def test_bm25_prefers_rare_words_and_short_texts() -> None:
    scores = BM25(["the cat sat", "the dog sat there", "the dog"]).scores("The dog?")
    assert scores.argsort()[::-1].tolist() == [2, 1, 0]
    assert BM25(["the cat"]).scores("zebra").tolist() == [0]


def test_crash_reports_the_nursery() -> None:
    report = crash.measure(TINY)
    if len(report.rows) > 1:
        assert {row.verdict for row in report.rows if row.bar} == {"pass"}


def test_the_table_names_what_was_missed() -> None:
    report = Report("demo")
    report.add("first", "slow", 2.0, "ms", Bar("<=", 1))
    report.add("second", "fast", 0.5, "ms", Bar("<=", 1))
    report.add("first", "unbarred", 123_456)
    report.skip("second", "no such device")
    lines = report.table().splitlines()
    assert [line.split()[0] for line in lines[2:]] == [
        *("first", "slow", "unbarred", "second", "fast", "not", "1", "MISS"),
    ]
    assert lines[-1] == "MISS first: slow"
    assert "123,456" in report.table()


def test_the_command_writes_where_it_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any) -> None:
    seen: list[Plan] = []

    def measure(plan: Plan) -> Report:
        seen.append(plan)
        return Report("cost")

    monkeypatch.setitem(command.BENCHMARKS, "cost", measure)
    command.main(["cost", "--quick", "--sizes", "200,0", "--out", str(tmp_path)])
    assert (seen[0].sizes, seen[0].big, seen[0].calls) == ((0, 200), 200, QUICK.calls)
    assert seen[0].relations == (200,), "a graph of none has no hub"
    assert (tmp_path / "cost.json").exists()
    assert "== cost ==" in capsys.readouterr().out
