"""The workflows, the templates and the release check agree with the packages."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "packages/mem0-core/pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
YAML_FILES = sorted([*ROOT.glob(".github/**/*.yml"), ROOT / ".pre-commit-config.yaml"])
sys.path.insert(0, str(ROOT / "tools"))


@pytest.mark.parametrize("file", YAML_FILES, ids=lambda file: file.name)
def test_a_yaml_file_is_readable(file: Path) -> None:
    assert yaml.safe_load(file.read_text(encoding="utf-8"))


def test_the_newest_section_of_the_changelog_is_this_version() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    released = [heading for heading in headings if heading != "Unreleased"]
    assert re.fullmatch(rf"{re.escape(VERSION)} \(\d{{4}}-\d\d-\d\d\)", released[0])


def test_the_workflows_cover_every_python_that_the_packages_name() -> None:
    check_release, check_wheels = import_module("check_release"), import_module("check_wheels")

    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "packages/mem0-core/pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert workflow["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    assert [f"3.{minor}" for minor in check_release.MINORS] == named
    assert list(check_wheels.PYTHONS) == named
    assert {system.split("-")[0] for system in workflow["jobs"]["tests"]["strategy"]["matrix"]["os"]} == {
        "ubuntu",
        "macos",
        "windows",
    }


def test_the_workflows_run_sessions_that_exist() -> None:
    sessions = set(re.findall(r"^@nox\.session.*\n(?:@.*\n)*def (\w+)", (ROOT / "noxfile.py").read_text(), re.M))
    for file in ROOT.glob(".github/workflows/*.yml"):
        text = file.read_text(encoding="utf-8")
        used = set(re.findall(r"nox -s (\w+)", text))
        for matrix in re.findall(r"session: \[(.*)\]", text):
            used |= set(matrix.split(", "))
        assert used <= sessions, file


def test_the_release_check_runs_the_first_example_of_the_readme() -> None:
    check_release = import_module("check_release")

    example, printed = check_release.read_first_example()
    assert "memory.search(" in example
    assert printed.endswith("\n")


def test_a_python_that_is_not_here_is_found_missing() -> None:
    check_release = import_module("check_release")

    assert check_release.find_python(sys.version_info.minor) is not None
    assert check_release.find_python(99) is None


def test_every_action_of_the_workflows_is_pinned_to_a_commit() -> None:
    for file in ROOT.glob(".github/workflows/*.yml"):
        for action in re.findall(r"uses: (?!\./)(.*)", file.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), f"{file.name}: {action}"
