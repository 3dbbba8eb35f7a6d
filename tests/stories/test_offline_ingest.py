"""Offline specification, parts 2, 3, 4 and 9: store, update, delete and merge."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import ConfigError
from mem0_core.domain.records import Scope
from tests.graph_model import GraphModel, entities, fact_replies, graph_model_of, relation_text, set_replies
from tests.support import MODES, MemoryDriver, Mode, open_memory, result_events, result_texts

U = Scope("u")
Open = Callable[..., MemoryDriver]


@pytest.fixture(params=MODES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Memories with the one-shot extractor; each is given the lines and facts that its model answers with."""
    mode: Mode = request.param
    made: list[MemoryDriver] = []

    def begin(lines: str | None = None, *facts: str, **config: Any) -> MemoryDriver:
        parts: dict[str, Any] = {"config": config}
        if lines is not None:
            parts["llm"] = GraphModel({"triplets": lines, **fact_replies(*facts)})
            parts |= {"graph": "sqlite", "config": {"extraction": "triplets", **config}}
        made.append(MemoryDriver(open_memory(tmp_path, **parts), mode))
        return made[-1]

    yield begin
    for driven in made:
        driven.memory.close()


# --- part 2: data flow, store --------------------------------------------------------------------------------------


def test_part_2_one_call_gives_triplets_edges_weights_and_evidence(opened: Open) -> None:
    memory = opened("U - LIVES IN - PORTO\nU - HAS DOG - REX", "Lives in Porto with Rex, a dog")
    first = memory.add("I live in Porto with my dog Rex.", user_id="u")
    assert first["usage"]["llm_calls"] == 2
    memory.add("I live in Porto with my dog Rex, you know.", user_id="u")
    held = {relation_text(one): (one["weight"], one["memories"]) for one in memory.relations(user_id="u")}
    id = first["results"][0]["id"]
    assert held == {"u -- lives_in -- Porto": (2, [id]), "u -- has_dog -- Rex": (2, [id])}


def test_part_2_temporal_tags_stand_with_the_edge(opened: Open) -> None:
    memory = opened()
    memory.add("I work at Galp since May 2021. I live in Rome.", user_id="u", timestamp="2025-01-10")
    held = {relation_text(one): one for one in memory.relations(user_id="u")}
    worked = held["u -- works_at -- Galp"]
    assert (worked["date"], worked["time_window"]) == ("2021-05-01", "2021-05-01/..")
    assert "date" not in held["u -- lives_in -- Rome"]
    asked = (
        "MATCH (a)-[r]->(b) WHERE r.date >= '2021-01-01' AND r.date < '2022-01-01' RETURN b.name, r.time_window AS w"
    )
    assert memory.query(asked, user_id="u")["rows"] == [{"b.name": "Galp", "w": "2021-05-01/.."}]
    assert memory.query("MATCH ()-[r]->(b) WHERE r.date IS NULL RETURN b.name", user_id="u")["rows"] == [
        {"b.name": "Rome"}
    ]


def test_part_2_a_memory_whose_edges_are_of_the_time_asked_for_is_boosted(opened: Open) -> None:
    """Part 5's temporal boost. All were said on one day; one tells of May, and one says what that one says."""
    told = {"Lisbon": "Saw Lisbon in May 2021", "Madrid": "Saw Madrid in winter 2019"}
    memory = opened("NONE")
    for place, fact in told.items():
        set_replies(memory, {"triplets": f"U - SAW - {place.upper()}", **fact_replies(fact)})
        memory.add(f"{place}!", user_id="u", timestamp="2025-01-10")
    set_replies(
        memory, {"triplets": "U - SAW - LISBON", **fact_replies("Has seen Lisbon"), "entities": entities(("u", ""))}
    )
    memory.add("Lisbon it is!", user_id="u", timestamp="2025-01-10")

    def dates(query: str) -> dict[str, float]:
        found = memory.search(query, user_id="u", recipe="offline", explain=True)["results"]
        return {one["memory"]: one["explanation"]["signals"]["date"]["value"] for one in found}

    in_may = dates("what did I see in May 2021?")
    assert in_may["Saw Lisbon in May 2021"] == in_may["Has seen Lisbon"] == pytest.approx(0.7, abs=0.02)
    assert in_may["Saw Madrid in winter 2019"] == 0.0
    assert set(dates("what did I see?").values()) == {0.0}


