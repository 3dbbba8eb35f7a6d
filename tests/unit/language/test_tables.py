"""Data files of languages: read like any TOML file, and only as far as a text needs them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import mem0_core.language
from mem0_core.language._grammar import load_grammar
from mem0_core.language._tables import load_tables
from mem0_core.language.rule_extractor import entities, extract_by_rules

FILES = sorted((Path(mem0_core.language.__file__).parent / "data").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_data_file_is_read_as_tomllib_reads_it(file: Path) -> None:
    expected = tomllib.loads(file.read_text(encoding="utf-8"))
    assert expected
    assert load_tables(file.stem) == expected


def test_the_names_of_a_query_need_no_patterns_of_clauses() -> None:
    load_grammar.cache_clear()
    assert [entity.name for entity in entities("Where did Maya meet the mayor of Porto?")] == ["Maya", "Porto"]
    assert "clauses" not in vars(load_grammar("english"))
    assert extract_by_rules("Maya lives in Porto.", speaker="").relations
    assert "clauses" in vars(load_grammar("english"))


def test_every_slurred_possessive_has_one_of_the_ends_that_are_looked_for_first() -> None:
    grammar = load_grammar("english")
    nouns = [noun for noun, kin in grammar.kin.items() if not kin.is_plural and noun.isalpha()]
    owners = sorted(grammar.words["own"] | grammar.words["owns_third"])
    texts = [f"my {noun}s {after} thing" for noun in nouns for after in sorted(grammar.words["after_slurred"])]
    texts += [f"{owner} {what}s Ann" for owner in owners for what in ("name", "birthday")]
    slurred = [text for text in (*texts, *map(str.upper, texts)) if grammar.slurred.search(text) is not None]
    assert len(slurred) > len(nouns)
    assert all(grammar.slurred_ends.search(text) is not None for text in slurred)
