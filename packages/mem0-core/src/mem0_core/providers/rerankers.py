"""`TransformersReranker`: cross-encoders of sentence-transformers, and Qwen3-Reranker, on CPU or GPU.

Both read query and text together. A cross-encoder has one output, the relevance. Qwen3-Reranker is a causal language
model with a yes/no prompt; its score is the probability of "yes" against "no" as the next token.

The first call imports the libraries and torch.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.providers._model_folder import MAX_CHARS_PER_TOKEN, read_json
from mem0_core.providers.transformers import load_causal_model

log = logging.getLogger(__name__)

DEFAULT_CROSS_ENCODER = "cross-encoder/ms-marco-MiniLM-L6-v2"
"""The default model, and the fallback of a causal model that cannot be loaded: 23 million parameters, English."""

DEFAULT_INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
"""The default instruction of Qwen3-Reranker, with which it was trained."""

_EXTRA = "sentence-transformers"
_QWEN_RERANKER_NAME = re.compile(r"qwen\d*[-_.]?reranker(?!.*seq[-_]?cls)", re.IGNORECASE)
"""Names of Qwen's rerankers, except conversions to cross-encoders (``...-seq-cls``)."""


class _Scorer(Protocol):
    """A loaded model."""

    def score_texts(self, query: str, texts: Sequence[str]) -> Sequence[float]: ...


class TransformersReranker:
    """Scores texts with a cross-encoder, or with a causal language model prompted like Qwen3-Reranker.

    Safe to share between threads: one call runs at a time. A model is causal if ``config.json`` names an architecture
    ``...ForCausalLM``. With a ``modules.json``, sentence-transformers runs it, except Qwen rerankers.

    Args:
        model: a local folder, or a name on the Hugging Face hub, which is downloaded on first use.
        device: ``"cpu"``, ``"cuda"``, ...; default: the best available.
        batch_size: pairs per step; default 32, for causal models 8. It does not change the scores.
        max_length: maximum tokens of query and text; longer texts are cut. Default, and at most, the model's own limit;
            for causal models 8192.
        normalize: True applies exactly one sigmoid to a cross-encoder's output. False keeps the model's own activation,
            for models with scores in [0, 1] by other means than a sigmoid.
        causal: True for a causal model; default: determined by its files.
        instruction: the task in the prompt of a causal model; default: `DEFAULT_INSTRUCTION`.
        fallback: the cross-encoder to use, with a logged warning, if a causal model cannot be loaded; None raises an
            error instead.
        model_kwargs: further arguments of ``CrossEncoder``, or of ``AutoModelForCausalLM.from_pretrained``
            (``dtype``, ``attn_implementation``, ...). A causal model on the CPU is float32, unless ``dtype`` is given.
        top_k: accepted for mem0's configuration and ignored; the `limit` of a search applies.
        show_progress_bar: show the progress of a cross-encoder, as in mem0.

    Raises (all on first use):
        MissingExtraError: sentence-transformers (or for causal models, transformers) is not installed.
        ModelError: the model does not exist, is of another kind, or failed.
        ConfigError: `instruction` was given for a cross-encoder.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = DEFAULT_CROSS_ENCODER,
        *,
        device: str | None = None,
        batch_size: int | None = None,
        max_length: int | None = None,
        normalize: bool = True,
        causal: bool | None = None,
        instruction: str | None = None,
        fallback: str | os.PathLike[str] | None = DEFAULT_CROSS_ENCODER,
        model_kwargs: Mapping[str, Any] | None = None,
        top_k: int | None = None,
        show_progress_bar: bool = False,
    ) -> None:
        for name, number in (("batch_size", batch_size), ("max_length", max_length)):
            if number is not None and number < 1:
                raise ConfigError(f"{name} must be at least 1, not {number}")
        self._source = os.fspath(model)
        self._device = device
        self._batch_size = batch_size
        self._max_length = max_length
        self._normalize = normalize
        self._causal = causal
        self._instruction = instruction
        self._fallback = None if fallback is None else os.fspath(fallback)
        self._model_kwargs = dict(model_kwargs or {})
        self._show_progress_bar = show_progress_bar
        self._lock = threading.RLock()
        self._scorer: _Scorer | None = None

    def __repr__(self) -> str:
        return f"TransformersReranker({self._source!r})"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance of each text to the query in [0, 1]; the first call loads the model."""
        if not texts:
            return []
        with self._lock:  # a tokenizer cannot be used by two threads while its truncation is set
            if self._scorer is None:
                self._scorer = self._load()
            try:
                return list(self._scorer.score_texts(query, texts))
            except ModelError:
                raise
            except Exception as error:  # torch and the models raise various errors
                raise ModelError(f"{self!r} failed: {error}") from error

    def _load(self) -> _Scorer:
        if not (_is_causal(self._source) if self._causal is None else self._causal):
            if self._instruction is not None:
                raise ConfigError(f"instruction: {self._source} is a cross-encoder, which takes no instruction")
            return self._build_cross_encoder(self._source, self._model_kwargs)
        try:
            return _CausalScorer(
                self._source,
                device=self._device,
                batch_size=self._batch_size or 8,
                max_length=self._max_length or 8192,
                instruction=self._instruction or DEFAULT_INSTRUCTION,
                model_kwargs=self._model_kwargs,
            )
        except ModelError as error:
            if self._fallback is None:
                raise
            return self._load_fallback(error, self._fallback)

    def _load_fallback(self, error: ModelError, fallback: str) -> _Scorer:
        """Load the cross-encoder in place of a causal model."""
        try:
            scorer = self._build_cross_encoder(fallback, {})
        except (ModelError, MissingExtraError) as second:
            raise ModelError(f"{error}; its fallback failed too: {second}") from error
        log.warning("%s; the cross-encoder %s is used instead", error, fallback)
        return scorer

    def _build_cross_encoder(self, source: str, model_kwargs: Mapping[str, Any]) -> _Scorer:
        return _CrossEncoderScorer(
            source,
            device=self._device,
            batch_size=self._batch_size or 32,
            max_length=self._max_length,
            normalize=self._normalize,
            show_progress_bar=self._show_progress_bar,
            model_kwargs=model_kwargs,
        )