def test_part_2_the_days_of_an_edge_go_with_the_memory_that_told_them(opened: Open) -> None:
    memory = opened()
    (dated,) = memory.add("I like Lisbon since May 2021.", user_id="u", timestamp="2025-01-10")["results"]
    memory.add("I like Lisbon, and I like Rome.", user_id="u", timestamp="2025-01-10")
    held = {one["destination"]: one for one in memory.relations(user_id="u")}
    assert held["Lisbon"]["date"] == "2021-05-01"
    memory.delete(dated["id"])
    held = {one["destination"]: one for one in memory.relations(user_id="u")}
    assert "date" not in held["Lisbon"]
    asked = "MATCH ()-[r]->(b {name: 'Lisbon'}) RETURN r.date AS day"
    assert memory.query(asked, user_id="u")["rows"] == [{"day": None}]


def test_part_2_nodes_have_labels_and_components(opened: Open) -> None:
    memory = opened()
    memory.add("My sister is Anna. I live in Rome.", user_id="u")
    memory.add("Tom has a dog named Rex.", user_id="u")
    types = {row["a"]["name"]: row["a"]["type"] for row in memory.query("MATCH (a) RETURN a", user_id="u")["rows"]}
    assert types["Anna"] == "person"
    asked = "MATCH (a {name: 'u'}), (b) WHERE a.component = b.component RETURN b.name AS name"
    assert {row["name"] for row in memory.query(asked, user_id="u")["rows"]} == {"u", "Anna", "Rome"}
    memory.add("My brother is Tom.", user_id="u")
    assert {row["name"] for row in memory.query(asked, user_id="u")["rows"]} == {"u", "Anna", "Rome", "Tom", "Rex"}
    number = memory.query("MATCH (a {name: 'Rex'}) RETURN a.component AS c", user_id="u")["rows"][0]["c"]
    assert len(memory.query(f"MATCH (a {{component: {number}}}) RETURN a", user_id="u")["rows"]) == 5


def test_part_2_names_and_path_fragments_have_vectors(opened: Open) -> None:
    memory = opened()
    memory.add("My sister is Anna. I live in Rome.", user_id="u")
    truth, embedder = memory.memory.store.graph, memory.memory.embedder
    relations = {one.row: one.triplet.sentence for one in truth.relations(U)}
    rows, vectors = truth.relation_vectors.vectors(list(relations))
    expected = embedder.embed([relations[row] for row in rows.tolist()])
    assert (vectors == expected).all()
    names = truth.nodes_by_names(U, ["Anna", "Rome", "u"])
    assert len(names) == 3
    assert all((vector == embedder.embed([node.entity.name])[0]).all() for node, vector in names.values())


def test_part_2_the_entity_index_knows_capitalised_and_quoted_names(opened: Open) -> None:
    memory = opened()
    ids = {
        text: memory.add(text, user_id="u")["results"][0]["id"]
        for text in ("We met Anna Rossi in Rome.", 'She reads "the old man and the sea" aloud.', "We slept long.")
    }
    store = memory.memory.store

    def has(name: str) -> set[str]:
        found = store.lexicon.postings(U, [name], kind="name", limit=9).get(name, ())
        return {item.id for item in store.memories_by_rows(list(found), scope=U).values()}

    assert has("anna rossi") == has("rome") == {ids["We met Anna Rossi in Rome."]}
    assert has("the old man and the sea") == {ids['She reads "the old man and the sea" aloud.']}
    memory.delete(ids["We met Anna Rossi in Rome."])
    assert has("rome") == set()


# --- part 3: data flow, update ------------------------------------------------------------------------------------


def test_part_3_an_update_removes_the_edges_of_the_memory_and_reads_it_anew(opened: Open) -> None:
    memory = opened("U - LIVES IN - PORTO\nU - LIKES - TEA", "Lives in Porto and likes tea")
    (entry,) = memory.add("I live in Porto. I like tea.", user_id="u")["results"]
    set_replies(memory, {"triplets": "U - LIVES IN - OSLO\nU - LIKES - TEA"})
    memory.update(entry["id"], "Lives in Oslo, not in Porto, and likes tea")
    held = {relation_text(one): one["weight"] for one in memory.relations(user_id="u")}
    assert held == {"u -- lives_in -- Oslo": 1, "u -- likes -- tea": 1}
    found = memory.search("Oslo", user_id="u")["results"]
    assert found[0]["memory"] == "Lives in Oslo, not in Porto, and likes tea"
    assert [row["event"] for row in memory.history(entry["id"])] == ["ADD", "UPDATE"]


