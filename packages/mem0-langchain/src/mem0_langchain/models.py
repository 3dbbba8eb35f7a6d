"""LangChain's models as mem0's: chat models, embeddings, document compressors and cross-encoders.

`Memory(llm=ChatOpenAI(...), embedder=OpenAIEmbeddings(...))` finds these classes by the entry point `adapt`. Use the
classes directly to set more options than the LangChain objects carry.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from numpy.typing import NDArray

from mem0_core import ConfigError, ModelError
from mem0_core.catalog import ComponentKind
from mem0_core.domain.records import Usage
from mem0_core.domain.suggestions import check_instance
from mem0_core.flow import Flow, arun, do, run
from mem0_core.interfaces import Reply, Tool, ToolCall
from mem0_core.providers.adapters import AsyncEmbedder, arrange_scores
from mem0_core.providers.prompted_tools import add_tool_prompt, arguments_as_text, read_prompted_calls
from mem0_core.providers.request_forms import FormsChat, RequestForm, RequestForms

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["LangChainChat", "LangChainEmbedder", "LangChainReranker", "adapt", "chat", "embedder", "reranker"]

T = TypeVar("T")

log = logging.getLogger("mem0_langchain")

_MODEL_NAME_FIELDS = ("model", "model_name", "model_id", "repo_id", "deployment")
"""Where LangChain's classes say which model they are; the first that holds a text counts."""
_POSITION_KEY = "mem0_position"

CHAT_NAMES = {
    "aws_bedrock": "bedrock_converse",
    "azure_openai_structured": "azure_openai",
    "gemini": "google_genai",
}
"""LangChain's name of a chat provider for mem0's."""
EMBEDDING_NAMES = {"aws_bedrock": "bedrock", "gemini": "google_genai", "vertexai": "google_vertexai"}
"""LangChain's name of an embedding provider for mem0's."""


