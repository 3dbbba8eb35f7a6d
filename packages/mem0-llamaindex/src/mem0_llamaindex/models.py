"""LlamaIndex's models as mem0's: LLMs, embeddings, and node postprocessors that rerank.

`Memory(llm=OpenAI(...), embedder=HuggingFaceEmbedding(...))` finds these classes by the entry point `adapt`. Use the
classes directly to set more options than the LlamaIndex objects carry.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ImageBlock, TextBlock
from llama_index.core.bridge.pydantic import BaseModel as ToolArguments
from llama_index.core.bridge.pydantic import ConfigDict
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.postprocessor import LLMRerank, StructuredLLMRerank
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import ChatPromptTemplate
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import BaseTool, FunctionTool, ToolMetadata
from numpy.typing import NDArray

from mem0_core import ConfigError, ModelError
from mem0_core.catalog import ComponentKind
from mem0_core.domain.records import Usage
from mem0_core.domain.suggestions import check_instance
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Reply, Tool, ToolCall
from mem0_core.providers.adapters import MeasuredEmbedder, arrange_scores, is_unsupported_request
from mem0_core.providers.prompted_tools import add_tool_prompt, arguments_as_text, read_prompted_calls
from mem0_core.providers.request_forms import FormsChat, RequestForm, RequestForms

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["LlamaIndexChat", "LlamaIndexEmbedder", "LlamaIndexReranker", "adapt", "chat", "embedder", "reranker"]

_log = logging.getLogger(__name__)

_ANSWER_TOOL = "answer"
_BLOCKING_ASYNC_CLASSES = (CustomLLM, MockFunctionCallingLLM)
"""Classes whose `achat` calls `chat` where it stands, and so would hold up an event loop."""


def adapt(kind: ComponentKind, instance: Any, **wiring: Any) -> Any:
    """Wrap a LlamaIndex object in the class that implements the interface of this kind.

    Raises:
        ConfigError: the object is not of this kind.
    """
    if kind == "llm" and isinstance(instance, LLM):
        return LlamaIndexChat(instance)
    if kind == "embedder" and isinstance(instance, BaseEmbedding):
        return LlamaIndexEmbedder(instance)
    if kind == "reranker" and isinstance(instance, BaseNodePostprocessor):
        return LlamaIndexReranker(instance)
    if kind == "vector_store":
        from llama_index.core.vector_stores.types import BasePydanticVectorStore

        from mem0_llamaindex.vectors import LlamaIndexVectors

        if isinstance(instance, BasePydanticVectorStore):
            return LlamaIndexVectors(instance, **wiring)
    raise ConfigError(f"{kind}: {type(instance).__name__} is not a LlamaIndex object of this kind")


# --- by name ------------------------------------------------------------------------------------------------------


def chat(model: LLM | str, **config: Any) -> LlamaIndexChat:
    """Build an LLM for ``{"provider": "llamaindex", "config": {"model": "llama_index.llms.openai.OpenAI", ...}}``.

    Args:
        model: an instance, or the full name of its class, which is called with `config`.

    Raises:
        ConfigError: there is no such class, it is not an LLM, or it rejects an argument.
    """
    made: LlamaIndexChat = adapt("llm", _build_component("llm", model, config))
    return made


def embedder(model: BaseEmbedding | str, *, embedding_dims: int | None = None, **config: Any) -> LlamaIndexEmbedder:
    """Build an embedding model, as `chat` builds an LLM; give `embedding_dims` to avoid a call for the dimensions."""
    made = _build_component("embedder", model, config)
    adapt("embedder", made)
    return LlamaIndexEmbedder(made, dims=embedding_dims)


def reranker(model: BaseNodePostprocessor | str, **config: Any) -> LlamaIndexReranker:
    """Build a node postprocessor that reranks, as `chat` builds an LLM."""
    made: LlamaIndexReranker = adapt("reranker", _build_component("reranker", model, config))
    return made


def _build_component(kind: ComponentKind, model: Any, config: Mapping[str, Any]) -> Any:
    if not isinstance(model, str):
        return model
    module, _, name = model.rpartition(".")
    try:
        return getattr(import_module(module), name)(**config)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigError(f"{kind}: LlamaIndex cannot make {model!r}: {error}") from error


# --- chat ---------------------------------------------------------------------------------------------------------


class LlamaIndexChat(FormsChat):
    """Any LlamaIndex LLM as a chat model. Thread safety is that of the wrapped object.

    `tools`, and a `schema` as the only tool, are sent by function calling. A `schema` is sent by ``structured_predict``
    if the class overrides it. If the model has neither, or its server rejects them, the form is described in the prompt
    and the text of the reply is parsed. The first form that works is reused, so a rejection costs one request.
    """

    def __init__(self, llm: LLM) -> None:
        check_instance(llm, LLM, "llm", "OpenAI(model=...); a name goes to Memory(llm=...)")
        self.llm = llm
        self._calls = _LLMCalls(llm)
        self._forms = RequestForms(self, self._build_error)

    def __repr__(self) -> str:
        return f"LlamaIndexChat({type(self.llm).__name__}, model={self.llm.metadata.model_name!r})"

    @property
    def supports(self) -> frozenset[str]:
        """Return the supported request features; see `mem0_core.interfaces.ChatModel`."""
        if self._supports_functions:
            return frozenset({"schema", "tools"})
        return frozenset({"schema"}) if self._has_structured_predict else frozenset()

    @property
    def _supports_functions(self) -> bool:
        return isinstance(self.llm, FunctionCallingLLM) and self.llm.metadata.is_function_calling_model

    @property
    def _has_structured_predict(self) -> bool:
        return _defining_class(self.llm, "structured_predict") is not LLM

    def _exchange(
        self,
        messages: Sequence[Mapping[str, Any]],
        task: str,
        schema: type[BaseModel] | None,
        tools: Sequence[Tool],
    ) -> Flow[Reply]:
        payload = [_to_chat_message(message) for message in messages]
        if not tools:
            forms = [*self._schema_forms(payload, schema)] if schema is not None else []
            plain = RequestForm("plain", lambda: do(self._calls.chat, payload), self._to_reply)
            return (yield from self._forms.send([*forms, plain], task))
        described = [_to_chat_message(message) for message in add_tool_prompt(messages, tools)]
        forms = [RequestForm("prompted tools", lambda: do(self._calls.chat, described), self._to_prompted_reply)]
        if self._supports_functions:
            functions = [_to_function_tool(tool) for tool in tools]
            send = partial(do, self._calls.with_tools, payload, functions)
            forms.insert(0, RequestForm("tools", send, self._to_reply))
        return (yield from self._forms.send(forms, task))

    def _schema_forms(self, payload: list[ChatMessage], schema: type[BaseModel]) -> Iterator[RequestForm]:
        """Yield the forms that make an answer follow `schema`.

        Function calling is preferred: structured_predict drops the whole answer if one item is wrong, and reports no
        usage.
        """
        if self._supports_functions:
            function = _to_function_tool(Tool(_ANSWER_TOOL, "Give your answer.", schema.model_json_schema()))
            send = partial(do, self._calls.with_one_tool, payload, [function])
            yield RequestForm("tools", send, lambda response: arguments_as_text(self._to_reply(response)))
        if self._has_structured_predict:
            yield RequestForm("schema", partial(do, self._calls.predict, payload, schema), _predicted_reply, schema)

    def _build_error(self, error: Exception, task: str) -> ModelError:
        return ModelError(f"{self!r} failed at {task!r}: {type(error).__name__}: {error}")

    def _to_reply(self, response: ChatResponse) -> Reply:
        calls: list[ToolCall] = []
        if isinstance(self.llm, FunctionCallingLLM):
            selected = self.llm.get_tool_calls_from_response(response, error_on_no_tool_call=False)
            calls = [ToolCall(call.tool_name, call.tool_kwargs) for call in selected]
        texts = [block.text for block in response.message.blocks if isinstance(block, TextBlock)]
        return Reply("\n".join(texts), tuple(calls), _read_usage(response))

    def _to_prompted_reply(self, response: ChatResponse) -> Reply:
        return read_prompted_calls(self._to_reply(response))


class _LLMCalls:
    """Calls of an LLM, with async versions that never block an event loop; `flow.arun` finds them by name."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm
        self._runs_in_thread = _defining_class(llm, "achat") in _BLOCKING_ASYNC_CLASSES

    def chat(self, messages: list[ChatMessage]) -> Any:
        return self._llm.chat(messages)

    async def achat(self, messages: list[ChatMessage]) -> Any:
        return await (asyncio.to_thread(self.chat, messages) if self._runs_in_thread else self._llm.achat(messages))

    def with_tools(self, messages: list[ChatMessage], tools: list[BaseTool], **options: Any) -> Any:
        return self._llm.chat_with_tools(tools, chat_history=messages, allow_parallel_tool_calls=True, **options)

    async def awith_tools(self, messages: list[ChatMessage], tools: list[BaseTool], **options: Any) -> Any:
        if self._runs_in_thread:
            return await asyncio.to_thread(self.with_tools, messages, tools, **options)
        more = {"chat_history": messages, "allow_parallel_tool_calls": True, **options}
        return await self._llm.achat_with_tools(tools, **more)

    def with_one_tool(self, messages: list[ChatMessage], tools: list[BaseTool]) -> Any:
        return self.with_tools(messages, tools, tool_required=True)

    async def awith_one_tool(self, messages: list[ChatMessage], tools: list[BaseTool]) -> Any:
        return await self.awith_tools(messages, tools, tool_required=True)

    def predict(self, messages: list[ChatMessage], schema: type[BaseModel]) -> Any:
        try:
            return self._llm.structured_predict(schema, ChatPromptTemplate(message_templates=messages))
        except ValueError as error:
            return _malformed_reply(error)

    async def apredict(self, messages: list[ChatMessage], schema: type[BaseModel]) -> Any:
        if self._runs_in_thread:
            return await asyncio.to_thread(self.predict, messages, schema)
        try:
            return await self._llm.astructured_predict(schema, ChatPromptTemplate(message_templates=messages))
        except ValueError as error:
            return _malformed_reply(error)


