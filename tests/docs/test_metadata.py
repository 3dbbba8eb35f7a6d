"""The metadata of the packages is complete, and their versions agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WEIGHTS = "mem0-models"  # weights change less often than code, so any patch of a minor version will do
PACKAGES = sorted(file.parent for file in ROOT.glob("packages/*/pyproject.toml"))


def read_project(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_metadata_is_complete(folder: Path) -> None:
    project = read_project(folder)
    assert project["name"] == folder.name
    assert project["license"] == ("Apache-2.0 AND MIT" if project["name"] == WEIGHTS else "Apache-2.0")
    assert all((folder / file).is_file() for file in project["license-files"])
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert project["authors"]
    assert project["keywords"]
    assert {"Homepage", "Documentation", "Repository", "Changelog", "Issues"} <= project["urls"].keys()
    versions = {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)}
    assert versions <= set(project["classifiers"])


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_a_published_readme_has_only_absolute_links(folder: Path) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", text) == []


def test_all_packages_have_one_version() -> None:
    versions = {folder.name: read_project(folder)["version"] for folder in PACKAGES}
    assert len(set(versions.values())) == 1, versions
    pinned = [
        requirement
        for folder in PACKAGES
        for requirement in read_project(folder).get("dependencies", [])
        if re.match(r"mem0-", requirement) and not requirement.startswith(WEIGHTS)
    ]
    assert all(requirement.endswith(f"=={versions['mem0-core']}") for requirement in pinned), pinned
    major, minor, _ = map(int, versions[WEIGHTS].split("."))
    assert (
        f"{WEIGHTS}>={major}.{minor},<{major}.{minor + 1}" in read_project(ROOT / "packages/mem0-core")["dependencies"]
    )
    init = (ROOT / "packages/mem0-core/src/mem0_core/__init__.py").read_text(encoding="utf-8")
    assert f'__version__ = "{versions["mem0-core"]}"' in init
