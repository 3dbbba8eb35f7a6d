"""Importing: chats of every format through the command, resumable; mem0 1.x with its ids and history."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks import locomo
from mem0_core import Memory
from mem0_core.cli import main
from mem0_core.contracts import COSINE_TOLERANCE
from mem0_core.errors import InputError
from mem0_core.interchange import import_chats, import_export, import_mem0_v1
from mem0_core.interchange._files import read_chats
from mem0_core.interchange._mem0_v1 import read_installation
from mem0_core.testing import HashEmbedder
from tests.support import MODES, MemoryDriver, Mode, open_memory, restore_interrupts

Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command with ``--json``; returns what it printed, parsed, or the error."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"embedder": "hash", "durability": "process"}))

    def call(*arguments: object, code: int = 0) -> Any:
        common = ["--config", str(config), "--path", str(tmp_path / "data"), "--json"]
        assert main([*map(str, arguments), *common]) == code
        captured = capsys.readouterr()
        return json.loads(captured.out) if not code else json.loads(captured.err)["error"]["message"]

    return call


def memories(run: Run, user: str = "ann") -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = run("list", "--user", user)["results"]
    return listed


def said(path: Path, format: str | None = None) -> tuple[str, list[tuple[str, str]]]:
    told, read = read_chats(path, format)
    return told, [(one.message["role"], one.message["content"]) for one in read]


TALK = [("user", "I live in Rome."), ("assistant", "A fine town.")]


def chatgpt(name: str = "Towns", key: str = "c-1") -> dict[str, Any]:
    """An export's conversation: hidden roots, a tool's output, a regenerated answer, and a branch that was left."""

    def node(key: str, parent: str | None, role: str, text: str, **more: Any) -> dict[str, Any]:
        content = {"content_type": "text", "parts": [text]}
        message = {"id": key, "author": {"role": role}, "create_time": 1_700_000_000.5, "content": content, **more}
        return {"id": key, "message": message, "parent": parent, "children": []}

    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["s"]},
        node("s", "root", "system", "You are helpful."),
        node("u", "s", "user", "I live in Rome."),
        node("left", "u", "assistant", "An answer that was thrown away."),
        node("t", "u", "tool", "{}"),
        node("code", "t", "assistant", "search()", recipient="browser"),
        node("a", "code", "assistant", "A fine town."),
    ]
    mapping = {one["id"]: one for one in nodes}
    return {"title": name, "conversation_id": key, "create_time": 1.0, "mapping": mapping, "current_node": "a"}


def claude() -> dict[str, Any]:
    def message(sender: str, text: str) -> dict[str, Any]:
        content = [{"type": "text", "text": text}, {"type": "tool_use", "name": "search", "input": {}}]
        return {"uuid": text, "sender": sender, "text": text, "content": content, "created_at": "2025-01-02T03:04:05Z"}

    talk = [message("human", "I live in Rome."), message("assistant", "A fine town.")]
    return {"uuid": "c-1", "name": "Towns", "chat_messages": talk, "account": {"uuid": "x"}}


def langchain_dicts() -> Any:
    from langchain_core.messages import AIMessage, HumanMessage, messages_to_dict

    return messages_to_dict([HumanMessage("I live in Rome."), AIMessage([{"type": "text", "text": "A fine town."}])])


def langchain_dumped() -> Any:
    from langchain_core.load import dumpd
    from langchain_core.messages import AIMessage, HumanMessage

    return [dumpd(HumanMessage("I live in Rome.")), dumpd(AIMessage("A fine town."))]


def langchain_models() -> Any:
    from langchain_core.messages import AIMessage, HumanMessage

    return [HumanMessage("I live in Rome.").model_dump(), AIMessage("A fine town.").model_dump()]


def llamaindex_models() -> Any:
    from llama_index.core.llms import ChatMessage

    talk = [ChatMessage(role=role, content=text) for role, text in TALK]
    return [message.model_dump(mode="json") for message in talk]


def llamaindex_store() -> Any:
    """As `SimpleChatStore.persist` lays it out (which fails itself with the pydantic of today)."""
    return {"store": {"c-1": llamaindex_models()}, "class_name": "SimpleChatStore"}


def openai_messages() -> Any:
    return [{"role": role, "content": text} for role, text in TALK]


DOCUMENTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "chatgpt": ("chatgpt", lambda: [chatgpt()]),
    "claude": ("claude", lambda: [claude()]),
    "langchain, messages_to_dict": ("langchain", langchain_dicts),
    "langchain, dumpd": ("langchain", langchain_dumped),
    "langchain, model_dump": ("langchain", langchain_models),
    "llamaindex, ChatMessage": ("llamaindex", llamaindex_models),
    "llamaindex, SimpleChatStore": ("llamaindex", llamaindex_store),
    "openai": ("openai", openai_messages),
    "openai, messages": ("openai", lambda: {"messages": openai_messages()}),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_format_is_told_by_what_is_in_the_file(tmp_path: Path, name: str) -> None:
    format, document = DOCUMENTS[name]
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(document()))
    assert said(file) == (format, TALK)
    assert said(file, format)[1] == TALK
    with gzip.open(tmp_path / "packed.gz", "wt") as packed:
        packed.write(json.dumps(document()))
    assert said(tmp_path / "packed.gz") == (format, TALK)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_json_lines_may_be_of_any_format(tmp_path: Path, name: str) -> None:
    document = DOCUMENTS[name][1]()
    rows = document if isinstance(document, list) else [document]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join([*map(json.dumps, rows), *map(json.dumps, rows)]) + "\n")
    assert said(file, "jsonl") == ("jsonl", TALK + TALK)


def test_plain_json_lines(tmp_path: Path, run: Run) -> None:
    rows = [
        "I live in Rome.",
        {"text": "I like tea", "user_id": "bob", "timestamp": "2024-05-06", "metadata": {"from": "phone"}},
        {"role": "assistant", "content": "Noted", "run_id": "r1"},
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    assert "line 1" not in run("import", file, code=2)  # no id: named by the error of scopes
    result = run("import", file, "--user", "ann")
    assert (result["format"], result["messages"], result["added"]) == ("jsonl", 3, 3)
    assert sorted(one["memory"] for one in memories(run)) == ["I like tea", "I live in Rome.", "Noted"]
    (tea,) = [one for one in memories(run) if one["memory"] == "I like tea"]
    assert tea["created_at"].startswith("2024-05-06")
    assert tea["metadata"] == {"from": "phone"}
    assert next(one["run_id"] for one in memories(run) if one["memory"] == "Noted") == "r1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One thing.\nAnother thing.\n", ["One thing.", "Another thing."]),
        ("A paragraph\nof two lines.\n\nAnother.", ["A paragraph of two lines.", "Another."]),
        ("Ann: I live in Rome.\nAssistant: A fine town.", ["I live in Rome.", "A fine town."]),
        ("[note] this is no JSON", ["[note] this is no JSON"]),
    ],
)
def test_plain_text(tmp_path: Path, text: str, expected: list[str]) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(text)
    format, talk = said(file)
    assert (format, [content for _, content in talk]) == ("text", expected)


def test_a_file_of_empty_lines_that_is_named_a_text_has_no_messages(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("  \n\n \n")
    assert said(file, "text") == ("text", [])


def test_conversations_are_runs_of_their_own_unless_told_otherwise(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([chatgpt(), chatgpt("Again", "c-2")]))
    assert run("import", file, "--user", "ann")["conversations"] == 2
    assert {one["run_id"] for one in memories(run)} == {"c-1", "c-2"}
    assert len(memories(run)) == 4
    assert run("import", file, "--user", "bob", "--no-runs")["added"] == 2
    assert all("run_id" not in one for one in memories(run, "bob"))
    assert run("import", file, "--user", "cid", "--run", "all")["added"] == 2
    assert {one["run_id"] for one in memories(run, "cid")} == {"all"}


def test_the_archives_that_are_sent_are_read_as_they_are(tmp_path: Path, run: Run) -> None:
    with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
        archive.writestr("user.json", "{}")
        archive.writestr("conversations-000.json", json.dumps([chatgpt()]))
        archive.writestr("conversations-001.json", json.dumps([chatgpt("Again", "c-2")]))
    result = run("import", tmp_path / "export.zip", "--user", "ann")
    assert (result["format"], result["messages"], result["conversations"]) == ("chatgpt", 4, 2)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("user.json", "{}")
    assert "contains no conversations.json" in run("import", tmp_path / "other.zip", "--user", "ann", code=1)


def test_an_import_has_a_source_that_can_be_retracted(tmp_path: Path, run: Run) -> None:
    run("add", "I like tea", "--user", "ann")
    file = tmp_path / "notes.txt"
    file.write_text("I live in Rome.\n\nI work at Galp.")
    run("import", file, "--user", "ann")
    assert {one["memory"]: one.get("trust") for one in memories(run)} == {
        "I like tea": None,
        "I live in Rome.": "import",
        "I work at Galp.": "import",
    }
    assert run("retract", "import:text:notes.txt", "--user", "ann")["memories"] == 2
    assert [one["memory"] for one in memories(run)] == ["I like tea"]


def test_an_export_keeps_sources_and_trust_classes(tmp_path: Path) -> None:
    with open_memory(tmp_path / "old") as old, open_memory(tmp_path / "new") as new:
        old.add("I live in Rome.", user_id="ann")
        old.add("I moved to Oslo.", user_id="ann", source="tool:web", trust="tool")
        old.export(tmp_path / "export.jsonl")
        import_export(new, tmp_path / "export.jsonl")
        assert [one["memory"] for one in new.get_all(user_id="ann", min_trust="user")["results"]] == ["I live in Rome."]
        assert new.retract("tool:web")["memories"] == 1
        assert [one["destination"] for one in new.relations(user_id="ann")] == ["Rome"]


def test_a_newer_export_brings_what_is_new(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([chatgpt()]))
    assert run("import", file, "--user", "ann")["added"] == 2
    again = run("import", file, "--user", "ann")
    assert (again["added"], again["resumed"]) == (0, 2)
    file.write_text(json.dumps([chatgpt(), chatgpt("Again", "c-2")]))
    newer = run("import", file, "--user", "ann")
    assert (newer["added"], newer["resumed"], newer["known"]) == (2, 2, 0)


BAD: dict[str, tuple[str, str]] = {
    "broken JSON": ('[{"role": "user", "content": "x"},', "bad is not valid JSON"),
    "a broken line": ('{"text": "fine"}\n{"text": \n', "bad: line 2 is not valid JSON"),
    "a line that says nothing": ('{"text": "fine"}\n{"colour": "red"}\n', "bad: line 2 is neither a text"),
    "an unknown role": ('{"text": "fine"}\n{"role": "king", "content": "x"}', "bad: line 2 has the role 'king'"),
    "a time that is none": ('{"text": "a"}\n{"text": "b", "timestamp": "noon"}', "bad: line 2.timestamp 'noon'"),
    "a surrogate": ('["fine", "\\ud800"]', "bad: message 2 is not valid Unicode"),
    "questions": ('{"question": "Where?", "answer": "Rome"}', "bad has questions in place of messages"),
    "an unknown form": ('{"colour": "red"}', "bad: unrecognized JSON format"),
    "nothing": ("  \n", "bad is empty"),
    "a sender": ('[{"chat_messages": [{"sender": "cat"}]}]', "conversation 1 (untitled), message 1 has the sender"),
    "a loop": (
        '[{"mapping": {"a": {"parent": "a", "message": null}}, "current_node": "a", "title": "T"}]',
        "conversation 1 (T): its messages do not form a tree",
    ),
    "a date": (
        '[{"conversation": {"speaker_a": "A", "session_1_date_time": "soon", "session_1": []}, "qa": []}]',
        "sample 1 (None), session_1 has the date 'soon'",
    ),
    "a type": ('[{"type": "ghost", "content": "x"}]', "message 1 has the type 'ghost'"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_names_file_place_and_reason_and_writes_nothing(tmp_path: Path, run: Run, what: str) -> None:
    content, expected = BAD[what]
    file = tmp_path / "bad"
    file.write_text(content)
    error = run("import", file, "--user", "ann", code=1)
    assert expected in error
    assert str(file) in error
    assert memories(run) == []


def test_bytes_that_are_no_text_are_named(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "bad"
    file.write_bytes(b"fine\n\xff\xfe")
    assert "line 2 is not valid UTF-8" in run("import", file, "--user", "ann", code=1)
    assert "cannot be read" in run("import", tmp_path / "nowhere", "--user", "ann", code=1)


def test_an_import_that_was_killed_goes_on(tmp_path: Path) -> None:
    """Interrupted in the middle, as by Ctrl-C: committed changes are kept, and the same call does the rest."""
    file = tmp_path / "notes.txt"
    file.write_text("\n".join(f"note number {number}" for number in range(50)))
    with open_memory(tmp_path / "data") as memory:

        def stop(done: int, total: int) -> None:
            if done >= 20:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            import_chats(memory, file, user_id="ann", chunk=10, on_progress=stop)
        assert len(memory.get_all(user_id="ann", limit=100)["results"]) == 20
        seen: list[tuple[int, int]] = []
        result = import_chats(memory, file, user_id="ann", chunk=10, on_progress=lambda *at: seen.append(at))
        assert (result["resumed"], result["added"]) == (20, 30)
        assert seen[-1] == (50, 50)
        assert memory.doctor()["findings"] == []


def test_ctrl_c_ends_the_command_with_130_and_a_consistent_store(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("\n".join(f"I met person number {number} in town {number}." for number in range(20_000)))
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"embedder": "hash", "durability": "process"}))
    common = ["--path", str(tmp_path / "data"), "--config", str(config)]
    command = [sys.executable, "-m", "mem0_core.cli"]
    importing = [*command, "import", str(file), "--user", "ann", "--chunk", "50", "--progress", *common]
    process = subprocess.Popen(
        importing, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, preexec_fn=restore_interrupts
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("import ["):
            break
    process.send_signal(2)
    errors = process.stderr.read()
    assert process.wait() == 130
    assert errors.splitlines()[-1] == "mem0-core: interrupted; committed changes are kept"
    checked = subprocess.run([*command, "doctor", "--check", *common], check=False)
    assert checked.returncode == 0


# --- the real file -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not locomo.PATH.exists(), reason="the evaluation data is not here (../shared/data)")
def test_locomo_through_the_command_is_found_as_through_the_library(tmp_path: Path, run: Run) -> None:
    """The whole file through the command line, with a bar; then 20 of its questions, asked of both."""
    config = tmp_path / "config.json"
    command = [sys.executable, "-m", "mem0_core.cli", "--path", str(tmp_path / "data"), "--config", str(config)]
    done = subprocess.run(
        [*command, "import", str(locomo.PATH), "--progress", "--json"], check=True, capture_output=True, text=True
    )
    conversations = locomo.load()
    turns = sum(len(one.turns) for one in conversations)
    result = json.loads(done.stdout)
    assert result["format"] == "locomo"
    assert result["added"] + result["known"] == result["messages"] == turns
    bars = [line for line in done.stderr.splitlines() if line.startswith("import [")]
    assert bars[-1].startswith(f"import [{'#' * 10}")
    assert f"{turns}/{turns} 100%" in bars[-1]
    with open_memory(tmp_path / "library") as memory:
        for one in conversations:
            for number, session in enumerate(one.sessions, 1):
                first = one.turns[0].speaker
                messages = [
                    {
                        "role": "user" if turn.speaker == first else "assistant",
                        "content": turn.text,
                        "name": turn.speaker,
                        "timestamp": turn.said_at,
                        "metadata": {"dia_id": turn.id},
                    }
                    for turn in session
                ]
                if messages:
                    number = int(messages[0]["metadata"]["dia_id"].partition(":")[0][1:])  # type: ignore[index]
                    memory.add_many(messages, user_id=one.name, run_id=f"session_{number}")
        asked = [(one.name, question.text) for one in conversations for question in one.questions[:40:8]]
        assert len(asked) == 20
        for user, question in asked:
            ours = run("search", question, "--user", user)["results"]
            theirs = memory.search(question, user_id=user, limit=10)["results"]
            assert len(ours) == len(theirs) == 10
            assert [one["score"] for one in ours] == pytest.approx(
                [one["score"] for one in theirs], abs=COSINE_TOLERANCE
            )
            clear = theirs[-1]["score"] + COSINE_TOLERANCE  # closer ones may change places with the eleventh
            assert {one["memory"] for one in theirs if one["score"] > clear} <= {one["memory"] for one in ours}


# --- mem0 1.x ----------------------------------------------------------------------------------------------------

FACTS = {
    "Lives in Rome": {"user_id": "ann", "created_at": "2024-07-29T16:08:04.1-07:00", "category": "home"},
    "I work at Acme.": {
        "user_id": "ann",
        "agent_id": "helper",
        "created_at": "2024-07-30T16:08:04+00:00",
        "role": "user",
        "updated_at": "2024-08-01T00:00:00+00:00",
        "actor_id": "Ann",
    },
    "Likes tea": {"run_id": "r1", "created_at": "2024-07-28T00:00:00+00:00"},
}


def payloads() -> dict[str, dict[str, Any]]:
    return {
        str(uuid.uuid5(uuid.NAMESPACE_DNS, text)): {"data": text, "hash": "x", **more} for text, more in FACTS.items()
    }


def v1_history(file: Path) -> None:
    columns = (
        "id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT, created_at DATETIME,"
        " updated_at DATETIME, is_deleted INTEGER, actor_id TEXT, role TEXT"
    )
    with closing(sqlite3.connect(file)) as db:
        db.execute(f"CREATE TABLE history ({columns})")
        for number, memory_id in enumerate(payloads()):
            row: tuple[Any, ...] = (
                f"h{number}",
                memory_id,
                None,
                "first words",
                "ADD",
                "2024-07-29",
                None,
                0,
                None,
                None,
            )
            db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        memory_id = next(iter(payloads()))
        row = ("h9", memory_id, "first words", "Lives in Rome", "UPDATE", "2024-07-29", "2024-08-01", 0, None, None)
        db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        db.commit()


def with_qdrant(folder: Path) -> None:
    """What mem0 1.x leaves, by Qdrant's own client."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder / "qdrant"))
    params = models.VectorParams(size=4, distance=models.Distance.COSINE)
    for name in ("mem0", "mem0migrations"):
        client.create_collection(name, vectors_config=params)
    points = [
        models.PointStruct(id=key, vector=[1.0, 0.0, 0.0, 0.0], payload=value) for key, value in payloads().items()
    ]
    client.upsert("mem0", points)
    client.upsert("mem0migrations", [models.PointStruct(id=1, vector=[1.0, 0.0, 0.0, 0.0], payload={"user_id": "x"})])
    client.close()


