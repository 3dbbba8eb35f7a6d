"""`Principal`: one user's view of a memory, which is their own memories and those of their spaces.

The async methods below the marker are generated: after a change of a sync method, run tools/generate_memory.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

from mem0_core.api.options import unwrap_memory
from mem0_core.domain.erasure import ErasureReceipt
from mem0_core.domain.feed import ChangesDict
from mem0_core.domain.records import (
    AnswerDict,
    ContextDict,
    FeedbackDict,
    HistoryDict,
    MemoryDict,
    Messages,
    MissingDict,
    SearchResult,
)
from mem0_core.domain.spaces import (
    MAX_MEMBER_CHARS,
    MemberDict,
    PendingWriteDict,
    SpaceAddResult,
    SpaceDict,
    check_member,
)
from mem0_core.domain.trust import TrustClass
from mem0_core.errors import CapabilityError
from mem0_core.llm.prompts import MEMORIES_INTRODUCTION
from mem0_core.memory import AsyncMemory, Memory


def has_spaces(
    memory: Memory, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None
) -> bool:
    """Return True if these ids are those of one user alone, in a store with spaces: a `Principal` can read for them."""
    if user_id is None or agent_id is not None or run_id is not None or len(user_id) > MAX_MEMBER_CHARS:
        return False
    try:
        _ = memory.store.spaces.memberships
    except CapabilityError:
        return False
    return True


class Principal:
    """One user of a memory: reads and writes their own memories, and those of the spaces they are a member of.

    Every call checks the user's memberships as they are at that time. Results have a key ``space``: the name of the
    space that a memory belongs to, None for the user's own. The application vouches for the user id: make a principal
    from the id of an authenticated user.

    Args:
        memory: The memory; its store must be SQLite or PostgreSQL.
        user_id: The user, with at most 200 characters.

    Raises:
        ScopeError: The user id is invalid, or too long.
    """

    def __init__(self, memory: Memory, user_id: str) -> None:
        self.memory = memory
        self.user_id = check_member(user_id)

    # --- Spaces ------------------------------------------------------------------------------------------------------

    def spaces(self) -> list[SpaceDict]:
        """Return the spaces that the user is a member of, by name, with the user's role."""
        return self.memory._run(self.memory._principal_spaces_flow(self.user_id))

    def create_space(self, space: str, *, requires_approval: bool = False) -> SpaceDict:
        """Create a space, with the user as its owner.

        Args:
            space: Name of the space, unique in the store: up to 100 printable characters without a slash.
            requires_approval: Let writes of members who are not owners wait until an owner approves them.

        Raises:
            InputError: The name is invalid or taken.
        """
        return self.memory._run(self.memory._principal_create_space_flow(self.user_id, space, requires_approval))

    def delete_space(self, space: str) -> ErasureReceipt:
        """Erase a space for its owner, with its memories, members and pending writes, and return the signed receipt.

        Raises:
            AccessError: The user is not an owner of the space.
        """
        return self.memory._run(self.memory._principal_delete_space_flow(self.user_id, space))

    def set_approval(self, space: str, requires_approval: bool) -> None:
        """Set for an owner if writes of other members wait for approval; those that wait already go on waiting.

        Raises:
            AccessError: The user is not an owner of the space.
        """
        return self.memory._run(self.memory._principal_set_approval_flow(self.user_id, space, requires_approval))

    def members(self, space: str) -> list[MemberDict]:
        """Return the members of a space with their roles, longest-standing first.

        Raises:
            AccessError: The user is not a member of the space.
        """
        return self.memory._run(self.memory._principal_members_flow(self.user_id, space))

    def set_member(self, space: str, member: str, role: Literal["reader", "writer", "owner"]) -> None:
        """Add a member to a space, or change the role of one. It takes effect with the member's next call.

        Args:
            member: User id of the member.
            role: A reader recalls; a writer also adds, updates and deletes; an owner also manages the space.

        Raises:
            AccessError: The user is not an owner of the space.
            InputError: The role is unknown, or the space would have no owner.
        """
        return self.memory._run(self.memory._principal_set_member_flow(self.user_id, space, member, role))

    def remove_member(self, space: str, member: str) -> None:
        """Remove a member from a space, with their pending writes. It takes effect with the member's next call.

        Memories that the member wrote remain in the space. A member may remove themselves.

        Raises:
            AccessError: The user is neither an owner of the space nor the member.
            InputError: The space would have no owner.
        """
        return self.memory._run(self.memory._principal_remove_member_flow(self.user_id, space, member))

    # --- Write -------------------------------------------------------------------------------------------------------

    def add(
        self,
        messages: Messages,
        *,
        space: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        timestamp: int | float | str | datetime | None = None,
        background: bool = False,
        trust: TrustClass | None = None,
    ) -> SpaceAddResult:
        """Learn from a conversation, into the user's own memories or into a space.

        In a space, messages of the role ``user`` without a name are said by the user: their `actor_id` is the user's
        id. Messages in the name of another member can be added by an owner only, or with the approval of one.

        Args:
            messages, metadata, infer, timestamp, background, trust: As in `Memory.add`.
            space: Space to write to; None for the user's own memories.
            agent_id, run_id: Further ids of the user's own memories; those of a space have none.

        Returns:
            As `Memory.add`. If the write waits for approval, nothing but ``pending_write``, its id.

        Raises:
            AccessError: The user is not a writer of the space, or the messages are in the name of another member.
            LimitError: 1,000 writes of the space wait already.
        """
        flow = self.memory._principal_add_flow(
            self.user_id,
            messages,
            space=space,
            agent_id=agent_id,
            run_id=run_id,
            metadata=metadata,
            infer=infer,
            timestamp=timestamp,
            background=background,
            trust=trust,
        )
        return self.memory._run(flow)

    def update(self, memory_id: str, data: str, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Replace the text of a memory, see `Memory.update`; or propose it, where writes wait for approval.

        Raises:
            NotFoundError: The user can see no memory with that id.
            AccessError: The user is not a writer of its space.
        """
        return self.memory._run(self.memory._principal_update_flow(self.user_id, memory_id, data, metadata))

    def delete(self, memory_id: str, *, purge: bool = False) -> dict[str, Any]:
        """Delete a memory, see `Memory.delete`; or propose it, where writes wait for approval.

        Raises:
            NotFoundError: The user can see no memory with that id.
            AccessError: The user is not a writer of its space.
        """
        return self.memory._run(self.memory._principal_delete_flow(self.user_id, memory_id, purge))

    def pin(self, memory_id: str, pinned: bool = True) -> None:
        """Include a memory in every `context` of the users that can see it; False ends this.

        Raises:
            NotFoundError: The user can see no memory with that id.
            AccessError: The user is not a writer of its space, or not an owner where writes wait for approval.
        """
        return self.memory._run(self.memory._principal_pin_flow(self.user_id, memory_id, pinned))

    def feedback(self, memory_id: str, useful: bool | None) -> FeedbackDict:
        """Count a memory as useful or useless for all who can see it, as `Memory.feedback` does; no approval is needed.

        Raises:
            NotFoundError: The user can see no memory with that id.
            AccessError: The user is not a writer of its space.
        """
        return self.memory._run(self.memory._principal_feedback_flow(self.user_id, memory_id, useful))

    # --- Approval ----------------------------------------------------------------------------------------------------

    def pending_writes(self, space: str) -> list[PendingWriteDict]:
        """Return the writes of a space that wait for approval, oldest first: for an owner all, else the user's own.

        Raises:
            AccessError: The user is not a member of the space.
        """
        return self.memory._run(self.memory._principal_pending_writes_flow(self.user_id, space))

    def approve(self, write_id: str) -> dict[str, Any]:
        """Do a pending write, and return its result. The change feed records the approval.

        Raises:
            AccessError: There is no such write in a space of which the user is an owner.
            NotFoundError, InputError: The memory to be changed is gone, or another one since; `reject` the write.
        """
        return self.memory._run(self.memory._principal_approve_flow(self.user_id, write_id))

    def reject(self, write_id: str) -> None:
        """Drop a pending write as an owner, or withdraw one's own. The change feed records it.

        Raises:
            AccessError: There is no such write, or it is not the user's to decide.
        """
        return self.memory._run(self.memory._principal_reject_flow(self.user_id, write_id))

    # --- Read --------------------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        spaces: Sequence[str] | None = None,
        own: bool = True,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = 100,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        explain: bool = False,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
        include_superseded: bool = False,
    ) -> SearchResult:
        """Return the memories that best answer `query`, best first: the user's own and those of their spaces.

        Args:
            spaces: Spaces to search; None for all of the user's.
            own: False leaves out the user's own memories.
            agent_id, run_id: Of the user's own memories, only those with these ids.
            filters: As in `Memory.search`, without ids.
            limit, min_trust, threshold, rerank, explain, as_of, reference_date, include_superseded: As in
                `Memory.search`.

        Raises:
            AccessError: `spaces` names one that the user is not a member of.
        """
        flow = self.memory._principal_search_flow(
            self.user_id,
            query,
            places=(spaces, own, agent_id, run_id),
            limit=limit,
            explain=explain,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            as_of=as_of,
            reference_date=reference_date,
            include_superseded=include_superseded,
        )
        return self.memory._run(flow)

    def explain_missing(
        self,
        query: str,
        memory_id: str,
        *,
        limit: int = 100,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> MissingDict:
        """Explain why `search` with the same arguments does not return a memory of the user or of their spaces.

        The diagnosis is that of the place which has the memory. A memory that is among the best of its place can still
        be ``below_limit``, if better ones of other places take all results.

        Returns:
            As `Memory.explain_missing`; ``unknown`` for a memory that the user may not see.
        """
        flow = self.memory._principal_explain_missing_flow(
            self.user_id,
            query,
            memory_id,
            limit=limit,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            as_of=as_of,
            reference_date=reference_date,
        )
        return self.memory._run(flow)

    def answer(
        self,
        question: str,
        *,
        spaces: Sequence[str] | None = None,
        own: bool = True,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> AnswerDict:
        """Answer a question from the place that answers it most certainly, see `Memory.answer`; ``space`` names it.

        Args:
            spaces, own, agent_id, run_id, filters: As in `search`.
            min_trust, as_of, reference_date: As in `Memory.answer`.
        """
        flow = self.memory._principal_answer_flow(
            self.user_id,
            question,
            places=(spaces, own, agent_id, run_id),
            filters=filters,
            min_trust=min_trust,
            threshold=None,
            as_of=as_of,
            reference_date=reference_date,
        )
        return self.memory._run(flow)

    def context(
        self,
        query: Messages | None = None,
        *,
        spaces: Sequence[str] | None = None,
        own: bool = True,
        agent_id: str | None = None,
        run_id: str | None = None,
        max_tokens: int = 2000,
        limit: int = 20,
        recent: int | None = None,
        filters: Mapping[str, Any] | None = None,
        exclude: Sequence[str] = (),
        introduction: str = MEMORIES_INTRODUCTION,
        citations: bool = False,
        threshold: float | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> ContextDict:
        """Assemble an agent's context from the user's own memories and those of their spaces.

        The line of a memory of a space names the space. Summary and recent messages are the user's own.

        Args:
            spaces, own, agent_id, run_id, filters: As in `search`.
            query, max_tokens, limit, recent, exclude, introduction, citations, threshold, as_of, reference_date: As in
                `Memory.context`.
        """
        flow = self.memory._principal_context_flow(
            self.user_id,
            query,
            places=(spaces, own, agent_id, run_id),
            max_tokens=max_tokens,
            limit=limit,
            recent=recent,
            filters=filters,
            exclude=exclude,
            introduction=introduction,
            citations=citations,
            threshold=threshold,
            as_of=as_of,
            reference_date=reference_date,
        )
        return self.memory._run(flow)

    def get(self, memory_id: str) -> MemoryDict | None:
        """Return a memory that the user can see, or None."""
        return self.memory._run(self.memory._principal_get_flow(self.user_id, memory_id))

    def get_all(
        self,
        *,
        spaces: Sequence[str] | None = None,
        own: bool = True,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = 100,
        show_expired: bool = False,
    ) -> SearchResult:
        """Return the memories that the user can see, oldest first.

        Args:
            spaces, own, agent_id, run_id, filters: As in `search`.
            limit: Maximum number of results; None for all of them.
            show_expired: Also return expired memories.
        """
        flow = self.memory._principal_get_all_flow(
            self.user_id,
            places=(spaces, own, agent_id, run_id),
            filters=filters,
            limit=limit,
            show_expired=show_expired,
        )
        return self.memory._run(flow)

    def history(self, memory_id: str) -> list[HistoryDict]:
        """Return every change of a memory that the user can see, oldest first, even if it is deleted."""
        return self.memory._run(self.memory._principal_history_flow(self.user_id, memory_id))

    def changes(
        self, *, after: int = 0, limit: int = 100, spaces: Sequence[str] | None = None, own: bool = True
    ) -> ChangesDict:
        """Return the next changes that the user can see, in the order in which they were made.

        In a space, the events PROPOSE, APPROVE and REJECT name a pending write.

        Args:
            after, limit: As in `Memory.changes`.
            spaces, own: As in `search`.
        """
        flow = self.memory._principal_changes_flow(self.user_id, after=after, limit=limit, spaces=spaces, own=own)
        return self.memory._run(flow)

    def export(
        self,
        path: str | Path,
        *,
        space: str | None = None,
        format: Literal["jsonl", "csv"] = "jsonl",
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Write the user's own data to files, or those of a space; see `Memory.export`.

        Raises:
            AccessError: The user is not a member of the space.
        """
        flow = self.memory._principal_export_flow(self.user_id, path, space=space, format=format, overwrite=overwrite)
        return self.memory._run(flow)


class AsyncPrincipal:
    """`Principal` for async code. Every method is a coroutine.

    Args:
        memory, user_id: As for `Principal`; an `AsyncMemory` or a `Memory`.
    """

    def __init__(self, memory: AsyncMemory | Memory, user_id: str) -> None:
        self.memory: Memory = unwrap_memory(memory)
        self.user_id = check_member(user_id)

    # --- Async methods, generated by tools/generate_memory.py: do not edit --------------------------------------------

    async def spaces(self) -> list[SpaceDict]:
        """Async version of `Principal.spaces`."""
        return await self.memory._arun(self.memory._principal_spaces_flow(self.user_id))

    async def create_space(self, space: str, *, requires_approval: bool = False) -> SpaceDict:
        """Async version of `Principal.create_space`."""
        return await self.memory._arun(self.memory._principal_create_space_flow(self.user_id, space, requires_approval))

    async def delete_space(self, space: str) -> ErasureReceipt:
        """Async version of `Principal.delete_space`."""
        return await self.memory._arun(self.memory._principal_delete_space_flow(self.user_id, space))

    async def set_approval(self, space: str, requires_approval: bool) -> None:
        """Async version of `Principal.set_approval`."""
        return await self.memory._arun(self.memory._principal_set_approval_flow(self.user_id, space, requires_approval))

    async def members(self, space: str) -> list[MemberDict]:
        """Async version of `Principal.members`."""
        return await self.memory._arun(self.memory._principal_members_flow(self.user_id, space))

    async def set_member(self, space: str, member: str, role: Literal["reader", "writer", "owner"]) -> None:
        """Async version of `Principal.set_member`."""
        return await self.memory._arun(self.memory._principal_set_member_flow(self.user_id, space, member, role))

    async def remove_member(self, space: str, member: str) -> None:
        """Async version of `Principal.remove_member`."""
        return await self.memory._arun(self.memory._principal_remove_member_flow(self.user_id, space, member))

    async def add(
        self,
        messages: Messages,
        *,
        space: str | None = None,
        agent_id: str | None = None,
        run_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        infer: bool = True,
        timestamp: int | float | str | datetime | None = None,
        background: bool = False,
        trust: TrustClass | None = None,
    ) -> SpaceAddResult:
        """Async version of `Principal.add`."""
        flow = self.memory._principal_add_flow(
            self.user_id,
            messages,
            space=space,
            agent_id=agent_id,
            run_id=run_id,
            metadata=metadata,
            infer=infer,
            timestamp=timestamp,
            background=background,
            trust=trust,
        )
        return await self.memory._arun(flow)

    async def update(self, memory_id: str, data: str, metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Async version of `Principal.update`."""
        return await self.memory._arun(self.memory._principal_update_flow(self.user_id, memory_id, data, metadata))

    async def delete(self, memory_id: str, *, purge: bool = False) -> dict[str, Any]:
        """Async version of `Principal.delete`."""
        return await self.memory._arun(self.memory._principal_delete_flow(self.user_id, memory_id, purge))

    async def pin(self, memory_id: str, pinned: bool = True) -> None:
        """Async version of `Principal.pin`."""
        return await self.memory._arun(self.memory._principal_pin_flow(self.user_id, memory_id, pinned))

    async def feedback(self, memory_id: str, useful: bool | None) -> FeedbackDict:
        """Async version of `Principal.feedback`."""
        return await self.memory._arun(self.memory._principal_feedback_flow(self.user_id, memory_id, useful))

    async def pending_writes(self, space: str) -> list[PendingWriteDict]:
        """Async version of `Principal.pending_writes`."""
        return await self.memory._arun(self.memory._principal_pending_writes_flow(self.user_id, space))

    async def approve(self, write_id: str) -> dict[str, Any]:
        """Async version of `Principal.approve`."""
        return await self.memory._arun(self.memory._principal_approve_flow(self.user_id, write_id))

    async def reject(self, write_id: str) -> None:
        """Async version of `Principal.reject`."""
        return await self.memory._arun(self.memory._principal_reject_flow(self.user_id, write_id))

    async def search(
        self,
        query: str,
        *,
        spaces: Sequence[str] | None = None,
        own: bool = True,
        agent_id: str | None = None,
        run_id: str | None = None,
        limit: int = 100,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        explain: bool = False,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
        include_superseded: bool = False,
    ) -> SearchResult:
        """Async version of `Principal.search`."""
        flow = self.memory._principal_search_flow(
            self.user_id,
            query,
            places=(spaces, own, agent_id, run_id),
            limit=limit,
            explain=explain,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            as_of=as_of,
            reference_date=reference_date,
            include_superseded=include_superseded,
        )
        return await self.memory._arun(flow)

    async def explain_missing(
        self,
        query: str,
        memory_id: str,
        *,
        limit: int = 100,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        threshold: float | None = None,
        rerank: bool | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> MissingDict:
        """Async version of `Principal.explain_missing`."""
        flow = self.memory._principal_explain_missing_flow(
            self.user_id,
            query,
            memory_id,
            limit=limit,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            as_of=as_of,
            reference_date=reference_date,
        )
        return await self.memory._arun(flow)

    async def answer(
        self,
        question: str,
        *,
        spaces: Sequence[str] | None = None,
        own: bool = True,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        min_trust: TrustClass | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> AnswerDict:
        """Async version of `Principal.answer`."""
        flow = self.memory._principal_answer_flow(
            self.user_id,
            question,
            places=(spaces, own, agent_id, run_id),
            filters=filters,
            min_trust=min_trust,
            threshold=None,
            as_of=as_of,
            reference_date=reference_date,
        )
        return await self.memory._arun(flow)

    async def context(
        self,
        query: Messages | None = None,
        *,
        spaces: Sequence[str] | None = None,
        own: bool = True,
        agent_id: str | None = None,
        run_id: str | None = None,
        max_tokens: int = 2000,
        limit: int = 20,
        recent: int | None = None,
        filters: Mapping[str, Any] | None = None,
        exclude: Sequence[str] = (),
        introduction: str = MEMORIES_INTRODUCTION,
        citations: bool = False,
        threshold: float | None = None,
        as_of: int | float | str | datetime | None = None,
        reference_date: int | float | str | date | None = None,
    ) -> ContextDict:
        """Async version of `Principal.context`."""
        flow = self.memory._principal_context_flow(
            self.user_id,
            query,
            places=(spaces, own, agent_id, run_id),
            max_tokens=max_tokens,
            limit=limit,
            recent=recent,
            filters=filters,
            exclude=exclude,
            introduction=introduction,
            citations=citations,
            threshold=threshold,
            as_of=as_of,
            reference_date=reference_date,
        )
        return await self.memory._arun(flow)

    async def get(self, memory_id: str) -> MemoryDict | None:
        """Async version of `Principal.get`."""
        return await self.memory._arun(self.memory._principal_get_flow(self.user_id, memory_id))

    async def get_all(
        self,
        *,
        spaces: Sequence[str] | None = None,
        own: bool = True,
        agent_id: str | None = None,
        run_id: str | None = None,
        filters: Mapping[str, Any] | None = None,
        limit: int | None = 100,
        show_expired: bool = False,
    ) -> SearchResult:
        """Async version of `Principal.get_all`."""
        flow = self.memory._principal_get_all_flow(
            self.user_id,
            places=(spaces, own, agent_id, run_id),
            filters=filters,
            limit=limit,
            show_expired=show_expired,
        )
        return await self.memory._arun(flow)

    async def history(self, memory_id: str) -> list[HistoryDict]:
        """Async version of `Principal.history`."""
        return await self.memory._arun(self.memory._principal_history_flow(self.user_id, memory_id))

    async def changes(
        self, *, after: int = 0, limit: int = 100, spaces: Sequence[str] | None = None, own: bool = True
    ) -> ChangesDict:
        """Async version of `Principal.changes`."""
        flow = self.memory._principal_changes_flow(self.user_id, after=after, limit=limit, spaces=spaces, own=own)
        return await self.memory._arun(flow)

    async def export(
        self,
        path: str | Path,
        *,
        space: str | None = None,
        format: Literal["jsonl", "csv"] = "jsonl",
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Async version of `Principal.export`."""
        flow = self.memory._principal_export_flow(self.user_id, path, space=space, format=format, overwrite=overwrite)
        return await self.memory._arun(flow)

    # --- End of the generated methods ---------------------------------------------------------------------------------
