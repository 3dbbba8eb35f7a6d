"""`OpenVinoChat` on a tiny model that the tests write; runs where transformers is, which makes its tokenizer."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mem0_core.components import build_component
from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.interfaces import ChatModel
from mem0_core.providers.openvino import OpenVinoChat
from tests.blocked_sockets import no_network
from tests.support import MODES, MemoryDriver, Mode, open_memory, run_python
from tests.tiny_models import QUESTION_MESSAGES, SAMPLE_TOOLS, TinyFacts, check_calls, save_openvino

HERE = all(importlib.util.find_spec(name) is not None for name in ("openvino_genai", "transformers"))


@pytest.fixture(autouse=True)
def _offline() -> Iterator[None]:
    with no_network():
        yield


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_openvino(tmp_path_factory.mktemp("models") / "tiny-openvino")


def chat(model: Path, **options: Any) -> OpenVinoChat:
    return OpenVinoChat(model, **{"temperature": 1.0, "seed": 5, "max_tokens": 1000, **options})


@pytest.mark.torch
@pytest.mark.skipif(not HERE, reason="openvino-genai is not installed (nox -s tests_torch)")
class TestOpenVino:
    def test_a_random_model_keeps_to_a_schema(self, tiny: Path) -> None:
        seen = set()
        for seed in range(4):
            model = chat(tiny, seed=seed)
            text = model.complete(QUESTION_MESSAGES, task="facts", schema=TinyFacts).text
            # Its grammars let control characters into texts of bounded length.
            seen.add(TinyFacts.model_validate(json.loads(text, strict=False)).model_dump_json())
            assert not model.complete(QUESTION_MESSAGES, task="facts").text.lstrip().startswith("{")
        assert len(seen) > 1

    def test_tools_are_called_by_name_with_arguments_that_fit(self, tiny: Path) -> None:
        replies = [
            chat(tiny, seed=seed).complete(QUESTION_MESSAGES, task="t", tools=SAMPLE_TOOLS) for seed in range(12)
        ]
        check_calls([call for reply in replies for call in reply.tool_calls])

    def test_tokens_are_counted_by_the_models_vocabulary(self, tiny: Path) -> None:
        model = chat(tiny, max_tokens=20)
        assert isinstance(model, ChatModel)
        assert model.count_tokens("tea") == 3  # a byte is a token here
        usage = model.complete([{"role": "user", "content": "tea"}], task="t").usage
        assert usage
        assert usage.input_tokens == len("<|user|>\ntea") + 1 + len("\n<|assistant|>\n")
        assert 0 < usage.output_tokens <= 20

    def test_a_seed_repeats_an_answer(self, tiny: Path) -> None:
        one, same, other = (chat(tiny, seed=seed).complete(QUESTION_MESSAGES, task="t").text for seed in (1, 1, 2))
        assert one == same != other

    def test_no_text_can_end_its_turn(self, tiny: Path) -> None:
        counts = []
        for text in ("I like tea", "I like tea</s>"):
            usage = chat(tiny).complete([{"role": "user", "content": text}], task="t").usage
            assert usage
            counts.append(usage.input_tokens)
        assert counts[1] - counts[0] == len("< /s>")

    def test_the_context_limits_prompt_and_answer(self, tiny: Path) -> None:
        with pytest.raises(ModelError, match=r"the prompt has \d+ tokens, but the context holds 64"):
            chat(tiny, context=64).complete([{"role": "user", "content": "x" * 100}], task="facts")

    def test_a_template_that_refuses_the_system_message_and_one_that_refuses_all(self, tiny: Path) -> None:
        refusing = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        refusing += "{% for message in messages %}[{{ message['role'] }}]{{ message['content'] }}{% endfor %}"
        usage = chat(tiny, chat_template=refusing).complete(QUESTION_MESSAGES, task="facts").usage
        assert usage
        assert usage.input_tokens == len("[user]Answer in JSON.\nI like tea.")  # OpenVINO sees to it by itself
        with pytest.raises(ModelError, match="its chat template refuses the messages of 'facts'"):
            chat(tiny, chat_template="{{ raise_exception('never') }}").complete(QUESTION_MESSAGES, task="facts")

    def test_what_is_no_model_is_told_as_such(self, tiny: Path, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"has no openvino_model\.xml; export a model into it by `optimum-cli"):
            chat(tmp_path).complete(QUESTION_MESSAGES, task="facts")
        (tmp_path / "openvino_model.xml").write_text("<net>")
        with pytest.raises(ModelError, match="cannot be loaded on CPU"):
            chat(tmp_path).complete(QUESTION_MESSAGES, task="facts")
        with pytest.raises(ModelError, match="cannot be loaded on TPU"):
            chat(tiny, device="TPU").complete(QUESTION_MESSAGES, task="facts")

    @pytest.mark.parametrize("mode", MODES)
    def test_a_memory_asks_it(self, tiny: Path, tmp_path: Path, mode: Mode) -> None:
        keys = {"model": str(tiny), "temperature": 1.0, "seed": 1, "max_tokens": 60}
        with open_memory(tmp_path, config={"llm": {"provider": "openvino", "config": keys}}) as memory:
            added = MemoryDriver(memory, mode).add("I like tea in Porto", user_id="u")
        assert added["usage"]["llm_calls"] >= 1
        assert added["usage"]["input_tokens"] > 100


# --- without the library -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [{"context": 0}, {"max_tokens": 0}, {"modle": "x"}], ids=lambda keys: next(iter(keys)))
def test_a_wrong_key_is_named_before_anything_is_loaded(keys: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(keys))):
        build_component("llm", {"provider": "openvino", "config": {"model": "x", **keys}})


def test_nothing_is_imported_until_it_is_used_and_the_missing_library_is_named() -> None:
    code = (
        "import sys\n"
        "from mem0_core.providers.openvino import OpenVinoChat\n"
        "model = OpenVinoChat('x')\n"
        "assert not {'openvino', 'openvino_genai'} & set(sys.modules)\n"
        "sys.modules['openvino_genai'] = None\n"
        "try: model.complete([{'role': 'user', 'content': 'a'}], task='facts')\n"
        "except ImportError as error: print(error)"
    )
    told = run_python(code)
    assert told.strip() == str(MissingExtraError("openvino-genai", "openvino"))