def with_faiss(folder: Path) -> None:
    """What mem0 1.x's FAISS store writes: the index, and beside it a pickle of two dicts."""
    import faiss
    import numpy as np

    (folder / "faiss").mkdir(parents=True)
    index = faiss.IndexFlatL2(4)
    index.add(np.ones((3, 4), dtype=np.float32))
    faiss.write_index(index, str(folder / "faiss" / "mem0.faiss"))
    pickled = pickle.dumps((payloads(), dict(enumerate(payloads()))))
    (folder / "faiss" / "mem0.pkl").write_bytes(pickled)


@pytest.mark.parametrize("left", [with_qdrant, with_faiss], ids=["qdrant", "faiss"])
def test_an_installation_of_mem0_is_taken_over(tmp_path: Path, run: Run, left: Callable[[Path], None]) -> None:
    old = tmp_path / "old"
    old.mkdir()
    left(old)
    v1_history(old / "history.db")
    result = run("import", old)
    assert (result["format"], result["messages"], result["added"], result["history"]) == ("mem0-v1", 3, 3, 4)
    (home, work) = sorted(memories(run), key=lambda one: str(one["created_at"]))
    assert home["memory"] == "Lives in Rome"
    assert home["id"] == str(uuid.uuid5(uuid.NAMESPACE_DNS, "Lives in Rome"))
    assert home["created_at"] == "2024-07-29T23:08:04.100000+00:00"
    assert home["metadata"] == {"category": "home"}
    assert (work["agent_id"], work["actor_id"], work["role"]) == ("helper", "Ann", "user")
    assert [row["event"] for row in run("history", home["id"])] == ["ADD", "UPDATE"]
    assert run("search", "tea", "--run", "r1")["results"][0]["memory"] == "Likes tea"
    assert "Acme" in [relation["destination"] for relation in run("relations", "--user", "ann")]
    again = run("import", old)
    assert (again["added"], again["known"], again["history"]) == (0, 3, 0)
    run("delete", home["id"])
    assert run("import", old)["deleted"] == 1
    assert len(memories(run)) == 1
    assert run("doctor")["findings"] == []


