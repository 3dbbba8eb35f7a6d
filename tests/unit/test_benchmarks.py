"""The benchmarks themselves: they run, at sizes too small to measure anything, and count what they should."""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import (
    ablation,
    adversarial,
    beam,
    chart,
    cold,
    compare,
    context,
    converse,
    cost,
    crash,
    erasure,
    fuzz,
    gate,
    graph,
    langgraph_store,
    latency,
    locomo,
    loop,
    musique,
    paths,
    recall,
    replay,
    retraction,
    scale,
    scores,
    sqlite_store,
    together,
)
from benchmarks.baselines import Baseline
from benchmarks.collection import Collection, Dataset, Occasion, Question, Unit
from benchmarks.decisions import ModelCall, depth
from benchmarks.pace import Pace, Part, quiet
from benchmarks.plan import QUICK, Plan
from benchmarks.relations import HUB, batches
from benchmarks.report import Bar, Report, mean
from mem0_core import AsyncMemory, Memory
from mem0_core.domain.recipes import HYBRID, Recipe, Weights
from mem0_core.testing import HashEmbedder

TINY = Plan(
    sizes=(0, 100, 300),
    calls=5,
    rounds=1,
    full_rounds=1,
    queries=20,
    own_memories=30,
    others=(0, 70),
    crowds=(100, 200),
    server_crowds=(100, 200),
    big=300,
    exact_limit=100,
    processes=1,
    crash_runs=3,
    kill_runs=5,
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
    agent_memories=20,
    fuzz_calls=14,
    erased_facts=10,
    sources=6,
    crash_share=1_000,
    longest_text=1_000,
    turns_of_agent=2,
    resamples=50,
    patience=0.0,
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


CHAT: dict[str, Any] = {
    "id": "chat",
    "messages": [
        {"id": 0, "role": "user", "batch": 1, "time_anchor": "March-15-2024", "content": "I deploy my app on Friday."},
        {"id": 1, "role": "assistant", "batch": 1, "time_anchor": None, "content": "Deploy it behind a proxy."},
        {"id": 2, "role": "user", "batch": 2, "time_anchor": None, "content": "The proxy drops my cookies."},
        {"id": 3, "role": "assistant", "batch": 2, "time_anchor": None, "content": "Cookies need a domain."},
    ],
    "questions": [
        {"type": "knowledge_update", "question": "When do I deploy my app?", "gold": [0, 1]},
        {"type": "summarization", "question": "What of the cookies?", "gold": [2]},
        {"type": "abstention", "question": "Who painted the fence?", "gold": []},
    ],
}


def _paragraph(title: str, text: str, needed: bool) -> dict[str, Any]:
    return {"title": title, "paragraph_text": text, "is_supporting": needed}


HOPS: list[dict[str, Any]] = [
    {
        "question": "Where was the painter of the Blue Door born?",
        "paragraphs": [
            _paragraph("Blue Door", "The Blue Door was painted by Ada Varga.", True),
            _paragraph("Red Gate", "The Red Gate was painted by Otto Lind.", False),
            _paragraph("Ada Varga", "Ada Varga was born in Pécs.", True),
        ],
    },
    {
        "question": "Who painted the Red Gate?",
        "paragraphs": [
            _paragraph("Red Gate", "The Red Gate was painted by Otto Lind.", True),
            *(_paragraph(f"Town {number}", f"Town {number} lies on a river.", False) for number in range(8)),
        ],
    },
]


@pytest.mark.slow
def test_fuzz_counts_calls_and_foreign_exceptions() -> None:
    pytest.importorskip("langchain_core")
    pytest.importorskip("llama_index.core")
    report = fuzz.measure(TINY)
    values = {(row.section, row.name): row.value for row in report.rows}
    assert values["all", "calls"] == TINY.fuzz_calls
    assert values["all", "foreign exceptions"] == 0, report.details["foreign"]
    assert {section for section, _ in values} == {*fuzz.GROUPS, "all"}


@pytest.mark.slow
def test_adversarial_calls_every_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adversarial, "KINDS", {"scrambled": adversarial.KINDS["scrambled"]})
    for opened in (Memory, AsyncMemory):
        monkeypatch.setattr(adversarial, opened.__name__, partial(opened, embedder=HashEmbedder()))
    report = adversarial.measure(TINY)
    assert {row.section for row in report.rows} >= {"pure functions"}
    assert not [row for row in report.rows if row.value is None]


