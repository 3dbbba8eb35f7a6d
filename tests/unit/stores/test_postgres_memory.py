"""`Memory` on PostgreSQL: configured as users do, in sync and async code, through restarts and cut connections."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults.earlier import write_earlier_schema
from mem0_core import Memory
from mem0_core.admin.transfer import compute_digests
from mem0_core.cli import main
from mem0_core.contracts import AT, SPACE, in_threads, make_changes, make_item, unit_vectors
from mem0_core.domain.records import Message, Scope
from mem0_core.errors import ConfigError, StoreError
from mem0_core.flow import call_all, defer, run
from mem0_core.interfaces import MemoryStore
from mem0_core.stores.postgres import schema as postgres_schema
from mem0_core.stores.postgres.engine.locks import lock_partitions, reserve_seqs, safe_read_seq, set_scope
from mem0_core.stores.postgres.schema import SCHEMA_VERSIONS
from mem0_core.stores.postgres.store import PostgresStore
from mem0_core.stores.postgres.vectors import PgvectorIndex
from mem0_core.stores.sql.engine.steps import SetScope, Steps, fetch_rows, read_method, write_method
from tests.services.postgres_server import PostgresServer, PostgresUnavailable, temporary_server
from tests.support import MODES, MemoryDriver, Mode, result_texts

psycopg = pytest.importorskip("psycopg")
conninfo_to_dict = psycopg.conninfo.conninfo_to_dict

pytestmark = pytest.mark.needs_server

SCHEMA, EARLIER = "mem0_tests", "mem0_tests_earlier"
ALICE = Scope("alice")


@pytest.fixture
def config(postgres_store: PostgresStore, postgres_server_url: str, tmp_path: Path) -> dict[str, Any]:
    """A configuration of an empty store."""
    store = {"provider": "postgres", "config": {"url": postgres_server_url, "schema": SCHEMA}}
    return {"store": store, "embedder": {"provider": "hash"}, "path": str(tmp_path)}


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that a test may stop and kill."""
    with ExitStack() as stack:
        try:
            server = stack.enter_context(temporary_server())
        except PostgresUnavailable as reason:
            pytest.skip(str(reason))
        yield server


# --- the front door ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_conversation_goes_in_and_answers_come_out(config: dict[str, Any], mode: Mode, tmp_path: Path) -> None:
    with Memory.from_config(config) as memory:
        driven = MemoryDriver(memory, mode)
        driven.add("My sister Jesica lives in Lisbon", user_id="alice")
        driven.add("I like green tea", user_id="alice")
        driven.add("Bob likes green cheese", user_id="bob")
        assert result_texts(driven.search("green tea", user_id="alice"))[0] == "I like green tea"
        assert "Bob likes green cheese" not in result_texts(driven.search("green cheese", user_id="alice"))
        [again] = driven.add("i like GREEN tea!", user_id="alice")["unchanged"]
        assert again["event"] == "NONE"
        [kept] = [one for one in driven.get_all(user_id="alice")["results"] if "tea" in one["memory"]]
        driven.update(kept["id"], "I like black tea")
        assert [row["event"] for row in driven.history(kept["id"])] == ["ADD", "UPDATE"]
        assert driven.relations(user_id="alice")
        driven.delete_all(user_id="alice", purge=True)
        assert result_texts(driven.get_all(user_id="alice")) == []
        assert result_texts(driven.get_all(user_id="bob")) == ["Bob likes green cheese"]
    assert not list(tmp_path.rglob("*.db")), "nothing is kept on this machine"


def test_what_is_kept_is_there_for_the_next_host(config: dict[str, Any]) -> None:
    with Memory.from_config(config) as one, Memory.from_config(config) as other:
        one.add("I like green tea", user_id="alice")
        assert result_texts(other.search("green tea", user_id="alice")) == ["I like green tea"]


def test_work_that_is_put_off_is_done(config: dict[str, Any]) -> None:
    with Memory.from_config(config) as memory:
        memory.add("I like green tea", user_id="alice", background=True)
        assert memory.flush(timeout=20)
        assert result_texts(memory.get_all(user_id="alice")) == ["I like green tea"]


