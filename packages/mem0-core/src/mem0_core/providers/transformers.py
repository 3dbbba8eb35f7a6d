"""`TransformersChat`: chat models of Hugging Face's transformers in this process, on CPU or GPU.

The first call imports transformers and torch, and loads the model. llguidance enforces a schema: before each token it
computes the set of tokens that keep the answer valid.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.providers._local_chat import Completion, LocalChat, TemplateError, read_template

log = logging.getLogger(__name__)

EXTRA = "transformers"
_HUB_KEYS = ("cache_dir", "local_files_only", "revision", "token", "trust_remote_code")
"""Arguments of the model that its tokenizer needs too."""
DEFAULT_CONTEXT_TOKENS = 8192
"""Tokens of prompt and answer if the model's configuration has no limit."""


class TransformersChat(LocalChat):
    """A causal language model with a chat template. Safe to share between threads: one call runs at a time.

    Args:
        model: a local folder, or a name on the Hugging Face hub, which is downloaded on first use.
        device: ``"cpu"``, ``"cuda"``, ...; default: the best available.
        context: maximum tokens of prompt and answer; default, and at most, the model's own limit.
        chat_template: a Jinja template, or a file with one, in place of the model's own.
        template_options: further variables of the template. Default: ``{"enable_thinking": False}``, by which Qwen3 and
            others answer at once.
        max_tokens, temperature, seed: see `LocalChat`.
        model_kwargs: further arguments of ``AutoModelForCausalLM.from_pretrained`` (``dtype``, ``device_map``,
            ``quantization_config``, ...). On the CPU the model is float32, unless ``dtype`` is given.

    Raises (all on first use):
        MissingExtraError: transformers, torch or llguidance is not installed.
        ModelError: the model does not exist, or failed.
        ConfigError: the model has no chat template, and none is given.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        device: str | None = None,
        context: int | None = None,
        chat_template: str | os.PathLike[str] | None = None,
        template_options: Mapping[str, Any] | None = None,
        max_tokens: int = 2048,
        temperature: float = 0.1,
        seed: int | None = None,
        model_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(os.fspath(model), max_tokens=max_tokens, temperature=temperature, seed=seed, context=context)
        self._device = device
        self._chat_template = chat_template
        self._template_options = {"enable_thinking": False, **(template_options or {})}
        self._model_kwargs = dict(model_kwargs or {})
        self._tokenizer: Any = None
        self._model: Any = None
        self._grammars: _GrammarCache | None = None

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text in the model's own vocabulary; loads the model."""
        with self._lock:
            self._load()
            return len(self._tokenizer(text.encode("utf-8", "replace").decode(), add_special_tokens=False)["input_ids"])

    def _special_tokens(self) -> Collection[str]:
        self._load()
        added = self._tokenizer.added_tokens_decoder.values()
        return {*self._tokenizer.all_special_tokens, *(token.content for token in added if token.special)}

    def _generate(self, messages: list[dict[str, str]], schema: str | None) -> Completion:
        import torch

        self._load()
        prompt = self._tokenizer(self._render_prompt(messages), add_special_tokens=False, return_tensors="pt")
        prompt_tokens = int(prompt["input_ids"].shape[1])
        max_new_tokens = self._answer_limit(prompt_tokens, self._context_limit())
        options: dict[str, Any] = {"max_new_tokens": max_new_tokens, "do_sample": self._temperature > 0}
        if self._temperature > 0:
            options["temperature"] = self._temperature
        else:  # otherwise transformers warns of the model's own sampling settings
            options |= {"temperature": None, "top_p": None, "top_k": None}
        if schema is not None:
            options["logits_processor"] = self._logits_processors(schema, prompt_tokens)
        with torch.inference_mode(), self._seeded_sampling(torch):
            output = self._model.generate(
                input_ids=prompt["input_ids"].to(self._model.device),
                attention_mask=prompt["attention_mask"].to(self._model.device),
                pad_token_id=_first_token(self._end_tokens()),
                **options,
            )
        generated = output[0, prompt_tokens:].tolist()
        return Completion(
            text=self._tokenizer.decode(generated, skip_special_tokens=True),
            input_tokens=prompt_tokens,
            output_tokens=len(generated),
            is_truncated=len(generated) == max_new_tokens and generated[-1] not in self._end_tokens(),
        )

    def _render_prompt(self, messages: list[dict[str, str]]) -> str:
        from jinja2 import TemplateError as JinjaError

        try:
            prompt: str = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self._template_options
            )
        except (JinjaError, ValueError) as error:
            raise TemplateError(str(error)) from error
        return prompt

    def _logits_processors(self, schema: str, prompt_tokens: int) -> Any:
        from transformers import LogitsProcessorList

        if self._grammars is None:
            outputs = self._model.get_output_embeddings()
            size = self._model.config.get_text_config().vocab_size if outputs is None else outputs.weight.shape[0]
            self._grammars = _GrammarCache(self._tokenizer, size, self._end_tokens())
        return LogitsProcessorList([self._grammars.build_constraint(schema, prompt_tokens)])

    @contextmanager
    def _seeded_sampling(self, torch: Any) -> Iterator[None]:
        """Make sampling repeatable if there is a seed, without an effect on other random numbers of the process."""
        if self._seed is None:
            yield
            return
        device = self._model.device
        with torch.random.fork_rng(devices=[device.index or 0] if device.type == "cuda" else []):
            torch.manual_seed(self._seed)
            yield

    def _end_tokens(self) -> list[int]:
        """Return the tokens that end an answer."""
        ends = self._model.generation_config.eos_token_id
        if ends is None:
            ends = self._tokenizer.eos_token_id
        return [ends] if isinstance(ends, int) else list(ends or [])

    def _context_limit(self) -> int:
        trained = (
            getattr(self._model.config.get_text_config(), "max_position_embeddings", None) or DEFAULT_CONTEXT_TOKENS
        )
        return min(trained, self._context or trained)

    def _load(self) -> None:
        if self._model is not None:
            return
        tokenizer, model = load_causal_model(
            self._source, device=self._device, model_kwargs=self._model_kwargs, extra=EXTRA
        )
        if self._chat_template is not None:
            tokenizer.chat_template = read_template(self._chat_template)
        if not tokenizer.chat_template:
            raise ConfigError(f"{self._source} has no chat template: pass chat_template")
        self._tokenizer, self._model = tokenizer, model


