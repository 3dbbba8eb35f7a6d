"""Run the blocks of one document in order, in one namespace; started by test_documentation.py in a fresh interpreter.

Reads a plan (JSON) and appends the line of every completed block to a second file. A failing block ends the run; its
traceback points into the document.
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
    module = types.ModuleType("__main__")  # type hints and dataclasses in a block look up names there
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
    """Run a block, which may use `await` at its top level like a notebook cell."""
    source = "\n" * int(block["line"]) + block["source"]  # tracebacks then show the line in the document
    code = compile(source, block["file"], "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    result = eval(code, module.__dict__)
    if asyncio.iscoroutine(result):
        runner.run(result)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