def test_it_is_searched_by_pgvector_unless_told_otherwise(config: dict[str, Any]) -> None:
    with Memory.from_config(config) as memory:
        memory.add("I like tea", user_id="alice")
        assert isinstance(memory._index, PgvectorIndex)
    with Memory.from_config({**config, "vector_store": {"provider": "faiss"}}) as memory:
        assert result_texts(memory.search("tea", user_id="alice")) == ["I like tea"]
        assert not isinstance(memory._index, PgvectorIndex)


@pytest.mark.parametrize("provider", ["pgvector", "supabase"])
def test_mem0s_keys_of_pgvector_and_supabase_name_the_store(
    postgres_server_url: str, postgres_store: PostgresStore, provider: str
) -> None:
    parts = conninfo_to_dict(postgres_server_url)
    keys = {key: parts[key] for key in ("host", "port", "user", "password", "dbname") if parts.get(key)}
    if provider == "supabase":
        keys = {"connection_string": postgres_server_url, "index_method": "hnsw", "index_measure": "cosine_distance"}
    config = {"vector_store": {"provider": provider, "config": {**keys, "collection_name": "mem0", "hnsw": True}}}
    with Memory.from_config({**config, "embedder": {"provider": "hash"}}) as memory:
        memory.reset()
        memory.add("I like tea", user_id="alice")
        assert result_texts(memory.search("tea", user_id="alice")) == ["I like tea"]
        assert isinstance(memory.store, PostgresStore)
        memory.reset()


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("mysql://here", "pass postgresql://"),
        ({"provider": "postgress", "config": {}}, "did you mean 'postgres'"),
        ({"provider": "postgres", "config": {"url": "postgresql://h/d", "shema": "x"}}, "shema"),
        ("postgresql://u:secret@[/x", "no URL of PostgreSQL"),
    ],
)
def test_a_wrong_store_is_named(store: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said.replace("(", r"\(")) as raised:
        Memory.from_config({"store": store, "embedder": {"provider": "hash"}, "path": str(tmp_path)})
    assert "secret" not in str(raised.value)


def test_a_server_that_is_not_there_is_an_error_without_the_password(tmp_path: Path) -> None:
    store = {"provider": "postgres", "config": {"url": "postgresql://u:secret@127.0.0.1:1/d", "timeout": 1}}
    with pytest.raises(StoreError, match=r"PostgreSQL at 127\.0\.0\.1:1/d") as raised:
        Memory.from_config({"store": store, "embedder": {"provider": "hash"}, "path": str(tmp_path)})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("named_by", ["--config", "--store"])
def test_the_command_looks_after_a_store_in_a_server(
    config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], named_by: str
) -> None:
    file = tmp_path / "server.json"
    store = config["store"]["config"]
    place = ["--store", f"{store['url']}#{store['schema']}"] if named_by == "--store" else []
    file.write_text(json.dumps({**config, "store": None} if place else config))

    def run(*arguments: str) -> Any:
        assert main([arguments[0], "--config", str(file), *place, "--json", *arguments[1:]]) == 0
        return json.loads(capsys.readouterr().out)

    run("add", "I moved to Porto", "--user", "ann")
    assert run("stats")["bytes"]["path"].startswith("PostgreSQL at")
    assert run("doctor")["healthy"]
    assert run("export", str(tmp_path / "all.jsonl"))["written"] == {
        "memory": 1,
        "message": 1,
        "entity": 2,
        "relation": 1,
    }
    copy = str(tmp_path / "monday.db")
    assert run("backup", copy)["memories"] == 1
    run("add", "I like tea", "--user", "ann")
    assert run("restore", copy, "--force")["restored"] == 1
    assert [one["memory"] for one in run("list", "--user", "ann")["results"]] == ["I moved to Porto"]
    assert run("import", str(tmp_path / "all.jsonl"))["known"] == 1
    assert main(["stats", "--store", "mysql://here"]) == 1
    assert "begins with postgresql://" in capsys.readouterr().err


# --- the order of concurrent writers -----------------------------------------------------------------------------


class _Writers:
    """Transactions that stop half way, as those of slow hosts do."""

    def __init__(self, store: PostgresStore) -> None:
        self._db = store._db

    @read_method
    def seen(self) -> Steps[int]:
        return (yield from safe_read_seq())

    @write_method
    def take(self, part: str) -> Steps[int]:
        yield from lock_partitions(part)
        [number] = yield from reserve_seqs(1)
        return number


