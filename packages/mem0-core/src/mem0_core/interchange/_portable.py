"""Memories in the open forms of other projects: PAM 1.0 and MIF 2.0, read and written, and the facts of Zep, read.

PAM is Portable AI Memory (https://portable-ai-memory.org/spec/v1.0), MIF the Memory Interchange Format
(https://github.com/varun29ankuS/mif-spec). Both leave room for a system's own fields. Fields of this package travel
there, and fields of others are kept in the metadata of a memory, so that a round trip loses neither.
docs/how-to/switch.md lists what each form cannot hold.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any, Literal
from uuid import uuid4

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Axis
from mem0_core.domain.timestamps import parse_timestamp, utc_now
from mem0_core.errors import InputError

PortableFormat = Literal["pam", "mif"]
PORTABLE_FORMATS = ("pam", "mif", "zep")
"""Names of the forms that hold memories instead of messages; `PortableFormat` are those that can be written."""

_SYSTEM = "mem0-core"  # our name in `platform`, `generator` and `vendor_extensions`
_AXES = tuple(axis.value for axis in Axis)
_OWN_KEYS = (*_AXES, "actor_id", "role", "memory_type", "expiration_date", "pinned", "useful", "useless")
_PAM_SPEC = "https://portable-ai-memory.org/spec/v1.0"
_LEFT_OUT = {"superseded", "retracted", "archived"}  # states of a PAM memory that is no longer to be recalled


@dataclass(frozen=True, slots=True)
class PortableMemories:
    """Memories of a document, as `Memory.adopt` takes them, and the items that cannot be imported."""

    format: str
    memories: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)


def detect_portable(document: object) -> str | None:
    """Return the form of a parsed document; None if it is none of these."""
    if isinstance(document, list):
        return "zep" if document and _is_edge(document[0]) else None
    if not isinstance(document, Mapping):
        return None
    if document.get("schema") == "portable-ai-memory":
        return "pam"
    if "mif_version" in document:
        return "mif"
    edges = document.get("edges")
    return "zep" if isinstance(edges, list) and all(map(_is_edge, edges)) else None


def read_document(document: Any, format: str, ids: Mapping[str, str]) -> PortableMemories:
    """Return the memories of a parsed document.

    Args:
        ids: ids of their owner, which override those in the document.

    Raises:
        InputError: the document has another form or version, or does not match its checksum.
    """
    open_document = {"pam": _open_pam, "mif": _open_mif, "zep": _open_zep}[format]
    found = PortableMemories(format)
    try:
        items, convert = open_document(document)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"the document is not in the form {format!r}: {type(error).__name__}: {error}") from error
    for number, item in enumerate(items, 1):
        try:
            found.memories.append({**_check(convert(item)), **ids, "trust": "import"})
        except (InputError, AttributeError, KeyError, TypeError, ValueError) as error:
            name = item.get("id") or item.get("uuid") if isinstance(item, Mapping) else None
            reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
            found.skipped.append({"reason": reason, "item": name or number})
    return found


def build_document(records: Iterable[Mapping[str, Any]], format: PortableFormat, version: str) -> dict[str, Any]:
    """Return a document of exported records.

    Args:
        records: lines of `export_jsonl`.
        version: version of this package.

    Raises:
        InputError: the form has one owner, and the records have several.
    """
    every = list(records)
    memories = [one for one in every if one["kind"] == "memory"]
    if format == "mif":
        return _build_mif(memories, every, version)
    return _build_pam(memories, version)


_Item = Mapping[str, Any]
_Opened = tuple[Sequence[_Item], Callable[[_Item], dict[str, Any]]]
"""Items of a document, and the function that converts one of them."""


def _check(memory: dict[str, Any]) -> dict[str, Any]:
    """Return a memory that `Memory.adopt` takes, so that one faulty item does not fail the others."""
    for key, name in (("id", "id"), ("memory", "text")):
        if not isinstance(memory.get(key), str) or not memory[key].strip():
            raise InputError(f"has no {name}")
    parse_timestamp(memory["created_at"], "its time of creation")
    return memory


def _own_fields(memory: Mapping[str, Any]) -> dict[str, Any]:
    return {key: memory[key] for key in _OWN_KEYS if memory.get(key)}


def _keep(metadata: Mapping[str, Any], key: str, foreign: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata with the fields of another system under the name of its form."""
    kept = {name: value for name, value in foreign.items() if value not in (None, [], {}, "")}
    return {**metadata, **({key: kept} if kept else {})}


# --- PAM ---------------------------------------------------------------------------------------------------------


