"""Flows of a principal: a user that recalls their own memories and those of their spaces."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from mem0_core._system.records import dataclass
from mem0_core.api._arguments import (
    ScopeIds,
    extract_message_texts,
    extract_query_text,
    parse_scope_and_filter,
    resolve_timestamp,
    validate_count,
    validate_id,
    validate_limit,
)
from mem0_core.api._results import answer_dict, hit_dict, missing_dict, relation_dict
from mem0_core.api.add import AddApi
from mem0_core.api.admin import AdminApi
from mem0_core.api.search import SearchApi, context_dict, prompt_format
from mem0_core.api.update import UpdateApi
from mem0_core.domain.erasure import ErasureReceipt
from mem0_core.domain.feed import ChangeDict, ChangesDict
from mem0_core.domain.filters import parse_filters
from mem0_core.domain.policy import apply_policy, check_sizes, filter_messages
from mem0_core.domain.records import (
    AnswerDict,
    Axis,
    ContextDict,
    FeedbackDict,
    HistoryDict,
    Hit,
    MemoryDict,
    Message,
    Messages,
    MissingDict,
    Scope,
    SearchResult,
    new_id,
)
from mem0_core.domain.spaces import (
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
from mem0_core.errors import AccessError, InputError, NotFoundError, ScopeError
from mem0_core.flow import Flow, do
from mem0_core.language.messages import check_metadata, parse_messages

if TYPE_CHECKING:
    from mem0_core.recall.answer import Answer
    from mem0_core.recall.context import ContextCandidates, PackedContext
    from mem0_core.recall.explain import SearchDiagnosis
    from mem0_core.recall.search import Search, SearchRequest

T = TypeVar("T")

Places: TypeAlias = tuple[Sequence[str] | None, bool, str | None, str | None]
"""The arguments spaces, own, agent_id and run_id of a call."""

_REASON = "space deleted"


@dataclass(frozen=True, slots=True)
class _Home:
    """A place that a principal reads: their own memories, or those of one space.

    Attributes:
        space: name of the space; None for the principal's own memories.
        ids: ids of the memories.
    """

    space: str | None
    ids: ScopeIds

    @property
    def scope(self) -> Scope:
        return Scope(*self.ids)


class SpacesApi(AddApi, SearchApi, UpdateApi, AdminApi):
    """Flows of `Principal`. The first argument of each is the principal's user id."""

    # --- spaces and members ------------------------------------------------------------------------------------------

    def _principal_spaces_flow(self, user_id: str) -> Flow[list[SpaceDict]]:
        return [_space_dict(one) for one in (yield from do(self._store.spaces.memberships, user_id))]

    def _principal_create_space_flow(self, user_id: str, space: str, requires_approval: bool) -> Flow[SpaceDict]:
        name = check_space_name(space)
        check_flag(requires_approval, "requires_approval")
        create = self._store.spaces.create
        if not (yield from do(create, name, user_id, requires_approval=requires_approval, at=utc_now())):
            raise InputError(f"a space {name!r} exists already; choose another name")
        return SpaceDict(space=name, role=SpaceRole.OWNER.value, requires_approval=requires_approval)

    def _principal_delete_space_flow(self, user_id: str, space: str) -> Flow[ErasureReceipt]:
        from mem0_core.admin.erase import erase_subject

        yield from self._membership(user_id, space, SpaceRole.OWNER)
        ports = yield from self._ports()
        yield from do(self._clear_temporary_files)
        files, folder = (yield from do(self._data_files)), self.config.folder
        return (yield from erase_subject(ports, space_scope(space), reason=_REASON, folder=folder, files=files))

    def _principal_set_approval_flow(self, user_id: str, space: str, requires_approval: bool) -> Flow[None]:
        check_flag(requires_approval, "requires_approval")
        yield from do(self._store.spaces.set_approval, check_space_name(space), requires_approval, by=user_id)

    def _principal_members_flow(self, user_id: str, space: str) -> Flow[list[MemberDict]]:
        yield from self._membership(user_id, space, SpaceRole.READER)
        members = yield from do(self._store.spaces.members, space)
        return [MemberDict(user_id=one.user_id, role=one.role.value, since=one.since) for one in members]

    def _principal_set_member_flow(self, user_id: str, space: str, member: str, role: str) -> Flow[None]:
        name, whom, chosen = check_space_name(space), check_member(member), parse_role(role)
        if not (yield from do(self._store.spaces.set_member, name, whom, chosen, by=user_id, at=utc_now())):
            raise _needs_owner(name)

    def _principal_remove_member_flow(self, user_id: str, space: str, member: str) -> Flow[None]:
        name, whom = check_space_name(space), check_member(member)
        if not (yield from do(self._store.spaces.remove_member, name, whom, by=user_id)):
            raise _needs_owner(name)

    # --- writing -----------------------------------------------------------------------------------------------------

    def _principal_add_flow(
        self,
        user_id: str,
        messages: Messages,
        *,
        space: str | None,
        agent_id: str | None,
        run_id: str | None,
        metadata: Mapping[str, Any] | None,
        infer: bool,
        timestamp: int | float | str | datetime | None,
        background: bool,
        trust: TrustClass | None,
    ) -> Flow[SpaceAddResult]:
        if space is None:
            ids: ScopeIds = (user_id, agent_id, run_id)
            return (yield from self._add_to(ids, messages, (None, trust), metadata, infer, timestamp, background))
        if agent_id is not None or run_id is not None:
            raise ScopeError("memories of a space have no agent_id and no run_id; leave them out, or leave out space")
        membership = yield from self._membership(user_id, space, SpaceRole.WRITER)
        ids = (space_scope(space, user_id).user_id, None, None)
        named = _name_author(messages, user_id)
        if not _waits(membership) and membership.role is not SpaceRole.OWNER:
            yield from self._refuse_other_authors(user_id, space, named)
        if _waits(membership):
            return (yield from self._propose_add(user_id, space, ids, named, metadata, infer, timestamp, trust))
        origin = member_source(user_id), trust
        return (yield from self._add_to(ids, named, origin, metadata, infer, timestamp, background))

    def _refuse_other_authors(self, user_id: str, space: str, messages: Messages) -> Flow[None]:
        """Refuse messages in the name of another member: an owner may add them, or approve them.

        Raises:
            AccessError: there is such a message.
        """
        names = {message.name for message in parse_messages(messages).messages if message.name} - {user_id}
        members = {one.user_id for one in (yield from do(self._store.spaces.members, space))} if names else set()
        if others := sorted(names & members):
            raise AccessError(f"{user_id!r} may not add messages of {others[0]!r}; an owner of the space may")

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
        result = yield from self._add_flow(
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
        user_id: str,
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
        check_sizes(self._limits, parsed.messages)
        allowed, refused = filter_messages(self._policy, parsed.messages, scope)
        self._rates.record_add(scope)
        result = SpaceAddResult(
            results=[],
            relations={"added_entities": [], "deleted_entities": []},
            skipped=[*parsed.skipped, *refused],
            usage={"llm_calls": 0, "input_tokens": 0, "output_tokens": 0, "seconds": 0.0},
        )
        if allowed:
            arguments = {
                "messages": [_message_input(message) for message in allowed],
                "metadata": dict(check_metadata(metadata, "the add") or {}),
                "infer": infer,
                "timestamp": resolve_timestamp(timestamp, allowed),
                "trust": trust,
            }
            result["pending_write"] = yield from self._propose(user_id, space, "add", arguments)
        return result

    def _propose(self, user_id: str, space: str, kind: WriteKind, arguments: dict[str, Any]) -> Flow[str]:
        write = PendingWrite(new_id(), space, user_id, kind, arguments, utc_now())
        yield from do(self._store.spaces.propose, write)
        return write.id

    def _principal_update_flow(
        self, user_id: str, memory_id: str, data: str, metadata: Mapping[str, Any] | None
    ) -> Flow[dict[str, Any]]:
        home, membership = yield from self._locate(user_id, memory_id, SpaceRole.WRITER)
        if home.space is None or not _waits(membership):
            return (yield from self._update_flow(memory_id, data, metadata, ids=home.ids))
        item = yield from do(self._store.get, memory_id)
        if item is None:
            raise NotFoundError(memory_id)
        if not isinstance(data, str) or not data.strip():
            raise InputError(f"data must be a non-empty text, not {data!r}; pass the new text of the memory")
        text = data if self._policy is None else apply_policy(self._policy, data, item.scope)
        if text is None:
            raise InputError("the policy refuses the text of the update")
        arguments = {
            "memory_id": memory_id,
            "data": text,
            "previous": item.text,
            "metadata": dict(check_metadata(metadata, "the update") or {}),
        }
        return _pending_status((yield from self._propose(user_id, home.space, "update", arguments)))

    def _principal_delete_flow(self, user_id: str, memory_id: str, purge: bool) -> Flow[dict[str, Any]]:
        home, membership = yield from self._locate(user_id, memory_id, SpaceRole.WRITER)
        if home.space is None or not _waits(membership):
            return (yield from self._delete_flow(memory_id, ids=home.ids, purge=purge))
        item = yield from do(self._store.get, memory_id)
        if item is None:
            raise NotFoundError(memory_id)
        arguments = {"memory_id": memory_id, "previous": item.text, "purge": bool(purge)}
        return _pending_status((yield from self._propose(user_id, home.space, "delete", arguments)))

    def _principal_pin_flow(self, user_id: str, memory_id: str, pinned: bool) -> Flow[None]:
        home, membership = yield from self._locate(user_id, memory_id, SpaceRole.WRITER)
        if home.space is not None and _waits(membership):
            raise refuse_access(home.space, user_id, SpaceRole.OWNER)
        yield from self._pin_flow(memory_id, pinned, ids=home.ids)

    def _principal_feedback_flow(self, user_id: str, memory_id: str, useful: bool | None) -> Flow[FeedbackDict]:
        home, _ = yield from self._locate(user_id, memory_id, SpaceRole.WRITER)
        return (yield from self._feedback_flow(memory_id, useful, ids=home.ids))

    # --- approval ----------------------------------------------------------------------------------------------------

    def _principal_pending_writes_flow(self, user_id: str, space: str) -> Flow[list[PendingWriteDict]]:
        membership = yield from self._membership(user_id, space, SpaceRole.READER)
        author = None if membership.role is SpaceRole.OWNER else user_id
        writes = yield from do(self._store.spaces.pending_writes, space, author=author)
        return [_write_dict(write) for write in writes]

    def _principal_approve_flow(self, user_id: str, write_id: str) -> Flow[dict[str, Any]]:
        write = yield from self._find_write(user_id, write_id, SpaceRole.OWNER)
        result = yield from self._apply_write(write, space_scope(write.space, user_id).user_id)
        # Only now: after a crash before this line the write still waits, and a second approval changes nothing twice.
        yield from do(self._store.spaces.settle, write, "APPROVE", by=user_id)
        return result

    def _apply_write(self, write: PendingWrite, owner: str | None) -> Flow[dict[str, Any]]:
        given = write.arguments
        if write.kind == "update":
            yield from self._check_previous(write)
            ids: ScopeIds = (owner, None, None)
            return (yield from self._update_flow(given["memory_id"], given["data"], given["metadata"], ids=ids))
        if write.kind == "delete":
            yield from self._check_previous(write)
            return (yield from self._delete_flow(given["memory_id"], ids=(owner, None, None), purge=given["purge"]))
        messages = [{**one, "id": f"{write.id}:{index}"} for index, one in enumerate(given["messages"])]
        result = yield from self._add_to(
            (owner, None, None),
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
        item = yield from do(self._store.get, memory_id)
        if item is None or find_space_name(item.scope) != write.space:
            raise NotFoundError(memory_id)
        if item.text != write.arguments["previous"]:
            raise InputError(f"the memory {memory_id!r} has changed since the write was proposed; reject the write")

    def _principal_reject_flow(self, user_id: str, write_id: str) -> Flow[None]:
        write = yield from self._find_write(user_id, write_id, None)
        if not (yield from do(self._store.spaces.settle, write, "REJECT", by=user_id)):
            raise _unknown_write(write_id)

    def _find_write(self, user_id: str, write_id: str, needed: SpaceRole | None) -> Flow[PendingWrite]:
        """Return a pending write that the principal may see: an owner all of a space, an author their own."""
        write = yield from do(self._store.spaces.pending_write, validate_id(write_id))
        if write is None:
            raise _unknown_write(write_id)
        membership = yield from do(self._store.spaces.membership, write.space, user_id)
        if membership is None or (membership.role is not SpaceRole.OWNER and write.author != user_id):
            raise _unknown_write(write_id)
        if needed is not None and not membership.role.covers(needed):
            raise refuse_access(write.space, user_id, needed)
        return write

    # --- reading -----------------------------------------------------------------------------------------------------

    def _principal_search_flow(
        self,
        user_id: str,
        query: str,
        *,
        places: Places,
        limit: int,
        explain: bool,
        filters: Mapping[str, Any] | None,
        **options: Any,
    ) -> Flow[SearchResult]:
        from mem0_core.recall.search import recall
        from mem0_core.recall.several import merge_hits, merge_relations, search_each, share_queries

        _check_filters(filters)
        homes = yield from self._homes(user_id, *places)
        ports = share_queries((yield from self._ports()))
        ids: ScopeIds = (user_id, None, None)  # all places share one request, and so what is parsed of the query
        request = self._parse_search(query, ids=ids, limit=limit, top_k=None, filters=filters, **options)

        def search(home: _Home) -> Flow[Search]:
            return recall(ports, dataclasses.replace(request, scope=home.scope))

        searches = yield from search_each(homes, search)
        hits = merge_hits([(home, search.hits) for home, search in searches])[: request.limit]
        relations = merge_relations([(home, search.relations) for home, search in searches])
        result = SearchResult(
            results=[_label(hit_dict(hit, explain), home) for home, hit in hits],
            relations=[_label(relation_dict(*pair), home) for home, pair in relations],
        )
        notes = dict.fromkeys(search.note for _, search in searches if search.note is not None)
        if notes and not hits:
            result["note"] = "; ".join(notes)
        return result

    def _principal_explain_missing_flow(
        self, user_id: str, query: str, memory_id: str, *, limit: int, filters: Mapping[str, Any] | None, **options: Any
    ) -> Flow[MissingDict]:
        from mem0_core.recall.explain import explain_missing

        _check_filters(filters)
        own = _Home(None, (user_id, None, None))
        try:
            home, _ = yield from self._locate(user_id, memory_id, SpaceRole.READER)
        except NotFoundError:
            home = own
        request = self._parse_search(query, ids=own.ids, limit=limit, top_k=None, filters=filters, **options)
        placed = dataclasses.replace(request, scope=home.scope)
        missing = yield from explain_missing((yield from self._ports()), placed, memory_id)
        if missing.reason == "found":
            found = yield from self._principal_search_flow(
                user_id,
                query,
                places=(None, True, None, None),
                limit=limit,
                explain=False,
                filters=filters,
                **options,
            )
            missing = _compare_places(missing, [one["id"] for one in found["results"]], memory_id)
        return missing_dict(memory_id, missing)

    def _principal_answer_flow(
        self,
        user_id: str,
        question: str,
        *,
        places: Places,
        filters: Mapping[str, Any] | None,
        **options: Any,
    ) -> Flow[AnswerDict]:
        from mem0_core.recall.answer import answer
        from mem0_core.recall.several import search_each, share_queries

        _check_filters(filters)
        homes = yield from self._homes(user_id, *places)
        ports = share_queries((yield from self._ports()))
        ids: ScopeIds = (user_id, None, None)
        request = self._parse_search(question, ids=ids, limit=10, top_k=None, filters=filters, **options)

        def search(home: _Home) -> Flow[Answer]:
            return answer(ports, dataclasses.replace(request, scope=home.scope))

        answers = yield from search_each(homes, search)
        if not answers:
            return AnswerDict(answer=None, values=[], confidence=0.0, memories=[], note="no memories are searched")
        home, best = max(answers, key=lambda one: (one[1].is_known, one[1].confidence, _nearest_score(one[1].nearest)))
        result = answer_dict(best)
        result["memories"] = [_label(memory, home) for memory in result["memories"]]
        if "nearest" in result:
            result["nearest"] = _label(result["nearest"], home)
        if "path" in result:
            for step in result["path"]["steps"]:
                _label(step, home)
        result["space"] = home.space
        return result

    def _principal_context_flow(
        self,
        user_id: str,
        query: Messages | None,
        *,
        places: Places,
        max_tokens: int,
        limit: int,
        recent: int | None,
        filters: Mapping[str, Any] | None,
        exclude: Sequence[str],
        introduction: str,
        citations: bool,
        threshold: float | None,
        as_of: int | float | str | datetime | None,
        reference_date: int | float | str | date | None,
    ) -> Flow[ContextDict]:
        from mem0_core.recall.context import pack_context

        _check_filters(filters)
        validate_count(max_tokens, "max_tokens", example=2000)
        homes = yield from self._homes(user_id, *places)
        time = None if as_of is None else parse_timestamp(as_of, "as_of")
        text, request = extract_query_text(query), None
        if text is not None:
            request = self._build_request(
                text,
                *parse_scope_and_filter(filters, (user_id, None, None)),
                min_trust=None,
                limit=validate_limit(limit, None, default=20),
                threshold=threshold,
                as_of=time,
                reference_date=reference_date,
            )
        shown = [*exclude, *extract_message_texts(query)]
        window = self.config.window if recent is None else validate_count(recent, "recent", minimum=0)
        gathered = yield from self._gather(homes, request, time, window, shown)
        form = prompt_format(max_tokens, (yield from self._token_counter()), introduction, citations)
        packed = pack_context(_merge_candidates(gathered), dataclasses.replace(form, line=_context_line))
        return _context_dict(packed, citations)

    def _gather(
        self,
        homes: Sequence[_Home],
        request: SearchRequest | None,
        as_of: str | None,
        recent: int,
        shown: Sequence[str],
    ) -> Flow[list[tuple[_Home, ContextCandidates]]]:
        """Return the candidates of a context from each place; recent messages are the principal's own."""
        from mem0_core.ingest.conversation import gather_context
        from mem0_core.recall.several import search_each, share_queries

        ports = share_queries((yield from self._ports()))

        def gather(home: _Home) -> Flow[ContextCandidates]:
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

    def _principal_get_flow(self, user_id: str, memory_id: str) -> Flow[MemoryDict | None]:
        try:
            home, _ = yield from self._locate(user_id, memory_id, SpaceRole.READER)
        except NotFoundError:
            return None
        memory = yield from self._get_flow(memory_id, ids=home.ids)
        return None if memory is None else _label(memory, home)

    def _principal_history_flow(self, user_id: str, memory_id: str) -> Flow[list[HistoryDict]]:
        try:
            home, _ = yield from self._locate(user_id, memory_id, SpaceRole.READER)
        except NotFoundError:
            return []
        return (yield from self._history_flow(memory_id, ids=home.ids))

    def _principal_get_all_flow(
        self,
        user_id: str,
        *,
        places: Places,
        filters: Mapping[str, Any] | None,
        limit: int | None,
        show_expired: bool,
    ) -> Flow[SearchResult]:
        _check_filters(filters)
        homes = yield from self._homes(user_id, *places)
        result = SearchResult(results=[], relations=[])
        for home in homes:
            found = yield from self._get_all_flow(
                ids=home.ids, filters=filters, limit=limit, top_k=None, min_trust=None, show_expired=show_expired
            )
            result["results"] += [_label(memory, home) for memory in found["results"]]
            result["relations"] += [_label(relation, home) for relation in found["relations"]]
        result["results"].sort(key=lambda memory: memory["created_at"])
        if limit is not None:
            result["results"], result["relations"] = result["results"][:limit], result["relations"][:limit]
        return result

    def _principal_changes_flow(
        self, user_id: str, *, after: int, limit: int, spaces: Sequence[str] | None, own: bool
    ) -> Flow[ChangesDict]:
        after, limit = validate_count(after, "after", minimum=0, maximum=2**63 - 1), validate_count(limit, "limit")
        homes = yield from self._homes(user_id, spaces, own, None, None)
        scopes = [home.scope for home in homes]
        events = yield from do(self._store.feed.changes_of, scopes, after=after, limit=limit)
        results = []
        for event in events:
            change = ChangeDict(**dataclasses.asdict(event))  # type: ignore[typeddict-item]
            change["space"] = find_space_name(Scope.from_stored(event.user_id)) if event.user_id else None
            if change["space"] is not None:
                change["user_id"] = None
            change["source"] = _public_source(event.source)
            results.append(change)
        return ChangesDict(results=results, cursor=events[-1].seq if events else after)

    def _principal_export_flow(
        self, user_id: str, path: str | Path, *, space: str | None, format: Literal["jsonl", "csv"], overwrite: bool
    ) -> Flow[dict[str, Any]]:
        ids: ScopeIds = (user_id, None, None)
        if space is not None:
            yield from self._membership(user_id, space, SpaceRole.READER)
            ids = (space_scope(space, user_id).user_id, None, None)
        return (yield from self._export_flow(path, ids=ids, format=format, overwrite=overwrite, on_progress=None))

    # --- access ------------------------------------------------------------------------------------------------------

    def _membership(self, user_id: str, space: str, needed: SpaceRole) -> Flow[Membership]:
        """Return the membership of a principal in a space.

        Raises:
            AccessError: there is none, or its role does not cover the role that is needed.
        """
        membership: Membership | None = yield from do(self._store.spaces.membership, check_space_name(space), user_id)
        if membership is None:
            raise refuse_access(space, user_id)
        if not membership.role.covers(needed):
            raise refuse_access(space, user_id, needed)
        return membership

    def _homes(
        self, user_id: str, spaces: Sequence[str] | None, own: bool, agent_id: str | None, run_id: str | None
    ) -> Flow[list[_Home]]:
        """Return the places that a call of a principal reads: their own memories, then their spaces.

        Raises:
            AccessError: `spaces` names one that the principal is no member of.
        """
        check_flag(own, "own")
        if isinstance(spaces, str):
            raise InputError(f"spaces must be a list of names, not {spaces!r}; pass, for example, [{spaces!r}]")
        if spaces is None or spaces:
            known = [one.space for one in (yield from do(self._store.spaces.memberships, user_id))]
        else:
            known = []
        chosen = known if spaces is None else list(dict.fromkeys(map(check_space_name, spaces)))
        if refused := next((name for name in chosen if name not in known), None):
            raise refuse_access(refused, user_id)
        homes = [_Home(None, (user_id, agent_id, run_id))] if own else []
        return homes + [_Home(name, (space_scope(name, user_id).user_id, None, None)) for name in chosen]

    def _locate(self, user_id: str, memory_id: str, needed: SpaceRole) -> Flow[tuple[_Home, Membership | None]]:
        """Return the place of a memory, which may be deleted, and the principal's membership there.

        Raises:
            NotFoundError: there is no such memory, or the principal may not see it.
            AccessError: the principal may see it, and their role does not cover the role that is needed.
        """
        owner = yield from do(self._store.owner, validate_id(memory_id))
        if owner is None:
            raise NotFoundError(memory_id)
        space = find_space_name(owner)
        if space is None:
            if owner.user_id != user_id:
                raise NotFoundError(memory_id)
            return _Home(None, (user_id, None, None)), None
        try:
            membership = yield from self._membership(user_id, space, needed)
        except AccessError:
            if (yield from do(self._store.spaces.membership, space, user_id)) is None:
                raise NotFoundError(memory_id) from None
            raise
        return _Home(space, (space_scope(space, user_id).user_id, None, None)), membership


# --- arguments and results ---------------------------------------------------------------------------------------


def _check_filters(filters: Mapping[str, Any] | None) -> None:
    """Refuse a filter on the owner of memories, which is the principal."""
    ids, _ = parse_filters(filters)
    if ids:
        names = ", ".join(sorted(ids))
        raise ScopeError(f"filters name {names}; pass agent_id and run_id as arguments, without user_id")


def _waits(membership: Membership | None) -> bool:
    """Return True if the writes of a member wait for approval."""
    return membership is not None and membership.requires_approval and membership.role is not SpaceRole.OWNER


def _name_author(messages: Messages, author: str) -> Messages:
    """Return messages with the author as the speaker of those of a user without a name."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if isinstance(messages, Mapping):
        messages = [messages]
    if not isinstance(cast(object, messages), Sequence):
        return messages  # refused by `parse_messages`
    return [_name_speaker(one, author) for one in messages]


def _name_speaker(message: Mapping[str, Any], author: str) -> Mapping[str, Any]:
    is_theirs = isinstance(cast(object, message), Mapping) and message.get("role") == "user" and not message.get("name")
    return {**message, "name": author} if is_theirs else message


def _message_input(message: Message) -> dict[str, Any]:
    """Return a message as `add` accepts it."""
    content: Any = message.content
    if message.images:
        text = [{"type": "text", "text": content}] if content else []
        content = text + [{"type": "image_url", "image_url": {"url": url}} for url in message.images]
    given: dict[str, Any] = {"role": message.role, "content": content}
    if message.name is not None:
        given["name"] = message.name
    if message.timestamp is not None:
        given["timestamp"] = message.timestamp
    if message.metadata:
        given["metadata"] = dict(message.metadata)
    return given


def _compare_places(missing: SearchDiagnosis, found: list[str], memory_id: str) -> SearchDiagnosis:
    """Return the diagnosis of a memory that its own place returns, for a search of all places."""
    if memory_id in found:
        rank = found.index(memory_id) + 1
        return dataclasses.replace(missing, rank=rank, detail=f"it is result {rank} of {len(found)}")
    detail = f"better memories of other places take all {len(found)} results"
    return dataclasses.replace(missing, reason="below_limit", detail=detail)


def _label(shaped: T, home: _Home) -> T:
    """Name the space of a memory or relation; the id under which the store keeps it is no part of the result."""
    fields = cast("dict[str, Any]", shaped)
    fields["space"] = home.space
    if home.space is not None:
        fields.pop(Axis.USER.value, None)
    return shaped


def _label_by_scope(shaped: T, scope: Scope) -> T:
    return _label(shaped, _Home(find_space_name(scope), (None, None, None)))


def _context_line(hit: Hit, number: int | None) -> str:
    from mem0_core.llm.prompts import memory_line

    return memory_line(_label_by_scope(hit_dict(hit, False), hit.item.scope), number)


def _context_dict(packed: PackedContext, citations: bool) -> ContextDict:
    result = context_dict(packed, citations)
    for memory, hit in zip(result["memories"], packed.hits, strict=True):
        _label_by_scope(memory, hit.item.scope)
    for shaped, (relation, _) in zip(result["relations"], packed.relations, strict=True):
        _label_by_scope(shaped, relation.scope)
    return result


def _merge_candidates(gathered: Sequence[tuple[_Home, ContextCandidates]]) -> ContextCandidates:
    """Return the candidates of all places as those of one; summary and messages are the principal's own."""
    from mem0_core.recall.context import ContextCandidates
    from mem0_core.recall.several import merge_hits, merge_relations

    own = next((one for home, one in gathered if home.space is None), ContextCandidates())
    every = [one for _, one in gathered]
    return ContextCandidates(
        summary=own.summary,
        pinned=[hit for one in every for hit in one.pinned],
        hits=[hit for _, hit in merge_hits([(None, one.hits) for one in every])],
        limit=max((one.limit for one in every), default=0),
        newer={memory: newer for one in every for memory, newer in one.newer.items()},
        relations=[pair for _, pair in merge_relations([(None, one.relations) for one in every])],
        known_ids=frozenset(memory for one in every for memory in one.known_ids),
        messages=own.messages,
    )


def _nearest_score(nearest: Hit | None) -> float:
    return 0.0 if nearest is None else nearest.score


def _public_source(source: str | None) -> str | None:
    """Return a source that a caller named; the library's own name members."""
    return None if source is None or source.startswith(member_source("")) else source


def _space_dict(membership: Membership) -> SpaceDict:
    return SpaceDict(space=membership.space, role=membership.role.value, requires_approval=membership.requires_approval)


def _write_dict(write: PendingWrite) -> PendingWriteDict:
    return PendingWriteDict(
        id=write.id,
        space=write.space,
        author=write.author,
        kind=write.kind,
        arguments=write.arguments,
        created_at=write.at,
    )


def _pending_status(write_id: str) -> dict[str, Any]:
    return {"message": "The write waits for approval", "pending_write": write_id}


def _unknown_write(write_id: str) -> AccessError:
    return AccessError(f"no pending write {write_id!r} is yours to decide; pending_writes lists those of a space")


def _needs_owner(space: str) -> InputError:
    return InputError(f"the space {space!r} would have no owner; make another member owner first, or delete the space")
