"""Evaluation of memory on transcripts: arms, figures, report and command."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from mem0_core.cli import main
from mem0_core.config import load_config
from mem0_core.errors import ConfigError, InputError
from mem0_core.evaluation import (
    EvaluationPlan,
    Line,
    Outcome,
    Question,
    Settings,
    Transcript,
    describe_ranking,
    measure,
    parse_requirement,
    rank_memories,
    read_questions,
    read_transcripts,
    render_report,
    run_evaluation,
    suggest_settings,
)
from mem0_core.evaluation.receipt import describe_models
from mem0_core.testing import HashEmbedder, ScriptedChat

HOSTILE = "</script><script>alert('x')</script>"
CHAT = [
    {"role": "user", "content": "I live in Porto.", "timestamp": "2025-01-28"},
    {"role": "assistant", "content": "How is the weather there?"},
    {"role": "user", "content": "My sister Anna works at Acme.", "timestamp": "2025-02-28"},
    {"role": "user", "content": "I moved to Berlin.", "timestamp": "2025-07-28"},
    {"role": "user", "content": f"My note says {HOSTILE} today."},
]
QUESTIONS = [
    {"question": "Where do I live?", "answer": "Berlin", "stale": ["Porto"]},
    {"question": "Where does Anna work?", "evidence": ["3"], "kind": "family"},
    {"question": "What is my blood type?", "answer": None},
    {"question": f"What does {HOSTILE} mean?", "answer": "My note"},
]


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(CHAT))
    (tmp_path / "questions.json").write_text(json.dumps(QUESTIONS))
    (tmp_path / "config.json").write_text(json.dumps({"embedder": "hash"}))
    return file


Run = Callable[..., int]


@pytest.fixture
def run(chat: Path, tmp_path: Path) -> Run:
    def call(*arguments: str) -> int:
        config = ["--config", str(tmp_path / "config.json"), "--path", str(tmp_path / "own")]
        return main(["eval", str(chat), "--out", str(tmp_path / "report.html"), *config, *arguments])

    return call


def plan(chat: Path, **changes: Any) -> EvaluationPlan:
    given: dict[str, Any] = {"questions": str(chat.parent / "questions.json"), "embedders": ("hash",), **changes}
    return EvaluationPlan((chat,), **given)


def test_a_memory_finds_what_the_baselines_cannot_rank(chat: Path) -> None:
    result = run_evaluation(plan(chat, recipes=("hybrid", "mem0")))
    arms = result["arms"]
    assert list(arms) == [
        "no memory",
        "whole history",
        "last 2,000 tokens",
        "memory hybrid (hash)",
        "memory mem0 (hash)",
    ]
    memory = arms["memory hybrid (hash)"]["figures"]
    assert memory["hit@5"]["value"] == 1
    assert memory["stale_above_fresh"]["value"] == 0
    assert memory["refused"] == {"value": 1, "low": 1, "high": 1, "questions": 1}
    assert "hit@5" not in arms["whole history"]["figures"]
    assert arms["whole history"]["figures"]["found"]["value"] == 1
    assert arms["no memory"]["figures"]["found"]["value"] == 0
    assert arms["memory hybrid (hash)"]["kinds"]["family"]["hit@1"]["value"] == 1


def test_a_window_holds_the_last_messages_that_fit(chat: Path) -> None:
    result = run_evaluation(plan(chat, price=2.0, settings=Settings(max_tokens=30)))
    window = result["arms"]["last 30 tokens"]["figures"]
    assert 0 < window["tokens"]["value"] <= 30
    assert window["found"]["value"] < 1
    assert window["cost"]["value"] == pytest.approx(window["tokens"]["value"] * 2 / 1000, abs=1e-3)


def test_the_report_escapes_every_text_and_loads_nothing(chat: Path) -> None:
    result = run_evaluation(plan(chat, recipes=("mem0",)))
    result["arms"][HOSTILE] = result["arms"].pop("memory mem0 (hash)")
    for row in result["arms"][HOSTILE]["rows"]:
        row["values"]["found"] = 0.0
    page = render_report(result)
    assert HOSTILE not in page
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_command_writes_a_page_and_json_and_leaves_the_store_alone(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = str(tmp_path / "questions.json")
    assert run("--questions", questions, "--require", "hit@5>=0.9") == 0
    assert "met: hit@5>=0.9 (memory)" in capsys.readouterr().out
    assert json.loads((tmp_path / "report.json").read_text())["checks"][0]["met"] is True
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert not (tmp_path / "own").exists()
    assert run("--questions", questions, "--require", "tokens<=0") == 3
    assert run("--questions", questions, "--require", "hit@7>=0.9") == 1
    assert "did you mean" in capsys.readouterr().err


def test_stale_evidence_above_the_fresh_one_is_counted() -> None:
    question = Question("Where?", "u", gold=("2",), stale=("1",), answer="Berlin")
    outcome = Outcome("", (("1",), ("2",)), (("1",), ("2",)), False, 7)
    values = measure(question, outcome)
    assert values["stale_above_fresh"] == 1
    assert values["hit@1"] == 0
    assert values["hit@5"] == values["found"] == 1
    assert values["precision"] == values["mrr"] == 0.5


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"question": ""}, "is not an object with the text 'question'"),
        ({"question": "Where?", "evidense": []}, "unknown key 'evidense'; did you mean 'evidence'"),
        ({"question": "Where?", "evidence": ["Lisbon"]}, "neither the id nor a part of a message"),
        ({"question": "Where?", "user": "bob"}, "has the user 'bob'"),
        (7, "is not an object"),
    ],
)
def test_an_unusable_question_is_named(chat: Path, entry: object, reason: str) -> None:
    file = chat.parent / "wrong.json"
    file.write_text(json.dumps([QUESTIONS[0], entry]))
    with pytest.raises(InputError, match="question 2") as error:
        read_questions(file, read_transcripts([chat]))
    assert reason in str(error.value)


@pytest.mark.parametrize("text", ["hit@5", "hit@5>=", "hit@5>=x", "", ">=1"])
def test_a_requirement_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a requirement"):
        parse_requirement(text)


def test_two_results_are_compared_question_by_question(chat: Path, tmp_path: Path) -> None:
    first = run_evaluation(plan(chat, recipes=("mem0",)))
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps(first))
    compared = run_evaluation(plan(chat, recipes=("hybrid",), compare=earlier))["comparison"]
    assert compared["questions"] == len(QUESTIONS)
    assert compared["figures"]["tokens"]["difference"]["value"] > 0
    config = tmp_path / "second.json"
    config.write_text(json.dumps({"embedder": "hash", "recipe": "mem0"}))
    result = run_evaluation(plan(chat, recipes=("hybrid",), compare=config))
    assert result["comparison"]["second"] == str(config)
    assert "Comparison" in render_report(result)


def arm_of(*found: float) -> dict[str, Any]:
    rows = [{"question": str(number), "values": {"found": value}} for number, value in enumerate(found)]
    return {"settings": {}, "figures": {"found": {"value": sum(found) / len(found)}}, "rows": rows}


def test_memories_are_in_order_and_those_that_differ_by_chance_are_tied() -> None:
    arms = {
        "no memory": {**arm_of(*[1.0] * 40), "settings": None},
        "worst": arm_of(*[0.0] * 40),
        "first half": arm_of(*[1.0] * 20, *[0.0] * 20),
        "second half": arm_of(*[0.0] * 19, *[1.0] * 21),
    }
    ranking = rank_memories(arms)
    assert [one["arm"] for one in ranking["memories"]] == ["second half", "first half", "worst"]
    assert ranking["memories"][2]["difference"]["value"] == pytest.approx(0.5)
    assert describe_ranking(ranking) == "order by found: second half = first half > worst"
    assert describe_ranking(rank_memories({"only": arm_of(1.0)})) == ""


def test_memories_whose_judge_could_read_no_common_question_are_tied() -> None:
    def arm_of(*judged: int) -> dict[str, Any]:
        rows = [{"question": str(n), "values": {"correct": 1.0} if n in judged else {}} for n in range(4)]
        return {"settings": {}, "figures": {"correct": {"value": 1.0}}, "rows": rows}

    ranking = rank_memories({"one": arm_of(0, 1), "other": arm_of(2, 3)})
    assert describe_ranking(ranking) == "order by correct: one = other"


def test_the_order_of_the_recipes_is_in_the_report(chat: Path) -> None:
    result = run_evaluation(plan(chat, recipes=("hybrid", "mem0")))
    assert describe_ranking(result["ranking"]) in unescape(render_report(result))
    assert {one["arm"] for one in result["ranking"]["memories"]} == {"memory hybrid (hash)", "memory mem0 (hash)"}


def test_answers_are_judged_and_lift_and_harm_are_against_no_memory(chat: Path) -> None:
    def script(task: str, messages: Any) -> str:
        if task == "eval_answer":
            return "Berlin" if "Berlin" in messages[0]["content"] else "unknown"
        given = json.loads(messages[1]["content"])
        return "yes" if given["answer"] == (given["expected"] or "unknown") else "no"

    result = run_evaluation(plan(chat, recipes=("hybrid",), judge=True), llm=ScriptedChat(script))
    history = result["arms"]["whole history"]["figures"]
    assert result["arms"]["no memory"]["figures"]["correct"]["value"] == pytest.approx(1 / 3, abs=1e-3)
    assert history["lift"]["value"] == history["harm"]["value"] == pytest.approx(1 / 3, abs=1e-3)
    with pytest.raises(ConfigError, match="need a chat model"):
        run_evaluation(plan(chat, judge=True))


def test_citations_of_answers_are_counted_and_held_against_the_evidence(chat: Path) -> None:
    def script(task: str, messages: Any) -> str:
        if task == "eval_answer":
            lines = [line for line in messages[0]["content"].splitlines() if '{"id"' in line and "Berlin" in line]
            return f"Berlin [{json.loads(lines[0])['id']}]" if lines else "unknown"
        return "yes"

    result = run_evaluation(plan(chat, recipes=("hybrid",), judge=True), llm=ScriptedChat(script))
    (memory,) = [arm for name, arm in result["arms"].items() if name.startswith("memory")]
    figures = memory["figures"]
    rows = {row["question"]: row["values"] for row in memory["rows"]}
    (home,) = [values for values in rows.values() if values.get("cited_right") == 1.0]
    assert 0 < home["cited"] <= 1
    assert figures["cited"]["questions"] == len(rows)
    assert "cited" not in result["arms"]["whole history"]["figures"]


def test_few_questions_give_no_suggestion(chat: Path) -> None:
    suggestion = run_evaluation(plan(chat, suggest=True))["suggestion"]
    assert suggestion["settings"] is None
    assert "fewer than 20 questions" in suggestion["advice"]


class OneSettingIsBest:
    """A memory that finds the answer with the recipe paper alone, or never."""

    def __init__(self, finds: bool, settings: Any = None) -> None:
        self.settings = settings or Settings()
        self.name = "memory"
        self._finds = finds

    def with_settings(self, **changes: Any) -> OneSettingIsBest:
        return OneSettingIsBest(self._finds, replace(self.settings, **changes))

    def inject(self, question: Question, transcript: Transcript) -> Outcome:
        found = self._finds and self.settings.recipe == "paper"
        tokens = self.settings.max_tokens // 2
        return Outcome("", (question.gold if found else ("0",),), None, False, tokens)


def test_settings_are_suggested_only_if_they_gain_on_unseen_questions() -> None:
    transcript = Transcript("u", (Line("1", "I ski."),))
    questions = [Question(f"Which sport {number}?", "u", gold=("1",)) for number in range(40)]
    arm: Any = OneSettingIsBest(finds=True)
    suggestion = suggest_settings(arm, [transcript], questions)
    assert suggestion["settings"]["recipe"] == "paper"
    assert suggestion["settings"]["max_tokens"] == 500
    assert suggestion["found"]["value"] == 1
    assert suggestion["gain"]["low"] > 0
    assert "recipe='paper'" in suggestion["advice"]
    arm = OneSettingIsBest(finds=False, settings=Settings(max_tokens=1))
    assert suggest_settings(arm, [transcript], questions)["settings"] is None


def test_the_report_needs_a_folder_and_a_name_of_its_own(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--out", "nowhere/report.html") == 1
    assert "there is no folder 'nowhere'" in capsys.readouterr().err
    assert run("--out", "report.json") == 1
    assert "names the HTML report" in capsys.readouterr().err


def test_a_configured_model_and_outside_stores_are_left_alone(chat: Path) -> None:
    config = load_config(
        {
            "embedder": "hash",
            "llm": "openai:gpt-4o-mini",
            "graph_store": {"provider": "neo4j", "config": {"url": "bolt://localhost:1", "password": "x"}},
            "limits": {"adds_per_minute": 1},
        }
    )
    result = run_evaluation(plan(chat, embedders=()), config)
    assert result["arms"]["memory"]["figures"]["hit@5"]["value"] == 1


def test_rerankers_are_compared_on_one_memory_and_the_receipt_names_all_models(chat: Path) -> None:
    result = run_evaluation(plan(chat, recipes=("hybrid",), rerankers=("none", "mem0-reranker")))
    plain, reranked = "memory hybrid (hash + none)", "memory hybrid (hash + mem0-reranker)"
    assert list(result["models"]) == [plain, reranked]
    assert result["models"][plain]["reranker"] is None
    assert "mem0-reranker" in result["models"][reranked]["reranker"]
    assert result["models"][reranked]["embedder"] == "hash-384"
    assert result["arms"][reranked]["figures"]["hit@5"]["questions"] == 3
    assert "mem0-reranker" in render_report(result)


def test_the_receipt_changes_with_the_files_and_the_questions(chat: Path) -> None:
    first, again = (run_evaluation(plan(chat))["receipt"] for _ in range(2))
    assert first["files"] == again["files"] == {"chat.json": hashlib.sha256(chat.read_bytes()).hexdigest()}
    assert first["questions"] == again["questions"]
    assert first["versions"]["python"] == platform.python_version()
    chat.write_text(json.dumps(CHAT[:4]))
    assert run_evaluation(plan(chat))["receipt"]["files"] != first["files"]
    assert run_evaluation(plan(chat, sample=2))["receipt"]["questions"] != first["questions"]


def test_the_digest_of_a_model_is_that_of_all_its_files(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").write_bytes(b"1")
    first = describe_models(HashEmbedder(), None, (f"onnx:{folder}", "hash", None))
    assert list(first["files"]) == [f"onnx:{folder}"]
    (folder / "weights").write_bytes(b"2")
    assert describe_models(HashEmbedder(), None, (f"onnx:{folder}",))["files"] != first["files"]