def adapt(kind: ComponentKind, instance: Any, **wiring: Any) -> Any:
    """Wrap a LangChain object in the class that implements the interface of this kind.

    Raises:
        ConfigError: the object is not of this kind.
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
    raise ConfigError(f"{kind}: {type(instance).__name__} is not a LangChain object of this kind")


# --- by name ------------------------------------------------------------------------------------------------------


def chat(model: Any, *, provider: str | None = None, **config: Any) -> LangChainChat:
    """Build a chat model from ``"provider:model"`` with `langchain.chat_models.init_chat_model`, or wrap an instance.

    Raises:
        ConfigError: LangChain does not know the model, its package is missing, or an argument is rejected.
    """
    if isinstance(model, str):
        from langchain.chat_models import init_chat_model

        name = CHAT_NAMES.get(provider, provider) if provider else None
        model = _build_component("llm", init_chat_model, model, model_provider=name, **config)
    return _cast_adapter(LangChainChat, adapt("llm", model))


def embedder(model: Any, *, provider: str | None = None, embedding_dims: int | None = None, **config: Any) -> Any:
    """Build embeddings from ``"provider:model"`` with `langchain.embeddings.init_embeddings`, or wrap an instance.

    Raises:
        ConfigError: as for `chat`.
    """
    if isinstance(model, str):
        from langchain.embeddings import init_embeddings

        name = EMBEDDING_NAMES.get(provider, provider) if provider else None
        model = _build_component("embedder", init_embeddings, model, provider=name, **config)
    adapt("embedder", model)
    return LangChainEmbedder(model, dims=embedding_dims)


def reranker(model: Any = None, *, provider: str | None = None, **config: Any) -> LangChainReranker:
    """Build the reranker of a provider, or wrap a document compressor or cross-encoder that is given as `model`.

    Raises:
        ConfigError: the model has no method to rank texts, or an argument is rejected.
        MissingExtraError: the packages of the provider are not installed.
    """
    if provider is None:
        if model is None or config:
            raise ConfigError(
                "reranker.config (langchain): the key 'model' is required, and no other: a document compressor or a"
                f" cross-encoder; given: {', '.join([*config]) or 'none'}"
            )
        return _cast_adapter(LangChainReranker, adapt("reranker", model))
    from mem0_langchain.reranker_providers import build_reranker

    return LangChainReranker(build_reranker(provider, {"model": model, **config}))


def _cast_adapter(kind: type[T], adapted: Any) -> T:
    assert isinstance(adapted, kind)
    return adapted


def _build_component(kind: ComponentKind, make: Callable[..., Any], *args: Any, **options: Any) -> Any:
    try:
        return make(*args, **options)
    except (ImportError, ValueError, TypeError) as error:  # missing package, unknown provider, wrong argument
        raise ConfigError(f"{kind}: LangChain cannot make {args[0]!r}: {error}") from error


# --- chat ---------------------------------------------------------------------------------------------------------


class LangChainChat(FormsChat):
    """A LangChain chat model, or a runnable made of one (``with_retry``, ``with_fallbacks``, ``bind``).

    A `schema` is sent with ``with_structured_output`` and `tools` with ``bind_tools``. If the model has neither, or its
    server rejects them, the form is described in the prompt and the text of the reply is parsed. The first form that
    works is reused, so a rejection costs one request.

    Each call is a LangChain run of its own, nested below the memory's run if there is one and tagged ``nostream``: the
    model calls of a memory are not part of an agent's reply.
    """

    def __init__(self, model: Runnable[Any, Any]) -> None:
        check_instance(model, Runnable, "model", "ChatOpenAI(model=...); a name goes to Memory(llm='langchain:...')")
        self.model = model
        self._forms = RequestForms(self, self._build_error)

    def __repr__(self) -> str:
        return f"LangChainChat({type(self.model).__name__}, model={_find_model_name(self.model)!r})"

    @property
    def supports(self) -> frozenset[str]:
        """Return the supported request features; see `mem0_core.interfaces.ChatModel`."""
        theirs = getattr(type(self.model), "bind_tools", None) or getattr(self.model, "bind_tools", None)
        has_tools = theirs is not None and theirs is not BaseChatModel.bind_tools
        return frozenset({"schema", "tools"}) if has_tools else frozenset()

    def _exchange(
        self,
        messages: Sequence[Mapping[str, Any]],
        task: str,
        schema: type[BaseModel] | None,
        tools: Sequence[Tool],
    ) -> Flow[Reply]:
        payload = [dict(message) for message in messages]
        forms = [RequestForm("plain", partial(self._invoke, self.model, payload, task), _to_reply)]
        if tools:
            send = partial(self._invoke, self.model, add_tool_prompt(payload, tools), task)
            forms = [RequestForm("prompted tools", send, _to_prompted_reply)]
            with_tools = self._bind_or_none(lambda model: model.bind_tools([tool.as_dict() for tool in tools]))
            if with_tools is not None:
                forms.insert(0, RequestForm("tools", partial(self._invoke, with_tools, payload, task), _to_reply))
        elif schema is not None:
            shape = schema.model_json_schema()
            structured = self._bind_or_none(lambda model: model.with_structured_output(shape, include_raw=True))
            if structured is not None:
                send = partial(self._invoke, structured, payload, task)
                forms.insert(0, RequestForm("schema", send, _to_structured_reply, schema))
        return (yield from self._forms.send(forms, task))

    def _bind_or_none(self, bind: Callable[[Any], Runnable[Any, Any]]) -> Runnable[Any, Any] | None:
        """Return the model with tools or a schema bound; None if it supports neither."""
        try:
            return bind(self.model)
        except (NotImplementedError, AttributeError, NameError):
            return None  # a NameError: `with_fallbacks` evaluates type hints that are not always importable

    def _invoke(self, model: Runnable[Any, Any], messages: list[dict[str, Any]], task: str) -> Flow[Any]:
        return (yield from do(model.invoke, messages, _run_config(task)))

    def _build_error(self, error: Exception, task: str) -> ModelError:
        return ModelError(f"{self!r} failed at {task!r}: {type(error).__name__}: {error}")


def _run_config(task: str) -> RunnableConfig:
    return {"run_name": f"mem0.{task}", "tags": [TAG_NOSTREAM], "metadata": {"mem0_task": task}}


def _to_reply(answer: Any) -> Reply:
    if not isinstance(answer, AIMessage):  # a completion model, or a runnable that ends with a parser
        return Reply(answer if isinstance(answer, str) else json.dumps(answer, default=str, ensure_ascii=False))
    calls = [ToolCall(call["name"], call["args"]) for call in answer.tool_calls]
    calls += [ToolCall(call["name"] or "", call["args"] or "") for call in answer.invalid_tool_calls]
    return Reply(str(answer.text), tuple(calls), _read_usage(answer))


def _to_prompted_reply(answer: Any) -> Reply:
    return read_prompted_calls(_to_reply(answer))


def _to_structured_reply(answer: Any) -> Reply:
    """The JSON of a structured answer as text: as the model wrote it, so that each item can be judged by itself."""
    if not (isinstance(answer, Mapping) and "raw" in answer):
        return _to_reply(answer)
    raw = _to_reply(answer["raw"])
    if raw.tool_calls:  # the method that most models use to follow a schema
        return arguments_as_text(raw)
    if not raw.text.strip() and answer.get("parsed") is not None:
        return Reply(json.dumps(answer["parsed"], ensure_ascii=False), usage=raw.usage)
    return raw


def _read_usage(message: AIMessage) -> Usage | None:
    counted = message.usage_metadata
    return None if counted is None else Usage(counted["input_tokens"], counted["output_tokens"])


# --- embeddings ---------------------------------------------------------------------------------------------------


class LangChainEmbedder(AsyncEmbedder):
    """LangChain embeddings as an embedder. Thread safety is that of the wrapped object.

    Args:
        embeddings: any `Embeddings`.
        name: name of the embedding space; stores reject vectors of another space. By default the model that the object
            names, else its class. Set it if several unnamed models of one class are in use.
        dims: length of the vectors; by default known from the first call.
    """

    def __init__(self, embeddings: Embeddings, *, name: str | None = None, dims: int | None = None) -> None:
        check_instance(
            embeddings, Embeddings, "embeddings", "OpenAIEmbeddings(model=...); a name goes to Memory(embedder=...)"
        )
        self.embeddings = embeddings
        inner = getattr(embeddings, "underlying_embeddings", embeddings)  # a cache has its model's space
        self._name = name or _find_model_name(inner) or type(inner).__name__
        declared = dims or getattr(inner, "dimensions", None)
        super().__init__(declared if isinstance(declared, int) else None)

    def __repr__(self) -> str:
        return f"LangChainEmbedder({type(self.embeddings).__name__}, name={self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    def _embed_texts(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Flow[NDArray[np.float32]]:
        wanted = list(texts) or (["dimensions"] if self._dims is None else [])
        if not wanted:
            return np.zeros((0, self._dims or 0), np.float32)
        try:
            if kind == "query":  # one by one: queries have no batch call, and documents are embedded differently
                rows = []
                for text in wanted:
                    rows.append((yield from do(self.embeddings.embed_query, text)))  # noqa: PERF401 - no yield in one
            else:
                rows = yield from do(self.embeddings.embed_documents, wanted)
        except Exception as error:
            raise ModelError(f"{self!r} failed: {type(error).__name__}: {error}") from error
        return self._to_unit_vectors(rows, len(wanted))[: len(texts)]


def _find_model_name(model: Any) -> str | None:
    """Return the model name of a LangChain object, if it has one."""
    inner = getattr(model, "bound", model)  # of ``bind`` and ``with_retry``
    values = (getattr(inner, field, None) for field in _MODEL_NAME_FIELDS)
    return next((value for value in values if isinstance(value, str) and value), None)


# --- rerankers ----------------------------------------------------------------------------------------------------


class LangChainReranker:
    """A LangChain document compressor or cross-encoder as a reranker.

    The scores of a compressor are the ``relevance_score`` values that it writes into metadata. If it writes none, the
    returned order counts, as 1, (n - 1) / n, ... for n texts. Omitted texts score 0.

    Args:
        model: a `BaseDocumentCompressor` or a `BaseCrossEncoder`.
        logits: True if the scores are logits, which a sigmoid maps to [0, 1]. By default detected: once a score is
            outside [0, 1], all later scores are treated as logits.
    """

    def __init__(self, model: Any, *, logits: bool | None = None) -> None:
        self.model = model
        self._logits = logits

    def __repr__(self) -> str:
        return f"LangChainReranker({type(self.model).__name__}, model={_find_model_name(self.model)!r})"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance in [0, 1] of each text to the query, in the given order.

        Raises:
            ModelError: the model failed, or did not return one score per text.
        """
        return run(self._score_texts(query, texts))

    async def ascore(self, query: str, texts: Sequence[str]) -> list[float]:
        """Async version of `score`."""
        return await arun(self._score_texts(query, texts))

    def _score_texts(self, query: str, texts: Sequence[str]) -> Flow[list[float]]:
        if not texts:
            return []
        try:
            if isinstance(self.model, BaseDocumentCompressor):
                documents = [Document(text, metadata={_POSITION_KEY: place}) for place, text in enumerate(texts)]
                returned = yield from do(self.model.compress_documents, documents, query)
                places = [document.metadata.get(_POSITION_KEY) for document in returned]
                scores = [document.metadata.get("relevance_score") for document in returned]
            else:
                places = [*range(len(texts))]
                scores = yield from do(self.model.score, [(query, text) for text in texts])
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"{self!r} failed: {type(error).__name__}: {error}") from error
        if len(scores) != len(places):
            raise ModelError(f"{self!r} gave {len(scores)} scores for {len(places)} texts")
        arranged, self._logits = arrange_scores(places, scores, count=len(texts), logits=self._logits, model_label=self)
        return arranged


def _is_cross_encoder(instance: Any) -> bool:
    # The class moved between packages: before 1.2 it is not in langchain_core.
    return any(base.__name__ == "BaseCrossEncoder" for base in type(instance).__mro__)