def with_faiss_of_version_two(folder: Path) -> None:
    """Write what mem0 2.x's FAISS store leaves: payloads in JSON, and entities in a collection of their own."""
    with_faiss(folder)
    (folder / "faiss" / "mem0.pkl").unlink()
    derived = {"text_lemmatized": "x", "attributed_to": "user"}
    stored = {key: {**value, **derived} for key, value in payloads().items()}
    (folder / "faiss" / "mem0.json").write_text(json.dumps({"docstore": stored, "index_to_id": {}}))
    (folder / "faiss" / "mem0_entities.faiss").write_bytes(b"")
    entities = {"e1": {"data": "Rome", "entity_type": "city", "user_id": "ann"}}
    (folder / "faiss" / "mem0_entities.json").write_text(json.dumps({"docstore": entities, "index_to_id": {}}))


OTHER_SIZE = "the stored vectors have 4 dimensions, and those of hash-384 have 384"
REASONS: dict[Callable[[Path], None], str] = {
    with_qdrant: OTHER_SIZE,
    with_faiss: OTHER_SIZE,
    with_faiss_of_version_two: "the store has no vectors that can be read",
}


@pytest.mark.parametrize("left", [with_qdrant, with_faiss, with_faiss_of_version_two], ids=["qdrant", "pkl", "json"])
def test_a_store_at_mem0s_place_is_named_and_adopted_without_a_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, left: Callable[[Path], None]
) -> None:
    old = tmp_path / ".mem0"
    old.mkdir()
    left(old)
    v1_history(old / "history.db")
    monkeypatch.setenv("MEM0_DIR", str(old))
    monkeypatch.setenv("MEM0_CORE_HOME", str(tmp_path / "ours"))
    monkeypatch.setattr("mem0_core.interchange._mem0_v1._DEFAULT_VECTOR_FOLDERS", ())
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    with Memory(embedder=HashEmbedder()) as memory:
        memory.add("I am new here", user_id="bob")
    (notice,) = [record.getMessage() for record in caplog.records if "mem0-core adopt" in record.getMessage()]
    assert str(old) in notice
    with Memory(embedder=HashEmbedder()):
        pass
    assert caplog.text.count("mem0-core adopt") == 1, "named once"
    out = io.StringIO()
    config = tmp_path / "config.json"
    config.write_text('{"embedder": "hash"}')
    with contextlib.redirect_stdout(out):
        assert main(["--config", str(config), "adopt"]) == 0
    assert "copied: 3 memories and 4 history rows; their vectors were made again by hash-384" in out.getvalue()
    assert REASONS[left] in out.getvalue()
    assert f"{old} is unchanged" in out.getvalue()
    with Memory(embedder=HashEmbedder()) as memory:
        assert len(memory.get_all(user_id="bob")["results"]) == 1
        found = memory.get_all(user_id="ann")["results"]
        assert {one["memory"] for one in found} >= {"Lives in Rome"}
        assert not any({"text_lemmatized", "attributed_to"} & set(one["metadata"]) for one in found)
    assert {path: path.read_bytes() for path in old.rglob("*") if path.is_file()} == before


