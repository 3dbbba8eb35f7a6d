"""`Mem0Memory`: what LlamaIndex's chat engines and agents take as ``memory=``."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Self

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
from llama_index.core.memory import BaseMemory
from llama_index.core.utils import get_tokenizer
from pydantic_core import to_jsonable_python

from mem0_core import AsyncMemory, ConfigError, InputError, Memory, MemoryConfig, Scope
from mem0_core.config import ComponentConfig, load_config
from mem0_core.flow import Flow, arun, do, run
from mem0_llamaindex.convert import copy_message, count_tokens, ends_turn, storable, text_of, to_mem0
from mem0_llamaindex.window import fit

__all__ = ["Mem0Memory"]

_log = logging.getLogger(__name__)

_SECRET = re.compile(r"(api_?key|access_key|password|secret|(^|_)token|authorization)$", re.IGNORECASE)

_Cost = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class _Turn:
    """A user's message that `get` was asked about, and what it gave: the same for as long as the turn lasts."""

    question: ChatMessage
    shown: ChatMessage
    """The copy handed out: an agent writes its state into it, once a run, and reads it again after each tool call."""
    block: str


class Mem0Memory(BaseMemory):
    """A conversation's short-term messages, and the long-term memory of whoever it is with.

    `get` gives what is remembered that bears on the user's last message, as one system message, and then the
    messages of this conversation, all within `token_limit`. It searches once per turn, however often an agent asks.
    What user and assistant said in a turn is remembered when the assistant's answer is put, in one `Memory.add`.

    One object is one conversation; many of them may share one `Memory`. The ids say whose memories are read and
    written: a `run_id` restricts both to that run. `reset` and `set` change the short-term messages only.

    Saved with a workflow's Context and restored, it opens its long-term memory again from `config`. Keys and
    passwords are not saved with it: they are then taken from the environment.

    Args:
        memory: the long-term memory; in a copy restored from a Context it is missing.
        config: a configuration of mem0 (mapping, YAML or JSON file), used where `memory` is not given.
        user_id, agent_id, run_id: whose memory it is; at least one.
        options: the fields below.

    Raises:
        ScopeError: no id, or one that cannot be an id.
        ConfigError: `config` is wrong, an option is unknown, or `memory` is no `mem0_core.Memory`.
    """

    user_id: str | None = Field(default=None, frozen=True)
    agent_id: str | None = Field(default=None, frozen=True)
    run_id: str | None = Field(default=None, frozen=True)
    k: int = Field(default=5, ge=1, description="How many memories are recalled at most.")
    threshold: float | None = Field(default=None, description="Memories with a lower score are not recalled.")
    background: bool = Field(
        default=False, description="Whether a turn is kept durably and learnt from by a worker, not before it ends."
    )
    token_limit: int = Field(
        default=30_000, ge=1, description="Tokens of what `get` returns; only a last message that is longer exceeds it."
    )
    chat_history_token_ratio: float = Field(
        default=0.7, gt=0, le=1, description="Share of the limit that memories leave to the short-term messages."
    )
    tokenizer_fn: Callable[[str], Sequence[Any]] = Field(default_factory=get_tokenizer, exclude=True)
    config: dict[str, Any] | None = Field(default=None, description="From which the long-term memory is opened again.")
    messages: list[ChatMessage] = Field(default_factory=list, description="The short-term messages.")
    pending: list[ChatMessage] = Field(default_factory=list, description="Of these, what is not yet remembered.")

    _core: Memory | None = PrivateAttr(default=None)
    _turn: _Turn | None = PrivateAttr(default=None)
    _costs: dict[int, int] = PrivateAttr(default_factory=dict)  # tokens of the message at each place
    _state: Lock = PrivateAttr(default_factory=Lock)  # held for list operations only, never during a call
    _opening: Lock = PrivateAttr(default_factory=Lock)

    def __init__(
        self,
        memory: Memory | AsyncMemory | None = None,
        *,
        config: MemoryConfig | Mapping[str, Any] | str | Path | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        Scope(user_id, agent_id, run_id)
        unknown = options.keys() - type(self).model_fields.keys() - {"class_name"}
        if unknown:
            raise ConfigError(f"unknown option {sorted(unknown)[0]!r}; known: {', '.join(type(self).model_fields)}")
        loaded = None if config is None else load_config(config)
        portable = None if loaded is None else _portable(loaded)
        fields: dict[str, Any] = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id, "config": portable}
        super().__init__(**fields, **options)
        if memory is not None:
            self.bind(memory)
        elif loaded is not None and portable is None:  # made of live objects, which only this process has
            self._core = Memory(loaded)

    @classmethod
    def class_name(cls) -> str:
        return "Mem0Memory"

    @classmethod
    def from_defaults(
        cls,
        memory: Memory | AsyncMemory | None = None,
        *,
        config: MemoryConfig | Mapping[str, Any] | str | Path | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        chat_history: Sequence[ChatMessage] | None = None,
        **options: Any,
    ) -> Self:
        """A memory for one conversation; with neither `memory` nor `config`, over the default memory of mem0-core.

        Args:
            chat_history: what was said before; it is not remembered again.
            options: fields of this class: `k`, `threshold`, `token_limit`, `tokenizer_fn`, ...

        Raises:
            ScopeError: no id, or one that cannot be an id.
            ConfigError, StoreError: the long-term memory cannot be opened.
        """
        if memory is None and config is None:
            config = {}
        made = cls(memory, config=config, user_id=user_id, agent_id=agent_id, run_id=run_id, **options)
        made.set(list(chat_history or ()))
        made._open()
        return made

    @classmethod
    def from_config(cls, config: MemoryConfig | Mapping[str, Any] | str | Path, **options: Any) -> Self:
        """`from_defaults` over the memory that a configuration of mem0 describes; it can be saved and restored."""
        return cls.from_defaults(config=config, **options)

    # --- reading -------------------------------------------------------------------------------------------------

    def get(self, input: str | None = None, initial_token_count: int = 0, **kwargs: Any) -> list[ChatMessage]:
        """What is remembered that bears on the question, as one system message, then the short-term messages.

        Args:
            input: the question; the last user message by default.
            initial_token_count: tokens of the limit that the caller needs for other messages.
            kwargs: ignored; other memories have more.

        Raises:
            ConfigError: the long-term memory is missing, see `bind`.
            ModelError, StoreError: the search failed.
        """
        return run(self._get(input, initial_token_count))

    async def aget(self, input: str | None = None, initial_token_count: int = 0, **kwargs: Any) -> list[ChatMessage]:
        """`get`, awaited."""
        return await arun(self._get(input, initial_token_count))

    def get_all(self) -> list[ChatMessage]:
        """All short-term messages; those of long-term memory are in `long_term.get_all`."""
        with self._state:
            return [copy_message(message) for message in self.messages]

    async def aget_all(self) -> list[ChatMessage]:
        return self.get_all()

    # --- writing -------------------------------------------------------------------------------------------------

    def put(self, message: ChatMessage) -> None:
        """Add a message. An assistant's answer ends the turn, which is then remembered.

        Raises:
            ConfigError: the long-term memory is missing, see `bind`.
            ModelError, StoreError: the turn could not be remembered; the next one will bring it again.
        """
        run(self._put([message]))

    async def aput(self, message: ChatMessage) -> None:
        """`put`, awaited."""
        await arun(self._put([message]))

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """`put` several messages, and remember once where the last of them ends the turn."""
        run(self._put(messages))

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        """`put_messages`, awaited."""
        await arun(self._put(messages))

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Replace the short-term messages; long-term memory stays as it is.

        Messages after the assistant's last answer are taken for the turn that is under way, and are remembered
        when it ends. The others are not remembered: they were, when they were said.
        """
        history = [copy_message(message) for message in messages]
        answers = [place for place, message in enumerate(history) if ends_turn(message)]
        with self._state:
            self.messages = history
            self.pending = history[answers[-1] + 1 :] if answers else list(history)
            self._turn = None
            self._costs = {}

    async def aset(self, messages: Sequence[ChatMessage]) -> None:
        self.set(messages)

    def reset(self) -> None:
        """Forget the short-term messages and a turn under way; long-term memory stays (see `Memory.delete_all`)."""
        self.set([])

    async def areset(self) -> None:
        self.reset()

    # --- the long-term memory ------------------------------------------------------------------------------------

    @property
    def long_term(self) -> Memory:
        """The long-term memory, opened from `config` where it has to be.

        Raises:
            ConfigError: there is none, see `bind`.
        """
        return self._open()

    def bind(self, memory: Memory | AsyncMemory) -> None:
        """Give a memory restored from a Context the long-term memory it was saved without.

        A Context is written and read once more when a run starts. So take the memory out and hand it to the run:
        ``memory = await ctx.store.get("memory")``, ``memory.bind(...)``, ``await ctx.store.set("memory", None)``,
        ``await agent.run(..., ctx=ctx, memory=memory)``.

        Raises:
            ConfigError: it is no `mem0_core.Memory`.
        """
        inner = memory.memory if isinstance(memory, AsyncMemory) else memory
        if not isinstance(inner, Memory):
            raise ConfigError(f"memory: {memory!r} is no mem0_core.Memory")
        self._core = inner

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """As plain JSON, images and all: a Context drops, with its memory, what it cannot write."""
        data: dict[str, Any] = to_jsonable_python(super().to_dict(**kwargs), fallback=str)
        return data

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Itself: ``ctx.store.edit_state()`` copies the state of a workflow, and a conversation must not fork there."""
        return self

    @field_serializer("config")
    def _serialize_config(self, config: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if config is None else _without_secrets(config)

    def _open(self) -> Memory:
        with self._opening:
            if self._core is None:
                if self.config is None:
                    raise ConfigError(
                        "this Mem0Memory has no long-term memory: it was made from a live one, which a saved Context"
                        " does not hold. Build it with Mem0Memory.from_config(...), which opens again when restored,"
                        " or bind(memory) the restored one"
                    )
                self._core = Memory(self.config)
            return self._core

    # --- flows: the sync and async methods run the same text -----------------------------------------------------

    def _opened(self) -> Flow[Memory]:
        return self._core if self._core is not None else (yield from do(self._open))

    def _get(self, input: str | None, initial_token_count: int) -> Flow[list[ChatMessage]]:
        with self._state:
            messages, cost = list(self.messages), self._cost_in(self.messages)
        budget = max(0, self.token_limit - initial_token_count)
        block = yield from self._recall(input, messages, cost, budget)
        window = fit(messages, cost, budget - len(self.tokenizer_fn(block)))
        remembered = [ChatMessage(role=MessageRole.SYSTEM, content=block)] if block else []
        return [*remembered, *self._handed_out(window)]

    def _handed_out(self, window: list[ChatMessage]) -> list[ChatMessage]:
        """The window with copies of what agents write into: the turn's question, and whatever stands last."""
        turn = self._turn
        handed = [turn.shown if turn and message is turn.question else message for message in window]
        if handed and handed[-1] is window[-1]:
            handed[-1] = copy_message(window[-1])
        return handed

    def _recall(self, input: str | None, messages: list[ChatMessage], cost: _Cost, budget: int) -> Flow[str]:
        """The system block for the turn under way, from the one search that is made for it."""
        asked = _last_question(messages)
        question = None if asked is None else text_of(messages[asked])
        if input is not None and not (storable(input) == question and self.pending):
            asked, question = None, storable(input)  # a question that was not put (yet), as context engines ask
        if question is None or not question.strip():
            return ""
        if asked is not None and self._turn is not None and self._turn.question is messages[asked]:
            return self._turn.block
        room = int(budget * self.chat_history_token_ratio)
        block = yield from self._context(question, fit(messages, cost, room), budget - room)
        if asked is not None:
            self._turn = _Turn(messages[asked], copy_message(messages[asked]), block)
        return block

    def _context(self, question: str, shown: list[ChatMessage], room: int) -> Flow[str]:
        """What bears on the question and fits, without what only repeats it or a message shown with it."""
        core = yield from self._opened()
        if room < 1:
            return ""
        seen = yield from do(
            core.context,
            question,
            user_id=self.user_id,
            agent_id=self.agent_id,
            run_id=self.run_id,
            limit=self.k,
            threshold=self.threshold,
            recent=0,
            max_tokens=room,
            exclude=[text for text in (question, *map(text_of, shown)) if text],
            count_tokens=lambda text: len(self.tokenizer_fn(text)),
        )
        return seen["text"]

    def _put(self, messages: Sequence[ChatMessage]) -> Flow[None]:
        added = [copy_message(message) for message in messages]
        with self._state:
            self.messages += added
            self.pending += added
            turn: list[ChatMessage] = []
            if added and ends_turn(added[-1]):
                turn, self.pending = self.pending, []
        if turn:
            yield from self._remember(turn)

    def _remember(self, turn: list[ChatMessage]) -> Flow[None]:
        """Write a turn to long-term memory; one that could not be written waits for the end of the next."""
        try:
            core = yield from self._opened()
            said = to_mem0(turn, images=core.config.enable_vision)
            if not said:
                return
            added: Any = yield from do(
                core.add,
                said,
                user_id=self.user_id,
                agent_id=self.agent_id,
                run_id=self.run_id,
                background=self.background,
            )
        except BaseException as error:
            if not isinstance(error, InputError):  # which would be the same next time
                with self._state:
                    self.pending = [*turn, *self.pending]
            raise
        for skipped in added["skipped"] if isinstance(added, dict) else ():
            _log.warning("not remembered: %s (%r)", skipped["reason"], skipped["item"])

    def _cost_in(self, messages: list[ChatMessage]) -> _Cost:
        """Tokens of the message at a place, counted once for as long as the messages are these."""
        costs = self._costs

        def cost(place: int) -> int:
            if place not in costs:
                costs[place] = count_tokens(messages[place], self.tokenizer_fn)
            return costs[place]

        return cost


def _last_question(messages: Sequence[ChatMessage]) -> int | None:
    places = range(len(messages) - 1, -1, -1)
    return next((place for place in places if messages[place].role == MessageRole.USER), None)


def _portable(config: MemoryConfig) -> dict[str, Any] | None:
    """The keys of a configuration as JSON, or None where one of them is a live object."""
    keys = {name: getattr(config, name) for name in config.model_fields_set}
    try:
        portable: dict[str, Any] = json.loads(json.dumps(keys, default=_plain))
    except (TypeError, ValueError):
        return None
    return portable


def _plain(value: object) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, ComponentConfig):
        return {"provider": value.provider, "config": value.config}
    raise TypeError(f"{value!r} is a live object")


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_secrets(item) for key, item in value.items() if not _SECRET.search(str(key))}
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return value
