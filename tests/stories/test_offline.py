"""Offline specification, part by part: offline, graph-first, vector-native; under both drivers, with no network.

The language model is scripted, the embedder is the real one on local weights. What runs GGUF, OpenVINO and transformers
for real is in tests/unit; so are the command line, and the benches of part 12.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sqlite3
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mem0_core import Memory, QueryError
from mem0_core.cli import main
from mem0_core.domain.records import Scope
from mem0_core.graph.traversal import components
from mem0_core.providers.local import BACKENDS, resolve_backend
from mem0_core.providers.onnx import OnnxEmbedder
from tests.blocked_sockets import no_network
from tests.graph_model import GraphModel, fact_replies, graph_model_of, relation_text
from tests.support import MODES, MemoryDriver, Mode, open_memory

ROOT = Path(__file__).parents[2]
MAYA: dict[str, Any] = {"user_id": "maya"}
Open = Callable[..., MemoryDriver]


@pytest.fixture(autouse=True)
def _offline() -> Iterator[None]:
    with no_network():
        yield


@pytest.fixture(scope="module")
def embedder() -> OnnxEmbedder:
    return OnnxEmbedder()


@pytest.fixture(params=MODES)
def opened(request: pytest.FixtureRequest, tmp_path: Path, embedder: OnnxEmbedder) -> Iterator[Open]:
    """Opens a memory: with no model, or with one that answers each extraction with the next of `lines`."""
    mode: Mode = request.param
    made: list[MemoryDriver] = []

    def begin(*lines: str, **config: Any) -> MemoryDriver:
        said = iter(lines)
        model = GraphModel({"triplets": lambda _: next(said)}) if lines else None
        config = {"recipe": "offline", "extraction": "triplets" if lines else "staged", **config}
        memory = open_memory(tmp_path, llm=model, embedder=embedder, config=config, graph="sqlite")
        made.append(MemoryDriver(memory, mode))
        return made[-1]

    yield begin
    for driven in made:
        driven.memory.close()


def store(memory: MemoryDriver, text: str, **options: Any) -> str:
    """@store: keep a text as it is, with its relations; returns the memory's id."""
    if memory.memory._chat is not None:
        graph_model_of(memory).replies |= fact_replies(text)
    (entry,) = memory.add(text, **{**MAYA, **options})["results"]
    return str(entry["id"])


def extractions(memory: MemoryDriver) -> list[Any]:
    """Return the requests for relations that the model received."""
    return [call for call in graph_model_of(memory).calls if call.task == "triplets"]


def held(memory: MemoryDriver, **options: Any) -> list[str]:
    return [relation_text(relation) for relation in memory.relations(**MAYA, **options)]


def found(memory: MemoryDriver, query: str, **options: Any) -> list[str]:
    return [entry["memory"] for entry in memory.search(query, **MAYA, **options)["results"]]


def test_the_network_is_shut(opened: Open) -> None:
    """Check the guard of this file: a test fails if anything opens a connection."""
    for reach in (
        lambda: socket.create_connection(("127.0.0.1", 9), timeout=1),
        lambda: socket.getaddrinfo("example.org", 443),
        lambda: urllib.request.urlopen("http://example.org"),
        lambda: asyncio.run(asyncio.open_connection("127.0.0.1", 9)),
    ):
        with pytest.raises(AssertionError, match="reached for the network"):
            refused(reach)


def refused(reach: Callable[[], Any]) -> None:
    with no_network(), pytest.raises(OSError, match="no network here"):
        reach()


# --- 1, 2 ----------------------------------------------------------------------------------------------------------


