"""Sync and async methods made from one function that returns a flow."""

from __future__ import annotations

import asyncio
import inspect

from mem0_core.flow import Flow, RunsFlows, async_method, client_method, do, sync_method


class Greeter(RunsFlows):
    @sync_method
    def greet(self, name: str, *, loud: bool = False) -> Flow[str]:
        """Return a greeting."""
        text = yield from do(f"Hello {name}".__str__)
        return text.upper() if loud else text

    agreet = async_method(greet)


class AsyncGreeter:
    def __init__(self) -> None:
        self._sync_form = Greeter()

    greet = client_method(Greeter.greet)


def test_all_forms_run_the_same_flow() -> None:
    assert Greeter().greet("Maya", loud=True) == "HELLO MAYA"
    assert asyncio.run(Greeter().agreet("Maya")) == "Hello Maya"
    assert asyncio.run(AsyncGreeter().greet("Maya", loud=True)) == "HELLO MAYA"


def test_all_forms_show_the_signature_and_the_result_of_the_flow() -> None:
    forms = (Greeter.greet, Greeter.agreet, AsyncGreeter.greet)
    assert {str(inspect.signature(form)) for form in forms} == {"(self, name: 'str', *, loud: 'bool' = False) -> 'str'"}
    assert [form.__qualname__ for form in forms] == ["Greeter.greet", "Greeter.agreet", "AsyncGreeter.greet"]
    assert [inspect.iscoroutinefunction(form) for form in forms] == [False, True, True]
    assert [form.__doc__ for form in forms] == [
        "Return a greeting.",
        "Async version of `greet`.",
        "Async version of `Greeter.greet`.",
    ]
