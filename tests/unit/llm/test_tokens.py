"""Tokens: estimated so as not to be too few, counted where a vocabulary is at hand, and nothing is ever downloaded."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from mem0_core.llm import tokens
from mem0_core.llm.tokens import estimate_tokens, make_token_counter
from mem0_core.providers.openai import OpenAIChat

ENGLISH = """\
Caroline is researching adoption agencies, and hopes to have an answer by the end of next month. She's excited!
I moved to Porto last week; the flat is small, but it has a balcony and a view of the river. What about you?
The quarterly report (Q3, 2024) shows that revenue rose by 12.5% to $4,300,000, mostly thanks to new customers."""
RUSSIAN = """\
Я переехал в Берлин в мае прошлого года, потому что нашёл там работу. Квартира небольшая, зато рядом парк.
Мой брат живёт в Москве и работает врачом в детской больнице; по выходным он играет в шахматы.
Не ем мяса уже пять лет, но рыбу иногда могу. А вы что любите?"""
CHINESE = """\
我上周搬到了上海，公寓不大，但是离公司很近，每天走路上班。
我的妹妹是医生，在儿童医院工作，周末喜欢打羽毛球和看电影。
他对花生过敏，所以点菜的时候一定要提醒服务员。"""
CODE = '''\
def nearest(self, scope: Scope, queries: NDArray[np.float32], k: int) -> list[list[tuple[int, float]]]:
    """For each query up to k (row, cosine), best first."""
    with self._lock:
        if not (rows := self._rows.get(scope)):
            return [[] for _ in queries]
        return [self._best(query @ rows.T, k) for query in queries]  # (n, dims) @ (dims, m)
for (const [key, value] of Object.entries(options)) { if (value !== undefined) params.append(key, String(value)); }
SELECT m.row, m.text FROM memories AS m JOIN vectors USING (row) WHERE user_id = ? AND seq > 1000 ORDER BY seq'''
JSON_LINES = "\n".join(
    json.dumps({"memory": line, "from": "user", "date": "2025-07-28"}, ensure_ascii=False)
    for text in (ENGLISH, RUSSIAN, CHINESE)
    for line in text.splitlines()
)
TEXTS = {
    "English": ENGLISH,
    "Russian": RUSSIAN,
    "Chinese": CHINESE,
    "code": CODE,
    "memory lines": JSON_LINES,
    "German": "Ich wohne seit drei Jahren in Berlin und fahre jeden Tag mit dem Fahrrad zur Arbeit. Schöne Grüße!",
    "Polish": "Mieszkam w Krakowie od trzech lat i codziennie jeżdżę rowerem do pracy. Nie lubię zimnej pogody.",
    "Greek": "Μένω στην Αθήνα εδώ και τρία χρόνια και πηγαίνω στη δουλειά με το ποδήλατο κάθε μέρα.",
    "Arabic": "أعيش في القاهرة منذ ثلاث سنوات وأذهب إلى العمل بالدراجة كل يوم.",
    "Hindi": "मैं तीन साल से दिल्ली में रहता हूँ और हर दिन साइकिल से काम पर जाता हूँ।",
    "Japanese": "三年前から東京に住んでいて、毎日自転車で会社に通っています。",
    "Korean": "저는 삼 년째 서울에 살고 있으며 매일 자전거로 출근합니다.",
    "Thai": "ฉันอาศัยอยู่ในกรุงเทพฯ มาสามปีแล้ว และปั่นจักรยานไปทำงานทุกวัน",
    "Georgian": "სამი წელია თბილისში ვცხოვრობ და ყოველდღე ველოსიპედით დავდივარ სამსახურში.",
    "identifiers": "018f3a5c-7b1e-7c3d-9a44-5be0f1d2c3a4 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b8",
    "numbers": "+351 912 345 678, 4111 1111 1111 1111, 3.14159265358979, 2025-07-28T20:40:00+00:00",
    "emoji": "😀🎉👍🏽🇵🇹👨‍👩‍👧🌊",
    "blank": "x\n\n\n\t\t\t        y",
}


@pytest.fixture(scope="module")
def vocabularies() -> Path:
    """The folder of vocabularies that LlamaIndex brings, in the form of tiktoken's cache."""
    pytest.importorskip("tiktoken")
    spec = importlib.util.find_spec("llama_index.core")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "_static" / "tiktoken_cache"


@pytest.fixture
def cached(vocabularies: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocabularies))
    return vocabularies


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def of_library(name: str) -> Callable[[str], int]:
    import tiktoken

    encoding = tiktoken.get_encoding(name)
    return lambda text: len(encoding.encode_ordinary(text))