@pytest.mark.slow
def test_erasure_counts_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "_PARTS", {name: erasure._PARTS[name] for name in list(erasure._PARTS)[:1]})
    monkeypatch.setattr(erasure, "_measure_kills", lambda *_: None)
    report = erasure.measure(TINY)
    values = {row.name: row.value for row in report.rows}
    assert values["facts found before"] == values["facts stored"] == TINY.erased_facts
    assert [row.name for row in report.rows if row.verdict == "MISS"] == []


@pytest.mark.slow
def test_retraction_compares_two_stores(tmp_path: Path) -> None:
    report = Report("retract")
    retraction._measure_store(report, "SQLite", tmp_path, {}, {}, TINY.sources)
    assert [row.name for row in report.rows if row.verdict == "MISS"] == []
    source, statements = retraction.tell_sources(TINY.sources)
    others = {text for said_by, text, _ in statements if said_by != source}
    own = {text for said_by, text, _ in statements if said_by == source} - others
    assert report.value("SQLite", "memories that left") == len(own) > 3


@pytest.mark.slow
def test_the_cold_start_of_each_command_is_compared_with_the_import_of_numpy() -> None:
    report = cold.measure(replace(TINY, processes=0))
    assert [row.name.split(",")[0] for row in report.rows] == [
        "import numpy",
        "from mem0_core import Memory",
        "Memory(folder).close()",
        "mem0-core --version",
        "mem0-core search",
        "mem0-core search",
    ]
    assert report.rows[0].value == 1
    assert all(row.value for row in report.rows)


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
    monkeypatch.setattr(converse, "real_embedder", lambda provider="onnx": HashEmbedder(name="real"))
    monkeypatch.setattr(locomo, "PATH", tmp_path / "locomo.json.gz")
    with gzip.open(locomo.PATH, "wt", encoding="utf-8") as file:
        json.dump([TALK], file)
    report = converse.measure(TINY)
    assert not [row for row in report.rows if row.value is None or row.verdict == "MISS"]
    sections = list(dict.fromkeys(row.section for row in report.rows))
    (calls,) = [section for section in sections if section.startswith("model calls per turn, 24")]
    two = 2 / 24  # summaries; with a graph as many calls less, for in the first turn no relation can end or be refined
    counted = [report.value(calls, way.name) for way in converse.WAYS[:4]]
    first = 1 / 24  # the first turn of an empty memory takes its facts without asking for operations
    assert counted == pytest.approx([2 + two - first, 6 - first, 1 + two, 1 + two])
    assert [report.value(calls, f"of them summaries, {name}") for name in ("staged", "batched")] == [2 / 24, 1 / 24]
    assert report.value(calls, "batched") == 2 * 4 / 24, "one turn with one call, then three batches, then a summary"
    assert {row.name for row in report.rows if row.bar} >= {"duplicate memories", "facts lost", "batched"}
    written = json.loads(report.write(tmp_path).read_text(encoding="utf-8"))
    assert written["details"]["LoCoMo"]["turns"] == 5
    assert "cello" not in json.dumps(written), "no text of the dataset"


@pytest.mark.slow
def test_searches_and_adds_are_compared_with_a_vector_search_in_sqlite() -> None:
    report = sqlite_store.measure(TINY)
    names = [row.name for row in report.rows if row.value is not None and row.value > 0]
    if not names:  # this Python's SQLite loads no extensions
        assert [row.name for row in report.rows] == ["not measured"]
        return
    searches = ["default", "default, with relations read by rules", "mem0"]
    assert names == [*searches, "scripted model", "infer=False"]


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
    assert sum(", added" in row.name for row in report.rows) == 4
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


