"""Keys and passwords appear in no text that the library makes: not in reprs, logs, errors, reports or files."""

from __future__ import annotations

import base64
import io
import json
import logging
import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mem0_core import Mem0Error, Memory, MemoryConfig
from mem0_core.cli import main
from mem0_core.components import build_component
from mem0_core.config import load_config, postgres_config
from mem0_core.domain.secrets import SecretStr, conceal, find_secrets, redact_url, reveal
from mem0_core.testing import HashEmbedder

KEY, PASSWORD, TOKEN = "sk-Zq81vXkeyW0r7Hq", "Pa55Zword+Xyzzy9", "tok3nZZ93ucK1q"
SECRETS = (KEY, PASSWORD, TOKEN, base64.b64encode(f"u:{PASSWORD}".encode()).decode())
URL = f"postgresql://ann:{PASSWORD}@127.0.0.1:1/mem?options=-c%20x"

CONFIGS: list[dict[str, Any]] = [
    {"llm": {"provider": "openai", "config": {"api_key": KEY, "base_url": f"http://u:{PASSWORD}@127.0.0.1:1/v1"}}},
    {"llm": {"provider": "ollama", "config": {"model": "x", "ollama_base_url": f"http://u:{PASSWORD}@127.0.0.1:1"}}},
    {"embedder": {"provider": "openai", "config": {"api_key": KEY}}},
    {"reranker": {"provider": "llm", "config": {"provider": "openai", "model": "m", "api_key": KEY}}},
    {"store": URL},
    {"store": {"provider": "postgres", "config": {"url": f"host=127.0.0.1 port=1 password={PASSWORD}"}}},
    {"vector_store": {"provider": "pgvector", "config": {"host": "127.0.0.1", "port": 1, "password": PASSWORD}}},
    {"vector_store": {"provider": "pgvector", "config": {"connection_string": URL}}},
    {"graph_store": {"provider": "neo4j", "config": {"url": "bolt://127.0.0.1:1", "password": PASSWORD}}},
    {"graph_store": {"provider": "sqlite", "llm": {"provider": "openai", "config": {"api_key": KEY}}}},
    {"logging": {"version": 1, "handlers": {"h": {"class": "x.Y", "credentials": ["ann", PASSWORD]}}}},
    {"llm": {"provider": "openai", "config": {"default_headers": {"X-Api-Key": KEY, "Authorization": TOKEN}}}},
]
WRONG: list[Any] = [
    {"llm": {"provider": "openai", "config": {"api_key": KEY, "modle": "x"}}},
    {"llm": {"provider": "openai", "config": {"api_key": [KEY]}}},
    {"llm": {"provider": "openai", "config": KEY}},
    {"llm": {"provider": "openai", "config": {"api_key": f"{KEY}\n"}}, "store": {"provider": "postgres"}},
    {"llm": {"provider": "openai", "config": {"base_url": f"http://u:{PASSWORD}@h", "openai_base_url": "http://x"}}},
    {"llm": {"provider": "openai", "config": {"api_key": KEY, "base_url": f"ftp://u:{PASSWORD}@h"}}},
    {"store": f"mysql://ann:{PASSWORD}@host/db"},
    {"store": f"postgresql://ann:{PASSWORD}@127.0.0.1:port/db"},
    {"store": {"provider": "postgres", "config": {"url": f"host=127.0.0.1 password={PASSWORD} nonsense"}}},
    {"store": {"provider": "postgres", "config": {"url": URL, "statement_timeout": "never"}}},
    {"store": {"provider": "postgres", "config": {"url": URL}, "pasword": PASSWORD}},
    {"graph_store": {"provider": "neo4j", "config": {"url": f"bolt://u:{PASSWORD}@127.0.0.1:x", "password": PASSWORD}}},
    {"embedder": {"provider": "openai", "config": {"api_key": KEY}}, "unknown": KEY},
    {"embedder": {"provider": "openai", "config": {"api_key": KEY}}, "window": "many"},
    {"vector_store": {"provider": "qdrant", "config": {"location": ":memory:", "api_key": KEY, "hots": "x"}}},
    {"vector_store": {"provider": "faiss", "config": {"api_key": KEY}}},
    {"background": {"password": PASSWORD, "workers": "x"}},
]


