"""`TransformersChat`: chat models of Hugging Face's transformers in this process, on CPU or GPU.

transformers and torch are imported, and the model loaded, on the first use. A schema is kept to by llguidance, which
tells before each token which ones a valid answer can go on with.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mem0_core.errors import ConfigError, MissingExtra, ModelError
from mem0_core.models.local_chat import Continuation, LocalChat, TemplateError, read_template

__all__ = ["TransformersChat", "load_causal"]

log = logging.getLogger(__name__)

EXTRA = "transformers"
_HUB_KEYS = ("cache_dir", "local_files_only", "revision", "token", "trust_remote_code")
"""What a tokenizer is loaded with, of the arguments for its model."""
CONTEXT = 8192
"""Tokens of prompt and answer where a model's configuration does not say what it takes."""


class TransformersChat(LocalChat):
    """A causal language model with a chat template. Safe to share between threads: one call runs at a time.

    Args:
        model: a local folder, or a name on the Hugging Face hub, which is downloaded on first use.
        device: ``"cpu"``, ``"cuda"``, ...; default: the best there is.
        context: tokens of prompt and answer together; default, and at most, what the model takes.
        chat_template: a Jinja template in place of the model's own, or a file that holds one.
        template_options: what the template reads besides the messages. By default ``{"enable_thinking": False}``, by
            which Qwen3 and others answer at once.
        max_tokens, temperature, seed: see `LocalChat`.
        model_kwargs: further arguments of ``AutoModelForCausalLM.from_pretrained`` (``dtype``, ``device_map``,
            ``quantization_config``, ...). On the CPU the model is float32, unless ``dtype`` is there.

    Raises (all on first use):
        MissingExtra: transformers, torch or llguidance is not installed.
        ModelError: there is no such model, or it failed.
        ConfigError: it brings no chat template, and none is given.
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
        self._grammars: _Grammars | None = None

    def count_tokens(self, text: str) -> int:
        """Tokens of a text in the model's own vocabulary; loads the model."""
        with self._lock:
            self._load()
            return len(self._tokenizer(text.encode("utf-8", "replace").decode(), add_special_tokens=False)["input_ids"])

    def _special(self) -> Collection[str]:
        self._load()
        added = self._tokenizer.added_tokens_decoder.values()
        return {*self._tokenizer.all_special_tokens, *(token.content for token in added if token.special)}

    def _continue(self, messages: list[dict[str, str]], schema: str | None) -> Continuation:
        import torch

        self._load()
        prompt = self._tokenizer(self._prompt(messages), add_special_tokens=False, return_tensors="pt")
        asked = int(prompt["input_ids"].shape[1])
        room = self._room(asked, self._limit())
        options: dict[str, Any] = {"max_new_tokens": room, "do_sample": self._temperature > 0}
        if self._temperature > 0:
            options["temperature"] = self._temperature
        else:  # a model's own settings for drawing would be warned of
            options |= {"temperature": None, "top_p": None, "top_k": None}
        if schema is not None:
            options["logits_processor"] = self._processors(schema, asked)
        with torch.inference_mode(), self._drawing(torch):
            output = self._model.generate(
                input_ids=prompt["input_ids"].to(self._model.device),
                attention_mask=prompt["attention_mask"].to(self._model.device),
                pad_token_id=_first(self._ends()),
                **options,
            )
        said = output[0, asked:].tolist()
        return Continuation(
            text=self._tokenizer.decode(said, skip_special_tokens=True),
            input_tokens=asked,
            output_tokens=len(said),
            cut=len(said) == room and said[-1] not in self._ends(),
        )

    def _prompt(self, messages: list[dict[str, str]]) -> str:
        from jinja2 import TemplateError as JinjaError

        try:
            prompt: str = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self._template_options
            )
        except (JinjaError, ValueError) as error:
            raise TemplateError(str(error)) from error
        return prompt

    def _processors(self, schema: str, asked: int) -> Any:
        from transformers import LogitsProcessorList

        if self._grammars is None:
            outputs = self._model.get_output_embeddings()
            size = self._model.config.get_text_config().vocab_size if outputs is None else outputs.weight.shape[0]
            self._grammars = _Grammars(self._tokenizer, size, self._ends())
        return LogitsProcessorList([self._grammars.constraint(schema, asked)])

    @contextmanager
    def _drawing(self, torch: Any) -> Iterator[None]:
        """Where a seed is given, draws that it repeats, without a touch on what the rest of the process draws."""
        if self._seed is None:
            yield
            return
        device = self._model.device
        with torch.random.fork_rng(devices=[device.index or 0] if device.type == "cuda" else []):
            torch.manual_seed(self._seed)
            yield

    def _ends(self) -> list[int]:
        """The tokens that end an answer."""
        ends = self._model.generation_config.eos_token_id
        if ends is None:
            ends = self._tokenizer.eos_token_id
        return [ends] if isinstance(ends, int) else list(ends or [])

    def _limit(self) -> int:
        trained = getattr(self._model.config.get_text_config(), "max_position_embeddings", None) or CONTEXT
        return min(trained, self._context or trained)

    def _load(self) -> None:
        if self._model is not None:
            return
        tokenizer, model = load_causal(self._source, device=self._device, model_kwargs=self._model_kwargs, extra=EXTRA)
        if self._chat_template is not None:
            tokenizer.chat_template = read_template(self._chat_template)
        if not tokenizer.chat_template:
            raise ConfigError(f"{self._source} brings no chat template: give chat_template")
        self._tokenizer, self._model = tokenizer, model