class TestPart2Store:
    """Input, relation extractor, graph-first indexing, entity index, vector store, history."""

    def test_one_call_in_an_isolated_prompt_gives_triplets_with_no_list_of_relations(self, opened: Open) -> None:
        memory = opened("MAYA - PLAYS THE THEREMIN IN - THE NIGHT OWLS\nTHE NIGHT OWLS - REHEARSE AT - PIER 4")
        store(memory, "I play the theremin in the Night Owls; they rehearse at Pier 4.")
        (call,) = extractions(memory)
        assert "SOURCE - RELATION - DESTINATION" in call.messages[0]["content"]
        assert held(memory) == [
            "maya -- plays_the_theremin_in -- the Night Owls",
            "the Night Owls -- rehearse_at -- Pier 4",
        ]

    def test_pronouns_and_casing_are_made_plain_before_the_model_reads(self, opened: Open) -> None:
        memory = opened("MAYA - LIKES - TEA")
        store(memory, "I like tea, it is mine")
        (call,) = extractions(memory)
        assert json.loads(call.messages[-1]["content"])["text"] == "user: maya like tea, it is maya's"

    def test_an_edge_is_said_again_and_its_weight_rises_by_one(self, opened: Open) -> None:
        memory = opened("MAYA - LIKES - TEA", "MAYA - LIKES - TEA", "maya - likes - Tea")
        for text in ("I like tea.", "Tea, always tea: I like it.", "Did I say that I like tea?"):
            store(memory, text)
        (relation,) = memory.relations(**MAYA)
        assert relation["weight"] == 3
        assert len(relation["memories"]) == 3  # memory_id, of each that says it

    def test_an_edge_has_the_memory_and_the_time_that_were_told(self, opened: Open) -> None:
        memory = opened("MAYA - MOVED TO - PORTO")
        told = store(memory, "I moved to Porto in May 2024.", timestamp="2025-01-10")
        (relation,) = memory.relations(**MAYA)
        assert relation["memories"] == [told]
        assert (relation["date"], relation["time_window"]) == ("2024-05-01", "2024-05-01/2024-05-31")

    def test_nodes_exist_with_labels_and_keep_their_timestamps(self, opened: Open) -> None:
        memory = opened()
        store(memory, "My sister is Anna.", timestamp="2025-01-10")
        store(memory, "My sister is Anna.", timestamp="2025-03-10", run_id="later")
        rows = memory.query("MATCH (a)-[r:sister]->(b:person) RETURN b, r", **MAYA)["rows"]
        assert rows[0]["b"] == {"name": "Anna", "type": "person"}
        assert rows[0]["r"]["valid_from"].startswith("2025-01-10")

    def test_connected_components_follow_the_edges(self, opened: Open) -> None:
        memory = opened("ANNA - KNOWS - BEN", "CLEO - KNOWS - DAN", "BEN - KNOWS - CLEO")

        def parts() -> list[set[str]]:
            graph = memory.memory._open_adjacency().of(Scope(user_id="maya"))
            least = components(graph)
            groups = ({graph.names[int(v)] for v in np.flatnonzero(least == one)} for one in set(least.tolist()))
            return sorted(groups, key=sorted)

        store(memory, "Anna knows Ben.")
        store(memory, "Cleo knows Dan.")
        assert parts() == [{"Anna", "Ben"}, {"Cleo", "Dan"}]
        store(memory, "Ben knows Cleo.")
        assert parts() == [{"Anna", "Ben", "Cleo", "Dan"}]

    def test_names_and_path_fragments_have_vectors(self, opened: Open) -> None:
        """Node vectors find a name by another of the same meaning; a path's, the relation as a sentence."""
        memory = opened("MAYA - WORKS AT - A PETROLEUM COMPANY", "MAYA - LIKES - TEA")
        store(memory, "I work at a petroleum company.")
        store(memory, "I like tea.")
        node = "MATCH (a)-[r]->(b) WHERE SIMILAR(b, 'an oil firm', 0.5) RETURN b.name AS name"
        assert memory.query(node, **MAYA)["rows"] == [{"name": "a petroleum company"}]
        path = "MATCH (a)-[r]->(b) WHERE SIMILAR(r, 'Maya enjoys drinking tea', 0.5) RETURN b.name AS name"
        assert memory.query(path, **MAYA)["rows"] == [{"name": "tea"}]

    def test_the_entity_index_maps_memories_to_capitals_and_quoted_phrases(self, opened: Open) -> None:
        memory = opened("NONE", "NONE", "NONE", recipe={"name": "hybrid", "without": ["dense", "context_dense"]})
        store(memory, "Ursula signed the papers on Monday.")
        store(memory, 'We sang "blue harvest moon" all night.')
        store(memory, "nobody came to the party")
        assert found(memory, "Ursula", limit=1) == ["Ursula signed the papers on Monday."]
        assert found(memory, 'who sang "blue harvest moon"?', limit=1) == ['We sang "blue harvest moon" all night.']

    def test_the_payload_of_a_vector_has_text_metadata_times_and_ids(self, opened: Open) -> None:
        memory = opened()
        told = store(memory, "I like tea.", agent_id="butler", run_id="r1", metadata={"room": "kitchen"})
        (entry,) = memory.search("what does she drink?", **MAYA)["results"]
        assert (entry["id"], entry["memory"], entry["metadata"]) == (told, "I like tea.", {"room": "kitchen"})
        assert (entry["user_id"], entry["agent_id"], entry["run_id"]) == ("maya", "butler", "r1")
        assert entry["created_at"]
        assert 0 < entry["score"] <= 1

    def test_history_records_an_add_with_its_time(self, opened: Open) -> None:
        memory = opened()
        (row,) = memory.history(store(memory, "I like tea."))
        assert (row["event"], row["old_memory"], row["new_memory"]) == ("ADD", None, "I like tea.")
        assert row["created_at"]


