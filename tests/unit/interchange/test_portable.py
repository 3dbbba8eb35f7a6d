"""Open forms: PAM and MIF out and in, facts of Zep and agent files of Letta in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import InputError, ScopeError
from mem0_core.cli import main
from mem0_core.interchange import find_portable_format, import_chats, import_portable
from mem0_core.interchange._portable import _canonicalize
from tests.support import MODES, MemoryDriver, open_memory


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    with open_memory(tmp_path / "one") as opened:
        yield MemoryDriver(opened, request.param)


def fill(memory: Any) -> None:
    (porto,) = memory.add("I live in Porto.", user_id="ana", infer=True, timestamp="2024-05-01T10:00:00Z")["results"]
    memory.add(
        [{"role": "assistant", "name": "Bo", "content": 'Ana likes 寿司 "a lot".'}],
        user_id="ana",
        agent_id="cook",
        run_id="r1",
        infer=False,
        metadata={"share": 0.25, "big": 1e21, "deep": {"b": [1, True, None], "a": "ü"}},
        expiration_date="2999-01-01",
    )
    memory.pin(porto["id"])
    memory.feedback(porto["id"], True)


def contents(memory: Any) -> list[dict[str, Any]]:
    found = memory.get_all(user_id="ana", show_expired=True)["results"]
    return [{key: value for key, value in one.items() if key not in ("trust", "hash")} for one in found]


def export(memory: Any, path: Path, format: str, **options: Any) -> dict[str, Any]:
    memory.export(path, format=format, overwrite=True, **options)
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def write(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def pam(*memories: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A document of another system, as the specification of PAM 1.0 describes it."""
    return {
        "schema": "portable-ai-memory",
        "schema_version": "1.0",
        "owner": {"id": "ana"},
        "memories": memories,
        **more,
    }


def pam_memory(memory_id: str, content: str, **more: Any) -> dict[str, Any]:
    return {
        "id": memory_id,
        "type": "skill",
        "content": content,
        "content_hash": "sha256:" + "0" * 64,
        "temporal": {"created_at": "2026-02-15T00:00:00Z"},
        "provenance": {"platform": "chatgpt"},
        **more,
    }


@pytest.mark.parametrize("format", ["pam", "mif"])
def test_an_open_form_brings_every_field_of_a_memory_to_another_store(
    memory: MemoryDriver, tmp_path: Path, format: str
) -> None:
    fill(memory)
    export(memory, tmp_path / "all.json", format, user_id="ana")
    with open_memory(tmp_path / "two") as other:
        result = import_portable(other, tmp_path / "all.json")
        assert (result["format"], result["added"], result["skipped"]) == (format, 2, [])
        assert contents(other) == contents(memory)
        assert {one["trust"] for one in other.get_all(user_id="ana")["results"]} == {"import"}
        assert import_portable(other, tmp_path / "all.json")["known"] == 2
        again = export(other, tmp_path / "again.json", format, user_id="ana")
    first = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    same = ("memories", "vendor_extensions", "integrity", "conversations_index")
    assert {key: again.get(key) for key in same} == {key: first.get(key) for key in same}


def test_a_pam_document_has_the_required_parts_and_its_checksum(memory: MemoryDriver, tmp_path: Path) -> None:
    fill(memory)
    document = export(memory, tmp_path / "all.json", "pam", user_id="ana")
    porto, sushi = document["memories"]
    assert (document["schema"], document["schema_version"], document["owner"]) == (
        "portable-ai-memory",
        "1.0",
        {"id": "ana"},
    )
    assert (porto["type"], porto["status"], porto["provenance"]["platform"]) == ("fact", "active", "mem0-core")
    assert sushi["temporal"]["valid_until"] == "2999-01-01T23:59:59Z"
    assert [(one["id"], one["derived_memories"]) for one in document["conversations_index"]] == [("r1", [sushi["id"]])]
    porto["content"] = "I live in Lisbon."
    write(tmp_path / "edited.json", document)
    with pytest.raises(InputError, match="do not match the checksum"):
        import_portable(memory.memory, tmp_path / "edited.json")