class _GrammarCache:
    """Compiled JSON schemas of llguidance."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: list[int]) -> None:
        try:
            from llguidance.hf import from_tokenizer
        except ModuleNotFoundError as error:
            raise MissingExtraError("llguidance", EXTRA) from error
        self._tokenizer = from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=ends)
        self._compiled_grammars: dict[str, str] = {}

    def build_constraint(self, schema: str, prompt_tokens: int) -> _GrammarConstraint:
        from llguidance import LLMatcher

        if schema not in self._compiled_grammars:
            # Without flexible whitespace, which a weak model may generate forever.
            compact = {"whitespace_flexible": False}
            self._compiled_grammars[schema] = LLMatcher.grammar_from_json_schema(schema, defaults=compact)
        return _GrammarConstraint(LLMatcher(self._tokenizer, self._compiled_grammars[schema]), prompt_tokens)


class _GrammarConstraint:
    """A transformers logits processor for one answer; it excludes tokens that would make the answer invalid."""

    def __init__(self, matcher: Any, prompt_tokens: int) -> None:
        if matcher.is_error():
            raise ModelError(f"the schema cannot be enforced: {matcher.get_error()}")
        self._matcher = matcher
        self._consumed_tokens = prompt_tokens

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import numpy as np
        import torch

        for token in input_ids[0, self._consumed_tokens :].tolist():
            self._matcher.consume_token(token)
        self._consumed_tokens = int(input_ids.shape[1])
        if self._matcher.is_error():
            raise ModelError(f"the schema cannot be enforced: {self._matcher.get_error()}")
        bits = np.unpackbits(np.frombuffer(self._matcher.compute_bitmask(), np.uint8), bitorder="little")
        allowed = np.zeros(scores.shape[1], bool)  # a model can have more outputs than tokens
        allowed[: len(bits)] = bits[: scores.shape[1]]
        return scores.masked_fill(~torch.from_numpy(allowed).to(scores.device), float("-inf"))


def load_causal_model(
    source: str, *, device: str | None, model_kwargs: Mapping[str, Any], extra: str
) -> tuple[Any, Any]:
    """Load the tokenizer and the model of a causal language model.

    Args:
        source: a folder, or a name on the hub.
        device: the device, unless ``device_map`` is given; default: the best available.
        model_kwargs: arguments of ``from_pretrained``. On the CPU the model is float32, unless ``dtype`` is given: most
            processors compute half precision more slowly and less exactly.
        extra: the extra that installs the libraries.

    Raises:
        MissingExtraError: a library is not installed.
        ModelError: the model does not exist, or cannot be read.
    """
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ModuleNotFoundError as error:
        raise MissingExtraError("transformers", extra) from error
    folder = Path(source).expanduser()
    path = str(folder) if folder.is_dir() else source
    hub = {key: model_kwargs[key] for key in _HUB_KEYS if key in model_kwargs}
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, **hub)
        model = AutoModelForCausalLM.from_pretrained(path, **model_kwargs).eval()
        if "device_map" not in model_kwargs:
            model = model.to(device or _best_device(torch))
    except Exception as error:  # the hub, the file formats and torch raise different errors
        raise ModelError(f"the causal model {source} cannot be loaded: {error}") from error
    if model.device.type == "cpu" and not {"dtype", "torch_dtype"} & model_kwargs.keys():
        model = model.float()
    return tokenizer, model


def _best_device(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _first_token(tokens: list[int]) -> int | None:
    return tokens[0] if tokens else None