class _Grammars:
    """Schemas as llguidance keeps a model to them."""

    def __init__(self, tokenizer: Any, vocabulary: int, ends: list[int]) -> None:
        try:
            from llguidance.hf import from_tokenizer
        except ModuleNotFoundError as error:
            raise MissingExtra("llguidance", EXTRA) from error
        self._tokenizer = from_tokenizer(tokenizer, n_vocab=vocabulary, eos_token=ends)
        self._compiled: dict[str, str] = {}

    def constraint(self, schema: str, asked: int) -> _Constraint:
        from llguidance import LLMatcher

        if schema not in self._compiled:
            # Without free whitespace: in it a weak model can go on for ever.
            compact = {"whitespace_flexible": False}
            self._compiled[schema] = LLMatcher.grammar_from_json_schema(schema, defaults=compact)
        return _Constraint(LLMatcher(self._tokenizer, self._compiled[schema]), asked)


class _Constraint:
    """A logits processor of transformers for one answer: it rules out each token that cannot come next."""

    def __init__(self, matcher: Any, asked: int) -> None:
        if matcher.is_error():
            raise ModelError(f"the schema cannot be kept to: {matcher.get_error()}")
        self._matcher = matcher
        self._read = asked

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import numpy as np
        import torch

        for token in input_ids[0, self._read :].tolist():
            self._matcher.consume_token(token)
        self._read = int(input_ids.shape[1])
        if self._matcher.is_error():
            raise ModelError(f"the schema cannot be kept to: {self._matcher.get_error()}")
        bits = np.unpackbits(np.frombuffer(self._matcher.compute_bitmask(), np.uint8), bitorder="little")
        allowed = np.zeros(scores.shape[1], bool)  # a model's outputs can be more than its tokens
        allowed[: len(bits)] = bits[: scores.shape[1]]
        return scores.masked_fill(~torch.from_numpy(allowed).to(scores.device), float("-inf"))


def load_causal(source: str, *, device: str | None, model_kwargs: Mapping[str, Any], extra: str) -> tuple[Any, Any]:
    """The tokenizer and the model of a causal language model, ready to be asked.

    Args:
        source: a folder, or a name on the hub.
        device: where it is put, unless ``device_map`` says so; by default the best place there is.
        model_kwargs: arguments of ``from_pretrained``. On the CPU the model is float32, unless ``dtype`` is among them:
            most processors compute half precision slower, and less exactly.
        extra: the extra that brings the libraries.

    Raises:
        MissingExtra: a library is not installed. ModelError: there is no such model, or it cannot be read.
    """
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ModuleNotFoundError as error:
        raise MissingExtra("transformers", extra) from error
    folder = Path(source).expanduser()
    place = str(folder) if folder.is_dir() else source
    hub = {key: model_kwargs[key] for key in _HUB_KEYS if key in model_kwargs}
    try:
        tokenizer = AutoTokenizer.from_pretrained(place, **hub)
        model = AutoModelForCausalLM.from_pretrained(place, **model_kwargs).eval()
        if "device_map" not in model_kwargs:
            model = model.to(device or _best_device(torch))
    except Exception as error:  # the hub, the file formats and torch each have their own
        raise ModelError(f"the causal model {source} cannot be loaded: {error}") from error
    if model.device.type == "cpu" and not {"dtype", "torch_dtype"} & model_kwargs.keys():
        model = model.float()
    return tokenizer, model


def _best_device(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _first(tokens: list[int]) -> int | None:
    return tokens[0] if tokens else None
