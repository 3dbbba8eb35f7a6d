"""Forms of one request to a chat model, tried from the most capable to the plainest."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from mem0_core._system.records import dataclass
from mem0_core.errors import ModelError
from mem0_core.flow import Flow, arun, run
from mem0_core.interfaces import Reply, Tool
from mem0_core.providers.adapters import is_unsupported_request

if TYPE_CHECKING:
    from pydantic import BaseModel

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestForm:
    """One form of a request.

    Attributes:
        name: identifies the form among those of a model.
        send: flow that asks the model.
        read: converts the model's answer.
        schema: the schema that the form sends, because a server may accept one schema and refuse another. A refusal of
            a form without a schema counts for all requests.
    """

    name: str
    send: Callable[[], Flow[Any]]
    read: Callable[[Any], Reply]
    schema: type[BaseModel] | None = None


class RequestForms:
    """Sends requests in the most capable form that a model accepts; a refusal costs one request.

    Args:
        model: the chat model, for logs.
        build_error: makes the error of a failed task.
        describe: text of an error for logs, without secrets.
    """

    def __init__(
        self,
        model: object,
        build_error: Callable[[Exception, str], ModelError],
        describe: Callable[[Exception], str] = str,
    ) -> None:
        self._model = model
        self._build_error = build_error
        self._describe = describe
        self._refused: set[str] = set()
        self._refused_schemas: WeakKeyDictionary[type[BaseModel], set[str]] = WeakKeyDictionary()

    def send(self, forms: Sequence[RequestForm], task: str) -> Flow[Reply]:
        """Return the reply to the first form that the model accepts. The last form is sent in any case.

        Raises:
            ModelError: the model failed, or refused the last form; the original error is chained.
        """
        refused: list[RequestForm] = []
        for form in forms:
            is_last = form is forms[-1]
            if not is_last and form.name in self._refused_names(form):
                continue
            try:
                answer = yield from form.send()
            except Exception as error:
                if is_last or not is_unsupported_request(error):
                    raise self._build_error(error, task) from error
                reason = self._describe(error)
                log.warning("%r refused a request form for %s, trying a simpler one: %s", self._model, task, reason)
                refused.append(form)
                continue
            for each in refused:  # only now: if the model refuses every form, the form is not the reason
                self._refused_names(each).add(each.name)
            return form.read(answer)
        raise ValueError("a request needs at least one form")

    def _refused_names(self, form: RequestForm) -> set[str]:
        return self._refused if form.schema is None else self._refused_schemas.setdefault(form.schema, set())


class FormsChat(ABC):
    """Base of chat models whose requests have several forms: both calls of `ChatModel` over one flow."""

    def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        task: str,
        schema: type[BaseModel] | None = None,
        tools: Sequence[Tool] = (),
    ) -> Reply:
        """Complete a conversation; see `mem0_core.interfaces.ChatModel`. With `tools`, `schema` is not sent.

        Raises:
            ModelError: the model failed, or its server is unreachable; the original error is chained.
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
        """Async version of `complete`."""
        return await arun(self._exchange(messages, task, schema, tools))

    @abstractmethod
    def _exchange(
        self,
        messages: Sequence[Mapping[str, Any]],
        task: str,
        schema: type[BaseModel] | None,
        tools: Sequence[Tool],
    ) -> Flow[Reply]:
        """Send one request and return its reply."""
