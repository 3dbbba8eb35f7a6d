"""The programs in training/ from sources to a folder that the product reads, on a tiny model made here."""

from __future__ import annotations

import dataclasses
import gzip
import importlib.util
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mem0_core.interfaces import Candidate
from mem0_core.language.families import load_families
from mem0_core.providers.numpy_embedder import NumpyEmbedder, create_local_embedder
from mem0_core.recall._current import FEATURES
from tests.tiny_bert import SAMPLE_TEXTS, write_model_folder
from training.bm25 import Bm25
from training.current import FOLDER as STORY_FOLDER
from training.current import STORIES, Ordered, collect, fit_features, measure
from training.datasets import read_stories
from training.list_data import AskedList, collect_lists, read_lists
from training.list_data import main as write_lists
from training.pools import Pool, draw_pools, read_pools, remove_names, write_pools
from training.sources import SOURCES, read_source
from training.statement_data import FOLDER, Variation, format_message, parse_message, read_messages

needs_torch = [
    pytest.mark.torch,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("torch", "safetensors", "tokenizers")),
        reason="torch, safetensors or tokenizers is not installed",
    ),
]
TURNS = [
    "alice likes climbing in paris",
    "bob likes coffee",
    "the coffee in paris",
    "alice and bob",
    "climbing and climbing",
    "bob in paris",
    "coffee and coffee and bob",
    "the climbing",
]


PREFERENCES = [
    ("who likes climbing", "alice likes climbing", "bob likes climbing and coffee"),
    ("who likes paris", "bob likes paris", "alice and the coffee in paris"),
]
LISTS = [
    AskedList(
        question,
        "present",
        [Candidate(old, "user", "2023-01-01", 9, 0.9), Candidate(new, "user", "2024-01-01", 1, 0.3)],
        gold=[1],
        stale=[0],
    )
    for question, old, new in PREFERENCES
]