def facts(count: int) -> dict[str, dict[str, Any]]:
    """Return payloads of mem0 by id."""
    return {
        str(uuid.uuid5(uuid.NAMESPACE_DNS, str(n))): {
            "data": f"Likes dish number {n}",
            "user_id": "ann",
            "hash": "x",
            "created_at": f"2024-01-{1 + n:02}T09:00:00+00:00",
            "updated_at": None,
        }
        for n in range(count)
    }


def to_qdrant(folder: Path, stored: dict[str, dict[str, Any]], vectors: Any) -> None:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder / "qdrant"))
    params = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection("mem0", vectors_config=params)
    points = [
        models.PointStruct(id=key, vector=row.tolist(), payload=payload)
        for (key, payload), row in zip(stored.items(), vectors, strict=True)
    ]
    client.upsert("mem0", points)
    client.close()


def to_faiss(folder: Path, stored: dict[str, dict[str, Any]], vectors: Any) -> None:
    import faiss

    (folder / "faiss").mkdir(parents=True)
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(vectors)
    faiss.write_index(index, str(folder / "faiss" / "mem0.faiss"))
    kept = {"docstore": stored, "index_to_id": {str(place): key for place, key in enumerate(stored)}}
    (folder / "faiss" / "mem0.json").write_text(json.dumps(kept))


