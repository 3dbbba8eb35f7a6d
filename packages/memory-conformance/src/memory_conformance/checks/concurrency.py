"""Threads and processes lose nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from memory_conformance.registry import CheckError, Kit, check, expect, expect_equal, is_refused

THREADS = 6
ADDS_PER_THREAD = 12


@contextmanager
def switch_often() -> Iterator[None]:
    """Let the interpreter switch threads so often that unlocked code shows it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def run_threads(actions: list[Callable[[], object]]) -> None:
    """Run the actions at once, each in a thread, and fail with the first error."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(actions))

    def work(action: Callable[[], object]) -> None:
        start.wait()
        try:
            action()
        except BaseException as error:  # noqa: BLE001 the check reports it
            errors.append(error)

    threads = [threading.Thread(target=work, args=(action,), daemon=True) for action in actions]
    with switch_often():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        first = errors[0]
        raise CheckError(f"{len(errors)} of {len(actions)} threads failed: {type(first).__name__}: {first}")


@check("concurrency", "add list threads")
def concurrent_adds_are_all_kept(kit: Kit) -> None:
    """Six threads add twelve memories each to one owner, and all remain."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["The first."])

    def add_some(thread: int) -> Callable[[], object]:
        return lambda: kit.add_texts(owner, [f"Thread {thread} says {n}." for n in range(ADDS_PER_THREAD)])

    run_threads([add_some(thread) for thread in range(THREADS)])
    expect_equal(len(set(kit.list_texts(owner))), 1 + THREADS * ADDS_PER_THREAD, "number of memories")


@check("concurrency", "add list search threads")
def reads_during_writes_succeed(kit: Kit) -> None:
    """Threads list and search while others add, without an error."""
    owner = kit.new_owner()
    kit.add_texts(owner, [f"Base {number} of marble." for number in range(60)])

    def write(thread: int) -> Callable[[], object]:
        return lambda: [kit.system.add(owner, f"Thread {thread} says marble {n}.") for n in range(25)]

    def read() -> None:
        for _ in range(25):
            kit.system.list(owner)
            kit.system.search(owner, "marble")

    run_threads([write(0), write(1), read, read])


@check("concurrency", "add update get threads")
def concurrent_updates_leave_one_text(kit: Kit) -> None:
    """After concurrent updates, of which a store may refuse some, the memory has an accepted text."""
    owner = kit.new_owner()
    (memory_id,) = kit.add_texts(owner, ["Start."])
    accepted: list[str] = []

    def update_to(text: str) -> None:
        if not is_refused(kit.system.update, owner, memory_id, text):
            accepted.append(text)

    run_threads([partial(update_to, f"Written by {number}.") for number in range(THREADS)])
    expect(accepted, "all concurrent updates were refused")
    text = kit.require(owner, memory_id).text
    expect(text in accepted, f"the text after concurrent updates is {text!r}, the accepted ones were {accepted}")


@check("concurrency", "add list keys threads")
def concurrent_adds_with_a_key_are_one(kit: Kit) -> None:
    """Concurrent adds with one key leave one memory."""
    owner = kit.new_owner()

    def add_version(version: int) -> Callable[[], object]:
        return lambda: kit.system.add(owner, f"Version {version}.", key="same")

    run_threads([add_version(version) for version in range(THREADS)])
    expect_equal(len(kit.list_texts(owner)), 1, "number of memories with one key")


@check("concurrency", "add list shared")
def two_objects_see_each_other(kit: Kit) -> None:
    """Two objects in one folder see each other's writes at once."""
    owner = kit.new_owner()
    kit.add_texts(owner, ["By the first."])
    other = kit.factory(kit.folder)
    try:
        expect_equal([record.text for record in other.list(owner)], ["By the first."], "list of the second object")
        other.add(owner, "By the second.")
        expect_equal(kit.list_texts(owner), ["By the first.", "By the second."], "list of the first object")
    finally:
        other.close()


@check("concurrency", "add list search shared")
def two_objects_write_at_once(kit: Kit) -> None:
    """Two objects in one folder add at the same time, and nothing is lost."""
    owner = kit.new_owner()
    system, other = kit.system, kit.factory(kit.folder)
    try:
        run_threads(
            [
                lambda: [system.add(owner, f"First {n} of amber.") for n in range(20)],
                lambda: [other.add(owner, f"Second {n} of amber.") for n in range(20)],
            ]
        )
        expect_equal(len(set(kit.list_texts(owner))), 40, "number of memories")
        expect_equal(len(other.search(owner, "amber", limit=40)), 40, "number of results of the second object")
    finally:
        other.close()
