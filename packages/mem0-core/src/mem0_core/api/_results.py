"""The dicts that `Memory` returns, mem0's shapes, made from records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

from mem0_core.domain.records import (
    AddedMemory,
    AnswerDict,
    ByQueryResult,
    DistinctNamesDict,
    Entity,
    Event,
    Hit,
    JobDict,
    LaggingProjection,
    MatchedMemory,
    MemoryChange,
    MemoryDict,
    MemoryItem,
    Merge,
    MergeDict,
    MergeResult,
    Message,
    MissingDict,
    PathDict,
    QueryResult,
    Relation,
    RelationChange,
    RelationChangesDict,
    RelationDict,
    SameAsDict,
    SignalDict,
    StepDict,
    Trust,
    UsageDict,
    Validity,
)
from mem0_core.domain.trust import trust_name
from mem0_core.flow import StepRecord
from mem0_core.interfaces import Job, Reply

if TYPE_CHECKING:
    from mem0_core.graph.traversal import Path
    from mem0_core.ingest.by_query import BulkChangeResult, Match
    from mem0_core.ingest.entity_resolution import MergeReport, SameAs
    from mem0_core.recall.answer import Answer
    from mem0_core.recall.explain import SearchDiagnosis
    from mem0_core.recall.exploration import GraphQueryAnswer


class UsageCounter:
    """Counts the model calls of one add as they pass; two branches may count at once."""

    def __init__(self) -> None:
        self._replies: list[Reply] = []  # list.append is atomic

    def count(self, step: StepRecord) -> None:
        if isinstance(step.result, Reply):
            self._replies.append(step.result)

    def total(self, seconds: float) -> UsageDict:
        counted = [reply.usage for reply in self._replies if reply.usage is not None]
        return UsageDict(
            llm_calls=len(self._replies),
            input_tokens=sum(usage.input_tokens for usage in counted),
            output_tokens=sum(usage.output_tokens for usage in counted),
            seconds=seconds,
        )


def added_dict(change: MemoryChange) -> AddedMemory:
    text = change.before if change.event is Event.DELETE and change.before is not None else change.after.text
    result = AddedMemory(id=change.after.id, memory=text, event=change.event.value)
    if change.event is Event.UPDATE and change.before is not None:
        result["previous_memory"] = change.before
    if change.after.actor_id is not None:
        result["actor_id"] = change.after.actor_id
    if change.after.role is not None:
        result["role"] = change.after.role
    return result


def message_dict(message: Message) -> dict[str, Any]:
    shaped: dict[str, Any] = {"role": message.role, "content": message.content}
    return {**shaped, "name": message.name} if message.name else shaped


def job_dict(job: Job) -> JobDict:
    shaped = JobDict(
        id=str(job.row),
        kind=job.kind,
        state=job.state,
        attempts=job.attempts,
        error=job.error,
        messages=[{"role": message.role, "content": message.content} for message in job.messages],
        created_at=job.timestamp,
    )
    for axis, value in job.scope.ids.items():
        shaped[axis.value] = value
    return shaped


def relation_changes_dict(changes: Sequence[RelationChange]) -> RelationChangesDict:
    """Return relations that began and relations that ended; a repeated relation is neither."""
    return RelationChangesDict(
        added_entities=[str(change.triplet) for change in changes if change.event is Event.ADD],
        deleted_entities=[str(change.triplet) for change in changes if change.event is Event.DELETE],
    )


def relation_dict(relation: Relation, score: float | None = None) -> RelationDict:
    shaped = RelationDict(
        source=relation.triplet.source,
        relationship=relation.triplet.relationship,
        destination=relation.triplet.destination,
        weight=relation.weight,
        valid_from=relation.valid_from,
        valid_to=relation.valid_to,
        invalidated_at=relation.invalidated_at,
        memories=list(relation.memories),
    )
    if relation.event_dates is not None:
        shaped["time_window"] = relation.event_dates.iso_interval
        if relation.event_dates.first is not None:
            shaped["date"] = relation.event_dates.first
    if score is not None:
        shaped["score"] = score
    for axis, value in relation.scope.ids.items():
        shaped[axis.value] = value
    return shaped


def answer_dict(answer: Answer) -> AnswerDict:
    shaped = AnswerDict(
        answer=_answer_text(answer),
        values=list(answer.values),
        confidence=answer.confidence,
        memories=[hit_dict(hit, False) for hit in answer.hits],
    )
    if answer.since is not None:
        shaped["since"] = answer.since
    if answer.until is not None:
        shaped["until"] = answer.until
    if answer.path is not None:
        shaped["path"] = path_dict(answer.path)
    if answer.nearest is not None:
        shaped["nearest"] = hit_dict(answer.nearest, False)
    if answer.note:
        shaped["note"] = answer.note
    return shaped


def _answer_text(answer: Answer) -> str | None:
    """Return the values in one text, else the best memory; None if the answer is unknown."""
    if answer.values:
        return ", ".join(answer.values)
    return answer.hits[0].item.text if answer.is_known and answer.hits else None


def path_dict(path: Path) -> PathDict:
    steps = [StepDict(**relation_dict(step.relation), forward=step.forward) for step in path.steps]
    return PathDict(start=path.start, end=path.end, score=path.score, steps=steps)


def query_dict(answer: GraphQueryAnswer) -> QueryResult:
    rows = [dict(zip(answer.columns, map(_value_dict, row), strict=True)) for row in answer.rows]
    shaped = QueryResult(columns=answer.columns, rows=rows)
    if answer.notes:
        shaped["note"] = "; ".join(answer.notes)
    if answer.plan:
        shaped["plan"] = list(answer.plan)
    return shaped


def _value_dict(value: Any) -> Any:
    match value:
        case Entity(name, type):
            return {"name": name, "type": type}
        case Relation():
            return relation_dict(value)
        case list():
            return [_value_dict(one) for one in value]
        case dict():
            return {name: _value_dict(one) for name, one in value.items()}
        case _:
            return value


def by_query_dict(done: BulkChangeResult, dry_run: bool) -> ByQueryResult:
    shaped = ByQueryResult(
        results=[_matched_dict(*result) for result in done.results],
        relations=relation_changes_dict(done.relations),
        skipped=list(done.skipped),
        dry_run=dry_run,
    )
    if done.pending:
        shaped["pending"] = list(done.pending)
    return shaped


def _matched_dict(match: Match, event: Event, text: str) -> MatchedMemory:
    shaped = MatchedMemory(id=match.item.id, memory=text, event=event.value)
    if event is Event.UPDATE:
        shaped["previous_memory"] = match.item.text
    if match.score is not None:
        shaped["score"] = match.score
    return shaped


def merge_dict(merge: Merge) -> MergeDict:
    shaped = MergeDict(
        id=merge.id,
        kind=merge.kind,
        name=merge.name,
        merged=list(merge.merged_names),
        score=merge.score,
        reasons=list(merge.reasons),
        relations=merge.relations,
        at=merge.merged_at,
        undone=merge.undone_at,
    )
    for axis, value in merge.scope.ids.items():
        shaped[axis.value] = value
    return shaped


def same_as_dict(pair: SameAs) -> SameAsDict:
    shaped = SameAsDict(kind=pair.kind, names=list(pair.names), score=pair.score, reason=pair.reason)
    for axis, value in pair.scope.ids.items():
        shaped[axis.value] = value
    return shaped


def merge_result(unified: MergeReport, dry_run: bool) -> MergeResult:
    shaped = MergeResult(
        merges=[merge_dict(merge) for merge in unified.merges],
        same_as=[same_as_dict(pair) for pair in unified.same_as],
        apart=[DistinctNamesDict(names=list(names), reason=reason) for names, reason in unified.apart],
        dry_run=dry_run,
    )
    if unified.pending:
        shaped["pending"] = list(unified.pending)
    return shaped


def status_dict(message: str, pending: Sequence[LaggingProjection]) -> dict[str, Any]:
    return {"message": message, "pending": list(pending)} if pending else {"message": message}


def hit_dict(hit: Hit, explain: bool) -> MemoryDict:
    shaped = memory_dict(hit.item)
    shaped["score"] = hit.score
    if hit.is_unprocessed:
        shaped["pending"] = True
    if hit.validity is not None:
        shaped.update(_validity_fields(hit.validity))
    if explain:
        shaped["explanation"] = _explanation(hit)
    return shaped


def _validity_fields(validity: Validity) -> MemoryDict:
    """Return the known ones of `valid_from`, `valid_to` and `superseded_by`."""
    found = {name: getattr(validity, name) for name in ("valid_from", "valid_to", "superseded_by")}
    return cast("MemoryDict", {name: value for name, value in found.items() if value is not None})


def _explanation(hit: Hit) -> dict[str, Any]:
    """Return the parts of a score: each signal, its weight, and its contribution to the sum."""
    explained: dict[str, Any] = {"score": hit.score, "signals": _signals(hit.signals, hit.weights)}
    return explained if hit.before_rerank is None else {**explained, "before_rerank": hit.before_rerank}


def missing_dict(memory_id: str, missing: SearchDiagnosis) -> MissingDict:
    return MissingDict(
        id=memory_id,
        reason=missing.reason,
        detail=missing.detail,
        rank=missing.rank,
        ranks=dict(missing.ranks),
        score=missing.score,
        signals=_signals(missing.signals, missing.weights),
    )


def _signals(values: Mapping[str, float], weights: Mapping[str, float]) -> dict[str, SignalDict]:
    return {
        name: SignalDict(value=value, weight=weights[name], contribution=weights[name] * value)
        for name, value in values.items()
    }


def _copy_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata that a caller may change: searches keep the memories that they read."""
    return {key: deepcopy(value) if isinstance(value, list | dict) else value for key, value in metadata.items()}


def memory_dict(item: MemoryItem) -> MemoryDict:
    shaped: MemoryDict = {
        "id": item.id,
        "memory": item.text,
        "hash": item.hash,
        "metadata": _copy_metadata(item.metadata),
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }
    # Written out, not looped over: a search shapes every hit, and this is a fifth of its time otherwise.
    scope = item.scope
    if scope.user_id is not None:
        shaped["user_id"] = scope.user_id
    if scope.agent_id is not None:
        shaped["agent_id"] = scope.agent_id
    if scope.run_id is not None:
        shaped["run_id"] = scope.run_id
    if item.actor_id is not None:
        shaped["actor_id"] = item.actor_id
    if item.role is not None:
        shaped["role"] = item.role
    if item.memory_type is not None:
        shaped["memory_type"] = item.memory_type
    if item.expiration_date is not None:
        shaped["expiration_date"] = item.expiration_date
    if item.trust is not Trust.USER:
        shaped["trust"] = trust_name(item.trust)
    if item.pinned:
        shaped["pinned"] = True
    if item.useful or item.useless:
        shaped["useful"], shaped["useless"] = item.useful, item.useless
    return shaped
