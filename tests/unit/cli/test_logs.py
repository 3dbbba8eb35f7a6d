"""Log files of the command, off by default; the library opens none."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mem0_core import Memory
from mem0_core.cli import _commands, _output, main
from mem0_core.cli._logs import log_to_files
from mem0_core.config import load_config
from mem0_core.errors import ConfigError
from mem0_core.testing import HashEmbedder

EXAMPLES = Path(__file__).parents[3] / "examples"
log = logging.getLogger("mem0_core.somewhere")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Restore the loggers of the process, which dictConfig changes."""
    loggers = [logging.getLogger(), logging.getLogger("mem0_core")]
    before = [(logger, list(logger.handlers), logger.level) for logger in loggers]
    yield
    for logger, handlers, level in before:
        for handler in set(logger.handlers) - set(handlers):
            handler.close()
        logger.handlers[:] = handlers
        logger.setLevel(level)


@contextmanager
def opened(folder: Path, setting: Any) -> Iterator[Memory]:
    """Open a memory as the command does, while it logs to its files."""
    config = load_config({"path": str(folder), "logging": setting})
    with log_to_files(config), Memory(config, embedder=HashEmbedder()) as memory:
        yield memory


def run_command(folder: Path, setting: Any) -> None:
    with opened(folder, setting):
        pass


@pytest.mark.parametrize("setting", [None, False])
def test_nothing_is_logged_to_a_file_unless_configured(tmp_path: Path, setting: Any) -> None:
    with opened(tmp_path, setting) as memory:
        memory.add("I live in Porto.", user_id="ana")
        log.error("it broke")
    assert not list(tmp_path.rglob("*.log"))


def test_a_level_logs_to_app_log_in_the_folder_of_the_data(tmp_path: Path) -> None:
    level = logging.getLogger("mem0_core").level
    with opened(tmp_path, "info"):
        log.info("said at info")
        log.debug("said at debug")
        logging.getLogger("another").error("of another package")
    log.error("after it was closed")
    content = (tmp_path / "app.log").read_text()
    assert content.count("INFO mem0_core.somewhere said at info") == 1
    assert content.count("\n") == 1
    assert logging.getLogger("mem0_core").level == level


def test_two_commands_in_one_process_log_each_line_once(tmp_path: Path) -> None:
    with opened(tmp_path, "INFO"):
        log.info("said once")
    log.info("said between them")
    with opened(tmp_path, "INFO"):
        log.info("said later")
    assert [line.rpartition(" ")[2] for line in (tmp_path / "app.log").read_text().splitlines()] == ["once", "later"]


def test_the_library_opens_no_log_file(tmp_path: Path) -> None:
    with Memory({"path": str(tmp_path), "logging": "DEBUG"}, embedder=HashEmbedder()) as memory:
        memory.add("I live in Porto.", user_id="ana")
        log.error("it broke")
    assert not list(tmp_path.rglob("*.log"))


def test_the_command_logs_to_the_file_of_its_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(EXAMPLES / "logging.yaml", tmp_path)
    (tmp_path / "mine.yaml").write_text(f"path: {tmp_path / 'data'}\nlogging: logging.yaml\n")

    def stats(memory: Memory, options: object) -> dict[str, Any]:
        log.info("said by a command")
        return {}

    monkeypatch.setattr(_commands, "stats", stats)
    monkeypatch.setattr(_output, "format_stats", lambda result: [])
    assert main(["--config", str(tmp_path / "mine.yaml"), "stats"]) == 0, capsys.readouterr().err
    assert "said by a command" in (tmp_path / "data" / "app.log").read_text()


def test_a_mapping_is_what_dict_config_takes(tmp_path: Path) -> None:
    mine = logging.getLogger("mine.before")
    handler = {"class": "logging.FileHandler", "filename": "{data}/logs.txt", "delay": True}
    settings = {"handlers": {"file": handler}, "loggers": {"mem0_core": {"level": "DEBUG", "handlers": ["file"]}}}
    with opened(tmp_path, settings):
        log.debug("said at debug")
    assert "said at debug" in (tmp_path / "logs.txt").read_text()
    assert not mine.disabled