# --- estimated ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_the_estimate_is_never_below_what_gpt_models_count(cached: Path, name: str, kind: str) -> None:
    assert estimate_tokens(TEXTS[kind]) >= of_library(name)(TEXTS[kind])


@pytest.mark.parametrize("kind", ["English", "Russian", "Chinese", "code", "memory lines"])
def test_nor_below_a_vocabulary_of_wordpieces(kind: str) -> None:
    spec = importlib.util.find_spec("mem0_models")
    if spec is None or spec.origin is None:
        pytest.skip("mem0-models is not installed")
    wordpieces = Tokenizer.from_file(str(Path(spec.origin).parent / "all_minilm_l6_v2" / "tokenizer.json"))
    wordpieces.no_truncation()
    wordpieces.no_padding()
    assert estimate_tokens(TEXTS[kind]) >= len(wordpieces.encode(TEXTS[kind], add_special_tokens=False).ids)


@pytest.mark.parametrize("kind", ["English", "code", "memory lines"])
def test_the_estimate_is_not_far_above_either(cached: Path, kind: str) -> None:
    """Or most of a budget would stay empty."""
    assert estimate_tokens(TEXTS[kind]) <= 2 * of_library("cl100k_base")(TEXTS[kind])


def test_an_empty_text_takes_no_tokens() -> None:
    assert estimate_tokens("") == 0


@given(st.text('ab1 .\n\t\x1c\x7f{"', max_size=60) | st.text(st.characters(max_codepoint=127)))
def test_ascii_is_counted_as_any_text_is(text: str) -> None:
    assert len(text.translate(tokens._BUT_SIGNS)) == len(tokens._SIGN.findall(text))
    assert tokens._ascii_blanks(text) == len(tokens._BLANK.findall(text))


@given(st.text(), st.text())
def test_lines_together_are_not_estimated_higher_than_each_by_itself(first: str, second: str) -> None:
    assert estimate_tokens(f"{first}\n{second}") <= estimate_tokens(first) + 1 + estimate_tokens(second)


@given(st.text())
def test_no_text_is_estimated_at_more_than_its_bytes_and_one(text: str) -> None:
    assert estimate_tokens(text) <= len(text.encode("utf-8", "surrogatepass")) + 1


# --- counted -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-4.1-mini", "o200k_base"),
        ("openai/gpt-4o", "o200k_base"),
        ("ft:gpt-4o-mini-2024-07-18:us::1", "o200k_base"),
        ("gpt-oss-20b", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-3.5-turbo-0125", "cl100k_base"),
    ],
)
def test_a_model_whose_vocabulary_is_here_is_counted_by_it(cached: Path, offline: None, model: str, name: str) -> None:
    count, expected = make_token_counter(model), of_library(name)
    assert [count(text) for text in TEXTS.values()] == [expected(text) for text in TEXTS.values()]
    assert count("<|endoftext|>") == expected("<|endoftext|>") > 1, "data, not a special token"


@pytest.mark.parametrize("model", ["llama3.2", "claude-sonnet-4", "m", ""])
def test_other_models_are_estimated(cached: Path, offline: None, model: str) -> None:
    assert make_token_counter(model) is estimate_tokens


@pytest.mark.parametrize("variable", ["TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR", "neither"])
def test_without_its_vocabulary_a_model_is_estimated_and_nothing_is_downloaded(
    vocabularies: Path, offline: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path
    if variable == "neither":
        folder = tmp_path / "data-gym-cache"
    else:
        monkeypatch.setenv(variable, str(tmp_path))
    assert make_token_counter("gpt-4") is estimate_tokens
    assert list(tmp_path.iterdir()) == []
    shutil.copytree(vocabularies, folder, dirs_exist_ok=True)
    assert make_token_counter("gpt-4") is not estimate_tokens, "it came meanwhile"


def test_a_damaged_vocabulary_is_left_alone(
    vocabularies: Path, offline: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Tiktoken would remove it and download another."""
    for file in vocabularies.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes()[:-100])
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert make_token_counter("gpt-4o") is estimate_tokens
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in vocabularies.iterdir()}


def test_a_cache_that_is_switched_off_is_no_folder(offline: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert make_token_counter("gpt-4o") is estimate_tokens


def test_without_tiktoken_tokens_are_estimated(cached: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert make_token_counter("gpt-4o") is estimate_tokens


def test_a_chat_model_counts_by_its_name(cached: Path, offline: None) -> None:
    pytest.importorskip("openai")
    url = "http://localhost:1/v1"
    assert OpenAIChat("gpt-4o", base_url=url).count_tokens(ENGLISH) == of_library("o200k_base")(ENGLISH)
    assert OpenAIChat("qwen3", base_url=url).count_tokens(ENGLISH) == estimate_tokens(ENGLISH)