def _predicted_reply(predicted: Reply | BaseModel) -> Reply:
    return predicted if isinstance(predicted, Reply) else Reply(predicted.model_dump_json())


def _malformed_reply(error: ValueError) -> Reply:
    """Return an error of structured_predict about the form of an answer as a bad reply; raise another one."""
    if is_unsupported_request(error):
        raise error
    return Reply(str(error))


def _defining_class(instance: Any, method: str) -> type:
    """Return the class that defines a method of an object; the methods are wrapped and cannot be compared."""
    return next(base for base in type(instance).__mro__ if method in vars(base))


def _to_chat_message(message: Mapping[str, Any]) -> ChatMessage:
    content = message.get("content")
    blocks = (
        [_to_block(part) for part in content] if isinstance(content, list) else [TextBlock(text=str(content or ""))]
    )
    return ChatMessage(role=message["role"], blocks=blocks)


def _to_block(part: Mapping[str, Any]) -> TextBlock | ImageBlock:
    if part["type"] != "image_url":
        return TextBlock(text=str(part.get("text", "")))
    url = part["image_url"]["url"]
    if url.startswith("data:"):
        head, _, data = url.partition(",")
        return ImageBlock(image=b64decode(data), image_mimetype=head[5:].partition(";")[0] or None)
    return ImageBlock(url=url)


