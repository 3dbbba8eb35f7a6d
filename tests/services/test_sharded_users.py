"""Users on two PostgreSQL servers behind the router of `examples/sharded_users.py`."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from examples.sharded_users import Router
from mem0_core import StoreError
from tests.services.postgres_server import PostgresServer, PostgresUnavailable, temporary_server
from tests.support import result_texts

pytestmark = [pytest.mark.needs_server, pytest.mark.slow]

pytest.importorskip("psycopg")

USERS = [f"user{number}" for number in range(12)]


def test_each_user_is_on_one_of_two_servers_and_needs_only_that_one(tmp_path: Path) -> None:
    with ExitStack() as stack:
        try:
            servers: list[PostgresServer] = [stack.enter_context(temporary_server()) for _ in range(2)]
        except PostgresUnavailable as reason:
            pytest.skip(str(reason))
        urls = [server.url for server in servers]
        with Router(urls, tmp_path) as router:
            for user in USERS:
                router.of(user).add(f"My friend {user.title()} lives in Oslo.", user_id=user)
        with Router(urls[::-1], tmp_path / "other") as router:  # another process, which lists them in another order
            counts = [router.memories[url].stats()["users"] for url in urls]
            assert sum(counts) == len(USERS)
            assert min(counts) > 0
            for user in USERS:
                holders = [memory for memory in router.memories.values() if memory.get_all(user_id=user)["results"]]
                assert holders == [router.of(user)]
            servers[1].stop()
            near = [user for user in USERS if router.of(user) is router.memories[urls[0]]]
            for user in near:
                found = router.of(user).search("Who lives in Oslo?", user_id=user)
                assert result_texts(found) == [f"My friend {user.title()} lives in Oslo."]
            for user in set(USERS) - set(near):
                with pytest.raises(StoreError):
                    router.of(user).search("Who lives in Oslo?", user_id=user)
            assert router.of(near[0]).erase(user_id=near[0], reason="request 7")["complete"]
