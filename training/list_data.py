"""Candidates of a search, to train a listwise reranker on: ``python -m training.list_data --help``.

Stories go through the product, as messages of one user each, and every question is asked after the last message. With
facts, a scripted chat model extracts those and updates the ones that they replace. A recorder in the place of the
reranker keeps what it would compare.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mem0_core import Memory
from mem0_core.interfaces import Candidate, Embedder
from mem0_core.providers.numpy_embedder import create_local_embedder
from mem0_core.testing import ScriptedChat

__all__ = ["AskedList", "collect_lists", "main", "read_lists"]

_USER = "user"


@dataclass(frozen=True, slots=True)
class AskedList:
    """A question with the messages that a search compares.

    Attributes:
        gold, stale: indexes of the candidates that answer it, and of those that answered it once.
    """

    question: str
    kind: str
    candidates: Sequence[Candidate]
    gold: Sequence[int]
    stale: Sequence[int]


class _Recorder:
    """A reranker that keeps what it is to compare, and changes nothing."""

    def __init__(self) -> None:
        self.candidates: Sequence[Candidate] = ()

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        return [0.0] * len(texts)

    def compare(self, query: str, candidates: Sequence[Candidate]) -> list[float]:
        self.candidates = candidates
        return [0.0] * len(candidates)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a line of JSON for each question about whose messages the product compares any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stories", type=Path, nargs="+", required=True, help="files of stories, in JSON lines")
    parser.add_argument("--facts", type=Path, help="facts of some of the stories: only these are asked")
    parser.add_argument("--model", default="mem0-minilm", help="embedder of the product")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    embedder = create_local_embedder(options.model)
    facts = {one["id"]: one for one in _read_lines([options.facts] if options.facts else [])}
    with options.out.open("w", encoding="utf-8") as file:
        for story in _read_lines(options.stories):
            if not facts or story["id"] in facts:
                lists = collect_lists(story, embedder, facts.get(story["id"]))
                file.writelines(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in lists)


def _read_lines(files: Sequence[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def collect_lists(
    story: Mapping[str, Any], embedder: Embedder, facts: Mapping[str, Any] | None = None
) -> list[AskedList]:
    """Return the questions of a story with their candidates; see `training.datasets.read_stories` for its form.

    Args:
        facts: ``{id, facts: [[message, text, replaced facts]], questions: [{gold: [facts], stale: [facts]}]}``, with
            an entry for each question of the story.
    """
    recorder, found = _Recorder(), []
    writer = None if facts is None else _FactWriter(facts["facts"])
    chat = None if writer is None else ScriptedChat(writer)
    texts = [text for _, text in story["messages"]] if facts is None else [text for _, text, _ in facts["facts"]]
    answers = story["questions"] if facts is None else facts["questions"]
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory(path=folder, embedder=embedder, reranker=recorder, llm=chat) as memory,
    ):
        for index, (day, text) in enumerate(story["messages"]):
            said_at = f"{day}T09:00:00"
            if writer is not None:
                writer.message = index
            memory.add(text, user_id=_USER, timestamp=said_at)
        for asked, answer in zip(story["questions"], answers, strict=True):
            recorder.candidates = ()
            memory.search(asked["q"], user_id=_USER, reference_date=said_at)
            found.append(_describe({**asked, **answer}, texts, recorder.candidates))
    return [one for one in found if one.candidates]


class _FactWriter:
    """A scripted chat model: extracts the facts of a message, and replaces those that they end.

    The first fact that takes the place of another one is its UPDATE; more that are replaced are deleted.
    """

    def __init__(self, facts: Sequence[tuple[int, str, Sequence[int]]]) -> None:
        self._facts = facts
        self.message = 0

    def __call__(self, task: str, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        if task == "facts":
            return {"facts": [text for text, _ in self._find_said()]}
        asked = next((one["content"] for one in reversed(messages) if one["content"].startswith("{")), "{}")
        known = {one["text"]: one["id"] for one in json.loads(asked).get("memories", ())}
        return {
            "memory": [
                operation for text, replaced in self._find_said() for operation in _settle(text, replaced, known)
            ]
        }

    def _find_said(self) -> list[tuple[str, list[str]]]:
        """Return the facts of the message, each with the texts of those that it replaces."""
        texts = [text for _, text, _ in self._facts]
        return [
            (text, [texts[index] for index in replaced])
            for message, text, replaced in self._facts
            if message == self.message
        ]


def _settle(text: str, replaced: Sequence[str], known: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield the operations that a fact leads to; a memory that one ends is no longer known."""
    old = [one for one in replaced if one in known]
    if text in known:
        yield {"id": known[text], "text": text, "event": "NONE"}
    elif old:
        yield {"id": known.pop(old[0]), "text": text, "event": "UPDATE", "old_memory": old[0]}
    else:
        yield {"id": f"new {text}", "text": text, "event": "ADD"}
    for one in old[1:]:
        yield {"id": known.pop(one), "text": one, "event": "DELETE"}


def _describe(asked: Mapping[str, Any], texts: Sequence[str], candidates: Sequence[Candidate]) -> AskedList:
    gold, stale = ({texts[index] for index in asked[kind]} for kind in ("gold", "stale"))
    is_gold = [one.text in gold for one in candidates]
    return AskedList(
        asked["q"],
        asked["kind"],
        candidates,
        [index for index, is_answer in enumerate(is_gold) if is_answer],
        [index for index, one in enumerate(candidates) if one.text in stale],
    )


def read_lists(file: Path) -> list[AskedList]:
    """Return the questions that `main` wrote."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        candidates = [Candidate(*one) for one in fields.pop("candidates")]
        found.append(AskedList(**fields, candidates=candidates))
    return found
