"""`ScriptedChat` and `HashEmbedder`: the doubles other tests, and users' own, are built on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from mem0_core.domain.records import Usage
from mem0_core.errors import ModelError
from mem0_core.flow import arun, do, run
from mem0_core.interfaces import ChatModel, Embedder, Reply, Tool, ToolCall
from mem0_core.testing import ChatCall, HashEmbedder, ScriptedChat

ASK = [{"role": "user", "content": "hello"}]


class Facts(BaseModel):
    facts: list[str]


# --- ScriptedChat ------------------------------------------------------------------------------------------------


def test_a_list_answers_in_order_in_every_form_a_reply_can_have() -> None:
    whole = Reply(text="whole", usage=Usage(3, 4))
    calls = {"tool_calls": [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": "{broken"}]}
    chat = ScriptedChat(["text", {"facts": ["Zoë likes tea"]}, calls, whole])
    assert isinstance(chat, ChatModel)
    assert chat.complete(ASK, task="facts") == Reply(text="text")
    assert chat.complete(ASK, task="facts") == Reply(text='{"facts": ["Zoë likes tea"]}')
    expected = (ToolCall("f", {"a": 1}), ToolCall("g", "{broken"))
    assert chat.complete(ASK, task="entities") == Reply(tool_calls=expected)
    assert chat.complete(ASK, task="summary") is whole


def test_an_error_in_the_script_is_raised() -> None:
    chat = ScriptedChat([ModelError("down"), "up"])
    with pytest.raises(ModelError, match="down"):
        chat.complete(ASK, task="facts")
    assert chat.complete(ASK, task="facts").text == "up"


def test_a_function_is_told_the_task_and_the_messages() -> None:
    def script(task: str, messages: Any) -> Any:
        if task == "summary":
            return ModelError("no summary")
        return {"facts": [messages[-1]["content"]]}

    chat = ScriptedChat(script)
    assert chat.complete(ASK, task="facts").text == '{"facts": ["hello"]}'
    with pytest.raises(ModelError, match="no summary"):
        chat.complete(ASK, task="summary")


def test_a_script_that_runs_out_names_the_task_asked() -> None:
    chat = ScriptedChat(["one"])
    chat.complete(ASK, task="facts")
    with pytest.raises(AssertionError, match="1 replies has none left for task 'operations'; asked before: facts"):
        chat.complete(ASK, task="operations")


def test_it_records_what_it_was_asked_as_it_was_asked() -> None:
    chat = ScriptedChat(lambda task, messages: "ok")
    tool = Tool("f", "A function.", {"type": "object"})
    messages = [{"role": "user", "content": "hello"}]
    chat.complete(messages, task="facts", schema=Facts, tools=[tool])
    messages[0]["content"] = "changed since"
    assert chat.calls == [ChatCall("facts", ({"role": "user", "content": "hello"},), Facts, (tool,))]


def test_threads_get_each_reply_once() -> None:
    chat = ScriptedChat([str(n) for n in range(200)])
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: chat.complete(ASK, task="facts").text, range(200)))
    assert sorted(replies, key=int) == [str(n) for n in range(200)]
    assert len(chat.calls) == 200


def test_it_runs_under_both_drivers() -> None:
    chat = ScriptedChat(["a", "b"])
    assert run(do(chat.complete, ASK, task="facts")).text == "a"
    assert asyncio.run(arun(do(chat.complete, ASK, task="facts"))).text == "b"


# --- HashEmbedder ------------------------------------------------------------------------------------------------

ODD_TEXTS = ["", " ", ":-)", "a", "A", "我喜欢爬山", "\ud800", "😀", "x" * 100_000, "naïve café", "\x00"]


@pytest.mark.parametrize("dims", [8, 60, 384])
def test_every_text_gets_a_unit_vector(dims: int) -> None:
    embedder = HashEmbedder(dims)
    assert isinstance(embedder, Embedder)
    vectors = embedder.embed(ODD_TEXTS)
    assert vectors.shape == (len(ODD_TEXTS), dims)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    assert embedder.embed([]).shape == (0, dims)


def test_texts_that_share_words_are_near() -> None:
    texts = [
        "The user likes pizza with olives",
        "Which pizza does the user like?",
        "The user works at a bank in Paris",
        "the USER likes pizza, with olives!",
    ]
    near = HashEmbedder().embed(texts)
    cosines = near[0] @ near.T
    assert cosines[3] == pytest.approx(1)
    assert cosines[1] > 0.4
    assert cosines[2] < cosines[1] - 0.2


def test_parts_of_words_and_words_without_spaces_count_too() -> None:
    embedder = HashEmbedder()
    climb, climbing, banker, likes_hills, he_likes_hills, works = embedder.embed(
        ["climb", "climbing", "banker", "我喜欢爬山", "他喜欢爬山", "银行工作"]
    )
    assert climb @ climbing > 0.15 > abs(climb @ banker)
    assert likes_hills @ he_likes_hills > 0.7 > 0.3 > abs(likes_hills @ works)


def test_texts_of_no_words_are_still_told_apart() -> None:
    smile, frown, empty = HashEmbedder().embed([":-)", ":-(", ""])
    assert smile @ frown < 0.5
    assert smile @ empty < 0.5


def test_the_vectors_are_the_same_in_every_process() -> None:
    code = (
        "from mem0_core.testing import HashEmbedder\n"
        "print(HashEmbedder().embed(['Alice climbs', '我喜欢爬山', '']).tobytes().hex())"
    )
    results = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
        for env in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"}, {"OPENBLAS_CORETYPE": "Prescott"})
    }
    assert len(results) == 1
    ours = HashEmbedder().embed(["Alice climbs", "我喜欢爬山", ""]).tobytes().hex()
    assert results == {ours + "\n"}


def test_the_name_says_which_space_it_is() -> None:
    assert HashEmbedder().name == HashEmbedder().name != HashEmbedder(64).name
    assert HashEmbedder(name="mine").name == "mine"
    with pytest.raises(ValueError, match="dims"):
        HashEmbedder(0)


def test_a_word_is_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = HashEmbedder()
    first = embedder.embed(["I like climbing in the Alps on weekends"])

    def hash_again(feature: str) -> None:
        raise AssertionError(f"{feature} was hashed before")

    monkeypatch.setattr(embedder, "_feature_direction", hash_again)
    np.testing.assert_array_equal(embedder.embed(["I like climbing in the Alps on weekends"]), first)


def test_threads_agree_and_the_memory_of_words_is_bounded() -> None:
    embedder = HashEmbedder(64)
    texts = [f"word{n} shared" for n in range(12_000)]
    with ThreadPoolExecutor(4) as pool:
        parts = list(pool.map(embedder.embed, [texts[at::4] for at in range(4)]))
    assert len(embedder._word_vectors) <= 10_003
    np.testing.assert_array_equal(parts[1], HashEmbedder(64).embed(texts[1::4]))
