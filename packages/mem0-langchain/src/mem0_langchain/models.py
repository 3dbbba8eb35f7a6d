"""LangChain's models as mem0's: chat models, embeddings, document compressors and cross encoders.

`Memory(llm=ChatOpenAI(...), embedder=OpenAIEmbeddings(...))` finds its way here by the entry point `adapt`. The
classes are for those who want to say more than the objects do.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from weakref import WeakSet

import numpy as np
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from numpy.typing import NDArray

from mem0_core import ConfigError, ModelError
from mem0_core.config import ComponentKind
from mem0_core.domain.records import Usage
from mem0_core.flow import Flow, arun, do, run
from mem0_core.interfaces import Reply, Tool, ToolCall
from mem0_core.providers.adapters import is_unsupported_request, normalize_scores, to_unit_vectors
from mem0_core.providers.prompted_tools import add_tool_prompt, parse_tool_calls

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["LangChainChat", "LangChainEmbedder", "LangChainReranker", "adapt", "chat", "embedder", "reranker"]

T = TypeVar("T")

log = logging.getLogger("mem0_langchain")

_MODEL_NAME_FIELDS = ("model", "model_name", "model_id", "repo_id", "deployment")
"""Where LangChain's classes say which model they are; the first that holds a text counts."""
_POSITION_KEY = "mem0_position"


def adapt(kind: ComponentKind, instance: Any, **wiring: Any) -> Any:
    """What a `Memory` makes of an object of LangChain's: one that fulfils the port of this kind.

    Raises:
        ConfigError: it is nothing of that kind.
    """
    if kind == "llm" and isinstance(instance, Runnable):
        return LangChainChat(instance)
    if kind == "embedder" and isinstance(instance, Embeddings):
        return LangChainEmbedder(instance)
    if kind == "reranker" and (isinstance(instance, BaseDocumentCompressor) or _is_cross_encoder(instance)):
        return LangChainReranker(instance)
    if kind == "vector_store":
        from langchain_core.vectorstores import VectorStore

        from mem0_langchain.vectors import VectorStoreIndex

        if isinstance(instance, VectorStore):
            return VectorStoreIndex(instance, **wiring)
    raise ConfigError(f"{kind}: {type(instance).__name__} is none of LangChain's that can serve as one")


# --- by name ------------------------------------------------------------------------------------------------------


def chat(model: Any, *, provider: str | None = None, **config: Any) -> LangChainChat:
    """A chat model as `langchain.chat_models.init_chat_model` makes it: ``"provider:model"``, or an instance.

    Raises:
        ConfigError: LangChain does not know it, its package is missing, or it is refused an argument.
    """
    if isinstance(model, str):
        from langchain.chat_models import init_chat_model

        model = _build_component("llm", init_chat_model, model, model_provider=provider, **config)
    return _cast_adapter(LangChainChat, adapt("llm", model))


def embedder(model: Any, *, provider: str | None = None, embedding_dims: int | None = None, **config: Any) -> Any:
    """Embeddings as `langchain.embeddings.init_embeddings` makes them: ``"provider:model"``, or an instance.

    Raises:
        ConfigError: as for `chat`.
    """
    if isinstance(model, str):
        from langchain.embeddings import init_embeddings

        model = _build_component("embedder", init_embeddings, model, provider=provider, **config)
    adapt("embedder", model)
    return LangChainEmbedder(model, dims=embedding_dims)


def reranker(model: Any) -> LangChainReranker:
    """A document compressor or a cross encoder, for ``{"provider": "langchain", "config": {"model": ...}}``."""
    return _cast_adapter(LangChainReranker, adapt("reranker", model))


def _cast_adapter(kind: type[T], adapted: Any) -> T:
    assert isinstance(adapted, kind)
    return adapted


def _build_component(kind: ComponentKind, make: Callable[..., Any], *args: Any, **options: Any) -> Any:
    try:
        return make(*args, **options)
    except (ImportError, ValueError, TypeError) as error:  # no package, no such provider, a wrong or missing argument
        raise ConfigError(f"{kind}: LangChain cannot make {args[0]!r}: {error}") from error


