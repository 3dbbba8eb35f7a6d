"""Remembering that never makes the caller wait: the queue, its workers, and what searches see meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core import InputError, Memory, ModelError, NotFoundError, Scope
from mem0_core.domain.records import Message
from mem0_core.testing import HashEmbedder, ScriptedChat
from tests.support import MODES, hang_guard, open_memory, result_texts, run_sql

QUICK = {"backoff": 0.02, "lease": 2.0}


def echo(task: str, messages: Any) -> Any:
    """A model to which every line is a fact, and every fact is new."""
    content = messages[-1]["content"]
    if task == "facts":
        said = content.rpartition("Input:\n")[2]
        return {"facts": [line.partition(": ")[2] for line in said.splitlines()]}
    if task == "operations":
        facts = json.loads(content)["facts"]
        return {"memory": [{"id": f"new {fact}", "text": fact, "event": "ADD"} for fact in facts]}
    return "They talked."


class Gate:
    """A model that waits until it is let through."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.waiting = threading.Event()
        self.chat = ScriptedChat(self._answer)

    def _answer(self, task: str, messages: Any) -> Any:
        self.waiting.set()
        assert self.open.wait(20)
        return echo(task, messages)


Use = Callable[..., Any]
Session = Callable[..., Any]


@pytest.fixture(params=MODES)
def session(request: pytest.FixtureRequest, tmp_path: Path, truth: dict[str, Any]) -> Session:
    """Runs a story with a memory whose verbs are awaited or not, in one event loop; a story awaits what it is given."""

    def run(story: Callable[[Any, Memory], Any], model: Any = echo, **config: Any) -> Any:
        background = {**QUICK, **config.pop("background", {})}
        llm = model if isinstance(model, ScriptedChat) else ScriptedChat(model)
        memory = open_memory(tmp_path, config={**truth, "background": background, **config}, llm=llm)

        async def call(verb: str, *args: Any, **kwargs: Any) -> Any:
            if request.param == "async":
                return await getattr(memory, f"a{verb}")(*args, **kwargs)
            return getattr(memory, verb)(*args, **kwargs)

        async def main() -> Any:
            try:
                return await story(call, memory)
            finally:
                await call("close")

        return asyncio.run(main())

    return run


def test_the_call_returns_before_the_model_is_asked(session: Session) -> None:
    gate = Gate()

    async def story(call: Use, memory: Memory) -> None:
        result = await call("add", "I like tea", user_id="u", background=True)
        assert result["results"] == []
        (job,) = await call("pending", user_id="u")
        assert (job["id"], job["attempts"], job["error"]) == (result["job_id"], 0, None)
        assert job["messages"] == [{"role": "user", "content": "I like tea"}]
        assert await call("flush", timeout=0.05) is False
        gate.open.set()
        assert await call("flush", timeout=20) is True
        assert await call("pending") == []
        assert result_texts(await call("get_all", user_id="u")) == ["I like tea"]

    session(story, gate.chat)


def test_a_search_sees_what_is_not_remembered_yet(session: Session) -> None:
    """An agent must not forget the last turn."""
    gate = Gate()

    async def story(call: Use, memory: Memory) -> None:
        said = [{"role": "user", "name": "Ann", "content": "I like tea"}, {"role": "system", "content": "tea tea tea"}]
        await call("add", said, user_id="u", metadata={"k": 1}, background=True)
        found = (await call("search", "Who likes tea?", user_id="u"))["results"]
        assert [(hit["memory"], hit["pending"], hit["actor_id"], hit["metadata"]) for hit in found] == [
            ("I like tea", True, "Ann", {"k": 1})
        ]
        assert (await call("search", "Who likes tea?", user_id="v"))["results"] == []
        gate.open.set()
        await call("flush", timeout=20)
        (hit,) = (await call("search", "Who likes tea?", user_id="u"))["results"]
        assert "pending" not in hit

    session(story, gate.chat)


def test_a_job_carries_all_the_add_was_given(session: Session) -> None:
    async def story(call: Use, memory: Memory) -> None:
        await call(
            "add",
            "I like tea",
            user_id="u",
            run_id="r",
            metadata={"k": 1},
            timestamp="2025-03-08",
            expiration_date="2099-01-01",
            prompt="Only drinks.",
            background=True,
        )
        await call("add", "kept as it is", user_id="u", infer=False, background=True)
        await call("flush", timeout=20)
        kept, verbatim = (await call("get_all", user_id="u"))["results"]
        assert (kept["memory"], kept["metadata"], kept["run_id"]) == ("I like tea", {"k": 1}, "r")
        assert (kept["created_at"][:10], kept["expiration_date"]) == ("2025-03-08", "2099-01-01")
        assert verbatim["memory"] == "kept as it is"
        chat = memory._chat
        assert isinstance(chat, ScriptedChat)
        assert "Only drinks." in chat.calls[0].messages[0]["content"]

    session(story)