def test_part_3_update_by_query(opened: Open) -> None:
    memory = opened()
    memory.add("I live in Porto.", user_id="u")
    told = memory.update_by_query("I live in Porto.", "I live in Oslo.", user_id="u", threshold=0.9, dry_run=True)
    assert result_events(told) == [("UPDATE", "I live in Oslo.")]
    assert result_texts(memory.get_all(user_id="u")) == ["I live in Porto."]
    memory.update_by_query("I live in Porto.", "I live in Oslo.", user_id="u", threshold=0.9)
    assert [relation_text(one) for one in memory.relations(user_id="u")] == ["u -- lives_in -- Oslo"]


# --- part 4: data flow, delete ------------------------------------------------------------------------------------


def test_part_4_a_delete_takes_its_edges_path_fragments_and_names_along(opened: Open) -> None:
    memory = opened()
    (entry,) = memory.add("My sister is Anna. I live in Rome.", user_id="u")["results"]
    truth = memory.memory.store.graph
    memory.delete_by_query("My sister is Anna. I live in Rome.", user_id="u", threshold=0.9)
    assert memory.get(entry["id"]) is None
    assert memory.relations(user_id="u", ended=True) == []
    assert truth.relation_vectors.rows(U).size == truth.node_vectors.rows(U).size == 0
    assert [row["event"] for row in memory.history(entry["id"])] == ["ADD", "DELETE"]


# --- part 9: consistency and merge --------------------------------------------------------------------------------


def test_part_9_merges_are_opt_in_and_move_vectors_along(opened: Open) -> None:
    memory = opened("ROBERT SMITH - LIVES IN - ROME", "Robert Smith lives in Rome")
    memory.add("Robert Smith lives in Rome.", user_id="u")
    set_replies(memory, {"triplets": "BOB SMITH - LIKES - TEA", **fact_replies("Bob Smith likes tea")})
    memory.add("Bob Smith likes tea.", user_id="u")
    assert {one["source"] for one in memory.relations(user_id="u")} == {"Robert Smith", "Bob Smith"}
    (merge,) = memory.merge("entities", user_id="u", dry_run=False)["merges"]
    held = memory.relations(user_id="u")
    assert {one["source"] for one in held} == {merge["name"]}
    truth, embedder = memory.memory.store.graph, memory.memory.embedder
    for relation in truth.relations(U):
        _, vectors = truth.relation_vectors.vectors([relation.row])
        assert (vectors == embedder.embed([relation.triplet.sentence])).all()
    assert truth.node_vectors.rows(U).size == 3
    model = graph_model_of(memory)
    model.calls.clear()
    memory.unmerge(merge["id"])
    assert model.calls == []
    assert {one["source"] for one in memory.relations(user_id="u")} == {"Robert Smith", "Bob Smith"}


# --- weights in the configuration ---------------------------------------------------------------------------------


def test_every_weight_can_be_configured(opened: Open) -> None:
    recipe = {"name": "offline", "short": {"dense": 0.2, "date": 0.8}, "gate": 0.1}
    memory = opened(recipe=recipe, traverse={"recency": 0.0, "evidence": 0.5})
    memory.add("My sister is Anna.", user_id="u")
    (path,) = memory.traverse("my sister", user_id="u")
    assert path["score"] == pytest.approx(0.5, abs=0.01)  # said once: the share that evidence has is lost
    (found,) = memory.search("sister", user_id="u", explain=True)["results"]
    weights = {name: signal["weight"] for name, signal in found["explanation"]["signals"].items()}
    assert (weights["dense"], weights["date"]) == (0.2, 0.8)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"traverse": {"recencey": 0.1}}, "unknown key 'traverse.recencey'; did you mean 'recency'"),
        ({"traverse": {"evidence": 1.5}}, "traverse.evidence"),
        ({"traverse": {"recency": 0.6, "evidence": 0.5}}, "less than 1"),
        ({"recipe": {"short": {"densse": 0.1}}}, "recipe.short: unknown key 'densse'; did you mean 'dense'"),
        ({"recipe": {"name": "offline", "gat": 0.1}}, "recipe: unknown key 'gat'; did you mean 'gate'"),
        ({"extraction": "triplet"}, "extraction"),
    ],
)
def test_a_weight_that_is_none_is_named(tmp_path: Path, config: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told.replace(".", r"\.")):
        open_memory(tmp_path, config=config)
