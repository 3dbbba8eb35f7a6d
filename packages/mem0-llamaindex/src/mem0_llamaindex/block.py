"""`Mem0MemoryBlock`: long-term memory as a block of LlamaIndex's own `Memory`."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, Self

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory import BaseMemoryBlock, Memory, StaticMemoryBlock
from llama_index.core.prompts import RichPromptTemplate
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from sqlalchemy.engine import make_url

from mem0_core import AsyncMemory, ConfigError, InputError, Scope
from mem0_core import Memory as LongTermMemory
from mem0_core._system.boundary import convert_errors_of
from mem0_core.domain.suggestions import describe_value
from mem0_core.domain.trust import parse_source
from mem0_core.flow import arun, do
from mem0_core.recall.freshness import RecallStamp
from mem0_llamaindex.convert import ends_turn, message_text, replace_lone_surrogates, to_mem0_messages
from mem0_llamaindex.long_term import (
    ConfigSource,
    LongTermFields,
    ScopedMemory,
    check_fields,
    explain_fields,
    strip_secrets,
)

__all__ = ["Mem0MemoryBlock", "WriteThroughMemory"]

_MAX_KNOWN_MESSAGES = 1000  # messages of the owner that are read once to find those of a session; takes milliseconds


class _TurnRecall(NamedTuple):
    """The block of a turn.

    Attributes:
        turn: fingerprint of the conversation up to its question.
    """

    turn: str
    text: str
    stamp: RecallStamp


@convert_errors_of("atruncate", "write_finished_turns")
class Mem0MemoryBlock(LongTermFields, BaseMemoryBlock[str]):
    """Memory block that adds the relevant memories of a user (an agent, a run) to LlamaIndex's `Memory`.

    >>> block = Mem0MemoryBlock(core, user_id="maya")
    >>> memory = Memory.from_defaults(session_id="monday", memory_blocks=[block])

    It searches once per turn. A turn is written once, as soon as the block sees its end: when the `Memory` is next
    read, which agents do at the end of a turn, or when the `Memory` flushes it. With `WriteThroughMemory` that is when
    the answer is put, so that chat engines leave nothing unwritten when they stop. The source of its messages is
    ``chat:`` and the session id, by which `Memory.retract` withdraws a session.

    Args:
        memory: the long-term memory; or `config`, a mem0 configuration (mapping, YAML or JSON file) to open it from.
        user_id, agent_id, run_id: owner of the memories; give at least one.
        options: the fields below, and those of `LongTermFields` and `BaseMemoryBlock`.

    Raises:
        ScopeError: no id is given, or an id is invalid.
        ConfigError: there is no memory, `config` is wrong, or an option is unknown.
    """

    name: str = Field(default="mem0", description="The name of the block.")
    description: str | None = Field(default="Memories of earlier conversations.")
    priority: int = Field(
        default=1, description="Blocks with the highest number are truncated first, blocks with 0 never."
    )
    max_tokens: int = Field(default=2000, ge=1, description="Token budget of the block.")

    _written_fingerprints: dict[str | None, list[str]] = PrivateAttr(
        default_factory=dict
    )  # session -> fingerprints of written messages
    _held: dict[str | None, Counter[tuple[str, str]]] = PrivateAttr(
        default_factory=dict
    )  # session -> texts that were stored before this block wrote any, and were not seen since
    _unfinished: dict[str | None, list[tuple[str, str]]] = PrivateAttr(
        default_factory=dict
    )  # session -> fingerprints and ids of messages whose write failed or was cancelled, and may be stored
    _last_recall: dict[str | None, _TurnRecall] = PrivateAttr(default_factory=dict)  # by session

    def __init__(
        self,
        memory: LongTermMemory | AsyncMemory | None = None,
        *,
        config: ConfigSource | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        **options: Any,
    ) -> None:
        check_fields(type(self), options)
        if memory is None and config is None:
            raise ConfigError(
                "Mem0MemoryBlock() is missing memory or config; pass memory=Memory('data'), or config={...}"
            )
        scope = Scope(user_id, agent_id, run_id)
        ids: dict[str, Any] = {"user_id": user_id, "agent_id": agent_id, "run_id": run_id}
        with explain_fields(type(self)):
            super().__init__(**ids, **options)
        self._long_term = ScopedMemory(scope, memory=memory, config=config)

    def bind(self, memory: LongTermMemory | AsyncMemory) -> None:
        """Attach the long-term memory to a copy that another process restored from a Context, without it.

        Raises:
            ArgumentError: it is not a `mem0_core.Memory`.
        """
        self._long_term.bind(memory)

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return the fields, the configuration without secrets, and the marks of written turns, as plain JSON."""
        data = self.model_dump(mode="json", **kwargs)
        config = self._long_term.config
        data["config"] = None if config is None else strip_secrets(config)
        data["live"] = self._long_term.live
        data["written"] = [[session, marks] for session, marks in self._written_fingerprints.items()]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Restore a block; without a configuration, another process needs `bind` before its first use.

        Raises:
            ConfigError: `data` is not from `to_dict`, or the configuration is wrong. ScopeError: an id is invalid.
        """
        fields = _read_saved(data, "config", "written")
        config, written, live = fields.pop("config"), fields.pop("written"), fields.pop("live", None)
        scope = Scope(fields.get("user_id"), fields.get("agent_id"), fields.get("run_id"))
        block = cls.__new__(cls)
        try:
            BaseMemoryBlock.__init__(block, **fields)
            block._written_fingerprints = {session: list(marks) for session, marks in written}
        except (TypeError, ValueError) as error:
            raise ConfigError(f"data must be a mapping that to_dict returned: {error}") from error
        block._long_term = ScopedMemory(scope, config=config, live=live)
        return block

    # --- reading -------------------------------------------------------------------------------------------------

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        session = block_kwargs.get("session_id")
        said = _drop_repeated_question(messages or [])
        await self.write_finished_turns(said, session)
        question_index = next(
            (index for index in reversed(range(len(said))) if said[index].role == MessageRole.USER), None
        )
        if question_index is None or not message_text(said[question_index]).strip():
            return ""
        turn = _fingerprint(*said[: question_index + 1])
        before = self._last_recall.get(session)
        if before is not None and before.turn == turn:
            stamp = await arun(self._long_term.renew(before.stamp))
            if stamp is not None:
                self._last_recall[session] = before._replace(stamp=stamp)
                return before.text
        await asyncio.to_thread(self._count_text_tokens, "")  # it may have to load its tokenizer first
        seen = await self._long_term.arecall(
            message_text(said[question_index]),
            limit=self.k,
            threshold=self.threshold,
            max_tokens=self.max_tokens,
            exclude=[text for text in map(message_text, said) if text],
            count_tokens=self._count_text_tokens,
        )
        self._last_recall[session] = _TurnRecall(turn, seen["text"], RecallStamp.of(seen))
        return seen["text"]

    async def atruncate(self, content: str | list[Any], tokens_to_truncate: int) -> str | None:
        """Drop the last lines of the block, the least relevant; return None if nothing would be left.

        LlamaIndex passes an empty list for a block that recalled nothing.
        """
        if not content or isinstance(content, list):
            return None
        lines = content.splitlines()
        *kept, end = lines
        max_tokens_left = self._count_text_tokens(content) - tokens_to_truncate
        head = len(lines) - sum(line.startswith("{") for line in lines) - 1  # the opening tag and its introduction
        while len(kept) > max(head, 0) and self._count_text_tokens("\n".join([*kept, end])) > max_tokens_left:
            kept.pop()
        return "\n".join([*kept, end]) if len(kept) > head else None

    # --- writing -------------------------------------------------------------------------------------------------

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Write the messages that the `Memory` drops, unless they are already written."""
        session = messages[0].additional_kwargs.get("session_id") if messages else None
        written = self._written_fingerprints.get(session)
        if written is None:  # new to this process: the memory may know them already
            await self._write_messages(messages[await self._count_known(messages, session) :], session)
            return
        pairs = zip(written, map(_fingerprint, messages), strict=False)
        known = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        await self._write_messages(messages[known:], session)
        self._written_fingerprints[session] = written[known:]

    async def write_finished_turns(self, messages: Sequence[ChatMessage], session_id: str | None = None) -> None:
        """Write the finished turns of a conversation that are not written yet.

        Args:
            messages: all messages of the conversation that the `Memory` holds.
            session_id: id of the conversation.

        Raises:
            ModelError, StoreError: they could not be written; the next call retries them.
        """
        end = max((index for index, message in enumerate(messages) if ends_turn(message)), default=-1) + 1
        if not end:
            return
        fingerprints = [_fingerprint(message) for message in messages[:end]]
        if session_id in self._written_fingerprints:
            known = _count_overlap(self._written_fingerprints[session_id], fingerprints)
        else:  # new to this process: the memory may know it already
            known = await self._count_known(messages[:end], session_id)
        self._written_fingerprints[session_id] = fingerprints
        try:
            await self._write_messages(messages[known:end], session_id)
        except BaseException:
            self._written_fingerprints[session_id] = fingerprints[:known]
            raise

    async def _count_known(self, messages: Sequence[ChatMessage], session_id: str | None) -> int:
        """Return the number of leading messages that were stored from this session before this block wrote any."""
        if session_id not in self._held:
            self._held[session_id] = await self._read_held(session_id)
        texts = self._held[session_id]
        for index, message in enumerate(messages):
            for said in to_mem0_messages([message]):
                if not texts[said["role"], said["content"]]:
                    texts.clear()  # what follows is new, also in equal words
                    return index
                texts[said["role"], said["content"]] -= 1
        return len(messages)

    async def _read_held(self, session_id: str | None) -> Counter[tuple[str, str]]:
        core = await asyncio.to_thread(self._long_term.open)
        scope, source = Scope(**self._long_term.ids), _name_source(session_id)
        held = await arun(do(core.store.message_log.messages_before, scope, None, limit=_MAX_KNOWN_MESSAGES))
        return Counter((message.role, message.content) for message in held if message.source == source)

    async def _write_messages(self, messages: Sequence[ChatMessage], session_id: str | None) -> None:
        core = await asyncio.to_thread(self._long_term.open)
        ids = self._choose_ids(messages, session_id)
        said = to_mem0_messages(messages, images=core.config.enable_vision, ids=ids)
        if said:
            # In a thread: each sync method of `Memory` runs in an event loop of its own, and workers must outlive it.
            options: dict[str, Any] = {"keep": self.keep, "background": self.background}
            await asyncio.to_thread(self._long_term.remember, said, **options, source=_name_source(session_id))
        self._unfinished.pop(session_id, None)

    def _choose_ids(self, messages: Sequence[ChatMessage], session_id: str | None) -> list[str]:
        """Return new ids, since equal words are other messages, and the former ids of an unfinished write."""
        ids = [uuid.uuid4().hex for _ in messages]
        fingerprints = [_fingerprint(message) for message in messages]
        for index, (fingerprint, id) in enumerate(self._unfinished.get(session_id, ())):
            if index == len(ids) or fingerprint != fingerprints[index]:
                break
            ids[index] = id
        self._unfinished[session_id] = list(zip(fingerprints, ids, strict=True))
        return ids