def test_nothing_above_the_horizon_is_told_while_a_lower_number_is_under_way(postgres_store: PostgresStore) -> None:
    writers = _Writers(postgres_store)
    with postgres_store._db.connect() as slow:
        slow.execute("BEGIN")
        slow.execute("SELECT pg_advisory_xact_lock_shared(mem0_mark(last_value)) FROM next_seq")
        [(lower,)] = slow.execute("SELECT nextval('next_seq')").fetchall()
        higher = writers.take("user_id=bob")
        assert higher > lower
        assert writers.seen() < lower
        slow.execute("COMMIT")
    assert writers.seen() >= higher


def test_many_writers_of_several_users_leave_no_gap(postgres_store: PostgresStore) -> None:
    """What a projection of an agent has seen by following positions is, in the end, everything."""
    agent = Scope(agent_id="a")
    seen: set[int] = set()
    after = 0

    def follow() -> None:
        nonlocal after
        position = postgres_store.position(agent)
        changes = postgres_store.vector_changes(agent, after=after)
        seen.update(changes.rows.tolist())
        after = max(after, position.seq)

    def work(number: int) -> None:
        if number == 0:
            for _ in range(60):
                follow()
            return
        scope = Scope(f"user {number}", "a")
        for step in range(10):
            plan = make_changes([make_item(f"fact {number} {step}", scope)])
            postgres_store.commit(plan, scope=scope, at=AT, embedding_space=SPACE)

    in_threads(work, 5)
    follow()
    assert seen == set(postgres_store.rows(agent).tolist())
    assert len(seen) == 40


def test_one_lock_serves_the_part_whoever_writes(postgres_store: PostgresStore) -> None:
    """Two plans on one text: one is written, the other is told that its text has changed."""
    item = make_item("Lives in Rome")
    postgres_store.commit(make_changes([item]), scope=ALICE, at=AT, embedding_space=SPACE)
    held = postgres_store.get(item.id)
    assert held is not None
    outcomes: list[bool] = []

    def work(number: int) -> None:
        from mem0_core.domain.records import Event, MemoryChange, MemoryItem, content_hash

        text = f"Lives in city {number}"
        fields = {name: getattr(held, name) for name in held.__slots__}
        after = MemoryItem(**{**fields, "text": text, "hash": content_hash(text)})
        plan = [MemoryChange(Event.UPDATE, after, before="Lives in Rome", vector=make_changes([after])[0].vector)]
        outcomes.append(not postgres_store.commit(plan, scope=ALICE, at=AT, embedding_space=SPACE).conflicts)

    in_threads(work, 4)
    assert sorted(outcomes) == [False, False, False, True]


# --- restarts and cuts -------------------------------------------------------------------------------------------


def add(store: MemoryStore, text: str) -> str:
    """One add with its message; returns the event."""
    plan = make_changes([make_item(text)], sources=(0,))
    done = store.commit(plan, scope=ALICE, messages=[Message("user", text)], at=AT, embedding_space=SPACE)
    return done.applied[0].event.value


def assert_whole(store: MemoryStore) -> set[str]:
    """Every memory has its vector, words, history and message, and nothing else is there; returns the texts."""
    items = store.list_memories(ALICE)
    rows = [item.row for item in items if item.row is not None]
    said = {item.text for item in items}
    assert len(store.vectors(rows)[0]) == len(items)
    sketches = store.lexicon.memory_features(ALICE, rows, today="2025-01-01", vector=unit_vectors(1)[0])
    assert len(sketches.memories) == len(items)
    assert {message.content for message in store.message_log.messages(ALICE)} == said
    assert all([row.event for row in store.history(item.id)] == ["ADD"] for item in items)
    return said


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_server_that_was_started_anew_is_found_by_the_next_call(own_server: PostgresServer, end: str) -> None:
    store = PostgresStore(own_server.url, timeout=1)
    assert add(store, "before") == "ADD"
    getattr(own_server, end)()
    with pytest.raises(StoreError):
        add(store, "while it is away")
    with pytest.raises(StoreError):
        store.list_memories(ALICE)
    own_server.start()
    assert assert_whole(store) == {"before"}
    assert add(store, "after") == "ADD"
    assert add(store, "before") == "NONE"
    assert assert_whole(store) == {"before", "after"}
    store.close()


def _is_added(store: MemoryStore, text: str) -> bool:
    try:
        add(store, text)
    except StoreError:
        return False
    return True


