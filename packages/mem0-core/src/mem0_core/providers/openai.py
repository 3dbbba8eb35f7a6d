"""Chat and embedding models behind the OpenAI protocol: OpenAI itself, Ollama, vLLM, llama-server, LM Studio, ...

The `openai` library is imported when a model is constructed, not when this module is imported. Nothing is sent before
the first call.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from mem0_core.domain.records import Usage
from mem0_core.domain.secrets import find_secrets, redact, redact_url
from mem0_core.errors import ConfigError, MissingExtraError, ModelError
from mem0_core.flow import Flow, do
from mem0_core.interfaces import Reply, Tool, ToolCall
from mem0_core.llm.tokens import make_token_counter
from mem0_core.providers.adapters import AsyncEmbedder
from mem0_core.providers.prompted_tools import add_tool_prompt, parse_tool_calls
from mem0_core.providers.request_forms import FormsChat, RequestForm, RequestForms

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic import BaseModel

log = logging.getLogger(__name__)

PLACEHOLDER_API_KEY = "no-key"
"""Sent to a self-hosted server if no key is given; the client requires one."""
KNOWN_DIMS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
_MIN_KEY_CHARS = 8
MAX_BATCH_INPUTS = 256
MAX_BATCH_BYTES = 600_000
"""OpenAI accepts 300,000 tokens per request, and a token rarely has fewer than two bytes."""


class OpenAIChat(FormsChat):
    """A chat model on an OpenAI-compatible server. Safe to share between threads and event loops.

    A `schema` is sent as a JSON schema. If the server refuses that (DeepSeek), any JSON is requested; if it refuses
    that too (LM Studio), only the prompt asks for JSON. `tools` are sent as tools. If the server or the model has none
    (vLLM without a tool parser, many models of Ollama), they are described in the system message and parsed from JSON.
    The form that worked is used from then on.

    Args:
        api_key: default ``$OPENAI_API_KEY``, else a placeholder if a base URL is given.
        base_url: for instance ``http://localhost:11434/v1``; default ``$OPENAI_BASE_URL``, else OpenAI.
            `openai_base_url` is mem0's name for it.
        temperature, max_tokens, top_p: sent unless None. An option that the model rejects as unsupported is omitted
            from then on (`max_tokens` is first sent as ``max_completion_tokens``).
        timeout: seconds for one attempt.
        max_retries: number of retries after a lost connection, a timeout, or a status of 408, 409, 429 or 5xx. The
            pause before each doubles from half a second, unless the server names one.

    Raises:
        MissingExtraError: `openai` is not installed.
        ConfigError: there is neither a key nor a base URL, or the base URL is invalid.
    """

    def __init__(
        self,
        model: str = "gpt-4o-mini",
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        openai_base_url: str | None = None,
        temperature: float | None = 0.1,
        max_tokens: int | None = None,
        top_p: float | None = None,
        timeout: float = 120.0,
        max_retries: int = 2,
    ) -> None:
        self.model = model
        self._server = _Server(api_key, base_url, openai_base_url, timeout, max_retries)
        given = {"temperature": temperature, "max_tokens": max_tokens, "top_p": top_p}
        self._options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        self._forms = RequestForms(
            self,
            lambda error, task: self._server.build_error(error, self.model, task),
            lambda error: self._server.redact_key(str(error)),
        )

    @cached_property
    def _token_counter(self) -> Callable[[str], int]:
        return make_token_counter(self.model)

    def __repr__(self) -> str:
        return f"OpenAIChat(model={self.model!r}, base_url={self._server.url!r})"

    def count_tokens(self, text: str) -> int:
        """Count or estimate the tokens of a text without any download; see `llm.tokens.make_token_counter`."""
        return self._token_counter(text)

    def close(self) -> None:
        """Close the connections of `complete`."""
        self._server.client.close()

    async def aclose(self) -> None:
        """Close the connections of `acomplete` in the running event loop."""
        await self._server.async_client().close()

    def _exchange(
        self,
        messages: Sequence[Mapping[str, Any]],
        task: str,
        schema: type[BaseModel] | None,
        tools: Sequence[Tool],
    ) -> Flow[Reply]:
        plain = [dict(message) for message in messages]
        if tools:
            sent = {"messages": plain, "tools": [tool.as_dict() for tool in tools]}
            forms = [
                self._form("tools", sent, task),
                self._form("prompted tools", {"messages": add_tool_prompt(plain, tools)}, task, tools_prompted=True),
            ]
        else:
            forms = [self._form("plain", {"messages": plain}, task)]
        if schema is not None and not tools:
            json_schema = {"name": _schema_name(schema), "strict": True, "schema": self._server.strict_schema(schema)}
            formats = {"schema": {"type": "json_schema", "json_schema": json_schema}, "json": {"type": "json_object"}}
            forms[:0] = [
                self._form(name, {"messages": plain, "response_format": response_format}, task, schema)
                for name, response_format in formats.items()
            ]
        return (yield from self._forms.send(forms, task))

    def _form(
        self,
        name: str,
        request: dict[str, Any],
        task: str,
        schema: type[BaseModel] | None = None,
        *,
        tools_prompted: bool = False,
    ) -> RequestForm:
        return RequestForm(
            name,
            send=lambda: self._send(request),
            read=lambda completion: self._parse_completion(completion, task, tools_prompted=tools_prompted),
            schema=schema,
        )

    def _send(self, request: dict[str, Any]) -> Flow[Any]:
        """Send a request, again without each option that the model does not support."""
        while True:
            options = self._options
            try:
                return (yield from do(self._server.complete, {"model": self.model, **options, **request}))
            except self._server.errors as error:
                if not self._drop_unsupported(error, options):
                    raise

    def _drop_unsupported(self, error: Exception, options: dict[str, Any]) -> bool:
        """Omit from now on the option that `error` reports as unsupported; return False if it names none of ours."""
        option = getattr(error, "param", None)
        if getattr(error, "code", None) not in ("unsupported_parameter", "unsupported_value") or option not in options:
            return False
        remaining = {name: value for name, value in options.items() if name != option}
        if option == "max_tokens":
            remaining["max_completion_tokens"] = options[option]
        log.warning("%r does not support %s, which is omitted from now on", self, option)
        self._options = remaining
        return True

    def _parse_completion(self, completion: Any, task: str, *, tools_prompted: bool) -> Reply:
        choices = getattr(completion, "choices", None)
        message = getattr(choices[0], "message", None) if choices else None
        if message is None:
            raise ModelError(
                f"{self.model!r} at {self._server.url} answered {task!r} with something other than a chat completion: "
                f"{self._server.redact_key(str(completion))[:300]}"
            )
        text = message.content or getattr(message, "refusal", None) or ""
        calls = [_tool_call(call) for call in message.tool_calls or () if getattr(call, "function", None)]
        if tools_prompted:
            calls = calls or parse_tool_calls(text)
        return Reply(text=text, tool_calls=tuple(calls), usage=_read_usage(completion))


def _tool_call(call: Any) -> ToolCall:
    arguments = call.function.arguments
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except ValueError:
            parsed = None
        arguments = parsed if isinstance(parsed, dict) else arguments
    return ToolCall(name=call.function.name, arguments=arguments)


def _schema_name(schema: type[BaseModel]) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", schema.__name__)[:64]


def _read_usage(completion: Any) -> Usage | None:
    usage = getattr(completion, "usage", None)
    if usage is None:
        return None
    return Usage(input_tokens=usage.prompt_tokens or 0, output_tokens=usage.completion_tokens or 0)


class OpenAIEmbedder(AsyncEmbedder):
    """An embedding model on an OpenAI-compatible server. Safe to share between threads and event loops.

    Args:
        api_key, base_url, openai_base_url, timeout, max_retries: as for `OpenAIChat`.
        embedding_dims: length of the vectors, checked against each answer. Default: known for OpenAI's models; for
            others the first call determines it (reading `dims` earlier makes a small call).
        send_dimensions: request vectors of `embedding_dims` by the ``dimensions`` parameter. Default: only if
            `embedding_dims` shortens a text-embedding-3 model, because other models refuse it.
        max_input_bytes: texts are cut to this many bytes of UTF-8. The default fits the 8,192 tokens of OpenAI's
            models; use less for a model with a smaller context on a server that does not truncate.

    Raises:
        MissingExtraError, ConfigError: as for `OpenAIChat`.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        openai_base_url: str | None = None,
        embedding_dims: int | None = None,
        send_dimensions: bool | None = None,
        max_input_bytes: int = 24_000,
        timeout: float = 60.0,
        max_retries: int = 2,
    ) -> None:
        if embedding_dims is not None and embedding_dims < 1:
            raise ConfigError(f"embedding_dims must be at least 1, not {embedding_dims}")
        if send_dimensions and embedding_dims is None:
            raise ConfigError("send_dimensions needs embedding_dims")
        super().__init__(embedding_dims)
        self.model = model
        self._server = _Server(api_key, base_url, openai_base_url, timeout, max_retries)
        self._dims = embedding_dims or KNOWN_DIMS.get(model)
        self._max_bytes = max_input_bytes
        if send_dimensions is None:
            send_dimensions = model.startswith("text-embedding-3") and self._dims != KNOWN_DIMS.get(model)
        self._options: dict[str, Any] = {"dimensions": embedding_dims} if send_dimensions else {}

    def __repr__(self) -> str:
        return f"OpenAIEmbedder(model={self.model!r}, base_url={self._server.url!r})"

    @property
    def name(self) -> str:
        return self.model

    def _embed_texts(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Flow[NDArray[np.float32]]:
        wanted = list(texts) or (["dimensions"] if self._dims is None else [])
        rows = [np.zeros((0, self._dims or 0), np.float32)] if not wanted else []
        for request in self._build_requests(wanted):
            try:
                answer = yield from do(self._server.embed, request)
            except self._server.errors as error:
                raise self._server.build_error(error, self.model, "embed") from error
            rows.append(self._parse_embeddings(answer, len(request["input"])))
        return np.concatenate(rows)[: len(texts)]

    @property
    def _label(self) -> str:
        return f"{self.model!r} at {self._server.url}"

    def close(self) -> None:
        """Close the connections of `embed`."""
        self._server.client.close()

    async def aclose(self) -> None:
        """Close the connections of `aembed` in the running event loop."""
        await self._server.async_client().close()

    def _build_requests(self, texts: Sequence[str]) -> Iterator[dict[str, Any]]:
        for batch in _batches([_truncate(text, self._max_bytes) for text in texts]):
            # The client requests base64 by default, which not every server supports.
            yield {"model": self.model, "input": batch, "encoding_format": "float", **self._options}

    def _parse_embeddings(self, answer: Any, count: int) -> NDArray[np.float32]:
        data = getattr(answer, "data", None)
        if not data:
            raise ModelError(f"{self._label} answered with no embeddings: {self._server.redact_key(str(answer))[:300]}")
        if all(isinstance(item.index, int) for item in data):
            data = sorted(data, key=lambda item: item.index)
        return self._to_unit_vectors([item.embedding for item in data], count)


def _truncate(text: str, max_bytes: int) -> str:
    """Cut `text` to `max_bytes` of UTF-8; return a space for an empty text, which OpenAI refuses."""
    # A character has at least one byte, so the rest of a huge text need not be encoded.
    data = text[:max_bytes].encode("utf-8", "replace")
    return data[:max_bytes].decode("utf-8", "ignore") or " "


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        length = len(text.encode())
        if batch and (len(batch) == MAX_BATCH_INPUTS or size + length > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield batch


class _Server:
    """The clients of one server, and its errors without the API key."""

    def __init__(
        self, api_key: str | None, base_url: str | None, openai_base_url: str | None, timeout: float, max_retries: int
    ) -> None:
        try:
            import openai
        except ModuleNotFoundError as error:
            raise MissingExtraError("openai", "openai") from error
        if base_url and openai_base_url and base_url != openai_base_url:
            raise ConfigError("base_url and openai_base_url name the same setting: pass only one")
        address = base_url or openai_base_url or os.environ.get("OPENAI_BASE_URL")
        if address and urlsplit(address).scheme not in ("http", "https"):
            raise ConfigError(f"base_url must begin with http:// or https://, not {redact_url(address)!r}")
        self._openai = openai
        self._key = _resolve_api_key(api_key, address)
        self._secrets = find_secrets({"api_key": self._key, "base_url": address})
        address, headers = _split_credentials(address)
        self._secrets += [value.removeprefix("Basic ") for value in headers.values()]
        self._settings: dict[str, Any] = {
            "api_key": self._key,
            "base_url": address,
            "timeout": timeout,
            "max_retries": max_retries,
            "default_headers": headers,
        }
        self.client = openai.OpenAI(**self._settings)
        self.url = _redact_url(str(self.client.base_url))
        # The client passes invalid JSON on as the ValueError of the json module.
        self.errors: tuple[type[Exception], ...] = (openai.OpenAIError, ValueError)
        self._async_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = WeakKeyDictionary()

    def complete(self, request: Mapping[str, Any]) -> Any:
        """Send a chat request."""
        return self.client.chat.completions.create(**request)

    async def acomplete(self, request: Mapping[str, Any]) -> Any:
        """Async variant of `complete`."""
        return await self.async_client().chat.completions.create(**request)

    def embed(self, request: Mapping[str, Any]) -> Any:
        """Send a request for embeddings."""
        return self.client.embeddings.create(**request)

    async def aembed(self, request: Mapping[str, Any]) -> Any:
        """Async variant of `embed`."""
        return await self.async_client().embeddings.create(**request)

    def async_client(self) -> AsyncOpenAI:
        """Return the client of the running event loop; connections cannot move between loops."""
        loop = asyncio.get_running_loop()
        client = self._async_clients.get(loop)
        if client is None:
            for other in [other for other in self._async_clients if other.is_closed()]:
                del self._async_clients[other]
            client = self._async_clients[loop] = self._openai.AsyncOpenAI(**self._settings)
        return client

    def strict_schema(self, schema: type[BaseModel]) -> Any:
        """Return the JSON schema in the form of OpenAI's strict mode: all properties required, no others."""
        return self._openai.pydantic_function_tool(schema)["function"].get("parameters", {})

    def redact_key(self, text: str) -> str:
        # A shorter key ("none", "ollama") is no secret, and may be a word of the message.
        return redact(text, [secret for secret in self._secrets if len(secret) >= _MIN_KEY_CHARS])

    def build_error(self, error: Exception, model: str, task: str) -> ModelError:
        """Build the ModelError of a failed task. The key is removed from `error` too, which is chained."""
        error.args = tuple(self.redact_key(arg) if isinstance(arg, str) else arg for arg in error.args)
        if isinstance(error, self._openai.APIError):
            error.message = self.redact_key(error.message)
        reason = str(error).rstrip(".")
        body = getattr(error, "body", None)
        if isinstance(body, str) and body not in reason:
            reason += f": {self.redact_key(body)[:300]}"  # LM Studio sends errors as plain strings
        if isinstance(error, self._openai.APITimeoutError):
            reason += f" after {self._settings['timeout']} seconds; raise timeout, or check that the server answers"
        elif isinstance(error, self._openai.APIConnectionError) and error.__cause__:
            reason += f" ({self.redact_key(str(error.__cause__))}); start the server, or correct base_url"
        if getattr(error, "status_code", None) == 404 and not urlsplit(self.url).path.strip("/"):
            reason += " (most servers expect a base_url that ends in /v1)"
        return ModelError(f"{model!r} at {self.url} failed at {task!r}: {reason}")


def _resolve_api_key(given: str | None, address: str | None) -> str:
    key = (given or os.environ.get("OPENAI_API_KEY") or "").strip()
    if not key and not address:
        raise ConfigError("api_key is missing: pass it, set OPENAI_API_KEY, or name your own server with base_url")
    if not key.isascii() or not key.isprintable():
        raise ConfigError("api_key contains characters that cannot be sent")
    return key or PLACEHOLDER_API_KEY


def _split_credentials(address: str | None) -> tuple[str | None, dict[str, str]]:
    """Return an address without user and password, and the header that carries them: clients log addresses."""
    parts = urlsplit(address or "")
    if parts.username is None:
        return address, {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl(), headers


def _redact_url(url: str) -> str:
    """Remove the password from a URL."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl().rstrip("/")
