"""A clock that is set back: the order of commits, not the clock, says which statement is the newer one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest

from mem0_core.api import _clock
from mem0_core.domain.records import Scope
from mem0_core.stores.sql.changes import memories as changes
from tests.support import MODES, MemoryDriver, Mode, open_memory

DAY = timedelta(days=1)


class Clock:
    """The wall clock of a host, which can be set."""

    offset = timedelta(0)

    def now(self, tz: tzinfo | None = None) -> datetime:
        return datetime.now(tz) + self.offset

    def __getattr__(self, name: str) -> Any:
        return getattr(datetime, name)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_clock, "datetime", clock)
    monkeypatch.setattr(changes, "utc_now", lambda: clock.now(UTC).isoformat())
    return clock


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Mode:
    mode: Mode = request.param
    return mode


def test_a_statement_after_the_clock_went_back_is_the_newer_one(
    tmp_path: Path, mode: Mode, clock: Clock, truth: dict[str, Any]
) -> None:
    with open_memory(tmp_path, config=truth) as memory:
        first = MemoryDriver(memory, mode).add("I live in Rome.", user_id="u", run_id="a")["results"][0]["id"]
    clock.offset = -DAY
    with open_memory(tmp_path, config=truth) as memory:
        driver = MemoryDriver(memory, mode)
        driver.pin(first)  # its event must not lower the time of the latest change
        driver.add("I live in Oslo.", user_id="u")
    clock.offset = -2 * DAY
    with open_memory(tmp_path, config=truth) as memory:
        driver = MemoryDriver(memory, mode)
        assert driver.answer("Where do I live?", user_id="u")["answer"] == "Oslo"
        driver.add("I live in Bonn.", user_id="u")
        driver.add("I live in Lisbon.", user_id="u", run_id="b")
        assert driver.answer("Where do I live?", user_id="u")["answer"] == "Lisbon"
        driver.update(first, "I live in Kyiv.")
        entries = memory.get_all(user_id="u")["results"]
        times = {one["memory"].split()[-1]: one["updated_at"] or one["created_at"] for one in entries}
        assert sorted(times, key=lambda name: times[name]) == ["Oslo.", "Bonn.", "Lisbon.", "Kyiv."]
        assert [one["at"] for one in memory.changes()["results"]] == sorted(
            one["at"] for one in memory.changes()["results"]
        )
        assert memory.doctor()["healthy"]


def test_another_user_keeps_the_time_of_the_clock(tmp_path: Path, mode: Mode, clock: Clock) -> None:
    with open_memory(tmp_path) as memory:
        memory.add("I live in Rome.", user_id="u")
    clock.offset = -DAY
    with open_memory(tmp_path) as memory:
        driver = MemoryDriver(memory, mode)
        driver.add("I live in Oslo.", user_id="u")
        added = driver.add("I live in Bonn.", user_id="v")["results"][0]["id"]
        assert memory.get(added)["created_at"] < (datetime.now(UTC) - DAY / 2).isoformat()  # type: ignore[index]


def test_a_statement_with_a_time_keeps_it(tmp_path: Path, mode: Mode) -> None:
    with open_memory(tmp_path) as memory:
        driver = MemoryDriver(memory, mode)
        driver.add("I live in Rome.", user_id="u", timestamp="2999-01-01")
        driver.add("I live in Oslo.", user_id="u")
        driver.add("I live in Bonn.", user_id="u", timestamp="2020-01-01")
        years = [one["created_at"][:4] for one in memory.get_all(user_id="u")["results"]]
        assert years == ["2020", str(datetime.now(UTC).year), "2999"]


def test_statements_of_one_process_differ_in_time() -> None:
    clock = _clock.StatementClock()
    times = [clock.now() for _ in range(1_000)]
    assert times == sorted(set(times))
    user, other = Scope("u"), Scope("v")
    assert clock.now(user, "2999-01-01T00:00:00.999999+00:00") == "2999-01-01T00:00:01+00:00"
    assert clock.now(user, "2999-01-01T00:00:00.999999+00:00") == "2999-01-01T00:00:01.000001+00:00"
    assert clock.now(user) == "2999-01-01T00:00:01.000002+00:00"
    assert clock.now(other) < "2999"
