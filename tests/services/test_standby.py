"""Standbys: acknowledged writes survive a promotion, and a standby answers reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.faults.failover import fail_over, open_memory
from mem0_core import StoreError
from tests.services.postgres_server import PostgresUnavailable, standby_of, temporary_server
from tests.support import result_texts

pytestmark = [pytest.mark.needs_server, pytest.mark.slow]

pytest.importorskip("psycopg")


def test_a_promoted_synchronous_standby_has_every_acknowledged_write() -> None:
    try:
        outcome = fail_over("synchronous", writes=40, lag_seconds=0.2)  # cut off, while all writers commit
    except PostgresUnavailable as reason:
        pytest.skip(str(reason))
    assert outcome.acknowledged >= 40
    assert outcome.later >= 40
    assert (outcome.lost, outcome.doubled, outcome.unexpected, outcome.findings) == (0, 0, [], [])


def test_a_standby_answers_reads_and_its_errors_for_writes_name_the_primary(tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            primary = stack.enter_context(temporary_server())
            memory = stack.enter_context(open_memory(primary.url, tmp_path / "primary"))
            memory_id = memory.add("My sister Anna lives in Porto.", user_id="ana")["results"][0]["id"]
            standby = stack.enter_context(standby_of(primary))
        except PostgresUnavailable as reason:
            pytest.skip(str(reason))
        reader = stack.enter_context(open_memory(standby.url, tmp_path / "standby"))
        assert result_texts(reader.search("Where does Anna live?", user_id="ana")) == ["My sister Anna lives in Porto."]
        assert len(reader.relations(user_id="ana")) == len(memory.relations(user_id="ana")) > 0
        assert reader.history(memory_id) == memory.history(memory_id)
        assert reader.stats()["memories"] == reader.export(tmp_path / "all.jsonl")["written"]["memory"] == 1
        assert reader.doctor(repair=False)["healthy"]
        assert reader.verify()["agrees"]
        writes: list[Callable[[], object]] = [
            lambda: reader.add("I moved.", user_id="ana"),
            lambda: reader.update(memory_id, "Anna moved."),
            lambda: reader.delete(memory_id),
            lambda: reader.erase(user_id="ana", reason="request 7"),
        ]
        for write in writes:
            with pytest.raises(StoreError, match=r"nothing is written: .* target_session_attrs=read-write"):
                write()
        assert memory.get(memory_id) == reader.get(memory_id)
