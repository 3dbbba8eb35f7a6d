"""`Mem0Memory`: memory for LlamaIndex's chat engines and agents (``memory=``)."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Self

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock
from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
from llama_index.core.memory import BaseMemory, InsertMethod
from llama_index.core.storage.chat_store.base_db import MessageStatus
from pydantic_core import to_jsonable_python

from mem0_core import AsyncMemory, ConfigError, InputError, Memory, Scope
from mem0_core._system.boundary import convert_errors_of
from mem0_core.domain.suggestions import describe_value, suggest
from mem0_core.flow import Flow, arun, do, run
from mem0_core.recall.freshness import RecallStamp
from mem0_llamaindex.convert import (
    Question,
    copy_message,
    count_tokens,
    ends_turn,
    message_text,
    question_text,
    to_mem0_messages,
)
from mem0_llamaindex.long_term import (
    ConfigSource,
    LongTermFields,
    ScopedMemory,
    check_fields,
    explain_fields,
    strip_secrets,
)
from mem0_llamaindex.window import find_last_question, fit_window

__all__ = ["Mem0Memory"]

_MessageCost = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class _QuestionTurn:
    """The user's message of a turn and the result of `get` for it, constant for the whole turn."""

    question: ChatMessage
    shown: ChatMessage
    """The copy handed out: an agent writes its state into it, once a run, and reads it again after each tool call."""
    block: str
    stamp: RecallStamp


_CONTEXT_KEYS = ("user_id", "agent_id", "run_id")