@pytest.mark.parametrize(
    ("dataset", "bars", "units", "scored", "kinds"),
    [
        (locomo.dataset([locomo.read(TALK)]), {"R@10": 44, "MRR": 101}, 5, 2, {"single-hop": 1, "temporal": 1}),
        (beam.dataset([beam.read(CHAT)]), {}, 4, 2, {"knowledge update": 1, "summarization": 1}),
        (musique.dataset(musique.read(HOPS)), {"R@5": 100}, 11, 2, {"2 passages": 1, "1 passages": 1}),
    ],
    ids=["locomo", "beam", "musique"],
)
def test_recall_ranks_by_memory_and_baselines_and_changes_one_thing_at_a_time(
    dataset: Dataset, bars: dict[str, float], units: int, scored: int, kinds: dict[str, int], tmp_path: Path
) -> None:
    report = Report("recall")
    recall.score(report, dataset, HashEmbedder(), resamples=50, bars=bars, strangers=["Is it raining?"])
    found = report.details[dataset.name]
    assert (found["units"], found["questions"]["scored"]) == (units, scored)
    assert {kind: of_kind["questions"] for kind, of_kind in found["kinds"].items()} == kinds
    assert found["systems"][recall.OURS]["R@10"][0] == found["systems"][recall.FUSED]["R@10"][0] == 100
    assert found["lead"][recall.FUSED] == (0, 0, 0)
    changed, related = ablation.variants(HYBRID), ablation.without_relations(HYBRID)
    assert found["ablation"].keys() == changed.keys() | {recall.RELATED}
    assert found[f"ablation, {recall.RELATED}"].keys() == related.keys()
    assert HYBRID.signals <= {name.split()[-1] for name in (*changed, *related)}, "each signal is left out once"
    assert {row.name: row.verdict for row in report.rows if row.bar} == {
        f"{dataset.name}, {name}": "MISS" if least > 100 else "pass" for name, least in bars.items()
    }
    written = report.write(tmp_path).read_text(encoding="utf-8")
    assert not [unit.text for unit in dataset.collections[0].units if unit.text in written], "no text of the dataset"
    assert chart.draw(report.details, tmp_path / "recall.png").read_bytes().startswith(b"\x89PNG")


def test_context_counts_the_memories_that_bear_on_a_query(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(context, "real_embedder", HashEmbedder)
    for module in (locomo, beam):
        monkeypatch.setattr(module, "PATH", tmp_path / "nothing.json.gz")
    report = context.measure(QUICK)
    assert {row.section for row in report.rows} == {
        f"cases, {name}, {floor}" for name in ("dev", "held") for floor in ("calibrated floor", "no floor")
    }
    for name in ("dev", "held"):
        with_floor, without = (
            {row.name: row.value or 0.0 for row in report.rows if row.section == f"cases, {name}, {floor}"}
            for floor in ("calibrated floor", "no floor")
        )
        assert without["memories shown"] == 20
        assert with_floor["precision"] > 2 * without["precision"]
        assert with_floor["memories shown"] < without["memories shown"]


def test_each_case_names_memories_of_its_person() -> None:
    for path in context.CASES.values():
        cases = context.load_cases(path)
        for person in cases.collections:
            known = {unit.id for unit in person.units}
            assert len(known) == len(person.units) > 20
            assert all(known >= set(question.gold) for question in person.questions)
            assert any(not question.gold for question in person.questions), "nothing is wanted of some"


def test_recall_says_that_the_data_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in (locomo, beam, musique):
        monkeypatch.setattr(module, "PATH", tmp_path / "nothing.json.gz")
    rows = recall.measure(QUICK).rows
    assert [(row.section, row.verdict) for row in rows] == [
        *(("LoCoMo", "skipped"), ("BEAM", "skipped"), ("MuSiQue", "skipped"))
    ]
    assert all("not here" in row.note for row in rows)


def test_recall_measures_what_is_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recall, "real_embedder", lambda _: HashEmbedder())
    for module, content in ((locomo, [TALK]), (beam, [CHAT]), (musique, HOPS)):
        monkeypatch.setattr(module, "PATH", tmp_path / f"{module.__name__}.json.gz")
        with gzip.open(module.PATH, "wt", encoding="utf-8") as file:
            json.dump(content, file)
    report = recall.measure(QUICK)
    assert list(report.details) == ["LoCoMo", "BEAM", "MuSiQue"]
    assert not [row for row in report.rows if row.bar or row.value is None], "no bars for a part of the data"
    (passages,) = [
        row.section for row in report.rows if row.section.endswith("passages: R@5") and row.name == "NumPy, MiniLM"
    ]
    assert passages == "MuSiQue, 2 questions over 11 passages: R@5"


