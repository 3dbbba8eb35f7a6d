"""Imports: many messages at once, what as many adds would leave; cut short anywhere, they go on from there."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from mem0_core import (
    AsyncMemory,
    CallbackError,
    ConfigError,
    InputError,
    LimitError,
    Memory,
    ModelError,
    Scope,
    ScopeError,
)
from mem0_core.flow import StepRecord
from mem0_core.language._grammar import Grammar
from mem0_core.language._tokens import TokenizedText
from mem0_core.testing import HashEmbedder, ScriptedChat
from tests.support import MODES, MemoryDriver, Mode, open_memory, result_texts
from tests.unit.interchange import import_process as import_nursery

NURSERY = Path(import_nursery.__file__)
DAY = "2025-03-{:02}T12:00:00+00:00"
STORY: list[dict[str, Any]] = [
    {"role": "user", "name": name, "content": text, "timestamp": DAY.format(day), "metadata": {"turn": day}}
    for day, (name, text) in enumerate(
        [
            ("Ann", "I live in Porto."),
            ("Bob", "I like tea."),
            ("Ann", "I work at Google."),
            ("Bob", "What a day!"),
            ("Ann", "I moved to Berlin."),
            ("Bob", "i LIKE tea"),
            ("Ann", "I like tea."),
            ("Ann", "I moved to Porto."),
            ("Bob", "I don't like tea."),
            ("Bob", "I like ginger biscuits."),
            ("Ann", "I like biscuits of ginger and milk."),
            ("Ann", "I love ginger biscuits."),
            ("Bob", "I like dark ginger biscuits."),
        ],
        start=1,
    )
]


@pytest.fixture(params=MODES)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryDriver]:
    """A memory without a model."""
    with open_memory(tmp_path) as opened:
        yield MemoryDriver(opened, request.param)


class Fragile(HashEmbedder):
    """Breaks down at the n-th batch, and is well again afterwards."""

    def __init__(self, breaks_at: int) -> None:
        super().__init__()
        self.left = breaks_at

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        self.left -= 1
        if self.left == 0:
            raise ModelError("out of memory")
        return super().embed(texts, kind=kind)


def numbered(count: int) -> list[str]:
    return import_nursery.said(count)


def outcome(memory: Memory) -> Any:
    """Return the present and past contents of a memory, without values that differ between runs."""
    found = memory.get_all(user_id="u", limit=None)["results"]
    relations = [
        (r["source"], r["relationship"], r["destination"], r["weight"], r["valid_from"], r["valid_to"])
        for r in memory.relations(user_id="u", ended=True)
    ]
    spoken = memory._store.message_log.messages(Scope("u"))
    memories = [{key: value for key, value in one.items() if key != "id"} for one in found]
    return memories, sorted(relations, key=str), [(m.role, m.content, m.name, m.timestamp) for m in spoken]


# --- what it leaves ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 3, 256])
def test_it_leaves_what_as_many_adds_leave(memory: MemoryDriver, tmp_path: Path, chunk: int) -> None:
    with open_memory(tmp_path / "single") as single:
        for message in STORY:
            single.add([message], user_id="u", metadata={"source": "old"})
        wanted = outcome(single)
    result = memory.add_many(STORY, user_id="u", metadata={"source": "old"}, chunk=chunk)
    assert outcome(memory.memory) == wanted
    assert (result["added"], result["known"], result["skipped"], result["jobs"]) == (12, 1, [], 0)
    lived = [relation for relation in wanted[1] if relation[1] == "lives_in"]
    liked = [relation[:4] for relation in wanted[1] if "biscuits" in relation[2]]
    assert liked == [
        ("Ann", "likes", "ginger biscuits", 2),  # biscuits of ginger are the same
        ("Bob", "likes", "dark ginger biscuits", 1),  # a name that contains another is a name of its own
        ("Bob", "likes", "ginger biscuits", 1),
    ]
    assert [(place, since, until) for _, _, place, _, since, until in lived] == [
        ("Berlin", DAY.format(5), DAY.format(8)),
        ("Porto", DAY.format(1), DAY.format(5)),
        ("Porto", DAY.format(8), None),
    ]


def test_texts_and_messages_may_be_mixed(memory: MemoryDriver) -> None:
    memory.add_many(["I ski.", {"role": "assistant", "content": "Nice."}], user_id="u", run_id="r")
    kept = memory.get_all(user_id="u", limit=None)["results"]
    assert [(one["memory"], one["role"], one["run_id"]) for one in kept] == [
        ("I ski.", "user", "r"),
        ("Nice.", "assistant", "r"),
    ]
    assert result_texts(memory.search("Who skis?", user_id="u"))[0] == "I ski."


def test_what_was_said_before_is_known(memory: MemoryDriver) -> None:
    assert memory.add_many(["tea", "Tea!", "cake", "tea"], user_id="u", chunk=2)["known"] == 2
    again = memory.add_many(["tea", "milk"], user_id="u")
    assert (again["added"], again["known"]) == (1, 1)
    assert result_texts(memory.get_all(user_id="u", limit=None)) == ["tea", "cake", "milk"]


def test_what_is_not_said_is_skipped_with_its_reason(memory: MemoryDriver) -> None:
    result = memory.add_many(
        [
            {"role": "system", "content": "You are helpful."},
            "tea",
            " ",
            {"role": "tool", "content": "{}"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
        ],
        user_id="u",
        chunk=2,
    )
    assert result_texts(memory.get_all(user_id="u", limit=None)) == ["tea"]
    assert [skipped["reason"] for skipped in result["skipped"]] == [
        "messages[0] has the role 'system'",
        "messages[2] is empty",
        "messages[3] has the role 'tool'",
        "messages[4] is empty",
        "no model describes images",
    ]


def test_one_embedding_and_one_commit_per_chunk(tmp_path: Path) -> None:
    seen: list[StepRecord] = []
    with open_memory(tmp_path, graph=False, on_step=seen.append) as memory:
        memory.add_many(numbered(10), user_id="u", chunk=4)
    names = [step.call.name.rpartition(".")[2] for step in seen]
    assert names.count("embed") == names.count("commit") == 3
    assert [len(step.call.args[0]) for step in seen if step.call.name.endswith("embed")] == [4, 4, 2]


def test_the_rules_read_a_whole_chunk_at_once(tmp_path: Path) -> None:
    seen: list[StepRecord] = []
    places = [f"I was born in {name}." for name in ("Porto", "Berlin", "Rome", "Oslo")]
    with open_memory(tmp_path, on_step=seen.append) as memory:
        memory.add_many(places, user_id="u")
        assert len(memory.relations(user_id="u")) == 4
    names = [step.call.name.rpartition(".")[2] for step in seen]
    assert (names.count("commit"), names.count("embed")) == (1, 2)


def test_each_text_of_a_chunk_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"My friend Ann moved to Oslo, and house {number} is hers." for number in range(200)]
    read: Counter[str] = Counter()

    class CountedText(TokenizedText):
        def __init__(self, text: str, grammar: Grammar) -> None:
            read[text] += 1
            super().__init__(text, grammar)

    monkeypatch.setattr("mem0_core.language._tokens.TokenizedText", CountedText)
    with Memory({"path": tmp_path}, embedder=HashEmbedder()) as memory:
        memory.add_many(texts, user_id="maya", chunk=len(texts))
    assert {text: read[text] for text in texts} == dict.fromkeys(texts, 1)


def test_with_a_model_nothing_is_asked_and_no_relation_is_read(memory: MemoryDriver) -> None:
    chat = memory.memory._chat = memory.memory._graph_chat = ScriptedChat([])
    assert memory.add_many(STORY, user_id="u")["added"] == 12
    assert chat.calls == []
    assert memory.relations(user_id="u") == []


def test_progress_is_told(memory: MemoryDriver) -> None:
    told: list[Any] = []
    memory.add_many(numbered(5), user_id="u", chunk=2, on_progress=lambda *at: told.append(at))
    assert told == [(2, 5), (4, 5), (5, 5)]
    memory.add_many(iter(numbered(3)), user_id="v", chunk=2, on_progress=lambda *at: told.append(at))
    assert told[3:] == [(2, None), (3, None)]


def test_nothing_to_import_is_nothing(memory: MemoryDriver) -> None:
    assert memory.add_many([], user_id="u", key="k") == {
        "added": 0,
        "known": 0,
        "skipped": [],
        "jobs": 0,
        "resumed": 0,
    }


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ({"role": "nobody", "content": "x"}, r"messages\[9\] has the role"),
        ({"role": "user"}, r"messages\[9\] has no content"),
        (7, r"messages\[9\] must be a mapping"),
        ("\ud800", r"messages\[9\] is not valid Unicode"),
        ({"role": "user", "content": "x", "metadata": {"k": float("nan")}}, r"messages\[9\]"),
        ({"role": "user", "content": "x", "timestamp": "yesterday"}, r"messages\[9\]\.timestamp"),
    ],
)
def test_a_bad_message_is_named_before_anything_is_written(memory: MemoryDriver, bad: Any, what: str) -> None:
    with pytest.raises(InputError, match=what):
        memory.add_many([*numbered(9), bad, *numbered(3)], user_id="u", chunk=2, key="k")
    assert result_texts(memory.get_all(user_id="u", limit=None)) == []
    assert memory.add_many(numbered(1), user_id="u", key="k")["resumed"] == 0


@pytest.mark.parametrize("wrong", ["a text", b"bytes", {"role": "user", "content": "x"}, None, 3])
def test_one_message_is_no_list(memory: MemoryDriver, wrong: Any) -> None:
    with pytest.raises(InputError, match="list"):
        memory.add_many(wrong, user_id="u")


def test_wrong_arguments_are_named(memory: MemoryDriver) -> None:
    for arguments in ({"chunk": 0}, {"key": ""}, {"key": 3}, {"metadata": [1]}):
        with pytest.raises(InputError):
            memory.add_many(["tea"], user_id="u", **arguments)
    with pytest.raises(ScopeError):
        memory.add_many(["tea"])


def test_the_policy_and_the_limits_hold(tmp_path: Path) -> None:
    def policy(text: str, scope: Scope) -> str | None:
        return None if "secret" in text else text.replace("555-1234", "[phone]")

    with open_memory(tmp_path, policy=policy, config={"limits": {"message_chars": 50}}) as memory:
        result = memory.add_many(["call 555-1234", "a secret", "tea"], user_id="u")
        assert result_texts(memory.get_all(user_id="u", limit=None)) == ["call [phone]", "tea"]
        assert [skipped["reason"][:11] for skipped in result["skipped"]] == ["messages[1]"]
        with pytest.raises(LimitError, match=r"messages\[1\] has 51"):
            memory.add_many(["milk", "x" * 51], user_id="u")
        assert len(result_texts(memory.get_all(user_id="u", limit=None))) == 2


# --- going on ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_it_goes_on_after_an_error(tmp_path: Path, mode: Mode) -> None:
    with open_memory(tmp_path, embedder=Fragile(3), graph=False) as opened:
        memory = MemoryDriver(opened, mode)
        with pytest.raises(ModelError):
            memory.add_many(numbered(10), user_id="u", chunk=2, key="k")
        assert result_texts(memory.get_all(user_id="u", limit=None)) == numbered(4)
        told: list[Any] = []
        result = memory.add_many(numbered(10), user_id="u", chunk=4, key="k", on_progress=lambda *at: told.append(at))
        assert (result["resumed"], result["added"], result["known"]) == (4, 6, 0)
        assert told == [(8, 10), (10, 10)]
        assert result_texts(memory.get_all(user_id="u", limit=None)) == numbered(10)
        third = memory.add_many(numbered(10), user_id="u", key="k")
        assert (third["resumed"], third["added"], third["known"]) == (10, 0, 0)
        assert len(opened._store.message_log.messages(Scope("u"))) == 10


def test_an_iterator_goes_on_too(memory: MemoryDriver) -> None:
    def broken() -> Iterator[str]:
        yield from numbered(5)
        raise RuntimeError("the file ends here")

    with pytest.raises(CallbackError):
        memory.add_many(broken(), user_id="u", chunk=2, key="k")
    result = memory.add_many(iter(numbered(7)), user_id="u", chunk=2, key="k")
    assert (result["resumed"], result["added"]) == (4, 3)
    assert result_texts(memory.get_all(user_id="u", limit=None)) == numbered(7)


def test_a_key_is_of_one_import_into_one_scope(memory: MemoryDriver) -> None:
    memory.add_many(numbered(3), user_id="u", key="k")
    for scope in ({"user_id": "v"}, {"user_id": "u", "run_id": "r"}):
        assert memory.add_many(numbered(3), **scope, key="k")["added"] == 3
    assert memory.add_many(["another"], user_id="u", key="other")["added"] == 1
    with pytest.raises(InputError, match="has processed 3 messages, but only 2 are given"):
        memory.add_many(numbered(2), user_id="u", key="k")
    assert memory.add_many([*numbered(3), "and one"], user_id="u", key="k")["added"] == 1


def test_erasing_forgets_how_far_an_import_came(memory: MemoryDriver) -> None:
    for user in ("u", "v"):
        memory.add_many(numbered(3), user_id=user, key="k")
    memory.delete_all(user_id="u")
    assert memory.add_many(numbered(3), user_id="u", key="k")["added"] == 3
    assert memory.add_many(numbered(3), user_id="v", key="k")["resumed"] == 3
    memory.reset()
    assert memory.add_many(numbered(3), user_id="v", key="k")["added"] == 3


def test_messages_that_leave_nothing_count_as_done(memory: MemoryDriver) -> None:
    silent = [{"role": "system", "content": "Be kind."}] * 4
    memory.add_many(silent, user_id="u", chunk=2, key="k")
    assert memory.add_many([*silent, "tea"], user_id="u", key="k")["resumed"] == 4


def test_it_goes_on_after_a_kill(tmp_path: Path) -> None:
    """Killed again and again in the middle of a chunk, an import loses nothing and does nothing twice."""
    count, reached, kills = 40, 0, 0
    command = [sys.executable, str(NURSERY), str(tmp_path), str(count)]
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            told = [int(line) for _, line in zip(range(3), process.stdout, strict=False)]
            assert not told or told[0] > reached, "it goes on from where it was"
            reached = told[-1] if told else count
            if reached == count:
                assert process.wait() == 0
                break
            process.kill()
            kills += 1
    assert kills > 1
    with open_memory(tmp_path, embedder=HashEmbedder(dims=32)) as memory:
        assert result_texts(memory.get_all(user_id="u", limit=None)) == numbered(count)
        assert [m.content for m in memory._store.message_log.messages(Scope("u"))] == numbered(count)
        assert memory.add_many(numbered(count), user_id="u", key="import")["resumed"] == count


# --- put off ----------------------------------------------------------------------------------------------------------


def test_with_infer_each_message_is_put_off(tmp_path: Path) -> None:
    def model(task: str, messages: Any) -> Any:
        raise ModelError("down")

    config = {"background": {"drain": 0.0, "backoff": 60.0}}
    with open_memory(tmp_path, model, config=config) as memory:
        said = [*STORY, {"role": "system", "content": "Be kind."}]
        result = memory.add_many(said, user_id="u", metadata={"k": 1}, infer=True, chunk=4, key="k")
        assert (result["jobs"], result["added"]) == (len(STORY), 0)
        assert len(result["skipped"]) == 1
        jobs = memory._store.jobs.list_jobs(Scope("u"))
        assert [job.messages[0].content for job in jobs] == [message["content"] for message in STORY]
        assert [job.timestamp for job in jobs] == [message["timestamp"] for message in STORY]
        assert jobs[0].options["metadata"] == {"k": 1}
        again = memory.add_many(said, user_id="u", metadata={"k": 1}, infer=True, key="k")
        assert (again["jobs"], again["resumed"]) == (0, len(said))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_put_off_is_learnt(tmp_path: Path, mode: Mode) -> None:
    def model(task: str, messages: Any) -> Any:
        spoken = messages[-1]["content"].rpartition("Input:\n")[2].splitlines()
        facts = [line.partition(": ")[2] for line in spoken]
        if task == "facts":
            return {"facts": facts}
        return {"memory": [{"id": text, "text": text, "event": "ADD"} for text in numbered(6)]}

    async def main() -> None:
        memory = open_memory(tmp_path, model, config={"window": 0, "summary_every": 0, "background": {"batch": 6}})
        if mode == "async":
            await memory.aadd_many(numbered(6), user_id="u", infer=True)
            assert await memory.aflush(20)
            found = await memory.aget_all(user_id="u", limit=None)
            await memory.aclose()
        else:
            memory.add_many(numbered(6), user_id="u", infer=True)
            assert memory.flush(20)
            found = memory.get_all(user_id="u", limit=None)
            memory.close()
        assert sorted(result_texts(found)) == numbered(6)

    asyncio.run(main())


def test_infer_needs_a_model(memory: MemoryDriver) -> None:
    with pytest.raises(ConfigError, match="infer"):
        memory.add_many(["tea"], user_id="u", infer=True)


def test_the_async_memory_has_it_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncMemory({"path": str(tmp_path)}, embedder=HashEmbedder()) as memory:
            assert (await memory.add_many(numbered(3), user_id="u"))["added"] == 3

    asyncio.run(main())


def test_all_its_forms_are_documented() -> None:
    forms = (Memory.add_many, Memory.aadd_many, AsyncMemory.add_many)
    assert len({str(inspect.signature(form)) for form in forms}) == 1
    assert all(form.__doc__ for form in forms)
    assert inspect.signature(Memory.add_many).return_annotation == "AddManyResult"