def test_turns_that_queue_up_are_read_in_one_go(session: Session) -> None:
    gate = Gate()

    async def story(call: Use, memory: Memory) -> None:
        await call("add", "number 0", user_id="u", background=True)
        while not gate.waiting.is_set():
            await asyncio.sleep(0.01)
        for number in range(1, 9):
            await call("add", f"number {number}", user_id="u", timestamp="2025-03-08", background=True)
        gate.open.set()
        await call("flush", timeout=20)
        assert sorted(result_texts(await call("get_all", user_id="u"))) == [f"number {number}" for number in range(9)]
        assert len(memory._store.message_log.messages(Scope("u"))) == 9, "no message is kept twice"
        assert sum(each.task == "facts" for each in gate.chat.calls) == 2

    session(story, gate.chat, background={"workers": 1})


def test_one_users_turns_are_learnt_in_order_and_several_users_at_once(session: Session) -> None:
    seen: list[str] = []
    at_work: list[str] = []
    lock = threading.Lock()
    met = threading.Event()

    def model(task: str, messages: Any) -> Any:
        if task == "facts":
            said = messages[-1]["content"].rpartition("Input:\nuser: ")[2]
            with lock:
                seen.append(said)
                at_work.append(said)
                if len(at_work) == 2:
                    met.set()
            met.wait(10)  # for a turn of the other user
            with lock:
                at_work.remove(said)
        return echo(task, messages)

    async def story(call: Use, memory: Memory) -> None:
        for number in range(6):
            for user in ("u", "v"):
                await call("add", f"{user} {number}", user_id=user, background=True)
        assert await call("flush", timeout=20)

    session(story, model, background={"batch": 1})
    for user in ("u", "v"):
        assert [said for said in seen if said.startswith(user)] == [f"{user} {number}" for number in range(6)]
    assert met.is_set()


def test_a_model_that_comes_back_finds_everything_waiting(session: Session) -> None:
    """The model is down for a while: nothing is lost, no job is marked as failed."""
    failures = [20]

    def model(task: str, messages: Any) -> Any:
        if failures[0]:
            failures[0] -= 1
            return ModelError("the model is down")
        return echo(task, messages)

    async def story(call: Use, memory: Memory) -> None:
        for number in range(4):
            await call("add", f"number {number}", user_id=f"u{number}", background=True)
        assert await call("flush", timeout=30)
        for number in range(4):
            assert result_texts(await call("get_all", user_id=f"u{number}")) == [f"number {number}"]

    session(story, model, background={"tries": 2, "backoff": 0.005})


def test_a_job_that_always_fails_is_set_aside_and_the_others_are_done(session: Session) -> None:
    healed = threading.Event()

    def model(task: str, messages: Any) -> Any:
        if "poison" in messages[-1]["content"].rpartition("Input:\n")[2] and not healed.is_set():
            raise ModelError("I choke on this")
        return echo(task, messages)

    async def story(call: Use, memory: Memory) -> None:
        await call("add", "poison", user_id="u", background=True)
        for number in range(5):
            await call("add", f"number {number}", user_id=f"v{number}", background=True)
        await call("add", "after it", user_id="u", background=True)
        assert await call("flush", timeout=30)
        (job,) = await call("pending")
        assert (job["state"], job["user_id"], job["error"]) == ("failed", "u", "ModelError: I choke on this")
        assert result_texts(await call("get_all", user_id="u")) == ["after it"]
        for number in range(5):
            assert result_texts(await call("get_all", user_id=f"v{number}")) == [f"number {number}"]
        with pytest.raises(NotFoundError):
            await call("retry", "999")
        healed.set()
        await call("retry", job["id"])
        assert await call("flush", timeout=20)
        assert sorted(result_texts(await call("get_all", user_id="u"))) == ["after it", "poison"]

    session(story, model, background={"tries": 3, "backoff": 0.01})


