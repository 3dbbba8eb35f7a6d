"""`LlamaCppChat`: GGUF models in this process, by llama.cpp.

The library, llama-cpp-python, is compiled from source during installation, which takes minutes and a C++ compiler.
The first call imports the library and loads the model.
"""

from __future__ import annotations

import inspect
import logging
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.providers._local_chat import Completion, LocalChat, TemplateError, read_template

log = logging.getLogger(__name__)

DEFAULT_CONTEXT_TOKENS = 8192
"""Default tokens of prompt and answer; models trained for 128k tokens would allocate gigabytes for them."""

_LATER_SPLIT = re.compile(r"-(?!0*1-of)\d+-of-\d+\.gguf$")
"""Files of a split model after the first, which llama.cpp finds by itself."""

_STRING_RULE_FIX = (r'char ::= [^"\\]', r'char ::= [^"\\\x00-\x1F\x7F]')
"""Replacement of the library's string rule, which allows control characters although JSON does not."""


class LlamaCppChat(LocalChat):
    """A chat model in a GGUF file. Schemas and tools are enforced by a grammar.

    Safe to share between threads: one call runs at a time.

    Args:
        model: a ``.gguf`` file, or a folder with one.
        context: maximum tokens of prompt and answer; default: 8192, or the training context if that is smaller.
        threads: processors to use; default: half of all, as llama.cpp chooses.
        gpu_layers: layers to keep on a GPU, -1 for all; llama-cpp-python must be built for it.
        chat_template: a Jinja template, or a file with one, in place of the model's own.
        chat_format: the name of one of llama-cpp-python's formats (``"chatml"``, ``"gemma"``, ...) in its place.
        max_tokens, temperature, seed: see `LocalChat`.
        options: further arguments of ``llama_cpp.Llama`` (``flash_attn``, ``type_k``, ...).

    Raises (all on first use):
        MissingExtraError: llama-cpp-python is not installed.
        ConfigError: the file is missing or ambiguous, or has no chat template and none is given.
        ModelError: llama.cpp cannot load it, or failed.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        context: int | None = None,
        threads: int | None = None,
        gpu_layers: int = 0,
        chat_template: str | os.PathLike[str] | None = None,
        chat_format: str | None = None,
        max_tokens: int = 2048,
        temperature: float = 0.1,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        if threads is not None and threads < 1:
            raise ConfigError(f"threads must be at least 1, not {threads}")
        if chat_template is not None and chat_format is not None:
            raise ConfigError("chat_template and chat_format exclude each other: pass only one")
        super().__init__(os.fspath(model), max_tokens=max_tokens, temperature=temperature, seed=seed, context=context)
        self._threads = threads
        self._gpu_layers = gpu_layers
        self._chat_template = chat_template
        self._chat_format = chat_format
        self._options = dict(options or {})
        self._llama: Any = None
        self._special_texts: frozenset[str] = frozenset()
        self._grammars: dict[str, Any] = {}

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text in the model's own vocabulary; loads the model."""
        with self._lock:
            return len(self._ensure_loaded().tokenize(text.encode("utf-8", "replace"), add_bos=False, special=False))

    def close(self) -> None:
        """Free the model's memory; the next call loads it again."""
        with self._lock:
            if self._llama is not None:
                self._llama.close()
            self._llama = None

    def _generate(self, messages: list[dict[str, str]], schema: str | None) -> Completion:
        llama = self._ensure_loaded()
        try:
            completion = llama.create_chat_completion(
                messages,
                grammar=None if schema is None else self._build_grammar(schema),
                max_tokens=self._max_tokens,
                temperature=self._temperature,
                seed=self._seed,
                repeat_penalty=1.0,  # JSON repeats itself
            )
        except (ValueError, _import_jinja_error()) as error:
            if "exceed context window" in str(error):
                raise ModelError(f"{self!r}: {error}; give it a larger `context`") from error
            raise TemplateError(str(error)) from error
        usage, choice = completion["usage"], completion["choices"][0]
        return Completion(
            text=choice["message"]["content"] or "",
            input_tokens=usage["prompt_tokens"],
            output_tokens=usage["completion_tokens"],
            is_truncated=choice["finish_reason"] == "length",
        )

    def _special_tokens(self) -> Collection[str]:
        self._ensure_loaded()
        return self._special_texts

    def _build_grammar(self, schema: str) -> Any:
        from llama_cpp import LlamaGrammar
        from llama_cpp.llama_grammar import json_schema_to_gbnf

        if schema not in self._grammars:
            rules = json_schema_to_gbnf(schema).replace(*_STRING_RULE_FIX)
            self._grammars[schema] = LlamaGrammar.from_string(rules, verbose=False)
        return self._grammars[schema]

    def _ensure_loaded(self) -> Any:
        if self._llama is None:
            self._llama = self._load()
        return self._llama

    def _load(self) -> Any:
        try:
            import llama_cpp
        except ModuleNotFoundError as error:
            raise MissingExtraError("llama-cpp-python", "gguf") from error
        file = find_gguf_file(Path(self._source).expanduser())
        llama = self._open_model(file, self._context or DEFAULT_CONTEXT_TOKENS)
        trained = int(
            llama.metadata.get(f"{llama.metadata.get('general.architecture')}.context_length", DEFAULT_CONTEXT_TOKENS)
        )
        if self._context is None and trained < DEFAULT_CONTEXT_TOKENS:
            llama.close()
            llama = self._open_model(file, trained)
        elif trained < llama.n_ctx():
            log.warning("%r was trained on %d tokens, fewer than the %d of its context", self, trained, llama.n_ctx())
        self._choose_format(llama)
        vocabulary = llama_cpp.llama_model_get_vocab(llama.model)
        control = (token for token in range(llama.n_vocab()) if llama_cpp.llama_vocab_is_control(vocabulary, token))
        names = (llama_cpp.llama_vocab_get_text(vocabulary, token).decode("utf-8", "replace") for token in control)
        self._special_texts = frozenset(name for name in names if name)
        return llama

    def _open_model(self, file: Path, context: int) -> Any:
        from llama_cpp import Llama

        settings: dict[str, Any] = {"n_ctx": context, "n_threads": self._threads, "n_threads_batch": self._threads}
        settings |= {"n_gpu_layers": self._gpu_layers, "chat_format": self._chat_format, "verbose": False}
        if self._seed is not None:
            settings["seed"] = self._seed
        if unknown := self._options.keys() - inspect.signature(Llama).parameters:  # which it would ignore
            raise ConfigError(f"options: llama_cpp.Llama has no {', '.join(sorted(unknown))}")
        try:
            return Llama(str(file), **{**settings, **self._options})
        except Exception as error:  # ValueError for an invalid file, and others of the bindings
            raise ModelError(f"{file} cannot be loaded: {error}") from error

    def _choose_format(self, llama: Any) -> None:
        """Set the configured template or format; refuse to let llama.cpp guess a format."""
        from llama_cpp.llama_chat_format import (
            Jinja2ChatFormatter,
            LlamaChatCompletionHandlerNotFoundException,
            get_chat_completion_handler,
        )

        if self._chat_template is not None:
            bos, eos = (_token_text(llama, token) for token in (llama.token_bos(), llama.token_eos()))
            formatter = Jinja2ChatFormatter(
                template=read_template(self._chat_template),
                bos_token=bos,
                eos_token=eos,
                stop_token_ids=[llama.token_eos()],
            )
            llama.chat_handler = formatter.to_chat_handler()
        elif self._chat_format is not None:
            try:
                get_chat_completion_handler(self._chat_format)
            except LlamaChatCompletionHandlerNotFoundException as error:
                raise ConfigError(f"chat_format: {error}") from error
        elif "tokenizer.chat_template" not in llama.metadata and "chat_handler" not in self._options:
            raise ConfigError(f"{self._source} has no chat template: pass chat_template or chat_format")


def find_gguf_file(path: Path) -> Path:
    """Return the model's file: `path` itself, or the only one in that folder.

    Raises:
        ConfigError: there is no file, or several.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        raise ConfigError(f"model: there is no file or folder {str(path)!r}")
    found = [
        file
        for file in sorted(path.glob("*.gguf"))
        if not _LATER_SPLIT.search(file.name) and not file.name.startswith("mmproj")  # the image encoder of a model
    ]
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "no .gguf file"
        raise ConfigError(f"model: {str(path)!r} has {names}: name the file to use")
    return found[0]


def _token_text(llama: Any, token: int) -> str:
    """Return the text of a marker; empty if the model has none."""
    return "" if token < 0 else llama.detokenize([token], special=True).decode("utf-8", "replace")


def _import_jinja_error() -> type[Exception]:
    from jinja2 import TemplateError as JinjaError

    error: type[Exception] = JinjaError
    return error
