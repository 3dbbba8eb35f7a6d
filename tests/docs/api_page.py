"""Write docs/reference/api.md from the docstrings: ``python -m tests.docs.api_page``.

A test fails if the page is stale.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mem0_core
from mem0_core import AsyncMemory, Memory, MemoryConfig, errors
from mem0_core.config import BackgroundConfig, ComponentConfig, GraphConfig, LimitsConfig
from mem0_core.domain import feed, records
from mem0_core.domain.settings import Settings

__all__ = ["PAGE", "method_names", "page"]

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"

GROUPS: dict[str, tuple[str, ...]] = {
    "Add": ("add", "add_many", "pending", "flush", "retry"),
    "Search": ("search", "answer", "explain_missing", "context", "get", "get_all", "history", "changes", "pin"),
    "Graph": ("relations", "traverse", "query", "visualize", "merge", "unmerge", "merges"),
    "Update and delete": ("update", "update_by_query", "delete", "delete_by_query", "delete_all", "reset"),
    "Erasure": ("erase", "erasures", "verify_receipt"),
    "Administration": ("rebuild", "backup", "export", "doctor", "stats", "adopt"),
}
"""Methods by heading, in the order of use; a method of no group comes last."""

HEAD = """\
<!-- Written by `python -m tests.docs.api_page` from the docstrings: change those. -->

# API

Every public name of `mem0_core`, generated from its docstring; all other names are private. For explanations, see the
[README](../../README.md), [recall](../explanation/recall.md), [conversations](../how-to/conversations.md),
[the graph](../how-to/graph.md) and, for files and maintenance, [operations](../how-to/operations.md).