def _read_saved(data: object, *names: str) -> dict[str, Any]:
    """Return the items of a mapping that has the keys `names`.

    Raises:
        ConfigError: it is no such mapping, or cannot be read.
    """
    wanted = f"data must be a mapping that to_dict returned, with the keys {', '.join(map(repr, names))}"
    if not isinstance(data, Mapping):
        raise ConfigError(wanted)
    try:
        fields = dict(data)
    except Exception as error:  # code of the caller's class
        raise ConfigError(f"{wanted}: {error}") from error
    if not fields.keys() >= set(names):
        raise ConfigError(wanted)
    return fields


class WriteThroughMemory(Memory):
    """LlamaIndex's `Memory`, but each `Mem0MemoryBlock` writes a turn when its answer is put, not on the next read.

    A workflow's Context saves and restores it with its messages, if its blocks are `Mem0MemoryBlock` and
    `StaticMemoryBlock` and its chat store is LlamaIndex's own, without a password in the address. A block made from a
    configuration opens its memory again; in another process, another block needs `Mem0MemoryBlock.bind`.
    """

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return plain JSON, messages in a temporary chat store included.

        Raises:
            ConfigError: a block or the chat store cannot be saved.
        """
        store = self.sql_store
        if type(store) is not SQLAlchemyChatStore or make_url(store.async_database_uri or "sqlite://").password:
            raise ConfigError("only LlamaIndex's SQLAlchemyChatStore without a password in its address is saved")
        data = self.model_dump(mode="json", exclude={"memory_blocks", "memory_blocks_template"}, **kwargs)
        return {
            **data,
            "template": getattr(self.memory_blocks_template, "template_str", None),
            "chat_store": store.model_dump(mode="json"),
            "blocks": [_dump_block(block) for block in self.memory_blocks],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """Restore a memory with its blocks; `kwargs` replace saved fields.

        Raises:
            ConfigError: `data` is not from `to_dict`.
        """
        fields = _read_saved(data, "template", "chat_store", "blocks") | kwargs
        template, store, blocks = fields.pop("template"), fields.pop("chat_store"), fields.pop("blocks")
        fields.pop("class_name", None)
        if template is not None:
            fields["memory_blocks_template"] = RichPromptTemplate(template)
        return cls(sql_store=SQLAlchemyChatStore(**store), memory_blocks=[_load_block(one) for one in blocks], **fields)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return itself: ``ctx.store.edit_state()`` copies a workflow, and a conversation must not fork."""
        return self

    async def aput(self, message: ChatMessage) -> None:
        await super().aput(message)
        await self._write_blocks()

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        await super().aput_messages(messages)
        await self._write_blocks()

    async def _write_blocks(self) -> None:
        held = await self.sql_store.get_messages(self.session_id)
        for block in self.memory_blocks:
            if isinstance(block, Mem0MemoryBlock):
                await block.write_finished_turns(held, self.session_id)


