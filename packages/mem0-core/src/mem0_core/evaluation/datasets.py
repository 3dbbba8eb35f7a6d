"""Public benchmarks by path: LoCoMo, LongMemEval, BEAM, PrecisionMemBench and LMEB as transcripts and questions.

The files come with questions and the messages that answer them. They are read as they are published; none of them is
part of this package.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mem0_core.errors import InputError
from mem0_core.evaluation.questions import Question
from mem0_core.evaluation.transcripts import Transcript, build_transcripts
from mem0_core.interchange import ImportedMessage, read_locomo

LOCOMO_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_LOCOMO_UNANSWERABLE = 5
_LOCOMO_EVIDENCE = re.compile(r"D:?(\d+):0*(\d+)")
_ABSTENTION = "abstention"
_LONGMEMEVAL_DATES = ("%Y/%m/%d (%a) %H:%M", "%Y/%m/%d %H:%M", "%Y/%m/%d")
_GZIP = b"\x1f\x8b"
_LMEB_FILES = ("corpus.jsonl", "queries.jsonl", "qrels.tsv")
_PRECISION_FILES = ("beliefs.seed.json", "retrieval.cases.json")


@dataclass(frozen=True, slots=True)
class Suite:
    """Transcripts with questions about them."""

    name: str
    transcripts: tuple[Transcript, ...]
    questions: tuple[Question, ...]


def read_suite(path: Path) -> Suite | None:
    """Read a benchmark; None if the file or folder is none that is known.

    LoCoMo, LongMemEval and BEAM are JSON files, with gzip or without. PrecisionMemBench is the folder ``fixtures``,
    LMEB a folder of one of its tasks.

    Raises:
        InputError: the benchmark is damaged, or has another form than the published one.
    """
    try:
        if path.is_dir():
            return _read_folder(path)
        document = _load(path)
        first = next(iter(document), None) if isinstance(document, list) else document
        for matches, read in _READERS:
            if isinstance(first, Mapping) and matches(first):
                return read(document if isinstance(document, list) else [document])
    except InputError:
        raise
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, SyntaxError) as error:
        raise InputError(f"{path} is not in the published form of its benchmark: {error!r}") from error
    return None


def _load(path: Path) -> Any:
    """Return the document of a JSON file; None for any other file, which is one of chats."""
    try:
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == _GZIP else data
    except (OSError, EOFError) as error:
        raise InputError(f"{path} cannot be read: {error}; pass a file that exists and can be read") from error
    try:
        return json.loads(data)
    except ValueError:
        return None


def _read_folder(path: Path) -> Suite | None:
    if all((path / name).is_file() for name in _LMEB_FILES):
        return _read_lmeb(path)
    for folder in (path, path / "fixtures"):
        if all((folder / name).is_file() for name in _PRECISION_FILES):
            return _read_precision(folder)
    raise InputError(f"{path} is neither a task of LMEB nor the fixtures of PrecisionMemBench; pass files of chats")


def _message(text: str, role: str = "user", *, id: str, at: str | None = None) -> dict[str, Any]:
    said = {"role": role, "content": text, "metadata": {"id": id}}
    return said if at is None else {**said, "timestamp": at}


def _build(name: str, messages: Iterable[ImportedMessage], questions: Iterable[Question]) -> Suite:
    """Return a suite; evidence that names no message is left out."""
    transcripts = build_transcripts((name, one) for one in messages)
    known = {transcript.name: {line.id for line in transcript.lines} for transcript in transcripts}
    kept = [
        Question(
            one.text,
            one.transcript,
            one.kind,
            tuple(id for id in dict.fromkeys(one.gold) if id in known[one.transcript]),
            tuple(id for id in dict.fromkeys(one.stale) if id in known[one.transcript]),
            one.answer,
            one.answerable,
        )
        for one in questions
        if one.transcript in known and one.text.strip()
    ]
    return Suite(name, transcripts, tuple(kept))


# --- LoCoMo ------------------------------------------------------------------------------------------------------


def _read_locomo(samples: Sequence[Any]) -> Suite:
    questions = []
    for number, sample in enumerate(samples, 1):
        user = str(sample.get("sample_id") or f"sample-{number}")
        for entry in sample["qa"]:
            answerable = entry["category"] != _LOCOMO_UNANSWERABLE
            gold = parse_locomo_evidence(entry.get("evidence") or ()) if answerable else ()
            kind, answer = LOCOMO_CATEGORIES[entry["category"]], entry.get("answer")
            answer = None if answer is None or not answerable else str(answer)
            questions.append(Question(entry["question"], user, kind, gold, (), answer, answerable))
    return _build("LoCoMo", read_locomo(list(samples)), questions)


def parse_locomo_evidence(evidence: Sequence[str]) -> tuple[str, ...]:
    """Return the turns that evidence strings name: 'D8:6; D9:17' are two, 'D:11:26' is D11:26, 'D30:05' is D30:5."""
    named = [f"D{session}:{turn}" for part in evidence for session, turn in _LOCOMO_EVIDENCE.findall(part)]
    return tuple(dict.fromkeys(named))


# --- LongMemEval -------------------------------------------------------------------------------------------------


def _read_longmemeval(entries: Sequence[Any]) -> Suite:
    """Read LongMemEval: each question has a history of its own."""
    messages: list[ImportedMessage] = []
    questions = []
    for entry in entries:
        user = str(entry["question_id"])
        marked: list[str] = []
        of_sessions: list[str] = []
        for one, session, has_answer in _longmemeval_messages(entry):
            messages.append(ImportedMessage(user, one, session, {"user_id": user}))
            line = one["metadata"]["id"]
            marked += [line] * has_answer
            of_sessions += [line] * (one["role"] == "user" and session in entry.get("answer_session_ids", ()))
        answerable = not user.endswith("_abs")
        gold = tuple(marked or of_sessions) if answerable else ()
        answer = str(entry["answer"]) if answerable else None
        questions.append(Question(entry["question"], user, entry["question_type"], gold, (), answer, answerable))
    return _build("LongMemEval", messages, questions)


def _longmemeval_messages(entry: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str, bool]]:
    """Yield the messages of a history with their session, and True for those that hold the answer."""
    sessions = entry["haystack_sessions"]
    ids = entry.get("haystack_session_ids") or [f"session-{number}" for number in range(1, len(sessions) + 1)]
    dates = entry.get("haystack_dates") or [None] * len(sessions)
    for session, name, date in zip(sessions, ids, dates, strict=True):
        at = None if date is None else _parse_longmemeval_date(str(date))
        for number, turn in enumerate(session, 1):
            said = _message(turn["content"], turn["role"], id=f"{name}:{number}", at=at)
            yield said, str(name), bool(turn.get("has_answer"))


def _parse_longmemeval_date(text: str) -> str | None:
    for form in _LONGMEMEVAL_DATES:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).isoformat()
        except ValueError:
            continue
    return None


# --- BEAM --------------------------------------------------------------------------------------------------------


def _read_beam(chats: Sequence[Any]) -> Suite:
    """Read BEAM: messages in batches of one day, which the first message of a batch names as ``March-15-2024``."""
    messages: list[ImportedMessage] = []
    questions = []
    for number, chat in enumerate(chats, 1):
        user = str(chat.get("id") or chat.get("conversation_id") or number)
        for batch, said in enumerate(_beam_batches(chat), 1):
            at = parse_beam_day(said[0].get("time_anchor") if said else None)
            for one in said:
                message = _message(one["content"], one["role"], id=str(one["id"]), at=at)
                messages.append(ImportedMessage(f"chat {user}", message, f"batch {batch}", {"user_id": user}))
        questions += [_beam_question(one, user) for one in _beam_questions(chat)]
    return _build("BEAM", messages, questions)


def _beam_batches(chat: Mapping[str, Any]) -> list[list[Any]]:
    if "messages" not in chat:
        return [list(batch) for batch in chat["chat"]]
    batches: dict[Any, list[Any]] = {}
    for one in chat["messages"]:
        batches.setdefault(one.get("batch"), []).append(one)
    return list(batches.values())


def _beam_questions(chat: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    if "questions" in chat:
        return list(chat["questions"])
    probing = chat["probing_questions"]
    by_type = ast.literal_eval(probing) if isinstance(probing, str) else probing
    return [{"type": kind, **one} for kind, listed in by_type.items() for one in listed]


def _beam_question(one: Mapping[str, Any], user: str) -> Question:
    kind = one["type"].replace("_", " ")
    answerable = kind != _ABSTENTION
    answer = next((str(one[key]) for key in ("answer", "ideal_response", "ideal_answer") if one.get(key)), None)
    gold = tuple(_flatten(one.get("gold", one.get("source_chat_ids")))) if answerable else ()
    return Question(one["question"], user, kind, gold, (), answer if answerable else None, answerable)


def _flatten(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _flatten(one)
    elif value is not None:
        yield str(value)


def parse_beam_day(anchor: str | None) -> str | None:
    """Return the time of a day such as ``March-15-2024``; None without one."""
    return None if not anchor else datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC).isoformat()


# --- PrecisionMemBench -------------------------------------------------------------------------------------------


def _read_precision(folder: Path) -> Suite:
    """Read PrecisionMemBench: beliefs as messages, and the beliefs that a query may return as its evidence.

    Scopes become runs, which a search of a user spans. Preludes and session turns are not part of a search, and are
    left out; superseded beliefs are stale.
    """
    beliefs = json.loads((folder / "beliefs.seed.json").read_text(encoding="utf-8"))
    cases = json.loads((folder / "retrieval.cases.json").read_text(encoding="utf-8"))
    user = beliefs[0]["user_id"]
    messages = [
        ImportedMessage(
            one["_id"],
            _message(_belief_text(one), id=one["_id"], at=one["created_at"]),
            ids={"user_id": one["user_id"]},
        )
        for one in sorted(beliefs, key=lambda one: str(one["created_at"]))
    ]
    stale = tuple(one["_id"] for one in beliefs if one.get("superseded_by"))
    questions = []
    for case in cases:
        expected = case.get("expect", {}).get("relevantBeliefs", {})
        if "shouldOnlyInclude" in expected and case.get("query"):
            gold = tuple(expected["shouldOnlyInclude"])
            questions.append(Question(case["query"], user, case["category"], gold, stale, None, bool(gold)))
    return _build("PrecisionMemBench", messages, questions)


def _belief_text(belief: Mapping[str, Any]) -> str:
    """Return the name, the aliases and the content of a belief, all of which a query may match."""
    names = [str(belief["canonical_name"]).replace("_", " "), *belief.get("aliases", ())]
    return f"{', '.join(names)}: {belief['content']}"


# --- LMEB --------------------------------------------------------------------------------------------------------


def _read_lmeb(folder: Path) -> Suite:
    """Read one task of LMEB: documents, queries, and the relevant documents of each query.

    A query that lists candidates is asked of them alone: equal lists are one transcript.
    """
    corpus = {_row_id(row): row for row in _rows(folder / "corpus.jsonl")}
    pools = _lmeb_pools(folder / "candidates.jsonl")
    gold: dict[str, list[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        query, *_, document, score = line.split("\t")
        if score.strip().lstrip("-").replace(".", "", 1).isdigit() and float(score) > 0:
            gold.setdefault(query, []).append(document)
    users: dict[tuple[str, ...], str] = {}
    questions = []
    for row in _rows(folder / "queries.jsonl"):
        scene = str(row.get("scene_id", _row_id(row)))
        documents = pools.get(scene, pools.get(_row_id(row), tuple(corpus)))
        user = users.setdefault(documents, f"{folder.name}-{len(users) + 1}")
        relevant = tuple(gold.get(_row_id(row), ()))
        questions.append(Question(row["text"], user, folder.name, relevant, (), None, bool(relevant)))
    messages = (
        ImportedMessage(one, _message(_document_text(corpus[one]), id=one), ids={"user_id": user})
        for documents, user in users.items()
        for one in documents
        if one in corpus
    )
    return _build("LMEB", messages, questions)


def _lmeb_pools(path: Path) -> dict[str, tuple[str, ...]]:
    if not path.is_file():
        return {}
    keys = ("candidate_doc_ids", "candidates", "doc_ids")
    pools = {}
    for row in _rows(path):
        name = next((row[key] for key in ("scene_id", "query_id", "id", "_id") if key in row), None)
        listed = next((row[key] for key in keys if key in row), ())
        pools[str(name)] = tuple(map(str, listed))
    return pools


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def _row_id(row: Mapping[str, Any]) -> str:
    return str(row["_id"] if "_id" in row else row["id"])


def _document_text(row: Mapping[str, Any]) -> str:
    return ": ".join(filter(None, (row.get("title"), row.get("text")))) or "(empty)"


_READERS: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Sequence[Any]], Suite]], ...] = (
    (lambda one: "conversation" in one and "qa" in one, _read_locomo),
    (lambda one: "haystack_sessions" in one, _read_longmemeval),
    (lambda one: ("messages" in one and "questions" in one) or "probing_questions" in one, _read_beam),
)