def test_what_is_not_done_at_close_is_done_at_the_next_start(session: Session) -> None:
    async def put(call: Use, memory: Memory) -> None:
        await call("add", "I like tea", user_id="u", background=True)

    def down(task: str, messages: Any) -> Any:
        raise ModelError("down")

    async def look(call: Use, memory: Memory) -> None:
        assert await call("flush", timeout=20)
        assert result_texts(await call("get_all", user_id="u")) == ["I like tea"]

    session(put, down, background={"drain": 0.0, "backoff": 0.01})
    session(look)


def test_close_waits_for_what_was_put_off(session: Session, tmp_path: Path, truth: dict[str, Any]) -> None:
    async def put(call: Use, memory: Memory) -> None:
        await call("add", "I like tea", user_id="u", background=True)

    session(put)
    with open_memory(tmp_path, echo, config=truth) as memory:
        assert memory.pending() == []
        assert result_texts(memory.get_all(user_id="u")) == ["I like tea"]


def test_deleting_everything_reaches_what_was_put_off(session: Session) -> None:
    gate = Gate()

    async def story(call: Use, memory: Memory) -> None:
        await call("add", "I like tea", user_id="u", background=True)
        while not gate.waiting.is_set():
            await asyncio.sleep(0.01)
        await call("delete_all", user_id="u")
        gate.open.set()
        assert await call("flush", timeout=20)
        assert result_texts(await call("get_all", user_id="u")) == []
        assert result_texts(await call("search", "tea", user_id="u")) == []

    session(story, gate.chat)


def test_a_worker_that_lost_its_job_writes_nothing(session: Session) -> None:
    """Its lease ran out, and another took the job: the fact is there once."""
    gate = Gate()

    async def story(call: Use, memory: Memory) -> None:
        await call("add", "I like tea", user_id="u", background=True)
        while not gate.waiting.is_set():
            await asyncio.sleep(0.01)
        run_sql(memory, "UPDATE jobs SET leased_by = 'somebody else'")
        gate.open.set()
        await asyncio.sleep(0.3)
        assert result_texts(await call("get_all", user_id="u")) == []
        run_sql(memory, "UPDATE jobs SET leased_until = 0")
        assert await call("flush", timeout=20)
        assert result_texts(await call("get_all", user_id="u")) == ["I like tea"]
        assert len(await call("history", (await call("get_all", user_id="u"))["results"][0]["id"])) == 1

    session(story, gate.chat)


def test_close_does_not_wait_for_what_failed(session: Session) -> None:
    """The next try may be minutes away: it is made at the next start."""

    def down(task: str, messages: Any) -> Any:
        raise ModelError("down")

    async def put(call: Use, memory: Memory) -> None:
        await call("add", "I like tea", user_id="u", background=True)
        while not (await call("pending"))[0]["attempts"]:
            await asyncio.sleep(0.01)

    with hang_guard():
        session(put, down, background={"drain": 600.0, "backoff": 1000.0})


def test_two_speakers_facts_are_nobodys(tmp_path: Path) -> None:
    """A model says what was told, not who told it."""
    with open_memory(tmp_path, echo, graph=False) as memory:
        said = [
            {"role": "user", "name": "Ann", "content": "I keep bees"},
            {"role": "assistant", "name": "Ben", "content": "I keep goats"},
        ]
        assert [entry.get("actor_id") for entry in memory.add(said, user_id="u")["results"]] == [None, None]
        assert memory.add(said[0], user_id="v")["results"][0]["actor_id"] == "Ann"


def test_a_long_backlog_costs_a_search_nothing(tmp_path: Path, truth: dict[str, Any]) -> None:
    with open_memory(tmp_path, graph=False, config=truth) as memory:
        store = memory._store
        for number in range(300):
            message = Message("user", f"number {number}")
            store.jobs.enqueue(Scope("u"), "remember", at="2025-01-01T00:00:00+00:00", messages=[message])
        found = store.jobs.unprocessed_messages(Scope("u"), limit=3)
        assert [message.content for _, message in found] == ["number 297", "number 298", "number 299"]
        assert store.jobs.unprocessed_messages(Scope("v"), limit=3) == []
        hits = memory.search("number 299", user_id="u", limit=1)["results"]
        assert (hits[0]["memory"], hits[0]["pending"]) == ("number 299", True)


def test_nothing_runs_before_it_is_needed(tmp_path: Path) -> None:
    before = threading.active_count()
    with open_memory(tmp_path, echo) as memory:
        memory.add("I like tea", user_id="u")
        assert threading.active_count() == before
        memory.add("I like milk", user_id="u", background=True)
        assert threading.active_count() > before
    assert threading.active_count() == before