huggingface = partial(TransformersReranker, model="BAAI/bge-reranker-base")
"""mem0's provider ``huggingface`` with its default model."""

qwen = partial(TransformersReranker, model="Qwen/Qwen3-Reranker-0.6B", causal=True)
"""Qwen3-Reranker: the smallest size by default, another size or a folder by `model`."""


# --- kinds of models ---------------------------------------------------------------------------------------------


def _is_causal(source: str) -> bool:
    """Return True for a causal model that has no configuration for sentence-transformers.

    If its files are not available, its name decides.
    """
    has_reranker_name = bool(_QWEN_RERANKER_NAME.search(Path(source).name))
    config = _fetch_file(source, "config.json")
    if config is None:
        return has_reranker_name
    causal = any(name.endswith("ForCausalLM") for name in read_json(config).get("architectures") or [])
    return causal and (has_reranker_name or _fetch_file(source, "modules.json") is None)


def _fetch_file(source: str, name: str) -> Path | None:
    """Return a small file of a model from its folder or the hub; None if it is missing or the hub is unreachable."""
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder / name if (folder / name).is_file() else None
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ModuleNotFoundError as error:
        raise MissingExtraError("huggingface-hub", _EXTRA) from error
    try:
        return Path(hf_hub_download(source, name))
    except (OSError, HfHubHTTPError, HFValidationError):  # unknown file, model or name, or no network
        return None


# --- cross-encoders ----------------------------------------------------------------------------------------------


class _CrossEncoderScorer:
    """A sentence-transformers model with one output per pair."""

    def __init__(
        self,
        source: str,
        *,
        device: str | None,
        batch_size: int,
        max_length: int | None,
        normalize: bool,
        show_progress_bar: bool,
        model_kwargs: Mapping[str, Any],
    ) -> None:
        try:
            from sentence_transformers import CrossEncoder
        except ModuleNotFoundError as error:
            raise MissingExtraError("sentence-transformers", _EXTRA) from error
        self._name = source
        self._options = {"batch_size": batch_size, "show_progress_bar": show_progress_bar}
        try:
            self._model = CrossEncoder(_resolve_source(source), device=device, **model_kwargs)
        except Exception as error:  # the hub, the file formats and torch raise different errors
            raise ModelError(f"the cross-encoder {source} cannot be loaded: {error}") from error
        self._check_head(source)
        tokenizer = self._model.tokenizer
        if max_length is not None:  # a limit above that of the model would fail during a search
            tokenizer.model_max_length = min(max_length, tokenizer.model_max_length)
        self._max_chars = tokenizer.model_max_length * MAX_CHARS_PER_TOKEN
        self._activation = self._identity_activation() if normalize else None
        self._applies_sigmoid = normalize and not self._ends_in_sigmoid()

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        pairs = [(_clean_text(query, self._max_chars), _clean_text(text, self._max_chars)) for text in texts]
        logits = self._model.predict(pairs, activation_fn=self._activation, **self._options)
        scores: list[float] = (_sigmoid(logits) if self._applies_sigmoid else np.asarray(logits)).tolist()
        return scores

    def _check_head(self, source: str) -> None:
        """Refuse models that are no rerankers: the library gives them random weights, or several outputs."""
        inner = self._model.model
        known = getattr(getattr(inner, "config", None), "architectures", None) or []
        head = "ForSequenceClassification"
        if type(inner).__name__.endswith(head) and known and not any(name.endswith(head) for name in known):
            raise ModelError(f"{source} is a {known[0]}, not a cross-encoder: its scores would be random")
        if self._model.num_labels != 1:
            raise ModelError(f"{source} has {self._model.num_labels} outputs per pair; a reranker has one")

    def _identity_activation(self) -> Any:
        """Replace the default activation, which is a sigmoid for some models and none for others."""
        from torch.nn import Identity

        return Identity()

    def _ends_in_sigmoid(self) -> bool:
        """Return True if the model's last module already applies a sigmoid."""
        from torch.nn import Sigmoid

        last = list(self._model.children())[-1:]
        return any(isinstance(getattr(module, "activation_function", None), Sigmoid) for module in last)