class TestPart3Update:
    def test_the_edited_text_is_embedded_anew_and_recorded(self, opened: Open) -> None:
        memory = opened()
        told = store(memory, "The cat sleeps on the sofa.")
        store(memory, "Trains to Lisbon leave at nine.")
        memory.update(told, "My bank account is with the Bank of Porto.")
        assert found(memory, "where is my money?", limit=1) == ["My bank account is with the Bank of Porto."]
        assert [row["event"] for row in memory.history(told)] == ["ADD", "UPDATE"]

    def test_prior_edges_go_and_relations_are_read_again(self, opened: Open) -> None:
        memory = opened("MAYA - LIKES - TEA\nMAYA - HAS SISTER - ANNA", "MAYA - LIKES - COFFEE")
        told = store(memory, "I like tea, as my sister Anna does.")
        memory.update(told, "I like coffee.")
        assert held(memory) == ["maya -- likes -- coffee"]
        query = "MATCH (a)-[r]->(b) WHERE SIMILAR(r, 'maya likes tea', 0.8) RETURN b.name AS name"
        assert {"name": "tea"} not in memory.query(query, **MAYA)["rows"]  # its path vector went with it

    def test_what_another_memory_still_says_stays(self, opened: Open) -> None:
        memory = opened("MAYA - LIKES - TEA", "MAYA - LIKES - TEA", "MAYA - LIKES - COFFEE")
        told = store(memory, "I like tea.")
        store(memory, "Tea is what I like best.")
        memory.update(told, "I like coffee.")
        assert sorted(held(memory)) == ["maya -- likes -- coffee", "maya -- likes -- tea"]

    def test_by_query_what_is_meant_gets_a_new_text_and_new_edges(self, opened: Open) -> None:
        memory = opened("MAYA - LIKES - TEA", "NONE", "MAYA - LIKES - COFFEE")
        told = store(memory, "I like tea.")
        store(memory, "The weather was fine all week.")
        (done,) = memory.update_by_query("what do I drink? I like tea", "I like coffee.", **MAYA)["results"]
        assert (done["id"], done["event"], done["previous_memory"]) == (told, "UPDATE", "I like tea.")
        assert held(memory) == ["maya -- likes -- coffee"]
        assert [row["event"] for row in memory.history(told)] == ["ADD", "UPDATE"]