def test_recall_compares_models_and_says_which_they_were(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recall, "real_embedder", lambda name: HashEmbedder(name=name))
    for module in (locomo, beam, musique):
        monkeypatch.setattr(module, "PATH", tmp_path / f"{module.__name__}.json.gz")
    with gzip.open(locomo.PATH, "wt", encoding="utf-8") as file:
        json.dump([TALK], file)
    plan = replace(QUICK, embedders=("small", "large"), rerankers=("mem0-reranker",))
    report = recall.measure(plan)
    assert list(report.details) == ["LoCoMo by small", "LoCoMo by large"]
    for name, found in report.details.items():
        assert f"{recall.OURS} + mem0-reranker" in found["systems"]
        assert found["models"]["embedder"] == name.rpartition(" ")[2]
        assert found["file"] == hashlib.sha256(locomo.PATH.read_bytes()).hexdigest()


def test_ablation_changes_one_thing_each() -> None:
    short, long = Weights(dense=0.5, bm25=0.5), Weights(dense=0.8, date=0.2, graph=0.1)
    recipe = Recipe("two", short, long, sources=("dense", "lexical", "graph"), pool=100)
    found = ablation.variants(recipe)
    assert list(found) == [
        *("without dense", "without bm25", "without date"),
        *("without the dense source", "without the lexical source"),
        *("pool of 50", "pool of 200", "weights of short texts only", "weights of long texts only"),
    ]
    assert found["without bm25"].signals == {"dense", "date", "graph"}
    assert found["without the dense source"].sources == ("lexical", "graph")
    related = ablation.without_relations(recipe)
    assert list(related) == ["without graph", "without the graph source"]
    assert related["without graph"].signals == {"dense", "bm25", "date"}
    assert related["without the graph source"].sources == ("dense", "lexical")
    assert found["pool of 50"].pool == 50
    assert found["weights of long texts only"].weights(1.0) == recipe.weights(0.0)
    assert found["weights of short texts only"].weights(0.0) == recipe.weights(1.0)


def test_the_gate_is_what_nearly_all_good_questions_reach() -> None:
    asked = [("a", ("u",)), ("b", ("u",)), ("c", ("u",)), ("none", ()), ("none", ())]
    questions = tuple(Question("?", kind, gold) for kind, gold in asked)
    report = Report("recall")
    dataset = Dataset("set", "unit", (Collection("one", (), questions),), unanswerable="none")
    gate.rows(report, dataset, [0.4, 0.6, 0.8, 0.3, 0.5], [0.1])
    assert [row.value for row in report.rows] == pytest.approx([0.412, 50, 100])
    assert gate.separation([0.4, 0.6, 0.8], [0.3, 0.5]) == pytest.approx(5 / 6)
    assert gate.separation([0.5], [0.5]) == 0.5


def test_strangers_are_asked_of_all_other_datasets() -> None:
    sets = [locomo.dataset([locomo.read(TALK)]), beam.dataset([beam.read(CHAT)]), musique.dataset(musique.read(HOPS))]
    asked = gate.strangers(sets[1], sets)
    assert asked == [TALK["qa"][0]["question"], TALK["qa"][1]["question"], *(entry["question"] for entry in HOPS)]


def test_differences_are_those_of_the_same_questions() -> None:
    questions = tuple(Question("?", "any", (gold,)) for gold in "abcd")
    dataset = Dataset("set", "unit", (Collection("one", (), questions),))
    better = scores.Scores(dataset, [["a"], ["b"], ["c"], ["x"]])
    worse = scores.Scores(dataset, [["x"], ["b"], ["c"], ["x"]])
    assert worse.above(better, 200)["R@10"][0] == -25
    assert worse.above(better, 200)["R@10"][2] <= 0
    assert better.above(better, 200)["MRR"] == (0, 0, 0)


def test_beam_is_read_by_batches_with_their_days() -> None:
    chat = beam.read(CHAT)
    assert [(one.run_id, one.said_at, [unit.id for unit in one.units]) for one in chat.occasions] == [
        ("batch 1", "2024-03-15T00:00:00+00:00", ["0", "1"]),
        ("batch 2", None, ["2", "3"]),
    ]
    assert [unit.role for unit in chat.units] == ["user", "assistant", "user", "assistant"]
    assert [(question.kind, question.gold) for question in chat.questions] == [
        ("knowledge update", ("0", "1")),
        ("summarization", ("2",)),
        ("abstention", ()),
    ]


