"""Short ids, exit codes, rendering and completion of the `mem0-core` command."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mem0_core.cli import _commands, main
from mem0_core.cli._arguments import BACKENDS, IMPORT_FORMATS, TRUST_CLASSES, build_parser, parse_arguments
from mem0_core.cli._examples import EXAMPLES
from mem0_core.cli._ids import shorten_id
from mem0_core.cli._output import pluralize
from mem0_core.cli._render import Block, Table, number_rows, render_plain
from mem0_core.cli._shell_completion import completion_script
from mem0_core.domain import trust
from mem0_core.interchange import CHAT_FORMATS, EXPORT_FORMAT, MEM0_V1_FORMAT, PORTABLE_FORMATS
from mem0_core.memory import Memory
from mem0_core.providers import local
from tests.support import run_python

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("MEM0_USER", raising=False)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"embedder": "hash", "durability": "process"}))

    def call(*arguments: str, code: int = 0) -> str:
        assert main([*arguments, "--config", str(config), "--path", str(tmp_path / "data")]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return call


def add(run: Run, text: str) -> str:
    return str(json.loads(run("add", text, "--user", "ann", "--json"))["results"][0]["id"])


def commands() -> dict[str, argparse.ArgumentParser]:
    (found,) = (one for one in build_parser()._actions if isinstance(one, argparse._SubParsersAction))
    return dict(found.choices)


def test_the_end_of_an_id_denotes_its_memory_even_after_deletion(run: Run) -> None:
    memory_id = add(run, "I like tea")
    short = shorten_id(memory_id)
    assert len(short) == 8
    assert short in run("get-all", "--user", "ann")
    assert "I like tea" in run("get", short)
    assert "I like tea" in run("get", memory_id[:13])
    assert "updated" in run("update", short, "I like milk")
    assert "deleted" in run("delete", short)
    assert "DELETE" in run("history", short)
    assert "no memory has the id" in run("get", short, code=4)


def test_an_ambiguous_part_of_an_id_lists_the_candidates(run: Run) -> None:
    first, second = add(run, "I like tea"), add(run, "I live in Rome.")
    shared = next(first[:n] for n in range(len(first), 3, -1) if second.startswith(first[:n]))
    error = run("delete", shared, code=2)
    assert "2 ids; type more digits" in error
    assert f"{first}  I like tea" in error
    assert f"{second}  I live in Rome." in error
    assert len(json.loads(run("list", "--user", "ann", "--json"))["results"]) == 2


@pytest.mark.parametrize("command", ["get", "history", "delete", "pin"])
@pytest.mark.parametrize("given", ["123", "%%%%", "01890000-0000-7000-8000-000000000000", "abcdef12"])
def test_an_unknown_id_is_an_error_of_its_own(run: Run, command: str, given: str) -> None:
    assert "no memory has the id" in run(command, given, code=4)


def test_a_command_without_a_scope_names_the_options_and_the_variable(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = run("search", "tea", code=2)
    assert "--user" in error
    assert "user_id" not in error
    monkeypatch.setenv("MEM0_USER", "ann")
    assert run("add", "I like tea").startswith("ADD")
    assert "I like tea" in run("get-all", "--user", "ann")


def test_parts_of_ids_reach_only_memories_of_the_named_user(run: Run) -> None:
    memory_id = add(run, "I like tea")
    short = shorten_id(memory_id)
    for named in (short, memory_id):
        for command in (["get", named], ["history", named], ["delete", named], ["update", named, "I like milk"]):
            error = run(*command, "--user", "bob", code=4)
            assert "tea" not in error
    assert "I like tea" in run("get", short, "--user", "ann")


def test_an_ambiguous_part_lists_no_memories_of_others(run: Run) -> None:
    first = add(run, "I like tea")
    second = json.loads(run("add", "My password is secret", "--user", "bob", "--json"))["results"][0]["id"]
    shared = next(first[:n] for n in range(len(first), 3, -1) if second.startswith(first[:n]))
    assert "secret" in run("get", shared, code=2)
    assert "I like tea" in run("get", shared, "--user", "ann")


def test_a_user_without_relations_cannot_be_drawn(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "graph.html"
    assert "no relations of user 'nobody'" in run("visualize", "--user", "nobody", "--out", str(out), code=4)
    assert not out.exists()


def test_deleting_a_scope_needs_a_confirmation(run: Run) -> None:
    add(run, "I like tea")
    assert "add --yes" in run("delete-all", "--user", "ann", code=2)
    assert "add --yes" in run("reset", code=2)
    assert "I like tea" in run("list", "--user", "ann")
    assert run("delete-all", "--user", "ann", "--yes")
    assert run("list", "--user", "ann") == "no memories found\n"


def test_constants_of_the_parser_equal_those_of_the_package() -> None:
    assert TRUST_CLASSES == trust.TRUST_CLASSES
    assert BACKENDS == local.BACKENDS
    assert set(IMPORT_FORMATS) == {*CHAT_FORMATS, *PORTABLE_FORMATS, MEM0_V1_FORMAT, EXPORT_FORMAT}


def test_every_command_has_an_implementation_and_examples_that_parse() -> None:
    every = commands()
    for name, command in every.items():
        act = command.get_default("act")
        assert command.get_default("is_standalone") or callable(getattr(_commands, act.__name__, None)), name
    for name, lines in EXAMPLES.items():
        assert name in every
        assert all(line.startswith(("mem0-core ", "source <(mem0-core ")) for line in lines)


def test_methods_of_a_memory_are_commands_of_the_same_name() -> None:
    methods = ["add", "search", "answer", "context", "explain_missing", "get", "get_all", "history", "update", "delete"]
    methods += [
        "update_by_query",
        "delete_by_query",
        "delete_all",
        "erase",
        "reset",
        "pin",
        "pending",
        "flush",
        "retry",
    ]
    methods += ["relations", "traverse", "query", "visualize", "merge", "merges", "unmerge", "rebuild", "export"]
    methods += ["backup", "stats", "doctor"]
    assert all(hasattr(Memory, name) for name in methods)
    assert {name.replace("_", "-") for name in methods} <= set(commands())


@pytest.mark.parametrize(
    "line",
    [
        "search tea --user maya --limit 3",
        "--user maya remember tea",
        "--json --path data add search --at 2026-01-01",
        "viz Ana --depth 1 --user maya",
        "schema --store postgres --role app",
        "prompt --agent a",
        "delete-all --yes --user maya",
        "",
    ],
)
def test_the_parser_of_one_command_agrees_with_the_complete_one(line: str) -> None:
    def comparable(options: argparse.Namespace) -> dict[str, Any]:
        return {**vars(options), "act": options.act.__name__, "exit_code": None}

    assert comparable(parse_arguments(line.split())) == comparable(build_parser().parse_args(line.split()))


@pytest.mark.parametrize(
    "line", ["serach search", "search", "search tea --limt 3", "--help", "search --hel", "add x --trust no"]
)
def test_help_and_errors_come_from_the_complete_parser(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for parse in (parse_arguments, build_parser().parse_args):
        with pytest.raises(SystemExit):
            parse(line.split())
        outputs.append(capsys.readouterr())
    assert outputs[0] == outputs[1]


def test_a_search_loads_no_library_for_long_use_and_finds_the_same(tmp_path: Path) -> None:
    with Memory({"path": str(tmp_path), "durability": "process"}) as memory:
        memory.add_many(["I play the piano.", "My sister Ana has a dog.", "I work in Porto."], user_id="maya")
        expected = memory.search("Who has a dog?", user_id="maya", rerank=False)["results"]
    script = (
        "import sys\nfrom mem0_core.cli import main\n"
        "main(['search', 'Who has a dog?', '--user', 'maya', '--json', '--path', sys.argv[1]])\n"
        "sys.exit(str({'onnxruntime', 'faiss'} & set(sys.modules) or ''))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert not done.stderr.strip()
    found = json.loads(done.stdout)["results"]
    assert [one["id"] for one in found] == [one["id"] for one in expected]
    assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-2)


def test_the_version_and_the_help_load_no_numerical_library() -> None:
    script = (
        "import sys\nfrom mem0_core.cli._arguments import build_parser\nbuild_parser().format_help()\n"
        "print([name for name in ('numpy', 'faiss', 'pydantic', 'mem0_core.memory', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_plain_tables_are_aligned_and_numbered_and_show_control_characters() -> None:
    blocks: list[Block] = [Table((("ADD", "a\x1b[31m"), ("UPDATE", "two\nlines")), is_numbered=True), "end\x9b"]
    assert render_plain(number_rows(blocks)) == [" 1  ADD     a\\x1b[31m", " 2  UPDATE  two lines", "end\\x9b"]


def test_rich_renders_the_same_texts_in_color() -> None:
    pytest.importorskip("rich")
    from mem0_core.cli._render import _render_rich

    lines = _render_rich([Table((("ADD", "I like [bold]tea"),)), "began   ann -- likes -- tea"])
    assert any("I like [bold]tea" in line and "\x1b[" in line for line in lines)
    assert any("ann -- likes -- tea" in line for line in lines)


def test_json_contains_no_terminal_controls(run: Run) -> None:
    add(run, "tea \x9b31m")
    shown = run("list", "--user", "ann", "--json")
    assert "\x9b" not in shown
    assert json.loads(shown)["results"][0]["memory"] == "tea \x9b31m"


@pytest.mark.parametrize(
    ("count", "noun", "expected"),
    [(1, "memory", "1 memory"), (0, "memory", "0 memories"), (2, "conversation", "2 conversations")],
)
def test_counts_have_the_number_of_their_noun(count: int, noun: str, expected: str) -> None:
    assert pluralize(count, noun) == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("mem0-core trav", "traverse"),
        ("mem0-core search --as", "--as-of"),
        ("mem0-core search --min-trust as", "assistant"),
        ("mem0-core import --format chat", "chatgpt"),
        ("mem0-core export --format j", "jsonl"),
        ("mem0-core --llm-backend g", "gguf"),
        ("mem0-core --user maya trav", "traverse"),
    ],
)
def test_bash_completes_commands_options_and_their_values(words: str, expected: str) -> None:
    line = f"{completion_script(build_parser(), 'bash')}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1))\n"
    done = subprocess.run(
        ["bash", "-c", f'{line}_mem0_core; echo "${{COMPREPLY[@]}}"'], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [expected]


def test_fish_knows_every_command() -> None:
    script = completion_script(build_parser(), "fish")
    assert all(f"-a {name} " in script for name in commands())


@pytest.mark.parametrize("command", ["search", "context"])
def test_a_short_command_loads_no_library_that_it_does_not_need(command: str, tmp_path: Path) -> None:
    main(["--path", str(tmp_path), "add", "Maya lives in Lisbon.", "--user", "maya"])
    code = """
import gc, os, sys
sys.argv = ["mem0-core", "--path", sys.argv[1], sys.argv[2], "Where does Maya live?", "--user", "maya"]
from mem0_core.cli import main
assert main() == 0
assert "numpy" in sys.modules
loaded = {"pydantic", "pydantic_core", "tomllib", "threadpoolctl", "faiss", "onnxruntime", "asyncio"} & set(sys.modules)
assert not loaded, loaded
assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
assert gc.get_freeze_count()
"""
    assert "Maya lives in Lisbon." in run_python(code, tmp_path, command)
