"""Traversal: questions, how words fit labels, A* against brute force, and the verb over a real store."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mem0_core import InputError, Memory, QueryError, Scope
from mem0_core.contracts import in_threads, unit_vectors
from mem0_core.domain.options import TraverseConfig
from mem0_core.domain.records import Event, RelationChange, Triplet, entity_key
from mem0_core.graph.adjacency import Adjacency, AdjacencyIndex, microseconds
from mem0_core.graph.traversal import Walk, components, k_hop
from mem0_core.interfaces import ChangePosition, GraphDelta
from mem0_core.language.question import compile_question
from mem0_core.language.relation_affinity import are_opposed, is_possessive, kind_affinity, label_affinity
from mem0_core.testing import HashEmbedder
from tests.support import MODES, MemoryDriver, Mode, hang_guard, open_memory

AT = "2025-01-01T00:00:00+00:00"
NOW = "2026-01-01T00:00:00+00:00"
ANN = Scope("ann")


class Truth:
    """As much of a `GraphStore` as an adjacency follows, made of named edges."""

    def __init__(self, edges: Sequence[tuple[Any, ...]], kinds: dict[str, str] | None = None) -> None:
        """Edges are (source, relationship, destination) and, where given, weight, valid_from, valid_to."""
        self.edges = [(*edge, *(1, AT, None)[len(edge) - 3 :]) for edge in edges]
        self.kinds = kinds or {}

    def position(self) -> ChangePosition:
        return ChangePosition("e", len(self.edges))

    def delta_since(self, scope: Scope, *, after: int = 0) -> GraphDelta:
        names = list(dict.fromkeys(name for edge in self.edges for name in (edge[0], edge[2])))
        rows = {name: row for row, name in enumerate(names, start=1)}
        return GraphDelta(
            self.position(),
            [(rows[name], "ann", entity_key(name), name, self.kinds.get(name, "")) for name in names],
            [
                (row, rows[s], r, rows[d], w, f, t, None, None)
                for row, (s, r, d, w, f, t) in enumerate(self.edges, start=1)
            ],
            [],
        )


def graph(*edges: tuple[Any, ...], **kinds: str) -> Adjacency:
    return AdjacencyIndex(Truth(edges, kinds)).of(ANN)  # type: ignore[arg-type]


def ends(
    adjacency: Adjacency, start: str, *terms: str, limit: int = 9, depth: int | None = None, **options: Any
) -> dict[str, float]:
    walk = Walk(adjacency, terms, now=microseconds(NOW), **options)
    tracks = walk.search(dict.fromkeys(adjacency.find_vertices(start), 1.0), limit=limit, depth=depth)
    return {adjacency.names[track.vertices[-1]]: track.score for track in tracks}


# --- reading questions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "start", "steps"),
    [
        ("Alice's sister's dog", "Alice", ["sister", "dog"]),
        ("What is Alice’s older sister's dog called?", "Alice", ["older sister", "dog"]),
        ("alice_123's boss", "alice_123", ["boss"]),
        ("my sister's dog", None, ["sister", "dog"]),
        ("the boss of my wife", None, ["wife", "boss"]),
        ("Who is the mother of the boss of Alice's sister?", "Alice", ["sister", "boss", "mother"]),
        ("What's the name of Bob's cat?", "Bob", ["cat"]),
        ("What did Alice's sister buy last year?", "Alice", ["sister"]),
        ("Where does my sister's boss live?", None, ["sister", "boss", "live"]),
        ("Who's my boss?", None, ["boss"]),
        ("James' sister", "James", ["sister"]),
        ("O'Brien's dog", "O'Brien", ["dog"]),
        ("University of Oxford's rector", "University of Oxford", ["rector"]),
        ("who is Anna Smith?", "Anna Smith", []),
        ('Is "red wine" from Porto?', "red wine", ["from"]),
        ("Where do I live?", None, ["live"]),
        ("his dog's name", None, []),
        ("", None, []),
        ("'s 's of my of the's", None, []),
    ],
)
def test_a_question_is_read_as_a_start_and_steps(text: str, start: str | None, steps: list[str]) -> None:
    found = compile_question(text)
    assert (found.start, list(found.steps)) == (start, steps)


def test_quoted_goes_before_capitalised_before_the_user() -> None:
    def start_of(text: str) -> tuple[str | None, tuple[str, ...]]:
        found = compile_question(text)
        return found.start, found.steps

    assert start_of("Does my sister know Alice's boss?") == ("Alice", ("boss",))
    assert start_of("Does Alice's sister know \"red wine\"'s maker?") == ("red wine", ("maker",))
    assert start_of("Does my sister know Alice?") == (None, ("sister",)), "a chain goes before none"


def test_who_is_is_seen() -> None:
    assert compile_question("who is Anna").asks_identity
    assert compile_question("Who's my sister?").asks_identity
    assert not compile_question("Who likes tea?").asks_identity


@given(st.text(max_size=200))
def test_any_text_is_a_question(text: str) -> None:
    found = compile_question(text)
    assert all(term and term == term.lower() for term in found.steps)


def test_a_long_question_takes_no_longer_than_its_length() -> None:
    for part in ("the a of ", "Alice's ", '"', "my ", "x's", "'", "O'", "the of my "):
        with hang_guard():  # quadratic reading would take hours
            compile_question(part * 100_000)


# --- words and labels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "label", "along", "against"),
    [
        ("sister", "sister", True, True),
        ("sister", "is_sister_of", True, True),
        ("sister", "HAS_OLDER_SISTER", True, True),
        ("boss", "boss", True, False),
        ("boss", "is_the_boss_of", False, True),
        ("boss", "employee", False, True),
        ("mother", "daughter", False, True),
        ("mom", "mother", True, False),
        ("parent", "father", True, False),
        ("dog", "has_pet", True, False),
        ("pet", "has_dog", True, False),
        ("owner", "has_pet", False, True),
        ("owner", "owns", False, True),
        ("employer", "works_at", True, False),
        ("wife", "married_to", True, True),
        ("husband", "IS_MARRIED_TO", True, True),
        ("hometown", "is_from", True, False),
        ("boss", "reports_to", True, False),
        ("favourite colour", "favorite_color", True, False),
        ("friends", "friend", True, True),
        ("favourite colour", "favourite_food", False, False),
        ("mother", "father", False, False),
        ("sister", "brother", False, True),
        ("sister", "sister_in_law", False, False),
        ("wife", "ex_wife", False, False),
        ("dog", "has_cat", False, False),
        ("boss", "likes", False, False),
        ("boss", "", False, False),
        ("", "boss", False, False),
    ],
)
def test_a_label_fits_a_term_along_or_against_its_arrow(term: str, label: str, along: bool, against: bool) -> None:
    fit = label_affinity(term, label)
    assert (fit.forward > 0, fit.backward > 0) == (along, against)
    assert 0 <= min(fit) <= max(fit) <= 1


def test_the_same_word_fits_best() -> None:
    scores = [label_affinity("sister", label).forward for label in ("sister", "older_sister", "sibling", "works_at")]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == 4


def test_types_and_contrasts() -> None:
    assert kind_affinity("dog", "Dog") == 1
    assert kind_affinity("dog", "puppy") > 0
    assert kind_affinity("dog", "cat") == kind_affinity("dog", "") == 0
    assert [is_possessive(label) for label in ("has_pet", "OWNS", "dislikes")] == [True, True, False]
    pairs = [("dog", "has_cat"), ("sister", "brother"), ("sister", "sibling"), ("sister", "works_at")]
    assert [are_opposed(*pair) for pair in pairs] == [True, True, False, True]


# --- A* ------------------------------------------------------------------------------------------------------------

FAMILY = (
    ("alice", "sister", "anna"),
    ("alice", "sister", "eve"),
    ("anna", "owns", "rex"),
    ("eve", "dislikes", "rex"),
    ("eve", "has_dog", "bello"),
    ("bob", "boss_of", "alice"),
    ("bob", "has_dog", "luna"),
)


def test_a_chain_leads_to_every_end_with_the_best_first() -> None:
    held = graph(*FAMILY, rex="dog")
    assert list(ends(held, "alice", "sister", "dog")) == ["bello", "rex"]
    assert list(ends(held, "alice", "boss", "dog")) == ["luna"]
    assert list(ends(held, "rex", "owner")) == ["anna"]
    assert list(ends(held, "alice", "sister", "dog", limit=1)) == ["bello"]
    assert ends(held, "alice", "sister", "cat") == {}
    assert ends(held, "alice", "dog") == {}, "no term asks for a step between"


def test_a_deeper_search_may_take_steps_that_no_term_asks_for() -> None:
    held = graph(*FAMILY, rex="dog")
    found = ends(held, "alice", "dog", depth=2)
    assert set(found) == {"bello", "rex", "luna"}
    assert max(found.values()) < ends(held, "eve", "dog")["bello"]
    assert ends(held, "alice", "sister", "dog", depth=1) == {}


def test_newer_and_more_often_said_is_better_and_hubs_are_worse() -> None:
    old = "2015-01-01T00:00:00+00:00"
    held = graph(
        ("ann", "friend", "often", 9),
        ("ann", "friend", "once"),
        ("ann", "friend", "long ago", 1, old),
        *(("often", "likes", f"thing {number}") for number in range(50)),
        ("often", "has_dog", "a"),
        ("once", "has_dog", "b"),
    )
    assert list(ends(held, "ann", "friend")) == ["often", "once", "long ago"]
    assert list(ends(held, "ann", "friend", "dog")) == ["a", "b"]
    assert list(ends(held, "ann", "friend", "dog", weights=TraverseConfig(degree=0.5))) == ["b", "a"]
    with pytest.raises(ValueError, match="recency and evidence"):
        TraverseConfig(recency=0.6, evidence=0.6)


def test_only_what_held_then_is_walked() -> None:
    june, july = "2025-06-01T00:00:00+00:00", "2025-07-01T00:00:00+00:00"
    held = graph(("ann", "boss", "bob", 1, AT, june), ("ann", "boss", "carl", 1, june))
    assert list(ends(held, "ann", "boss")) == ["carl"]
    assert list(ends(held, "ann", "boss", as_of="2025-03-01T00:00:00+00:00")) == ["bob"]
    assert list(ends(held, "ann", "boss", as_of=june)) == ["carl"]
    assert list(ends(held, "ann", "boss", as_of=july)) == ["carl"]
    assert ends(held, "ann", "boss", as_of="2024-01-01T00:00:00+00:00") == {}


def test_a_path_never_comes_back() -> None:
    held = graph(("ann", "sister", "eve"), ("ann", "sister", "ann"))
    assert ends(held, "ann", "sister").keys() == {"eve"}
    assert ends(held, "ann", "sister", "sister") == {}


def test_a_question_without_a_chain_gives_what_is_around() -> None:
    assert set(ends(graph(*FAMILY), "eve")) == {"alice", "rex", "bello"}


LABELS = ("sister", "boss", "boss_of", "has_pet", "has_dog", "likes", "mother", "daughter")
TERMS = ("sister", "boss", "dog", "mother", "pet")
DAYS = [(datetime(2024, 1, 1, tzinfo=UTC) + timedelta(days=90 * step)).isoformat() for step in range(6)]
NODES = st.sampled_from([f"n{number}" for number in range(7)])
EDGES = st.lists(
    st.tuples(
        NODES,
        st.sampled_from(LABELS),
        NODES,
        st.integers(1, 4),
        st.sampled_from(DAYS[:3]),
        st.sampled_from([None, None, *DAYS[3:]]),
    ),
    min_size=1,
    max_size=16,
)


@settings(max_examples=300, deadline=None)
@given(
    edges=EDGES,
    kinds=st.dictionaries(NODES, st.sampled_from(["dog", "person", "cat"]), max_size=4),
    terms=st.lists(st.sampled_from(TERMS), min_size=1, max_size=3),
    spares=st.integers(0, 1),
    as_of=st.sampled_from([None, *DAYS]),
)
def test_a_star_finds_what_brute_force_finds(
    edges: list[tuple[Any, ...]], kinds: dict[str, str], terms: list[str], spares: int, as_of: str | None
) -> None:
    held = graph(*edges, **kinds)
    start = edges[0][0]
    found = ends(held, start, *terms, limit=99, depth=len(terms) + spares, as_of=as_of)
    expected = brute_force(edges, kinds, start, terms, spares, as_of)
    assert found == pytest.approx(expected)
    first = ends(held, start, *terms, limit=2, depth=len(terms) + spares, as_of=as_of)
    assert list(first.values()) == pytest.approx(sorted(expected.values(), reverse=True)[:2])


def brute_force(
    edges: list[tuple[Any, ...]], kinds: dict[str, str], start: str, terms: list[str], spares: int, as_of: str | None
) -> dict[str, float]:
    """The best score of each end over all simple paths, every one of them walked."""
    then = as_of or NOW
    live = [one for one in edges if (one[4] <= then and (one[5] is None or one[5] > then) if as_of else one[5] is None)]
    degree = {
        name: sum((s == name) + (d == name) for s, _, d, *_ in edges) for name in [e for o in edges for e in o[:3:2]]
    }
    best: dict[str, float] = {}

    def quality(edge: tuple[Any, ...]) -> float:
        days = max(0.0, (datetime.fromisoformat(then) - datetime.fromisoformat(edge[4])).total_seconds() / 86_400)
        return float(1 - 0.1 * (1 - 0.5 ** (days / 365)) - 0.1 / edge[3])

    def passing(name: str) -> float:
        crowd = math.log2(degree[name])
        return 1 - 0.1 * crowd / (crowd + 8)

    def fits(edge: tuple[Any, ...], forward: bool, term: str) -> float:
        by_label = label_affinity(term, edge[1])[0 if forward else 1]
        kind = kinds.get(edge[2] if forward else edge[0], "")
        return max(by_label, kind_affinity(term, kind) * (0.9 if is_possessive(edge[1]) else 0.6))

    def walk(path: list[str], place: int, left: int, score: float) -> None:
        if place == len(terms):
            best[path[-1]] = max(best.get(path[-1], 0.0), score)
            return
        for edge in live:
            for forward in (True, False):
                here, there = (edge[0], edge[2]) if forward else (edge[2], edge[0])
                if here == path[-1] and there not in path:
                    onward = score * quality(edge) * (passing(here) if len(path) > 1 else 1)
                    if fit := fits(edge, forward, terms[place]):
                        walk([*path, there], place + 1, left, onward * fit)
                    if left:
                        walk([*path, there], place, left - 1, onward * 0.3)

    walk([start], 0, spares, 1.0)
    return best


# --- surroundings and components -----------------------------------------------------------------------------------


def test_k_hop_goes_outwards_and_stops_at_its_limit() -> None:
    held = graph(("a", "x", "b"), ("b", "x", "c"), ("c", "x", "d"), ("e", "x", "b"), ("f", "x", "g"))
    found = k_hop(held, [held.names.index("a")], 2)
    assert [(int(held.rows[edge]), hop) for edge, hop in found] == [(1, 1), (4, 2), (2, 2)]
    assert len(k_hop(held, [0], 3)) == 4
    assert len(k_hop(held, [0], 3, limit=2)) == 2
    assert k_hop(held, [], 2) == []


@settings(max_examples=100, deadline=None)
@given(EDGES)
def test_components_are_those_of_a_plain_search(edges: list[tuple[Any, ...]]) -> None:
    held = graph(*edges)
    least = components(held)
    joined: dict[int, set[int]] = {vertex: {vertex} for vertex in range(held.vertices)}
    for source, _, destination, _, _, until in edges:
        if until is None:
            one, other = (held.names.index(name) for name in (source, destination))
            merged = joined[one] | joined[other]
            joined |= dict.fromkeys(merged, merged)
    assert least.tolist() == [min(joined[vertex]) for vertex in range(held.vertices)]


# --- the verb ------------------------------------------------------------------------------------------------------

Open = Callable[..., MemoryDriver]


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    with open_memory(tmp_path) as opened:
        yield MemoryDriver(opened, mode)


def add_texts(memory: MemoryDriver, *texts: str, user: str = "maya", **options: Any) -> None:
    for text in texts:
        memory.add(text, user_id=user, **options)


def find_ends(memory: MemoryDriver, question: str, user: str = "maya", **options: Any) -> list[str]:
    return [path["end"] for path in memory.traverse(question, user_id=user, **options)]


def test_a_question_is_answered_with_its_path_and_evidence(memory: MemoryDriver) -> None:
    add_texts(memory, "My sister is Anna.", "Anna has a dog named Rex.")
    (path,) = memory.traverse("What is my sister's dog called?", user_id="maya")
    assert (path["start"], path["end"]) == ("maya", "Rex")
    assert 0 < path["score"] <= 1
    assert [(step["relationship"], step["forward"]) for step in path["steps"]] == [("sister", True), ("has_pet", True)]
    assert all(step["memories"] for step in path["steps"])
    (back,) = memory.traverse("Rex's owner", user_id="maya")
    assert (back["end"], back["steps"][0]["forward"]) == ("Anna", False)
    assert find_ends(memory, "ANNA's dog") == ["Rex"]
    assert find_ends(memory, "Nobody's dog") == []


def test_the_walk_sees_every_change_at_once(memory: MemoryDriver) -> None:
    add_texts(memory, "My boss is Bob.", timestamp="2025-01-01")
    assert find_ends(memory, "my boss") == ["Bob"]
    add_texts(memory, "Bob's wife is Olga.", timestamp="2025-02-01")
    assert find_ends(memory, "my boss's wife") == ["Olga"]
    (entry,) = [one for one in memory.get_all(user_id="maya")["results"] if "Olga" in one["memory"]]
    memory.delete(entry["id"])
    assert find_ends(memory, "my boss's wife") == []
    memory.delete_all(user_id="maya")
    assert find_ends(memory, "my boss") == []
    add_texts(memory, "My boss is Carl.")
    assert find_ends(memory, "my boss") == ["Carl"]


def test_as_of_a_day_gone_by(memory: MemoryDriver) -> None:
    add_texts(memory, "I live in Rome.", timestamp="2025-01-01")
    add_texts(memory, "I moved to Oslo.", timestamp="2025-06-01")
    assert find_ends(memory, "my home") == ["Oslo"]
    assert find_ends(memory, "my home", as_of="2025-03-01") == ["Rome"]


def test_nobody_walks_in_the_graph_of_another(memory: MemoryDriver) -> None:
    add_texts(memory, "My sister is Anna.")
    add_texts(memory, "Anna has a dog named Rex.", user="eve")
    assert find_ends(memory, "my sister's dog") == []
    assert find_ends(memory, "Anna's dog") == []
    assert find_ends(memory, "Anna's dog", user="eve") == ["Rex"]


def test_users_of_one_agent_stay_two(memory: MemoryDriver) -> None:
    """The agent's id alone finds both users, and keeps an Anna of one apart from an Anna of the other."""
    add_texts(memory, "My sister is Anna.", agent_id="bot")
    add_texts(memory, "Anna has a dog named Rex.", user="eve", agent_id="bot")
    paths = memory.traverse("Anna's dog", agent_id="bot")
    assert [path["end"] for path in paths] == ["Rex"]
    around = memory.traverse("who is Anna", agent_id="bot")
    assert sorted(path["end"] for path in around) == ["Rex", "maya"]
    assert memory.query("MATCH (a {name: 'Anna'}) RETURN count(a)", agent_id="bot")["rows"] == [{"count(a)": 2}]
    assert memory.query("MATCH (a)-[:sister]->(b)-[:has_pet]->(c) RETURN a", agent_id="bot")["rows"] == []


