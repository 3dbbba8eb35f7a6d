"""Runs the blocks of one document in order, in one namespace; test_documentation.py starts it in a fresh interpreter.

Takes a plan (JSON) and appends the line of every block that ran to a second file. A block that fails ends the run, and
its traceback points into the document.
"""

from __future__ import annotations

import ast
import asyncio
import json
import subprocess
import sys
import types
from pathlib import Path


def main(plan: Path, done: Path) -> None:
    blocks = json.loads(plan.read_text(encoding="utf-8"))
    module = types.ModuleType("__main__")  # type hints and dataclasses in a block look themselves up there
    sys.modules["__main__"] = module
    with asyncio.Runner() as runner, done.open("a", encoding="utf-8") as report:
        for block in blocks:
            if "source" in block:
                run_python(block, module, runner)
            for command in block.get("commands", ()):
                subprocess.run(["bash", "-c", command], check=True, stdin=subprocess.DEVNULL)
            report.write(f"{block['line']}\n")
            report.flush()


def run_python(block: dict[str, str], module: types.ModuleType, runner: asyncio.Runner) -> None:
    """A block may `await` at its top level, as a notebook cell may."""
    source = "\n" * int(block["line"]) + block["source"]  # so that a traceback shows the document's own line
    code = compile(source, block["file"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = eval(code, module.__dict__)
    if asyncio.iscoroutine(result):
        runner.run(result)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
