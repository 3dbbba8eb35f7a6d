"""Caches of functions of texts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from mem0_core._system.text_caches import clear_for_epoch, clear_text_caches, text_cache


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Let threads take turns after every few instructions."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("frequent_switches")
def test_caches_are_cleared_while_another_thread_makes_some() -> None:
    is_over = Event()

    def make_caches() -> None:
        while not is_over.is_set():
            [text_cache(1)(str.casefold) for _ in range(200)]  # a list: each set is larger than the last

    makers = [Thread(target=make_caches) for _ in range(2)]
    for maker in makers:
        maker.start()
    try:
        for _ in range(10_000):
            clear_text_caches()
    finally:
        is_over.set()
        for maker in makers:
            maker.join()


def test_a_cleared_cache_calls_the_function_again() -> None:
    calls: list[str] = []
    cached = text_cache(8)(calls.append)
    for _ in range(2):
        cached("Bergen")
    clear_text_caches()
    cached("Bergen")
    assert calls == ["Bergen", "Bergen"]


def test_a_text_above_the_limit_is_not_kept() -> None:
    calls: list[str] = []
    cached = text_cache(8, max_chars=6)(calls.append)
    for text in ("Bergen", "Bergen", "Trondheim", "Trondheim"):
        cached(text)
    assert calls == ["Bergen", "Trondheim", "Trondheim"]


@pytest.mark.parametrize(
    ("before", "epoch", "is_cleared"),
    [
        ("", "known", False),  # another memory of this process has dropped what was erased
        ("known", "known", False),
        ("", "new", True),
        ("known", "new", True),
        ("earlier", "known", True),  # this one may have added texts of the earlier epoch since
    ],
)
def test_caches_are_cleared_where_they_may_have_texts_of_an_earlier_epoch(
    before: str, epoch: str, is_cleared: bool, request: pytest.FixtureRequest
) -> None:
    name = request.node.name  # epochs are never those of another test
    clear_for_epoch("", f"{name} known")
    calls: list[str] = []
    cached = text_cache(8)(calls.append)
    cached("Bergen")
    clear_for_epoch(before and f"{name} {before}", f"{name} {epoch}")
    cached("Bergen")
    assert len(calls) == (2 if is_cleared else 1)