def _to_function_tool(tool: Tool) -> BaseTool:
    """Convert a tool to LlamaIndex's form, with our JSON schema in place of a pydantic class."""

    class Arguments(ToolArguments):
        model_config = ConfigDict(extra="allow")

        @classmethod
        def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return dict(tool.parameters)

    metadata = ToolMetadata(name=tool.name, description=tool.description, fn_schema=Arguments)
    return FunctionTool(fn=lambda **arguments: arguments, metadata=metadata)


def _read_usage(response: ChatResponse) -> Usage | None:
    """Return token counts from the response's own fields or from the provider's raw answer."""
    raw = response.raw
    usage = raw.get("usage") if isinstance(raw, Mapping) else getattr(raw, "usage", None)
    for counted in (response.additional_kwargs, response.message.additional_kwargs, usage):
        for asked, answered in (("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")):
            numbers = [_get_value(counted, asked), _get_value(counted, answered)]
            if all(isinstance(number, int) for number in numbers):
                return Usage(*numbers)
    return None


def _get_value(counted: Any, key: str) -> Any:
    return counted.get(key) if isinstance(counted, Mapping) else getattr(counted, key, None)


# --- embeddings ---------------------------------------------------------------------------------------------------


class LlamaIndexEmbedder(MeasuredEmbedder):
    """A LlamaIndex embedding model as an embedder. Thread safety is that of the wrapped object.

    It has no async version and is called in a thread on an event loop: most LlamaIndex embeddings compute synchronously
    in their async methods.

    Args:
        name: name of the embedding space; stores reject vectors of another space. By default the model that the object
            names, else its class. Set it if several unnamed models of one class are in use.
        dims: length of the vectors; by default known from the first call.
    """

    def __init__(self, model: BaseEmbedding, *, name: str | None = None, dims: int | None = None) -> None:
        check_instance(model, BaseEmbedding, "model", "OpenAIEmbedding(model=...); a name goes to Memory(embedder=...)")
        super().__init__(dims)
        self.model = model
        named = model.model_name if model.model_name != "unknown" else None
        self._name = name or named or type(model).__name__

    def __repr__(self) -> str:
        return f"LlamaIndexEmbedder({type(self.model).__name__}, name={self._name!r})"

    @property
    def name(self) -> str:
        return self._name

    def embed(self, texts: Sequence[str], *, kind: Literal["document", "query"] = "document") -> NDArray[np.float32]:
        """Embed `texts` in order: (n, dims) float32, rows of L2 norm 1.

        Raises:
            ModelError: the model failed, or returned unusable vectors.
            ConfigError: the vectors do not have the configured length.
        """
        if not texts:
            return np.zeros((0, self.dims), np.float32)
        try:
            rows = (
                [self.model.get_query_embedding(text) for text in texts]  # there is no batch call
                if kind == "query"
                else self.model.get_text_embedding_batch(list(texts))
            )
        except Exception as error:
            raise ModelError(f"{self!r} failed: {type(error).__name__}: {error}") from error
        return self._to_unit_vectors(rows, len(texts))