def _sigmoid(logits: Any) -> NDArray[np.float64]:
    half = np.asarray(logits, np.float64) / 2
    result: NDArray[np.float64] = (1 + np.tanh(half)) / 2  # equals the sigmoid, and cannot overflow
    return result


# --- Qwen3-Reranker ----------------------------------------------------------------------------------------------

# The exact prompt of Qwen3-Reranker's model card, with which the model was trained.
_PREFIX = (
    "<|im_start|>system\n"
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided."
    ' Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
_BODY_TEMPLATE = "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {text}"
_SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


class _CausalScorer:
    """A causal language model that judges if a text answers a query."""

    def __init__(
        self,
        source: str,
        *,
        device: str | None,
        batch_size: int,
        max_length: int,
        instruction: str,
        model_kwargs: Mapping[str, Any],
    ) -> None:
        loaded = load_causal_model(source, device=device, model_kwargs=model_kwargs, extra=_EXTRA)
        self._tokenizer, self._model = loaded
        self._batch_size = batch_size
        self._instruction = instruction
        if self._model.config.model_type != "qwen3":
            log.warning("%s is of type %s: it is prompted like Qwen3-Reranker", source, self._model.config.model_type)
        self._answer_ids = [self._token_id(source, word) for word in ("no", "yes")]
        self._prefix, self._suffix = self._tokenize(_PREFIX), self._tokenize(_SUFFIX)
        limit = min(max_length, getattr(self._model.config, "max_position_embeddings", None) or max_length)
        self._body_limit_tokens = limit - len(self._prefix) - len(self._suffix)
        body_overhead = len(self._body_tokens("", ""))
        if self._body_limit_tokens <= body_overhead:
            min_length = len(self._prefix) + len(self._suffix) + body_overhead + 1
            raise ModelError(f"{source}: max_length {limit} leaves no tokens for a text; the minimum is {min_length}")

    def score_texts(self, query: str, texts: Sequence[str]) -> list[float]:
        query = self._shorten_query(query)
        prompts = [
            [*self._prefix, *self._body_tokens(query, text)[: self._body_limit_tokens], *self._suffix] for text in texts
        ]
        order = sorted(range(len(texts)), key=lambda index: len(prompts[index]))  # similar lengths need less padding
        scores = [0.0] * len(texts)
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            for index, score in zip(batch, self._yes_probabilities([prompts[index] for index in batch]), strict=True):
                scores[index] = score
        return scores

    def _yes_probabilities(self, prompts: Sequence[Sequence[int]]) -> Iterator[float]:
        """Yield the probability of "yes" against "no" after each prompt."""
        import torch

        longest = max(map(len, prompts))
        # Padding on the left keeps each prompt's last token in the last position. It is masked, so any token will do.
        ids = [[*[0] * (longest - len(prompt)), *prompt] for prompt in prompts]
        mask = [[*[0] * (longest - len(prompt)), *[1] * len(prompt)] for prompt in prompts]
        with torch.inference_mode():
            logits = self._model(
                input_ids=torch.tensor(ids, device=self._model.device),
                attention_mask=torch.tensor(mask, device=self._model.device),
                logits_to_keep=1,  # logits of all positions and 150,000 tokens would take gigabytes
                use_cache=False,
            ).logits[:, -1]
        no, yes = logits[:, self._answer_ids].float().cpu().numpy().T
        return iter(_sigmoid(yes - no).tolist())  # equals the softmax of two logits

    def _body_tokens(self, query: str, text: str) -> list[int]:
        """Tokenize the body of a prompt; control tokens in the texts are tokenized as plain text."""
        limit = self._body_limit_tokens * MAX_CHARS_PER_TOKEN
        body = _BODY_TEMPLATE.format(instruction=self._instruction, query=query, text=_clean_text(text, limit))
        return self._tokenize(body, split_special_tokens=True)

    def _shorten_query(self, query: str) -> str:
        """Cut a query to half of the tokens of the body."""
        query = _clean_text(query, self._body_limit_tokens * MAX_CHARS_PER_TOKEN)
        ids = self._tokenize(query, split_special_tokens=True)
        return (
            query
            if len(ids) <= self._body_limit_tokens // 2
            else self._tokenizer.decode(ids[: self._body_limit_tokens // 2])
        )

    def _tokenize(self, text: str, **options: Any) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False, **options)["input_ids"]
        return ids

    def _token_id(self, source: str, word: str) -> int:
        ids = self._tokenize(word)
        if len(ids) != 1 or ids[0] == self._tokenizer.unk_token_id:
            raise ModelError(f"{source}: {word!r} is not a single token of the model, so it cannot be scored")
        return ids[0]


# --- shared ------------------------------------------------------------------------------------------------------


def _resolve_source(source: str) -> str:
    folder = Path(source).expanduser()
    return str(folder) if folder.is_dir() else source


def _clean_text(text: str, limit: int) -> str:
    """Cut a text to `limit` characters, since tokenization precedes truncation, and replace lone surrogates."""
    return text[:limit].encode("utf-8", "replace").decode()
