"""What holds for every test."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Generator

import pytest

from tests.services.neo4j_fixture import neo4j_server_url, patient_neo4j  # noqa: F401 - fixtures for all
from tests.services.postgres_fixture import (  # noqa: F401 - fixtures for all
    postgres_reset_store,
    postgres_server_url,
    postgres_store,
    truth,
)

MAX_WORKERS = 8

# Images of containers set it; each process that a test starts would then compile all modules that it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

if importlib.util.find_spec("hypothesis"):  # absent where only models are tested
    from hypothesis import HealthCheck, settings

    # A busy machine is slow, which is no failure.
    settings.register_profile("patient", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for ``pytest -n auto``: each starts servers of its own, and uses half a GB."""
    if os.environ.keys() & {"POSTGRES_URL", "NEO4J_URL"}:
        return 0  # one server for all tests, which empty it
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(processors, MAX_WORKERS)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test marked `needs_server` may skip on a desk, but not in CI, where the server is ours to start."""
    report = yield
    xfailed = hasattr(report, "wasxfail")
    if report.skipped and not xfailed and os.environ.get("CI") == "true" and item.get_closest_marker("needs_server"):
        report.outcome = "failed"
        report.longrepr = f"skipped where CI=true must run it: {call.excinfo.value if call.excinfo else ''}"
    return report
