"""`Principal`: one user's view of a memory, which is their own memories and those of their spaces."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from mem0_core.api._arguments import (
    ScopeIds,
    extract_message_texts,
    extract_query_text,
    resolve_timestamp,
    validate_count,
    validate_id,
)
from mem0_core.api._results import answer_dict, missing_dict
from mem0_core.api.options import unwrap_memory
from mem0_core.api.search import prompt_format
from mem0_core.domain.erasure import ErasureReceipt
from mem0_core.domain.feed import ChangeDict, ChangesDict
from mem0_core.domain.policy import apply_policy, check_sizes, filter_messages
from mem0_core.domain.records import (
    AnswerDict,
    ContextDict,
    FeedbackDict,
    HistoryDict,
    MemoryDict,
    Messages,
    MissingDict,
    Scope,
    SearchResult,
    new_id,
)
from mem0_core.domain.spaces import (
    MAX_MEMBER_CHARS,
    MemberDict,
    Membership,
    PendingWrite,
    PendingWriteDict,
    SpaceAddResult,
    SpaceDict,
    SpaceRole,
    WriteKind,
    check_member,
    check_space_name,
    find_space_name,
    member_source,
    parse_role,
    refuse_access,
    space_scope,
)
from mem0_core.domain.suggestions import check_flag
from mem0_core.domain.timestamps import parse_timestamp, utc_now, utc_today
from mem0_core.domain.trust import Origin, TrustClass, parse_trust
from mem0_core.errors import AccessError, CapabilityError, InputError, NotFoundError, ScopeError
from mem0_core.flow import Flow, client_method, do, sync_method
from mem0_core.interfaces.spaces import SpaceLedger
from mem0_core.language.messages import check_metadata, parse_messages
from mem0_core.llm.prompts import MEMORIES_INTRODUCTION
from mem0_core.memory import AsyncMemory, Memory
from mem0_core.views._homes import (
    Home,
    check_filters,
    compare_places,
    context_dict,
    label,
    label_answer,
    message_input,
    name_author,
    nearest_score,
    needs_owner,
    pending_status,
    public_source,
    search_dict,
    space_dict,
    unknown_write,
    waits,
    write_dict,
)
from mem0_core.views._scoped import MemoryView

if TYPE_CHECKING:
    from mem0_core.recall.answer import Answer
    from mem0_core.recall.context import ContextCandidates
    from mem0_core.recall.search import Search, SearchRequest

_REASON = "space deleted"


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


class Principal(MemoryView):
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
        self._memory = memory
        self.user_id = check_member(user_id)

    # --- Spaces ------------------------------------------------------------------------------------------------------

    @sync_method
    def spaces(self) -> Flow[list[SpaceDict]]:
        """Return the spaces that the user is a member of, by name, with the user's role."""
        return [space_dict(one) for one in (yield from do(self._ledger.memberships, self.user_id))]

    @sync_method
    def create_space(self, space: str, *, requires_approval: bool = False) -> Flow[SpaceDict]:
        """Create a space, with the user as its owner.

        Args:
            space: Name of the space, unique in the store: up to 100 printable characters without a slash.
            requires_approval: Let writes of members who are not owners wait until an owner approves them.

        Raises:
            InputError: The name is invalid or taken.
        """
        name = check_space_name(space)
        check_flag(requires_approval, "requires_approval")
        create = self._ledger.create
        if not (yield from do(create, name, self.user_id, requires_approval=requires_approval, at=utc_now())):
            raise InputError(f"a space {name!r} exists already; choose another name")
        return SpaceDict(space=name, role=SpaceRole.OWNER.value, requires_approval=requires_approval)

    @sync_method
    def delete_space(self, space: str) -> Flow[ErasureReceipt]:
        """Erase a space for its owner, with its memories, members and pending writes, and return the signed receipt.

        Raises:
            AccessError: The user is not an owner of the space.
        """
        from mem0_core.admin.erase import erase_subject

        yield from self._membership(space, SpaceRole.OWNER)
        ports = yield from self.memory._ports()
        yield from do(self.memory._clear_temporary_files)
        files, folder = (yield from do(self.memory._data_files)), self.memory.config.folder
        return (yield from erase_subject(ports, space_scope(space), reason=_REASON, folder=folder, files=files))

    @sync_method
    def set_approval(self, space: str, requires_approval: bool) -> Flow[None]:
        """Set for an owner if writes of other members wait for approval; those that wait already go on waiting.

        Raises:
            AccessError: The user is not an owner of the space.
        """
        check_flag(requires_approval, "requires_approval")
        yield from do(self._ledger.set_approval, check_space_name(space), requires_approval, by=self.user_id)

    @sync_method
    def members(self, space: str) -> Flow[list[MemberDict]]:
        """Return the members of a space with their roles, longest-standing first.

        Raises:
            AccessError: The user is not a member of the space.
        """
        yield from self._membership(space, SpaceRole.READER)
        members = yield from do(self._ledger.members, space)
        return [MemberDict(user_id=one.user_id, role=one.role.value, since=one.since) for one in members]

    @sync_method
    def set_member(self, space: str, member: str, role: Literal["reader", "writer", "owner"]) -> Flow[None]:
        """Add a member to a space, or change the role of one. It takes effect with the member's next call.

        Args:
            member: User id of the member.
            role: A reader recalls; a writer also adds, updates and deletes; an owner also manages the space.

        Raises:
            AccessError: The user is not an owner of the space.
            InputError: The role is unknown, or the space would have no owner.
        """
        name, whom, chosen = check_space_name(space), check_member(member), parse_role(role)
        if not (yield from do(self._ledger.set_member, name, whom, chosen, by=self.user_id, at=utc_now())):
            raise needs_owner(name)

    @sync_method
    def remove_member(self, space: str, member: str) -> Flow[None]:
        """Remove a member from a space, with their pending writes. It takes effect with the member's next call.

        Memories that the member wrote remain in the space. A member may remove themselves.

        Raises:
            AccessError: The user is neither an owner of the space nor the member.
            InputError: The space would have no owner.
        """
        name, whom = check_space_name(space), check_member(member)
        if not (yield from do(self._ledger.remove_member, name, whom, by=self.user_id)):
            raise needs_owner(name)

    # --- Write -------------------------------------------------------------------------------------------------------

    @sync_method
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
    ) -> Flow[SpaceAddResult]:
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
        if space is None:
            ids: ScopeIds = (self.user_id, agent_id, run_id)
            return (yield from self._add_to(ids, messages, (None, trust), metadata, infer, timestamp, background))
        if agent_id is not None or run_id is not None:
            raise ScopeError("memories of a space have no agent_id and no run_id; leave them out, or leave out space")
        membership = yield from self._membership(space, SpaceRole.WRITER)
        ids = self._home(space).ids
        named = name_author(messages, self.user_id)
        if not waits(membership) and membership.role is not SpaceRole.OWNER:
            yield from self._refuse_other_authors(space, named)
        if waits(membership):
            return (yield from self._propose_add(space, ids, named, metadata, infer, timestamp, trust))
        origin = member_source(self.user_id), trust
        return (yield from self._add_to(ids, named, origin, metadata, infer, timestamp, background))

    @sync_method
    def update(self, memory_id: str, data: str, metadata: Mapping[str, Any] | None = None) -> Flow[dict[str, Any]]:
        """Replace the text of a memory, see `Memory.update`; or propose it, where writes wait for approval.

        Raises:
            NotFoundError: The user can see no memory with that id.
            AccessError: The user is not a writer of its space.
        """
        home, membership = yield from self._locate(memory_id, SpaceRole.WRITER)
        if home.space is None or not waits(membership):
            return (yield from self.memory._update_flow(memory_id, data, metadata, ids=home.ids))
        item = yield from do(self.memory.store.get, memory_id)
        if item is None:
            raise NotFoundError(memory_id)
        if not isinstance(data, str) or not data.strip():
            raise InputError(f"data must be a non-empty text, not {data!r}; pass the new text of the memory")
        text = data if self.memory._policy is None else apply_policy(self.memory._policy, data, item.scope)
        if text is None:
            raise InputError("the policy refuses the text of the update")
        arguments = {
            "memory_id": memory_id,
            "data": text,
            "previous": item.text,
            "metadata": dict(check_metadata(metadata, "the update") or {}),
        }
        return pending_status((yield from self._propose(home.space, "update", arguments)))

    @sync_method
    def delete(self, memory_id: str, *, purge: bool = False) -> Flow[dict[str, Any]]:
        """Delete a memory, see `Memory.delete`; or propose it, where writes wait for approval.

        Raises:
            NotFoundError: The user can see no memory with that id.
            AccessError: The user is not a writer of its space.
        """
        home, membership = yield from self._locate(memory_id, SpaceRole.WRITER)
        if home.space is None or not waits(membership):
            return (yield from self.memory._delete_flow(memory_id, ids=home.ids, purge=purge))
        item = yield from do(self.memory.store.get, memory_id)
        if item is None:
            raise NotFoundError(memory_id)
        arguments = {"memory_id": memory_id, "previous": item.text, "purge": bool(purge)}
        return pending_status((yield from self._propose(home.space, "delete", arguments)))

    @sync_method
    def pin(self, memory_id: str, pinned: bool = True) -> Flow[None]:
        """Include a memory in every `context` of the users that can see it; False ends this.

        Raises:
            NotFoundError: The user can see no memory with that id.
            AccessError: The user is not a writer of its space, or not an owner where writes wait for approval.
        """
        home, membership = yield from self._locate(memory_id, SpaceRole.WRITER)
        if home.space is not None and waits(membership):
            raise refuse_access(home.space, self.user_id, SpaceRole.OWNER)
        yield from self.memory._pin_flow(memory_id, pinned, ids=home.ids)

    @sync_method
    def feedback(self, memory_id: str, useful: bool | None) -> Flow[FeedbackDict]:
        """Count a memory as useful or useless for all who can see it, as `Memory.feedback` does; no approval is needed.

        Raises:
            NotFoundError: The user can see no memory with that id.
            AccessError: The user is not a writer of its space.
        """
        home, _ = yield from self._locate(memory_id, SpaceRole.WRITER)
        return (yield from self.memory._feedback_flow(memory_id, useful, ids=home.ids))

    # --- Approval ----------------------------------------------------------------------------------------------------

    @sync_method
    def pending_writes(self, space: str) -> Flow[list[PendingWriteDict]]:
        """Return the writes of a space that wait for approval, oldest first: for an owner all, else the user's own.

        Raises:
            AccessError: The user is not a member of the space.
        """
        membership = yield from self._membership(space, SpaceRole.READER)
        author = None if membership.role is SpaceRole.OWNER else self.user_id
        writes = yield from do(self._ledger.pending_writes, space, author=author)
        return [write_dict(write) for write in writes]

    @sync_method
    def approve(self, write_id: str) -> Flow[dict[str, Any]]:
        """Do a pending write, and return its result. The change feed records the approval.

        Raises:
            AccessError: There is no such write in a space of which the user is an owner.
            NotFoundError, InputError: The memory to be changed is gone, or another one since; `reject` the write.
        """
        write = yield from self._find_write(write_id, SpaceRole.OWNER)
        result = yield from self._apply_write(write)
        # Only now: after a crash before this line the write still waits, and a second approval changes nothing twice.
        yield from do(self._ledger.settle, write, "APPROVE", by=self.user_id)
        return result

    @sync_method
    def reject(self, write_id: str) -> Flow[None]:
        """Drop a pending write as an owner, or withdraw one's own. The change feed records it.

        Raises:
            AccessError: There is no such write, or it is not the user's to decide.
        """
        write = yield from self._find_write(write_id, None)
        if not (yield from do(self._ledger.settle, write, "REJECT", by=self.user_id)):
            raise unknown_write(write_id)

    # --- Read --------------------------------------------------------------------------------------------------------

    @sync_method
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
    ) -> Flow[SearchResult]:
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
        check_filters(filters)
        homes = yield from self._homes(spaces, own, agent_id, run_id)
        request = self.memory._build_request(
            query,
            ids=self._own_ids,
            limit=limit,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            as_of=as_of,
            reference_date=reference_date,
            include_superseded=include_superseded,
        )
        return search_dict((yield from self._search_homes(homes, request)), request.limit, explain)

    @sync_method
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
    ) -> Flow[MissingDict]:
        """Explain why `search` with the same arguments does not return a memory of the user or of their spaces.

        The diagnosis is that of the place which has the memory. A memory that is among the best of its place can still
        be ``below_limit``, if better ones of other places take all results.

        Returns:
            As `Memory.explain_missing`; ``unknown`` for a memory that the user may not see.
        """
        from mem0_core.recall.explain import explain_missing
        from mem0_core.recall.several import merge_hits

        check_filters(filters)
        try:
            home, _ = yield from self._locate(memory_id, SpaceRole.READER)
        except NotFoundError:
            home = Home(None, self._own_ids)
        request = self.memory._build_request(
            query,
            ids=self._own_ids,
            limit=limit,
            filters=filters,
            min_trust=min_trust,
            threshold=threshold,
            rerank=rerank,
            as_of=as_of,
            reference_date=reference_date,
        )
        placed = dataclasses.replace(request, scope=home.scope)
        missing = yield from explain_missing((yield from self.memory._ports()), placed, memory_id)
        if missing.reason == "found":
            searches = yield from self._search_homes((yield from self._homes(None, True, None, None)), request)
            hits = merge_hits([(home, search.hits) for home, search in searches])[: request.limit]
            missing = compare_places(missing, [hit.item.id for _, hit in hits], memory_id)
        return missing_dict(memory_id, missing)

    @sync_method
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
    ) -> Flow[AnswerDict]:
        """Answer a question from the place that answers it most certainly, see `Memory.answer`; ``space`` names it.

        Args:
            spaces, own, agent_id, run_id, filters: As in `search`.
            min_trust, as_of, reference_date: As in `Memory.answer`.
        """
        from mem0_core.recall.answer import answer
        from mem0_core.recall.several import search_each, share_queries

        check_filters(filters)
        homes = yield from self._homes(spaces, own, agent_id, run_id)
        ports = share_queries((yield from self.memory._ports()))
        request = self.memory._build_request(
            question,
            ids=self._own_ids,
            limit=10,
            filters=filters,
            min_trust=min_trust,
            as_of=as_of,
            reference_date=reference_date,
        )

        def search(home: Home) -> Flow[Answer]:
            return answer(ports, dataclasses.replace(request, scope=home.scope))

        answers = yield from search_each(homes, search)
        if not answers:
            return AnswerDict(answer=None, values=[], confidence=0.0, memories=[], note="no memories are searched")
        home, best = max(answers, key=lambda one: (one[1].is_known, one[1].confidence, nearest_score(one[1].nearest)))
        return label_answer(answer_dict(best), home)

    @sync_method
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
    ) -> Flow[ContextDict]:
        """Assemble an agent's context from the user's own memories and those of their spaces.

        The line of a memory of a space names the space. Summary and recent messages are the user's own.

        Args:
            spaces, own, agent_id, run_id, filters: As in `search`.
            query, max_tokens, limit, recent, exclude, introduction, citations, threshold, as_of, reference_date: As in
                `Memory.context`.
        """
        check_filters(filters)
        validate_count(max_tokens, "max_tokens", example=2000)
        homes = yield from self._homes(spaces, own, agent_id, run_id)
        time = None if as_of is None else parse_timestamp(as_of, "as_of")
        request = None
        if (text := extract_query_text(query)) is not None:
            request = self.memory._build_request(
                text,
                ids=self._own_ids,
                limit=limit,
                filters=filters,
                threshold=threshold,
                as_of=time,
                reference_date=reference_date,
            )
        shown = [*exclude, *extract_message_texts(query)]
        window = self.memory.config.window if recent is None else validate_count(recent, "recent", minimum=0)
        gathered = yield from self._gather(homes, request, time, window, shown)
        form = prompt_format(max_tokens, (yield from self.memory._token_counter()), introduction, citations)
        return context_dict(gathered, form, citations)

    @sync_method
    def get(self, memory_id: str) -> Flow[MemoryDict | None]:
        """Return a memory that the user can see, or None."""
        try:
            home, _ = yield from self._locate(memory_id, SpaceRole.READER)
        except NotFoundError:
            return None
        memory = yield from self.memory._get_flow(memory_id, ids=home.ids)
        return None if memory is None else label(memory, home)

    @sync_method
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
    ) -> Flow[SearchResult]:
        """Return the memories that the user can see, oldest first.

        Args:
            spaces, own, agent_id, run_id, filters: As in `search`.
            limit: Maximum number of results; None for all of them.
            show_expired: Also return expired memories.
        """
        check_filters(filters)
        homes = yield from self._homes(spaces, own, agent_id, run_id)
        result = SearchResult(results=[], relations=[])
        for home in homes:
            found = yield from self.memory._get_all_flow(
                ids=home.ids, filters=filters, limit=limit, top_k=None, min_trust=None, show_expired=show_expired
            )
            result["results"] += [label(memory, home) for memory in found["results"]]
            result["relations"] += [label(relation, home) for relation in found["relations"]]
        result["results"].sort(key=lambda memory: memory["created_at"])
        if limit is not None:
            result["results"], result["relations"] = result["results"][:limit], result["relations"][:limit]
        return result

    @sync_method
    def history(self, memory_id: str) -> Flow[list[HistoryDict]]:
        """Return every change of a memory that the user can see, oldest first, even if it is deleted."""
        try:
            home, _ = yield from self._locate(memory_id, SpaceRole.READER)
        except NotFoundError:
            return []
        return (yield from self.memory._history_flow(memory_id, ids=home.ids))

    @sync_method
    def changes(
        self, *, after: int = 0, limit: int = 100, spaces: Sequence[str] | None = None, own: bool = True
    ) -> Flow[ChangesDict]:
        """Return the next changes that the user can see, in the order in which they were made.

        In a space, the events PROPOSE, APPROVE and REJECT name a pending write.

        Args:
            after, limit: As in `Memory.changes`.
            spaces, own: As in `search`.
        """
        after, limit = validate_count(after, "after", minimum=0, maximum=2**63 - 1), validate_count(limit, "limit")
        homes = yield from self._homes(spaces, own, None, None)
        scopes = [home.scope for home in homes]
        events = yield from do(self.memory.store.feed.changes_of, scopes, after=after, limit=limit)
        results = []
        for event in events:
            change = ChangeDict(**dataclasses.asdict(event))  # type: ignore[typeddict-item]
            change["space"] = find_space_name(Scope.from_stored(event.user_id)) if event.user_id else None
            if change["space"] is not None:
                change["user_id"] = None
            change["source"] = public_source(event.source)
            results.append(change)
        return ChangesDict(results=results, cursor=events[-1].seq if events else after)

    @sync_method
    def export(
        self,
        path: str | Path,
        *,
        space: str | None = None,
        format: Literal["jsonl", "csv"] = "jsonl",
        overwrite: bool = False,
    ) -> Flow[dict[str, Any]]:
        """Write the user's own data to files, or those of a space; see `Memory.export`.

        Raises:
            AccessError: The user is not a member of the space.
        """
        ids = self._own_ids
        if space is not None:
            yield from self._membership(space, SpaceRole.READER)
            ids = self._home(space).ids
        return (
            yield from self.memory._export_flow(path, ids=ids, format=format, overwrite=overwrite, on_progress=None)
        )

    # --- Parts of the flows -----------------------------------------------------------------------------------------

    def _refuse_other_authors(self, space: str, messages: Messages) -> Flow[None]:
        """Refuse messages in the name of another member: an owner may add them, or approve them.

        Raises:
            AccessError: there is such a message.
        """
        names = {message.name for message in parse_messages(messages).messages if message.name} - {self.user_id}
        members = {one.user_id for one in (yield from do(self._ledger.members, space))} if names else set()
        if others := sorted(names & members):
            raise AccessError(f"{self.user_id!r} may not add messages of {others[0]!r}; an owner of the space may")

    def _add_to(
        self,
        ids: ScopeIds,
        messages: Messages,
        origin: Origin,
        metadata: Mapping[str, Any] | None,
        infer: bool,
        timestamp: int | float | str | datetime | None,
        background: bool,
    ) -> Flow[SpaceAddResult]:
        result = yield from self.memory._add_flow(
            messages,
            ids=ids,
            metadata=metadata,
            infer=infer,
            keep="all",
            facts_about="auto",
            memory_type=None,
            prompt=None,
            timestamp=timestamp,
            expiration_date=None,
            ttl=None,
            dry_run=False,
            background=background,
            max_pending=None,
            origin=origin,
        )
        return cast(SpaceAddResult, result)

    def _propose_add(
        self,
        space: str,
        ids: ScopeIds,
        messages: Messages,
        metadata: Mapping[str, Any] | None,
        infer: bool,
        timestamp: int | float | str | datetime | None,
        trust: TrustClass | None,
    ) -> Flow[SpaceAddResult]:
        """Store an add for approval. It passes the checks and the policy of an add first."""
        check_flag(infer, "infer")
        parse_trust(trust, "trust")
        parsed, scope = parse_messages(messages), Scope(*ids)
        check_sizes(self.memory._limits, parsed.messages)
        allowed, refused = filter_messages(self.memory._policy, parsed.messages, scope)
        self.memory._rates.record_add(scope)
        result = SpaceAddResult(
            results=[],
            relations={"added_entities": [], "deleted_entities": []},
            skipped=[*parsed.skipped, *refused],
            usage={"llm_calls": 0, "input_tokens": 0, "output_tokens": 0, "seconds": 0.0},
        )
        if allowed:
            arguments = {
                "messages": [message_input(message) for message in allowed],
                "metadata": dict(check_metadata(metadata, "the add") or {}),
                "infer": infer,
                "timestamp": resolve_timestamp(timestamp, allowed),
                "trust": trust,
            }
            result["pending_write"] = yield from self._propose(space, "add", arguments)
        return result

    def _propose(self, space: str, kind: WriteKind, arguments: dict[str, Any]) -> Flow[str]:
        write = PendingWrite(new_id(), space, self.user_id, kind, arguments, utc_now())
        yield from do(self._ledger.propose, write)
        return write.id

    def _apply_write(self, write: PendingWrite) -> Flow[dict[str, Any]]:
        given, ids = write.arguments, self._home(write.space).ids
        if write.kind == "update":
            yield from self._check_previous(write)
            return (yield from self.memory._update_flow(given["memory_id"], given["data"], given["metadata"], ids=ids))
        if write.kind == "delete":
            yield from self._check_previous(write)
            return (yield from self.memory._delete_flow(given["memory_id"], ids=ids, purge=given["purge"]))
        messages = [{**one, "id": f"{write.id}:{index}"} for index, one in enumerate(given["messages"])]
        result = yield from self._add_to(
            ids,
            messages,
            (member_source(write.author), given.get("trust")),  # writes of earlier versions have none
            given["metadata"],
            given["infer"],
            given["timestamp"],
            False,
        )
        return dict(result)

    def _check_previous(self, write: PendingWrite) -> Flow[None]:
        """Refuse a change of a memory that is another one since it was proposed."""
        memory_id = write.arguments["memory_id"]
        item = yield from do(self.memory.store.get, memory_id)
        if item is None or find_space_name(item.scope) != write.space:
            raise NotFoundError(memory_id)
        if item.text != write.arguments["previous"]:
            raise InputError(f"the memory {memory_id!r} has changed since the write was proposed; reject the write")

    def _find_write(self, write_id: str, needed: SpaceRole | None) -> Flow[PendingWrite]:
        """Return a pending write that the principal may see: an owner all of a space, an author their own."""
        write = yield from do(self._ledger.pending_write, validate_id(write_id))
        if write is None:
            raise unknown_write(write_id)
        membership = yield from do(self._ledger.membership, write.space, self.user_id)
        if membership is None or (membership.role is not SpaceRole.OWNER and write.author != self.user_id):
            raise unknown_write(write_id)
        if needed is not None and not membership.role.covers(needed):
            raise refuse_access(write.space, self.user_id, needed)
        return write

    def _search_homes(self, homes: Sequence[Home], request: SearchRequest) -> Flow[list[tuple[Home, Search]]]:
        """Search each place. All share one request, and so what is parsed of the query."""
        from mem0_core.recall.search import recall
        from mem0_core.recall.several import search_each, share_queries

        ports = share_queries((yield from self.memory._ports()))

        def search(home: Home) -> Flow[Search]:
            return recall(ports, dataclasses.replace(request, scope=home.scope))

        return (yield from search_each(homes, search))

    def _gather(
        self,
        homes: Sequence[Home],
        request: SearchRequest | None,
        as_of: str | None,
        recent: int,
        shown: Sequence[str],
    ) -> Flow[list[tuple[Home, ContextCandidates]]]:
        """Return the candidates of a context from each place; recent messages are the principal's own."""
        from mem0_core.ingest.conversation import gather_context
        from mem0_core.recall.several import search_each, share_queries

        ports = share_queries((yield from self.memory._ports()))

        def gather(home: Home) -> Flow[ContextCandidates]:
            return gather_context(
                ports,
                None if request is None else dataclasses.replace(request, scope=home.scope),
                home.scope,
                today=utc_today() if as_of is None else as_of[:10],
                recent=recent if home.space is None else 0,
                exclude=shown,
                as_of=as_of,
            )

        return (yield from search_each(homes, gather))

    def _membership(self, space: str, needed: SpaceRole) -> Flow[Membership]:
        """Return the membership of a principal in a space.

        Raises:
            AccessError: there is none, or its role does not cover the role that is needed.
        """
        membership: Membership | None = yield from do(self._ledger.membership, check_space_name(space), self.user_id)
        if membership is None:
            raise refuse_access(space, self.user_id)
        if not membership.role.covers(needed):
            raise refuse_access(space, self.user_id, needed)
        return membership

    def _homes(
        self, spaces: Sequence[str] | None, own: bool, agent_id: str | None, run_id: str | None
    ) -> Flow[list[Home]]:
        """Return the places that a call of a principal reads: their own memories, then their spaces.

        Raises:
            AccessError: `spaces` names one that the principal is no member of.
        """
        check_flag(own, "own")
        if isinstance(spaces, str):
            raise InputError(f"spaces must be a list of names, not {spaces!r}; pass, for example, [{spaces!r}]")
        if spaces is None or spaces:
            known = [one.space for one in (yield from do(self._ledger.memberships, self.user_id))]
        else:
            known = []
        chosen = known if spaces is None else list(dict.fromkeys(map(check_space_name, spaces)))
        if refused := next((name for name in chosen if name not in known), None):
            raise refuse_access(refused, self.user_id)
        homes = [Home(None, (self.user_id, agent_id, run_id))] if own else []
        return homes + [self._home(name) for name in chosen]

    @property
    def _ledger(self) -> SpaceLedger:
        return self.memory.store.spaces

    @property
    def _own_ids(self) -> ScopeIds:
        return self.user_id, None, None

    def _home(self, space: str) -> Home:
        return Home(space, (space_scope(space, self.user_id).user_id, None, None))

    def _locate(self, memory_id: str, needed: SpaceRole) -> Flow[tuple[Home, Membership | None]]:
        """Return the place of a memory, which may be deleted, and the principal's membership there.

        Raises:
            NotFoundError: there is no such memory, or the principal may not see it.
            AccessError: the principal may see it, and their role does not cover the role that is needed.
        """
        owner = yield from do(self.memory.store.owner, validate_id(memory_id))
        if owner is None:
            raise NotFoundError(memory_id)
        space = find_space_name(owner)
        if space is None:
            if owner.user_id != self.user_id:
                raise NotFoundError(memory_id)
            return Home(None, self._own_ids), None
        try:
            membership = yield from self._membership(space, needed)
        except AccessError:
            if (yield from do(self._ledger.membership, space, self.user_id)) is None:
                raise NotFoundError(memory_id) from None
            raise
        return self._home(space), membership


