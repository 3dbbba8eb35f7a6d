"""Crash a PostgreSQL primary under eight writers, promote its standby, and count the acknowledged writes it lacks."""

from __future__ import annotations

import sys
from dataclasses import asdict

from benchmarks.faults.failover import WRITERS, Failover, Replication, fail_over
from benchmarks.plan import Plan
from benchmarks.report import Bar, Report
from tests.services.postgres_server import PostgresUnavailable

__all__ = ["measure"]

_WRITES = 200
_LAG_SECONDS = 1.0
_NONE = Bar("==", 0)


def measure(plan: Plan) -> Report:
    """Fail over to a synchronous and to an asynchronous standby: one that follows, and one that was cut off."""
    report = Report("standby")
    try:
        for replication in ("synchronous", "asynchronous"):
            for lag_seconds in (0.0, _LAG_SECONDS):
                _measure_failovers(report, plan.failovers, replication, lag_seconds)
    except PostgresUnavailable as error:
        report.skip("PostgreSQL", str(error))
    return report


def _measure_failovers(report: Report, rounds: int, replication: Replication, lag_seconds: float) -> None:
    state = f"cut off for {lag_seconds:g} s" if lag_seconds else "following"
    section = f"{replication} standby, {state}, {WRITERS} writers"
    found = list[Failover]()
    for _ in range(rounds):
        found.append(fail_over(replication, writes=_WRITES, lag_seconds=lag_seconds))
        print(f"standby: {section}: {found[-1].lost} lost", file=sys.stderr, flush=True)
    promised = _NONE if replication == "synchronous" else None
    report.add(section, "failovers", rounds)
    report.add(section, "writes acknowledged before", sum(one.acknowledged for one in found))
    report.add(section, "writes acknowledged after", sum(one.later for one in found))
    report.add(section, "acknowledged writes lost", sum(one.lost for one in found), bar=promised)
    report.add(section, "texts stored twice", sum(one.doubled for one in found), bar=_NONE)
    report.add(section, "findings of doctor", sum(len(one.findings) for one in found), bar=_NONE)
    report.add(section, "other exceptions than StoreError", sum(len(one.unexpected) for one in found), bar=_NONE)
    report.add(section, "calls that failed and were repeated", sum(one.repeated for one in found))
    report.add(section, "longest time without a write", max(one.seconds for one in found), "s")
    report.details[section] = [asdict(one) for one in found]
