"""A real Neo4j on the loopback interface, made of its published jars by the Java and the Maven of this machine.

::

    with Neo4jServer(tmp_path / "neo4j") as server:     # up when this returns: Bolt answers
        driver = GraphDatabase.driver(server.url)       # no user, no password; the database is named neo4j
        server.kill()                                   # as a crash does
        server.start()                                  # the same data at the same url

    with neo4j_url() as url:                            # NEO4J_URL where set, or else a server that ends with the block
        ...

`Neo4jUnavailable` says why there is none; a test skips then, and is marked `needs_server`. The jars (123 MB) are
fetched once, into ``${XDG_CACHE_HOME:-~/.cache}/mem0-tests``; a start takes 5 to 20 s and a server about 420 MB.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType

HERE = Path(__file__).parent / "neo4j"
NEO4J_VERSION = "5.26.30"  # of the last series that runs on Java 17
MIN_JAVA_VERSION = 17
START_TIMEOUT_SECONDS = 120.0
STOP_TIMEOUT_SECONDS = 60.0
FETCH_TIMEOUT_SECONDS = 600.0
# Servers live for seconds: compiling much-used code well, and collecting garbage on several threads, costs more CPU.
JVM_OPTIONS = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
OPENED_PACKAGES = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")  # packages Neo4j reaches into
# The last one lets a stop take 1 s and not 10: it waits twice to see whether more requests come.
SETTINGS = """\
server.bolt.listen_address=127.0.0.1:{port}
server.http.enabled=false
server.memory.pagecache.size=64m
dbms.security.auth_enabled=false
dbms.usage_report.enabled=false
internal.dbms.bolt.netty_server_shutdown_quiet_period=0
"""
# The handshake of Bolt: a magic number, and room for four versions, of which 5.4 and 4.4 are proposed.
BOLT_HANDSHAKE = bytes.fromhex("6060b017 00000405 00000404 00000000 00000000")


class Neo4jUnavailable(Exception):
    """No server can be had here; the message says why."""


class Neo4jServer:
    """One server over one data folder, started and ended as often as one likes; it never outlives this process.

    Attributes:
        folder: its home, with the data, the settings and the logs; made when missing, and kept between starts.
        port: where it listens; a free one is chosen here, once.
        url: for a driver.
    """

    def __init__(self, folder: Path, port: int | None = None) -> None:
        self.folder = folder.absolute()
        self.port = port or _free_port()
        self.url = f"bolt://127.0.0.1:{self.port}"
        self._log = self.folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Neo4jServer:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Returns once Bolt answers, which Neo4j lets it do last of all; nothing happens where it runs already.

        Raises:
            Neo4jUnavailable: no Java, no Maven, no jars, the port is taken, or no answer within
            `START_TIMEOUT_SECONDS`.
        """
        if self.pid:
            return
        if _speaks_bolt(self.port):
            raise Neo4jUnavailable(f"another server answers at {self.url}")
        java, jars = find_java(), fetch_jars()
        settings = self.folder / "conf" / "neo4j.conf"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(SETTINGS.format(port=self.port), encoding="utf-8")
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED_PACKAGES]
        command = [java, *JVM_OPTIONS, *opened, "-cp", str(jars / "*"), str(HERE / "Server.java")]
        command += [f"--home-dir={self.folder}", f"--config-dir={settings.parent}", "--console-mode"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT)
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """An orderly end; returns when the process is gone, killed if it takes more than `STOP_TIMEOUT_SECONDS`."""
        self._terminate(kill=False)

    def kill(self) -> None:
        """The end a crash makes: nothing is flushed."""
        self._terminate(kill=True)

    def close(self) -> None:
        self.stop()

    def _wait_until_ready(self) -> None:
        """Until Bolt answers."""
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while not _speaks_bolt(self.port):
            if not self.pid:
                raise Neo4jUnavailable(f"Neo4j ended at its start: {self._read_log_tail()}")
            if time.monotonic() > deadline:
                raise Neo4jUnavailable(
                    f"no answer from Neo4j in {START_TIMEOUT_SECONDS:.0f} s: {self._read_log_tail()}"
                )
            time.sleep(0.1)

    def _terminate(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with process:  # closes the pipe and waits
            if kill:
                process.kill()
            else:
                process.terminate()
            try:
                process.wait(STOP_TIMEOUT_SECONDS)  # before the pipe is closed, which would halt it
            except subprocess.TimeoutExpired:
                process.kill()

    def _read_log_tail(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-3000:]


@contextmanager
def neo4j_url() -> Iterator[str]:
    """The server named by NEO4J_URL, or else one of our own in a temporary folder."""
    if url := os.environ.get("NEO4J_URL"):
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="neo4j-") as folder, Neo4jServer(Path(folder)) as server:
        yield server.url


def find_java() -> str:
    """The java on the path, if it is new enough."""
    java = shutil.which("java")
    if java is None:
        raise Neo4jUnavailable("no java on the path")
    version_output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', version_output)
    if version is None or int(version[1]) < MIN_JAVA_VERSION:
        raise Neo4jUnavailable(f"Neo4j needs java {MIN_JAVA_VERSION}, not {version_output.strip()}")
    return java


def fetch_jars() -> Path:
    """The folder with the jars, which Maven fills the first time, for one process while others wait."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mem0-tests"
    jars = cache / f"neo4j-{NEO4J_VERSION}"
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise Neo4jUnavailable("no mvn on the path")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(cache / f"neo4j-{NEO4J_VERSION}.lock"):
            if not jars.is_dir():
                _fetch(maven, jars)
    except (OSError, sqlite3.Error, subprocess.SubprocessError) as error:
        output = getattr(error, "stdout", None) or b""
        raise Neo4jUnavailable(f"Neo4j's jars: {error} {output.decode(errors='replace')[-3000:]}") from error
    return jars


def _fetch(maven: str, jars: Path) -> None:
    """Into a sibling first, so that the folder is whole or is not there."""
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix=f"{jars.name}-") as folder:
        copy = [maven, "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
        copy += [f"-Dneo4j.version={NEO4J_VERSION}", f"-DoutputDirectory={folder}/jars"]
        subprocess.run(
            copy, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=FETCH_TIMEOUT_SECONDS
        )
        Path(folder, "jars").rename(jars)


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """A lock between processes that ends with its holder, on every system: a transaction of SQLite's."""
    with closing(sqlite3.connect(path, timeout=FETCH_TIMEOUT_SECONDS, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        yield


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _speaks_bolt(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(BOLT_HANDSHAKE)
            return len(connection.recv(4)) == 4
    except OSError:
        return False