def assert_clean(*texts: object) -> None:
    for text in texts:
        assert not [secret for secret in SECRETS if secret in str(text)], text


def chain_texts(error: BaseException | None) -> Iterator[str]:
    """Yield the texts of an error and of all that it is chained to."""
    while error is not None:
        yield f"{error} {error!r} {''.join(traceback.format_exception(error))}"
        error = error.__cause__ or error.__context__


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The records of all loggers at DEBUG."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s %(args)s"))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield text
    root.removeHandler(handler)
    root.setLevel(before)


@pytest.mark.parametrize("given", CONFIGS, ids=str)
def test_a_configuration_shows_no_secret(given: dict[str, Any], log: io.StringIO) -> None:
    config = load_config(given)
    assert_clean(repr(config), str(config), f"{config}", config.to_dict(), vars(config))
    assert_clean(repr(config.store_config), MemoryConfig(**config.to_dict()), log.getvalue())
    assert_clean(config.replace(window=1), json.dumps(config.to_dict(), default=str))
    assert any(secret in str(reveal(config.to_dict())) for secret in SECRETS)


@pytest.mark.parametrize("given", [*CONFIGS, *WRONG], ids=str)
def test_an_error_of_the_configuration_shows_no_secret(given: dict[str, Any], tmp_path: Path, log: io.StringIO) -> None:
    try:
        with Memory({"path": str(tmp_path), "embedder": "hash", **given}) as memory:
            assert_clean(repr(memory), str(memory), repr(memory.config))
            memory.add("I live in Rome.", user_id="ann")
    except Mem0Error as error:
        assert_clean(*chain_texts(error))
    assert_clean(log.getvalue())


@pytest.mark.parametrize("suffix", [".yaml", ".json"])
@pytest.mark.parametrize("line", [f"llm: {{api_key: {KEY}: x", f"password: *{TOKEN}", f"a: '{KEY}"])
def test_an_error_of_a_file_shows_no_secret(tmp_path: Path, suffix: str, line: str) -> None:
    (file := tmp_path / f"c{suffix}").write_text(line, encoding="utf-8")
    with pytest.raises(Mem0Error) as caught:
        load_config(file)
    assert_clean(*chain_texts(caught.value))


