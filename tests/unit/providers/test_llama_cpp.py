"""`LlamaCppChat` on a tiny GGUF that the tests write; needs llama-cpp-python, which has a session of its own."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from mem0_core.components import build_component
from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.interfaces import ChatModel, Reply
from mem0_core.providers.llama_cpp import LlamaCppChat, find_gguf_file
from tests.blocked_sockets import no_network
from tests.support import MODES, MemoryDriver, Mode, open_memory, run_python
from tests.tiny_models import QUESTION_MESSAGES, SAMPLE_TOOLS, TinyFacts, check_calls, save_gguf

HERE = all(importlib.util.find_spec(name) is not None for name in ("llama_cpp", "gguf"))


@pytest.fixture(autouse=True)
def _offline() -> Iterator[None]:
    with no_network():
        yield


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_gguf(tmp_path_factory.mktemp("models") / "tiny.gguf")


def chat(model: Path, **options: Any) -> LlamaCppChat:
    return LlamaCppChat(model, **{"temperature": 1.0, "seed": 5, "max_tokens": 400, "threads": 1, **options})


@pytest.mark.gguf
@pytest.mark.skipif(not HERE, reason="llama-cpp-python is not installed (nox -s gguf)")
class TestGguf:
    def test_a_random_model_keeps_to_a_schema(self, tiny: Path) -> None:
        """Nothing but the grammar can make it: without one, the same model says nothing like it."""
        seen = set()
        for seed in range(5):
            model = chat(tiny, seed=seed)
            reply = model.complete(QUESTION_MESSAGES, task="facts", schema=TinyFacts)
            TinyFacts.model_validate_json(reply.text, strict=True)
            seen.add(reply.text)
            with pytest.raises(ValueError):
                json.loads(model.complete(QUESTION_MESSAGES, task="facts").text)
        assert len(seen) > 1

    def test_tools_are_called_by_name_with_arguments_that_fit(self, tiny: Path) -> None:
        replies = [chat(tiny, seed=seed).complete(QUESTION_MESSAGES, task="t", tools=SAMPLE_TOOLS) for seed in range(8)]
        check_calls([call for reply in replies for call in reply.tool_calls])

    def test_what_it_says_depends_on_the_messages_and_a_seed_repeats_it(self, tiny: Path) -> None:
        say = [
            chat(tiny).complete([{"role": "user", "content": text}], task="summary").text for text in ("a", "a", "b")
        ]
        assert say[0] == say[1] != say[2]

    def test_tokens_are_counted_by_the_models_vocabulary(self, tiny: Path) -> None:
        model = chat(tiny)
        assert isinstance(model, ChatModel)
        assert model.count_tokens("tea") == 3  # a byte is a token here
        assert model.count_tokens("é") == 2
        short, long = (model.complete([{"role": "user", "content": "x" * n}], task="t").usage for n in (10, 110))
        assert short
        assert long
        assert long.input_tokens - short.input_tokens == 100
        assert 0 < short.output_tokens <= 400

    def test_an_answer_ends_at_max_tokens(self, tiny: Path, caplog: pytest.LogCaptureFixture) -> None:
        class Long(BaseModel):
            text: Annotated[str, Field(min_length=50)]

        reply = chat(tiny, max_tokens=20).complete(QUESTION_MESSAGES, task="summary", schema=Long)
        assert reply.usage
        assert 20 <= reply.usage.output_tokens <= 23  # the letter it is at is finished: four bytes at most
        assert "truncated at summary, after 2" in caplog.text

    def test_a_prompt_longer_than_the_context_is_refused_with_both_numbers(self, tiny: Path) -> None:
        with pytest.raises(ModelError, match=r"\(\d+\) exceed context window of 256; give it a larger `context`"):
            chat(tiny, context=256).complete([{"role": "user", "content": "x" * 300}], task="facts")

    def test_the_context_is_what_the_model_was_trained_for_if_that_is_less(self, tmp_path: Path) -> None:
        model = chat(save_gguf(tmp_path / "short.gguf", context=512))
        model.count_tokens("load")
        assert model._llama.n_ctx() == 512

    def test_no_text_can_end_its_turn(self, tiny: Path) -> None:
        model = chat(tiny)
        counts = []
        for text in ("I like tea", "I like tea</s>"):
            usage = model.complete([{"role": "user", "content": text}], task="t").usage
            assert usage
            counts.append(usage.input_tokens)
        assert counts[1] - counts[0] == model.count_tokens("< /s>") > 1  # it is text, and no marker

    def test_a_template_that_takes_no_system_message_gets_its_words_in_the_first_turn(self, tmp_path: Path) -> None:
        refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        refusing += "{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}{% endfor %}"
        model = chat(save_gguf(tmp_path / "gemma.gguf", template=refusing))
        usage = model.complete(QUESTION_MESSAGES, task="facts").usage
        assert usage
        expected = "[user]Answer in JSON.\n\nI like tea."
        assert usage.input_tokens == model.count_tokens(expected)

    def test_a_template_is_given_as_text_or_as_a_file(self, tiny: Path, tmp_path: Path) -> None:
        template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
        (tmp_path / "chat.jinja").write_text(template)
        for given in (template, tmp_path / "chat.jinja"):
            usage = chat(tiny, chat_template=given).complete([{"role": "user", "content": "tea"}], task="t").usage
            assert usage
            assert usage.input_tokens == 3

    def test_without_a_template_none_is_guessed(self, tmp_path: Path) -> None:
        bare = save_gguf(tmp_path / "bare.gguf", template=None)
        with pytest.raises(ConfigError, match="has no chat template: pass chat_template or chat_format"):
            chat(bare).complete(QUESTION_MESSAGES, task="facts")
        with pytest.raises(ConfigError, match="chat_format: Invalid chat handler: chatmll"):
            chat(bare, chat_format="chatmll").complete(QUESTION_MESSAGES, task="facts")
        assert chat(bare, chat_format="chatml").complete(QUESTION_MESSAGES, task="facts").usage

    def test_a_folder_is_as_good_as_the_file_in_it(self, tmp_path: Path) -> None:
        save_gguf(tmp_path / "model.gguf")
        assert chat(tmp_path).count_tokens("tea") == 3

    def test_what_is_no_model_is_told_as_such(self, tiny: Path, tmp_path: Path) -> None:
        (tmp_path / "broken.gguf").write_bytes(b"GGUF" + b"\0" * 64)
        with pytest.raises(ModelError, match=r"broken\.gguf cannot be loaded"):
            chat(tmp_path / "broken.gguf").complete(QUESTION_MESSAGES, task="facts")
        with pytest.raises(ConfigError, match=r"options: llama_cpp\.Llama has no n_ctxx"):
            chat(tiny, options={"n_ctxx": 1}).complete(QUESTION_MESSAGES, task="facts")

    def test_images_are_refused(self, tiny: Path) -> None:
        content = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
        with pytest.raises(ModelError, match="reads text only, not image_url"):
            chat(tiny).complete([{"role": "user", "content": content}], task="describe_image")

    def test_threads_take_turns_and_a_closed_model_loads_again(self, tiny: Path) -> None:
        model = chat(tiny)
        first = model.complete(QUESTION_MESSAGES, task="facts", schema=TinyFacts).text
        with ThreadPoolExecutor(4) as pool:
            said = list(
                pool.map(lambda _: model.complete(QUESTION_MESSAGES, task="facts", schema=TinyFacts).text, range(8))
            )
        assert all(TinyFacts.model_validate_json(text) for text in [first, *said])
        model.close()
        assert TinyFacts.model_validate_json(model.complete(QUESTION_MESSAGES, task="facts", schema=TinyFacts).text)

    @pytest.mark.parametrize("mode", MODES)
    def test_a_memory_asks_it_and_accounts_for_all_that_it_said(
        self, tiny: Path, tmp_path: Path, mode: Mode, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said: list[str] = []
        complete = LlamaCppChat.complete

        def record(model: LlamaCppChat, *args: Any, **kwargs: Any) -> Reply:
            reply = complete(model, *args, **kwargs)
            said.append(reply.text)
            return reply

        monkeypatch.setattr(LlamaCppChat, "complete", record)
        keys = {"model": str(tiny), "temperature": 1.0, "max_tokens": 150}
        for seed in range(3):
            spec = {"provider": "llama_cpp", "config": {**keys, "seed": seed}}
            said.clear()
            with open_memory(tmp_path / str(seed), config={"llm": spec}) as memory:
                added = MemoryDriver(memory, mode).add("I like tea in Porto", user_id="u")
            assert added["usage"]["llm_calls"] == len(said)
            assert added["usage"]["input_tokens"] > 100
            assert said[0].startswith("{")
            if "".join(said[0].split()) != '{"facts":[]}':  # a random model hardly states a fact
                assert added["results"] or added["skipped"]


# --- without the library -----------------------------------------------------------------------------------------


def test_the_file_in_a_folder(tmp_path: Path) -> None:
    for name in ("mmproj-model.gguf", "readme.md", "big-00002-of-00003.gguf", "big-00003-of-00003.gguf"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(ConfigError, match=r"has no \.gguf file"):
        find_gguf_file(tmp_path)
    (tmp_path / "big-00001-of-00003.gguf").write_bytes(b"")
    assert find_gguf_file(tmp_path).name == "big-00001-of-00003.gguf"
    (tmp_path / "small.gguf").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"has big-00001-of-00003\.gguf, small\.gguf: name the file to use"):
        find_gguf_file(tmp_path)
    assert find_gguf_file(tmp_path / "small.gguf").name == "small.gguf"
    with pytest.raises(ConfigError, match="there is no file or folder"):
        find_gguf_file(tmp_path / "missing")


@pytest.mark.parametrize(
    "keys",
    [{"context": 0}, {"threads": 0}, {"max_tokens": 0}, {"temperature": -1}, {"modle": "x"}],
    ids=lambda keys: next(iter(keys)),
)
def test_a_wrong_key_is_named_before_anything_is_loaded(keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(keys))):
        build_component("llm", {"provider": "llama_cpp", "config": {"model": "x", **keys}})


def test_nothing_is_imported_until_it_is_used_and_the_missing_library_is_named() -> None:
    code = (
        "import sys\n"
        "from mem0_core.providers.llama_cpp import LlamaCppChat\n"
        "model = LlamaCppChat('x.gguf')\n"
        "assert 'llama_cpp' not in sys.modules\n"
        "sys.modules['llama_cpp'] = None\n"
        "try: model.complete([{'role': 'user', 'content': 'a'}], task='facts')\n"
        "except ImportError as error: print(error)"
    )
    told = run_python(code)
    assert told.strip() == str(MissingExtraError("llama-cpp-python", "gguf"))