def test_what_a_user_told_several_agents_is_one_graph(memory: MemoryDriver) -> None:
    add_texts(memory, "My sister is Anna.", agent_id="a")
    add_texts(memory, "Anna has a dog named Rex.", agent_id="b")
    assert find_ends(memory, "my sister's dog") == ["Rex"]
    assert find_ends(memory, "my sister's dog", agent_id="a") == []


def test_words_that_fit_no_label_are_understood_by_vectors(tmp_path: Path) -> None:
    class Near(HashEmbedder):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[str] = []

        def embed(self, texts: Sequence[str], **options: Any) -> Any:
            self.asked += texts
            vectors = super().embed(texts, **options).copy()
            for place, text in enumerate(texts):
                if text in ("sparring partner", "boxes with"):
                    vectors[place] = unit_vectors(1, seed=5, dims=vectors.shape[1])[0]
            return vectors

    embedder = Near()
    with open_memory(tmp_path, embedder=embedder) as memory:
        store = memory._store
        vectors = embedder.embed(["maya", "Tom", "maya boxes with Tom"])
        change = RelationChange(
            Event.ADD, Triplet("maya", "boxes_with", "Tom"), vectors=(vectors[0], vectors[1], vectors[2])
        )
        store.commit((), relations=[change], scope=Scope("maya"), at=AT, embedding_space=(embedder.name, embedder.dims))
        (path,) = memory.traverse("my sparring partner", user_id="maya")
        assert path["end"] == "Tom"
        assert memory.traverse("my plumber", user_id="maya") == []
        embedder.asked.clear()
        memory.traverse("who is Tom", user_id="maya")
        assert embedder.asked == [], "what is understood by words costs no call"


