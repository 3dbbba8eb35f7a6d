"""Methods of views, each pair of which is made from one flow."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from mem0_core.errors import ArgumentError
from mem0_core.testing import HashEmbedder
from mem0_core.views import MemoryFiles, ScopedDocuments


@pytest.fixture
def documents(tmp_path: Path) -> Any:
    with Memory(path=tmp_path, embedder=HashEmbedder()) as memory:
        yield ScopedDocuments(memory, user_id="maya")


def test_both_methods_have_the_signature_and_the_docstring_of_the_flow() -> None:
    for method, name in ((ScopedDocuments.get, "get"), (ScopedDocuments.aget, "aget")):
        assert method.__name__ == name
        assert method.__doc__ == ScopedDocuments.get_flow.__doc__
        assert list(inspect.signature(method).parameters) == ["self", "ids", "filters"]
        assert inspect.signature(method).return_annotation == "list[ScopedDocument]"
    assert inspect.iscoroutinefunction(ScopedDocuments.aget)
    assert not inspect.iscoroutinefunction(ScopedDocuments.get)


def test_a_method_may_have_another_name_than_its_flow() -> None:
    assert MemoryFiles.list_files.__qualname__ == "MemoryFiles.list_files"
    assert MemoryFiles.alist_files.__qualname__ == "MemoryFiles.alist_files"


@pytest.mark.parametrize(
    "call", [lambda view: view.get(7), lambda view: asyncio.run(view.aget(7))], ids=["get", "aget"]
)
def test_an_argument_of_a_wrong_type_is_named(
    documents: ScopedDocuments, call: Callable[[ScopedDocuments], object]
) -> None:
    with pytest.raises(ArgumentError, match=r"^ids must be a Sequence of str or None, not 7"):
        call(documents)


def test_a_subclass_that_overrides_a_flow_changes_both_methods(documents: ScopedDocuments) -> None:
    class Loud(ScopedDocuments):
        def get_flow(self, ids: Any = None, *, filters: Any = None) -> Any:
            found = yield from super().get_flow(ids, filters=filters)
            return [one.text.upper() for one in found]

    loud: Any = Loud(documents.memory, user_id="maya")
    loud.add(["the flat in Porto"])
    assert loud.get() == asyncio.run(loud.aget()) == ["THE FLAT IN PORTO"]