# --- chat ---------------------------------------------------------------------------------------------------------


class LangChainChat:
    """A chat model of LangChain, or a runnable made of one (``with_retry``, ``with_fallbacks``, ``bind``).

    A `schema` goes through ``with_structured_output``, `tools` through ``bind_tools``. A model that has none, or whose
    server refuses them, is told in words, and its text is read. What worked is remembered, so a refusal is met once.

    Each call is a LangChain run of its own, below that of the memory where there is one, and tagged ``nostream``: what
    a memory asks of a model is no part of an agent's reply.
    """

    def __init__(self, model: Runnable[Any, Any]) -> None:
        self.model = model
        self._without_schema: WeakSet[type[BaseModel]] = WeakSet()
        self._without_tools = False

    def __repr__(self) -> str:
        return f"LangChainChat({type(self.model).__name__}, model={_find_model_name(self.model)!r})"

    @property
    def supports(self) -> frozenset[str]:
        """How it is asked best; see `mem0_core.interfaces.ChatModel`."""
        theirs = getattr(type(self.model), "bind_tools", None) or getattr(self.model, "bind_tools", None)
        has_tools = theirs is not None and theirs is not BaseChatModel.bind_tools
        return frozenset({"schema", "tools"}) if has_tools else frozenset()

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        task: str,
        schema: type[BaseModel] | None = None,
        tools: Sequence[Tool] = (),
    ) -> Reply:
        """Answer `messages`; see `mem0_core.interfaces.ChatModel`. Where `tools` are given, `schema` is not sent.

        Raises:
            ModelError: the model failed; what it raised is chained.
        """
        return run(self._exchange(messages, task, schema, tools))

    async def acomplete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        task: str,
        schema: type[BaseModel] | None = None,
        tools: Sequence[Tool] = (),
    ) -> Reply:
        """`complete`, awaited."""
        return await arun(self._exchange(messages, task, schema, tools))

    def _exchange(
        self,
        messages: Sequence[Mapping[str, Any]],
        task: str,
        schema: type[BaseModel] | None,
        tools: Sequence[Tool],
    ) -> Flow[Reply]:
        payload = [dict(message) for message in messages]
        if tools and not self._without_tools:
            with_tools = self._bind_or_none(lambda model: model.bind_tools([_tool_dict(tool) for tool in tools]))
            answer = yield from self._try_request(with_tools, payload, task)
            if answer is not None:
                return _to_reply(answer)
            self._without_tools = True
        if tools:
            reply = _to_reply((yield from self._request_plain(add_tool_prompt(payload, tools), task)))
            return Reply(reply.text, reply.tool_calls or parse_tool_calls(reply.text), reply.usage)
        if schema is not None and schema not in self._without_schema:
            shape = schema.model_json_schema()
            structured = self._bind_or_none(lambda model: model.with_structured_output(shape, include_raw=True))
            answer = yield from self._try_request(structured, payload, task)
            if answer is not None:
                return _to_structured_reply(answer)
            self._without_schema.add(schema)
        return _to_reply((yield from self._request_plain(payload, task)))

    def _bind_or_none(self, bind: Callable[[Any], Runnable[Any, Any]]) -> Runnable[Any, Any] | None:
        """The model with tools or a schema; None where it has no such thing."""
        try:
            return bind(self.model)
        except (NotImplementedError, AttributeError, NameError):
            return None  # a NameError: `with_fallbacks` evaluates type hints that are not always there to be evaluated

    def _try_request(self, model: Runnable[Any, Any] | None, messages: list[dict[str, Any]], task: str) -> Flow[Any]:
        """What the model answers; None where this form of request is not for it."""
        if model is None:
            return None
        try:
            return (yield from do(model.invoke, messages, _run_config(task)))
        except Exception as error:
            if not is_unsupported_request(error):
                raise self._build_error(error, task) from error
            log.warning("%r refused a request form for %s, asking in words: %s", self, task, error)
            return None

    def _request_plain(self, messages: list[dict[str, Any]], task: str) -> Flow[Any]:
        try:
            return (yield from do(self.model.invoke, messages, _run_config(task)))
        except Exception as error:
            raise self._build_error(error, task) from error

    def _build_error(self, error: Exception, task: str) -> ModelError:
        return ModelError(f"{self!r} failed at {task!r}: {type(error).__name__}: {error}")