def test_musique_is_read_in_an_order_that_tells_nothing_of_its_questions() -> None:
    told = musique.read(HOPS)
    texts = {unit.id: unit.text for unit in told.units}
    assert len(texts) == 11, "a passage of two questions is one"
    assert all(len(occasion.units) == 1 for occasion in told.occasions)
    assert [[texts[id].partition("\n")[0] for id in question.gold] for question in told.questions] == [
        ["Blue Door", "Ada Varga"],
        ["Red Gate"],
    ]
    given = [part["title"] for entry in HOPS for part in entry["paragraphs"]]
    assert [unit.text.partition("\n")[0] for unit in told.units] != list(dict.fromkeys(given))
    assert musique.read(HOPS).units == told.units, "the same order every time"


def test_a_part_of_a_dataset_keeps_the_questions_it_answers() -> None:
    part = locomo.dataset([locomo.read(TALK)]).part(1, None)
    (one,) = part.collections
    assert [unit.id for unit in one.units] == ["D1:1", "D1:2", "D1:3"]
    assert [question.gold for question in one.questions] == [("D1:2",), ()]
    (one,) = part.part(None, 1).collections
    assert [question.gold for question in one.questions] == [("D1:2",)]


def test_a_user_lies_between_others_who_say_as_much(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(locomo, "PATH", tmp_path / "nothing.json.gz")
    talk = latency.talk_of(100)
    latency.fill(tmp_path, talk.occasions, 50, 120, HashEmbedder())
    with Memory({"path": tmp_path}, embedder=HashEmbedder()) as memory:
        counts = {user: len(memory.get_all(user_id=user)["results"]) for user in (latency.USER, "other 0", "other 2")}
    assert counts == {latency.USER: 50, "other 0": 50, "other 2": 20}
    with closing(sqlite3.connect(tmp_path / "memory.db")) as db:
        users = [user for (user,) in db.execute("SELECT user_id FROM memories ORDER BY row")]
    assert users[-1] == latency.USER
    assert 20 < users.index(latency.USER) < 60, "a third of the others comes first"


def test_latency_is_measured_on_conversations_where_they_are_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(locomo, "PATH", tmp_path / "locomo.json.gz")
    with gzip.open(locomo.PATH, "wt", encoding="utf-8") as file:
        json.dump([TALK], file)
    report = Report("cost")
    latency.report_latency(report, replace(TINY, own_memories=4, others=(0, 6)), tmp_path)
    assert [row.name for row in report.rows] == 2 * [
        *("p50 among 0 of others", "p50 among 6 of others", "p50 among 6 / p50 among 0")
    ]
    assert all(row.value and row.bar is None for row in report.rows)


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
        (["a"], ["a", "b"], [1, 1, 1, 1, 1, 1]),
        (["a", "z"], ["b", "a"], [0.5, 0.5, 0.5, 0, 0.5, 0.63093 / 1.63093]),
        (["a", "b"], ["c", "a|b"], [1, 1, 1, 1, 0.5, 0.63093]),
        (["a"], [*"bcdefghijk", "a"], [0, 0, 1, 0, 1 / 11, 0]),
        (["a"], [*(f"b{place}" for place in range(20)), "a"], [0, 0, 0, 0, 0, 0]),
        (["z"], ["a"], [0, 0, 0, 0, 0, 0]),
    ],
)
def test_measures(gold: list[str], ranked: list[str], expected: list[float]) -> None:
    assert scores.measures(gold, ranked) == pytest.approx(expected, abs=1e-5)


def test_baselines_rank_by_vectors_by_words_and_by_both() -> None:
    texts = ["the cat sat here", "a dog barked at Ben", "it rained on Monday", "nobody came"]
    units = tuple(Unit(f"u{place}", text, speaker="Ben") for place, text in enumerate(texts))
    plain = Baseline(Collection("one", (Occasion(units),), ()), HashEmbedder())
    assert plain.dense("the cat sat here")[0] == "u0"
    assert plain.bm25("Who barked?") == ["u1"], "what shares no word is not ranked"
    assert plain.fused("Who barked?")[0] == "u1"
    assert len(plain.fused("Who barked?")) == 4


