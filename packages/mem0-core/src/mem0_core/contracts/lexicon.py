"""Contract of the word index and of ranking features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mem0_core.contracts.samples import (
    ALICE,
    AT,
    BOB,
    LATER,
    StoreContract,
    commit_plan,
    make_changes,
    make_item,
    unit_vectors,
)
from mem0_core.domain.records import (
    Event,
    MemoryItem,
    Message,
    Scope,
)
from mem0_core.interfaces import Lease, MemoryFeatures, MemoryStore, VersionedLexicon
from mem0_core.language.terms import analyze_text, extract_terms


class LexiconContract(StoreContract):
    """Suite for `Lexicon`."""

    def memories_with_term(
        self, store: MemoryStore, word: str, scope: Scope = ALICE, *, kind: Any = "term"
    ) -> list[str]:
        """Return the texts of the memories of a scope that contain a word."""
        rows = store.lexicon.postings(scope, [word], kind=kind, limit=100).get(word, np.empty(0, dtype=np.int64))
        return [item.text for item in store.memories_by_rows(rows.tolist(), scope=scope).values()]

    def features_of(self, store: MemoryStore, item: MemoryItem, scope: Scope | None = None) -> MemoryFeatures | None:
        row = store.row(item.id)
        rows = [] if row is None else [row]
        found = store.lexicon.memory_features(scope or item.scope, rows, today="2024-01-01", vector=unit_vectors(1)[0])
        return next(iter(found.memories), None)

    def test_a_memory_is_found_by_its_words_its_names_and_its_speaker(self, store: MemoryStore) -> None:
        self.add(store, "We went running with Anna Smith", actor_id="Bob Marley")
        for word in ("run", "anna", "bob"):
            assert self.memories_with_term(store, word) == ["We went running with Anna Smith"], word
        assert self.memories_with_term(store, "anna smith", kind="name") == ["We went running with Anna Smith"]
        assert self.memories_with_term(store, "marley", kind="speaker") == ["We went running with Anna Smith"]
        assert (
            self.memories_with_term(store, "anna", kind="speaker")
            == self.memories_with_term(store, "run", kind="name")
            == []
        )

    def test_a_search_can_follow_the_features_of_a_scope(self, store: MemoryStore) -> None:
        lexicon = store.lexicon
        if not isinstance(lexicon, VersionedLexicon):
            return
        [kept] = self.add(store, "We went running with Anna Smith", actor_id="Bob Marley")
        [gone] = self.add(store, "I like tea.")
        state, version = lexicon.state(ALICE), lexicon.version()
        assert lexicon.version() == version, "reading changes nothing"
        expected = self.features_of(store, kept)
        assert expected is not None
        found = lexicon.feature_changes(ALICE, after=0, limit=9)
        assert expected._replace(previous_row=None, next_row=None) in found.memories
        assert (len(found.memories), found.removed) == (2, [])
        assert len(lexicon.feature_changes(ALICE, after=0, limit=1).memories) == 1
        row = store.row(gone.id)
        store.erase([gone.id], at=LATER)
        assert lexicon.version() != version
        assert lexicon.state(ALICE).seq > state.seq
        assert lexicon.feature_changes(ALICE, after=state.seq, limit=9) == ([], [], [row])

    def test_the_state_of_a_scope_changes_with_its_own_writes_alone(self, store: MemoryStore) -> None:
        lexicon = store.lexicon
        if not isinstance(lexicon, VersionedLexicon):
            return
        states = [lexicon.state(ALICE)]

        def has_changed() -> bool:
            states.append(lexicon.state(ALICE))
            return states[-1] not in states[:-1]

        [item] = self.add(store, "I like tea.")
        assert has_changed()
        [other] = self.add(store, "I like tea.", scope=BOB)
        self.change(store, Event.UPDATE, other, "I like coffee.")
        store.pin(other.id, True)
        store.jobs.enqueue(BOB, "remember", at=AT, messages=[Message("user", "I like rain.")])
        store.erase_scope(BOB, at=LATER)
        assert lexicon.state(ALICE) == states[-1]
        self.change(store, Event.UPDATE, item, "I like coffee.")
        assert has_changed()
        store.pin(item.id, True)
        assert has_changed()
        store.mark([item.id], useful=1)
        assert has_changed()
        store.jobs.enqueue(ALICE, "remember", at=AT, messages=[Message("user", "I like rain.")])
        assert has_changed()
        [job] = store.jobs.lease("worker", seconds=60)
        store.jobs.mark_done(Lease("worker", (job.row,)))
        assert lexicon.state(ALICE).queued[0] == 0 != states[-1].queued[0]
        store.erase([item.id], at=LATER)
        assert has_changed()

    def test_words_of_any_script_are_found(self, store: MemoryStore) -> None:
        said = {"чай": "Анна любит чай", "绿茶": "我喜欢喝绿茶", "قهوة": "أحب قهوة", "चाय": "मुझे चाय पसंद है"}
        self.add(store, *said.values())
        for word, text in said.items():
            (term, *_) = extract_terms(word)
            assert self.memories_with_term(store, term) == [text], word

    def test_words_of_another_scope_are_neither_found_nor_counted(self, store: MemoryStore) -> None:
        self.add(store, "Likes tea")
        self.add(store, "Hates tea", scope=BOB)
        assert self.memories_with_term(store, "tea") == ["Likes tea"]
        assert self.memories_with_term(store, "tea", BOB) == ["Hates tea"]
        assert self.memories_with_term(store, "tea", Scope(user_id="carol")) == []

    def test_words_are_found_by_any_id_of_a_memory(self, store: MemoryStore) -> None:
        self.add(store, "Likes tea", scope=Scope("u", "a", "r"))
        self.add(store, "Drinks tea", scope=Scope("u", "a", "s"))
        both = ["Likes tea", "Drinks tea"]
        for scope in (Scope(user_id="u"), Scope(agent_id="a"), Scope("u", "a")):
            assert self.memories_with_term(store, "tea", scope) == both
        for scope in (Scope(run_id="r"), Scope("u", None, "r"), Scope("u", "a", "r")):
            assert self.memories_with_term(store, "tea", scope) == ["Likes tea"]
        assert self.memories_with_term(store, "tea", Scope("u", "b")) == []

    def test_words_follow_a_memory_through_update_and_delete(self, store: MemoryStore) -> None:
        one, two = self.add(store, "Likes tea", "Likes jazz")
        self.change(store, Event.UPDATE, one, "Likes coffee")
        assert self.memories_with_term(store, "tea") == []
        assert self.memories_with_term(store, "coffe") == ["Likes coffee"]
        self.change(store, Event.DELETE, two, "Likes jazz")
        store.erase([one.id], at=LATER)
        assert self.memories_with_term(store, "like") == []
        assert store.row(one.id) is store.row(two.id) is None
        self.add(store, "Likes rain")
        store.erase_scope(ALICE, at=LATER)
        assert self.memories_with_term(store, "rain") == []
        self.add(store, "Likes snow")
        store.reset()
        assert self.memories_with_term(store, "snow") == []

    def test_postings_respect_the_limit(self, store: MemoryStore) -> None:
        self.add(store, *(f"tea number {number}" for number in range(8)))
        assert len(store.lexicon.postings(ALICE, ["tea"], kind="term", limit=5)["tea"]) == 5

    def test_features_hold_all_that_ranking_reads(self, store: MemoryStore) -> None:
        (item,) = self.add(store, "Did Anna buy the red car?", actor_id="Bob", role="user")
        sketch = self.features_of(store, item)
        assert sketch is not None
        words = analyze_text("Did Anna buy the red car?", "Bob")
        assert (sketch.terms, sketch.names) == (" ".join(words.terms), "\n".join(words.names))
        assert (sketch.word_count, sketch.is_question, sketch.names) == (6, True, "anna")
        assert (sketch.actor_id, sketch.role, sketch.timestamp) == ("Bob", "user", AT)
        assert (sketch.previous_row, sketch.next_row) == (None, None)
        assert self.features_of(store, item, BOB) is None

    def test_an_expired_memory_has_no_features(self, store: MemoryStore) -> None:
        gone, there = self.add(store, "one", expiration_date="2023-12-31") + self.add(
            store, "two", expiration_date="2024-01-01"
        )
        assert self.features_of(store, gone) is None
        assert self.features_of(store, there) is not None

    def test_memories_of_one_add_or_run_are_neighbors(self, store: MemoryStore) -> None:
        one, two, three = self.add(store, "tea first", "tea then", "tea last")
        self.add(store, "tea elsewhere")
        middle = self.features_of(store, two)
        assert middle is not None
        assert (middle.previous_row, middle.next_row) == (store.row(one.id), store.row(three.id))
        rows, query = [store.row(item.id) or 0 for item in (one, two, three)], unit_vectors(1, seed=5)[0]
        stored, vectors = store.vectors(rows)
        cosines = dict(zip(stored.tolist(), (vectors @ query).tolist(), strict=True))
        beside = {rows[0]: "tea first", rows[2]: "tea last"}
        for asked in ([rows[1]], rows[:2], rows):
            found = store.lexicon.memory_features(ALICE, asked, today="2024-01-01", vector=query)
            assert sorted(sketch.row for sketch in found.memories) == asked
            assert found.neighbor_terms == {row: terms for row, terms in beside.items() if row not in asked}
            assert found.cosines in (
                {},
                {row: pytest.approx(cosines[row], abs=1e-3) for row in {*asked, *found.neighbor_terms}},
            )
        last = self.features_of(store, three)
        assert last is not None
        assert last.next_row is None
        run = Scope("alice", None, "r")
        (early,) = self.add(store, "rain first", scope=run)
        (late,) = self.add(store, "rain then", scope=run)
        shown = self.features_of(store, early)
        assert shown is not None
        assert (shown.previous_row, shown.next_row) == (None, store.row(late.id))

    def test_distinct_sessions_have_no_neighbors_unless_they_share_a_run(self, store: MemoryStore) -> None:
        for scope, is_alone in ((ALICE, True), (Scope("alice", None, "r"), False)):
            items = [make_item(text, scope) for text in ("one here", "two here")]
            commit_plan(store, make_changes(items), scope=scope, distinct_sessions=True)
            sketch = self.features_of(store, items[0])
            assert sketch is not None
            assert (sketch.next_row is None) == is_alone

    def test_an_updated_memory_keeps_its_neighbors(self, store: MemoryStore) -> None:
        one, two = self.add(store, "tea first", "tea then")
        self.change(store, Event.UPDATE, one, "coffee first")
        sketch = self.features_of(store, one)
        assert sketch is not None
        assert sketch.next_row == store.row(two.id)