class TestPart4Delete:
    def test_a_memory_goes_with_its_edges_and_paths_and_history_tells(self, opened: Open) -> None:
        memory = opened("MAYA - LIKES - TEA\nMAYA - OWNS - A TEAPOT", "MAYA - LIKES - TEA")
        told = store(memory, "I like tea, and I own a teapot.")
        store(memory, "Tea is what I like best.")
        memory.delete(told)
        assert memory.get(told) is None
        assert held(memory) == ["maya -- likes -- tea"]  # the other says it too
        assert found(memory, "what do I own?") == ["Tea is what I like best."]
        query = "MATCH (a)-[r]->(b) WHERE SIMILAR(r, 'maya owns a teapot', 0.9) RETURN b.name AS name"
        assert memory.query(query, **MAYA)["rows"] == []
        assert [row["event"] for row in memory.history(told)] == ["ADD", "DELETE"]

    def test_by_query_only_what_is_meant_goes(self, opened: Open) -> None:
        memory = opened("MAYA - LIKES - TEA", "NONE")
        told = store(memory, "I like tea.")
        store(memory, "The weather was fine all week.")
        planned = memory.delete_by_query("I like tea", **MAYA, threshold=0.8, dry_run=True)["results"]
        assert [one["id"] for one in planned] == [told]
        assert memory.get(told) is not None
        memory.delete_by_query("I like tea", **MAYA, threshold=0.8)
        assert [entry["memory"] for entry in memory.get_all(**MAYA)["results"]] == ["The weather was fine all week."]
        assert held(memory) == []

    def test_a_purge_leaves_no_byte_of_it(self, opened: Open, tmp_path: Path) -> None:
        memory = opened()
        told = store(memory, "The password is xyzzy-plugh.")
        memory.delete(told, purge=True)
        memory.memory.close()
        assert memory.memory.closed
        assert not any(b"xyzzy-plugh" in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


# --- 5 -------------------------------------------------------------------------------------------------------------


class TestPart5Retrieval:
    def told(self, memory: MemoryDriver) -> MemoryDriver:
        for day, text in (
            ("2024-05-03", "My sister is Anna."),
            ("2024-05-04", "Anna works at Galp."),
            ("2024-06-11", "Galp owns a refinery in Sines."),
            ("2024-09-20", "I bought a red bicycle."),
            ("2025-02-01", "The weather was fine all week."),
        ):
            store(memory, text, timestamp=day)
        return memory

    LINES = ("MAYA - HAS SISTER - ANNA", "ANNA - WORKS AT - GALP", "GALP - OWNS - A REFINERY IN SINES", "NONE", "NONE")

    def test_vector_pre_recall_gathers_by_meaning(self, opened: Open) -> None:
        memory = self.told(opened())
        assert found(memory, "what vehicle did she purchase?", limit=1) == ["I bought a red bicycle."]

    def test_two_hops_around_the_entities_bring_related_memories(self, opened: Open) -> None:
        """Nothing in "tell me of Anna" is near a refinery, but Anna works at who owns it."""
        memory = self.told(opened(*self.LINES))

        def by_graph(hops: int) -> set[str]:
            recipe = {"name": "offline", "hops": hops}
            results = memory.search("tell me of Anna", **MAYA, recipe=recipe, explain=True)["results"]
            return {entry["memory"] for entry in results if entry["explanation"]["signals"]["graph"]["value"] > 0}

        assert by_graph(1) == {"My sister is Anna.", "Anna works at Galp."}
        assert by_graph(2) == {*by_graph(1), "Galp owns a refinery in Sines."}

    @pytest.mark.parametrize("query", ["Where does my sister work?", "Who is Anna?"])
    def test_possessives_and_who_is_go_by_a_traversal(self, opened: Open, query: str) -> None:
        memory = self.told(opened(*self.LINES))
        result = memory.search(query, **MAYA, explain=True)
        by_path = {
            entry["memory"]: entry["explanation"]["signals"]["path"]["value"]
            for entry in result["results"]
            if entry["explanation"]["signals"].get("path", {}).get("value")
        }
        assert by_path
        assert set(by_path) <= {"My sister is Anna.", "Anna works at Galp."}

    def test_a_time_in_the_query_boosts_what_happened_then(self, opened: Open) -> None:
        lines = ("MAYA - VISITED - THE LAKE", "MAYA - VISITED - THE LAKE HOUSE")
        memory = opened(*lines)
        store(memory, "I visited the lake in May 2023.", timestamp="2025-01-01")
        store(memory, "I visited the lake house in August 2024.", timestamp="2025-01-02")
        assert found(memory, "where was I in August 2024?", limit=1) == ["I visited the lake house in August 2024."]
        assert found(memory, "where was I in May 2023?", limit=1) == ["I visited the lake in May 2023."]

    def test_the_score_is_a_weighted_sum_and_the_weights_are_configuration(self, opened: Open) -> None:
        memory = self.told(opened(*self.LINES))
        (entry, *_) = memory.search("Anna at work", **MAYA, explain=True)["results"]
        signals = entry["explanation"]["signals"]
        assert {"dense", "graph", "evidence", "recency"} <= set(signals)
        for name, signal in signals.items():
            assert signal["contribution"] == pytest.approx(signal["weight"] * signal["value"], abs=1e-4), name
        assert entry["score"] == pytest.approx(sum(signal["contribution"] for signal in signals.values()), abs=1e-4)
        only = {"name": "offline", "short": {"dense": 1, "graph": 0, "path": 0, "date": 0, "recency": 0, "evidence": 0}}
        (plain, *_) = memory.search("where does Anna work?", **MAYA, recipe=only, explain=True)["results"]
        assert set(plain["explanation"]["signals"]) == {"dense"}

    def test_evidence_and_recency_tell_equals_apart(self, opened: Open) -> None:
        alike = {"name": "offline", "short": {"dense": 0, "graph": 0, "path": 0, "date": 0}}
        memory = opened()
        store(memory, "I like tea.", timestamp="2020-01-01")
        store(memory, "I like jam.", timestamp="2025-01-01")
        options = {"recipe": alike, "reference_date": "2025-01-02", "limit": 1}
        assert found(memory, "what do I like?", **options) == ["I like jam."]

    def test_a_reranker_blends_into_the_final_order(self, opened: Open, tmp_path: Path, embedder: OnnxEmbedder) -> None:
        class Backwards:
            def score(self, query: str, texts: Any) -> list[float]:
                return [1.0 if "weather" in text else 0.0 for text in texts]

        memory = self.told(opened())
        first = found(memory, "Who is Anna?")
        memory.memory._reranker = Backwards()
        blended = found(memory, "Who is Anna?", recipe={"name": "offline", "rerank_weight": 0.9})
        assert first[0] != blended[0] == "The weather was fine all week."
        assert set(first) == set(blended)

    def test_below_the_gate_nothing_is_returned_but_a_note(self, opened: Open) -> None:
        memory = self.told(opened())
        result = memory.search("quantum chromodynamics", **MAYA, allow_no_answer=True)
        assert result["results"] == []
        assert result["note"]
        assert memory.search("quantum chromodynamics", **MAYA)["results"]
        assert memory.search("Who is Anna?", **MAYA, allow_no_answer=True)["results"]

    def test_related_relations_come_with_the_results(self, opened: Open) -> None:
        memory = self.told(opened(*self.LINES))
        relations = memory.search("Where does Anna work?", **MAYA)["relations"]
        assert "Anna -- works_at -- Galp" in [relation_text(relation) for relation in relations]


# --- 6 -------------------------------------------------------------------------------------------------------------


class TestPart6Traverse:
    @pytest.fixture
    def memory(self, opened: Open) -> MemoryDriver:
        memory = opened()
        for day, text in (
            ("2024-01-01", "My sister is Anna."),
            ("2024-01-02", "Anna has a dog named Rex."),
            ("2024-01-03", "Tom's sister is Ida."),
            ("2024-01-04", "Ida has a dog named Bim."),
            ("2024-01-05", "I live in Lisbon."),
            ("2024-07-01", "I moved to Porto."),
        ):
            store(memory, text, timestamp=day)
        return memory

    @pytest.mark.parametrize(
        ("question", "start", "end"),
        [
            ("what is my sister's dog called?", "maya", "Rex"),  # nobody is named: the user
            ("Tom's sister's dog", "Tom", "Bim"),  # a capitalised name
            ('the dog of "Ida", whom Anna knows', "Ida", "Bim"),  # a quoted one goes before it
        ],
    )
    def test_the_seed_is_quoted_then_capitalised_then_the_user(
        self, memory: MemoryDriver, question: str, start: str, end: str
    ) -> None:
        (path, *_) = memory.traverse(question, **MAYA)
        assert (path["start"], path["end"]) == (start, end)

    def test_ends_come_with_explicit_paths_and_their_memories(self, memory: MemoryDriver) -> None:
        (path, *_) = memory.traverse("my sister's dog", **MAYA)
        assert [(step["source"], step["relationship"], step["destination"]) for step in path["steps"]] == [
            ("maya", "sister", "Anna"),
            ("Anna", "has_pet", "Rex"),
        ]
        texts = [memory.get(told)["memory"] for step in path["steps"] for told in step["memories"]]
        assert texts == ["My sister is Anna.", "Anna has a dog named Rex."]

    def test_labels_decide_and_weight_and_recency_tell_equals_apart(self, opened: Open) -> None:
        memory = opened("MAYA - FRIEND - ANNA", "MAYA - FRIEND - BEN", "MAYA - FRIEND - BEN", "MAYA - BOSS - ZOE")
        for text in ("Anna is a friend.", "Ben is a friend.", "Ben is a friend, I said.", "Zoe is my boss."):
            store(memory, text, timestamp="2024-01-01")
        ends = [path["end"] for path in memory.traverse("my friend", **MAYA)]
        assert ends[:2] == ["Ben", "Anna"]  # said twice, said once
        assert "Zoe" not in ends

    def test_it_answers_from_what_held_then(self, memory: MemoryDriver) -> None:
        assert memory.traverse("my home", **MAYA)[0]["end"] == "Porto"
        assert memory.traverse("my home", **MAYA, as_of="2024-03-01")[0]["end"] == "Lisbon"

    def test_what_is_cached_is_cleared_when_the_graph_changes(self, memory: MemoryDriver) -> None:
        assert memory.traverse("my sister's dog", **MAYA)[0]["end"] == "Rex"
        (rex,) = (one["id"] for one in memory.get_all(**MAYA)["results"] if "Rex" in one["memory"])
        memory.update(rex, "Anna has a dog named Fido.")
        assert memory.traverse("my sister's dog", **MAYA)[0]["end"] == "Fido"
        memory.delete(rex)
        assert [path["end"] for path in memory.traverse("my sister's dog", **MAYA)] == []


# --- 7 -------------------------------------------------------------------------------------------------------------


class TestPart7Query:
    @pytest.fixture
    def memory(self, opened: Open) -> MemoryDriver:
        memory = opened()
        for text in ("My sister is Anna.", "Anna works at Galp.", "Anna lives in Porto.", "Ben lives in Rome."):
            store(memory, text)
        return memory

    def test_the_form_that_the_seed_gives(self, memory: MemoryDriver) -> None:
        text = (
            "MATCH (a {name: 'maya'})-[:sister|works_at*1..2]->(b) WHERE SIMILAR(b, 'Galp', 0.9) RETURN b.name AS who"
        )
        assert memory.query(text, **MAYA)["rows"] == [{"who": "Galp"}]

    def test_labels_properties_both_arrows_and_a_limit(self, memory: MemoryDriver) -> None:
        assert memory.query("MATCH (a)-[:lives_in]->(b) RETURN a.name AS who ORDER BY who", **MAYA)["rows"] == [
            {"who": "Anna"},
            {"who": "Ben"},
        ]
        back = "MATCH (b)<-[:lives_in]-(a) WHERE b.name = 'Rome' RETURN a.name AS who"
        assert memory.query(back, **MAYA)["rows"] == [{"who": "Ben"}]
        assert len(memory.query("MATCH (a)-[r]->(b) RETURN r LIMIT 2", **MAYA)["rows"]) == 2

    def test_rows_are_edges(self, memory: MemoryDriver) -> None:
        (row,) = memory.query("MATCH (a)-[r:works_at]->(b) RETURN r", **MAYA)["rows"]
        assert relation_text(row["r"]) == "Anna -- works_at -- Galp"

    def test_the_plan_begins_at_what_is_most_selective_or_near(self, memory: MemoryDriver) -> None:
        plan = memory.query("EXPLAIN MATCH (a)-[r]->(b) WHERE SIMILAR(b, 'an oil company', 0.3) RETURN a", **MAYA)[
            "plan"
        ]
        assert "an oil company" in plan[0]
        plan = memory.query("EXPLAIN MATCH (a)-[r]->(b {name: 'Rome'}) RETURN a", **MAYA)["plan"]
        assert "Rome" in plan[0]

    def test_an_error_says_where_and_what_was_expected(self, memory: MemoryDriver) -> None:
        with pytest.raises(QueryError) as caught:
            memory.query("MATCH (a)-[r->(b) RETURN a", **MAYA)
        assert caught.value.position == 12
        assert "expected" in str(caught.value)


# --- 8 -------------------------------------------------------------------------------------------------------------


class TestPart8Visualization:
    def test_the_whole_graph_or_a_neighbourhood_as_one_file_beside_the_data(self, opened: Open, tmp_path: Path) -> None:
        memory = opened()
        for text in ("My sister is Anna.", "Anna works at Galp.", "Ben lives in Rome."):
            store(memory, text)
        whole = Path(memory.visualize(**MAYA))
        assert whole.parent == tmp_path / "viz"
        assert whole.match("graph_view_*.html")
        near = Path(memory.visualize(entities=["Anna"], depth=1, **MAYA)).read_text(encoding="utf-8")
        page = whole.read_text(encoding="utf-8")
        assert "Galp" in page
        assert "Rome" in page
        assert "Galp" in near
        assert "Rome" not in near
        assert 'src="http' not in page
        assert 'href="http' not in page


# --- 9 -------------------------------------------------------------------------------------------------------------


class TestPart9Consistency:
    def test_repeats_raise_weight_and_make_no_second_edge(self, opened: Open) -> None:
        memory = opened()
        for run in ("a", "b", "c"):
            store(memory, "My sister is Anna.", run_id=run)
        rows = memory.query("MATCH (a {name: 'maya'})-[r:sister]->(b) RETURN r", **MAYA)["rows"]
        assert sum(row["r"]["weight"] for row in rows) == 3

    def test_names_that_mean_one_thing_are_merged_only_when_asked_for_and_can_be_taken_back(self, opened: Open) -> None:
        lines = ("MAYA - WORKS AT - STANFORD UNIVERSITY", "BEN - STUDIES AT - LELAND STANFORD")
        memory = opened(*lines, graph_store={"provider": "sqlite", "threshold": 1.0})
        store(memory, "I work at Stanford University.")
        store(memory, "Ben studies at Leland Stanford.")
        apart = {"maya -- works_at -- Stanford University", "Ben -- studies_at -- Leland Stanford"}
        names = {"names": ["Stanford University", "Leland Stanford"], "into": "Stanford University"}
        planned = memory.merge("entities", **MAYA, **names)
        assert planned["dry_run"]
        assert set(held(memory)) == apart
        (merge,) = memory.merge("entities", **MAYA, **names, dry_run=False)["merges"]
        assert set(held(memory)) == {
            "maya -- works_at -- Stanford University",
            "Ben -- studies_at -- Stanford University",
        }
        assert memory.traverse("Ben's university", **MAYA)[0]["end"] == "Stanford University"
        memory.unmerge(merge["id"])
        assert set(held(memory)) == apart


# --- 10, 11 ----------------------------------------------------------------------------------------------------------


class TestPart10Files:
    def test_one_folder_holds_all_and_the_configuration_says_where(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        with Memory.from_config(ROOT / "examples" / "offline.yaml") as memory:
            memory.add("My sister Anna lives in Porto.", **MAYA)
            memory.visualize(**MAYA)
        assert main(["--config", str(ROOT / "examples" / "offline.yaml"), "--user", "maya", "search", "sister"]) == 0
        folder = tmp_path / "mem0-core" / "offline"
        names = {path.relative_to(folder).parts[0] for path in folder.rglob("*") if path.is_file()}
        assert names - {"memory.db-wal", "memory.db-shm"} == {"memory.db", "app.log", "viz"}

    def test_the_history_table_is_mem0s(self, opened: Open, tmp_path: Path) -> None:
        memory = opened()
        store(memory, "I like tea.")
        memory.memory.close()
        with sqlite3.connect(tmp_path / "memory.db") as database:
            rows = database.execute("SELECT event, new_memory, is_deleted FROM history").fetchall()
        database.close()
        assert rows == [("ADD", "I like tea.", 0)]

    @pytest.mark.parametrize("page", ["explanation/architecture", "how-to/operations", "reference/api"])
    def test_the_pages_are_there(self, page: str) -> None:
        assert (ROOT / "docs" / f"{page}.md").stat().st_size > 2_000


class TestPart11Operations:
    def test_the_vectors_are_rebuilt_from_the_texts(self, opened: Open, tmp_path: Path) -> None:
        memory = opened()
        told = [store(memory, text) for text in ("I like tea.", "My sister is Anna.")]
        before = memory.search("who is my sister?", **MAYA)["results"]
        assert memory.rebuild() == 2
        assert [entry["id"] for entry in memory.search("who is my sister?", **MAYA)["results"]] == [
            entry["id"] for entry in before
        ]
        assert {entry["id"] for entry in before} == set(told)

    def test_the_graph_is_exported_to_csv(self, opened: Open, tmp_path: Path) -> None:
        memory = opened()
        store(memory, "My sister is Anna.")
        memory.export(tmp_path / "csv", format="csv", **MAYA)
        nodes, edges = ((tmp_path / "csv" / f"{name}.csv").read_text(encoding="utf-8") for name in ("nodes", "edges"))
        assert "Anna" in nodes
        assert "sister" in edges

    @pytest.mark.parametrize("open_meanwhile", [False, True])
    def test_a_copy_of_the_database_is_a_backup(
        self, opened: Open, tmp_path: Path, embedder: OnnxEmbedder, open_meanwhile: bool
    ) -> None:
        memory = opened()
        store(memory, "My sister is Anna.")
        copy = tmp_path / "copy" / "memory.db"
        copy.parent.mkdir()
        if open_meanwhile:
            memory.backup(copy)
        else:
            memory.memory.close()
            copy.write_bytes((tmp_path / "memory.db").read_bytes())
        with open_memory(tmp_path / "copy", embedder=embedder, graph="sqlite") as restored:
            assert restored.search("who is my sister?", **MAYA)["results"][0]["memory"] == "My sister is Anna."
            assert restored.traverse("my sister", **MAYA)[0]["end"] == "Anna"


# --- 12 to 14 ------------------------------------------------------------------------------------------------------


class TestPart12Performance:
    def test_vectors_have_length_one_so_that_a_product_is_a_cosine(self, embedder: OnnxEmbedder) -> None:
        vectors = embedder.embed(["I like tea.", "", "x" * 5_000])
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)

    def test_metadata_filters_lose_nothing(self, opened: Open) -> None:
        """One in a hundred passes: an approximate search over all would lose most of them."""
        memory = opened(graph_store={"provider": "none"})
        messages = [{"role": "user", "content": f"Note {n} about tea.", "metadata": {"n": n}} for n in range(200)]
        memory.add_many(messages, infer=False, **MAYA)
        passed = memory.search("tea", **MAYA, filters={"n": {"lt": 2}}, limit=10)["results"]
        assert sorted(entry["metadata"]["n"] for entry in passed) == [0, 1]

    def test_large_scopes_are_searched_by_hnsw_kept_beside_the_data(self, opened: Open, tmp_path: Path) -> None:
        vectors = {"provider": "faiss", "config": {"exact_limit": 100}}
        memory = opened(graph_store={"provider": "none"}, vector_store=vectors, recipe="mem0", search_cache=False)
        texts = [f"Note {n} of {kind}." for n in range(60) for kind in ("tea", "ships", "roses", "law")]
        memory.add_many(texts, infer=False, **MAYA)
        exact = found(memory, "a garden flower", limit=10)  # and a graph is built beside
        index: Any = memory.memory._index
        index._partition(Scope(user_id="maya")).join(60)
        assert [file for file in (tmp_path / "faiss").rglob("*") if file.is_file()]
        by_graph = found(memory, "a garden flower", limit=10)
        assert len(set(exact) & set(by_graph)) >= 8
        assert all("roses" in text for text in by_graph)


class TestPart13Privacy:
    def test_nothing_is_logged_to_a_file_unless_asked_for(self, opened: Open, tmp_path: Path) -> None:
        memory = opened()
        store(memory, "I like tea.")
        assert not list(tmp_path.rglob("*.log"))


class TestPart14Backends:
    def test_the_names_of_the_seed(self) -> None:
        assert {"auto", "intel", "gguf"} <= set(BACKENDS)

    def test_with_no_model_on_the_machine_auto_is_none_and_all_works(
        self, tmp_path: Path, embedder: OnnxEmbedder
    ) -> None:
        (tmp_path / "models").mkdir()
        assert resolve_backend("auto", tmp_path / "models") is None
        config = {"llm": {"provider": "local", "config": {"folder": str(tmp_path / "models")}}}
        with open_memory(tmp_path, embedder=embedder, config=config) as memory:
            memory.add("My sister is Anna.", **MAYA)
            assert memory.traverse("my sister", **MAYA)[0]["end"] == "Anna"
