"""Public functions called with arguments of any type raise errors of the library only.

``python -m benchmarks fuzz`` makes 20,000 such calls; here a share of them.
"""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from benchmarks.fuzz import GROUPS, fuzz

SEED = 1


@pytest.fixture(autouse=True)
def _quiet() -> object:
    """Keep the expected warnings of failing hooks and models out of the log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("group", GROUPS)
def test_hostile_arguments_raise_errors_of_the_library(group: str) -> None:
    found = fuzz(group, 20, SEED)
    assert found.calls == 20
    assert found.foreign == []


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_many_hostile_arguments_raise_errors_of_the_library(group: str) -> None:
    found = fuzz(group, 200, SEED)
    assert found.foreign == []