def _build_pam(memories: Sequence[Mapping[str, Any]], version: str) -> dict[str, Any]:
    owners = {next(one[axis] for axis in _AXES if one.get(axis)) for one in memories}
    if len(owners) > 1:
        raise InputError(f"a PAM document has one owner, and these memories have {len(owners)}: name a user to export")
    built = [_build_pam_memory(one, version) for one in memories]
    return {
        "schema": "portable-ai-memory",
        "schema_version": "1.0",
        "spec_uri": _PAM_SPEC,
        "export_id": str(uuid4()),
        "exported_by": f"{_SYSTEM}/{version}",
        "export_date": utc_now(),
        "owner": {"id": next(iter(owners), "nobody")},
        "memories": built,
        "relations": [],
        "conversations_index": _index_conversations(built),
        "integrity": {
            "canonicalization": "RFC8785",
            "checksum": _compute_checksum(built),
            "total_memories": len(built),
        },
    }


def _build_pam_memory(memory: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return a memory in the form in which the reference implementation writes it, which a checksum depends on."""
    metadata = dict(memory["metadata"])
    foreign = metadata.pop("pam", {})
    until = memory.get("expiration_date")
    temporal = {key: memory.get(key) for key in ("created_at", "updated_at", "valid_from")}
    temporal["valid_until"] = until and f"{until}T23:59:59Z"
    provenance = {
        "platform": _SYSTEM,
        **foreign.get("provenance", {}),
        "conversation_ref": memory.get("run_id"),
        "extractor": f"{_SYSTEM}/{version}",
    }
    return {
        **dict(_PAM_DEFAULTS),
        "tags": [],
        **foreign,
        "id": memory["id"],
        "content": memory["memory"],
        "content_hash": _hash_content(memory["memory"]),
        "temporal": {key: time.replace("+00:00", "Z") for key, time in temporal.items() if time},
        "provenance": {key: value for key, value in provenance.items() if value},
        "metadata": {**metadata, "mem0_core": _own_fields(memory)},
    }


def _index_conversations(memories: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return an entry for each run, with the memories that came from it."""
    by_run: dict[str, list[Mapping[str, Any]]] = {}
    for memory in memories:
        if run := memory["provenance"].get("conversation_ref"):
            by_run.setdefault(run, []).append(memory)
    return [
        {
            "id": run,
            "platform": _SYSTEM,
            "temporal": {"created_at": min(memory["temporal"]["created_at"] for memory in derived)},
            "derived_memories": [memory["id"] for memory in derived],
        }
        for run, derived in by_run.items()
    ]


def _open_pam(document: Mapping[str, Any]) -> _Opened:
    _check_pam(document)
    owner = document["owner"]["id"]
    return document["memories"], lambda item: _convert_pam(item, owner)


def _convert_pam(item: _Item, owner: str) -> dict[str, Any]:
    if item.get("status") in _LEFT_OUT:
        raise InputError(f"is {item['status']}")
    metadata, temporal = dict(item.get("metadata") or {}), item["temporal"]
    own, until = metadata.pop("mem0_core", {}), temporal.get("valid_until")
    provenance = dict(item.get("provenance") or {})
    run, _ = provenance.pop("conversation_ref", None), provenance.pop("extractor", None)
    kept = {key: value for key, value in item.items() if key not in _PAM_KEYS and (key, value) not in _PAM_DEFAULTS}
    if provenance != {"platform": _SYSTEM}:
        kept["provenance"] = provenance
    return {
        "user_id": owner,
        "run_id": run,
        "expiration_date": until and parse_timestamp(until, "valid_until")[:10],
        **own,
        "id": item.get("id"),
        "memory": item.get("content"),
        "created_at": temporal.get("created_at"),
        "updated_at": temporal.get("updated_at"),
        "metadata": _keep(metadata, "pam", kept),
    }


_PAM_KEYS = ("id", "content", "content_hash", "temporal", "provenance", "metadata", "embedding_ref")
_PAM_DEFAULTS = (("type", "fact"), ("status", "active"))


def _check_pam(document: Mapping[str, Any]) -> None:
    version = str(document.get("schema_version"))
    if version.split(".")[0] != "1":
        raise InputError(f"the document has the PAM version {version!r}; supported: 1.x")
    if document.get("export_type", "full") != "full":
        raise InputError("the document is an incremental PAM export, which needs its base: make a full export")
    integrity, memories = document.get("integrity"), document["memories"]
    if integrity and integrity["total_memories"] != len(memories):
        raise InputError(f"the document names {integrity['total_memories']} memories and has {len(memories)}")
    if integrity and integrity["checksum"] != _compute_checksum(memories):
        raise InputError("the memories do not match the checksum of the document: it is damaged or was edited")


def _hash_content(text: str) -> str:
    normal = re.sub(r"\s+", " ", unicodedata.normalize("NFC", text.strip().lower()))
    return f"sha256:{hashlib.sha256(normal.encode()).hexdigest()}"


def _compute_checksum(memories: Sequence[Mapping[str, Any]]) -> str:
    whole = _canonicalize(sorted(memories, key=lambda memory: str(memory.get("id", ""))))
    return f"sha256:{hashlib.sha256(whole.encode()).hexdigest()}"


def _canonicalize(value: Any) -> str:
    """Return JSON in the canonical form of RFC 8785."""
    if isinstance(value, Mapping):
        items = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return f"{{{','.join(f'{_canonicalize(key)}:{_canonicalize(one)}' for key, one in items)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_canonicalize, value))}]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _format_number(float(value))
    return json.dumps(value, ensure_ascii=False)


def _format_number(number: float) -> str:
    """Return a number as ECMAScript writes it."""
    if number == 0:
        return "0"  # -0 too
    if 1e-6 <= abs(number) < 1e21:
        return format(Decimal(repr(number)), "f").removesuffix(".0")
    return re.sub(r"e([+-])0*", r"e\1", repr(number))


# --- MIF ---------------------------------------------------------------------------------------------------------


def _build_mif(
    memories: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]], version: str
) -> dict[str, Any]:
    users = {one["user_id"] for one in memories if one.get("user_id")}
    graph = {
        "entities": [_build_entity(one) for one in records if one["kind"] == "entity"],
        "relationships": [_build_relationship(one) for one in records if one["kind"] == "relation"],
    }
    return {
        "mif_version": "2.0",
        "generator": {"name": _SYSTEM, "version": version},
        "export_meta": {
            "id": str(uuid4()),
            "created_at": utc_now(),
            **({"user_id": users.pop()} if len(users) == 1 else {}),
        },
        "memories": [_build_mif_memory(one) for one in memories],
        **({"knowledge_graph": graph} if graph["entities"] else {}),
        "vendor_extensions": {_SYSTEM: {"memories": {one["id"]: _own_fields(one) for one in memories}}},
    }


