"""Run each block of one document alone; started by test_documentation.py in a fresh interpreter.

Every block gets new names, an empty home and an empty working folder with a copy of `examples/`, as for a reader who
pastes only that block. Reads a plan (JSON) and appends the line of every completed block to a second file. A traceback
points into the document.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import shutil
import subprocess
import sys
import traceback
import types
from pathlib import Path
from typing import Any


def main(plan: Path, done: Path) -> None:
    written = json.loads(plan.read_text(encoding="utf-8"))
    with done.open("a", encoding="utf-8") as report:
        for block in written["blocks"]:
            enter_new_folder(plan.parent / f"line{block['line']}", Path(written["examples"]), written["files"])
            try:
                run_block(block)
            except Exception:  # noqa: BLE001 - reported, and the next block is independent of this one
                traceback.print_exc()
                continue
            report.write(f"{block['line']}\n")
            report.flush()


def enter_new_folder(folder: Path, examples: Path, files: dict[str, str]) -> None:
    """Start with an empty home and a working folder that holds the examples and the files of the page."""
    home, work = folder / "home", folder / "work"
    home.mkdir(parents=True)
    work.mkdir()
    if examples.is_dir():
        shutil.copytree(examples, work / "examples")
    for name, source in files.items():
        (work / name).write_text(source, encoding="utf-8")
    sys.path[0] = str(work)
    os.environ.update(HOME=str(home), USERPROFILE=str(home))
    os.chdir(work)


def run_block(block: dict[str, Any]) -> None:
    if "source" in block:
        run_python(block)
    for command in block.get("commands", ()):
        subprocess.run(["bash", "-c", command], check=True, stdin=subprocess.DEVNULL)


def run_python(block: dict[str, Any]) -> None:
    """Run a block, which may use `await` at its top level like a notebook cell."""
    module = sys.modules["__main__"] = types.ModuleType("__main__")  # type hints in a block look up names there
    source = "\n" * int(block["line"]) + block["source"]  # tracebacks then show the line in the document
    code = compile(source, block["file"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = eval(code, module.__dict__)
    if asyncio.iscoroutine(result):
        asyncio.run(result)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
