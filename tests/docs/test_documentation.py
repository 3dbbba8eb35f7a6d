"""Run every ```python, ```console and ```bash block of the documentation alone.

- Each block has new names, an empty home and an empty working folder (with a copy of `examples/` in it).
- A block that the reader saves has `<!-- file: NAME -->` on the line before it; the other blocks can import it.
- `mem0-core ...` and `python examples/...` run. Sessions, packages and extras of `nox` and `pip install` must exist.
- A page about an optional framework has `<!-- needs: MODULE -->`; its blocks run where the module is installed.
- A block that needs a key or the internet has `<!-- not run: reason -->` on the line before it.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
DOCUMENTS = sorted(
    file
    for pattern in ("README.md", "CONTRIBUTING.md", "packages/*/README.md", "docs/**/*.md")
    for file in ROOT.glob(pattern)
)
LANGUAGES = {"python": "python", "py": "python", "console": "shell", "bash": "shell", "sh": "shell", "shell": "shell"}
FENCE = re.compile(r"^[ ]*(```+)[ ]*(\w*)")
SAVED = re.compile(r"<!--\s*file:\s*([\w.]+)\s*-->")
NEEDS = re.compile(r"^<!--\s*needs:\s*(\w+)\s*-->$", re.MULTILINE)
NOT_RUN = re.compile(r"<!--\s*not run:?\s*(.*?)\s*-->")
TIMEOUT = 600


@dataclass(frozen=True)
class Block:
    file: Path
    line: int  # line of the opening fence
    language: str
    source: str
    not_run: str | None  # reason to skip the block
    saved_as: str | None = None  # name under which the reader saves it

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}" if self.file.is_relative_to(ROOT) else str(self.line)


def blocks_of(file: Path) -> list[Block]:
    found: list[Block] = []
    text = file.read_text(encoding="utf-8")
    needed = NEEDS.search(text)
    missing = f"{needed[1]} is not installed" if needed and find_spec(needed[1]) is None else None
    lines, at = text.splitlines(), 0
    while at < len(lines):
        if fence := FENCE.match(lines[at]):
            start, (ticks, language) = at, fence.groups()
            at += 1
            while at < len(lines) and lines[at].strip() != ticks:
                at += 1
            before = next((line for line in reversed(lines[:start]) if line.strip()), "")
            reason, saved = NOT_RUN.search(before), SAVED.search(before)
            if language in LANGUAGES:
                source = textwrap.dedent("\n".join(lines[start + 1 : at]))
                not_run = reason[1] if reason else missing
                found.append(Block(file, start + 1, LANGUAGES[language], source, not_run, saved and saved[1]))
        at += 1
    return found


def commands_of(block: Block) -> list[str]:
    """Return the commands of a block. If any line has a prompt, lines without one are output."""
    lines = block.source.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [command for line in lines if line.strip() and not line.startswith("#") for command in line.split(" && ")]


def is_runnable(command: str) -> bool:
    """Return True if a command can run here; fail if a command that cannot run names unknown things."""
    match shlex.split(command, comments=True):
        case ["mem0-core" | "echo" | "printf" | "cat", *_] | ["python", "-c", *_]:
            return True
        case ["python", "-m", "memory_conformance", *_]:
            return True
        case ["python", script, *_] if script.startswith("examples/"):
            return True
        case ["nox", *words] | ["python", "-m", "nox", *words]:
            unknown = {name.partition("(")[0] for name in named_sessions(words)} - sessions()
            assert not unknown, f"noxfile.py has no session {', '.join(unknown)}"
        case ["pip", "install" | "wheel", *words] | ["python", "-m", "pip", "install", *words]:
            for word in words:
                check_requirement(word)
        case ["python", "-m", "venv", *_] | ["cd" | "git" | "source" | "uv", *_]:
            pass
        case [script, *_] if (ROOT / script).is_file():
            pass
        case _:
            pytest.fail(f"unknown command {command!r}: change it, or mark its block `<!-- not run: reason -->`")
    return False


@functools.cache
def sessions() -> set[str]:
    text = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    return set(re.findall(r"^@nox\.session.*\n(?:@.*\n)*def (\w+)", text, re.M))


def named_sessions(words: list[str]) -> list[str]:
    """Return the session names after -s, up to the next option."""
    names: list[str] = []
    taking = False
    for word in words:
        if word.startswith("-"):
            taking = word in ("-s", "--session", "--sessions")
        elif taking:
            names.append(word)
    return names


def check_requirement(word: str) -> None:
    if ours := re.match(r"(?:\./)?(?:packages/)?(mem0-\w+)(?:\[(.*)\])?", word):
        project = tomllib.loads((ROOT / "packages" / ours[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        unknown = set(re.findall(r"[\w-]+", ours[2] or "")) - set(project.get("optional-dependencies", ()))
        assert not unknown, f"{ours[1]} has no extra {', '.join(unknown)}"


def run(blocks: list[Block], folder: Path) -> tuple[set[int], str]:
    """Run blocks; return the lines of those that completed, and the output."""
    plan: list[dict[str, Any]] = []
    for block in blocks:
        if block.not_run is None and block.language == "python":
            plan.append({"line": block.line, "file": str(block.file), "source": block.source})
        elif block.not_run is None:
            plan.append({"line": block.line, "commands": [line for line in commands_of(block) if is_runnable(line)]})
    done = folder / "done"
    done.touch()
    files = {block.saved_as: block.source for block in blocks if block.saved_as}
    written = {"blocks": plan, "examples": str(ROOT / "examples"), "files": files}
    (folder / "plan.json").write_text(json.dumps(written), encoding="utf-8")
    env = os.environ | {
        "MEM0_CORE_HOME": "",
        "XDG_DATA_HOME": "",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, (str(HERE / "offline"), os.environ.get("PYTHONPATH")))),
    }
    command = [sys.executable, str(HERE / "run_blocks.py"), str(folder / "plan.json"), str(done)]
    result = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return {int(line) for line in done.read_text().split()}, result.stdout


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], tuple[set[int], str]]:
    """Return a function that runs each document once."""
    return functools.cache(lambda file: run(blocks_of(file), tmp_path_factory.mktemp("document")))


@pytest.mark.docs
@pytest.mark.parametrize("block", [block for file in DOCUMENTS for block in blocks_of(file)], ids=str)
def test_block_runs(block: Block, outcome: Callable[[Path], tuple[set[int], str]]) -> None:
    if block.not_run is not None:
        assert block.not_run, "give a reason: `<!-- not run: reason -->`"
        pytest.skip(block.not_run)
    done, output = outcome(block.file)
    assert block.line in done, f"this block failed:\n{output[-8000:]}"


@pytest.mark.docs
@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_links_have_existing_targets(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", text)
    missing = [target for target in targets if not (file.parent / target).exists()]
    # Pages that are published elsewhere link to the repository by its address.
    hosted = re.findall(r"\]\(https://github\.com/mem0-core/mem0-core/(?:blob|tree)/main/([^)#\s]+)", text)
    assert not missing + [target for target in hosted if not (ROOT / target).exists()]


def test_a_failing_block_is_reported(tmp_path: Path) -> None:
    """Each block runs alone; a failure is reported with its line, and the blocks after it run."""
    document = tmp_path / "page.md"
    document.write_text(
        textwrap.dedent("""\
        ```python
        async def answer(): return 42
        ```
        ```console
        $ echo the reader types this
        and this is shown
        ```
        <!-- not run: needs a key -->
        ```python
        fail_without_key()
        ```
        ```python
        import asyncio
        assert await asyncio.sleep(0, 42) == 42
        ```
        ```python
        await answer()
        ```
        ```python
        print("also reached")
        ```
        """),
        encoding="utf-8",
    )
    done, output = run(blocks_of(document), tmp_path)
    assert done == {1, 4, 12, 19}
    assert "the reader types this" in output
    assert "and this is shown" not in output
    assert f'{document}", line 17' in output
    assert "NameError: name 'answer' is not defined" in output


def test_blocks_run_offline() -> None:
    lookup = [sys.executable, "-c", "import socket; socket.getaddrinfo('example.org', 443)"]
    env = os.environ | {"PYTHONPATH": str(HERE / "offline")}
    result = subprocess.run(lookup, env=env, capture_output=True, text=True, check=False)
    assert "ConnectionRefusedError: this run is offline" in result.stderr


def test_a_skipped_block_without_a_reason_has_an_empty_reason(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("<!-- not run -->\n```bash\nmem0-core\n```\n", encoding="utf-8")
    assert [block.not_run for block in blocks_of(tmp_path / "page.md")] == [""]


@pytest.mark.parametrize("command", ["nox -s quickstrat", "pip install mem0-core[onyx]", "rm -r data"])
def test_a_command_with_unknown_names_fails(command: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        is_runnable(command)