def test_a_name_the_graph_has_not_is_the_node_near_it(memory: MemoryDriver) -> None:
    add_texts(memory, "Anna Maria Smith has a dog named Rex.")
    assert find_ends(memory, "Anna Maria Smith's dog") == ["Rex"]
    assert find_ends(memory, "Anna Smith's dog") == ["Rex"]


def test_bad_questions_are_refused(memory: MemoryDriver) -> None:
    with pytest.raises(QueryError, match="empty"):
        memory.traverse(" ", user_id="maya")
    with pytest.raises(QueryError, match="Unicode"):
        memory.traverse("\ud800", user_id="maya")
    for wrong in ({"limit": 0}, {"depth": 0}, {"depth": 99}):
        with pytest.raises(InputError):
            memory.traverse("my dog", user_id="maya", **wrong)
    assert memory.traverse("my dog", user_id="maya") == []


# --- following the store -------------------------------------------------------------------------------------------


def test_an_adjacency_follows_thousands_of_changes(tmp_path: Path) -> None:
    """Applying changes step by step gives the same state as reading the whole graph."""
    chance = random.Random(3)
    embedder = HashEmbedder()
    with open_memory(tmp_path, embedder=embedder) as memory:
        store, index = memory._store, memory._open_adjacency()
        for step in range(60):
            triplets = [
                Triplet(f"n{chance.randrange(90)}", chance.choice(LABELS), f"m{chance.randrange(90)}")
                for _ in range(99)
            ]
            vectors = np.ones((3, embedder.dims), np.float32)
            changes = [RelationChange(Event.ADD, one, vectors=(vectors[0], vectors[1], vectors[2])) for one in triplets]
            held = store.graph.relations(ANN)
            if held:
                gone = chance.choice(held)
                changes.append(RelationChange(Event.DELETE, gone.triplet, relation_row=gone.row))
            how: Any = {"on_conflict": "delete" if step % 2 else "invalidate"}
            store.commit((), relations=changes, scope=ANN, at=AT, embedding_space=(embedder.name, embedder.dims), **how)
            if step % 7 == 0:
                assert _edges(index.of(ANN)) == _edges(AdjacencyIndex(store.graph).of(ANN))
        assert len(index.of(ANN).rows) > 4_096, "or the edges were never sorted again"
        assert _edges(index.of(ANN)) == _edges(AdjacencyIndex(store.graph).of(ANN))