def write_lines(file: Path, entries: Iterable[dict[str, Any]]) -> None:
    with gzip.open(file, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(entry) + "\n" for entry in entries)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with two sources of two pools each."""
    folder = tmp_path / "sources"
    folder.mkdir()
    for name in ("persona", "selqa"):
        pools = [(f"{name}-{split}", split) for split in ("train", "valid")]
        units = [{"text": text, "speaker": "Alice", "session": place // 4} for place, text in enumerate(TURNS)]
        write_lines(
            folder / f"{name}.pools.jsonl.gz", [{"pool": pool, "split": split, "units": units} for pool, split in pools]
        )
        questions: list[dict[str, Any]] = [
            {"question": "Alice's coffee", "gold": [1], "soft": [2]},
            {"question": "climbing in paris", "gold": [0, 4], "before": 7},
        ]
        write_lines(
            folder / f"{name}.jsonl.gz",
            [{**question, "pool": pool, "split": split} for pool, split in pools for question in questions],
        )
    return folder


def draw(sources: Path, split: str, wanted: int = 2, max_units: int | None = None) -> list[Pool]:
    return list(draw_pools(sources, SOURCES["persona"], split, wanted, seed=1, max_units=max_units))


def test_a_pool_keeps_golds_masks_and_neighbors(sources: Path) -> None:
    (pool,) = draw(sources, "train")
    coffee, climbing = sorted(pool.questions, key=lambda question: len(question.gold))
    assert [pool.units[place].text for place in coffee.gold] == [TURNS[1]]
    assert [pool.units[place].text for place in coffee.masked] == [TURNS[1], TURNS[2]]
    assert {pool.units[place].text for place in climbing.gold} == {TURNS[0], TURNS[4]}
    assert climbing.before == 7
    assert coffee.query == "coffee"
    assert (pool.units[3].previous, pool.units[3].following) == (TURNS[2], "")


def test_a_cut_pool_moves_indexes_with_the_units(sources: Path) -> None:
    (pool,) = draw(sources, "valid", wanted=1, max_units=3)
    assert len(pool.units) < len(TURNS)
    (question,) = pool.questions
    assert {pool.units[place].text for place in question.gold} in ({TURNS[1]}, {TURNS[0], TURNS[4]})


def test_pools_are_drawn_alike_and_read_back(sources: Path, tmp_path: Path) -> None:
    pools = draw(sources, "train")
    assert draw(sources, "train") == pools
    write_pools(tmp_path / "pools.jsonl", pools)
    assert read_pools(tmp_path / "pools.jsonl") == pools


def test_names_are_removed_unless_nothing_else_is_asked() -> None:
    assert remove_names("Where does Zoe Park's sister live?", ["Zoe Park"]) == "Where does sister live?"
    assert remove_names("Zoe", ["Zoe"]) == "Zoe"


def test_bm25_prefers_rare_terms() -> None:
    scores = Bm25(TURNS).scores("climbing")
    assert np.argmax(scores) == TURNS.index("climbing and climbing")
    assert scores[TURNS.index("bob likes coffee")] == 0


class TestPrograms:
    pytestmark = needs_torch

    def prepare(self, sources: Path, work: Path) -> Path:
        from training import pack, pools

        pools.main(["--data", str(sources), "--out", str(work), "--valid-units", "8", "--scale", "0.002"])
        base = write_model_folder(work / "base")
        for split in ("train", "valid"):
            files = ["--pools", str(work / f"{split}.jsonl"), "--out", str(work / f"{split}.npz")]
            pack.main([*files, "--base", str(base)])
        return base

    def data(self, base: Path, work: Path) -> list[str]:
        files = [*("--train", str(work / "train.npz")), *("--valid", str(work / "valid.npz"))]
        return ["--base", str(base), *files, "--device", "cpu", "--steps", "2", "--questions", "4"]

    def train(self, base: Path, work: Path, *options: str) -> Path:
        from training import bi_encoder

        out = work / "run"
        bi_encoder.main([*self.data(base, work), "--out", str(out), "--layers", "1", "--replay", "3", *options])
        return out / "model"

    def test_negatives_are_neither_gold_nor_masked_nor_later(self, sources: Path, tmp_path: Path) -> None:
        from training.batches import Negatives
        from training.bert import Tokenizer
        from training.pack import pack_pools

        (pool,) = draw(sources, "train")
        pack = pack_pools([pool], Tokenizer(write_model_folder(tmp_path / "base")))
        negatives = Negatives(pack, [pack.bm25[place] for place in range(2)], np.random.default_rng(1))
        for place, question in enumerate(pool.questions):
            drawn = {TURNS.index(pool.units[unit].text) for unit in negatives.draw(place, 8, 8)}
            assert not drawn & {TURNS.index(pool.units[unit].text) for unit in question.masked}
            if question.query == "coffee":
                assert 6 in drawn  # it shares the word
            else:
                assert 7 not in drawn  # said after the question

    def test_a_pack_is_read_back(self, sources: Path, tmp_path: Path) -> None:
        from training.pack import Pack

        self.prepare(sources, tmp_path)
        pack = Pack.load(tmp_path / "train.npz")
        pack.save(tmp_path / "again.npz")
        assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "train.npz").read_bytes()
        assert {"persona", "selqa", "own_friends", "statements"} <= set(pack.sources)

    def test_the_product_computes_the_vectors_of_a_trained_folder(self, sources: Path, tmp_path: Path) -> None:
        from training.bert import Tokenizer, encode_texts, load_bert

        base = self.prepare(sources, tmp_path)
        folder = self.train(base, tmp_path, "--rate", "0.5", "--blends", "1")
        trained = encode_texts(load_bert(folder), Tokenizer(folder), SAMPLE_TEXTS, 64)
        np.testing.assert_allclose(NumpyEmbedder(path=folder).embed(SAMPLE_TEXTS), trained, atol=1e-3)
        assert np.abs(trained - NumpyEmbedder(path=base).embed(SAMPLE_TEXTS)).max() > 1e-3

    def test_changes_carry_the_trained_weights(self, sources: Path, tmp_path: Path) -> None:
        from training.bert import load_bert
        from training.export import apply_changes

        base = self.prepare(sources, tmp_path)
        trained = load_bert(self.train(base, tmp_path, "--rate", "0.5", "--blends", "1")).state_dict()
        restored = apply_changes(tmp_path / "run" / "changes.npz", load_bert(base).state_dict())
        for name, tensor in trained.items():
            np.testing.assert_allclose(restored[name], tensor, atol=2e-2 * max(1e-2, float(tensor.abs().max())))

    def test_equal_runs_write_equal_weights(self, sources: Path, tmp_path: Path) -> None:
        base = self.prepare(sources, tmp_path)
        first = (self.train(base, tmp_path) / "model.safetensors").read_bytes()
        assert (self.train(base, tmp_path) / "model.safetensors").read_bytes() == first

    def test_a_blend_of_nothing_is_the_frozen_model(self, tmp_path: Path) -> None:
        import torch

        from training.bert import load_bert
        from training.bi_encoder import blend_weights

        frozen = load_bert(write_model_folder(tmp_path / "base"))
        other = {name: one + 1 for name, one in frozen.state_dict().items()}
        for share in (0.0, 0.5):
            blended = blend_weights(frozen, other, share).state_dict()
            assert all(
                torch.allclose(blended[name], one + share, atol=1e-5) for name, one in frozen.state_dict().items()
            )

    def test_a_student_learns_from_a_teacher_with_more_layers(self, sources: Path, tmp_path: Path) -> None:
        from training import cross_encoder

        base = self.prepare(sources, tmp_path)
        teacher, student = tmp_path / "teacher", tmp_path / "student"
        cross_encoder.main([*self.data(base, tmp_path), "--out", str(teacher), "--layers", "0,1"])
        distilled = ["--layers", "1", "--teacher", str(teacher / "changes.npz")]
        cross_encoder.main([*self.data(base, tmp_path), "--out", str(student), *distilled])
        run = json.loads((student / "run.json").read_text())
        assert run["weights"]["0.0"] == pytest.approx(json.loads((teacher / "run.json").read_text())["weights"]["0.0"])
        with np.load(student / "changes.npz") as changes:
            assert "head.weight" in changes
            assert not [name for name in changes if name.startswith("encoder.layer.1.")]

    def test_the_product_compares_as_the_trained_model_does(self, tmp_path: Path) -> None:
        import torch

        from mem0_core.providers.list_reranker import LocalListReranker
        from training import list_reranker
        from training.bert import Tokenizer, load_bert
        from training.export import apply_changes

        base, lists, run = write_model_folder(tmp_path / "base"), tmp_path / "lists.jsonl", tmp_path / "run"
        lists.write_text("".join(json.dumps(dataclasses.asdict(one)) + "\n" for one in LISTS), encoding="utf-8")
        files = ["--base", str(base), "--train", str(lists), "--valid", str(lists), "--out", str(run)]
        list_reranker.main([*files, "--steps", "120", "--rate", "0.01", "--frozen", "1", "--device", "cpu"])
        rates = json.loads((run / "run.json").read_text())["log"][-1]["first"]
        assert rates == {"present": [len(LISTS), 0.0, 1.0, 0.0]}

        original = load_bert(base).state_dict()
        state = apply_changes(run / "changes.npz", original)
        folder = write_model_folder(tmp_path / "folder", {name: one.numpy() for name, one in state.items()})
        model = list_reranker.ListReranker(load_bert(base))
        model.restore(run / "changes.npz", original)
        (asked,) = [one for one in LISTS if one.question == "who likes climbing"]
        with torch.inference_mode():
            logits, none, _ = model.eval()([asked], list_reranker.encode(Tokenizer(base), asked))
        expected = torch.cat([logits[0], none]).softmax(0)[:-1].tolist()
        assert LocalListReranker(path=folder).compare(asked.question, asked.candidates) == pytest.approx(
            expected, abs=1e-4
        )

    def test_one_command_runs_all_programs_and_writes_a_card(self, sources: Path, tmp_path: Path) -> None:
        from training import __main__ as programs

        base = write_model_folder(tmp_path / "base")
        work = tmp_path / "run"
        options = ["--data", str(sources), "--base", str(base), "--out", str(work), "--device", "cpu"]
        sizes = ["--steps", "1", "--questions", "2", "--reranker-steps", "0", "--tagger-steps", "0"]
        programs.main([*options, *sizes, "--scale", "0.002"])
        card = (work / "embedder" / "model" / "README.md").read_text()
        assert "| persona | turns | 2 | CC BY 4.0 |" in card
        assert "LoCoMo" in card
        figures = json.loads((work / "figures.json").read_text())
        assert {"BM25", str(base), str(work / "embedder" / "model")} == figures.keys()

    def test_a_tagger_of_statements_is_trained_and_scored(self, tmp_path: Path) -> None:
        from training import statement_heads, statement_tagger

        base, messages = write_model_folder(tmp_path / "base"), tmp_path / "messages"
        messages.mkdir()
        lines = [f"bob left [-lives_in:paris] for good {number}" for number in range(40)]
        (messages / "some.txt").write_text("\n".join(lines), encoding="utf-8")
        file = tmp_path / "statements.npz"
        statement_heads.main(["--base", str(base), "--messages", str(messages), "--out", str(file)])
        options = ["--base", str(base), "--statements", str(file), "--out", str(tmp_path / "run"), "--layers", "1"]
        statement_tagger.main([*options, "--steps", "12", "--check-every", "12", "--rate", "0.01", "--device", "cpu"])
        (entry,) = json.loads((tmp_path / "run" / "run.json").read_text())["log"]
        assert entry["recall"] == 100
        with np.load(tmp_path / "run" / "heads.npz") as heads:
            assert heads["names"].tolist() == ["lives_in"]


def test_questions_over_other_sources_search_the_same_units(sources: Path) -> None:
    questions, pools = read_source(sources, "own_friends", "valid")
    assert {one["pool"] for one in questions} == pools.keys()
    assert all(0 <= place < len(pools[one["pool"]]) for one in questions for place in one["gold"])
    train, _ = read_source(sources, "own_friends", "train")
    assert not {one["pool"] for one in train} & pools.keys()


def test_a_question_for_a_slot_is_answered_by_messages_that_state_it(sources: Path) -> None:
    questions, pools = read_source(sources, "statements", "valid")
    messages = {one.text: one for one in read_messages()}
    asked = dict(line.split("\t")[::-1] for line in (FOLDER / "questions.tsv").read_text(encoding="utf-8").splitlines())
    for one in questions[:40]:
        slot, units = asked[one["question"]], pools[one["pool"]]
        stated = {place for place, unit in enumerate(units) if slot in {m.family for m in messages[unit["text"]].marks}}
        assert set(one["gold"]) <= stated <= {*one["gold"], *one["soft"]}


def test_the_marked_messages_name_families_of_the_product() -> None:
    families = load_families()
    messages = read_messages()
    assert len(messages) > 6_000
    assert {mark.family for message in messages for mark in message.marks} <= families.keys()


def test_a_marked_message_is_read_and_written_back() -> None:
    line = "We left [-lives_in:Bonn] for [+lives_in:Kiel], and I [-works_at!quit]."
    message = parse_message(line)
    assert message.text == "We left Bonn for Kiel, and I quit."
    assert [(message.text[mark.start : mark.stop], mark.effect, mark.has_value) for mark in message.marks] == [
        ("Bonn", "ends", True),
        ("Kiel", "begins", True),
        ("quit", "ends", False),
    ]
    assert format_message(message) == line


def test_a_mark_that_is_not_closed_is_refused() -> None:
    with pytest.raises(ValueError, match="not closed in 'in \\[lives_in:Kiel'"):
        parse_message("in [lives_in:Kiel")


def test_variants_of_a_message_keep_its_marks() -> None:
    messages = read_messages()[:300]
    variation = Variation(messages, random.Random(1))
    for message in messages:
        variant = variation.vary(message)
        assert [mark[2:] for mark in variant.marks] == [mark[2:] for mark in message.marks]
        assert all(variant.text[mark.start : mark.stop].strip() for mark in variant.marks)


def test_the_labeled_questions_name_families_of_the_product() -> None:
    lines = (FOLDER / "questions.tsv").read_text(encoding="utf-8").splitlines()
    labels = {line.partition("\t")[0] for line in lines}
    assert labels <= {*load_families(), "none"}


@pytest.mark.parametrize("name", [*STORIES, "measured", "spare", "lives", "slots"])
def test_stories_are_in_order_of_time_and_name_messages_that_exist(name: str) -> None:
    stories = read_stories(STORY_FOLDER / f"{name}.jsonl").collections
    assert len({story.name for story in stories}) == len(stories)
    for story in stories:
        days = [occasion.said_at or "" for occasion in story.occasions]
        assert days == sorted(days)
        known = {unit.id for unit in story.units}
        assert all(known.issuperset(question.gold) for question in story.questions)
        assert all(bool(question.gold) != (question.kind == "unanswerable") for question in story.questions)


def test_the_order_of_messages_is_fitted_to_what_comes_first() -> None:
    newest = list(FEATURES).index("is_later")
    rows = np.zeros((2, len(FEATURES)))
    rows[1, newest] = 1
    weights = fit_features([Ordered(rows, np.array([False, True]), 1.0)] * 3)
    assert weights[newest] > 1
    assert np.delete(weights, newest).tolist() == [0] * (len(FEATURES) - 1)


def test_questions_about_now_are_collected_from_the_product() -> None:
    stories = read_stories(STORY_FOLDER / "changes.jsonl")
    first = dataclasses.replace(stories, collections=stories.collections[:3])
    asked = collect(first, create_local_embedder("mem0-minilm"))
    assert asked
    assert all(one.features.shape == (len(one.is_gold), len(FEATURES)) for one in asked)
    assert any(one.is_gold.any() for one in asked)


def test_stories_are_measured_with_and_without_the_order() -> None:
    stories = read_stories(STORY_FOLDER / "changes.jsonl")
    first = dataclasses.replace(stories, collections=stories.collections[:6])
    before, after, count = measure(first, create_local_embedder("mem0-minilm"))
    assert 0 <= before < after <= count == sum(one.kind == "present" for _, one in first.questions)


def test_lists_hold_what_a_search_compares(tmp_path: Path) -> None:
    file = tmp_path / "one.jsonl"
    lines = (STORY_FOLDER / "slots.jsonl").read_text(encoding="utf-8").splitlines()
    file.write_text(lines[0] + "\n", encoding="utf-8")
    write_lists(["--stories", str(file), "--out", str(tmp_path / "lists.jsonl")])
    story = json.loads(lines[0])
    found = read_lists(tmp_path / "lists.jsonl")
    assert found == collect_lists(story, create_local_embedder("mem0-minilm"))
    assert [one.question for one in found] == [asked["q"] for asked in story["questions"]]
    said = {text: day for day, text in story["messages"]}
    for one, asked in zip(found, story["questions"], strict=True):
        assert all(said[candidate.text] == candidate.day for candidate in one.candidates)
        golds = {story["messages"][index][1] for index in asked["gold"]}
        assert {one.candidates[place].text for place in one.gold} <= golds


def test_facts_take_the_place_of_messages_and_of_the_facts_that_they_end() -> None:
    story = {
        "id": "x",
        "messages": [["2020-01-01", "they collect our bins on Tuesdays"], ["2021-01-01", "Fridays now! what a mess"]],
        "questions": [{"q": "which day is the bin day?", "kind": "present", "gold": [1], "stale": [0]}],
    }
    facts = {
        "id": "x",
        "facts": [[0, "Bin day is Tuesday", []], [0, "Dislikes a mess", []], [1, "Bin day is Friday", [0]]],
        "questions": [{"gold": [2], "stale": [0]}],
    }
    (asked,) = collect_lists(story, create_local_embedder("mem0-minilm"), facts)
    assert [(one.text, one.role, one.day) for one in asked.candidates] == [
        ("Bin day is Friday", "user", "2021-01-01"),
        ("Dislikes a mess", "user", "2020-01-01"),
    ]
    assert (asked.gold, asked.stale) == ([0], [])


def test_each_question_about_facts_names_facts_that_exist() -> None:
    lives = {one["id"]: one for one in map(json.loads, (STORY_FOLDER / "lives.jsonl").read_text("utf-8").splitlines())}
    for life in map(json.loads, (STORY_FOLDER / "facts.jsonl").read_text("utf-8").splitlines()):
        story = lives[life["id"]]
        assert all(message < len(story["messages"]) for message, _, _ in life["facts"])
        for asked, answer in zip(story["questions"], life["questions"], strict=True):
            assert {*answer["gold"], *answer["stale"]} <= set(range(len(life["facts"])))
            assert bool(answer["gold"]) == (asked["kind"] != "unanswerable")
