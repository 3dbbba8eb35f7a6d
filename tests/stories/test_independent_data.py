"""Consistency of the labeled statements, and the probes that hold."""

from collections import Counter
from pathlib import Path

import pytest

from mem0_core.language.families import load_families
from tests.stories.probes import Probe, load_probes, run_probe
from tests.stories.statement_scores import load_statements

STATEMENTS = load_statements()
PROBES = load_probes()
OPEN_PROBES: frozenset[str] = frozenset(
    (Path(__file__).parent / "open_probes.txt").read_text(encoding="utf-8").split(),
)
"""Probes that fail today: remove an id as soon as its probe holds."""


def test_statements_are_unique_and_split_in_halves() -> None:
    assert len({statement.text.casefold() for statement in STATEMENTS}) == len(STATEMENTS)
    assert Counter(statement.split for statement in STATEMENTS) == {"dev": 75, "held": 75}


def test_statements_use_the_names_of_relation_families() -> None:
    families = load_families()
    labels = {triple[1] for statement in STATEMENTS for triple in (*statement.begins, *statement.ends)}
    assert labels <= set(families)


def test_probes_are_split_in_halves_and_name_a_message_of_their_own() -> None:
    assert Counter(probe.split for probe in PROBES) == {"dev": 20, "held": 20}
    assert all(probe.first is None or probe.first < len(probe.messages) for probe in PROBES)


@pytest.mark.parametrize(
    "probe",
    [
        pytest.param(probe, id=probe.id, marks=[pytest.mark.xfail(strict=False)] if probe.id in OPEN_PROBES else [])
        for probe in PROBES
    ],
)
def test_the_right_memory_or_path_end_comes_first(probe: Probe, tmp_path: Path) -> None:
    assert run_probe(probe, str(tmp_path)) == []
