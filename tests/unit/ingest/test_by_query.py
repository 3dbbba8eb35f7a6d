"""Updating and deleting, by id and by query: what is meant, what is told, and that nothing of it stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import InputError, Memory, QueryError
from tests.graph_model import GraphModel, fact_replies, relation_replies, relation_text
from tests.support import MODES, MemoryDriver, Mode, open_memory, result_events, result_texts, run_sql

_TABLES = (
    *("memories", "vectors", "sketches", "words", "messages", "sources", "past", "nodes", "edges", "node_vectors"),
    *("edge_vectors", "evidence", "edge_messages", "merges", "aliases", "jobs", "summaries", "imports"),
)
_RECORD = ("history", "tombstones", "node_tombstones", "edge_tombstones")


def rows_of(memory: Memory, *tables: str) -> dict[str, int]:
    """Return the number of rows per table."""
    found = {}
    for table in tables or _TABLES:
        if table != "words" or memory.store.maintenance.file is not None:  # PostgreSQL has them in sketches
            ((found[table],),) = run_sql(memory, f"SELECT count(*) FROM {table}")
    return found


def projected(memory: Memory) -> dict[str, Any]:
    """Return the results of each projection for a user: memories, names and sentences by vectors, words, walks."""
    vector = memory.embedder.embed(["anything"], kind="query")
    from mem0_core.domain.records import Scope

    scope = Scope("u")
    graph = memory._open_graph()
    assert graph is not None
    memories = memory._open_index().nearest(scope, vector, 1000)
    around = graph.index.neighborhoods(scope, vector, threshold=-1.0, limit=1000)
    triplets = graph.index.nearest_relations(scope, vector, 1000, threshold=-1.0)
    adjacency = memory._open_adjacency().of(scope)
    return {
        "memories": len(memories[0]),
        "nodes": len(around[0].nodes),
        "relations": len(triplets[0]),
        "walks": int(adjacency.valid_edges().sum()),
        "tea": len(memory.store.lexicon.postings(scope, ["tea"], kind="term", limit=99).get("tea", ())),
        "anna": len(memory.store.lexicon.postings(scope, ["anna"], kind="name", limit=99).get("anna", ())),
    }


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path, truth: dict[str, Any]) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    with open_memory(tmp_path, config=truth) as opened:
        yield MemoryDriver(opened, mode)


def tell(memory: MemoryDriver, *said: str, **options: Any) -> list[str]:
    return [memory.add(text, user_id="u", **options)["results"][0]["id"] for text in said]


def held(memory: MemoryDriver, **options: Any) -> dict[str, int]:
    return {relation_text(one): one["weight"] for one in memory.relations(user_id="u", **options)}


# --- exactly what depended on it -----------------------------------------------------------------------------------


@pytest.mark.parametrize("by_query", [False, True])
def test_a_deleted_memory_leaves_every_table_and_projection_as_they_were(memory: MemoryDriver, by_query: bool) -> None:
    tell(memory, "I like tea.", "My sister is Anna.")
    before, seen = rows_of(memory.memory), projected(memory.memory)
    (gone,) = tell(memory, 'Anna Rossi likes tea, I live in Rome since May 2020, and I read "Dune".')
    assert all(count >= before[table] for table, count in rows_of(memory.memory).items())
    assert rows_of(memory.memory)["edges"] > before["edges"]
    assert projected(memory.memory) != seen
    if by_query:
        memory.delete_by_query("Anna Rossi likes tea, I live in Rome", user_id="u", threshold=0.6)
    else:
        memory.delete(gone)
    assert rows_of(memory.memory) == before
    assert projected(memory.memory) == seen
    record = rows_of(memory.memory, *_RECORD)
    assert (record["history"], record["tombstones"]) == (4, 1)


def test_deleting_one_of_two_that_say_the_same_lowers_what_it_weighs(memory: MemoryDriver) -> None:
    one, _ = tell(memory, "I like tea.", "I really like tea, and I live in Rome.")
    assert held(memory) == {"u -- likes -- tea": 2, "u -- lives_in -- Rome": 1}
    memory.delete(one)
    assert held(memory) == {"u -- likes -- tea": 1, "u -- lives_in -- Rome": 1}


def test_an_update_leaves_what_adding_the_new_text_would_have_left(tmp_path: Path) -> None:
    old, new = "I live in Rome and I like tea since May 2020.", "I live in Oslo and I like tea."
    made: list[dict[str, int]] = []
    seen: list[dict[str, Any]] = []
    shown: list[dict[str, int]] = []
    for name in ("updated", "added"):
        with open_memory(tmp_path / name) as memory:
            driven = MemoryDriver(memory, "sync")
            tell(driven, "My sister is Anna.")
            (changed,) = tell(driven, old if name == "updated" else new)
            if name == "updated":
                memory.update(changed, new)
            shown.append(held(driven))
            seen.append(projected(memory))
            made.append(rows_of(memory, "memories", "vectors", "sketches", "messages", "sources"))
            relations = {relation_text(one): one for one in memory.relations(user_id="u")}
            assert "date" not in relations["u -- likes -- tea"]
            if name == "updated":
                (past,) = [one for one in memory.relations(user_id="u", ended=True) if one["valid_to"] is not None]
                assert (relation_text(past), past["memories"]) == ("u -- lives_in -- Rome", [])
                assert memory.store.graph.relation_vectors.rows(memory.store.get(changed).scope).size == 3  # type: ignore[union-attr]
    assert shown[0] == shown[1]
    assert seen[0] | {"nodes": 0} == seen[1] | {"nodes": 0}  # Rome stays, as what was held before
    assert made[0] == made[1]


def test_an_update_takes_back_what_its_text_still_names(memory: MemoryDriver) -> None:
    (one,) = tell(memory, "I live in Rome.")
    memory.update(one, "I have never seen Rome.")
    assert held(memory) == {}
    memory.update(one, "I live in Rome.")
    memory.update(one, "I live in Rome, as you know.")
    assert held(memory) == {"u -- lives_in -- Rome": 1}


def test_an_update_that_fails_leaves_everything(memory: MemoryDriver) -> None:
    one, _ = tell(memory, "I live in Rome.", "I like tea.")
    before, relations = rows_of(memory.memory), held(memory)
    with pytest.raises(InputError):
        memory.update(one, "I like tea")
    assert (rows_of(memory.memory), held(memory)) == (before, relations)


# --- by query --------------------------------------------------------------------------------------------------------


def test_what_is_meant_is_decided_by_cosine_and_filters(memory: MemoryDriver) -> None:
    tell(memory, "I like green tea.", "I like black tea.")
    tell(memory, "I like coffee.", metadata={"kind": "drink"})
    memory.add("I like green tea.", user_id="v")
    assert memory.delete_by_query("nothing of this kind", user_id="u", threshold=0.9)["results"] == []
    told = memory.delete_by_query("I like green tea.", user_id="u", threshold=0.95, dry_run=True)
    assert told["dry_run"]
    assert result_events(told) == [("DELETE", "I like green tea.")]
    assert told["results"][0]["score"] == pytest.approx(1.0, abs=0.01)
    assert len(memory.get_all(user_id="u")["results"]) == 3
    done = memory.delete_by_query(None, user_id="u", filters={"kind": "drink"})
    assert result_events(done) == [("DELETE", "I like coffee.")]
    memory.delete_by_query("green tea", user_id="u", threshold=0.6, filters={"kind": "drink"})
    memory.delete_by_query("I like green tea.", user_id="u", threshold=0.95)
    assert result_texts(memory.get_all(user_id="u")) == ["I like black tea."]
    assert result_texts(memory.get_all(user_id="v")) == ["I like green tea."]


def test_more_than_expected_is_refused_before_anything_is_done(memory: MemoryDriver) -> None:
    tell(memory, "I like green tea.", "I like black tea.", "I like white tea.")
    before = rows_of(memory.memory)
    with pytest.raises(InputError, match="more than 2 memories match, and nothing was changed"):
        memory.delete_by_query("I like tea", user_id="u", threshold=0.3, limit=2)
    with pytest.raises(InputError, match="more than 1 memories match"):
        memory.update_by_query("I like tea", str, user_id="u", threshold=0.3, limit=1)
    with pytest.raises(InputError, match="query and filters are both missing"):
        memory.delete_by_query(None, user_id="u")
    with pytest.raises(QueryError):
        memory.delete_by_query("  ", user_id="u")
    with pytest.raises(InputError, match="threshold"):
        memory.delete_by_query("tea", user_id="u", threshold=2)
    assert rows_of(memory.memory) == before
    assert len(memory.delete_by_query("I like tea", user_id="u", threshold=0.3, limit=3)["results"]) == 3
    assert rows_of(memory.memory)["memories"] == 0


def test_an_update_by_query_makes_of_each_its_own_text(memory: MemoryDriver) -> None:
    tell(memory, "I live in Rome.", "I like tea.", "My sister is Anna.")
    before = rows_of(memory.memory)

    def moved(found: dict[str, Any]) -> str | None:
        return found["memory"].replace("Rome", "Oslo") if "Rome" in found["memory"] else None

    told = memory.update_by_query("I live in Rome.", moved, user_id="u", threshold=0.0, dry_run=True)
    assert ("UPDATE", "I live in Oslo.") in result_events(told)
    assert ("NONE", "I like tea.") in result_events(told)
    assert rows_of(memory.memory) == before
    done = memory.update_by_query("I live in Rome.", moved, user_id="u", threshold=0.0)
    assert result_events(done) == result_events(told)
    (updated,) = [one for one in done["results"] if one["event"] == "UPDATE"]
    assert updated["previous_memory"] == "I live in Rome."
    assert done["relations"] == {
        "added_entities": ["u -- lives_in -- Oslo"],
        "deleted_entities": ["u -- lives_in -- Rome"],
    }
    memory.update_by_query("I like tea.", "I like rice.", user_id="u", threshold=0.95, metadata={"meal": True})
    (found,) = memory.get_all(user_id="u", filters={"meal": True})["results"]
    assert found["memory"] == "I like rice."


def test_texts_that_cannot_be_are_refused_before_the_first_is_written(memory: MemoryDriver) -> None:
    tell(memory, "I like green tea.", "I like black tea.")
    for data, why in (
        ("I like tea.", "would have the same text"),
        (lambda _: "", "non-empty"),
        (lambda _: "\ud800", "Unicode"),
    ):
        with pytest.raises(InputError, match=why):
            memory.update_by_query("I like tea", data, user_id="u", threshold=0.3)
    assert result_texts(memory.get_all(user_id="u")) == ["I like green tea.", "I like black tea."]


def test_an_error_of_one_memory_leaves_all_unchanged(memory: MemoryDriver) -> None:
    tell(memory, "I like green tea.", "I like black tea.", "I like white rice.")
    before, relations = rows_of(memory.memory), held(memory)

    def repeat_another(found: dict[str, Any]) -> str:
        return "I like white rice." if "black" in found["memory"] else "I like oolong tea."

    with pytest.raises(InputError, match="says this already"):
        memory.update_by_query("I like green tea, I like black tea", repeat_another, user_id="u", threshold=0.6)
    assert (rows_of(memory.memory), held(memory)) == (before, relations)
    assert "I like green tea." in result_texts(memory.get_all(user_id="u"))


def test_a_memory_can_take_the_text_that_another_one_gives_up(memory: MemoryDriver) -> None:
    tell(memory, "I like green tea.", "I like black tea.", "I like white tea.")
    next_text = {"green": "I like black tea.", "black": "I like white tea.", "white": "I like oolong tea."}

    def shift(found: dict[str, Any]) -> str:
        return next_text[found["memory"].split()[2]]

    done = memory.update_by_query("I like tea", shift, user_id="u", threshold=0.3)
    assert {one["previous_memory"]: one["memory"] for one in done["results"]} == {
        "I like green tea.": "I like black tea.",
        "I like black tea.": "I like white tea.",
        "I like white tea.": "I like oolong tea.",
    }
    assert set(held(memory)) == {"u -- likes -- black tea", "u -- likes -- white tea", "u -- likes -- oolong tea"}


def test_matches_of_several_scopes_are_updated_together(memory: MemoryDriver) -> None:
    for agent in ("a", "b"):
        memory.add("I like green tea.", user_id="u", agent_id=agent)
    memory.update_by_query("I like green tea", "I like rooibos.", user_id="u", threshold=0.6)
    assert [(one["agent_id"], one["memory"]) for one in memory.get_all(user_id="u")["results"]] == [
        ("a", "I like rooibos."),
        ("b", "I like rooibos."),
    ]


def test_matches_that_another_writer_changes_are_read_again(memory: MemoryDriver) -> None:
    (tea, _) = tell(memory, "I like green tea.", "I like black tea.")
    writers = iter(["I like green tea, hot."])

    def extend(found: dict[str, Any]) -> str:
        for text in writers:
            memory.memory.update(tea, text)
        return f"{found['memory']} Really."

    memory.update_by_query("I like tea", extend, user_id="u", threshold=0.2)
    assert sorted(result_texts(memory.get_all(user_id="u"))) == [
        "I like black tea. Really.",
        "I like green tea, hot. Really.",
    ]


def test_no_model_is_asked_to_find_them(tmp_path: Path) -> None:
    model = GraphModel({**relation_replies(("u", "likes", "tea")), **fact_replies("Likes tea")})
    with open_memory(tmp_path, llm=model, graph="sqlite") as memory:
        memory.add("Tea!", user_id="u")
        model.calls.clear()
        assert result_events(memory.delete_by_query("Likes tea", user_id="u", threshold=0.9)) == [
            ("DELETE", "Likes tea")
        ]
        assert model.calls == []
        assert memory.relations(user_id="u", ended=True) == []