class CountingEmbedder(HashEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], **kind: Any) -> Any:
        self.texts += texts
        return super().embed(texts, **kind)


@pytest.mark.parametrize("store", [to_qdrant, to_faiss], ids=["qdrant", "faiss"])
def test_vectors_of_the_same_embedder_are_moved(tmp_path: Path, store: Callable[..., None]) -> None:
    stored = facts(20)
    vectors = HashEmbedder().embed([one["data"] for one in stored.values()]) * 2.5
    store(tmp_path / "old", stored, vectors)
    embedder = CountingEmbedder()
    with open_memory(tmp_path / "new", embedder=embedder) as memory:
        result = import_mem0_v1(memory, tmp_path / "old")
        assert (result["vectors"]["moved"], result["vectors"]["embedded"], result["added"]) == (20, 0, 20)
        assert "the lowest cosine with a stored vector is 1.0000" in result["vectors"]["reason"]
        assert len({text for text in embedder.texts if text in {one["data"] for one in stored.values()}}) == 8
        for payload in stored.values():
            assert memory.search(payload["data"], user_id="ann", limit=1)["results"][0]["memory"] == payload["data"]
        assert memory.doctor()["findings"] == []


@pytest.mark.parametrize("first", [0, 19], ids=["oldest", "newest"])
def test_vectors_of_another_embedder_are_made_again(tmp_path: Path, first: int) -> None:
    stored = facts(20)
    vectors = HashEmbedder().embed([one["data"] for one in stored.values()])
    vectors[first] = vectors[first][::-1]
    to_qdrant(tmp_path / "old", stored, vectors)
    with open_memory(tmp_path / "new") as memory:
        told = import_mem0_v1(memory, tmp_path / "old")["vectors"]
        assert (told["moved"], told["embedded"]) == (0, 20)
        assert "below 0.999" in told["reason"]