`scope` is short for `user_id=None, agent_id=None, run_id=None`; at least one is required. An omitted id matches
everything. Each method of `Memory` has an async version with the prefix `a` (`aadd`, `asearch`, ...); on `AsyncMemory`
the methods themselves are coroutines. Any method may raise `ScopeError` for an invalid id, `ModelError` and
`StoreError`.
"""

_SCOPE = ("user_id", "agent_id", "run_id")


def method_names() -> list[str]:
    """Return the names of the methods of `Memory` that have an async version."""
    public = [name for name, value in vars(Memory).items() if callable(value) and not name.startswith("_")]
    return [name for name in public if name != "close" and f"a{name}" in public]


def page() -> str:
    return "\n".join(_lines()).rstrip() + "\n"


def _lines() -> Iterator[str]:
    yield HEAD
    yield "## `Memory`\n"
    yield f"```text\nMemory{_signature(Memory)}\n```\n"
    yield _prose(Memory)
    for name in ("from_config", "close", "aclose"):
        yield from _member(Memory, name)
    yield "### `closed`, `config`, `store`, `embedder`\n"
    yield "The state of the memory, its configuration, and its main parts.\n"
    known = method_names()
    grouped = [name for names in GROUPS.values() for name in names]
    groups = {**GROUPS, "Further": tuple(name for name in known if name not in grouped)}
    for title, names in groups.items():
        if any(name in known for name in names):
            yield f"## {title}\n"
            for name in names:
                if name in known:
                    yield from _member(Memory, name)
    yield "## `AsyncMemory`\n"
    yield _prose(AsyncMemory)
    yield "## `Principal`\n"
    yield f"```text\nPrincipal{_signature(mem0_core.Principal)}\n```\n"
    yield _prose(mem0_core.Principal)
    for name, member in vars(mem0_core.Principal).items():
        if callable(member) and not name.startswith("_"):
            yield from _member(mem0_core.Principal, name)
    yield "## `AsyncPrincipal`\n"
    yield _prose(mem0_core.AsyncPrincipal)
    yield "## `Keyring`\n"
    yield f"```text\nKeyring{_signature(mem0_core.Keyring)}\n```\n"
    yield _prose(mem0_core.Keyring)
    for name in ("forget", "rotate"):
        yield from _member(mem0_core.Keyring, name)
    yield "## Functions\n"
    for function in (mem0_core.rerank, mem0_core.arerank, mem0_core.read_citations, mem0_core.new_key):
        yield f"### `{function.__name__}`\n"
        yield f"```text\n{function.__name__}{_signature(function)}\n```\n"
        yield _prose(function)
    yield "## Values\n"
    for value in (mem0_core.Scope, mem0_core.Event):
        yield f"### `{value.__name__}`\n"
        yield _prose(value)
    yield "## Results\n"
    yield "Typed plain dicts. A key marked with `?` may be absent.\n"
    for shape in _shapes():
        yield from _shape(shape)
    yield "## Errors\n"
    yield f"```text\n{_tree()}\n```\n"
    yield "## Configuration\n"
    yield "Keys of `MemoryConfig`, of a mapping passed to `Memory`, and of a YAML or JSON file.\n"
    for prefix, model in (
        ("", MemoryConfig),
        ("graph_store.", GraphConfig),
        ("background.", BackgroundConfig),
        ("limits.", LimitsConfig),
    ):
        yield from _keys(prefix, model)


def _member(owner: type, name: str) -> Iterator[str]:
    member = getattr(owner, name)
    yield f"### `{name}`\n"
    yield f"```text\n{name}{_signature(member)}\n```\n"
    yield _prose(member)


def _signature(of: Callable[..., Any]) -> str:
    """Format a signature in lines of at most 100 characters, with the three ids of a scope as one word."""
    signature = inspect.signature(of)
    parameters = [one for one in signature.parameters.values() if one.name != "self"]
    ids = [one.name for one in parameters if one.name in _SCOPE and one.default is None]
    shown = []
    for one in parameters:
        if one.kind is one.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        if len(ids) == len(_SCOPE) and one.name in _SCOPE:
            shown += ["scope"] if one.name == _SCOPE[0] else []
        else:
            shown.append(_parameter(one))
    returned = signature.return_annotation
    arrow = "" if isinstance(of, type) or returned is inspect.Signature.empty else f" -> {str(returned).strip(chr(39))}"
    line = f"({', '.join(shown)}){arrow}"
    return line if len(line) <= 100 else "(\n    " + ",\n    ".join(shown) + f",\n){arrow}"


def _parameter(one: inspect.Parameter) -> str:
    if isinstance(one.default, str) and len(one.default) > 40:
        one = one.replace(default=...)
    return str(one).replace("'", "").replace("Ellipsis", "...")


_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises[^:]*):\s*(.*)$")
_ITEM = re.compile(r"^([\w, .`*]+?):\s+(.*)$", re.DOTALL)


def _prose(of: Any) -> str:
    """Convert a docstring to Markdown, its sections to lists."""
    lines = inspect.cleandoc(of.__doc__ or "").splitlines()
    written: list[str] = []
    at = 0
    while at < len(lines):
        section = _SECTION.match(lines[at])
        if section is None:
            written.append(lines[at])
            at += 1
            continue
        body = [section[2]] if section[2] else []
        at += 1
        while at < len(lines) and (not lines[at] or lines[at].startswith(" ")):
            body.append(lines[at])
            at += 1
        written += ["", *_section(section[1], textwrap.dedent("\n".join(body)).strip()), ""]
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(written)).strip()
    return _ticks(text) + "\n"


def _section(name: str, body: str) -> list[str]:
    if name == "Returns":
        return ["Returns: " + " ".join(body.split())]
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?!\s)", body) if entry.strip()]
    title = [f"{name}:", ""] if name.startswith("Raises") else []
    return [*title, *(_entry(entry) for entry in entries)]


def _entry(text: str) -> str:
    found = _ITEM.match(text)
    return f"- `{found[1]}`: {found[2]}" if found else f"- {text}"


def _ticks(text: str) -> str:
    return text.replace("``", "`")


def _shapes() -> list[Any]:
    """Return the TypedDicts of results: the public ones and those inside them."""
    return [
        value
        for module in (records, feed)
        for value in vars(module).values()
        if isinstance(value, type) and hasattr(value, "__total__") and value.__module__ == module.__name__
    ]


def _shape(shape: Any) -> Iterator[str]:
    yield f"### `{shape.__name__}`\n"
    own = inspect.cleandoc(shape.__doc__ or "")
    if own and not own.startswith("dict("):
        yield _prose(shape)
    for name, annotation in inspect.get_annotations(shape).items():
        kind = str(getattr(annotation, "__forward_arg__", annotation))
        optional = kind.startswith("NotRequired[")
        kind = kind.removeprefix("NotRequired[").removesuffix("]") if optional else kind
        yield f"- `{name}{'?' if optional else ''}`: `{kind}`"
    yield ""


def _tree() -> str:
    """Return the error tree in the docstring of the errors module."""
    return textwrap.dedent((errors.__doc__ or "").partition("::\n")[2]).strip()


def _keys(prefix: str, model: type[Any]) -> Iterator[str]:
    descriptions = _field_docstrings(model)
    own = vars(model).get("__annotations__", {})
    for name, one in model._keys.items():
        if prefix and name not in own:
            continue
        default = one.make_default()
        shown = repr(default)
        if isinstance(default, Settings):
            shown = repr(default.provider) if isinstance(default, ComponentConfig) else "see below"
        yield _ticks(f"- `{prefix}{name}` ({shown}): {descriptions[name]}")
    yield ""


def _field_docstrings(model: type[Any]) -> dict[str, str]:
    """Return the docstring below each field of a model."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, after in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            found[field.target.id] = " ".join(str(ast.literal_eval(after.value)).split())
    return found


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