class EchoHandler(BaseHTTPRequestHandler):
    """A server that quotes the headers of each request in its error."""

    seen: ClassVar[list[dict[str, str]]] = []

    def do_POST(self) -> None:
        self.seen.append(dict(self.headers))
        body = json.dumps({"error": {"message": f"wrong key: {dict(self.headers)}", "type": "auth"}}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        return


@pytest.fixture
def server() -> Iterator[str]:
    made = HTTPServer(("127.0.0.1", 0), EchoHandler)
    thread = Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield f"127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()
    thread.join()


@pytest.mark.parametrize("userinfo", ["", f"u:{PASSWORD}@"])
def test_a_server_that_echoes_the_key_puts_it_in_no_text(
    server: str, userinfo: str, tmp_path: Path, log: io.StringIO
) -> None:
    model = {"api_key": KEY, "base_url": f"http://{userinfo}{server}/v1", "model": "m", "max_retries": 0}
    with Memory(
        {"path": str(tmp_path), "llm": {"provider": "openai", "config": model}}, embedder=HashEmbedder()
    ) as memory:
        with pytest.raises(Mem0Error) as caught:
            memory.add("I live in Rome.", user_id="ann")
        assert_clean(*chain_texts(caught.value))
        memory.add("I live in Oslo.", user_id="ann", background=True)
        memory.flush(0.2)
        assert_clean(memory.pending(), memory.doctor(), memory.stats(), repr(memory))
        memory.export(tmp_path / "all.jsonl")
        memory.backup(tmp_path / "copy.db")
        assert_clean(memory.erase(user_id="ann", reason="request 1"))
    assert_clean(log.getvalue())
    sent = {name.lower(): value for name, value in EchoHandler.seen[-1].items()}
    assert sent["authorization"].startswith("Basic " if userinfo else f"Bearer {KEY}")
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert not [secret for secret in SECRETS if secret.encode() in file.read_bytes()], file


@pytest.mark.parametrize(
    "command", [["stats"], ["doctor"], ["add", "I live in Rome.", "--user", "ann"], ["search", "Rome", "--user", "ann"]]
)
@pytest.mark.parametrize("given", [CONFIGS[0], CONFIGS[4], CONFIGS[8], WRONG[0], WRONG[7]], ids=str)
def test_the_command_shows_no_secret(
    command: list[str], given: dict[str, Any], tmp_path: Path, log: io.StringIO
) -> None:
    (file := tmp_path / "c.json").write_text(json.dumps({"path": str(tmp_path / "data"), **given}), encoding="utf-8")
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        main(["--config", str(file), *command])
    assert_clean(out.getvalue(), log.getvalue())


def test_a_store_by_url_shows_no_password_in_the_command(tmp_path: Path) -> None:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        main(["--store", URL, "stats"])
        main(["--store", URL.replace("postgresql", "mysql"), "stats"])
    assert_clean(out.getvalue())


def test_a_provider_receives_plain_texts() -> None:
    config = postgres_config(URL).config
    assert isinstance(config["url"], SecretStr)
    chat = build_component("llm", load_config(CONFIGS[0]).llm)
    assert chat._server._key == KEY


def test_a_secret_of_pydantic_stays_concealed_and_reaches_the_provider() -> None:
    given = {"llm": {"provider": "openai", "config": {"api_key": pydantic.SecretStr(KEY)}}}
    config = load_config(given)
    assert_clean(config, config.to_dict())
    assert find_secrets(given) == [KEY]
    assert build_component("llm", config.llm)._server._key == KEY


def test_equal_secrets_are_equal_and_their_text_is_not_shown() -> None:
    secret = SecretStr(KEY)
    assert secret == SecretStr(KEY)
    assert secret != SecretStr(TOKEN)
    assert {secret, SecretStr(KEY)} == {secret}
    assert (len(secret), str(SecretStr(""))) == (len(KEY), "")
    assert_clean(secret, repr(secret), f"{secret}", [secret])


def test_an_error_of_a_provider_that_quotes_a_secret_is_not_chained(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(api_key: str) -> object:
        raise ValueError(f"no such key: {api_key}")

    monkeypatch.setattr("mem0_core.components._resolve_provider", lambda kind, name: fail)
    with pytest.raises(Mem0Error) as caught:
        build_component("llm", {"provider": "openai", "config": {"api_key": KEY}})
    assert_clean(*chain_texts(caught.value))
    assert "no such key: ***" in str(caught.value)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9) | st.just("api_key"), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_a_concealed_configuration_is_revealed_unchanged(value: Any) -> None:
    assert reveal(conceal(value)) == value
    assert conceal(conceal(value)) == conceal(value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://ann:p@ss/w@host/db", "postgresql://ann:***@host/db"),
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        ("http://host:80/v1", "http://host:80/v1"),
        ("http://:pass@host", "http://:***@host"),
        ("https://host/?api_key=abc&x=1", "https://host/?api_key=***&x=1"),
        ("host=h password='a b' user=u", "host=h password=*** user=u"),
        ("max_tokens=5", "max_tokens=5"),
    ],
)
def test_a_url_is_shown_without_its_password(text: str, shown: str) -> None:
    assert redact_url(text) == shown


def test_the_secrets_of_a_configuration_are_found() -> None:
    found = find_secrets({"url": "postgresql://a:p%40ss9@h/d", "keys": {"api_key": KEY, "model": "gpt"}})
    assert found == ["postgresql://a:p%40ss9@h/d", KEY, "p%40ss9", "p@ss9"]
