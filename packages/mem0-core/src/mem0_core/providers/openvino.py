"""`OpenVinoChat`: chat models on Intel's CPUs, GPUs and NPUs, by OpenVINO GenAI.

OpenVINO GenAI replaces ipex-llm, which is no longer developed, and needs neither torch nor transformers. Models must be
in OpenVINO's format: those of the hub's ``OpenVINO`` organization, or your own, exported once by ``optimum-cli export
openvino --model NAME --weight-format int4 FOLDER`` (optimum-intel, in a separate environment).

The first call imports the library and loads the model.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.providers._local_chat import Completion, LocalChat, TemplateError, read_template
from mem0_core.providers._model_folder import read_json

MODEL_FILE = "openvino_model.xml"
DEFAULT_CONTEXT_TOKENS = 8192
"""Tokens of prompt and answer if the model's configuration has no limit."""


class OpenVinoChat(LocalChat):
    """A chat model in OpenVINO's format. Safe to share between threads: one call runs at a time.

    Args:
        model: the folder of an exported model, with its tokenizer.
        device: ``"CPU"``, ``"GPU"``, ``"NPU"``, or ``"AUTO"`` for the best available.
        context: maximum tokens of prompt and answer; default, and at most, the model's own limit.
        chat_template: a Jinja template, or a file with one, in place of the model's own.
        template_options: further variables of the template. Default: ``{"enable_thinking": False}``, by which Qwen3 and
            others answer at once.
        max_tokens, temperature, seed: see `LocalChat`.
        options: properties of the device (``{"CACHE_DIR": ...}``, ...).

    Raises (all on first use):
        MissingExtraError: openvino-genai is not installed.
        ConfigError: the folder or the exported model is missing, or the model has no chat template.
        ModelError: OpenVINO cannot load it, or failed.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        device: str = "CPU",
        context: int | None = None,
        chat_template: str | os.PathLike[str] | None = None,
        template_options: Mapping[str, Any] | None = None,
        max_tokens: int = 2048,
        temperature: float = 0.1,
        seed: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(os.fspath(model), max_tokens=max_tokens, temperature=temperature, seed=seed, context=context)
        self._folder = Path(model).expanduser()
        self._device = device
        self._chat_template = chat_template
        self._template_options = {"enable_thinking": False, **(template_options or {})}
        self._options = dict(options or {})
        self._pipeline: Any = None
        self._tokenizer: Any = None
        self._special_texts: frozenset[str] = frozenset()

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text in the model's own vocabulary; loads the model."""
        with self._lock:
            self._load()
            return self._count_encoded(self._encode(text.encode("utf-8", "replace").decode()))

    def _special_tokens(self) -> Collection[str]:
        self._load()
        return self._special_texts

    def _generate(self, messages: list[dict[str, str]], schema: str | None) -> Completion:
        self._load()
        prompt = self._encode(self._render_prompt(messages))
        prompt_tokens = self._count_encoded(prompt)
        max_new_tokens = self._answer_limit(prompt_tokens, self._context_limit())
        results = self._pipeline.generate(prompt, self._generation_config(max_new_tokens, schema))
        generated = list(results.tokens[0])
        return Completion(
            text=self._tokenizer.decode(generated, skip_special_tokens=True),
            input_tokens=prompt_tokens,
            output_tokens=len(generated),
            is_truncated=len(generated) >= max_new_tokens,
        )

    def _generation_config(self, max_new_tokens: int, schema: str | None) -> Any:
        from openvino_genai import StructuredOutputConfig

        settings = self._pipeline.get_generation_config()
        settings.max_new_tokens = max_new_tokens
        settings.do_sample = self._temperature > 0
        if self._temperature > 0:
            settings.temperature = self._temperature
        if self._seed is not None:
            settings.rng_seed = self._seed
        if schema is not None:
            settings.structured_output_config = StructuredOutputConfig(json_schema=schema)
        return settings

    def _render_prompt(self, messages: list[dict[str, str]]) -> str:
        try:
            prompt: str = self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, extra_context=self._template_options
            )
        except RuntimeError as error:
            raise TemplateError(str(error)) from error
        return prompt

    def _encode(self, text: str) -> Any:
        return self._tokenizer.encode(text, add_special_tokens=False)

    @staticmethod
    def _count_encoded(encoded: Any) -> int:
        return int(encoded.input_ids.shape[1])

    def _context_limit(self) -> int:
        config = read_json(self._folder / "config.json")
        trained = {**config, **config.get("text_config", {})}.get("max_position_embeddings") or DEFAULT_CONTEXT_TOKENS
        return min(int(trained), self._context or int(trained))

    def _load(self) -> None:
        if self._pipeline is not None:
            return
        disable_telemetry()
        try:
            import openvino_genai
        except ModuleNotFoundError as error:
            raise MissingExtraError("openvino-genai", "openvino") from error
        if not is_openvino_model(self._folder):
            raise ConfigError(
                f"model: {str(self._folder)!r} has no {MODEL_FILE}; export a model into it by"
                " `optimum-cli export openvino`"
            )
        try:
            pipeline = openvino_genai.LLMPipeline(str(self._folder), self._device, **self._options)
        except Exception as error:  # RuntimeError and others of the bindings
            raise ModelError(f"{self._folder} cannot be loaded on {self._device}: {error}") from error
        tokenizer = pipeline.get_tokenizer()
        if self._chat_template is not None:
            tokenizer.set_chat_template(read_template(self._chat_template))
        if not tokenizer.chat_template:
            raise ConfigError(f"{self._source} has no chat template: pass chat_template")
        self._special_texts = _read_special_texts(self._folder)
        self._pipeline, self._tokenizer = pipeline, tokenizer


def disable_telemetry() -> None:
    """Disable OpenVINO's telemetry; call it before each import of the library.

    Unless a file in the user's home opts out, ``import openvino`` sends an event to Google Analytics and keeps a user
    id in ``~/intel``. No setting of the process disables that. The library works without its telemetry package, so this
    process pretends that the package is not installed. An earlier import elsewhere is left alone.
    """
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]


def is_openvino_model(folder: Path) -> bool:
    """Return True if the folder has a model in OpenVINO's format."""
    return (folder / MODEL_FILE).is_file()


def _read_special_texts(folder: Path) -> frozenset[str]:
    """Read the special tokens from the model's tokenizer files."""
    added = read_json(folder / "tokenizer.json").get("added_tokens", [])
    added += read_json(folder / "tokenizer_config.json").get("added_tokens_decoder", {}).values()
    return frozenset(token["content"] for token in added if token.get("special"))