def test_a_graph_that_has_grown_ranks_paths_like_one_that_is_read_whole() -> None:
    truth = Truth([])
    index = AdjacencyIndex(truth)  # type: ignore[arg-type]
    assert len(index.of(ANN).rows) == 0
    for number in range(3):
        truth.edges.append(("ann", "sister", f"sister {number}", 1, AT, None))
        truth.edges.append((f"sister {number}", "has_pet", f"pet {number}", 1, AT, None))
        assert ends(index.of(ANN), "ann", "sister", "pet") == ends(graph(*truth.edges), "ann", "sister", "pet")


def _edges(held: Adjacency) -> dict[int, tuple[Any, ...]]:
    """Return the properties of each row, as reached from both of its ends."""
    holding = held.valid_edges()
    seen: dict[int, tuple[Any, ...]] = {}
    for vertex in range(held.vertices):
        around = held.incident_edges(vertex, holding)
        for edge, end, forward in zip(around.edges, around.ends, around.forward, strict=True):
            ends = (held.names[vertex], held.names[end])
            source, destination = ends if forward else ends[::-1]
            label, weight = held.labels[held.label[edge]], int(held.weight[edge])
            seen[int(held.rows[edge])] = (source, label, destination, weight, int(held.since[edge]))
    return seen


def test_the_command_shows_the_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mem0_core.cli import main

    config = tmp_path / "config.json"
    config.write_text(json.dumps({"embedder": "hash", "durability": "process"}))
    common = ["--user", "maya", "--config", str(config), "--path", str(tmp_path / "data")]
    for text in ("My sister is Anna.", "Anna has a dog named Rex."):
        main(["add", text, *common])
    capsys.readouterr()
    assert main(["traverse", "my sister's dog", *common]) == 0
    assert "Rex  (maya -[sister]-> Anna -[has_pet]-> Rex)" in capsys.readouterr().out
    assert main(["traverse", "Rex's owner", *common, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["end"] == "Anna"
    assert main(["traverse", "my cat", *common]) == 0
    assert capsys.readouterr().out == "no path\n"
    assert main(["traverse", "my cat", *common, "--depth", "0"]) == 1


def test_memory_keeps_one_adjacency_for_all_walks(tmp_path: Path) -> None:
    with Memory({"path": str(tmp_path), "durability": "process"}, embedder=HashEmbedder()) as memory:
        memory.add("My sister is Anna.", user_id="maya")
        memory.traverse("my sister", user_id="maya")
        first = memory._open_adjacency().of(Scope("maya"))
        memory.traverse("my sister", user_id="maya")
        assert memory._open_adjacency().of(Scope("maya")) is first


def test_walks_go_on_while_others_write(tmp_path: Path) -> None:
    """A state of the graph is complete; later changes, new relationships included, are in the next state."""
    embedder = HashEmbedder()
    vector = np.ones(embedder.dims, np.float32)
    with open_memory(tmp_path, embedder=embedder) as memory:
        store, index = memory._store, memory._open_adjacency()

        def relate(number: int) -> None:
            triplet = Triplet("ann", f"friend_{number}", f"friend {number}")
            change = RelationChange(Event.ADD, triplet, vectors=(vector, vector, vector), types=("", f"kind {number}"))
            store.commit((), relations=[change], scope=ANN, at=AT, embedding_space=(embedder.name, embedder.dims))

        relate(0)
        before = index.of(ANN)
        for number in range(1, 9):
            relate(number)
        assert len(index.of(ANN).labels) == 9
        assert list(ends(before, "ann", "friend")) == ["friend 0"]
        assert before.find_vertices("friend 3") == []
        assert len(components(before)) == before.vertices == 2

        def work(number: int) -> None:
            for step in range(10):
                relate(100 + 10 * number + step)
                assert len(ends(index.of(ANN), "ann", "friend", limit=500)) >= 9 + step

        in_threads(work, 4)
        assert len(ends(index.of(ANN), "ann", "friend", limit=500)) == 49
