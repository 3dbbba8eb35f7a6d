"""The Neo4j server of other tests: it starts, keeps its data, and ends with its parent process."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.services import neo4j_server
from tests.services.neo4j_server import Neo4jServer, Neo4jUnavailable, fetch_jars, find_java, neo4j_url

neo4j = pytest.importorskip("neo4j")

ROOT = Path(__file__).parents[2]
POSIX = pytest.mark.skipif(os.name != "posix", reason="stands a shell script in for a program")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    server = Neo4jServer(tmp_path_factory.mktemp("neo4j"))
    try:
        server.start()
    except Neo4jUnavailable as reason:
        pytest.skip(str(reason))
    with server:
        yield server


def run_query(server: Neo4jServer, query: str, **parameters: Any) -> list[Any]:
    with neo4j.GraphDatabase.driver(server.url) as driver:
        return [record[0] for record in driver.execute_query(query, parameters, database_="neo4j").records]


@pytest.mark.needs_server
def test_a_query_is_answered(server: Neo4jServer) -> None:
    components = "CALL dbms.components() YIELD versions, edition RETURN [versions[0], edition]"
    assert run_query(server, components) == [[neo4j_server.NEO4J_VERSION, "community"]]


@pytest.mark.needs_server
def test_the_heap_stays_under_a_gigabyte(server: Neo4jServer) -> None:
    [memory] = run_query(server, "CALL dbms.queryJmx('java.lang:type=Memory') YIELD attributes RETURN attributes")
    assert memory["HeapMemoryUsage"]["value"]["properties"]["max"] < 1 << 30
    assert server.pid is not None
    assert psutil.Process(server.pid).memory_info().rss < 1 << 30


@pytest.mark.needs_server
def test_it_listens_on_the_loopback_interface_alone(server: Neo4jServer) -> None:
    listening = [c.laddr for c in psutil.Process(server.pid).net_connections() if c.status == psutil.CONN_LISTEN]
    assert [(at.ip.removeprefix("::ffff:"), at.port) for at in listening] == [("127.0.0.1", server.port)]


@pytest.mark.needs_server
def test_a_start_of_a_running_server_does_nothing(server: Neo4jServer) -> None:
    pid = server.pid
    server.start()
    assert server.pid == pid


@pytest.mark.needs_server
@pytest.mark.slow
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_next_start_finds_the_data_at_the_same_url(server: Neo4jServer, end: str) -> None:
    run_query(server, "CREATE (:Kept {by: $end})", end=end)
    url, pid = server.url, server.pid
    with neo4j.GraphDatabase.driver(url) as driver:
        driver.verify_connectivity()
        process = server._process
        assert process
        getattr(server, end)()  # with a connection open, which delays nothing
        assert (process.returncode == -signal.SIGKILL) == (end == "kill")
    assert server.pid is None
    assert not psutil.pid_exists(pid or 0)
    server.start()
    assert server.url == url
    assert run_query(server, "MATCH (kept:Kept {by: $end}) RETURN count(*)", end=end) == [1]


@pytest.mark.needs_server
@pytest.mark.slow
def test_it_ends_when_its_parent_is_killed(server: Neo4jServer, tmp_path: Path) -> None:
    program = """if True:
        import pathlib, sys, time
        from tests.services.neo4j_server import Neo4jServer
        server = Neo4jServer(pathlib.Path(sys.argv[1]))
        server.start()
        print(server.pid, flush=True)
        time.sleep(600)
    """
    command = [sys.executable, "-c", program, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.kill()
    deadline = time.monotonic() + 20
    while _is_running(child):
        if time.monotonic() > deadline:
            child.kill()
            pytest.fail("the server outlived its parent")
        time.sleep(0.1)


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE  # an orphan may never be reaped
    except psutil.NoSuchProcess:
        return False


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        answer = threading.Thread(target=lambda: listener.accept()[0].sendall(b"\0\0\4\5"))
        answer.start()
        port: int = listener.getsockname()[1]
        with pytest.raises(Neo4jUnavailable, match=f"another server answers at bolt://127.0.0.1:{port}"):
            Neo4jServer(tmp_path, port).start()
        answer.join()


def test_the_variable_names_a_server_to_use_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_URL", "bolt://elsewhere:7687")
    with neo4j_url() as url:
        assert url == "bolt://elsewhere:7687"


class Programs:
    """Shell scripts alone on the path, in the place of java and mvn, and an empty cache."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / "bin"
        self.folder.mkdir()
        self.cache = folder / "cache" / "mem0-tests"
        monkeypatch.setenv("XDG_CACHE_HOME", str(self.cache.parent))
        monkeypatch.setenv("PATH", str(self.folder))

    def write(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        path.chmod(0o755)

    def cached_files(self) -> list[str]:
        return sorted(path.name for path in self.cache.iterdir() if path.suffix != ".lock")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(tmp_path, monkeypatch)


FETCH = """
for argument; do case $argument in -DoutputDirectory=*) folder=${argument#*=};; esac; done
echo fetch >> "$(dirname "$0")/fetches"
mkdir "$folder"; echo one > "$folder/one.jar"; sleep 0.3
"""


@POSIX
def test_many_at_once_fetch_the_jars_once(programs: Programs) -> None:
    programs.write("mvn", FETCH)
    with ThreadPoolExecutor(4) as pool:
        folders = {future.result() for future in [pool.submit(fetch_jars) for _ in range(4)]}
    assert folders == {programs.cache / f"neo4j-{neo4j_server.NEO4J_VERSION}"}
    assert [path.name for path in folders.pop().iterdir()] == ["one.jar"]
    assert (programs.folder / "fetches").read_text().split() == ["fetch"]


@POSIX
def test_a_fetch_that_fails_says_why_and_leaves_nothing(programs: Programs) -> None:
    programs.write("mvn", f"{FETCH}\necho no route to host; exit 1")
    with pytest.raises(Neo4jUnavailable, match="no route to host"):
        fetch_jars()
    assert programs.cached_files() == []


@POSIX
def test_a_killed_fetch_leaves_no_half_of_the_jars(programs: Programs) -> None:
    programs.write("mvn", f"{FETCH}\nkill -KILL $PPID; exit 1")
    command = [sys.executable, "-c", "from tests.services.neo4j_server import fetch_jars; fetch_jars()"]
    killed = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert killed.returncode == -signal.SIGKILL
    programs.write("mvn", FETCH)
    assert [path.name for path in fetch_jars().iterdir()] == ["one.jar"]


def test_what_is_missing_is_named(programs: Programs) -> None:
    with pytest.raises(Neo4jUnavailable, match="no java on the path"):
        find_java()
    with pytest.raises(Neo4jUnavailable, match="no mvn on the path"):
        fetch_jars()


@POSIX
@pytest.mark.parametrize(
    ("version", "fits"), [("1.8.0_452", False), ("16.0.2", False), ("17.0.15", True), ("21", True)]
)
def test_java_is_new_enough(version: str, fits: bool, programs: Programs) -> None:
    programs.write("java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")
    if fits:
        assert find_java().endswith("java")
    else:
        with pytest.raises(Neo4jUnavailable, match=version):
            find_java()


@POSIX
def test_a_start_that_fails_shows_the_log(programs: Programs, tmp_path: Path) -> None:
    programs.write("mvn", FETCH)
    programs.write("java", "echo 'version \"17\"' >&2; echo store is locked")
    server = Neo4jServer(tmp_path / "home")
    with pytest.raises(Neo4jUnavailable, match="store is locked"):
        server.start()
    assert server.pid is None
