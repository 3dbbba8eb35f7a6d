"""The kit passes sound stores, finds defects, and survives stores that hang or die."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

from memory_conformance import CAPABILITIES, VERBS, Result, load_checks, run_in_process, run_system
from memory_conformance.__main__ import main
from memory_conformance.systems import SYSTEMS
from memory_conformance.systems.embedding import embed

HERE = Path(__file__).parent
BROKEN = f"{HERE / 'broken_stores.py'}"
DICT = f"{HERE / 'dict_store.py'}:DictStore"
PACKAGE = Path(sys.modules["memory_conformance"].__file__ or "").parent


@pytest.fixture(autouse=True)
def _repository_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE.parents[1]))  # workers import the neighbors of a file


def find_failures(results: list[Result]) -> list[str]:
    return [f"{result.check}: {result.detail}" for result in results if result.outcome == "fail"]


def test_a_dict_store_of_sixty_lines_passes_all_it_declares() -> None:
    lines = (HERE / "dict_store.py").read_text(encoding="utf-8").splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 60
    results = list(run_in_process(DICT))
    assert find_failures(results) == []
    outcomes = {result.check: result for result in results}
    assert outcomes["isolation.lists_are_separate"].outcome == "pass"
    assert outcomes["ttl.memories_end_on_time"].detail == "does not declare ttl"
    assert outcomes["cost.searching_stays_cheap"].observed
    assert len(results) == len(load_checks())


@pytest.mark.parametrize(
    ("store", "failing"),
    [
        ("PrefixOwners", {"isolation.similar_owners_are_different", "isolation.erasing_spares_similar_owners"}),
        ("LateFilters", {"filters.filters_apply_before_the_limit"}),
        ("Upserts", {"updates.unknown_ids_are_not_created", "updates.an_update_keeps_the_metadata"}),
        ("LeavesText", {"erasure.erased_owners_leave_the_files", "reads.memories_remain_after_a_restart"}),
    ],
)
def test_a_defect_is_found(store: str, failing: set[str]) -> None:
    found = {
        failure.partition(":")[0] for failure in find_failures(list(run_in_process(f"{BROKEN}:{store}", [*failing])))
    }
    assert found == failing


def test_a_check_that_hangs_fails_alone() -> None:
    names = [
        "reads.added_memories_can_be_read",
        "erasure.an_erased_owner_has_nothing",
        "unicode.texts_return_unchanged",
    ]
    report = run_system(f"{BROKEN}:Hangs", names=names, check_seconds=3.0)
    assert [result.outcome for result in report.results] == ["pass", "fail", "pass"]
    assert report.results[1].detail == "did not end within 3 s"


def test_a_store_that_ends_the_process_fails_one_check() -> None:
    names = ["reads.added_memories_can_be_read", "reads.added_memories_are_listed"]
    report = run_system(f"{BROKEN}:Dies", names=names)
    assert [result.outcome for result in report.results] == ["fail", "pass"]
    assert report.results[0].detail == "ended its process (3)"


def test_a_store_that_cannot_be_opened_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"{BROKEN}:Unopened", "--only", "reads"]) == 1
    assert "not run: OSError: no such database" in capsys.readouterr().out


def test_one_command_writes_json_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    json_file, table = tmp_path / "results.json", tmp_path / "table.md"
    arguments = ["run", DICT, f"{BROKEN}:Upserts", "--only", "updates", "crash"]
    assert main([*arguments, "--json", str(json_file), "--markdown", str(table)]) == 1
    data = json.loads(json_file.read_text(encoding="utf-8"))
    assert data["format"] == "memory-conformance/1"
    first, second = data["systems"]
    assert (first["summary"]["fail"], second["summary"]["fail"] > 0) == (0, True)
    row = next(line for line in table.read_text(encoding="utf-8").splitlines() if line.startswith("| updates"))
    assert "✅" in row
    assert "❌" in row
    assert "FAIL updates.unknown_ids_are_not_created" in capsys.readouterr().out


def test_an_unknown_suite_ends_the_command() -> None:
    with pytest.raises(SystemExit, match="unknown suite or check: speed"):
        main(["run", DICT, "--only", "speed"])


def test_an_unknown_capability_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.py").write_text(
        "from memory_conformance import System\nclass Odd(System):\n    capabilities = frozenset({'speed'})\n",
        encoding="utf-8",
    )
    with pytest.raises(ValueError, match="unknown capabilities"):
        list(run_in_process(f"{tmp_path / 'odd.py'}:Odd", ["reads.added_memories_can_be_read"]))


def test_costs_of_a_store_in_another_process_are_not_counted(tmp_path: Path) -> None:
    file = tmp_path / "remote_store.py"
    file.write_text(
        "from tests.conformance.dict_store import DictStore\n\n\nclass Remote(DictStore):\n    is_remote = True\n"
    )
    results = {spec: next(iter(run_in_process(spec, ["cost.adding_stays_cheap"]))) for spec in (DICT, f"{file}:Remote")}
    assert [result.observed for result in results.values()] == [True, False]
    assert "another process" in results[f"{file}:Remote"].detail


def test_every_check_needs_known_capabilities() -> None:
    known = {*VERBS, *CAPABILITIES}
    assert len(VERBS) == 8
    for check in load_checks().values():
        assert check.needs | check.promises <= known, check.name


def test_the_readme_names_every_capability_and_verb() -> None:
    readme = (PACKAGE.parents[1] / "README.md").read_text(encoding="utf-8")
    assert [name for name in (*VERBS, *CAPABILITIES) if f"`{name}`" not in readme] == []


def test_the_kit_itself_imports_only_the_standard_library() -> None:
    for path in [*PACKAGE.glob("*.py"), *PACKAGE.glob("checks/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            tops = {name.partition(".")[0] for name in names}
            assert tops <= sys.stdlib_module_names | {"memory_conformance"}, path


def test_listing_names_the_systems(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in SYSTEMS)
    assert "crash.a_killed_writer_loses_nothing" in output


def test_texts_with_common_words_have_close_vectors() -> None:
    def similarity(first: str, second: str) -> float:
        return sum(a * b for a, b in zip(embed(first), embed(second), strict=True))

    assert similarity("the walnut cake", "a walnut cake") > 0.5 > similarity("the walnut cake", "blue carpet")
    assert abs(similarity("", "") - 1.0) < 1e-9
