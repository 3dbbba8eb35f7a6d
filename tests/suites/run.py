"""Run the frameworks' own tests with our classes in the place of theirs: ``python tests/suites/run.py [SUITE ...]``.

The tests come from the source distributions of the installed versions. `suites.toml` names them, and lists each test
that need not pass with its reason. A test that fails without being listed fails the run, and so does a listed one that
passes. `--plain` runs the tests unchanged, to see those that fail without us.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

HERE = Path(__file__).parent
PLUGINS = HERE / "plugins"
CACHE = Path(os.environ.get("MEM0_SUITES_CACHE", "~/.cache/mem0-tests/sdists")).expanduser()
DOWNLOAD_ATTEMPTS = 3
TIMEOUT_SECONDS = 1800  # of one suite, on a busy machine


@dataclass(frozen=True)
class Exemption:
    """Tests that need not pass.

    Attributes:
        tests: patterns of test ids, in which brackets stand for themselves.
        versions: versions of the distribution that it concerns.
        is_flaky: True if the tests pass at times.
    """

    tests: tuple[str, ...]
    reason: str
    versions: str = ""
    is_flaky: bool = False

    def matches(self, test: str) -> bool:
        return any(fnmatchcase(test, pattern.replace("[", "[[]")) for pattern in self.tests)


@dataclass(frozen=True)
class Suite:
    """Tests of one distribution, and the plugin that swaps our classes in.

    Attributes:
        paths: test files and folders in the source distribution; those that a version lacks are left out.
        options: further options of pytest.
    """

    name: str
    distribution: str
    paths: tuple[str, ...]
    plugin: str
    options: tuple[str, ...]
    exemptions: tuple[Exemption, ...]


def read_suites(path: Path = HERE / "suites.toml") -> list[Suite]:
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return [_read_suite(name, entry) for name, entry in table.items()]


def _read_suite(name: str, entry: Mapping[str, Any]) -> Suite:
    exemptions = tuple(
        Exemption(tuple(each["tests"]), each["reason"], each.get("versions", ""), each.get("flaky", False))
        for each in entry.get("need_not_pass", ())
    )
    distribution = entry.get("distribution", name)
    return Suite(
        name, distribution, tuple(entry["paths"]), entry["plugin"], tuple(entry.get("options", ())), exemptions
    )


def download(distribution: str, wanted: str) -> Path:
    """Return the source distribution of a version, from the cache or the package index."""
    stem = re.sub(r"[-_.]+", "[-_.]", distribution)
    CACHE.mkdir(parents=True, exist_ok=True)
    for attempt in range(DOWNLOAD_ATTEMPTS):
        found = [path for path in CACHE.iterdir() if re.fullmatch(rf"{stem}-{re.escape(wanted)}\.tar\.gz", path.name)]
        if found:
            return found[0]
        time.sleep(10 * attempt)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--no-binary={distribution}"]
        subprocess.run([*command, "--dest", str(CACHE), f"{distribution}=={wanted}"], check=False)
    raise SystemExit(f"the index has no source distribution of {distribution} {wanted}")


def unpack_tests(archive: Path, target: Path) -> None:
    """Unpack the tests and their configuration, and none of the code: the installed one is tested."""
    with tarfile.open(archive) as files:
        for member in files:
            _, _, member.name = member.name.partition("/")
            is_wanted = member.name == "pyproject.toml" or member.name.startswith("tests/")
            path = (target / member.name).resolve()
            if is_wanted and member.isfile() and path.is_relative_to(target.resolve()):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(files.extractfile(member).read())  # type: ignore[union-attr]  # a file has content


def run_tests(suite: Suite, folder: Path, *, plain: bool) -> dict[str, str]:
    """Run a suite in an unpacked source distribution and return the outcome of each test."""
    report = folder / "outcomes.json"
    paths = [path for path in suite.paths if (folder / path).exists()]
    plugins = ("-p", "suite_report", *(() if plain else ("-p", suite.plugin)))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(PLUGINS), os.environ.get("PYTHONPATH")))),
        "MEM0_SUITE_REPORT": str(report),
        "MEM0_SUITE_LISTED": json.dumps([] if plain else [test for one in suite.exemptions for test in one.tests]),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=short", "-o", "addopts=", "-p", "no:cacheprovider"]
    subprocess.run(
        [*command, *plugins, *suite.options, *paths],
        cwd=folder,
        env=environment,
        check=False,
        timeout=TIMEOUT_SECONDS,
    )
    outcomes: dict[str, str] = json.loads(report.read_text(encoding="utf-8")) if report.exists() else {}
    return outcomes


def judge(outcomes: Mapping[str, str], exemptions: Iterable[Exemption]) -> list[str]:
    """Return the problems of a run: unlisted failures, and entries of the list that are out of date."""
    listed = list(exemptions)
    problems = [
        f"{test} fails and is not listed"
        for test, outcome in outcomes.items()
        if outcome == "failed" and not any(each.matches(test) for each in listed)
    ]
    for each in listed:
        matched = {test: outcome for test, outcome in outcomes.items() if each.matches(test)}
        if not matched:
            problems.append(f"{', '.join(each.tests)}: listed, and there is no such test")
        elif not each.is_flaky:
            problems += [f"{test} passes and is listed" for test, got in matched.items() if got == "passed"]
    if "passed" not in outcomes.values():
        problems.append("no test passed: the suite was not run")
    return problems


def run_suite(suite: Suite, *, plain: bool) -> tuple[str, list[str]]:
    """Run one suite; return a line about it, and its problems."""
    installed = version(suite.distribution)
    archive = download(suite.distribution, installed)
    with tempfile.TemporaryDirectory(prefix="mem0-suite-", ignore_cleanup_errors=True) as folder:
        unpack_tests(archive, Path(folder))
        outcomes = run_tests(suite, Path(folder), plain=plain)
    listed = [each for each in suite.exemptions if SpecifierSet(each.versions, prereleases=True).contains(installed)]
    ran = [test for test, outcome in outcomes.items() if outcome != "skipped"]
    passed = sum(outcome == "passed" for outcome in outcomes.values())
    line = f"{suite.name} ({suite.distribution} {installed}): {passed} of {len(ran)} passed"
    return line, judge(outcomes, () if plain else listed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help="names in suites.toml; all by default")
    parser.add_argument("--plain", action="store_true", help="run the tests without our classes")
    options = parser.parse_args()
    known = {suite.name: suite for suite in read_suites()}
    if unknown := [name for name in options.suites if name not in known]:
        parser.error(f"unknown suite {unknown[0]!r}; known: {', '.join(known)}")
    results = [run_suite(known[name], plain=options.plain) for name in options.suites or known]
    for line, problems in results:
        print(line)
        for problem in problems:
            print(f"  {problem}")
    return int(any(problems for _, problems in results))


if __name__ == "__main__":
    sys.exit(main())