def test_a_mif_document_has_the_graph_and_our_fields_apart(memory: MemoryDriver, tmp_path: Path) -> None:
    fill(memory)
    document = export(memory, tmp_path / "all.json", "mif", user_id="ana")
    names = {one["id"]: one["name"] for one in document["knowledge_graph"]["entities"]}
    (lives,) = document["knowledge_graph"]["relationships"]
    assert (lives["relation_type"], names[lives["target_entity_id"]]) == ("lives_in", "Porto")
    own = document["vendor_extensions"]["mem0-core"]["memories"]
    assert [own[one["id"]].get("pinned") for one in document["memories"]] == [True, None]


def test_fields_of_other_systems_come_out_again(memory: MemoryDriver, tmp_path: Path) -> None:
    foreign = pam_memory(
        "m1", "Ana knows Rust.", tags=["work"], confidence={"initial": 1.0}, metadata={"language": "en"}
    )
    import_portable(memory.memory, write(tmp_path / "in.json", pam(foreign)))
    (out,) = export(memory, tmp_path / "out.json", "pam")["memories"]
    kept = ("id", "type", "content", "tags", "confidence")
    assert {key: out[key] for key in kept} == {key: foreign[key] for key in kept}
    assert (out["provenance"]["platform"], out["metadata"]["language"]) == ("chatgpt", "en")


def test_memories_that_no_longer_hold_or_are_faulty_are_skipped_with_a_reason(
    memory: MemoryDriver, tmp_path: Path
) -> None:
    items = [
        pam_memory("m1", "Ana knows Rust."),
        pam_memory("m2", "Ana knows C.", status="superseded"),
        pam_memory("m3", " "),
        pam_memory("m4", "Ana sings.", temporal={"created_at": "yesterday"}),
        pam_memory("m5", "Ana dances.", temporal=None),
    ]
    result = import_portable(memory.memory, write(tmp_path / "in.json", pam(*items)), user_id="eve")
    assert [one["memory"] for one in memory.get_all(user_id="eve")["results"]] == ["Ana knows Rust."]
    assert [one["item"] for one in result["skipped"]] == ["m2", "m3", "m4", "m5"]
    assert [one["reason"].split(":")[0] for one in result["skipped"][:2]] == ["is superseded", "has no text"]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (pam(schema_version="2.0"), "PAM version '2.0'"),
        (pam(export_type="incremental"), "incremental"),
        (pam(integrity={"checksum": "sha256:0", "total_memories": 3}), "names 3 memories and has 0"),
        ({"mif_version": "1.0", "memories": []}, "MIF version '1.0'"),
        ({"mif_version": "2.0"}, "not in the form 'mif'"),
        ({"memories": []}, "has no form of pam, mif, zep"),
    ],
)
def test_a_document_of_another_form_is_refused(tmp_path: Path, document: Any, reason: str) -> None:
    with open_memory(tmp_path / "one") as opened, pytest.raises(InputError, match=reason):
        import_portable(opened, write(tmp_path / "in.json", document))


def test_a_pam_document_has_one_owner(memory: MemoryDriver, tmp_path: Path) -> None:
    memory.add("I ski.", user_id="ana", infer=False)
    memory.add("I sail.", user_id="ben", infer=False)
    with pytest.raises(InputError, match="one owner"):
        memory.export(tmp_path / "all.json", format="pam")
    assert not (tmp_path / "all.json").exists()
    assert len(export(memory, tmp_path / "all.json", "pam", user_id="ben")["memories"]) == 1
    assert len(export(memory, tmp_path / "all.json", "mif")["memories"]) == 2


def test_numbers_and_keys_have_the_canonical_form_of_rfc_8785() -> None:
    numbers = [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001, -0.0, 1e20, 1e21, 5e-324, 10, 1e-7]
    assert _canonicalize(numbers) == (
        "[333333333.3333333,1e+30,4.5,0.002,1e-27,0,100000000000000000000,1e+21,5e-324,10,1e-7]"
    )
    assert _canonicalize({"\u20ac": "Euro\n", "\r": None, "\ufb33": True, "1": "<", "\U0001f600": "\u000f"}) == (
        '{"\\r":null,"1":"<","\u20ac":"Euro\\n","\U0001f600":"\\u000f","\ufb33":true}'
    )