def _dump_block(block: BaseMemoryBlock[Any]) -> dict[str, Any]:
    if type(block) is Mem0MemoryBlock:
        return {"kind": "mem0", "data": block.to_dict()}
    if type(block) is StaticMemoryBlock:
        return {"kind": "static", "data": block.model_dump(mode="json")}
    raise ConfigError(
        f"a block of the type {type(block).__name__} cannot be saved; pass the memory again after a restore"
    )


def _load_block(saved: Mapping[str, Any]) -> BaseMemoryBlock[Any]:
    data = saved["data"]
    return Mem0MemoryBlock.from_dict(data) if saved["kind"] == "mem0" else StaticMemoryBlock.model_validate(data)


def _drop_repeated_question(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Drop the question that `Memory.aget(input=...)` adds although it was put before."""
    said = list(messages)
    if (
        len(said) > 1
        and said[-1].role == said[-2].role == MessageRole.USER
        and message_text(said[-1]) == message_text(said[-2])
    ):
        said.pop()
    return said


def _fingerprint(*messages: ChatMessage) -> str:
    """Return a short digest of a message's text and speaker."""
    said = hashlib.blake2b(digest_size=12)
    for message in messages:
        said.update(f"{message.role}\0{message_text(message)}\0".encode())
    return said.hexdigest()


def _name_source(session_id: str | None) -> str | None:
    """Return the source of a session's messages, by which `Memory.retract` withdraws them.

    Raises:
        InputError: the id cannot be stored.
    """
    if session_id is None:
        return None
    try:
        return parse_source(f"chat:{replace_lone_surrogates(session_id)}")
    except InputError as error:
        raise InputError(
            f"session_id {describe_value(session_id)} cannot name the source of its messages: {error}; give the memory"
            " another session_id"
        ) from error


def _count_overlap(written: Sequence[str], fingerprints: Sequence[str]) -> int:
    """Return the number of `fingerprints` that end `written`, the start of which the `Memory` may have dropped."""
    for gone in range(len(written)):
        left = written[gone:]
        if left == fingerprints[: len(left)]:
            return len(left)
    return 0
