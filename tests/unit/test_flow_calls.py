"""A flow that is called and not driven does nothing: no such call may be left in the sources."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = sorted(ROOT.glob("packages/*/src/**/*.py"))
GENERATORS = ("Flow", "Steps")


def returns_generator(node: ast.AST) -> bool:
    """Return True for an undecorated function that is annotated as a flow or as the steps of a store."""
    if not isinstance(node, ast.FunctionDef) or node.returns is None or node.decorator_list:
        return False
    base = node.returns.value if isinstance(node.returns, ast.Subscript) else node.returns
    return isinstance(base, ast.Name) and base.id in GENERATORS


def called_name(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        on_self = isinstance(node.func.value, ast.Name) and node.func.value.id == "self"
        return node.func.attr if on_self else ""
    return getattr(node.func, "id", "")


def discarded_calls(tree: ast.AST, names: set[str]) -> list[str]:
    """Return the statements that call one of `names`, bare or on self, and drop the generator it returns."""
    calls = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    return [f"line {call.lineno}: {called_name(call)}" for call in calls if called_name(call) in names]


def flows_of(tree: ast.AST) -> set[str]:
    """Return the functions of a module that are flows, under names that mean nothing else in it."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    targets = [target for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets]
    assigned = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    others = {node.name for node in functions if not returns_generator(node)}
    return {node.name for node in functions if returns_generator(node)} - others - assigned


def module_name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts[path.parts.index("src") + 1 :]).removesuffix(".__init__")


def test_a_dropped_flow_is_found() -> None:
    tree = ast.parse("def f() -> Flow[int]:\n    yield from g()\n\n\ndef h() -> None:\n    f()\n")
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and returns_generator(node)}
    assert discarded_calls(tree, names) == ["line 6: f"]


def test_every_flow_that_is_called_is_driven() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    flows = {module_name(path): flows_of(tree) for path, tree in trees.items()}
    dropped = {}
    for path, tree in trees.items():
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        imported = {
            name.name for node in imports for name in node.names if name.name in flows.get(node.module or "", ())
        }
        if calls := discarded_calls(tree, flows[module_name(path)] | imported):
            dropped[str(path.relative_to(ROOT))] = calls
    assert dropped == {}
