"""`TransformersChat` on tiny random models; needs torch, so it runs in an environment of its own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mem0_core.components import build_component
from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.interfaces import ChatModel
from mem0_core.providers.transformers import TransformersChat
from tests.blocked_sockets import no_network
from tests.support import MODES, MemoryDriver, Mode, open_memory
from tests.tiny_models import QUESTION_MESSAGES, SAMPLE_TOOLS, TinyFacts, check_calls, save_llama

HERE = all(importlib.util.find_spec(name) is not None for name in ("torch", "transformers", "llguidance"))


@pytest.fixture(autouse=True)
def _offline() -> Iterator[None]:
    with no_network():
        yield


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch

    torch.set_num_threads(1)  # for so small a model more of them only wait for one another
    return save_llama(tmp_path_factory.mktemp("models") / "tiny-llama")


def chat(model: Path, **options: Any) -> TransformersChat:
    return TransformersChat(model, **{"temperature": 1.0, "seed": 5, "max_tokens": 300, "device": "cpu", **options})


@pytest.mark.torch
@pytest.mark.skipif(not HERE, reason="transformers is not installed (nox -s tests_torch)")
class TestTransformers:
    def test_a_random_model_keeps_to_a_schema(self, tiny: Path) -> None:
        """Nothing but the constraint can make it: without one, the same model says nothing like it."""
        seen = set()
        for seed in range(3):
            model = chat(tiny, seed=seed)
            reply = model.complete(QUESTION_MESSAGES, task="facts", schema=TinyFacts)
            TinyFacts.model_validate_json(reply.text, strict=True)
            seen.add(reply.text)
            with pytest.raises(ValueError):
                json.loads(model.complete(QUESTION_MESSAGES, task="facts").text)
        assert len(seen) > 1

    def test_the_likeliest_answer_keeps_to_it_too(self, tiny: Path) -> None:
        said = {
            chat(tiny, temperature=0).complete(QUESTION_MESSAGES, task="facts", schema=TinyFacts).text for _ in range(2)
        }
        assert len(said) == 1
        TinyFacts.model_validate_json(said.pop(), strict=True)

    def test_tools_are_called_by_name_with_arguments_that_fit(self, tiny: Path) -> None:
        model = chat(tiny, seed=None)
        check_calls(
            [
                call
                for _ in range(8)
                for call in model.complete(QUESTION_MESSAGES, task="t", tools=SAMPLE_TOOLS).tool_calls
            ]
        )

    def test_a_seed_repeats_an_answer_and_leaves_the_process_its_own_draws(self, tiny: Path) -> None:
        import torch

        torch.manual_seed(1)
        expected = torch.rand(3).tolist()
        torch.manual_seed(1)
        say = [chat(tiny).complete([{"role": "user", "content": text}], task="t").text for text in ("a", "a", "b")]
        assert say[0] == say[1] != say[2]
        assert torch.rand(3).tolist() == expected

    def test_tokens_are_counted_by_the_models_vocabulary(self, tiny: Path) -> None:
        model = chat(tiny)
        assert isinstance(model, ChatModel)
        assert model.count_tokens("tea") == 3  # a byte is a token here
        assert model.count_tokens("é") == 2
        short, long = (model.complete([{"role": "user", "content": "x" * n}], task="t").usage for n in (10, 110))
        assert short
        assert long
        assert long.input_tokens - short.input_tokens == 100
        assert 0 < short.output_tokens <= 300

    def test_the_prompt_is_what_the_template_makes_of_the_messages(self, tiny: Path) -> None:
        usage = chat(tiny).complete([{"role": "user", "content": "tea"}], task="t").usage
        assert usage
        # <|user|>, a line, the text, the end of the turn (one token), a line, <|assistant|>, a line
        assert usage.input_tokens == len("<|user|>\ntea") + 1 + len("\n<|assistant|>\n")

    def test_no_text_can_end_its_turn(self, tiny: Path) -> None:
        counts = []
        for text in ("I like tea", "I like tea</s>"):
            usage = chat(tiny).complete([{"role": "user", "content": text}], task="t").usage
            assert usage
            counts.append(usage.input_tokens)
        assert counts[1] - counts[0] == len("< /s>")

    def test_a_template_that_takes_no_system_message_gets_its_words_in_the_first_turn(self, tmp_path: Path) -> None:
        refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        refusing += "{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}{% endfor %}"
        usage = chat(save_llama(tmp_path, template=refusing)).complete(QUESTION_MESSAGES, task="facts").usage
        assert usage
        assert usage.input_tokens == len("[user]Answer in JSON.\n\nI like tea.")
        never = "{{ raise_exception('not today') }}"
        with pytest.raises(ModelError, match="its chat template refuses the messages of 'facts': not today"):
            chat(tmp_path, chat_template=never).complete(QUESTION_MESSAGES, task="facts")

    def test_without_a_template_none_is_guessed(self, tmp_path: Path) -> None:
        save_llama(tmp_path, template=None)
        with pytest.raises(ConfigError, match="has no chat template: pass chat_template"):
            chat(tmp_path).complete(QUESTION_MESSAGES, task="facts")

    def test_the_context_limits_prompt_and_answer(self, tiny: Path) -> None:
        with pytest.raises(ModelError, match=r"the prompt has \d+ tokens, but the context holds 64"):
            chat(tiny, context=64).complete([{"role": "user", "content": "x" * 100}], task="facts")
        reply = chat(tiny, context=64, seed=1).complete([{"role": "user", "content": "x"}], task="t", schema=TinyFacts)
        assert reply.usage
        assert reply.usage.input_tokens + reply.usage.output_tokens <= 64
        large = chat(tiny, context=10**6)
        large.count_tokens("load")
        assert large._context_limit() == 4096

    def test_threads_take_turns(self, tiny: Path) -> None:
        model = chat(tiny, seed=None)
        with ThreadPoolExecutor(4) as pool:
            said = list(
                pool.map(lambda _: model.complete(QUESTION_MESSAGES, task="facts", schema=TinyFacts).text, range(4))
            )
        assert all(TinyFacts.model_validate_json(text) for text in said)

    def test_what_is_no_model_is_told_as_such(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        for model in (tmp_path, Path("nobody/nothing")):
            with pytest.raises(ModelError, match="cannot be loaded"):
                chat(model).complete(QUESTION_MESSAGES, task="facts")

    def test_a_model_larger_than_its_tokenizer_never_says_what_has_no_text(self, tmp_path: Path) -> None:
        save_llama(tmp_path, padding=61)
        for seed in range(3):
            reply = chat(tmp_path, seed=seed).complete(QUESTION_MESSAGES, task="facts", schema=TinyFacts)
            TinyFacts.model_validate_json(reply.text, strict=True)

    @pytest.mark.parametrize("mode", MODES)
    def test_a_memory_asks_it(self, tiny: Path, tmp_path: Path, mode: Mode) -> None:
        keys = {"model": str(tiny), "temperature": 1.0, "seed": 1, "max_tokens": 60, "device": "cpu"}
        with open_memory(tmp_path, config={"llm": {"provider": "transformers", "config": keys}}) as memory:
            added = MemoryDriver(memory, mode).add("I like tea in Porto", user_id="u")
        assert added["usage"]["llm_calls"] >= 1
        assert added["usage"]["input_tokens"] > 100
        assert added["results"] or added["skipped"]


# --- without the library -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "keys", [{"context": 0}, {"max_tokens": 0}, {"temperature": -1}, {"modle": "x"}], ids=lambda keys: next(iter(keys))
)
def test_a_wrong_key_is_named_before_anything_is_loaded(keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(keys))):
        build_component("llm", {"provider": "transformers", "config": {"model": "x", **keys}})


def test_nothing_is_imported_until_it_is_used_and_the_missing_library_is_named() -> None:
    code = (
        "import sys\n"
        "from mem0_core.providers.transformers import TransformersChat\n"
        "model = TransformersChat('x/y')\n"
        "assert not {'torch', 'transformers', 'llguidance'} & set(sys.modules)\n"
        "sys.modules['transformers'] = None\n"
        "try: model.complete([{'role': 'user', 'content': 'a'}], task='facts')\n"
        "except ImportError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == str(MissingExtraError("transformers", "transformers"))