def _build_mif_memory(memory: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(memory["metadata"])
    foreign = metadata.pop("mif", {})
    source = {
        "source_type": memory.get("role"),
        "session_id": memory.get("run_id"),
        "agent_name": memory.get("agent_id"),
    }
    built = {
        "agent_id": memory.get("agent_id"),
        "updated_at": memory.get("updated_at"),
        "source": {key: value for key, value in source.items() if value},
        **foreign,
        "id": memory["id"],
        "content": memory["memory"],
        "created_at": memory["created_at"],
        "metadata": metadata,
    }
    return {key: value for key, value in built.items() if value not in (None, {})}


def _build_entity(entity: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": str(entity["id"]), "name": entity["name"], "types": [entity["type"]]}


def _build_relationship(relation: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": str(relation["id"]),
        "source_entity_id": str(relation["source_id"]),
        "target_entity_id": str(relation["destination_id"]),
        "relation_type": relation["relationship"],
        "created_at": relation["valid_from"],
        "invalidated_at": relation.get("valid_to"),
    }


def _open_mif(document: Mapping[str, Any]) -> _Opened:
    version = str(document["mif_version"])
    if not version.startswith("2."):
        raise InputError(f"the document has the MIF version {version!r}; supported: 2.x")
    user = (document.get("export_meta") or {}).get("user_id")
    ours = ((document.get("vendor_extensions") or {}).get(_SYSTEM) or {}).get("memories", {})
    return document["memories"], lambda item: _convert_mif(item, user, ours.get(item.get("id")))


def _convert_mif(item: _Item, user: str | None, own: Mapping[str, Any] | None) -> dict[str, Any]:
    """Convert a memory; `own` are its fields of this package, which has written it then."""
    kept = {key: value for key, value in item.items() if key not in _MIF_KEYS}
    if own is None:
        source = item.get("source") or {}
        own = {"user_id": user, "agent_id": item.get("agent_id"), "run_id": source.get("session_id")}
    else:
        kept.pop("source", None)
    return {
        **own,
        "id": item.get("id"),
        "memory": item.get("content"),
        "created_at": item.get("created_at"),
        "updated_at": item.get("updated_at"),
        "metadata": _keep(item.get("metadata") or {}, "mif", kept),
    }


_MIF_KEYS = ("id", "content", "created_at", "updated_at", "metadata", "agent_id", "embeddings")


# --- Zep ---------------------------------------------------------------------------------------------------------


def _is_edge(one: object) -> bool:
    return isinstance(one, Mapping) and "fact" in one and "uuid" in one


def _open_zep(document: Any) -> _Opened:
    """Open the edges of a graph: each states a fact."""
    if isinstance(document, list):
        return document, lambda item: _convert_zep(item, None)
    return document["edges"], lambda item: _convert_zep(item, document.get("user_id"))


def _convert_zep(edge: _Item, user: str | None) -> dict[str, Any]:
    """Convert a fact. One that no longer holds expires on the day on which it ended."""
    ended = edge.get("invalid_at") or edge.get("expired_at")
    kept = {
        "relation": edge.get("name"),
        "source": edge.get("source_node_name"),
        "target": edge.get("target_node_name"),
    }
    kept |= {"valid_at": edge.get("valid_at"), "invalid_at": edge.get("invalid_at")}
    return {
        "user_id": user,
        "id": edge.get("uuid"),
        "memory": edge.get("fact"),
        "created_at": edge.get("valid_at") or edge.get("created_at"),
        "expiration_date": ended and parse_timestamp(ended, "invalid_at")[:10],
        "metadata": _keep(edge.get("attributes") or {}, "zep", kept),
    }
