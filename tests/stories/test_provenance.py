"""Provenance: text planted by a tool is recalled until it is retracted, and never where only users are trusted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import MODES, MemoryDriver, Mode, open_memory, result_texts, run_sql

TOOL = {"source": "tool:web_search", "trust": "tool"}


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path, truth: dict[str, Any]) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    with open_memory(tmp_path, config=truth) as opened:
        yield MemoryDriver(opened, mode)


def relation_texts(memory: MemoryDriver, **ids: Any) -> list[str]:
    return sorted(f"{one['relationship']} {one['destination']}" for one in memory.relations(user_id="ana", **ids))


def assert_sound(memory: MemoryDriver) -> None:
    report = memory.doctor(repair=False)
    assert report["healthy"], report


def test_text_planted_by_a_tool_is_recalled_until_it_is_retracted(memory: MemoryDriver) -> None:
    memory.add("I live in Lisbon.", user_id="ana", source="chat:1")
    memory.add("My sister Anna works at Galp.", user_id="ana", source="chat:1")
    memory.add("I moved to Porto.", user_id="ana", **TOOL)
    memory.add("My bank account number is 999-EVIL.", user_id="ana", **TOOL)
    poisoned = memory.search("What is my bank account number?", user_id="ana")
    assert poisoned["results"][0]["memory"] == "My bank account number is 999-EVIL."
    assert poisoned["results"][0]["trust"] == "tool"
    assert "lives_in Porto" in relation_texts(memory)

    done = memory.retract("tool:web_search", user_id="ana")
    assert (done["messages"], done["memories"], done["kept"]) == (2, 2, 0)
    assert sorted(result_texts(memory.get_all(user_id="ana"))) == ["I live in Lisbon.", "My sister Anna works at Galp."]
    assert "lives_in Lisbon" in relation_texts(memory)
    assert not any("Porto" in one for one in relation_texts(memory, ended=True))
    assert "EVIL" not in str(memory.search("What is my bank account number?", user_id="ana"))
    assert "EVIL" not in str(memory.context("What is my bank account number?", user_id="ana"))
    assert_sound(memory)
    history = memory.history(poisoned["results"][0]["id"], user_id="ana")
    assert [row["event"] for row in history] == ["ADD", "RETRACT"]


def test_text_planted_by_a_tool_is_never_recalled_where_only_users_are_trusted(memory: MemoryDriver) -> None:
    memory.add("I live in Lisbon.", user_id="ana")
    memory.add("I moved to Porto.", user_id="ana", **TOOL)
    assert result_texts(memory.search("Where do I live?", user_id="ana", min_trust="user")) == ["I live in Lisbon."]
    assert result_texts(memory.get_all(user_id="ana", min_trust="user")) == ["I live in Lisbon."]
    assert "Porto" in str(memory.search("Where do I live?", user_id="ana", min_trust="tool"))


def test_a_message_that_another_source_repeats_keeps_its_memory(memory: MemoryDriver) -> None:
    question = "Where does Anna work?"
    memory.add("My sister Anna works at Galp.", user_id="ana", **TOOL)
    assert memory.search(question, user_id="ana")["results"][0]["trust"] == "tool"
    memory.add("My sister Anna works at Galp.", user_id="ana", source="chat:1")
    [kept] = memory.get_all(user_id="ana")["results"]
    assert "trust" not in kept
    assert "trust" not in memory.search(question, user_id="ana")["results"][0], "although searches keep memories"
    done = memory.retract("tool:web_search", user_id="ana")
    assert (done["memories"], done["kept"]) == (0, 1)
    assert result_texts(memory.get_all(user_id="ana")) == ["My sister Anna works at Galp."]
    [relation] = [one for one in memory.relations(user_id="ana") if one["destination"] == "Galp"]
    assert relation["weight"] == 1
    assert_sound(memory)
    assert memory.retract("chat:1", user_id="ana")["memories"] == 1
    assert memory.get_all(user_id="ana") == {"results": [], "relations": []}


def test_a_former_home_that_only_the_tool_knew_leaves(memory: MemoryDriver) -> None:
    memory.add("I live in Oslo.", user_id="ana", timestamp="2024-01-01", **TOOL)
    memory.add("I moved to Berlin.", user_id="ana", timestamp="2024-01-02", **TOOL)
    memory.add("I moved to Oslo.", user_id="ana", timestamp="2024-01-05")
    memory.add("I live in Oslo.", user_id="ana", timestamp="2024-01-07")
    assert memory.retract("tool:web_search", user_id="ana")["kept"] == 1
    [home] = memory.relations(user_id="ana", ended=True)
    assert (home["destination"], home["valid_from"][:10], home["valid_to"]) == ("Oslo", "2024-01-05", None)


def test_a_retraction_keeps_to_its_scope(memory: MemoryDriver) -> None:
    memory.add("I like tea.", user_id="ana", **TOOL)
    memory.add("I like tea.", user_id="bob", **TOOL)
    assert memory.retract("tool:web_search", user_id="ana")["memories"] == 1
    assert memory.retract("another", user_id="bob")["messages"] == 0
    assert len(memory.get_all(user_id="bob")["results"]) == 1
    assert memory.retract("tool:web_search")["memories"] == 1
    assert memory.get_all(user_id="bob")["results"] == []
    assert run_sql(memory.memory, "SELECT count(*) FROM sources") == [(0,)]


def test_relations_of_a_tool_are_not_followed_where_only_users_are_trusted(memory: MemoryDriver) -> None:
    memory.add("I live in Lisbon.", user_id="ana")
    memory.add("My sister Anna works at Galp.", user_id="ana")
    memory.add("I moved to Porto.", user_id="ana", **TOOL)
    memory.add("My sister Anna works at Evilcorp.", user_id="ana", **TOOL)
    assert memory.answer("Where do I live?", user_id="ana")["answer"] == "Porto"
    trusted: dict[str, Any] = {"user_id": "ana", "min_trust": "user"}
    assert memory.answer("Where do I live?", **trusted)["answer"] == "Lisbon"
    assert memory.answer("Where does my sister work?", **trusted)["answer"] == "Galp"
    for found in (
        memory.search("Where do I live?", **trusted),
        memory.search("Where does my sister Anna work?", **trusted),
        memory.context("Where do I live and where does Anna work?", **trusted),
        memory.get_all(**trusted),
        memory.answer("Where does my sister work?", **trusted),
    ):
        assert "Porto" not in str(found)
        assert "Evilcorp" not in str(found)


# --- with a chat model -------------------------------------------------------------------------------------------


def facts(*texts: str) -> dict[str, Any]:
    return {"facts": list(texts)}


def operation(event: str, text: str, number: str = "0") -> dict[str, Any]:
    return {"memory": [{"id": number, "text": text, "event": event}]}


@pytest.fixture
def scripted(tmp_path: Path, truth: dict[str, Any]) -> Iterator[Any]:
    opened = []

    def build(*script: Any) -> Any:
        memory = open_memory(tmp_path, script, config=truth, graph=False)
        opened.append(memory)
        return memory

    yield build
    for memory in opened:
        memory.close()


def test_a_text_that_a_tool_changed_returns_to_the_words_of_the_user(scripted: Any) -> None:
    memory = scripted(
        facts("Lives in Lisbon"), facts("Lives in Porto"), operation("UPDATE", "Lives in Porto since 2020")
    )
    memory.add("I live in Lisbon", user_id="ana", source="chat")
    [changed] = memory.add("Ana lives in Porto since 2020", user_id="ana", **TOOL)["results"]
    assert memory.get(changed["id"])["trust"] == "tool"
    assert memory.retract("tool:web_search", user_id="ana")["restored"] == 1
    restored = memory.get(changed["id"])
    assert restored["memory"] == "Lives in Lisbon"
    assert "trust" not in restored
    assert [row["event"] for row in memory.history(changed["id"])] == ["ADD", "UPDATE", "RESTORE"]
    assert result_texts(memory.search("Lisbon", user_id="ana")) == ["Lives in Lisbon"]
    assert "Porto" not in str(memory.search("Porto", user_id="ana", include_superseded=True))
    assert memory.doctor(repair=False)["healthy"]


def test_a_memory_that_a_tool_deleted_comes_back(scripted: Any) -> None:
    memory = scripted(facts("Likes tea"), facts("Likes tea no more"), operation("DELETE", "Likes tea"))
    [added] = memory.add("I like tea", user_id="ana", source="chat")["results"]
    memory.add("Ana likes tea no more", user_id="ana", **TOOL)
    assert memory.get(added["id"]) is None
    assert memory.retract("tool:web_search", user_id="ana")["restored"] == 1
    assert memory.get(added["id"])["memory"] == "Likes tea"
    assert [row["event"] for row in memory.history(added["id"])] == ["ADD", "DELETE", "RESTORE"]
    assert result_texts(memory.search("tea", user_id="ana")) == ["Likes tea"]
    assert memory.doctor(repair=False)["healthy"]


def test_words_of_the_user_in_a_withdrawn_text_are_read_again(scripted: Any) -> None:
    memory = scripted(
        facts("Manager is Eve"),
        facts("Badge is 12"),
        operation("UPDATE", "Manager is Eve, badge is 12"),
        facts("Badge is 12"),
    )
    memory.add("Ana's manager is Eve", user_id="ana", **TOOL)
    memory.add("My badge is 12", user_id="ana", source="chat")
    done = memory.retract("tool:web_search", user_id="ana")
    assert (done["memories"], done["jobs"]) == (1, 1)
    assert memory.flush(30)
    assert result_texts(memory.get_all(user_id="ana")) == ["Badge is 12"]
    assert memory.doctor(repair=False)["healthy"]
