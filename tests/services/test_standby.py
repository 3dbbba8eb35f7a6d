"""Acknowledged writes survive the promotion of a synchronous standby."""

from __future__ import annotations

import pytest

from benchmarks.faults.failover import fail_over
from tests.services.postgres_server import PostgresUnavailable

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