@pytest.mark.slow
def test_a_server_killed_again_and_again_leaves_no_half_add(own_server: PostgresServer) -> None:
    store = PostgresStore(own_server.url, timeout=5)
    acknowledged: set[str] = set()
    written, killed, broken = threading.Condition(), threading.Event(), threading.Event()

    def kill_again_and_again() -> None:
        try:
            for goal in (3, 6, 9, 12):
                with written:
                    assert written.wait_for(lambda goal=goal: len(acknowledged) >= goal, timeout=120)  # type: ignore[misc]
                own_server.kill()
                own_server.start()
        except BaseException:
            broken.set()
            raise
        finally:
            killed.set()

    def work(number: int) -> None:
        if number == 0:
            return kill_again_and_again()
        for step in itertools.count():
            text = f"fact {number} {step}"
            while not _is_added(store, text):  # an add whose answer was lost may have been committed
                assert not broken.is_set()
            with written:
                acknowledged.add(text)
                written.notify_all()
            if killed.is_set():
                return None

    in_threads(work, 4)
    assert len(acknowledged) >= 12
    assert assert_whole(store) == acknowledged
    store.close()


@pytest.mark.parametrize("mode", MODES)
def test_a_connection_cut_before_commit_is_taken_up_again(postgres_store: PostgresStore, mode: Mode) -> None:
    cut = _cut(postgres_store, before="INSERT INTO memories", mode=mode)
    assert cut == 1
    assert assert_whole(postgres_store) == {"cut"}


@pytest.mark.parametrize("mode", MODES)
def test_a_connection_cut_while_it_commits_tells_what_became_of_it(postgres_store: PostgresStore, mode: Mode) -> None:
    """COMMIT is done by the server, and its answer never comes: the caller is told that it is written."""
    with postgres_store._db.connect() as db:
        # what COMMIT does last, before it answers, is to fire what was deferred: here it cuts its own connection
        db.execute(
            "CREATE OR REPLACE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
        )
        db.execute(
            "CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION cut()"
        )
    try:
        with pytest.raises(StoreError, match="nothing is written"):
            _execute_step(postgres_store, mode)
        assert assert_whole(postgres_store) == set()
    finally:
        with postgres_store._db.connect() as db:
            db.execute("DROP TRIGGER cut ON messages")
    _execute_step(postgres_store, mode)
    assert assert_whole(postgres_store) == {"cut"}


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_to_commit_that_is_lost_is_asked_for(
    postgres_store: PostgresStore, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has committed, and the connection is cut before the answer comes."""
    lose_answer_to_commit(monkeypatch)
    _execute_step(postgres_store, mode)
    assert assert_whole(postgres_store) == {"cut"}


@pytest.mark.parametrize("mode", MODES)
def test_a_promoted_standby_is_not_asked_for_transactions_of_the_old_primary(
    postgres_store: PostgresStore, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It numbers its transactions from where it had received those of the primary, so another may have the number."""
    lose_answer_to_commit(monkeypatch, lambda: setattr(postgres_store._db, "_timeline_sql", "'00000002'"))
    with pytest.raises(StoreError, match="its outcome is unknown"):
        _execute_step(postgres_store, mode)


def lose_answer_to_commit(monkeypatch: pytest.MonkeyPatch, on_cut: Callable[[], None] = lambda: None) -> None:
    """Cut the connection of the next COMMIT, after the server did it."""
    from mem0_core.stores.postgres.engine import session as postgres_session

    is_cut = False

    def lose(db: Any) -> None:
        nonlocal is_cut
        is_cut = True
        on_cut()
        db.pgconn.finish()
        raise psycopg.OperationalError("the connection is lost")

    sync, awaited = postgres_session._execute_step, postgres_session._aexecute_step

    def do(db: Any, step: Any, database: Any) -> Any:
        result = sync(db, step, database)
        return lose(db) if getattr(step, "sql", "") == "COMMIT" and not is_cut else result

    async def ado(db: Any, step: Any, database: Any) -> Any:
        result = await awaited(db, step, database)
        return lose(db) if getattr(step, "sql", "") == "COMMIT" and not is_cut else result

    monkeypatch.setattr(postgres_session, "_execute_step", do)
    monkeypatch.setattr(postgres_session, "_aexecute_step", ado)


def _execute_step(store: PostgresStore, mode: Mode) -> None:
    plan = make_changes([make_item("cut")], sources=(0,))
    options: dict[str, Any] = {"scope": ALICE, "messages": [Message("user", "cut")], "at": AT, "embedding_space": SPACE}
    if mode == "sync":
        store.commit(plan, **options)
    else:
        asyncio.run(_acommit(store, plan, options))


async def _acommit(store: PostgresStore, plan: Any, options: dict[str, Any]) -> None:
    try:
        await store.acommit(plan, **options)
    finally:
        await store.aclose()


def _cut(store: PostgresStore, *, before: str, mode: Mode) -> int:
    """Commit, with the connection cut from the server's side once, when a statement of that kind is next."""
    from mem0_core.stores.postgres.engine import session as postgres_session

    cuts = 0
    statement_of = postgres_session._to_statement

    def statement(step: Any, database: Any) -> Any:
        nonlocal cuts
        found = statement_of(step, database)
        if found is not None and before in found.sql and not cuts:
            cuts += 1
            with store._db.connect() as db:
                db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    " AND state LIKE 'idle in transaction%' AND datname = current_database()"
                )
        return found

    postgres_session._to_statement = statement
    try:
        _execute_step(store, mode)
    finally:
        postgres_session._to_statement = statement_of
    return cuts


