"""Crash a PostgreSQL primary while eight writers run, promote its standby, and compare the acknowledged writes.

The writers connect to both servers, as clients of a cluster do: a call that fails is repeated until it returns. So the
same run counts the writes that the standby lacks, and those that the new primary refuses or doubles.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mem0_core import Memory, StoreError
from mem0_core.testing import HashEmbedder
from tests.services.postgres_server import PostgresServer, standby_of, temporary_server

__all__ = ["WRITERS", "Failover", "Replication", "fail_over"]

Replication = Literal["synchronous", "asynchronous"]

WRITERS = 8
_WAIT_SECONDS = 60.0


@dataclass(slots=True)
class Failover:
    """The outcome of one failover.

    Attributes:
        acknowledged: writes that returned before the primary crashed.
        later: writes that returned afterwards.
        lost: acknowledged writes, earlier and later, that the new primary does not have.
        doubled: texts that it has more than once.
        repeated: calls that failed, and that the writers repeated.
        unexpected: other exceptions than StoreError.
        findings: findings of `doctor` on the new primary.
        seconds: from the crash to the first write that returned.
    """

    acknowledged: int = 0
    later: int = 0
    lost: int = 0
    doubled: int = 0
    repeated: int = 0
    unexpected: list[str] = field(default_factory=list)
    findings: list[Any] = field(default_factory=list)
    seconds: float = 0.0


class _Writers:
    """Threads that each add texts of a user of their own, until they are stopped."""

    def __init__(self, url: str, folder: Path) -> None:
        self.outcome = Failover()
        self.texts: list[tuple[str, str]] = []
        self._url, self._folder = url, folder
        self._changed = threading.Condition()
        self._is_ending = False
        self._threads = [threading.Thread(target=self._write, args=(number,)) for number in range(WRITERS)]

    def __enter__(self) -> _Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_ending = True
        for thread in self._threads:
            thread.join()

    def wait_for(self, count: int) -> None:
        """Return once so many more writes have returned."""
        with self._changed:
            aim = len(self.texts) + count
            if not self._changed.wait_for(lambda: len(self.texts) >= aim, _WAIT_SECONDS):
                raise TimeoutError(f"{len(self.texts)} of {aim} writes returned in {_WAIT_SECONDS:.0f} s")

    def _write(self, number: int) -> None:
        user, count = f"writer-{number}", 0
        with open_memory(self._url, self._folder / user) as memory:
            while not self._is_ending:
                text = f"Note {count} of writer {number}"
                try:
                    memory.add(text, user_id=user, infer=False)
                except StoreError:
                    self.outcome.repeated += 1
                    time.sleep(0.05)
                except Exception as error:  # noqa: BLE001 - what a failover must not raise
                    self.outcome.unexpected.append(repr(error))
                    return
                else:
                    count += 1
                    with self._changed:
                        self.texts.append((user, text))
                        self._changed.notify_all()


def open_memory(url: str, folder: Path) -> Memory:
    """Open a memory in the database of a URL."""
    store = {"provider": "postgres", "config": {"url": url, "pool_size": 2, "partitions": 2}}
    return Memory({"store": store, "path": str(folder)}, embedder=HashEmbedder(dims=16))


def fail_over(replication: Replication, *, writes: int, lag_seconds: float = 0.0) -> Failover:
    """Crash the primary after some writes, promote the standby, and return the outcome after as many more.

    Args:
        lag_seconds: seconds before the crash in which the standby receives nothing.
    """
    with temporary_server() as primary, tempfile.TemporaryDirectory(prefix="mem0-failover-") as name:
        folder = Path(name)
        open_memory(primary.url, folder / "first").close()  # the tables
        with standby_of(primary) as standby, _Writers(_url_of_both(primary, standby), folder) as writers:
            _follow(primary, replication)
            writers.wait_for(writes)
            if lag_seconds:
                _cut_off(standby, lag_seconds)
            primary.kill()
            writers.outcome.acknowledged = len(writers.texts)
            crashed = time.monotonic()
            _execute(standby.url, "SELECT pg_promote(true, 60)")
            writers.wait_for(1)
            writers.outcome.seconds = time.monotonic() - crashed
            writers.wait_for(writes)
            writers.__exit__()
            _compare(writers, standby.url, folder / "last")
            return writers.outcome


def _compare(writers: _Writers, url: str, folder: Path) -> None:
    """Count the acknowledged texts that the new primary lacks or has twice."""
    outcome = writers.outcome
    outcome.later = len(writers.texts) - outcome.acknowledged
    with open_memory(url, folder) as memory:
        stored = Counter((str(item.scope.user_id), item.text) for item in memory.store.list_memories(None))
        outcome.findings = list(memory.doctor(repair=False)["findings"])
    outcome.lost = len(set(writers.texts) - stored.keys())
    outcome.doubled = sum(count > 1 for count in stored.values())


def _follow(primary: PostgresServer, replication: Replication) -> None:
    """Make the commits of the primary wait for its standby, or not."""
    names = "*" if replication == "synchronous" else ""
    _execute(primary.url, f"ALTER SYSTEM SET synchronous_standby_names = '{names}'")
    _execute(primary.url, "SELECT pg_reload_conf()")
    state = "sync" if names else "async"
    query = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = %s"
    _wait_until(lambda: _execute(primary.url, query, state) == 1)


def _cut_off(standby: PostgresServer, seconds: float) -> None:
    """Disconnect the standby from its primary, and wait."""
    _execute(standby.url, "ALTER SYSTEM SET primary_conninfo = ''")
    _execute(standby.url, "SELECT pg_reload_conf()")
    _wait_until(lambda: _execute(standby.url, "SELECT count(*) FROM pg_stat_wal_receiver") == 0)
    time.sleep(seconds)


def _url_of_both(primary: PostgresServer, standby: PostgresServer) -> str:
    hosts = f"{primary.folder},{standby.folder}"
    return f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"


def _execute(url: str, sql: str, *values: object) -> Any:
    """Run a statement and return the first value of its result."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        cursor = db.execute(sql.encode(), values or None)
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def _wait_until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WAIT_SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the standby did not follow in {_WAIT_SECONDS:.0f} s")
        time.sleep(0.05)
