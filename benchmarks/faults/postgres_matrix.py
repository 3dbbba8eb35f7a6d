"""Abort verbs over a PostgreSQL server: the client process ends, or the server crashes, at a chosen boundary.

Each store is a database of its own, copied from a template before each abort. The boundaries of the client are those of
its driver and of its files.

A server rolls back the transaction of a client that ends, so its committed rows are left. One run records them at each
boundary, over another connection. Then processes really end at the first and the last boundary of each recorded state.
When the server crashes, one of its processes is killed: it cuts all connections and recovers from its log, while the
client waits at the boundary and then goes on.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.faults.injector import KILLED, Fault, Injector, Recorder, digest_files
from benchmarks.faults.matrix import COMPLETE, REFUSED, SQLiteMatrix, call_verb, run_in_fork
from benchmarks.faults.postgres_driver import watch_driver
from benchmarks.faults.python_files import watch_files
from benchmarks.faults.states import Examined, connect_reader, digest, digest_server, examine
from benchmarks.faults.verbs import VERBS, Place, Verb, build_base
from mem0_core import Mem0Error
from tests.services.postgres_server import PostgresServer

__all__ = ["SERVER_VERBS", "PostgresMatrix"]

SERVER_VERBS = tuple(name for name, verb in VERBS.items() if verb.on_server)
"""Names of the verbs that write to a server."""

_GONE_SECONDS = 60.0  # for the server to notice that a client is gone


class PostgresMatrix(SQLiteMatrix):
    """Abort verbs over databases of one server.

    Args:
        folder: an empty folder for the files of clients.
        server: it crashes and recovers.
    """

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self.folder, self.server, self.kills = folder, server, True
        self.injector = Injector()
        self._examined: dict[tuple[object, ...], Examined] = {}
        watch_files(self.injector)
        watch_driver(self.injector)
        self._base = self._place("base")
        self._execute(f"CREATE DATABASE {_database('base')}")
        umask = os.umask(0o077)
        build_base(self._base)
        examine(self._copy(self._base, "run"))  # imports what each check needs, before the forks
        os.umask(umask)

    def _place(self, name: str) -> Place:
        server, _, parameters = self.server.url.partition("?")
        return Place(self.folder / name, f"{server.rpartition('/')[0]}/{_database(name)}?{parameters}")

    def _copy(self, place: Place, name: str) -> Place:
        target = self._place(name)
        shutil.rmtree(target.folder, ignore_errors=True)
        shutil.copytree(place.folder, target.folder)
        self._execute(
            f"DROP DATABASE IF EXISTS {_database(name)} WITH (FORCE)",
            f"CREATE DATABASE {_database(name)} TEMPLATE {_database(place.folder.name)} STRATEGY file_copy",
        )
        return target

    def _execute(self, *statements: str) -> list[Any]:
        """Run statements outside of the databases under test; return the rows of the last one."""
        import psycopg

        with psycopg.connect(self.server.url, autocommit=True) as db:
            for statement in statements[:-1]:
                db.execute(statement.encode())
            cursor = db.execute(statements[-1].encode())
            return cursor.fetchall() if cursor.description else []

    def _aborts(
        self, verb: Verb, base: Place, chosen: Sequence[int], fault: Fault, *, acknowledged: int
    ) -> Iterator[tuple[int, Examined]]:
        if fault == "crash":
            yield from super()._aborts(verb, base, chosen, fault, acknowledged=acknowledged)
            return
        for taken in self._record(verb, base, chosen, fault, acknowledged):
            found: dict[int, Examined] = {at: self._abort(verb, base, at, fault) for at in {taken[0], taken[-1]}}
            recorded = dataclasses.replace(found[taken[0]], is_acknowledged=False)
            for at in taken:
                yield at, found.get(at, recorded)

    def _new_recorder(self, place: Place, states: Path, chosen: frozenset[int]) -> Recorder:
        return _ServerRecorder(place.folder, states, chosen, url=place.url)

    def _abort(self, verb: Verb, base: Place, at: int, fault: Fault) -> Examined:
        place = self._copy(base, "run")
        status, message = (self._crash if fault == "crash" else self._kill)(verb, place, at)
        self._wait_for_backends(place)
        if status not in (COMPLETE, KILLED if fault == "kill" else REFUSED):
            return Examined(error=f"the call failed with status {status}: {message}")
        found = self._look_once(verb, place, repeats=self._repeats(verb, at))
        return dataclasses.replace(
            found, is_acknowledged=status == COMPLETE, is_refused="nothing is written" in message
        )

    def _digest(self, place: Place) -> object:
        return digest(place)

    def _kill(self, verb: Verb, place: Place, at: int) -> tuple[int, str]:
        def run() -> None:
            self.injector.arm(at=at, fault="kill")
            call_verb(verb, place)
            os._exit(COMPLETE)

        return run_in_fork(run, is_quiet=True), ""

    def _crash(self, verb: Verb, place: Place, at: int) -> tuple[int, str]:
        """Crash the server while a call is at a boundary; return the status and the error of the call."""
        reached, resumed, refused = os.pipe(), os.pipe(), place.folder.parent / "refused"
        refused.unlink(missing_ok=True)

        def wait_for_crash() -> None:
            os.write(reached[1], b"x")
            os.read(resumed[0], 1)

        def run() -> None:
            os.close(reached[0])
            self.injector.arm(at=at, fault="crash")
            self.injector.crash = wait_for_crash
            try:
                call_verb(verb, place)
            except Mem0Error as error:
                self.injector.disarm()
                refused.write_text(str(error), encoding="utf-8")
                os._exit(REFUSED)
            os._exit(COMPLETE)

        def crash() -> None:
            os.close(reached[1])
            if os.read(reached[0], 1):
                self.server.crash()
                os.write(resumed[1], b"x")

        try:
            status = run_in_fork(run, is_quiet=True, meanwhile=crash)
        finally:
            for end in (reached[0], *resumed):
                os.close(end)
        return status, refused.read_text(encoding="utf-8") if refused.is_file() else ""

    def _wait_for_backends(self, place: Place) -> None:
        """Wait until the server has ended the sessions of a client that is gone."""
        deadline = time.monotonic() + _GONE_SECONDS
        sql = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{_database(place.folder.name)}'"
        while self._execute(sql) != [(0,)]:
            if time.monotonic() > deadline:
                raise RuntimeError("the server keeps sessions of a client that is gone")
            time.sleep(0.005)


@dataclass(slots=True)
class _ServerRecorder(Recorder):
    """Committed rows of a server, and files of its client, at chosen boundaries."""

    url: str = ""
    _db: Any = None

    def _read_state(self) -> bytes:
        if self._db is None:
            self._db = connect_reader(self.url)
        return digest_files(self.source) + digest_server(self._db)

    def _keep_state(self) -> None:
        """Keep nothing: a process that ends at this boundary makes the state again."""


def _database(name: str) -> str:
    return f"mem0_faults_{name}"