@pytest.mark.parametrize("truth", ["sqlite", pytest.param("postgres", marks=pytest.mark.needs_server)])
def test_scale_fills_stores_of_the_size_they_are_named_by_and_measures_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, truth: str
) -> None:
    held: list[tuple[int, int]] = []
    searches = scale._searches

    def looked_into(report: Report, plan: Plan, truth: str, sites: Any, own: Any, *rest: Any) -> None:
        for site in sites:
            with site.open(HashEmbedder()) as memory:
                ours = memory.get_all(user_id=scale.USER, limit=10_000)["results"]
                theirs = memory.store.list_memories(None)
                held.append((len(ours), len(theirs) - len(ours)))
        searches(report, plan, truth, sites, own, *rest)

    monkeypatch.setattr(scale, "_searches", looked_into)
    monkeypatch.setattr(scale, "_SEARCHES", 20)
    report = scale.measure(replace(TINY, stores=(truth,)))
    assert held == 2 * [(30, 100), (30, 200)]
    rows = {(row.section, row.name): row for row in report.rows}
    recalls = [row for (_, name), row in rows.items() if name.startswith("recall@10")]
    assert [row.verdict for row in recalls] == ["pass", "pass"]
    opened = sum(name.startswith("Memory() to the first result") for _, name in rows)
    assert opened == (2 if truth == "sqlite" else 0)
    assert all(row.value for row in report.rows), "everything was measured"
    assert json.loads(report.write(tmp_path).read_text(encoding="utf-8"))["rows"]


def test_the_lag_of_the_event_loop_is_measured_next_to_that_of_an_idle_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MODEL_SECONDS", 0.01)
    monkeypatch.setattr(loop, "IDLE_SECONDS", 0.01)
    report = loop.measure(replace(TINY, rounds=1))
    names = ["latest callback, during a turn", "latest callback, idle loop"]
    assert [row.name for row in report.rows] == 2 * [*names, "longest computation on the thread of the loop"]
    assert all(row.value is not None and row.value > 0 for row in report.rows)


def test_crash_reports_what_its_process_found() -> None:
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


def test_a_ratio_is_that_of_pairs_and_its_interval_holds_it() -> None:
    noise = (1.0, 5.0, 1.2, 3.0, 1.1, 0.9, 2.0, 1.0)  # of both members of a pair: a busy neighbor slows down both
    ratio = compare.ratio_of([(2.0 * slow, 1.0 * slow) for slow in noise], 200)
    assert (ratio.middle, ratio.low, ratio.high) == (0.5, 0.5, 0.5)
    spread = compare.ratio_of([(1.0, 1.0), (1.0, 1.2), (1.0, 1.4), (1.0, 3.0)], 200)
    assert spread.low < spread.middle < spread.high


@pytest.mark.slow
def test_two_commits_are_compared_by_every_workload() -> None:
    plan = replace(TINY, compared_memories=40, compared_turns=1, conversations=0, chats=0, stories=1)
    report = compare.compare(plan, "HEAD", "HEAD")
    *timed, rankings = report.rows
    assert [row.name for row in timed] == list(compare.WORKLOADS)
    assert all(row.value is not None and row.value > 0 for row in timed)
    assert (rankings.section, rankings.value) == ("results", 0)
    assert not rankings.note.startswith("of 0:")


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


@pytest.mark.needs_server
def test_searches_at_once_are_measured_on_each_truth(monkeypatch: pytest.MonkeyPatch, postgres_server_url: str) -> None:
    monkeypatch.setenv("POSTGRES_URL", postgres_server_url)
    monkeypatch.setattr(together, "AT_ONCE", 4)
    report = together.measure(TINY)
    assert all(row.value is not None and row.value > 0 for row in report.rows)
    assert [row.section.partition(":")[0] for row in report.rows] == ["SQLite"] * 6 + ["PostgreSQL"] * 6


def test_a_figure_is_that_of_the_parts_in_which_the_machine_was_quiet() -> None:
    pace = Pace(0)
    pace.best = 1.0
    parts = [Part(4.0, 1.1)] * 10 + [Part(8.0, 1.7)] * 10
    assert quiet(pace, parts, mean, "ms") == (4.0, "quiet in 10 of 20 parts; of all 6.00 ms")


def test_where_the_machine_was_hardly_ever_quiet_the_figure_is_that_of_all_parts() -> None:
    pace = Pace(0)
    pace.best = 1.0
    parts = [Part(4.0, 1.1)] * 9 + [Part(8.0, 1.7)] * 9
    assert quiet(pace, parts, mean, "ms") == (6.0, "NOT QUIET but in 9 of 18 parts: of all")


def test_a_look_takes_what_the_best_one_took_or_longer() -> None:
    pace = Pace(0)
    pace.best = math.inf  # it has looked already
    looks = [pace.look() for _ in range(5)]
    assert pace.best == min(looks) > 0
