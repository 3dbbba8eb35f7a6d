"""Pytest plugin that writes the outcome of each test to the JSON file named by `MEM0_SUITE_REPORT`.

Tests that need not pass, by the patterns in `MEM0_SUITE_LISTED`, are not retried.
"""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

_outcomes: dict[str, str] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    listed = [pattern.replace("[", "[[]") for pattern in json.loads(os.environ.get("MEM0_SUITE_LISTED", "[]"))]
    for item in items:
        if any(fnmatchcase(item.nodeid, pattern) for pattern in listed):
            item.own_markers = [marker for marker in item.own_markers if marker.name != "flaky"]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    outcome = str(report.outcome)  # "retried" too, with a plugin for flaky tests
    if outcome == "failed":
        _outcomes[report.nodeid] = "failed"
    elif report.when == "call" or outcome == "skipped":
        _outcomes[report.nodeid] = outcome


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _outcomes[report.nodeid] = "failed"


def pytest_sessionfinish(session: pytest.Session) -> None:
    config: Any = session.config
    if not hasattr(config, "workerinput"):  # the process that collects the reports of all workers
        Path(os.environ["MEM0_SUITE_REPORT"]).write_text(json.dumps(_outcomes), encoding="utf-8")
