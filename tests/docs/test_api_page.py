"""docs/reference/api.md matches the docstrings."""

from __future__ import annotations

import inspect

import mem0_core
from mem0_core import Memory
from tests.docs import api_page


def test_the_page_is_up_to_date() -> None:
    written = api_page.PAGE.read_text(encoding="utf-8")
    assert written == api_page.page(), "docs/reference/api.md is stale: python -m tests.docs.api_page"


def test_every_public_name_is_on_the_page() -> None:
    written = api_page.PAGE.read_text(encoding="utf-8")
    for name in mem0_core.__all__:
        assert name in written, name
    for method_name in api_page.method_names():
        assert f"### `{method_name}`\n\n```text\n{method_name}(" in written, method_name


def test_each_docstring_describes_the_parameters() -> None:
    """Only self-explanatory parameters may be missing in a docstring."""
    plain = {"self", "user_id", "agent_id", "run_id", "memory_id", "job_id", "merge_id", "query", "text", "question"}
    plain |= {
        "filters",
        "threshold",
        "limit",
        "min_trust",
        "top_k",
        "rerank",
        "recipe",
        "as_of",
        "reference_date",
        "allow_no_answer",
    }
    plain |= {"metadata", "purge", "show_expired", "data", "pinned", "timeout"}
    plain |= {"path", "overwrite", "on_progress", "format"}
    for method_name in api_page.method_names():
        method = getattr(Memory, method_name)
        assert method.__doc__, method_name
        for name in inspect.signature(method).parameters:
            assert name in plain or name in method.__doc__, f"{method_name}: {name}"
