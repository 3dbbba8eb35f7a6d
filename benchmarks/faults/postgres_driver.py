"""Boundaries of psycopg: the moment before a statement is sent, and the moment when it is sent and not yet answered."""

from __future__ import annotations

import threading
from collections.abc import Generator
from typing import Any

from benchmarks.faults.injector import Injector

__all__ = ["watch_driver"]


def watch_driver(injector: Injector) -> None:
    """Make each round trip of every connection of psycopg pass two boundaries of `injector`, in this process."""
    import psycopg

    wait, execute = psycopg.Connection.wait, psycopg.Cursor.execute
    current = threading.local()

    def watched_execute(self: Any, query: Any, *values: Any, **options: Any) -> Any:
        text = query.decode() if isinstance(query, bytes) else str(query)
        current.label = (text.split(None, 1) or [""])[0]
        return execute(self, query, *values, **options)

    def watched_wait(self: Any, steps: Any, *values: Any, **options: Any) -> Any:
        if not injector.is_armed:
            return wait(self, steps, *values, **options)
        return wait(self, _watch(injector, steps, getattr(current, "label", "")), *values, **options)

    psycopg.Cursor.execute = watched_execute  # type: ignore[method-assign]
    psycopg.Connection.wait = watched_wait  # type: ignore[method-assign, assignment]


def _watch(injector: Injector, steps: Generator[Any, Any, Any], label: str) -> Generator[Any, Any, Any]:
    """Run the steps of a round trip. They wait for the first time when the statement is sent."""
    injector.reach("statement", label)
    is_sent = False
    try:
        wanted = next(steps)
        while True:
            if not is_sent:
                injector.reach("sent", label)
                is_sent = True
            try:
                ready = yield wanted
            except BaseException as error:  # noqa: BLE001 - for the steps
                wanted = steps.throw(error)
            else:
                wanted = steps.send(ready)
    except StopIteration as stop:
        return stop.value