def test_positions_that_mem0_used_twice_move_no_vector(tmp_path: Path) -> None:
    stored = facts(6)
    to_faiss(tmp_path / "old", stored, HashEmbedder().embed([one["data"] for one in stored.values()]))
    file = tmp_path / "old" / "faiss" / "mem0.json"
    kept = json.loads(file.read_text())
    removed = kept["index_to_id"].pop("2")  # as mem0 deletes: the vector stays in the index
    kept["docstore"].pop(removed)
    file.write_text(json.dumps(kept))
    with open_memory(tmp_path / "new") as memory:
        told = import_mem0_v1(memory, tmp_path / "old")["vectors"]
        assert (told["moved"], told["embedded"]) == (0, 5)
        assert told["reason"] == "the store has no vectors that can be read"


def test_an_installation_is_taken_over_where_it_lies(tmp_path: Path, run: Run) -> None:
    """The store lies beside its history file, which stays as it is; each change is there once."""
    with_faiss(tmp_path / "data")
    v1_history(tmp_path / "data" / "history.db")
    assert run("import", tmp_path / "data")["added"] == 3
    (home, work) = sorted(memories(run), key=lambda one: str(one["created_at"]))
    assert [row["id"] for row in run("history", home["id"])] == ["h0", "h9"]
    assert [row["id"] for row in run("history", work["id"])] == ["h1"]
    assert run("doctor")["findings"] == []