def _run_config(task: str) -> RunnableConfig:
    return {"run_name": f"mem0.{task}", "tags": [TAG_NOSTREAM], "metadata": {"mem0_task": task}}


def _tool_dict(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
    return {"type": "function", "function": {**function, "strict": True} if tool.strict else function}


def _to_reply(answer: Any) -> Reply:
    if not isinstance(answer, AIMessage):  # a completion model, or a runnable that ends in a parser
        return Reply(answer if isinstance(answer, str) else json.dumps(answer, default=str, ensure_ascii=False))
    calls = [ToolCall(call["name"], call["args"]) for call in answer.tool_calls]
    calls += [ToolCall(call["name"] or "", call["args"] or "") for call in answer.invalid_tool_calls]
    return Reply(str(answer.text), tuple(calls), _read_usage(answer))


def _to_structured_reply(answer: Any) -> Reply:
    """The JSON of a structured answer as text: as the model wrote it, so that each item can be judged by itself."""
    if not (isinstance(answer, Mapping) and "raw" in answer):
        return _to_reply(answer)
    raw = _to_reply(answer["raw"])
    if raw.tool_calls:  # how most models are made to keep to a schema
        arguments = raw.tool_calls[0].arguments
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        return Reply(text, usage=raw.usage)
    if not raw.text.strip() and answer.get("parsed") is not None:
        return Reply(json.dumps(answer["parsed"], ensure_ascii=False), usage=raw.usage)
    return raw


def _read_usage(message: AIMessage) -> Usage | None:
    counted = message.usage_metadata
    return None if counted is None else Usage(counted["input_tokens"], counted["output_tokens"])


# --- embeddings ---------------------------------------------------------------------------------------------------


class LangChainEmbedder:
    """Embeddings of LangChain. As safe to share between threads as they are.

    Args:
        embeddings: `Embeddings` of any kind.
        name: of the vector space: stores refuse vectors of another one. By default the model that the object names,
            else its class; give one where several models of a class without names are in use.
        dims: how long the vectors are; by default the first call tells.
    """

    def __init__(self, embeddings: Embeddings, *, name: str | None = None, dims: int | None = None) -> None:
        self.embeddings = embeddings
        inner = getattr(embeddings, "underlying_embeddings", embeddings)  # a cache is of the space of what it caches
        self._name = name or _find_model_name(inner) or type(inner).__name__
        dims_declared = dims or getattr(inner, "dimensions", None)
        self._declared_dims: int | None = dims_declared if isinstance(dims_declared, int) else None
        self._dims = self._declared_dims

    def __repr__(self) -> str:
        return f"LangChainEmbedder({type(self.embeddings).__name__}, name={self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def dims(self) -> int:
        """The length of the vectors. Raises ModelError where the model has to be asked and fails."""
        if self._dims is None:
            self.embed(["dimensions"])
        assert self._dims is not None
        return self._dims

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Embed `texts` in their order: (n, dims) float32, rows of L2 norm 1.

        Raises:
            ModelError: the model failed, or gave no usable vectors.
            ConfigError: they are not as long as was said.
        """
        return run(self._embed_texts(texts, kind))

    async def aembed(
        self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document"
    ) -> NDArray[np.float32]:
        """`embed`, awaited."""
        return await arun(self._embed_texts(texts, kind))

    def _embed_texts(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Flow[NDArray[np.float32]]:
        wanted = list(texts) or (["dimensions"] if self._dims is None else [])
        if not wanted:
            return np.zeros((0, self._dims or 0), np.float32)
        try:
            if kind == "query":  # one by one: there is no call for several, and documents are embedded otherwise
                rows = []
                for text in wanted:
                    rows.append((yield from do(self.embeddings.embed_query, text)))  # noqa: PERF401 - no yield in one
            else:
                rows = yield from do(self.embeddings.embed_documents, wanted)
        except Exception as error:
            raise ModelError(f"{self!r} failed: {type(error).__name__}: {error}") from error
        dims_declared = self._declared_dims is not None
        vectors = to_unit_vectors(
            rows, count=len(wanted), dims=self._dims, dims_declared=dims_declared, model_label=self
        )
        self._dims = vectors.shape[1]
        return vectors[: len(texts)]


def _find_model_name(model: Any) -> str | None:
    """Which model an object of LangChain's stands for, as far as it says."""
    inner = getattr(model, "bound", model)  # of ``bind`` and ``with_retry``
    values = (getattr(inner, field, None) for field in _MODEL_NAME_FIELDS)
    return next((value for value in values if isinstance(value, str) and value), None)


# --- rerankers ----------------------------------------------------------------------------------------------------


class LangChainReranker:
    """A document compressor or a cross encoder of LangChain as a reranker.

    Scores of a compressor are the ``relevance_score`` it writes into metadata; where it writes none, the order it
    returns counts, as 1, (n - 1) / n, ... of n texts. What it leaves out has 0.

    Args:
        model: a `BaseDocumentCompressor` or a `BaseCrossEncoder`.
        logits: whether its scores are logits, of which a sigmoid makes numbers in [0, 1]. By default it is told from
            the scores: as soon as one lies outside [0, 1], they are taken for logits from then on.
    """

    def __init__(self, model: Any, *, logits: bool | None = None) -> None:
        self.model = model
        self._logits = logits

    def __repr__(self) -> str:
        return f"LangChainReranker({type(self.model).__name__}, model={_find_model_name(self.model)!r})"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Relevance in [0, 1] of each text to the query, in the order given.

        Raises:
            ModelError: the model failed, or gave something that is no score for each text.
        """
        return run(self._score_texts(query, texts))

    async def ascore(self, query: str, texts: Sequence[str]) -> list[float]:
        """`score`, awaited."""
        return await arun(self._score_texts(query, texts))

    def _score_texts(self, query: str, texts: Sequence[str]) -> Flow[list[float]]:
        if not texts:
            return []
        try:
            if isinstance(self.model, BaseDocumentCompressor):
                documents = [Document(text, metadata={_POSITION_KEY: place}) for place, text in enumerate(texts)]
                returned_documents = yield from do(self.model.compress_documents, documents, query)
                return self._scores_from_documents(returned_documents, len(texts))
            scores = yield from do(self.model.score, [(query, text) for text in texts])
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"{self!r} failed: {type(error).__name__}: {error}") from error
        if len(scores) != len(texts):
            raise ModelError(f"{self!r} gave {len(scores)} scores for {len(texts)} texts")
        return self._normalize_scores([float(score) for score in scores])

    def _scores_from_documents(self, returned_documents: Sequence[Document], count: int) -> list[float]:
        places = [document.metadata.get(_POSITION_KEY) for document in returned_documents]
        if not all(isinstance(place, int) and 0 <= place < count for place in places):
            raise ModelError(f"{self!r} returned documents that it was not given")
        given = [document.metadata.get("relevance_score") for document in returned_documents]
        if all(score is not None for score in given):
            scored = self._normalize_scores([float(score) for score in given if score is not None])
        else:
            scored = [(count - rank) / count for rank in range(len(returned_documents))]
        scores = [0.0] * count
        for place, score in zip(places, scored, strict=True):
            scores[int(place or 0)] = score
        return scores

    def _normalize_scores(self, scores: list[float]) -> list[float]:
        scored, self._logits = normalize_scores(scores, logits=self._logits)
        return scored


def _is_cross_encoder(instance: Any) -> bool:
    # Its class has moved from package to package: in releases before 1.2 it is not in langchain_core.
    return any(base.__name__ == "BaseCrossEncoder" for base in type(instance).__mro__)