def test_a_file_lies_beside_the_configuration_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("offline.yaml", "logging.yaml"):
        shutil.copy(EXAMPLES / name, tmp_path)
    config = load_config(tmp_path / "offline.yaml")
    with log_to_files(config, folder=tmp_path), Memory(config) as memory:
        assert memory.config.folder == tmp_path / "mem0-core" / "offline"
        memory.add("My sister Ana lives in Porto.", user_id="ben")
        assert memory.search("Where does my sister live?", user_id="ben")["results"]
        log.info("said at info")
    assert "said at info" in (tmp_path / "mem0-core" / "offline" / "app.log").read_text()


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("handelrs: {}", r"logging\.yaml: unknown key 'handelrs'; did you mean 'handlers'"),
        ("handlers: {file: {class: logging.Nothing}}", r"logging\.yaml: handlers\.file: .*Nothing"),
        ("handlers: {file: {class: logging.FileHandler}}", r"logging\.yaml: handlers\.file: .*filename"),
        ("loggers: {mem0_core: {level: LOUD}}", r"logging\.yaml: loggers\.mem0_core: .*LOUD"),
        ("- a list", r"logging\.yaml: a configuration is a mapping of keys, not list"),
        ("a: [", r"logging\.yaml is not valid YAML"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key(tmp_path: Path, yaml: str, message: str) -> None:
    (tmp_path / "logging.yaml").write_text(yaml)
    with pytest.raises(ConfigError, match=message):
        run_command(tmp_path / "data", str(tmp_path / "logging.yaml"))
    assert not (tmp_path / "data" / "memory.db").exists()


def test_what_is_wrong_with_the_key_itself(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"logging: a level, a file or a mapping is required, not 3"):
        run_command(tmp_path, 3)
    with pytest.raises(ConfigError, match=r"config: cannot read the file .*missing\.yaml"):
        run_command(tmp_path, str(tmp_path / "missing.yaml"))
    (tmp_path / "app.log").mkdir()
    with pytest.raises(ConfigError, match=r"logging: .*app\.log cannot be written"):
        run_command(tmp_path, "INFO")


@pytest.mark.parametrize(
    ("yaml", "message"),
    [
        ("recipee: offline", r"offline\.yaml: unknown key 'recipee'; did you mean 'recipe'"),
        ("graph_store: {threshold: 3}", r"offline\.yaml: graph_store\.threshold: "),
        ("background: {worker: 3}", r"offline\.yaml: unknown key 'background\.worker'; did you mean 'workers'"),
        (
            "recipe: {name: offline, short: {dnse: 1}}",
            r"offline\.yaml: recipe\.short: unknown key 'dnse'; did you mean 'dense'",
        ),
        ("recipe: {hops: 9}", r"offline\.yaml: recipe 'hybrid': hops must lie between 1 and 4"),
        ("llm: olama:llama3", r"offline\.yaml: llm: unknown provider 'olama'; did you mean 'ollama'"),
        ("reranker: {provider: qwne}", r"offline\.yaml: reranker: unknown provider 'qwne'; did you mean 'qwen'"),
        (
            "embedder: {provider: onnx, confg: {}}",
            r"offline\.yaml: unknown key 'embedder\.confg'; did you mean 'config'",
        ),
        ("just text", r"offline\.yaml: config: a mapping of keys is required, not 'just text'"),
    ],
)
def test_a_configuration_that_is_wrong_is_told_with_its_file_and_key(tmp_path: Path, yaml: str, message: str) -> None:
    (tmp_path / "offline.yaml").write_text(yaml)
    with pytest.raises(ConfigError, match=message):
        Memory.from_config(tmp_path / "offline.yaml")
