"""Results in notebooks: HTML of each kind, always escaped, and dicts in every other respect."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from mem0_core import AsyncMemory, Memory
from mem0_core.testing import HashEmbedder

ATTACK = "<script>alert('x')</script><img src=x onerror=alert(1)> & \"quoted\""


class Tags(HTMLParser):
    """Check that tags are balanced, and collect their names and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory({"path": tmp_path / "memory"}, embedder=HashEmbedder()) as opened:
        opened.add("I live in Lisbon.", user_id="maya", timestamp="2025-03-08")
        opened.add("I moved to Porto.", user_id="maya", timestamp="2025-07-28")
        opened.add("My sister Ana works at Initech.", user_id="maya", timestamp="2025-08-01")
        yield opened


def html(result: object) -> str:
    shown: str = result._repr_html_()  # type: ignore[attr-defined]
    assert Tags(shown).names <= {"table", "thead", "tbody", "tr", "th", "td", "p", "b", "i", "pre", "small"}
    return shown


def results(memory: Memory) -> dict[str, Any]:
    return {
        "search": memory.search("Where do I live?", user_id="maya"),
        "get_all": memory.get_all(user_id="maya"),
        "context": memory.context("Where do I live?", user_id="maya"),
        "answer": memory.answer("Where do I live?", user_id="maya"),
        "paths": memory.traverse("my sister's job", user_id="maya"),
        "query": memory.query("MATCH (a)-[r]->(b) RETURN a, r, b", user_id="maya"),
    }


def test_each_result_is_shown(memory: Memory) -> None:
    shown = {name: Tags(html(result)).text for name, result in results(memory).items()}
    for name in ("search", "get_all", "context", "answer", "query"):
        assert "Porto" in shown[name], name
    assert "since 2025-07-28" in shown["search"]
    assert "Initech" in shown["paths"]
    assert "tokens" in shown["context"]


def test_a_single_path_is_shown_with_its_steps(memory: Memory) -> None:
    (path, *_) = memory.traverse("my sister's job", user_id="maya")
    text = Tags(html(path)).text
    assert re.search(r"→|←", text)
    assert "Ana" in text or "Initech" in text


def test_results_are_dicts_in_every_other_respect(memory: Memory) -> None:
    for name, result in results(memory).items():
        plain = list(result) if isinstance(result, list) else dict(result)
        assert result == plain
        assert isinstance(result, (dict, list))
        assert json.loads(json.dumps(result)) == json.loads(json.dumps(plain)), name
        for copied in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):  # noqa: S301
            assert type(copied) is type(plain)
            assert copied == plain
        assert repr(result) == repr(plain)


def test_texts_are_escaped_everywhere(tmp_path: Path) -> None:
    with Memory({"path": tmp_path / "memory"}, embedder=HashEmbedder()) as memory:
        message: Any = {"role": "user", "content": f"I live in {ATTACK}.", "name": ATTACK}
        memory.add([message], user_id="maya")
        memory.add(f"I like {ATTACK}.", user_id="maya")
        shown = [
            html(memory.search("live", user_id="maya")),
            html(memory.context("live", user_id="maya", recent=5)),
            html(memory.answer("Where do I live?", user_id="maya")),
            html(memory.query(f"MATCH (a)-[r]->(b) RETURN a AS `{'x'}`, r, b", user_id="maya")),
            html(memory.traverse("my home", user_id="maya")),
        ]
    assert "&lt;script&gt;" in shown[0]
    assert not any("<script" in one or "<img" in one for one in shown)


def test_empty_results_are_shown(tmp_path: Path) -> None:
    with Memory({"path": tmp_path / "memory"}, embedder=HashEmbedder()) as memory:
        assert "no memories" in html(memory.search("anything", user_id="maya"))
        assert "unknown" in html(memory.answer("Where do I live?", user_id="maya"))
        assert "no path" in html(memory.traverse("my sister's dog", user_id="maya"))
        assert "no rows" in html(memory.query("MATCH (a)-[r]->(b) RETURN a", user_id="maya"))
        html(memory.context("anything", user_id="maya"))


def test_long_results_are_cut(memory: Memory) -> None:
    memory.add_many([f"Fact number {number}." for number in range(120)], user_id="maya")
    assert "and 23 more" in html(memory.get_all(user_id="maya", limit=None))


async def test_async_results_are_shown(tmp_path: Path) -> None:
    async with AsyncMemory({"path": tmp_path / "memory"}, embedder=HashEmbedder()) as memory:
        await memory.add("I live in Porto.", user_id="maya")
        assert "Porto" in html(await memory.search("home", user_id="maya"))
