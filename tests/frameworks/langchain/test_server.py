"""LangGraph's development server with our store factory and our middleware, used by its own client."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client

pytest.importorskip("langgraph_api")

EXAMPLE = Path(__file__).parents[3] / "examples/langgraph_platform"
START_SECONDS = 240  # on a busy machine
MAYA: Any = {"configurable": {"user_id": "maya"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs the example."""
    folder = tmp_path_factory.mktemp("server") / "app"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("data", ".langgraph_api", "__pycache__"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "NO_COLOR": "1"}
    process = subprocess.Popen(
        [*command, "--no-browser", "--no-reload"],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    started, lines = threading.Event(), []

    def read_output() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if "Application started up" in line:
                started.set()
        started.set()  # it ended

    reader = threading.Thread(target=read_output, daemon=True)
    reader.start()
    try:
        assert started.wait(START_SECONDS), "the server does not start"
        assert process.poll() is None, "".join(lines[-40:])
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
        reader.join(60)


def test_a_deployed_graph_searches_the_store_without_blocking_the_server(server: str) -> None:
    async def talk() -> list[str]:
        client: Any = get_client(url=server)
        answers: list[str] = []
        for text in ("I drink green tea.", "I keep bees.", "Which tea do I drink?"):
            state = await client.runs.wait(None, "notes", input={"messages": [{"role": "user", "content": text}]})
            answers.append(state["messages"][-1]["content"])
        return answers

    assert asyncio.run(talk())[-1] == "Which tea do I drink? / I drink green tea."


def test_a_client_puts_gets_searches_and_deletes_items(server: str) -> None:
    async def use() -> None:
        store = get_client(url=server).store
        value = {"text": "No peanuts.", "stars": 3}
        await store.put_item(["users", "maya"], "1", value, ttl=5)
        await store.put_item(["users", "maya"], "2", {"text": "Tea."}, index=False)
        assert (await store.get_item(["users", "maya"], "1"))["value"] == value
        found = await store.search_items(["users"], query="peanuts", filter={"stars": 3})
        assert [(item["key"], item["value"]) for item in found["items"]] == [("1", value)]
        assert ["users", "maya"] in (await store.list_namespaces())["namespaces"]
        for key in ("1", "2"):
            await store.delete_item(["users", "maya"], key)
        assert (await store.search_items(["users"]))["items"] == []

    asyncio.run(use())


def test_a_deployed_agent_recalls_what_another_thread_told(server: str) -> None:
    async def stream(text: str) -> list[Any]:
        input = {"messages": [{"role": "user", "content": text}]}
        client: Any = get_client(url=server)
        parts = client.runs.stream(None, "assistant", input=input, config=MAYA, stream_mode="custom")
        return [part.data async for part in parts if part.event == "custom"]

    async def talk() -> list[Any]:
        (stored,) = await stream("My sister keeps bees in Porto.")
        assert (stored["type"], stored["job_id"].isdecimal()) == ("mem0.remember", True)
        events: list[Any] = []
        for _ in range(100):  # a worker of the server learns from the turn in the meantime
            events = await stream("What does my sister keep?")
            if events[0]["type"] == "mem0.recall":
                break
        return events

    recalled, stored = asyncio.run(talk())
    assert recalled["memories"][0]["memory"] == "My sister keeps bees in Porto."
    assert stored["type"] == "mem0.remember"
