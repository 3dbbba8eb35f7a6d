"""Rerankers by provider name: ``reranker: {"provider": "cohere", "config": {"model": ...}}``.

mem0's keys are accepted. `top_k`, `top_n` and the options of mem0's requests have no effect: every text gets a score,
and a search's `limit` sets the number of results.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from mem0_core import ConfigError, MissingExtraError
from mem0_core.catalog import FRAMEWORK_PROVIDERS

__all__ = ["RERANKERS", "RerankerClass", "build_reranker"]

_IGNORED_KEYS = ("top_k", "top_n", "return_documents", "max_chunks_per_doc", "provider")
_MAX_TEXTS = 1_000
"""Number of scored texts, which the classes limit to 3 by default; searches rerank at most some hundred."""


@dataclass(frozen=True)
class RerankerClass:
    """LangChain's class of a provider.

    Attributes:
        names: Parameter of the class for each of mem0's keys; the other keys keep their names.
        defaults: Parameters for keys that are not given.
    """

    module: str
    name: str
    names: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def build(self, keys: Mapping[str, Any]) -> Any:
        """Build the reranker from mem0's keys."""
        given = {
            self.names.get(key, key): value
            for key, value in keys.items()
            if key not in _IGNORED_KEYS and value is not None
        }
        return getattr(import_module(self.module), self.name)(**{**self.defaults, **given})


class ZeroEntropyCrossEncoder:
    """Models of Zero Entropy with a cross-encoder's `score`; LangChain has no class for them."""

    def __init__(self, model: str = "zerank-1", *, api_key: str | None = None) -> None:
        client_class = import_module("zeroentropy").ZeroEntropy
        key = api_key or os.environ.get("ZERO_ENTROPY_API_KEY")  # mem0's variable; the library's has another name
        self.model = model
        self._client = client_class(api_key=key) if key else client_class()

    def score(self, text_pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the relevance of the second text of each pair to the first, which all pairs share."""
        texts = [text for _, text in text_pairs]
        reply = self._client.models.rerank(model=self.model, query=text_pairs[0][0], documents=texts)
        scores = dict.fromkeys(range(len(texts)), 0.0)
        scores.update({result.index: float(result.relevance_score) for result in reply.results})
        return [scores[place] for place in range(len(texts))]


RERANKERS: dict[str, RerankerClass] = {
    "cohere": RerankerClass(
        "langchain_cohere",
        "CohereRerank",
        {"api_key": "cohere_api_key"},
        {"model": "rerank-english-v3.0", "top_n": _MAX_TEXTS},
    ),
    "zero_entropy": RerankerClass(__name__, "ZeroEntropyCrossEncoder"),
    "voyageai": RerankerClass("langchain_voyageai", "VoyageAIRerank", {}, {"model": "rerank-2.5"}),
    "nvidia": RerankerClass("langchain_nvidia_ai_endpoints", "NVIDIARerank", {}, {"top_n": _MAX_TEXTS}),
    "pinecone": RerankerClass(
        "langchain_pinecone", "PineconeRerank", {"api_key": "pinecone_api_key"}, {"top_n": _MAX_TEXTS}
    ),
    "aws_bedrock": RerankerClass("langchain_aws", "BedrockRerank", {"model": "model_arn"}, {"top_n": _MAX_TEXTS}),
    "flashrank": RerankerClass(
        "langchain_community.document_compressors", "FlashrankRerank", {}, {"top_n": _MAX_TEXTS}
    ),
    "jina": RerankerClass(
        "langchain_community.document_compressors", "JinaRerank", {"api_key": "jina_api_key"}, {"top_n": _MAX_TEXTS}
    ),
}
"""Class of each provider, with mem0's default model where mem0 has the provider."""


def build_reranker(provider: str, keys: Mapping[str, Any]) -> Any:
    """Build LangChain's reranker of a provider from mem0's keys.

    Raises:
        ConfigError: A key is unknown or wrong.
        MissingExtraError: The packages of the provider are not installed.
    """
    try:
        return RERANKERS[provider].build(keys)
    except ImportError as error:
        packages = f"mem0-langchain {FRAMEWORK_PROVIDERS['reranker'][provider]}"
        raise MissingExtraError(f"reranker: the library of {provider!r}", packages=packages) from error
    except Exception as error:  # pydantic's and the clients' errors for wrong keys
        raise ConfigError(
            f"reranker.config ({provider}): LangChain cannot build it with the keys"
            f" {', '.join(sorted(keys)) or 'none'}: {type(error).__name__}: {error}"
        ) from error
