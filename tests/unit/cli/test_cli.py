"""The `mem0-core` command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mem0_core.cli import main

HASH = {"embedder": "hash", "durability": "process", "version": "v1.0"}  # whatever the file says


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> object:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(HASH))

    def call(*arguments: str, code: int = 0) -> str:
        assert main([*arguments, "--config", str(config), "--path", str(tmp_path / "data")]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return call


def test_a_memory_goes_in_is_found_changes_and_goes(run: object) -> None:
    assert callable(run)
    assert run("add", "I like tea", "--user", "ann").startswith("ADD")
    assert "I like tea" in run("search", "tea", "--user", "ann")
    (entry,) = json.loads(run("list", "--user", "ann", "--json"))["results"]
    assert entry["memory"] == "I like tea"
    assert "ADD" in run("history", entry["id"])
    assert run("rebuild") == "1 memory embedded again\n"
    assert "deleted" in run("delete", entry["id"])
    assert run("search", "tea", "--user", "ann") == "no memories found\n"
    assert "DELETE" in run("history", entry["id"])


def test_relations_are_shown_with_their_days(run: object) -> None:
    assert callable(run)
    assert "began   ann -- lives_in -- Rome" in run("add", "I live in Rome.", "--user", "ann")
    moved = run("add", "I moved to Oslo.", "--user", "ann")
    assert "began   ann -- lives_in -- Oslo" in moved
    assert "ended   ann -- lives_in -- Rome" in moved
    assert "ann -- lives_in -- Oslo" in run("search", "where do I live", "--user", "ann")
    assert "Rome" not in run("relations", "--user", "ann")
    assert "Rome" in run("relations", "--user", "ann", "--ended")
    assert run("relations", "--user", "ann", "--as-of", "2020-01-01") == "no relations\n"


def test_errors_are_one_line_and_an_exit_code(run: object) -> None:
    assert callable(run)
    assert run("search", "tea", code=2).startswith("mem0-core: no memory is named: add --user NAME")
    assert run("delete", "nope", code=4).startswith("mem0-core: no memory has the id 'nope'; ")
    with pytest.raises(SystemExit) as stop:
        main(["fly"])
    assert stop.value.code == 2


def test_options_of_all_commands_may_stand_before_or_behind_their_name(tmp_path: Path, capsys: object) -> None:
    assert isinstance(capsys, pytest.CaptureFixture)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(HASH))
    common = ["--config", str(config), "--path", str(tmp_path / "data"), "--json"]
    assert main([*common, "store", "I like tea", "--user", "ann"]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["event"] == "ADD"
    assert main(["remember", "tea", "--user", "ann", *common]) == 0
    assert json.loads(capsys.readouterr().out)["results"][0]["memory"] == "I like tea"


def test_with_json_errors_are_json_too(run: object) -> None:
    assert callable(run)
    assert json.loads(run("search", "tea", "--json", code=2))["error"]["type"] == "ScopeError"


def test_the_backend_of_the_model_is_chosen_from_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEM0_CORE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**HASH, "llm": "openai:gpt-4o-mini"}))
    add = ["add", "I like tea", "--user", "ann", "--config", str(config), "--json"]
    assert main([*add, "--llm-backend", "none"]) == 0  # the configured one would need a key
    assert json.loads(capsys.readouterr().out)["usage"]["llm_calls"] == 0
    assert main([*add, "--llm-backend", "auto"]) == 0  # nothing is there to choose: no model
    assert json.loads(capsys.readouterr().out)["usage"]["llm_calls"] == 0
    assert main([*add, "--llm-backend", "gguf"]) == 1
    assert "there is no model for 'gguf'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main([*add, "--llm-backend", "abacus"])
    assert stop.value.code == 2


@pytest.mark.parametrize("configured", [True, False])
def test_local_models_are_looked_for_where_the_configuration_says_else_beside_the_data(
    configured: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = tmp_path / ("elsewhere" if configured else "data/models")
    models.mkdir(parents=True)
    config = tmp_path / "config.json"
    llm = {"llm": {"provider": "local", "config": {"folder": str(models)}}} if configured else {}
    config.write_text(json.dumps({**HASH, **llm}))
    place = ["--path", str(tmp_path / "data"), "--config", str(config)]
    assert main(["add", "I like tea", "--user", "ann", *place, "--llm-backend", "gguf"]) == 1
    assert f"there is no model for 'gguf' in {str(models)!r}" in capsys.readouterr().err


def test_by_query_merging_and_other_verbs(run: object) -> None:
    assert callable(run)
    assert run("add", "I like green tea", "--user", "ann")
    assert "would UPDATE" in run("updateq", "green tea", "I like black tea", "--dry-run", "--user", "ann")
    assert "I like green tea -> I like black tea" in run("updateq", "green tea", "I like black tea", "--user", "ann")
    (entry,) = json.loads(run("list", "--user", "ann", "--json"))["results"]
    assert entry["memory"] == "I like black tea"
    assert "I like black tea" in run("get", entry["id"])
    assert "updated" in run("update", entry["id"], "I like white tea")
    assert run("pin", entry["id"]) == "pinned\n"
    assert run("pin", entry["id"], "--off") == "unpinned\n"
    assert run("pending", "--user", "ann") == "no queued jobs\n"
    assert run("flush") == "no queued jobs left\n"
    assert "would DELETE" in run("delete-by-query", "white tea", "--dry-run", "--user", "ann")
    assert "DELETE" in run("delete-by-query", "white tea", "--user", "ann")
    assert run("list", "--user", "ann") == "no memories found\n"
    for name in ("Robert Miller", "Rob Miller"):
        run("add", f"{name} works at Acme.", "--user", "bob")
    named = ["--name", "Robert Miller", "--name", "Rob Miller"]
    assert "would merge" in run("merge", "entities", *named, "--user", "bob")
    assert "merged" in run("merge", "entities", *named, "--apply", "--user", "bob")
    (merge,) = json.loads(run("merges", "--user", "bob", "--json"))
    assert run("doctor").endswith("no problems found\n")
    assert "reverted" in run("unmerge", merge["id"])
    assert run("doctor").endswith("no problems found\n")


def test_a_store_moves_and_the_old_one_is_read_only(run: object, tmp_path: Path) -> None:
    assert callable(run)
    old, new = str(tmp_path / "data"), str(tmp_path / "new")
    run("add", "I like tea", "--user", "ann")
    assert "pass the target" in run("migrate", "--from", old, code=1)
    assert "no store" in run("migrate", "--from", str(tmp_path / "nowhere"), "--to", new, code=1)
    moved = run("migrate", "--from", old, "--to", new)
    assert "1 memories" in moved
    assert "verified" in moved
    assert json.loads(run("migrate", "--from", old, "--to", new, "--json"))["already"]
    assert "migrate --release" in run("add", "I like cake", "--user", "ann", code=1)
    assert "I like tea" in run("search", "tea", "--user", "ann")
    assert "accepts writes" in run("migrate", "--from", old, "--release")
    assert run("add", "I like cake", "--user", "ann").startswith("ADD")
    moved_on = json.loads(run("migrate", "--from", new, "--to", str(tmp_path / "third"), "--release", "--json"))
    assert moved_on["digests"]["memories"]["count"] == 1