@convert_errors_of("from_defaults", "get", "aget", "put", "aput", "put_messages", "aput_messages", "set", "aset")
class Mem0Memory(LongTermFields, BaseMemory):
    """Short-term messages of one conversation combined with long-term memory.

    `get` returns one system message with the memories relevant to the user's last message, followed by the messages of
    this conversation, all within `token_limit`. It searches once per turn, however often an agent calls it, and again
    if one of its memories was changed or deleted while the turn waited for a person. The user's and the assistant's
    messages of a turn are remembered when the assistant's answer is put, in one `Memory.add`. By default that runs in
    the background: the turn is stored durably at once, and the next search finds it.

    One object is one conversation; many of them may share one `Memory`. The ids select the memories that are read and
    written: a `run_id` restricts both to that run. `reset` and `set` change the short-term messages only.

    Saved with a workflow's Context and restored, it opens its long-term memory again from `config`. Keys and passwords
    are not saved with it; they are then read from the environment. A copy of a live `memory` finds it again in the same
    process; in another one, it needs `bind`.

    Args:
        memory: the long-term memory.
        config: a mem0 configuration (mapping, YAML or JSON file), used if `memory` is not given.
        user_id, agent_id, run_id: owner of the memories; give at least one.
        options: the fields below, and those of `LongTermFields`.

    Raises:
        ScopeError: no id is given, or an id is invalid.
        ConfigError: `config` is wrong, or an option is unknown.
        ArgumentError: `memory` is not a `mem0_core.Memory`.
    """

    insert_method: InsertMethod = Field(
        default=InsertMethod.SYSTEM,
        description="Show memories as a system message, or before the question in the user's message.",
    )
    token_limit: int = Field(
        default=30_000,
        ge=1,
        description="Token budget of `get`; only a longer question, with the last message, exceeds it.",
    )
    chat_history_token_ratio: float = Field(
        default=0.7, gt=0, le=1, description="Share of the limit that memories leave to the short-term messages."
    )
    config: dict[str, Any] | None = Field(
        default=None, description="Configuration to reopen the long-term memory from."
    )
    live: str | None = Field(default=None, description="Key of an open long-term memory without a configuration.")
    messages: list[ChatMessage] = Field(default_factory=list, description="The short-term messages.")
    pending: list[ChatMessage] = Field(
        default_factory=list, description="Short-term messages that are not remembered yet."
    )

    conversation: str = Field(
        default_factory=lambda: uuid.uuid4().hex,
        description="Id of the conversation. A message is remembered once at its place in it, also by several objects.",
    )

    _message_ids: list[str] = PrivateAttr(default_factory=list)  # of the messages, from the first on
    _turn: _QuestionTurn | None = PrivateAttr(default=None)
    _costs: dict[int, int] = PrivateAttr(default_factory=dict)  # tokens of each message, by index
    _state_lock: Lock = PrivateAttr(default_factory=Lock)  # protects list operations only, never held during a call

    def __init__(
        self,
        memory: Memory | AsyncMemory | None = None,
        *,
        config: ConfigSource | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        check_fields(type(self), {name: value for name, value in options.items() if name != "class_name"})
        scope = Scope(user_id, agent_id, run_id)
        long_term = ScopedMemory(scope, memory=memory, config=config, live=options.pop("live", None))
        fields: dict[str, Any] = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        with explain_fields(type(self)):
            super().__init__(**(fields | {"config": long_term.config, "live": long_term.live} | options))
        self._long_term = long_term

    @classmethod
    def class_name(cls) -> str:
        return "Mem0Memory"

    @classmethod
    def from_defaults(
        cls,
        memory: Memory | AsyncMemory | None = None,
        *,
        config: ConfigSource | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        chat_history: Sequence[ChatMessage] | None = None,
        **options: Any,
    ) -> Self:
        """Create a memory for one conversation; without `memory` and `config`, on the default memory of mem0-core.

        Args:
            chat_history: earlier messages; they are not remembered again.
            options: fields of this class: `k`, `threshold`, `token_limit`, `tokenizer_fn`, ...

        Raises:
            ScopeError: no id is given, or an id is invalid.
            ConfigError, StoreError: the long-term memory cannot be opened.
        """
        if memory is None and config is None:
            config = {}
        made = cls(memory, config=config, user_id=user_id, agent_id=agent_id, run_id=run_id, **options)
        made.set(list(chat_history or ()))
        made._long_term.open()
        return made

    @classmethod
    def from_config(
        cls, config: ConfigSource | None = None, *, context: Mapping[str, Any] | None = None, **options: Any
    ) -> Self:
        """Create a memory from a mem0 configuration that can be saved and restored; options as in `from_defaults`.

        Args:
            context: user_id, agent_id and run_id in a mapping, as LlamaIndex's own class for mem0 takes them.

        Raises:
            ConfigError: no configuration is given, or `context` has other keys.
        """
        if config is None:
            raise ConfigError(
                "from_config: config is missing; pass a mapping of mem0's keys or the path of a YAML or JSON file,"
                " or call"
                " from_defaults() for the default memory"
            )
        return cls.from_defaults(config=config, **_read_context(context), **options)

    @classmethod
    def from_client(cls, **options: Any) -> Self:
        """Refuse mem0's hosted service, which LlamaIndex's own class for mem0 connects to here.

        Raises:
            ConfigError: always; names the constructor of a local memory.
        """
        raise ConfigError(
            f"from_client({', '.join(f'{name}=...' for name in options)}): it connects to mem0's hosted service, and"
            " this"
            " memory is local; call Mem0Memory.from_config(config={...}, context={'user_id': ...}) or"
            " Mem0Memory.from_defaults(user_id=...)"
        )

    # --- reading -------------------------------------------------------------------------------------------------

    def get(self, input: Question | None = None, initial_token_count: int = 0, **kwargs: Any) -> list[ChatMessage]:
        """Return the relevant memories as one system message, followed by the short-term messages.

        Args:
            input: the question as a text, a QueryBundle, a message or messages; by default the last user message.
            initial_token_count: tokens of the limit that the caller reserves for other messages.
            kwargs: ignored; accepted for compatibility with other memories.

        Raises:
            ConfigError: the long-term memory is missing, see `bind`.
            InputError: `initial_token_count` exceeds `token_limit`.
            ModelError, StoreError: the search failed.
        """
        return run(self._get(question_text(input), initial_token_count))

    async def aget(
        self, input: Question | None = None, initial_token_count: int = 0, **kwargs: Any
    ) -> list[ChatMessage]:
        """Async version of `get`."""
        return await arun(self._get(question_text(input), initial_token_count))

    def get_all(self, status: MessageStatus | None = None) -> list[ChatMessage]:
        """Return all short-term messages; `long_term.get_all` returns the long-term memories.

        Args:
            status: as in LlamaIndex's `Memory`: active messages are those that fit into the share of `token_limit` that
                `chat_history_token_ratio` leaves them, and archived ones the others.
        """
        return run(self._get_all(status))

    async def aget_all(self, status: MessageStatus | None = None) -> list[ChatMessage]:
        """Async version of `get_all`."""
        return await arun(self._get_all(status))

    # --- writing -------------------------------------------------------------------------------------------------

    def put(self, message: ChatMessage) -> None:
        """Add a message. An assistant's answer ends the turn, which is then remembered.

        Raises:
            ConfigError: the long-term memory is missing, see `bind`.
            ModelError, StoreError: the turn could not be remembered; the next turn retries it.
        """
        run(self._put([message]))

    async def aput(self, message: ChatMessage) -> None:
        """Async version of `put`."""
        await arun(self._put([message]))

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Add several messages, and remember once if the last of them ends the turn."""
        run(self._put(messages))

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Async version of `put_messages`."""
        await arun(self._put(messages))

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Replace the short-term messages; long-term memory is unchanged.

        Messages after the assistant's last answer belong to the current turn and are remembered when it ends. Earlier
        messages are not remembered again.
        """
        history = [copy_message(message) for message in messages]
        answers = [index for index, message in enumerate(history) if ends_turn(message)]
        with self._state_lock:
            self.messages = history
            self.pending = history[answers[-1] + 1 :] if answers else list(history)
            self._turn = None
            self._costs = {}
            self._message_ids = []

    async def aset(self, messages: Sequence[ChatMessage]) -> None:
        self.set(messages)

    def reset(self, status: MessageStatus | None = None) -> None:
        """Clear the short-term messages and begin another conversation. Long-term memory stays (see `delete_all`).

        Args:
            status: `MessageStatus.ARCHIVED` clears only the archived messages of finished turns, and the conversation
                goes on.
        """
        run(self._reset(status))

    async def areset(self, status: MessageStatus | None = None) -> None:
        """Async version of `reset`."""
        await arun(self._reset(status))

    # --- the long-term memory ------------------------------------------------------------------------------------

    def bind(self, memory: Memory | AsyncMemory) -> None:
        """Attach the long-term memory to a copy that another process restored from a Context, without it.

        A Context is written and read once more when a run starts. So take the memory out and pass it to the run:
        ``memory = await ctx.store.get("memory")``, ``memory.bind(...)``, ``await ctx.store.set("memory", None)``,
        ``await agent.run(..., ctx=ctx, memory=memory)``.

        Raises:
            ArgumentError: it is not a `mem0_core.Memory`.
        """
        self._long_term.bind(memory)
        self.live = self._long_term.live

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return plain JSON, images included: a Context drops the whole memory if a part cannot be written."""
        data: dict[str, Any] = to_jsonable_python(super().to_dict(**kwargs), fallback=str)
        return data

    def to_string(self) -> str:
        """Return `to_dict` as JSON, as `ChatMemoryBuffer` does."""
        return self.to_json()

    @classmethod
    def from_string(cls, json_str: str) -> Self:
        """Restore a memory from `to_string`.

        Raises:
            InputError: it is no text that `to_string` returned.
        """
        try:
            data = json.loads(json_str)
        except (TypeError, ValueError):
            data = None
        if not isinstance(data, dict):
            raise InputError(f"json_str must be a text that to_string returned, not {describe_value(json_str)}")
        return cls.from_dict(data)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle what `to_dict` saves: a lock and an open store cannot be pickled."""
        return type(self).from_dict, (self.to_dict(),)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return itself: ``ctx.store.edit_state()`` copies a workflow, and a conversation must not fork."""
        return self

    @field_serializer("config")
    def _serialize_config(self, config: dict[str, Any] | None) -> dict[str, Any] | None:
        return None if config is None else strip_secrets(config)

    # --- flows: the sync and async methods run the same text -----------------------------------------------------

    def _get(self, input: str | None, initial_token_count: int) -> Flow[list[ChatMessage]]:
        if initial_token_count > self.token_limit:
            raise InputError(
                f"initial_token_count is {initial_token_count}, and token_limit is {self.token_limit}: the other"
                " messages leave no room; shorten them, or raise token_limit"
            )
        messages, cost = self._snapshot()
        budget = self.token_limit - initial_token_count
        block = yield from self._recall(input, messages, cost, budget)
        left = budget - (yield from do(self._count_text_tokens, block))
        window = yield from do(fit_window, messages, cost, left)  # it counts tokens, so not on the event loop
        shown, turn = self._copy_for_caller(window), self._turn
        if not block or (
            self._inserts_into_question and turn is not None and any(message is turn.shown for message in shown)
        ):
            return shown
        return [ChatMessage(role=MessageRole.SYSTEM, content=block), *shown]

    def _get_all(self, status: MessageStatus | None) -> Flow[list[ChatMessage]]:
        messages, cost = self._snapshot()
        if status is not None:
            active = yield from self._find_active(messages, cost)
            messages = [one for one in messages if (id(one) in active) == (status is MessageStatus.ACTIVE)]
        return [copy_message(message) for message in messages]

    def _find_active(self, messages: list[ChatMessage], cost: _MessageCost) -> Flow[frozenset[int]]:
        """Return the identities of the messages that fit into their share of the limit."""
        room = int(self.token_limit * self.chat_history_token_ratio)
        return frozenset(id(message) for message in (yield from do(fit_window, messages, cost, room)))

    def _reset(self, status: MessageStatus | None) -> Flow[None]:
        if status is not MessageStatus.ARCHIVED:
            self.set([])
            self.conversation = uuid.uuid4().hex
            return
        messages, cost = self._snapshot()
        active = yield from self._find_active(messages, cost)
        archived = {id(message) for message in messages}.difference(active)
        with self._state_lock:
            ids, finished = self._identify_messages(), len(self.messages) - len(self.pending)
            kept = [place for place, one in enumerate(self.messages) if place >= finished or id(one) not in archived]
            self.messages, self._message_ids = [self.messages[place] for place in kept], [ids[place] for place in kept]
            self._costs = {}

    def _snapshot(self) -> tuple[list[ChatMessage], _MessageCost]:
        with self._state_lock:
            return list(self.messages), self._build_message_cost(self.messages)

    @property
    def _inserts_into_question(self) -> bool:
        return self.insert_method is InsertMethod.USER

    def _copy_for_caller(self, window: list[ChatMessage]) -> list[ChatMessage]:
        """Return the window with copies of the messages that agents write into: the question and the last message."""
        turn = self._turn
        copies = [turn.shown if turn and message is turn.question else message for message in window]
        if copies and copies[-1] is window[-1]:
            copies[-1] = copy_message(window[-1])
        return copies

    def _recall(self, input: str | None, messages: list[ChatMessage], cost: _MessageCost, budget: int) -> Flow[str]:
        """Return the system block of the current turn, from its single search."""
        question_index = find_last_question(messages)
        question = None if question_index is None else message_text(messages[question_index])
        if input is not None and not (input == question and self.pending):
            question_index, question = None, input  # not put yet: context engines ask this way
        if question is None or not question.strip():
            return ""
        asked = None if question_index is None else messages[question_index]
        turn = None if self._turn is None or self._turn.question is not asked else self._turn
        if turn is not None and (stamp := (yield from self._long_term.renew(turn.stamp))) is not None:
            if self._turn is turn:
                self._turn = replace(turn, stamp=stamp)
            return turn.block
        room = int(budget * self.chat_history_token_ratio)
        window = yield from do(fit_window, messages, cost, room)
        block, stamp = yield from self._recall_block(question, window, budget - room)
        if asked is not None:
            self._turn = _QuestionTurn(asked, self._add_block(asked, block, turn), block, stamp)
        return block

    def _add_block(self, question: ChatMessage, block: str, turn: _QuestionTurn | None) -> ChatMessage:
        """Return the question to hand out, with the block where it belongs: that of the turn, if it began already."""
        shown = copy_message(question) if turn is None else turn.shown
        if self._inserts_into_question:
            former = turn.block if turn is not None else ""
            rest = [one for one in shown.blocks if not (former and isinstance(one, TextBlock) and one.text == former)]
            shown.blocks = [*([TextBlock(text=block)] if block else []), *rest]
        return shown

    def _recall_block(self, question: str, shown: list[ChatMessage], room: int) -> Flow[tuple[str, RecallStamp]]:
        """Return the relevant memories that fit, without repeating each other or the messages shown with them."""
        if room < 1:
            return "", RecallStamp({}, 0)
        seen = yield from do(
            self._long_term.recall,
            question,
            limit=self.k,
            threshold=self.threshold,
            max_tokens=room,
            exclude=[text for text in (question, *map(message_text, shown)) if text],
            count_tokens=self._count_text_tokens,
        )
        return seen["text"], RecallStamp.of(seen)

    def _put(self, messages: Sequence[ChatMessage]) -> Flow[None]:
        added = [copy_message(message) for message in messages]
        with self._state_lock:
            self.messages += added
            self.pending += added
            turn: list[ChatMessage] = []
            ids: list[str] = []
            if added and ends_turn(added[-1]):
                turn, self.pending = self.pending, []
                ids = self._identify_messages()[-len(turn) :]
        if turn:
            yield from self._remember(turn, ids)

    def _identify_messages(self) -> list[str]:
        """Return the id of each short-term message: a digest of the conversation up to and including it."""
        for message in self.messages[len(self._message_ids) :]:
            before = self._message_ids[-1] if self._message_ids else self.conversation
            said = f"{before}\0{message.role}\0{message_text(message)}"
            self._message_ids.append(hashlib.blake2b(said.encode(), digest_size=16).hexdigest())
        return self._message_ids

    def _remember(self, turn: list[ChatMessage], ids: list[str]) -> Flow[None]:
        """Write a turn to long-term memory; a turn that could not be written is retried with the next one."""
        try:
            core = yield from self._long_term.open_flow()
            said = to_mem0_messages(turn, images=core.config.enable_vision, ids=ids)
            if said:
                yield from do(self._long_term.remember, said, keep=self.keep, background=self.background)
        except BaseException as error:
            if not isinstance(error, InputError):  # a retry would fail the same way
                with self._state_lock:
                    self.pending = [*turn, *self.pending]
            raise

    def _build_message_cost(self, messages: list[ChatMessage]) -> _MessageCost:
        """Return a function from an index to that message's tokens, counted once while the messages stay the same."""
        costs = self._costs

        def cost(index: int) -> int:
            if index not in costs:
                costs[index] = count_tokens(messages[index], self.tokenizer_fn)
            return costs[index]

        return cost


def _read_context(context: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the ids in a context.

    Raises:
        ConfigError: it is no mapping, or has another key.
    """
    if context is not None and not isinstance(context, Mapping):
        raise ConfigError(
            f"context must be a mapping of ids, not {describe_value(context)}; pass, for example,"
            f" {{'user_id': 'alice'}}"
        )
    for name in context or {}:
        if name not in _CONTEXT_KEYS:
            raise ConfigError(f"context: unknown key {name!r}{suggest(str(name), _CONTEXT_KEYS)}; pass one of them")
    return dict(context or {})
