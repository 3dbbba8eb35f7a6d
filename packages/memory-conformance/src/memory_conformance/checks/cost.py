"""The cost of a call as the store grows, in counts: calls of functions and bytes, never seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from memory_conformance.registry import InapplicableError, Kit, check, expect

SMALL, LARGE = 20, 160
MAX_GROWTH = 3.0
"""Largest growth of one call's cost while the store grows eightfold."""


def count_calls(action: Callable[[], object]) -> int:
    """Return the number of Python and C functions that an action calls."""
    count = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return count


def read_written_bytes() -> int:
    """Return the number of bytes that this process has written, or raise `InapplicableError`."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError as error:
        raise InapplicableError("this system does not count the bytes that a process writes") from error
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def count_bytes(action: Callable[[], object]) -> int:
    """Return the number of bytes that an action writes."""
    before = read_written_bytes()
    action()
    return read_written_bytes() - before


def add_facts(kit: Kit, owner: str, numbers: range) -> None:
    """Add one memory per number."""
    kit.add_texts(owner, [f"Fact {number}: shelf {number * 7} holds item {number * 13}." for number in numbers])


def measure_costs(kit: Kit, owner: str) -> dict[str, int]:
    """Return the calls of an add and a search and the bytes of an add, each as the smallest of three values."""
    adds = [count_calls(partial(kit.system.add, owner, f"Counted fact {number}.")) for number in range(3)]
    finds = [count_calls(partial(kit.system.search, owner, f"shelf {number}", limit=5)) for number in range(3)]
    costs = {"add": min(adds), "search": min(finds)}
    with suppress(InapplicableError):
        costs["bytes"] = min(
            count_bytes(partial(kit.system.add, owner, f"Weighed fact {number}.")) for number in range(3)
        )
    return costs


def compare(kit: Kit, subject: str) -> tuple[int, int]:
    """Return one cost at both sizes; the first check of a system measures for all."""
    if kit.system.is_remote:
        raise InapplicableError("the store works in another process, whose calls and bytes are not counted")
    if "costs" not in kit.cache:
        kit.renew()
        owner = kit.new_owner()
        add_facts(kit, owner, range(SMALL))
        first = measure_costs(kit, owner)
        add_facts(kit, owner, range(SMALL, LARGE))
        kit.cache["costs"] = (first, measure_costs(kit, owner))
    small, large = kit.cache["costs"]
    if subject not in small:
        raise InapplicableError("this system does not count the bytes that a process writes")
    return small[subject], large[subject]


def expect_flat(sizes: tuple[int, int], unit: str) -> str:
    """Check that a cost did not grow like the store, and describe it."""
    small, large = sizes
    growth = large / max(small, 1)
    detail = f"{small} {unit} at {SMALL} memories, {large} at {LARGE} (x{growth:.1f})"
    expect(growth <= MAX_GROWTH, detail)
    return detail


@check("cost", "add search", "scales")
def adding_stays_cheap(kit: Kit) -> str:
    """Function calls of one add grow less than threefold from 20 to 160 memories."""
    return expect_flat(compare(kit, "add"), "calls")


@check("cost", "add search", "scales")
def searching_stays_cheap(kit: Kit) -> str:
    """Function calls of one search grow less than threefold from 20 to 160 memories."""
    return expect_flat(compare(kit, "search"), "calls")


@check("cost", "add search files", "scales")
def writing_stays_small(kit: Kit) -> str:
    """Bytes that one add writes grow less than threefold from 20 to 160 memories."""
    return expect_flat(compare(kit, "bytes"), "bytes")