def test_a_memory_of_nobody_needs_an_id(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "old" / "faiss"
    folder.mkdir(parents=True)
    (folder / "mem0.faiss").write_bytes(b"")
    held = {"m1": {"data": "Likes tea", "created_at": "2024-01-01"}}
    (folder / "mem0.pkl").write_bytes(pickle.dumps((held, {0: "m1"})))
    assert "memory m1 has no user" in run("import", tmp_path / "old", code=1)
    assert run("import", tmp_path / "old", "--user", "ann")["added"] == 1
    assert memories(run)[0]["id"] == "m1"


class _Evil:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.target}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_would_run_something_is_refused(tmp_path: Path, protocol: int) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "mem0.faiss").write_bytes(b"")
    (folder / "mem0.pkl").write_bytes(pickle.dumps(({"a": _Evil(tmp_path / "ran")}, {}), protocol=protocol))
    with pytest.raises(InputError, match=r"mem0.pkl cannot be read: .*it refers to .*system"):
        read_installation(folder)
    assert not (tmp_path / "ran").exists()


def test_a_folder_with_nothing_of_mem0_is_refused(tmp_path: Path, run: Run) -> None:
    assert "contains no collection" in run("import", tmp_path, "--format", "mem0-v1", code=1)
    assert "cannot be read" in run("import", tmp_path / "nowhere", code=1)


