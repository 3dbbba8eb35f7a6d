"""Checks on the wording of docstrings, names, errors, help and pages; CONTRIBUTING.md has the rules."""

from __future__ import annotations

import argparse
import ast
import functools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from mem0_core.cli._arguments import build_parser

ROOT = Path(__file__).parents[2]
SOURCES = sorted(ROOT.glob("packages/*/src/**/*.py"))
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])

QUESTION_OPENINGS = frozenset(["what", "whether", "how", "who", "whom", "whose", "where", "which", "when", "why"])
QUESTION_WORDS = frozenset(["what", "who", "whom", "whose", "whoever"])
# Words of an earlier private dialect. Plain terms exist for each of them.
# fmt: off
DIALECT = frozenset(
    [
    "anew", "beside", "besides", "whom", "truth", "heard", "told", "breathe", "forsake", "twin", "lies", "stands",
    "reckoned", "begets", "nobody", "somebody", "anybody", "meanwhile", "whoever", "unites", "parted",
    ]
)
PARTICIPLES = frozenset(
    [
    "aged", "allowed", "asked", "begun", "brought", "called", "chosen", "considered", "counted", "cut", "done", "due",
    "drawn", "dropped", "ended", "endured", "fetched", "found", "given", "gone", "governed", "heard", "held",
    "judged", "kept", "known", "laid", "learnt", "left", "led", "let", "listed", "looked", "lost", "made", "marked",
    "meant", "met", "moved", "named", "needed", "opened", "ordered", "parted", "put", "ranked", "read", "refused",
    "related", "said", "seen", "sent", "shown", "spoken", "stated", "supported", "taken", "taught", "thrown", "told",
    "trimmed", "united", "unlearnt", "unread", "used", "wanted", "weighed", "wired", "within", "written", "wrapped",
    ]
)
# fmt: on
MAX_FUNCTION_LINES = 50

Function = ast.FunctionDef | ast.AsyncFunctionDef


def words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


class SourceTexts:
    """Docstrings, error texts and functions of all sources, each with its place; read in one pass."""

    def __init__(self) -> None:
        self.docstrings: list[tuple[str, str]] = []
        self.errors: list[tuple[str, str]] = []
        self.functions: list[tuple[str, str, int]] = []  # place, name and number of lines
        for path in SOURCES:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                self._read(str(path.relative_to(ROOT)), node)

    def _read(self, path: str, node: ast.AST) -> None:
        if isinstance(node, Function | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
            self.docstrings.append((f"{path}:{getattr(node, 'lineno', 1)}", text))
        if isinstance(node, Function):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            self.functions.append((f"{path}:{node.lineno} {node.name}", node.name, lines))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    self.errors.append((f"{path}:{node.lineno}", part.value))


sources = functools.cache(SourceTexts)


def help_texts(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    yield parser.prog, parser.description or ""
    for action in parser._actions:
        yield f"{parser.prog} {action.dest}", action.help or ""
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield f"{parser.prog} {choice.dest}", choice.help or ""
            for child in {id(child): child for child in action.choices.values()}.values():
                yield from help_texts(child)


def prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def per_thousand(texts: list[str]) -> float:
    spoken = [word for text in texts for word in words(text)]
    return 1000 * sum(word in QUESTION_WORDS for word in spoken) / max(len(spoken), 1)


def test_no_docstring_opens_with_a_question_word() -> None:
    openings = [
        (where, text.splitlines()[0])
        for where, text in sources().docstrings
        if words(text)[:1] and words(text)[0] in QUESTION_OPENINGS
    ]
    assert openings == []


def test_docstrings_name_things_in_place_of_what_and_who() -> None:
    assert per_thousand([text for _, text in sources().docstrings]) <= 2


def test_pages_name_things_in_place_of_what_and_who() -> None:
    assert per_thousand([prose(page) for page in PAGES]) <= 3


@pytest.mark.parametrize("kind", ["docstrings", "errors", "help", "pages"])
def test_no_word_of_the_old_dialect_comes_back(kind: str) -> None:
    texts: dict[str, Iterable[tuple[str, str]]] = {
        "docstrings": sources().docstrings,
        "errors": sources().errors,
        "help": help_texts(build_parser()),
        "pages": ((str(page.relative_to(ROOT)), prose(page)) for page in PAGES),
    }
    found = [(where, sorted(DIALECT & set(words(text)))) for where, text in texts[kind]]
    used = [(where, dialect) for where, dialect in found if dialect]
    assert used == []


def test_no_command_help_opens_with_a_question_word() -> None:
    texts = [(where, text) for where, text in help_texts(build_parser()) if words(text)]
    assert [(where, text) for where, text in texts if words(text)[0] in QUESTION_OPENINGS] == []


def test_functions_are_named_by_verbs_not_by_bare_participles() -> None:
    functions = sources().functions
    named = [where for where, name, _ in functions if name.strip("_") in PARTICIPLES]
    assert len(named) <= len(functions) / 100, named


def test_functions_fit_on_a_screen() -> None:
    long = [where for where, _, lines in sources().functions if lines > MAX_FUNCTION_LINES]
    assert len(long) <= 5, long