# --- the second wall ---------------------------------------------------------------------------------------------


def test_a_role_of_few_rights_serves_a_memory_and_sees_one_scope_at_a_time(
    postgres_store: PostgresStore, postgres_server_url: str
) -> None:
    from mem0_core.stores.postgres.schema import grant_script

    add(postgres_store, "alice's")
    bob = Scope("bob", "agent")
    postgres_store.commit(make_changes([make_item("bob's", bob)]), scope=bob, at=AT, embedding_space=SPACE)
    with postgres_store._db.connect() as db:
        if db.execute("SELECT 1 FROM pg_roles WHERE rolname = 'mem0_app'").fetchone() is None:
            db.execute("CREATE ROLE mem0_app LOGIN PASSWORD 'app'")
        db.execute(grant_script(SCHEMA, "mem0_app").encode())
    url = psycopg.conninfo.make_conninfo(postgres_server_url, user="mem0_app", password="app")
    store = PostgresStore(url, schema=SCHEMA)
    try:
        assert store._db.is_row_security_active
        assert add(store, "more of alice's") == "ADD"
        assert assert_whole(store) == {"alice's", "more of alice's"}
        assert [item.text for item in store.list_memories(Scope(agent_id="agent"))] == ["bob's"]
        index = PgvectorIndex(store)
        assert len(index.nearest(ALICE, make_changes([make_item("x")])[0].vector.reshape(1, -1), 5)[0]) == 2
        space, places = run(call_all(defer(store.embedding_space), defer(store.memory_vectors.position, ALICE)))
        assert (space, places) == (SPACE, store.memory_vectors.position(ALICE))
        with pytest.raises(AssertionError, match="one scope"):
            run(call_all(*(defer(store.memory_vectors.position, scope) for scope in (ALICE, bob))))
        exported = [one["memory"] for one in store.maintenance.iter_records(None) if one["kind"] == "memory"]
        assert sorted(exported) == ["alice's", "bob's", "more of alice's"], "it may look after everybody's"
        assert (store.maintenance.count_records(None)["users"], store.maintenance.find_issues()) == (2, [])
        with store.archive.snapshot() as records:
            assert compute_digests(records)["memories"].count == 3
        assert store.erase_scope(ALICE, at=AT, purge=True) == 2
        forgetful = _Forgetful(store)
        assert forgetful.texts_in(bob) == ["bob's"]
        assert forgetful.texts_in(ALICE) == []
    finally:
        store.close()
    with psycopg.connect(url, autocommit=True) as db:
        assert db.execute(f"SELECT count(*) FROM {SCHEMA}.memories").fetchone() == (0,), "no scope, no rows"
        db.execute("SET mem0.scope = 'user_id=bob'")
        assert db.execute(f"SELECT text FROM {SCHEMA}.memories").fetchall() == [("bob's",)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(f"SELECT 1 FROM {SCHEMA}.memories_0")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            db.execute(f"DROP TABLE {SCHEMA}.memories")


class _Forgetful:
    """A statement that names a scope and forgets to ask for it: the wall stands behind it."""

    def __init__(self, store: PostgresStore) -> None:
        self._db = store._db

    @read_method
    def texts_in(self, scope: Scope) -> Steps[list[str]]:
        yield from set_scope(scope)
        return [text for (text,) in (yield from fetch_rows("SELECT text FROM memories ORDER BY row"))]


# --- migrations --------------------------------------------------------------------------------------------------


def test_many_hosts_at_once_make_the_tables_once(postgres_server_url: str) -> None:
    schema = "mem0_tests_new"
    with psycopg.connect(postgres_server_url, autocommit=True) as db:
        db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    stores: list[PostgresStore] = []
    try:
        in_threads(lambda number: stores.append(PostgresStore(postgres_server_url, schema=schema, partitions=2)), 4)
        assert len({store.graph.store_id() for store in stores}) == 1
    finally:
        for store in stores:
            store.close()
    with psycopg.connect(postgres_server_url, autocommit=True) as db:
        db.execute(f"UPDATE {schema}.meta SET value = '99' WHERE key = 'schema'")
        with pytest.raises(StoreError, match="newer version"):
            PostgresStore(postgres_server_url, schema=schema)
        db.execute(f"DROP SCHEMA {schema} CASCADE")


@pytest.mark.parametrize("version", range(1, len(SCHEMA_VERSIONS)))
def test_a_schema_of_each_earlier_version_keeps_all_its_data(
    config: dict[str, Any], postgres_server_url: str, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = {**config, "store": {**config["store"], "config": {"url": postgres_server_url, "schema": EARLIER}}}
    with Memory(config) as memory:
        fill_with_history(memory)
        expected = describe(memory)
    with psycopg.connect(postgres_server_url, autocommit=True) as db:
        write_earlier_schema(db, SCHEMA, EARLIER, version)
        with monkeypatch.context() as patch:
            patch.setattr(
                postgres_schema, "SCHEMA_VERSIONS", (*SCHEMA_VERSIONS, "INSERT INTO no_such_table VALUES (1)")
            )
            with pytest.raises(StoreError, match="no_such_table"):
                Memory(earlier)
        assert read_schema_version(db) == version
        with Memory(earlier) as memory:
            assert describe(memory) == expected
            assert memory.doctor(repair=False)["findings"] == []
            memory.add("Anna moved to Porto.", user_id="u", source="chat")
            assert memory.retract("chat", user_id="u")["messages"] == 1
            assert describe(memory) == expected
        assert read_schema_version(db) == len(SCHEMA_VERSIONS)
        assert list_policies(db, EARLIER) == list_policies(db, SCHEMA)
        db.execute(f"DROP SCHEMA {EARLIER} CASCADE")


def fill_with_history(memory: Memory) -> None:
    memory.add("I live in Rome. My sister Anna works at Galp.", user_id="u", timestamp="2025-01-01T00:00:00+00:00")
    memory.add("I moved to Oslo.", user_id="u", timestamp="2025-02-01T00:00:00+00:00")
    memory.add("Ana drinks tea.", user_id="v", agent_id="guide", timestamp="2025-02-02T00:00:00+00:00")
    memory.update(memory.get_all(user_id="u")["results"][0]["id"], "Lives by the sea")


def describe(memory: Memory) -> list[object]:
    """Return memories, their histories, relations with their past, and the answer to a question."""
    entries = [one for user in "uv" for one in memory.get_all(user_id=user)["results"]]
    return [
        entries,
        [memory.history(one["id"]) for one in entries],
        sorted(memory.relations(user_id="u", ended=True), key=str),
        result_texts(memory.search("Where does Anna work?", user_id="u")),
    ]


def read_schema_version(db: Any) -> int:
    return int(db.execute(f"SELECT value FROM {EARLIER}.meta WHERE key = 'schema'").fetchone()[0])


def list_policies(db: Any, schema: str) -> list[Any]:
    """Return the policies, and the tables with row-level security."""
    policies = db.execute(
        "SELECT tablename, policyname, replace(qual, %s, '') FROM pg_policies WHERE schemaname = %s ORDER BY 1, 2",
        (f"{schema}.", schema),
    ).fetchall()
    secured = db.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relrowsecurity AND relkind = 'p'"
        " ORDER BY 1",
        (schema,),
    ).fetchall()
    return [policies, secured]


def test_the_printed_ddl_makes_what_the_store_makes(
    postgres_server_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = 'mem0_tests "q'
    quoted = '"mem0_tests ""q"'
    with psycopg.connect(postgres_server_url, autocommit=True) as db:
        db.execute(f"DROP SCHEMA IF EXISTS {quoted} CASCADE")
        assert main(["schema", "--store", "postgres", "--schema", schema, "--partitions", "2"]) == 0
        db.execute(capsys.readouterr().out.encode())
        store = PostgresStore(postgres_server_url, schema=schema)
        assert add(store, "kept") == "ADD"
        assert assert_whole(store) == {"kept"}
        store.close()
        db.execute(f"DROP SCHEMA {quoted} CASCADE")


def test_with_citus_tables_are_distributed_beside_one_another(capsys: pytest.CaptureFixture[str]) -> None:
    from mem0_core.stores.sql.schema import TABLES

    assert main(["schema", "--layout", "citus"]) == 0
    ddl = capsys.readouterr().out
    assert "PARTITION" not in ddl
    for table in TABLES:
        assert f"create_distributed_table('{table}', 'part'" in ddl
    uniques = [line for line in ddl.splitlines() if "PRIMARY KEY (" in line or "UNIQUE INDEX" in line]
    assert len(uniques) > len(TABLES)
    assert [line for line in uniques if "part" not in line] == [], "the scope is in every key"


# --- what a search costs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("recipe", "most"), [("hybrid", 6), ("mem0", 3)])
def test_a_search_asks_the_server_a_few_times(
    config: dict[str, Any], mode: Mode, recipe: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a network each time is a round trip: what needs nothing of one another's results is asked for in one go."""
    from mem0_core.stores.postgres.engine import session as postgres_session

    asked: list[Any] = []

    def recording(do: Any) -> Any:
        def record(db: Any, step: Any, database: Any) -> Any:
            if not isinstance(step, SetScope):
                asked.append(step)
            return do(db, step, database)

        return record

    for name in ("_execute_step", "_aexecute_step"):
        monkeypatch.setattr(postgres_session, name, recording(getattr(postgres_session, name)))
    turns = [{"role": "user", "content": f"I had dish {number} with tea"} for number in range(20)]
    driven = MemoryDriver(Memory.from_config({**config, "recipe": recipe}), mode)
    driven.add_many(turns, user_id="alice")
    driven.search("which dish?", user_id="alice")
    asked.clear()
    assert len(driven.search("which dish did I have with tea?", user_id="alice", limit=10)["results"]) == 10
    assert len(asked) <= most
    driven.close()


@pytest.mark.slow
def test_a_search_reads_what_the_user_has_and_not_what_others_have(
    config: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In blocks of the server, which a busy machine does not change."""
    from mem0_core.stores.postgres.engine import session as postgres_session

    asked: list[Any] = []
    sent = postgres_session._send

    def record(db: Any, statement: Any) -> Any:
        asked.append(statement)
        return sent(db, statement)

    monkeypatch.setattr(postgres_session, "_send", record)
    with Memory.from_config({**config, "graph_store": False}) as memory:
        store = memory.store
        assert isinstance(store, PostgresStore)

        def fill(user: str, count: int) -> None:
            turns = [{"role": "user", "content": f"{user} likes dish {number} with tea"} for number in range(count)]
            memory.add_many(turns, user_id=user)

        def blocks() -> int:
            with store._db.connect() as db:
                for table in ("memories", "vectors", "sketches"):
                    db.execute(f"VACUUM ANALYZE {table}".encode())
            asked.clear()
            assert len(memory.search("tea with dish 7", user_id="alice", limit=5)["results"]) == 5
            statements = [one for one in asked if one.sql.startswith("SELECT")]
            with store._db._open_pool().connection() as db:
                return sum(_blocks(db, one) for one in statements)

        fill("alice", 200)
        read = []
        for first, last in ((0, 4), (4, 20)):
            for number in range(first, last):
                fill(f"user {number}", 300)
            read.append(blocks())
    assert read[1] <= 1.3 * read[0] + 20, read


def _blocks(db: Any, statement: Any) -> int:
    from mem0_core.stores.postgres.engine import session as postgres_session

    sql = postgres_session._to_psycopg(statement.sql)
    explained = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}"
    [(plan,)] = db.execute(explained, statement.values or None).fetchall()
    return int(plan[0]["Plan"]["Shared Hit Blocks"]) + int(plan[0]["Plan"]["Shared Read Blocks"])