def test_a_fact_of_zep_that_ended_is_expired(memory: MemoryDriver, tmp_path: Path) -> None:
    edges = [
        {"uuid": "e1", "name": "LIVES_IN", "fact": "Ana lives in Rome.", "valid_at": "2020-01-01T00:00:00Z",
         "invalid_at": "2023-05-01T00:00:00Z", "created_at": "2024-01-01T00:00:00Z"},
        {"uuid": "e2", "name": "LIVES_IN", "fact": "Ana lives in Oslo.", "valid_at": "2023-05-01T00:00:00Z",
         "created_at": "2024-01-01T00:00:00Z", "source_node_name": "Ana"},
    ]  # fmt: skip
    file = write(tmp_path / "edges.json", {"user_id": "ana", "edges": edges})
    assert find_portable_format(file) == "zep"
    assert import_portable(memory.memory, file)["added"] == 2
    (now,) = memory.get_all(user_id="ana")["results"]
    assert (now["id"], now["memory"], now["created_at"][:10]) == ("e2", "Ana lives in Oslo.", "2023-05-01")
    assert now["metadata"]["zep"]["source"] == "Ana"
    with pytest.raises(ScopeError):
        import_portable(memory.memory, write(tmp_path / "list.json", edges))


def test_messages_of_zep_keep_their_speakers(memory: MemoryDriver, tmp_path: Path) -> None:
    thread = {
        "user_id": "ana",
        "messages": [
            {
                "uuid": "1",
                "role": "user",
                "name": "Ana",
                "content": "I live in Oslo.",
                "created_at": "2025-01-01T00:00:00Z",
            },
            {"uuid": "2", "role": "Bot", "role_type": "assistant", "content": "Noted: Oslo."},
        ],
    }
    assert import_chats(memory.memory, write(tmp_path / "thread.json", thread))["format"] == "openai"
    found = memory.get_all(user_id="ana")["results"]
    assert sorted((one["role"], one["actor_id"], one["memory"]) for one in found) == [
        ("assistant", "Bot", "Noted: Oslo."),
        ("user", "Ana", "I live in Oslo."),
    ]


def letta_user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text}], "created_at": "2025-10-31T22:56:56+00:00"}


def test_an_agent_file_of_letta_gives_its_conversation_and_blocks(memory: MemoryDriver, tmp_path: Path) -> None:
    call = {"function": {"name": "send_message", "arguments": json.dumps({"message": "Hello Chad!"})}}
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "You are Sam."}]},
        letta_user("I study in Berkeley."),
        letta_user(json.dumps({"type": "user_message", "message": "I sail.", "time": "now"})),
        letta_user(json.dumps({"type": "heartbeat", "reason": "timer"})),
        {"role": "assistant", "content": [{"type": "text", "text": "A thought."}], "tool_calls": [call]},
        {"role": "tool", "content": [{"type": "text", "text": "OK"}]},
    ]
    blocks = [
        {"label": "human", "value": "\nFirst name: Chad\nLikes Formula 1\n"},
        {"label": "persona", "value": "I am Sam."},
    ]
    modern = {"agents": [{"name": "sam", "messages": messages}], "blocks": blocks, "created_at": "2025-11-01T00:00:00Z"}
    legacy = {"name": "sam", "agent_type": "memgpt_agent", "core_memory": blocks, "messages": messages}
    for name, file in (("modern", modern), ("legacy", legacy)):
        result = import_chats(memory.memory, write(tmp_path / f"{name}.af", file), user_id=name)
        assert result["format"] == "letta"
        found = memory.get_all(user_id=name)["results"]
        assert sorted((one["role"], one["memory"]) for one in found) == [
            ("assistant", "First name: Chad"),
            ("assistant", "Hello Chad!"),
            ("assistant", "Likes Formula 1"),
            ("user", "I sail."),
            ("user", "I study in Berkeley."),
        ]


def test_the_command_detects_and_writes_open_forms(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path / "in.json", pam(pam_memory("m1", "Ana knows Rust.")))
    config = write(tmp_path / "config.json", {"embedder": "hash", "path": str(tmp_path / "data")})
    assert main(["import", str(file), "--config", str(config), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "pam"
    out = tmp_path / "out.json"
    assert main(["export", str(out), "--format", "mif", "--config", str(config)]) == 0
    assert json.loads(out.read_text())["memories"][0]["content"] == "Ana knows Rust."