class AsyncPrincipal:
    """`Principal` for async code. Every method is a coroutine.

    Args:
        memory, user_id: As for `Principal`; an `AsyncMemory` or a `Memory`.
    """

    def __init__(self, memory: AsyncMemory | Memory, user_id: str) -> None:
        self._sync_form = Principal(unwrap_memory(memory), user_id)
        self.memory = self._sync_form.memory
        self.user_id = self._sync_form.user_id

    # --- The methods of `Principal` ----------------------------------------------------------------------------------

    spaces = client_method(Principal.spaces)
    create_space = client_method(Principal.create_space)
    delete_space = client_method(Principal.delete_space)
    set_approval = client_method(Principal.set_approval)
    members = client_method(Principal.members)
    set_member = client_method(Principal.set_member)
    remove_member = client_method(Principal.remove_member)
    add = client_method(Principal.add)
    update = client_method(Principal.update)
    delete = client_method(Principal.delete)
    pin = client_method(Principal.pin)
    feedback = client_method(Principal.feedback)
    pending_writes = client_method(Principal.pending_writes)
    approve = client_method(Principal.approve)
    reject = client_method(Principal.reject)
    search = client_method(Principal.search)
    explain_missing = client_method(Principal.explain_missing)
    answer = client_method(Principal.answer)
    context = client_method(Principal.context)
    get = client_method(Principal.get)
    get_all = client_method(Principal.get_all)
    history = client_method(Principal.history)
    changes = client_method(Principal.changes)
    export = client_method(Principal.export)
