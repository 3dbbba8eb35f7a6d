"""The PostgreSQL other tests lean on: it starts, is killed, keeps its data, and ends."""

from __future__ import annotations

from contextlib import ExitStack

import psutil
import pytest

from tests.services.postgres_server import PostgresUnavailable, postgres_url, temporary_server

psycopg = pytest.importorskip("psycopg")


@pytest.mark.needs_server
def test_it_keeps_what_was_committed_when_it_is_killed() -> None:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(temporary_server())
        except PostgresUnavailable as reason:
            pytest.skip(str(reason))
        with psycopg.connect(server.url) as db:
            db.execute("CREATE EXTENSION vector")
            db.execute("CREATE TABLE kept AS SELECT '[1,2]'::vector AS v")
        url = server.url
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        server.start()
        assert server.url == url
        with psycopg.connect(url) as db:
            assert db.execute("SELECT v::text FROM kept").fetchone() == ("[1,2]",)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)


@pytest.mark.needs_server
def test_a_crash_cuts_connections_and_keeps_what_was_committed() -> None:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(temporary_server())
        except PostgresUnavailable as reason:
            pytest.skip(str(reason))
        process = psutil.Process(server.pid)
        kept, cut = (stack.enter_context(psycopg.connect(server.url)) for _ in range(2))
        kept.execute("CREATE TABLE kept AS SELECT 1 AS number")
        kept.commit()
        cut.execute("INSERT INTO kept VALUES (2)")
        server.crash()
        with pytest.raises(psycopg.OperationalError):
            cut.execute("SELECT 1")
        with psycopg.connect(server.url) as db:
            assert db.execute("SELECT number FROM kept").fetchall() == [(1,)]
        assert server.pid == process.pid


@pytest.mark.needs_server
def test_it_ends_with_the_process_that_started_it() -> None:
    with ExitStack() as stack:
        try:
            server = stack.enter_context(temporary_server())
        except PostgresUnavailable as reason:
            pytest.skip(str(reason))
        process, guard = psutil.Process(server.pid), server._guard
        assert guard is not None
        assert guard.stdin is not None
        guard.stdin.close()  # as the system does for a process that is gone
        psutil.wait_procs([process], timeout=30)
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_the_variable_names_a_server_to_use_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTGRES_URL", "postgresql://elsewhere/db")
    with postgres_url() as url:
        assert url == "postgresql://elsewhere/db"
