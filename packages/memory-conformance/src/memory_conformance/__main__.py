"""The command: ``python -m memory_conformance run SYSTEM... --json FILE``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory_conformance.api import CAPABILITIES
from memory_conformance.registry import load_checks
from memory_conformance.report import render_markdown, render_summary, write_json
from memory_conformance.runner import CHECK_SECONDS, Report, find_factory, run_system, work, write_until_killed
from memory_conformance.stories import LANGUAGES, find_problems, load_people, play, render_figures, score
from memory_conformance.systems import SYSTEMS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return 1 if a check failed."""
    options = build_parser().parse_args(arguments)
    if options.command == "work":
        work(options.system, options.folder, options.checks)
        return 0
    if options.command == "write":
        write_until_killed(options.system, options.folder, options.owner, options.log)
        return 0
    if options.command == "stories":
        return run_stories(options)
    if options.command == "list":
        print_list()
        return 0
    return run_command(options)


def build_parser() -> argparse.ArgumentParser:
    """Describe the arguments of the command."""
    parser = argparse.ArgumentParser(prog="memory-conformance", description="Check memory stores as black boxes.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run the checks against systems")
    run.add_argument("systems", nargs="+", metavar="SYSTEM", help="a known name, module:factory or file.py:factory")
    run.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    run.add_argument("--markdown", type=Path, metavar="FILE", help="write the table as Markdown")
    run.add_argument("--only", nargs="+", default=None, metavar="SUITE", help="suites or checks to run")
    run.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="SYSTEM=PYTHON",
        help="interpreter of another environment that has the packages of a system",
    )
    run.add_argument("--check-seconds", type=float, default=CHECK_SECONDS, help="time after which a check has hung")
    run.add_argument("--report-only", action="store_true", help="exit with 0 even if checks failed")
    stories = commands.add_parser("stories", help="ask systems about the life stories of 24 people")
    stories.add_argument("systems", nargs="*", metavar="SYSTEM", help="as for run; without one, check the annotations")
    stories.add_argument("--json", type=Path, metavar="FILE", help="write the figures and every answer as JSON")
    stories.add_argument("--language", action="append", choices=LANGUAGES, help="tell only stories in this language")
    stories.add_argument("--file", action="append", default=[], type=Path, help="people of your own, in the schema")
    stories.add_argument("--embedder", metavar="SPEC", help="function that embeds texts: module:name or file.py:name")
    commands.add_parser("list", help="list the known systems, capabilities and checks")
    worker = commands.add_parser("work", help="internal: run checks as a worker process")
    worker.add_argument("system")
    worker.add_argument("folder", type=Path)
    worker.add_argument("checks", nargs="+")
    writer = commands.add_parser("write", help="internal: add memories until killed")
    writer.add_argument("system")
    writer.add_argument("folder", type=Path)
    writer.add_argument("owner")
    writer.add_argument("log", type=Path)
    return parser


def run_command(options: argparse.Namespace) -> int:
    """Run every system, print the table and write the files."""
    pythons = dict(item.partition("=")[::2] for item in options.python)
    names = choose_checks(options.only)
    reports: list[Report] = []
    for spec in options.systems:
        report = run_system(spec, python=pythons.get(spec), names=names, check_seconds=options.check_seconds)
        print(render_summary(report), flush=True)
        reports.append(report)
    print(f"\n{render_markdown(reports)}")
    if options.json:
        write_json(options.json, reports)
    if options.markdown:
        options.markdown.write_text(render_markdown(reports), encoding="utf-8")
    failed = any(report.error or report.count("fail") for report in reports)
    return 1 if failed and not options.report_only else 0


def run_stories(options: argparse.Namespace) -> int:
    """Check the annotations, ask every system, and print the figures."""
    if options.embedder:
        os.environ["MEMORY_CONFORMANCE_EMBEDDER"] = options.embedder
    people = load_people(options.file, languages=options.language or LANGUAGES)
    if problems := [problem for person in people for problem in find_problems(person)]:
        print("\n".join(problems), file=sys.stderr)
        return 1
    questions = sum(len(person["questions"]) for person in people)
    print(f"{len(people)} people, {questions} questions; the annotations are consistent")
    written: dict[str, Any] = {"format": "memory-conformance-stories/1", "systems": {}}
    for spec in options.systems:
        with tempfile.TemporaryDirectory(prefix="memory-conformance-", ignore_cleanup_errors=True) as folder:
            system = find_factory(spec)(Path(folder))
            try:
                answers = list(play(system, people))
            finally:
                system.close()
        figures = score(answers)
        print(f"\n{render_figures(spec, figures)}", flush=True)
        rows = [{"question": one.question["id"], "texts": one.texts, "declined": one.declined} for one in answers]
        written["systems"][spec] = {**figures, "answers": rows}
    if options.json:
        options.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return 0


def choose_checks(only: Sequence[str] | None) -> list[str] | None:
    """Return the checks of the named suites; an unknown name ends the command."""
    if only is None:
        return None
    checks = load_checks()
    chosen = [check.name for check in checks.values() if check.suite in only or check.name in only]
    known = {check.suite for check in checks.values()} | set(checks)
    if unknown := [name for name in only if name not in known]:
        sys.exit(f"unknown suite or check: {', '.join(unknown)}; see 'python -m memory_conformance list'")
    return chosen


def print_list() -> None:
    """Print the known systems, the capabilities and the checks."""
    print("Systems")
    for name, known in SYSTEMS.items():
        print(f"  {name:<22} {known.title}")
    print("\nCapabilities")
    for name, meaning in CAPABILITIES.items():
        print(f"  {name:<22} {meaning}")
    print("\nChecks")
    for check in load_checks().values():
        print(f"  {check.name:<52} {check.title}")


if __name__ == "__main__":
    sys.exit(main())
