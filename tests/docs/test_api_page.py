"""docs/api.md is what the code says of itself."""

from __future__ import annotations

import inspect

import mem0_core
from mem0_core import Memory
from tests.docs import api_page


def test_the_page_is_what_the_code_says() -> None:
    written = api_page.PAGE.read_text(encoding="utf-8")
    assert written == api_page.page(), "docs/api.md is stale: python -m tests.docs.api_page"


def test_every_public_name_is_on_it() -> None:
    written = api_page.PAGE.read_text(encoding="utf-8")
    for name in mem0_core.__all__:
        assert name in written, name
    for verb in api_page.verbs():
        assert f"### `{verb}`\n\n```text\n{verb}(" in written, verb


def test_what_a_verb_takes_and_raises_is_told_in_its_docstring() -> None:
    """The page is no better than the docstrings: each parameter of a verb is told, but for what speaks for itself."""
    plain = {"self", "user_id", "agent_id", "run_id", "memory_id", "job_id", "merge_id", "query", "text", "question"}
    plain |= {
        "filters",
        "threshold",
        "limit",
        "top_k",
        "rerank",
        "recipe",
        "as_of",
        "reference_date",
        "allow_no_answer",
    }
    plain |= {"metadata", "purge", "show_expired", "data", "pinned", "timeout"}
    plain |= {"path", "overwrite", "on_progress", "format"}
    for verb in api_page.verbs():
        method = getattr(Memory, verb)
        assert method.__doc__, verb
        for name in inspect.signature(method).parameters:
            assert name in plain or name in method.__doc__, f"{verb}: {name}"