@pytest.mark.parametrize("mode", MODES)
def test_adopting_under_both_drivers(tmp_path: Path, mode: Mode) -> None:
    with open_memory(tmp_path) as memory:
        driven: Any = MemoryDriver(memory, mode)
        given = [
            {"id": "m2", "memory": "I moved to Oslo.", "created_at": "2024-02-01", "user_id": "ann"},
            {"id": "m1", "memory": "I live in Rome.", "created_at": "2024-01-01", "user_id": "ann"},
        ]
        made = {"moved": 0, "embedded": 2, "reason": "the store has no vectors that can be read"}
        counts = {"added": 2, "known": 0, "deleted": 0, "history": 0, "adopted_messages": 0}
        assert driven.adopt(given) == {**counts, "vectors": made}
        (held,) = driven.relations(user_id="ann")
        assert (held["destination"], held["valid_from"][:10], held["memories"]) == ("Oslo", "2024-02-01", ["m2"])
        assert driven.adopt([{**given[0], "id": "m3"}])["known"] == 1
        for wrong, named in (
            ({"memory": " "}, "m2' has no text"),
            ({"user_id": None}, "m2': give at least one"),
            ({"vector": "x"}, "m2'.vector must be a list of numbers, not 'x'"),
        ):
            with pytest.raises(ValueError, match=named):
                driven.adopt([{**given[0], **wrong}])


MESSAGE = {"id": 1, "digest": "00" * 16, "role": "user", "content": "Hi", "created_at": "2024-01-01", "user_id": "ann"}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"content": None}, r"messages\[1\] has no role or content"),
        ({"digest": "xyz"}, r"messages\[1\] has no id or digest"),
        ({"user_id": None}, r"messages\[1\]: give at least one"),
        ({"created_at": "soon"}, r"messages\[1\].created_at"),
    ],
)
def test_messages_that_cannot_be_adopted_are_named_and_nothing_is_written(
    tmp_path: Path, wrong: dict[str, Any], named: str
) -> None:
    memories = [{"id": "m1", "memory": "Hi", "created_at": "2024-01-01", "user_id": "ann", "messages": [1]}]
    with open_memory(tmp_path) as memory:
        with pytest.raises(ValueError, match=named):
            memory.adopt(memories, messages=[MESSAGE, {**MESSAGE, "id": 2, **wrong}])
        assert memory.stats()["messages"] == memory.stats()["memories"] == 0
        assert memory.adopt(memories, messages=[MESSAGE])["adopted_messages"] == 1


def test_a_policy_has_its_say_on_what_is_adopted(tmp_path: Path) -> None:
    def policy(text: str, scope: object) -> str | None:
        return None if "secret" in text else text.replace("0123", "****")

    given = [
        {"id": "m1", "memory": "The secret is out", "created_at": "2024-01-01", "user_id": "ann"},
        {"id": "m2", "memory": "My number is 0123", "created_at": "2024-01-01", "user_id": "ann"},
    ]
    history = [
        {"id": "h1", "memory_id": "m1", "event": "ADD", "new_memory": "The secret is out"},
        {"id": "h2", "memory_id": "m2", "event": "ADD", "new_memory": "My number was 0123"},
    ]
    with open_memory(tmp_path, policy=policy) as memory:
        assert memory.adopt(given, history=history)["added"] == 1
        assert [one["memory"] for one in memory.get_all(user_id="ann")["results"]] == ["My number is ****"]
        assert [row["new_memory"] for row in memory.history("m2")] == ["My number was ****"]
        assert memory.history("m1") == []
