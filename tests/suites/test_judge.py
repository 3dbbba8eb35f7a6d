"""The verdict on a run of a framework's own tests."""

from __future__ import annotations

import pytest

from tests.suites.run import Exemption, judge, read_suites

LISTED = Exemption(("tests/a.py::test_b[*-x]",), "a reason")


@pytest.mark.parametrize(
    ("outcomes", "problems"),
    [
        ({"tests/a.py::test_a": "passed", "tests/a.py::test_b[1-x]": "failed"}, []),
        ({"tests/a.py::test_a": "failed", "tests/a.py::test_b[1-x]": "failed"}, ["test_a fails", "no test passed"]),
        ({"tests/a.py::test_b[1-x]": "passed"}, ["test_b[1-x] passes and is listed"]),
        ({"tests/a.py::test_b[1-x]": "failed", "tests/a.py::test_b[1-y]": "failed", "t": "passed"}, ["test_b[1-y]"]),
        ({"tests/a.py::test_a": "passed"}, ["there is no such test"]),
        ({}, ["there is no such test", "no test passed"]),
        ({"t": "skipped", "tests/a.py::test_b[1-x]": "skipped"}, ["no test passed"]),
    ],
)
def test_new_failures_and_outdated_entries_are_problems(outcomes: dict[str, str], problems: list[str]) -> None:
    found = judge(outcomes, [LISTED])
    assert len(found) == len(problems)
    assert all(part in problem for part, problem in zip(problems, found, strict=True))


def test_a_flaky_test_may_pass_or_fail() -> None:
    flaky = Exemption(("t1",), "it depends on the clock", is_flaky=True)
    assert judge({"t1": "passed", "t2": "passed"}, [flaky]) == judge({"t1": "failed", "t2": "passed"}, [flaky]) == []


def test_each_exemption_has_tests_and_a_reason() -> None:
    suites = read_suites()
    assert {suite.distribution for suite in suites} >= {"langgraph-checkpoint", "langchain-core", "langchain"}
    for suite in suites:
        assert suite.paths
        for exemption in suite.exemptions:
            assert exemption.tests
            assert len(exemption.reason.split()) > 2
