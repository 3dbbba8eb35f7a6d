"""Merge names of one entity, and undo the merge."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mem0_core import InputError, Memory, NotFoundError
from mem0_core.contracts import AT, make_relation_changes
from mem0_core.domain.records import Scope, Triplet, list_added
from mem0_core.graph.adjacency import AdjacencyIndex
from mem0_core.stores.sqlite.store import SQLiteStore
from mem0_core.testing import HashEmbedder
from tests.graph_model import relation_text
from tests.support import MODES, MemoryDriver, Mode, open_memory

_EDGES = (
    "SELECT row, user_id, agent_id, run_id, source, relationship, destination, weight, valid_from, valid_to,"
    " invalidated_at FROM edges ORDER BY row"
)
_GRAPH = (
    "SELECT row, user_id, agent_id, run_id, name, key, type FROM nodes ORDER BY row",
    _EDGES,
    "SELECT edge, memory, withdrawn, day_first, day_last FROM evidence ORDER BY edge, memory",
    "SELECT edge, message FROM edge_messages ORDER BY edge, message",
    "SELECT row, vector FROM node_vectors ORDER BY row",
    "SELECT row, vector FROM edge_vectors ORDER BY row",
)


def graph_of(memory: Memory) -> list[Any]:
    """All that the truth holds of the graph, but the numbers by which projections follow it."""
    store: Any = memory.store
    if not isinstance(store, SQLiteStore):
        from mem0_core.stores.sql.engine.steps import fetch_rows

        found = [store._db.run(lambda sql=sql: fetch_rows(sql), "read") for sql in _GRAPH]
        return [
            [tuple(getattr(one, "to_list", lambda one=one: one)() for one in row) for row in rows] for rows in found
        ]
    with store._db.read() as db:
        return [db.execute(sql).fetchall() for sql in _GRAPH]


def walked(memory: Memory, scope: Scope) -> dict[str, Any]:
    """Return the names in the in-memory projection, and those in a freshly loaded one."""
    held = memory._open_adjacency().of(scope)
    fresh = AdjacencyIndex(memory.store.graph).of(scope)

    def seen(adjacency: Any) -> set[Any]:
        return {
            (adjacency.rows[e], adjacency.names[adjacency.source[e]], adjacency.names[adjacency.destination[e]],
             adjacency.labels[adjacency.label[e]], adjacency.weight[e], adjacency.until[e])
            for e in range(len(adjacency.rows)) if not adjacency.gone[e]
        }  # fmt: skip

    assert seen(held) == seen(fresh)
    return {"edges": seen(held)}


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path, truth: dict[str, Any]) -> Iterator[MemoryDriver]:
    mode: Mode = request.param
    with open_memory(tmp_path, config=truth) as opened:
        yield MemoryDriver(opened, mode)


def held(memory: MemoryDriver, **options: Any) -> dict[str, int]:
    return {relation_text(one): one["weight"] for one in memory.relations(user_id="u", **options)}


def tell(memory: MemoryDriver, *texts: str) -> list[str]:
    return [id_of(memory.add(text, user_id="u")) for text in texts]


def id_of(result: Mapping[str, Any]) -> str:
    """Return the id of the first memory that an add changed or found unchanged."""
    found: str = list_added(result)[0]["id"]
    return found


# --- proposing -------------------------------------------------------------------------------------------------------


def test_a_merge_is_proposed_with_its_reason_and_done_only_when_asked(memory: MemoryDriver) -> None:
    tell(memory, "Robert Smith likes tea.", "Bob Smith likes tea.", "Robert Smith likes chess.")
    before = graph_of(memory.memory)
    (proposed,) = memory.merge(user_id="u")["merges"]
    assert (proposed["name"], proposed["merged"], proposed["relations"]) == ("Robert Smith", ["Bob Smith"], 1)
    assert proposed["score"] == 0.9
    assert "short for" in proposed["reasons"][0]
    assert (proposed["id"], proposed["at"]) == (None, None)
    assert graph_of(memory.memory) == before
    assert memory.merges(user_id="u") == []

    done = memory.merge(user_id="u", dry_run=False)
    assert done["merges"][0]["id"] is not None
    assert held(memory) == {"Robert Smith -- likes -- tea": 2, "Robert Smith -- likes -- chess": 1}
    assert [one["name"] for one in memory.merges(user_id="u")] == ["Robert Smith"]
    assert memory.merge(user_id="u")["merges"] == []


def test_groups_are_transitive_unless_two_of_them_are_apart(memory: MemoryDriver) -> None:
    tell(memory, "Café Rio is nice. I like Café Rio.", "I like Cafe-Rio.", "I like the Cafe Rio.")
    names = {one["destination"] for one in memory.relations(user_id="u")}
    result = memory.merge("entities", user_id="u")
    merged = {name for one in result["merges"] for name in (one["name"], *one["merged"])}
    assert merged == names or len(names) == 1
    tell(memory, "Bob Smith likes tea.", "Bob Jones likes tea.", "Robert Smith likes tea.", "Robert Jones likes tea.")
    groups = [{one["name"], *one["merged"]} for one in memory.merge("entities", user_id="u")["merges"]]
    assert {"Bob Smith", "Robert Smith"} in groups
    assert {"Bob Jones", "Robert Jones"} in groups


def test_a_part_of_two_names_is_merged_with_neither(memory: MemoryDriver) -> None:
    tell(memory, "Bob likes tea.", "Bob Smith likes rice.", "Bob Jones likes jazz.")
    assert memory.merge(user_id="u", threshold=0.3)["merges"] == []


def test_nothing_is_merged_across_scopes(memory: MemoryDriver) -> None:
    memory.add("Robert Smith likes tea.", user_id="u", run_id="a")
    memory.add("Bob Smith likes tea.", user_id="u", run_id="b")
    memory.add("Bob Smith likes tea.", user_id="v")
    assert memory.merge(user_id="u")["merges"] == []
    with pytest.raises(InputError, match="no exact scope"):
        memory.merge(user_id="u", names=["Robert Smith", "Bob Smith"])


def test_names_are_merged_when_the_caller_says_so(memory: MemoryDriver) -> None:
    tell(memory, "Anna likes tea.", "Tiger likes rice.")
    with pytest.raises(InputError, match="at least two different names"):
        memory.merge(user_id="u", names=["Anna", "anna"])
    with pytest.raises(InputError, match="give the names to merge"):
        memory.merge(user_id="u", into="Anna")
    with pytest.raises(InputError, match="what must be"):
        memory.merge("everything", user_id="u")
    memory.merge(user_id="u", names=["Tiger", "Anna"], into="Anna", dry_run=False)
    assert held(memory) == {"Anna -- likes -- tea": 1, "Anna -- likes -- rice": 1}


# --- since then ------------------------------------------------------------------------------------------------------


def test_what_is_said_of_a_name_that_went_is_said_of_the_one_that_stayed(memory: MemoryDriver) -> None:
    tell(memory, "Robert Smith likes tea.", "Bob Smith likes rice.")
    (merge,) = memory.merge(user_id="u", dry_run=False)["merges"]
    tell(memory, "Bob Smith likes rice.", "Bob Smith likes jazz.", "Bob Smith lives in Rome.")
    assert set(held(memory)) == {f"Robert Smith -- {what}" for what in (
        "likes -- tea", "likes -- rice", "likes -- jazz", "lives_in -- Rome")}  # fmt: skip
    (path,) = [one for one in memory.traverse("Where does Bob Smith live?", user_id="u") if one["end"] == "Rome"]
    assert path["start"] == "Robert Smith"
    found = memory.search("What does Bob Smith like?", user_id="u")["relations"]
    assert {"tea", "rice", "jazz"} <= {one["destination"] for one in found}
    memory.unmerge(merge["id"])
    assert "Bob Smith -- likes -- rice" in held(memory)
    assert "Robert Smith -- likes -- jazz" in held(memory)  # said while they were one


def test_relationships_are_merged_and_later_ones_follow(memory: MemoryDriver) -> None:
    embedder, store = HashEmbedder(), memory.memory.store

    def say(label: str) -> None:
        (change,) = make_relation_changes(Triplet("u", label, "Galp"))
        embedded = tuple(embedder.embed(["u", "Galp", change.triplet.sentence]))
        added = dataclasses.replace(change, vectors=embedded)
        store.commit((), relations=[added], scope=Scope("u"), at=AT, embedding_space=(embedder.name, embedder.dims))

    for label in ("works_for", "works_at", "works_at", "worked_at"):
        say(label)
    before = graph_of(memory.memory)
    (merge,) = memory.merge("relationships", user_id="u", dry_run=False)["merges"]
    assert (merge["kind"], merge["name"], merge["merged"]) == ("relationship", "works_at", ["works_for"])
    assert held(memory) == {"u -- works_at -- Galp": 3, "u -- worked_at -- Galp": 1}
    memory.unmerge(merge["id"])
    assert graph_of(memory.memory) == before
    memory.merge(user_id="u", names=["works_for", "works_at"], into="works_for", dry_run=False)
    say("works_at")
    assert held(memory) == {"u -- works_for -- Galp": 4, "u -- worked_at -- Galp": 1}
    tell(memory, "I no longer work at Galp.")
    assert held(memory) == {"u -- worked_at -- Galp": 1}


def test_a_memory_that_is_deleted_leaves_no_trace_in_a_merge(memory: MemoryDriver) -> None:
    (kept,) = tell(memory, "Robert Smith likes tea.")
    (gone,) = tell(memory, "Bob Smith likes absinthe.")
    (merge,) = memory.merge(user_id="u", dry_run=False)["merges"]
    memory.delete(gone, purge=True)
    assert held(memory, ended=True) == {"Robert Smith -- likes -- tea": 1}
    assert memory.merges(user_id="u") == []
    with pytest.raises(NotFoundError):
        memory.unmerge(merge["id"])
    folder = Path(memory.memory.config.database).parent
    assert b"absinthe" not in b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    tell(memory, "Bob Smith likes rice.")
    assert "Bob Smith -- likes -- rice" in held(memory)
    memory.delete(kept)


def test_a_merge_that_another_builds_on_is_taken_back_after_it(memory: MemoryDriver) -> None:
    tell(memory, "Robert Smith likes tea.", "Bob Smith likes rice.", "Rob S. likes jazz.", "Rob Sss likes jazz.")
    before = graph_of(memory.memory)
    names = sorted({one["source"] for one in memory.relations(user_id="u")})
    first = memory.merge(user_id="u", names=["Bob Smith", names[-1]], into=names[-1], dry_run=False)["merges"][0]
    other = next(name for name in names if name not in ("Bob Smith", names[-1]))
    second = memory.merge(user_id="u", names=[other, names[-1]], into=other, dry_run=False)["merges"][0]
    with pytest.raises(InputError, match="a later merge builds on"):
        memory.unmerge(first["id"])
    memory.unmerge(second["id"])
    memory.unmerge(first["id"])
    assert graph_of(memory.memory) == before
    assert [one["undone"] is not None for one in memory.merges(user_id="u")] == [True, True]
    with pytest.raises(NotFoundError):
        memory.unmerge(first["id"])


# --- exactly as it was -----------------------------------------------------------------------------------------------

_PEOPLE = ("Anna", "Bob", "Carl", "Dora")
_SAID = st.one_of(
    st.tuples(st.sampled_from(_PEOPLE), st.just("likes"), st.sampled_from(("tea", "jazz"))),
    st.tuples(st.sampled_from(_PEOPLE), st.just("lives in"), st.sampled_from(("Rome", "Oslo"))),
    st.tuples(st.just("My sister"), st.just("is"), st.sampled_from(_PEOPLE)),
)


@settings(max_examples=30, deadline=None)
@given(
    said=st.lists(_SAID, min_size=3, max_size=10),
    merged=st.lists(st.permutations(_PEOPLE).map(lambda names: names[:2]), min_size=1, max_size=3),
    moved=st.lists(st.tuples(st.sampled_from(_PEOPLE), st.sampled_from(("Rome", "Oslo"))), max_size=2),
)
def test_taking_merges_back_brings_the_graph_back(
    said: list[tuple[str, str, str]], merged: list[list[str]], moved: list[tuple[str, str]]
) -> None:
    scope = Scope("u")
    with Memory({"path": "/nowhere"}, store=SQLiteStore(":memory:"), embedder=HashEmbedder()) as memory:
        for parts in said:
            memory.add(" ".join(parts) + ".", user_id="u")
        for name, place in moved:
            memory.add(f"{name} moved to {place}.", user_id="u")
        before, looked = graph_of(memory), memory.search("Who likes tea?", user_id="u")["relations"]
        seen = walked(memory, scope)
        done: list[str] = []
        for names in merged:
            try:
                result = memory.merge(user_id="u", names=names, into=names[0], dry_run=False)
            except InputError:  # one of them is not in the graph (any longer)
                continue
            done += [str(one["id"]) for one in result["merges"]]
            walked(memory, scope)
            held = memory.relations(user_id="u", ended=True)
            assert not any(names[1] in (one["source"], one["destination"]) for one in held)
        for merge_id in reversed(done):
            memory.unmerge(merge_id)
            walked(memory, scope)
        assert graph_of(memory) == before
        assert walked(memory, scope) == seen
        assert memory.search("Who likes tea?", user_id="u")["relations"] == looked


@settings(max_examples=30, deadline=None)
@given(said=st.lists(_SAID, min_size=3, max_size=8), gone=st.sets(st.integers(0, 7), max_size=3), data=st.data())
def test_what_is_deleted_or_updated_while_merged_is_as_if_it_was_before(
    said: list[tuple[str, str, str]], gone: set[int], data: st.DataObject
) -> None:
    """Merge, delete or update, take back: the same relations hold as without the merge."""
    deleting = data.draw(st.booleans())
    names = data.draw(st.permutations(_PEOPLE))[:2]
    shown = []
    for merging in (True, False):
        with Memory({"path": "/nowhere"}, store=SQLiteStore(":memory:"), embedder=HashEmbedder()) as memory:
            ids = []
            for at, parts in enumerate(said):
                text = " ".join(parts) + "."
                ids.append(id_of(memory.add(text, user_id="u", timestamp=f"2025-01-{at + 1:02}")))
            distinct = list(dict.fromkeys(ids))
            done = []
            try:
                if merging:
                    result = memory.merge(user_id="u", names=names, into=names[0], dry_run=False)
                    done = [str(one["id"]) for one in result["merges"]]
            except InputError:
                pass
            for place in sorted(gone):
                if place < len(distinct):
                    if deleting:
                        memory.delete(distinct[place])
                    else:
                        memory.update(distinct[place], f"Nothing of it, number {place}")
            for merge_id in done:
                if any(one["id"] == merge_id for one in memory.merges(user_id="u")):
                    memory.unmerge(merge_id)
            held = memory.relations(user_id="u", ended=deleting)
            shown.append(sorted((relation_text(one), one["weight"], one["valid_from"]) for one in held))
    assert shown[0] == shown[1]
