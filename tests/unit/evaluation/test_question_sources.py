"""Questions made by rules and by a model, and benchmarks read by path."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mem0_core.errors import InputError
from mem0_core.evaluation import (
    Line,
    ModelJudge,
    Outcome,
    Question,
    Transcript,
    make_questions,
    make_questions_with_model,
    read_suite,
)
from mem0_core.testing import ScriptedChat


def build_transcript(*texts: str, speaker: str | None = None, name: str = "maya") -> Transcript:
    lines = tuple(Line(str(number), text, speaker=speaker) for number, text in enumerate(texts, 1))
    return Transcript(name, lines)


def by_text(transcript: Transcript) -> dict[str, Question]:
    return {question.text: question for question in make_questions([transcript])}


def test_a_changed_fact_is_asked_with_its_stale_value() -> None:
    questions = by_text(build_transcript("I live in Porto.", "The train was late.", "I moved to Berlin."))
    asked = questions["Where do I live?"]
    assert (asked.kind, asked.gold, asked.stale, asked.answer) == ("changed", ("3",), ("1",), "berlin")


def test_a_named_speaker_is_asked_about_by_name() -> None:
    questions = by_text(build_transcript("I live in Porto.", "I moved to Berlin.", speaker="Tom"))
    assert questions["Where does Tom live?"].gold == ("2",)


def test_a_stated_value_becomes_the_gap_of_a_cloze() -> None:
    transcript = build_transcript(
        "My sister Anna works at Acme.", "It rained. My sister Anna works at Acme.", speaker="Tom"
    )
    questions = by_text(transcript)
    assert questions["Tom's sister Anna works at what?"].gold == ("1", "2")
    assert questions["Tom's sister Anna works at what?"].answer == "acme"
    assert not any(text.startswith("What is Anna's employer") for text in questions)


def test_an_ended_fact_is_not_asked_for() -> None:
    questions = by_text(build_transcript("I have a dog named Rex.", "Rex died last week.", "I quit my job at Acme."))
    assert "What is my employer?" not in questions


def test_nothing_that_the_transcript_mentions_counts_as_never_said() -> None:
    transcript = build_transcript("I live in Porto.", "My brother called, and my doctor too.")
    unsaid = [question for question in by_text(transcript).values() if not question.answerable]
    assert unsaid
    assert all(question.kind == "never said" and not question.gold for question in unsaid)
    assert not any(word in question.text for question in unsaid for word in ("brother", "doctor", "live"))


def test_a_sentence_of_the_speaker_becomes_a_cloze_without_its_rarest_noun() -> None:
    transcript = build_transcript(
        "Yesterday I repaired the old harpsichord in the garage.", "How are you?", speaker="Eva"
    )
    (cloze,) = [question for question in by_text(transcript).values() if question.answerable]
    assert cloze.gold == ("1",)
    assert cloze.answer == "harpsichord"
    assert "harpsichord" not in cloze.text
    assert "Eva repaired the old what" in cloze.text


@pytest.mark.parametrize(
    "text", ["{name}", "I like {0} and }{ tea.", "I'm at the \x00 ends", "```\nmy code of the thing"]
)
def test_hostile_texts_make_no_trouble(text: str) -> None:
    make_questions([build_transcript(text, "I live in {rome}.", speaker="{x}")])


def test_questions_are_the_same_at_each_call() -> None:
    transcript = build_transcript(*(f"Once I bought a red lamp number {n} in the market." for n in range(200)))
    assert make_questions([transcript]) == make_questions([transcript])


# --- by a model --------------------------------------------------------------------------------------------------


def test_a_model_writes_questions_about_single_messages() -> None:
    def script(task: str, messages: Any) -> str:
        marked = next(one for one in json.loads(messages[-1]["content"]) if one.get("marked"))
        return "none" if "late" in marked["text"] else "<think>hm</think>Question: Where is it?\nAnswer: in Porto\nBye"

    transcript = build_transcript(
        "I left my umbrella somewhere in Porto.", "The train was late again this morning, sorry."
    )
    (question,) = make_questions_with_model(ScriptedChat(script), [transcript], 5)
    assert (question.text, question.answer, question.gold) == ("Where is it?", "in Porto", ("1",))


@pytest.mark.parametrize(("verdict", "correct"), [("Yes.", 1.0), ("<think>yes</think>no", 0.0), ("perhaps", None)])
def test_a_judgment_is_read_or_left_out(verdict: str, correct: float | None) -> None:
    chat = ScriptedChat(["Berlin", verdict])
    judged = ModelJudge(chat)(Question("Where?", "maya", answer="Berlin"), Outcome("I moved.", (), None, False, 3))
    assert judged == {"reply": "Berlin", "correct": correct}
    assert "I moved." in chat.calls[0].messages[0]["content"]


def test_an_unanswerable_question_is_judged_without_an_expected_answer() -> None:
    chat = ScriptedChat(["unknown", "yes"])
    judged = ModelJudge(chat)(Question("Where?", "maya", answerable=False), Outcome("", (), None, True, 0))
    assert judged["correct"] == 1.0
    assert json.loads(chat.calls[1].messages[1]["content"])["expected"] is None


# --- benchmarks --------------------------------------------------------------------------------------------------


def write(path: Path, document: Any) -> Path:
    text = json.dumps(document)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def test_locomo_is_read_with_its_evidence(tmp_path: Path) -> None:
    talk = {
        "speaker_a": "Ann",
        "speaker_b": "Bob",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I bought a kite."}],
    }
    asked = [
        {"question": "What did Ann buy?", "answer": "a kite", "evidence": ["D1:01; D9:9"], "category": 4},
        {"question": "What did Bob buy?", "adversarial_answer": "a kite", "evidence": ["D1:1"], "category": 5},
    ]
    suite = read_suite(write(tmp_path / "l.json.gz", [{"sample_id": "s", "conversation": talk, "qa": asked}]))
    assert suite is not None
    assert [line.id for line in suite.transcripts[0].lines] == ["D1:1"]
    assert [(one.gold, one.answerable) for one in suite.questions] == [(("D1:1",), True), ((), False)]


def test_longmemeval_has_a_transcript_for_each_question(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "I ski.", "has_answer": True}, {"role": "assistant", "content": "Nice."}]
    entry = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which sport?",
        "answer": "ski",
        "haystack_dates": ["2023/05/20 (Sat) 02:21"],
        "haystack_session_ids": ["a"],
        "haystack_sessions": [turns],
        "answer_session_ids": ["a"],
    }
    suite = read_suite(write(tmp_path / "l.json", [entry, {**entry, "question_id": "q2_abs"}]))
    assert suite is not None
    assert [one.name for one in suite.transcripts] == ["q1", "q2_abs"]
    assert suite.transcripts[0].lines[0].said_at == "2023-05-20T02:21:00+00:00"
    assert [(one.gold, one.answerable) for one in suite.questions] == [(("a:1",), True), ((), False)]


@pytest.mark.parametrize("is_published", [False, True])
def test_beam_is_read_in_both_forms(tmp_path: Path, is_published: bool) -> None:
    said = {"id": 7, "role": "user", "time_anchor": "March-15-2024", "content": "I use Flask."}
    asked: dict[str, Any] = {"question": "What?"}
    if is_published:
        probing = {
            "abstention": [{"question": "Why?"}],
            "information_extraction": [{**asked, "source_chat_ids": {"a": [7]}}],
        }
        chat: dict[str, Any] = {"conversation_id": "c", "chat": [[said]], "probing_questions": repr(probing)}
    else:
        abstention = {"type": "abstention", "question": "Why?", "gold": []}
        listed = [abstention, {**asked, "type": "information_extraction", "gold": [7]}]
        chat = {"id": "c", "messages": [{**said, "batch": 1}], "questions": listed}
    suite = read_suite(write(tmp_path / "b.json", [chat]))
    assert suite is not None
    assert suite.transcripts[0].lines[0].said_at == "2024-03-15T00:00:00+00:00"
    assert [(one.kind, one.gold, one.answerable) for one in suite.questions] == [
        ("abstention", (), False),
        ("information extraction", ("7",), True),
    ]


def test_precisionmembench_is_read_from_its_fixtures(tmp_path: Path) -> None:
    belief: dict[str, Any] = {
        "_id": "b-1",
        "user_id": "u",
        "canonical_name": "k8s_cluster",
        "aliases": ["kube"],
        "content": "On EKS.",
    }
    belief |= {"created_at": "2026-01-01T00:00:00Z", "superseded_by": None}
    old = {**belief, "_id": "b-0", "content": "On Nomad.", "superseded_by": "b-1"}
    case = {"query": "kube?", "category": "Alias", "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["b-1"]}}}
    write(tmp_path / "beliefs.seed.json", [belief, old])
    write(tmp_path / "retrieval.cases.json", [case, {**case, "expect": {"relevantBeliefs": {"shouldOnlyInclude": []}}}])
    suite = read_suite(tmp_path)
    assert suite is not None
    assert suite.transcripts[0].lines[0].text == "k8s cluster, kube: On EKS."
    assert [(one.gold, one.stale, one.answerable) for one in suite.questions] == [
        (("b-1",), ("b-0",), True),
        ((), ("b-0",), False),
    ]


def test_lmeb_asks_a_query_of_its_candidates(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text("\n".join(json.dumps({"id": id, "title": "", "text": id}) for id in "abc"))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"id": "q", "text": "Which?", "scene_id": "s"}))
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq\tb\t1\nq\ta\t0\n")
    (tmp_path / "candidates.jsonl").write_text(json.dumps({"scene_id": "s", "candidate_doc_ids": ["a", "b"]}))
    suite = read_suite(tmp_path)
    assert suite is not None
    assert [line.id for line in suite.transcripts[0].lines] == ["a", "b"]
    assert suite.questions[0].gold == ("b",)


def test_chats_are_no_benchmark_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    assert read_suite(write(tmp_path / "chat.json", [{"role": "user", "content": "Hi."}])) is None
    with pytest.raises(InputError, match="not in the published form"):
        read_suite(write(tmp_path / "bad.json", [{"conversation": {}, "qa": [{"question": "Why?"}]}]))
    with pytest.raises(InputError, match="neither a task of LMEB"):
        read_suite(tmp_path)
    with pytest.raises(InputError, match=r"^\S+none.json cannot be read"):
        read_suite(tmp_path / "none.json")
