"""Execute the example notebook, cell by cell, and check that its results are shown as HTML."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


def code_cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Execute a cell as a notebook does, and return the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        return exec(compile(tree, "cell", "exec"), names)
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.docs
def test_every_cell_runs_and_results_are_shown_as_html() -> None:
    names: dict[str, Any] = {}
    values = [run_cell(source, names) for source in code_cells()]
    shown = [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]
    assert len(shown) == 5
    assert "Porto" in shown[0]
    assert "Lisbon" in shown[1]
    assert "Initech" in shown[2]
    assert "coriander" in shown[4]


@pytest.mark.docs
@pytest.mark.skipif(find_spec("nbclient") is None, reason="nbclient is not installed: nox -s notebook")
def test_the_notebook_runs_in_a_kernel(tmp_path: Path) -> None:
    done = tmp_path / "done.ipynb"
    command = [sys.executable, "-m", "jupyter", "execute", f"--output={done}", str(NOTEBOOK)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    outputs = [
        output
        for cell in json.loads(done.read_text(encoding="utf-8"))["cells"]
        for output in cell.get("outputs", ())
        if "text/html" in output.get("data", {})
    ]
    assert len(outputs) == 5


def test_the_notebook_is_saved_without_outputs() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert all(not cell.get("outputs") for cell in notebook["cells"])
