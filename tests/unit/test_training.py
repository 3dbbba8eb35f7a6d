"""The programs in training/ from sources to a folder that the product reads, on a tiny model made here."""

from __future__ import annotations

import gzip
import importlib.util
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mem0_core.language.families import load_families
from mem0_core.providers.numpy_embedder import NumpyEmbedder
from tests.tiny_bert import SAMPLE_TEXTS, write_model_folder
from training.bm25 import Bm25
from training.pools import Pool, draw_pools, read_pools, remove_names, write_pools
from training.sources import SOURCES
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
        from training import mine, pools

        pools.main(["--data", str(sources), "--out", str(work), "--valid-units", "8"])
        base = write_model_folder(work / "base")
        mine.main(
            [
                *("--pools", str(work / "train.jsonl"), "--out", str(work / "examples.jsonl")),
                *("--model", str(base), "--per-method", "2", "--device", "cpu"),
            ]
        )
        return base

    def train(self, base: Path, work: Path, *options: str) -> Path:
        from training import bi_encoder

        bi_encoder.main(
            [
                *(
                    "--base",
                    str(base),
                    "--examples",
                    str(work / "examples.jsonl"),
                    "--valid",
                    str(work / "valid.jsonl"),
                ),
                *("--out", str(work / "run"), "--steps", "2", "--questions", "2", "--layers", "1", "--device", "cpu"),
                *options,
            ]
        )
        return work / "run" / "model"

    def test_negatives_are_neither_gold_nor_masked_nor_later(self, sources: Path, tmp_path: Path) -> None:
        from training.mine import mine_pool

        (pool,) = draw(sources, "train")
        for example in mine_pool(pool, random.Random(1), None, per_method=5, margin=0.1):
            negatives = {unit.text for unit in (*example.hard, *example.easy)}
            assert not negatives & {unit.text for unit in example.gold}
            if example.query == "coffee":
                assert TURNS[2] not in negatives
                assert TURNS[6] in {unit.text for unit in example.hard}
            else:
                assert TURNS[7] not in negatives

    def test_the_product_computes_the_vectors_of_a_trained_folder(self, sources: Path, tmp_path: Path) -> None:
        from training.bert import Tokenizer, encode_texts, load_bert

        base = self.prepare(sources, tmp_path)
        folder = self.train(base, tmp_path, "--rate", "0.01", "--blends", "1")
        trained = encode_texts(load_bert(folder), Tokenizer(folder), SAMPLE_TEXTS, 64)
        np.testing.assert_allclose(NumpyEmbedder(path=folder).embed(SAMPLE_TEXTS), trained, atol=1e-3)
        assert np.abs(trained - NumpyEmbedder(path=base).embed(SAMPLE_TEXTS)).max() > 1e-3

    def test_equal_runs_write_equal_weights(self, sources: Path, tmp_path: Path) -> None:
        base = self.prepare(sources, tmp_path)
        first = (self.train(base, tmp_path) / "model.safetensors").read_bytes()
        assert (self.train(base, tmp_path) / "model.safetensors").read_bytes() == first

    def test_a_blend_of_nothing_is_the_frozen_model(self, sources: Path, tmp_path: Path) -> None:
        import torch

        from training.bert import load_bert
        from training.bi_encoder import blend_weights

        frozen = load_bert(self.prepare(sources, tmp_path))
        other = {name: one + 1 for name, one in frozen.state_dict().items()}
        for share in (0.0, 0.5):
            blended = blend_weights(frozen, other, share).state_dict()
            assert all(
                torch.allclose(blended[name], one + share, atol=1e-5) for name, one in frozen.state_dict().items()
            )

    def rerank(self, base: Path, work: Path, name: str, *options: str) -> Path:
        from training import cross_encoder

        cross_encoder.main(
            [
                *("--base", str(base), "--examples", str(work / "examples.jsonl")),
                *("--valid", str(work / "valid.jsonl"), "--out", str(work / name), "--device", "cpu"),
                *("--steps", "2", "--questions", "2", "--negatives", "3", "--tokens", "32", *options),
            ]
        )
        return work / name / "model"

    def test_a_distilled_reranker_is_read_back_and_exported(self, sources: Path, tmp_path: Path) -> None:
        onnxruntime = pytest.importorskip("onnxruntime")
        from training.cross_encoder import load_cross_encoder
        from training.onnx_export import export

        base = self.prepare(sources, tmp_path)
        teacher = self.rerank(base, tmp_path, "teacher", "--layers", "0,1")
        student = self.rerank(base, tmp_path, "student", "--layers", "1", "--teacher", str(teacher))
        model = load_cross_encoder(student, 32)
        assert len(model.bert.layers) == 1
        scores = model.score(["coffee", "coffee in paris"], ["bob likes coffee", "alice"])
        assert scores.shape == (2,)

        pytest.importorskip("onnx")
        export(student, tmp_path / "plain.onnx", cross_encoder=True, int8=False)
        export(student, tmp_path / "small.onnx", cross_encoder=True, int8=True)
        rows, types = model._encode_pairs(["coffee"], ["bob likes coffee"])
        feeds = {"input_ids": np.array(rows), "token_type_ids": np.array(types)}
        found = [
            onnxruntime.InferenceSession(tmp_path / name).run(None, feeds)[0][0]
            for name in ("plain.onnx", "small.onnx")
        ]
        assert found[0] == pytest.approx(scores[0], abs=1e-4)
        assert found[1] == pytest.approx(scores[0], abs=0.3)  # some processors round otherwise

    def test_one_command_runs_all_programs_and_writes_a_card(self, sources: Path, tmp_path: Path) -> None:
        from training import __main__ as programs

        base = write_model_folder(tmp_path / "base")
        work = tmp_path / "run"
        options = ["--data", str(sources), "--base", str(base), "--out", str(work), "--device", "cpu"]
        programs.main([*options, "--steps", "1", "--questions", "2", "--reranker-steps", "0"])
        card = (work / "embedder" / "model" / "README.md").read_text()
        assert "| persona | turns | 2 | CC BY 4.0 |" in card
        assert "LoCoMo" in card
        figures = json.loads((work / "figures.json").read_text())
        assert {"BM25", str(base), str(work / "embedder" / "model")} == figures.keys()

    def test_a_tagger_of_statements_is_trained_and_scored(self, tmp_path: Path) -> None:
        from training import statement_tagger

        base, messages = write_model_folder(tmp_path / "base"), tmp_path / "messages"
        messages.mkdir()
        (messages / "some.txt").write_text("bob left [-lives_in:paris] for good\nthe coffee\n" * 8, encoding="utf-8")
        options = ["--base", str(base), "--messages", str(messages), "--out", str(tmp_path / "run")]
        statement_tagger.main([*options, "--epochs", "1", "--valid", "0.25", "--layers", "1", "--device", "cpu"])
        run = json.loads((tmp_path / "run" / "run.json").read_text())
        assert run["families"] == ["lives_in"]
        assert run["valid"].keys() == {"precision", "recall", "F1"}
        assert len((tmp_path / "run" / "valid.txt").read_text().splitlines()) == 4


def test_the_marked_messages_name_families_of_the_product() -> None:
    families = load_families()
    messages = read_messages()
    assert len(messages) > 4_000
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