# --- rerankers ----------------------------------------------------------------------------------------------------


class LlamaIndexReranker:
    """A LlamaIndex node postprocessor as a reranker.

    Scores are those of the returned nodes. If it sets none, the returned order counts, as 1, (n - 1) / n, ... for n
    texts. Omitted texts (its `top_n` may be small) score 0.

    Args:
        logits: True if the scores are logits, which a sigmoid maps to [0, 1]. By default detected: once a score is
            outside [0, 1], all later scores are treated as logits. (LLM rerankers give one to ten points, which are
            divided by ten.)
    """

    def __init__(self, model: BaseNodePostprocessor, *, logits: bool | None = None) -> None:
        self.model = model
        self._logits = logits
        self._points = 10.0 if isinstance(model, (LLMRerank, StructuredLLMRerank)) else 1.0

    def __repr__(self) -> str:
        return f"LlamaIndexReranker({type(self.model).__name__})"

    def score(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the relevance in [0, 1] of each text to the query, in the given order.

        Raises:
            ModelError: the model failed, or returned unknown nodes.
        """
        if not texts:
            return []
        nodes = [NodeWithScore(node=TextNode(id_=str(place), text=text)) for place, text in enumerate(texts)]
        try:
            kept = self.model.postprocess_nodes(nodes, query_str=query)
        except Exception as error:
            raise ModelError(f"{self!r} failed: {type(error).__name__}: {error}") from error
        places = [int(node.node.node_id) if node.node.node_id.isdecimal() else None for node in kept]
        points = [None if node.score is None else node.score / self._points for node in kept]
        arranged, self._logits = arrange_scores(places, points, count=len(texts), logits=self._logits, model_label=self)
        return arranged
