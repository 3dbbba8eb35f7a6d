"""Retraction of a source: withdraw everything that was learned from it and from nothing else.

All functions are steps of a write transaction that holds the partitions of the source's messages. `domain.lineage`
decides which texts remain. The order matters: support is read before the messages go, memories are settled before
relations, and ended relations come back last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.lineage import SourceLink, TextSupport, assess_texts
from mem0_core.domain.records import MemoryItem, RetractionEvent, Scope, Trust, same_fact_key
from mem0_core.interfaces import RetractionResult
from mem0_core.stores.sql.changes.memories import (
    Cause,
    MemoryWriter,
    insert_event,
    record_change,
    record_trust,
    remove_row,
    select_memories,
)
from mem0_core.stores.sql.engine.dialect import Dialect
from mem0_core.stores.sql.engine.steps import Steps, execute, execute_many, fetch_rows
from mem0_core.stores.sql.graph.endings import find_later_end
from mem0_core.stores.sql.graph.erasure import erase_edges, erase_evidence
from mem0_core.stores.sql.graph.merges import erase_from_merges
from mem0_core.stores.sql.messages import MESSAGE_COLUMNS, erase_summaries, message_from_row
from mem0_core.stores.sql.queue import enqueue_job
from mem0_core.stores.sql.rows import PAST_COLUMNS, memory_from_row, scope_from_ids


@dataclass(slots=True)
class _Lineage:
    """A memory with its earlier texts.

    Attributes:
        row: row of the memory, which may be deleted.
        past: earlier texts, oldest first: row in `past`, the memory with that text, valid_from, vector.
        current: the memory; None if it was deleted.
        texts: support of the earlier texts, then of the current one.
    """

    row: int
    past: list[tuple[int, MemoryItem, str, Any]]
    current: MemoryItem | None
    texts: list[TextSupport]

    @property
    def newest_index(self) -> int | None:
        """Index of the newest text that holds."""
        return next((index for index in reversed(range(len(self.texts))) if self.texts[index].holds), None)


@dataclass(slots=True)
class _Ending:
    """A relation that only messages of the source ended.

    Attributes:
        edge: row of the relation.
        replaced_by: rows of the relations that the same messages stated in its place.
        ended_at: (valid_to, invalidated_at) of the replacement, if other messages ended that.
    """

    edge: int
    replaced_by: list[int] = field(default_factory=list)
    ended_at: tuple[str, str] | None = None
    causes: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Retraction:
    """One retraction.

    Attributes:
        dialect: SQL of the database.
        writer: statements that write memories.
        at: ISO 8601 time of the retraction.
        relearns: queue the messages of others that a withdrawn text was made of, for a model to read again.
    """

    dialect: Dialect
    writer: MemoryWriter
    at: str
    relearns: bool
    _messages: dict[int, Scope] = field(default_factory=dict)
    _again: set[int] = field(default_factory=set)
    _removed_ids: list[str] = field(default_factory=list)
    _restored: int = 0
    _kept: int = 0
    _cause: Cause = field(default_factory=lambda: Cause("retract"))

    def run(self, scope: Scope | None, source: str) -> Steps[tuple[RetractionResult, list[str]]]:
        """Withdraw a source; return the counts and the ids of the memories that left."""
        self._messages = yield from self._find_messages(scope, source)
        self._cause = Cause("retract", source)
        if not self._messages:
            return RetractionResult(), []
        before = yield from self._count_relations(scope)
        endings = yield from self._read_endings()
        statements = yield from self._count_statements()
        times = yield from self._read_own_times()
        for lineage in (yield from self._read_lineages()):
            yield from self._settle(lineage)
        yield from self._withdraw_statements(statements, times)
        reopened = yield from self._reopen(endings)
        summaries, jobs = yield from self._erase_messages()
        after = yield from self._count_relations(scope)
        result = RetractionResult(
            messages=len(self._messages),
            memories=len(self._removed_ids),
            restored=self._restored,
            kept=self._kept,
            relations=before - after,
            relations_restored=reopened,
            summaries=summaries,
            jobs=jobs,
        )
        return result, self._removed_ids

    # --- reading -----------------------------------------------------------------------------------------------------

    def _find_messages(self, scope: Scope | None, source: str) -> Steps[dict[int, Scope]]:
        where, values = self.dialect.in_scope(scope, "m")
        named, name = self.dialect.equals_text("m.source", source)
        found = yield from fetch_rows(
            f"SELECT m.row, m.user_id, m.agent_id, m.run_id FROM messages AS m WHERE {where} AND {named}",
            [*values, *name],
        )
        return {row: scope_from_ids(*ids) for row, *ids in found}

    def _count_relations(self, scope: Scope | None) -> Steps[int]:
        where, values = self.dialect.in_scope(scope)
        [(count,)] = yield from fetch_rows(f"SELECT count(*) FROM edges WHERE {where}", values)
        return int(count)

    def _among_messages(self, column: str) -> tuple[str, list[Any]]:
        """Return the condition of rows that belong to messages of the source."""
        return self.dialect.among(column, list(self._messages))

    def _read_lineages(self) -> Steps[list[_Lineage]]:
        """Return the memories that messages of the source made, changed, repeated or deleted."""
        among, messages = self._among_messages("message")
        found = yield from fetch_rows(
            f"SELECT memory FROM sources WHERE {among}"
            f" UNION SELECT target FROM endings WHERE {among} AND kind = 'memory' ORDER BY 1",
            [*messages, *messages],
        )
        rows = [row for (row,) in found]
        among, listed = self.dialect.among("row", rows)
        stored: dict[int, MemoryItem] = dict((yield from select_memories(self.dialect, f"WHERE {among}", listed)))
        past = yield from self._read_past(rows)
        links = yield from self._read_links(rows)
        lineages = []
        for row in rows:
            texts = [item.seq for _, item, _, _ in past.get(row, [])]
            if row in stored:
                texts.append(stored[row].seq)
            support = assess_texts(texts, links.get(row, ()))
            lineages.append(_Lineage(row, past.get(row, []), stored.get(row), support))
        return lineages

    def _read_past(self, rows: Sequence[int]) -> Steps[dict[int, list[tuple[int, MemoryItem, str, Any]]]]:
        among, listed = self.dialect.among("memory", rows)
        found = yield from fetch_rows(
            f"SELECT {PAST_COLUMNS}, memory, valid_from, vector FROM past WHERE {among} ORDER BY row",
            listed,
        )
        past: dict[int, list[tuple[int, MemoryItem, str, Any]]] = {}
        for row in found:
            memory, since, vector = row[-3:]
            past.setdefault(memory, []).append((row[0], memory_from_row(row, self.dialect.from_json), since, vector))
        return past

    def _read_links(self, rows: Sequence[int]) -> Steps[dict[int, list[SourceLink]]]:
        among, listed = self.dialect.among("s.memory", rows)
        found = yield from fetch_rows(
            "SELECT s.memory, s.message, s.seq, s.repeats, m.trust FROM sources AS s"
            f" JOIN messages AS m ON {self.dialect.same_part('m', 's')}m.row = s.message WHERE {among}",
            listed,
        )
        links: dict[int, list[SourceLink]] = {}
        for memory, message, seq, repeats, trust in found:
            link = SourceLink(message, seq, bool(repeats), Trust(trust), message in self._messages)
            links.setdefault(memory, []).append(link)
        return links

    # --- memories ----------------------------------------------------------------------------------------------------

    def _settle(self, lineage: _Lineage) -> Steps[None]:
        """Bring a memory to its newest text that holds, or remove it."""
        newest, index = len(lineage.texts) - 1, lineage.newest_index
        for text in lineage.texts:
            if text.promoted is not None:
                repeated, made = text.promoted
                sql = "UPDATE sources SET seq = ?, repeats = false WHERE memory = ? AND seq = ? AND repeats"
                yield from execute(sql, (made, lineage.row, repeated))
        yield from self._redate(lineage)
        if lineage.current is None:
            yield from self._revive(lineage)
        elif index is None:
            yield from self._remove(lineage.row, lineage.current)
        elif index < newest:
            yield from self._restore(lineage, index)
        else:
            self._kept += 1
            yield from self._withdraw_evidence(lineage.row)
            yield from self._set_trust(lineage.row, lineage.current, lineage.texts[index].trust)
        gone = [index for index, text in enumerate(lineage.texts) if not text.holds]
        yield from self._erase_past(lineage, gone)
        self._plan_relearning(lineage.texts[index] for index in gone)

    def _redate(self, lineage: _Lineage) -> Steps[None]:
        """Date a memory that only later messages still state by the first of them."""
        first = lineage.texts[0] if lineage.texts else None
        if first is None or first.promoted is None:
            return
        among, messages = self._among_messages("m.row")
        [(at,)] = yield from fetch_rows(
            "SELECT min(m.created_at) FROM sources AS s JOIN messages AS m"
            f" ON {self.dialect.same_part('m', 's')}m.row = s.message"
            f" WHERE s.memory = ? AND s.seq = ? AND NOT ({among})",
            [lineage.row, first.promoted[1], *messages],
        )
        if at is None:
            return
        if lineage.past:
            row, item, since, vector = lineage.past[0]
            lineage.past[0] = (row, dataclasses.replace(item, created_at=at), max(since, at), vector)
        if lineage.current is not None:
            [seq] = yield from self.dialect.reserve_seqs(1)  # searches that keep its features read them again
            lineage.current = dataclasses.replace(lineage.current, created_at=at, seq=seq)
            sql = (
                "UPDATE memories SET created_at = ?, seq = ?,"
                f" valid_from = {self.dialect.greatest}(valid_from, ?) WHERE row = ?"
            )
            yield from execute(sql, (at, seq, at, lineage.row))

    def _plan_relearning(self, texts: Iterable[TextSupport]) -> None:
        """Note the messages of others behind texts that do not hold."""
        self._again.update(row for text in texts for row in text.messages if row not in self._messages)

    def _remove(self, row: int, item: MemoryItem) -> Steps[None]:
        """Remove a memory with its evidence; messages of others stay, as part of the conversation."""
        among, messages = self._among_messages("message")
        yield from erase_from_merges(self.dialect, row, item.scope)
        yield from execute(f"DELETE FROM sources WHERE memory = ? AND NOT ({among})", [row, *messages])
        yield from erase_evidence(self.dialect, row)
        yield from remove_row(self.dialect, self.writer, row, item, self.at, self._cause, RetractionEvent.RETRACT)
        self._removed_ids.append(item.id)

    def _restore(self, lineage: _Lineage, index: int) -> Steps[None]:
        """Give a memory an earlier text again."""
        assert lineage.current is not None
        dialect, row, current = self.dialect, lineage.row, lineage.current
        past_row, item, since, vector = lineage.past[index]
        if (yield from self._has_duplicate(item, row)):
            yield from self._remove(row, current)
            return
        [seq] = yield from dialect.reserve_seqs(1)
        session = yield from self.writer.clear_words(row)
        part, part_values = dialect.in_part(current.scope)
        trust = lineage.texts[index].trust
        item = dataclasses.replace(item, scope=current.scope, trust=item.trust if trust is None else trust)
        yield from execute(
            "UPDATE memories SET text = ?, hash = ?, same = ?, metadata = ?, actor_id = ?, role = ?, updated_at = ?,"
            f" expiration_date = ?, trust = ?, seq = ?, valid_from = ? WHERE {part}row = ?",
            (
                *(item.text, item.hash, same_fact_key(item.text, item.actor_id), dialect.to_json(item.metadata)),
                *(item.actor_id, item.role, item.updated_at, item.expiration_date, int(item.trust), seq, since),
                *(*part_values, row),
            ),
        )
        yield from self.writer.write_words(row, item, session)
        yield from execute(f"UPDATE vectors SET vector = ? WHERE {part}row = ?", (vector, *part_values, row))
        feed = insert_event(dialect, item, RetractionEvent.RESTORE, seq, self._cause)
        yield from record_change(dialect, item, RetractionEvent.RESTORE, (current.text, item.text), self.at, feed)
        yield from execute(f"DELETE FROM past WHERE {part}row = ?", (*part_values, past_row))
        yield from self._withdraw_evidence(row)
        self._restored += 1

    def _revive(self, lineage: _Lineage) -> Steps[None]:
        """Insert a memory again that only messages of the source deleted, with its last text that holds."""
        dialect, index = self.dialect, lineage.newest_index
        if index is None or not (yield from self._is_only_cause("memory", lineage.row)):
            return
        past_row, item, since, vector = lineage.past[index]
        trust = lineage.texts[index].trust
        item = dataclasses.replace(item, trust=item.trust if trust is None else trust)
        [seq] = yield from dialect.reserve_seqs(1)
        row = yield from self.writer.insert(item, vector, seq, seq, self._cause, RetractionEvent.RESTORE)
        if row is None:  # another memory says it by now
            return
        part, part_values = dialect.in_part(item.scope)
        yield from execute(f"UPDATE memories SET valid_from = ? WHERE {part}row = ?", (since, *part_values, row))
        yield from execute(f"DELETE FROM past WHERE {part}row = ?", (*part_values, past_row))
        for table in ("past", "sources", "evidence"):
            yield from execute(f"UPDATE {table} SET memory = ? WHERE memory = ?", (row, lineage.row))
        self._restored += 1

    def _has_duplicate(self, item: MemoryItem, row: int) -> Steps[bool]:
        where, values = self.dialect.in_exact_scope(item.scope)
        same, keys = self.dialect.equals_key("same", [same_fact_key(item.text, item.actor_id)], item.scope)
        sql = f"SELECT 1 FROM memories WHERE {where} AND {same} AND row <> ?"
        return bool((yield from fetch_rows(sql, (*values, *keys, row))))

    def _is_only_cause(self, kind: str, target: int) -> Steps[bool]:
        """Return True if messages of the source, and no others, ended a relation or deleted a memory."""
        found = yield from fetch_rows("SELECT message FROM endings WHERE kind = ? AND target = ?", (kind, target))
        causes = {message for (message,) in found}
        return bool(causes) and causes <= self._messages.keys()

    def _set_trust(self, row: int, item: MemoryItem, trust: Trust | None) -> Steps[None]:
        if trust is not None and trust is not item.trust:
            yield from execute("UPDATE memories SET trust = ? WHERE row = ?", (int(trust), row))
            yield from record_trust(self.dialect, item, self._cause)

    def _erase_past(self, lineage: _Lineage, indexes: Sequence[int]) -> Steps[None]:
        """Erase earlier texts that do not hold, so that searches of a past day do not return them."""
        rows = [lineage.past[index][0] for index in indexes if index < len(lineage.past)]
        if rows:
            part, part_values = self.dialect.in_part(lineage.past[0][1].scope)
            among, listed = self.dialect.among("row", rows)
            yield from execute(f"DELETE FROM past WHERE {part}{among}", [*part_values, *listed])

    # --- relations ---------------------------------------------------------------------------------------------------

    def _count_statements(self) -> Steps[dict[int, tuple[int, int]]]:
        """Return for each relation that messages of the source state the number of them, and of its memories."""
        among, messages = self._among_messages("h.message")
        evidence = f"(SELECT count(*) FROM evidence AS v WHERE {self.dialect.same_part('v', 'h')}v.edge = h.edge)"
        found = yield from fetch_rows(
            f"SELECT h.edge, count(*), min({evidence}) FROM edge_messages AS h WHERE {among} GROUP BY h.edge",
            messages,
        )
        return {edge: (stated, memories) for edge, stated, memories in found}

    def _withdraw_evidence(self, memory: int) -> Steps[None]:
        """Withdraw a memory's support for relations that only messages of the source state."""
        among, messages = self._among_messages("message")
        yield from execute(
            f"DELETE FROM evidence WHERE memory = ? AND edge IN (SELECT edge FROM edge_messages WHERE {among})"
            f" AND edge NOT IN (SELECT edge FROM edge_messages WHERE NOT ({among}))",
            [memory, *messages, *messages],
        )

    def _withdraw_statements(
        self, statements: Mapping[int, tuple[int, int]], times: Mapping[int, set[str]]
    ) -> Steps[None]:
        """Take back what messages of the source state; erase the relations that nothing else supports."""
        dialect = self.dialect
        among, messages = self._among_messages("message")
        yield from execute(f"DELETE FROM edge_messages WHERE {among}", messages)
        among, listed = dialect.among("e.row", list(statements))
        left = yield from fetch_rows(
            "SELECT e.row, e.valid_from,"
            f" (SELECT count(*) FROM evidence AS v WHERE {dialect.same_part('v', 'e')}v.edge = e.row),"
            f" (SELECT count(*) FROM edge_messages AS h WHERE {dialect.same_part('h', 'e')}h.edge = e.row),"
            f" (SELECT min(m.created_at) FROM edge_messages AS h JOIN messages AS m"
            f" ON {dialect.same_part('m', 'h')}m.row = h.message WHERE {dialect.same_part('h', 'e')}h.edge = e.row)"
            f" FROM edges AS e WHERE {among}",
            listed,
        )
        unsupported = [row for row, _, evidence, stated, _ in left if not evidence and not stated]
        yield from erase_edges(dialect, unsupported)
        lighter = []
        for row, since, evidence, stated, first in left:
            if not (evidence or stated):
                continue
            count, memories = statements[row]
            is_own_time = since in times.get(row, ()) and first is not None
            lighter.append((max(0, count - (memories - evidence)), max(since, first) if is_own_time else since, row))
        seqs = yield from dialect.reserve_seqs(len(lighter))
        yield from execute_many(
            f"UPDATE edges SET weight = {dialect.greatest}(1, weight - ?), valid_from = ?, changed = ? WHERE row = ?",
            [(loss, since, seq, row) for (loss, since, row), seq in zip(lighter, seqs, strict=True)],
        )

    def _read_own_times(self) -> Steps[dict[int, set[str]]]:
        """Return for each relation that messages of the source state the times of these messages."""
        among, messages = self._among_messages("h.message")
        found = yield from fetch_rows(
            "SELECT h.edge, m.created_at FROM edge_messages AS h"
            f" JOIN messages AS m ON {self.dialect.same_part('m', 'h')}m.row = h.message WHERE {among}",
            messages,
        )
        times: dict[int, set[str]] = {}
        for edge, at in found:
            times.setdefault(edge, set()).add(at)
        return times

    def _read_endings(self) -> Steps[list[_Ending]]:
        """Return the relations that only messages of the source ended, with the relations that replaced them."""
        among, messages = self._among_messages("message")
        found = yield from fetch_rows(
            f"SELECT DISTINCT target FROM endings WHERE {among} AND kind = 'relation' ORDER BY target", messages
        )
        endings = []
        for (edge,) in found:
            if (yield from self._is_only_cause("relation", edge)):
                endings.append((yield from self._read_replacement(edge)))
        return endings

    def _read_replacement(self, edge: int) -> Steps[_Ending]:
        same = self.dialect.same_part
        found = yield from fetch_rows(
            "SELECT DISTINCT n.row, n.valid_to, n.invalidated_at, n.relationship = o.relationship FROM endings AS d"
            f" JOIN edge_messages AS h ON {same('h', 'd')}h.message = d.message"
            f" JOIN edges AS n ON {same('n', 'h')}n.row = h.edge"
            f" JOIN edges AS o ON {same('o', 'n')}o.source = n.source"
            " WHERE d.kind = 'relation' AND d.target = ? AND o.row = d.target AND n.row <> o.row",
            (edge,),
        )
        alike = [row for row in found if row[3]] or (found if len(found) == 1 else [])
        ending = _Ending(edge, [row[0] for row in alike])
        for row, until, invalidated_at, _ in alike:
            causes = yield from fetch_rows("SELECT message FROM endings WHERE kind = 'relation' AND target = ?", (row,))
            others = [message for (message,) in causes if message not in self._messages]
            if until is not None and others:
                ending.ended_at, ending.causes = (until, invalidated_at), others
        return ending

    def _reopen(self, endings: Sequence[_Ending]) -> Steps[int]:
        """Let relations hold again that only messages of the source ended; return their number."""
        reopened = 0
        for ending in endings:
            other = yield from self._find_other_end(ending)
            if other is not None:
                yield from self._end_with(ending.edge, *other)
            elif ending.ended_at is not None:
                reopened += yield from self._move_end(ending, *ending.ended_at)
            else:
                reopened += yield from self._reopen_edge(ending.edge)
        return reopened

    def _find_other_end(self, ending: _Ending) -> Steps[tuple[Sequence[int], str] | None]:
        """Return the messages of others that end a relation too, and the time of that; None if there are none."""
        if not self.relearns:
            return (yield from find_later_end(self.dialect, ending.edge, self._messages.keys()))
        # Of relations by a model, a statement of the replacement by others is all that is known.
        among, listed = self.dialect.among("row", ending.replaced_by)
        left = yield from fetch_rows(
            f"SELECT row, valid_from FROM edges WHERE {among} ORDER BY valid_from LIMIT 1", listed
        )
        if not left:
            return None
        stated = yield from fetch_rows("SELECT message FROM edge_messages WHERE edge = ?", (left[0][0],))
        return [message for (message,) in stated], left[0][1]

    def _end_with(self, edge: int, messages: Sequence[int], since: str) -> Steps[None]:
        """Let a relation end at the time of messages of others."""
        dialect = self.dialect
        [seq] = yield from dialect.reserve_seqs(1)
        yield from execute(
            f"UPDATE edges SET valid_to = {dialect.greatest}(valid_from, ?), changed = ? WHERE row = ?"
            " AND valid_to IS NOT NULL",
            (since, seq, edge),
        )
        among, listed = dialect.among("row", messages)
        yield from execute(
            f"INSERT INTO endings ({dialect.part}kind, target, message)"
            f" SELECT {dialect.part}'relation', CAST(? AS bigint), row FROM messages WHERE {among}"
            " ON CONFLICT DO NOTHING",
            [edge, *listed],
        )

    def _move_end(self, ending: _Ending, until: str, invalidated_at: str) -> Steps[int]:
        """Let a relation end where the withdrawn one ended that had replaced it."""
        [seq] = yield from self.dialect.reserve_seqs(1)
        moved = yield from fetch_rows(
            "UPDATE edges SET valid_to = ?, invalidated_at = ?, changed = ? WHERE row = ?"
            " RETURNING user_id, agent_id, run_id",
            (until, invalidated_at, seq, ending.edge),
        )
        for ids in moved:
            part = self.dialect.part_values(scope_from_ids(*ids))
            yield from execute_many(
                f"INSERT INTO endings ({self.dialect.part}kind, target, message)"
                f" VALUES ({'?, ' * len(part)}'relation', ?, ?) ON CONFLICT DO NOTHING",
                [(*part, ending.edge, message) for message in ending.causes],
            )
        return len(moved)

    def _reopen_edge(self, edge: int) -> Steps[int]:
        dialect, same = self.dialect, self.dialect.same_part("o", "e")
        [seq] = yield from dialect.reserve_seqs(1)
        reopened = yield from execute(
            "UPDATE edges AS e SET valid_to = NULL, invalidated_at = NULL, seq = ?, changed = ? WHERE e.row = ?"
            " AND valid_to IS NOT NULL AND NOT EXISTS (SELECT 1 FROM edges AS o WHERE"
            f" {same}o.source = e.source AND o.destination = e.destination"
            " AND o.relationship = e.relationship AND o.valid_to IS NULL)",
            (seq, seq, edge),
        )
        if not reopened:
            return 0
        yield from execute("DELETE FROM edge_tombstones WHERE row = ?", (edge,))
        restored = yield from execute(
            "UPDATE evidence SET withdrawn = false WHERE edge = ? AND withdrawn"
            " AND memory IN (SELECT row FROM memories)",
            (edge,),
        )
        if restored:
            yield from execute("UPDATE edges SET weight = weight + ? WHERE row = ?", (restored, edge))
        return 1

    # --- messages ----------------------------------------------------------------------------------------------------

    def _erase_messages(self) -> Steps[tuple[int, int]]:
        """Erase the messages of the source, queued ones too; return the number of summaries erased and jobs queued."""
        summaries = 0
        for scope in dict.fromkeys(self._messages.values()):
            if erased := (yield from erase_summaries(self.dialect, scope)):
                summaries += erased
                yield from enqueue_job(self.dialect, scope, "summary", at=self.at)
        among, messages = self._among_messages("message")
        queued = yield from fetch_rows(f"SELECT DISTINCT job FROM job_messages WHERE {among}", messages)
        among, messages = self._among_messages("row")
        yield from execute(f"DELETE FROM messages WHERE {among}", messages)
        among, jobs = self.dialect.among("row", [job for (job,) in queued])
        yield from execute(f"DELETE FROM jobs WHERE {among} AND row NOT IN (SELECT job FROM job_messages)", jobs)
        return summaries, (yield from self._relearn()) if self.relearns else 0

    def _relearn(self) -> Steps[int]:
        """Queue messages of others behind withdrawn texts; return the number of jobs."""
        among, rows = self.dialect.among("m.row", sorted(self._again))
        found = yield from fetch_rows(
            f"SELECT {MESSAGE_COLUMNS}, m.user_id, m.agent_id, m.run_id FROM messages AS m WHERE {among}"
            " ORDER BY m.row",
            rows,
        )
        for row in found:
            message = message_from_row(row, self.dialect)
            scope = scope_from_ids(*row[-3:])
            yield from enqueue_job(self.dialect, scope, "remember", at=message.timestamp or self.at, messages=[message])
        return len(found)