def test_a_dry_run_cannot_be_put_off(tmp_path: Path) -> None:
    with open_memory(tmp_path, echo) as memory, pytest.raises(InputError, match="dry_run"):
        memory.add("x", user_id="u", dry_run=True, background=True)


# --- summaries -----------------------------------------------------------------------------------------------------


@pytest.fixture
def talker(tmp_path: Path, truth: dict[str, Any]) -> Iterator[tuple[Memory, ScriptedChat]]:
    chat = ScriptedChat(echo)
    config = {"background": QUICK, "summary_every": 4, "window": 2}
    with Memory(
        {"path": str(tmp_path), "durability": "process", **truth, **config}, embedder=HashEmbedder(), llm=chat
    ) as memory:
        yield memory, chat


def test_the_summary_is_made_in_the_background_and_read_with_the_window(talker: tuple[Memory, ScriptedChat]) -> None:
    memory, chat = talker
    for number in range(4):
        memory.add(f"number {number}", user_id="u", timestamp=f"2025-03-0{number + 1}")
    assert memory.flush(timeout=20)
    (asked,) = [call for call in chat.calls if call.task == "summary"]
    assert "user: number 0\nuser: number 1\nuser: number 2\nuser: number 3" in asked.messages[-1]["content"]
    memory.add("number 4", user_id="u", timestamp="2025-03-05")
    facts = [call for call in chat.calls if call.task == "facts"][-1]
    assert facts.messages[-1]["content"] == (
        "Summary:\nThey talked.\n\nEarlier messages:\nuser: number 2\nuser: number 3\n\nInput:\nuser: number 4"
    )
    talk = memory._store.message_log
    scope = Scope("u")
    assert talk.latest_summary(scope, as_of="2025-03-03T00:00:00+00:00") is None
    assert talk.latest_summary(scope, as_of="2025-03-04T00:00:00+00:00") is not None


def test_the_next_summary_goes_on_from_the_last(talker: tuple[Memory, ScriptedChat]) -> None:
    memory, chat = talker
    for number in range(8):
        memory.add(f"number {number}", user_id="u")
        memory.flush(timeout=20)
    asked = [call.messages[-1]["content"] for call in chat.calls if call.task == "summary"]
    assert len(asked) == 2
    assert asked[1].startswith("Summary:\nThey talked.\n\nInput:\nuser: number 4")


def test_a_deleted_memory_leaves_the_summary_too(talker: tuple[Memory, ScriptedChat]) -> None:
    memory, chat = talker
    added = [memory.add(f"number {number}", user_id="u")["results"][0]["id"] for number in range(4)]
    assert memory.flush(timeout=20)
    memory.delete(added[0], purge=True)
    assert memory.flush(timeout=20)
    first, last = (call.messages[-1]["content"] for call in chat.calls if call.task == "summary")
    assert "number 0" in first
    assert "number 0" not in last
    assert "They talked" not in last  # it is made anew, not from the old one
    assert "number 1" in last


def test_a_conversation_is_one_scope_exactly(talker: tuple[Memory, ScriptedChat]) -> None:
    memory, chat = talker
    memory.add("in run one", user_id="u", run_id="one")
    memory.add("in run two", user_id="u", run_id="two")
    facts = [call for call in chat.calls if call.task == "facts"][-1]
    assert facts.messages[-1]["content"] == "Input:\nuser: in run two"


@pytest.mark.parametrize("steps", range(4))
def test_an_event_loop_ends_whatever_its_workers_are_at(tmp_path: Path, steps: int, truth: dict[str, Any]) -> None:
    """A worker that is woken in the moment in which the loop cancels it must not take this for another turn."""

    async def main() -> None:
        await memory.aadd("I keep bees.", user_id="maya", background=True)
        assert await memory.aflush(timeout=20)
        await asyncio.sleep(0.05)  # now the workers wait
        await memory._background.astart()
        for _ in range(steps):
            await asyncio.sleep(0)

    with Memory({"path": str(tmp_path), "background": QUICK, **truth}, embedder=HashEmbedder()) as memory:
        thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive()


def test_what_could_not_be_learnt_in_the_background_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    chat = ScriptedChat(lambda task, messages: {"facts": ["Keeps bees", 42]})
    with Memory({"path": str(tmp_path), "background": QUICK}, llm=chat, embedder=HashEmbedder()) as memory:
        memory.add("I keep bees.", user_id="maya", background=True)
        assert memory.flush(timeout=20)
    assert "skipped in the background: facts" in caplog.text
