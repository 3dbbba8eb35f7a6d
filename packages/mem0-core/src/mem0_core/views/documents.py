"""Memories as documents with ids of their own: the core of the frameworks' vector stores over one scope.

>>> documents = ScopedDocuments(memory, user_id="maya")
>>> documents.add(["The flat in Porto is rented until May."], ids=["contract"])
>>> documents.search("How long is the flat rented?", k=1)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.filters import Condition, Filter, Group, parse_filters, unexpired
from mem0_core.domain.records import Axis, MemoryItem, Trust, new_id
from mem0_core.domain.timestamps import utc_today
from mem0_core.errors import InputError, ScopeError, StoreError
from mem0_core.flow import Flow, do
from mem0_core.language.messages import check_metadata
from mem0_core.views._scoped import MAX_ATTEMPTS, ScopedView, unit_vector

ID_KEY = "mem0_document"
"""Metadata key with the id of a document."""

NAMED_KEY = "mem0_named"
"""Metadata key, true if the memory's text begins with the id: two memories of a scope cannot have one text."""

GRAPH_KEY = "mem0_graph"
"""Metadata key with the nodes and relations of a property graph that a memory holds; see `ScopedGraph`."""


@dataclass(frozen=True, slots=True)
class ScopedDocument:
    """A memory as a document.

    Attributes:
        id: the caller's id, else that of the memory.
        metadata: the caller's metadata.
        score: of a search result, in [0, 1].
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    memory_id: str = ""
    score: float = 0.0


class ScopedDocuments(ScopedView):
    """The memories of a user (an agent, a run) as documents. All memories of the scope are documents.

    Documents are stored unchanged, one memory each, without a message in the conversation and without relations. An
    existing id is updated. A scope holds each text once; a document that repeats a text, or is blank, is therefore
    stored with its id before its text, which its readers do not see. Documents have the trust class ``import``.

    Args:
        memory: a `Memory` or an `AsyncMemory`.
        user_id, agent_id, run_id: owner of the documents; give at least one.

    Raises:
        ScopeError: no id is given, an id is invalid, or a filter names an owner.

    Raises (by the methods that write):
        InputError: a text or metadata cannot be stored, or the policy refuses it; nothing is written.
        LimitError, ModelError, StoreError: as `Memory.add`.
    """

    # --- Sync and async methods --------------------------------------------------------------------------------------

    def add(
        self,
        texts: Sequence[str],
        *,
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        ids: Sequence[str | None] | None = None,
    ) -> list[str]:
        """Add documents, or replace those with the same ids; return their ids."""
        return self._memory._run(self.add_flow(texts, metadatas=metadatas, ids=ids))

    async def aadd(
        self,
        texts: Sequence[str],
        *,
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        ids: Sequence[str | None] | None = None,
    ) -> list[str]:
        """Async version of `add`."""
        return await self._memory._arun(self.add_flow(texts, metadatas=metadatas, ids=ids))

    def get(
        self, ids: Sequence[str] | None = None, *, filters: Mapping[str, Any] | None = None
    ) -> list[ScopedDocument]:
        """Return the documents with these ids, or that pass the filters, oldest first; unknown ids are left out."""
        return self._memory._run(self.get_flow(ids, filters=filters))

    async def aget(
        self, ids: Sequence[str] | None = None, *, filters: Mapping[str, Any] | None = None
    ) -> list[ScopedDocument]:
        """Async version of `get`."""
        return await self._memory._arun(self.get_flow(ids, filters=filters))

    def delete(self, ids: Sequence[str] | None = None, *, filters: Mapping[str, Any] | None = None) -> int:
        """Delete documents by id, or that pass the filters; return their number.

        Without an id and a filter, all texts that were added as documents are deleted; other memories stay.
        """
        return self._memory._run(self.delete_flow(ids, filters=filters))

    async def adelete(self, ids: Sequence[str] | None = None, *, filters: Mapping[str, Any] | None = None) -> int:
        """Async version of `delete`."""
        return await self._memory._arun(self.delete_flow(ids, filters=filters))

    def search(
        self, query: str | Sequence[float], *, k: int = 4, filters: Mapping[str, Any] | None = None, recipe: Any = None
    ) -> list[ScopedDocument]:
        """Return the documents nearest to a query, best first.

        Args:
            query: a text; or a vector of the memory's embedder, for scores that are cosines, whatever the recipe.
        """
        return self._memory._run(self.search_flow(query, k=k, filters=filters, recipe=recipe))

    async def asearch(
        self, query: str | Sequence[float], *, k: int = 4, filters: Mapping[str, Any] | None = None, recipe: Any = None
    ) -> list[ScopedDocument]:
        """Async version of `search`."""
        return await self._memory._arun(self.search_flow(query, k=k, filters=filters, recipe=recipe))

    # --- Flows -------------------------------------------------------------------------------------------------------

    def add_flow(
        self,
        texts: Sequence[str],
        *,
        metadatas: Sequence[Mapping[str, Any]] | None,
        ids: Sequence[str | None] | None,
    ) -> Flow[list[str]]:
        given = _read_documents(texts, metadatas, ids)
        for _ in range(MAX_ATTEMPTS):
            known = {}
            for item in (yield from self._find(list(dict.fromkeys(one.id for one in given)), None)):
                if item.scope == self._scope:
                    known[_document_id(item)] = item
            latest = {one.id: one for one in given}.values()
            replaced = [(known[one.id], one) for one in latest if one.id in known]
            if replaced and not (yield from self._replace(replaced)):
                continue
            yield from self._create([one for one in latest if one.id not in known])
            return [one.id for one in given]
        raise StoreError(f"other writers changed the documents {MAX_ATTEMPTS} times; try again")

    def get_flow(self, ids: Sequence[str] | None, *, filters: Mapping[str, Any] | None) -> Flow[list[ScopedDocument]]:
        items = yield from self._find(ids, self._parse(filters))
        return [_to_document(item.id, item.text, item.metadata) for item in items]

    def delete_flow(self, ids: Sequence[str] | None, *, filters: Mapping[str, Any] | None) -> Flow[int]:
        filter = self._parse(filters)
        if ids is None and filter is None:
            filter = Condition(ID_KEY, False, "exists")
        items = yield from self._find(ids, filter)
        if items:
            yield from self._memory._delete_items_flow(items)
        return len(items)

    def search_flow(
        self, query: str | Sequence[float], *, k: int, filters: Mapping[str, Any] | None, recipe: Any
    ) -> Flow[list[ScopedDocument]]:
        filter = self._parse(filters)
        if not isinstance(query, str):
            return (yield from self._nearest_flow(query, k, filter))
        ids: dict[str, Any] = {axis.value: value for axis, value in self._scope.ids.items()}
        found: Any = yield from do(self._memory.search, query, **ids, limit=k, filters=filters, recipe=recipe)
        hits = found["results"] if isinstance(found, Mapping) else found  # version "v1.0" returns a bare list
        return [_to_document(hit["id"], hit["memory"], hit["metadata"], hit["score"]) for hit in hits]

    def _nearest_flow(self, vector: Sequence[float], k: int, filter: Filter | None) -> Flow[list[ScopedDocument]]:
        ports = yield from self._memory._ports()
        queries = unit_vector(vector, ports.embedder.dims).reshape(1, -1)
        allowed = yield from do(ports.store.rows, self._scope, filter=unexpired(utc_today(), filter))
        (near,) = yield from do(ports.index.nearest, self._scope, queries, k, allowed_rows=allowed)
        items = yield from do(ports.store.memories_by_rows, [row for row, _ in near], scope=self._scope)
        found = [(items[row], min(1.0, max(0.0, cosine))) for row, cosine in near if row in items]
        return [_to_document(item.id, item.text, item.metadata, score) for item, score in found]

    def _parse(self, filters: Mapping[str, Any] | None) -> Filter | None:
        """Return the conditions of filters, which cannot name another owner."""
        owner, filter = parse_filters(filters)
        for axis, value in owner.items():
            if self._scope.ids.get(Axis(axis)) != value:
                raise ScopeError(f"{axis} in the filters: the owner of these documents is fixed")
        return filter

    def _find(self, ids: Sequence[str] | None, filter: Filter | None) -> Flow[list[MemoryItem]]:
        """Return the memories of documents by their ids and a filter."""
        parts: list[Filter] = [] if filter is None else [filter]
        if ids is not None:
            if not ids:
                return []
            named = Condition(ID_KEY, False, "in", tuple(ids))
            unnamed = Group("and", (Condition("id", True, "in", tuple(ids)), Condition(ID_KEY, False, "eq", None)))
            parts.append(Group("or", (named, unnamed)))
        return (yield from self._memory._list_items_flow(self._scope, Group("and", tuple(parts)) if parts else None))

    def _create(self, documents: Sequence[ScopedDocument]) -> Flow[None]:
        plain = [document for document in documents if document.text.strip()]
        repeated = [document for document in documents if not document.text.strip()]
        if plain:
            texts = [(document.text, _stored_metadata(document, named=False)) for document in plain]
            created = yield from self._memory._create_items_flow(self._scope, texts, extract=False, trust=Trust.IMPORT)
            repeated += [document for document, item in zip(plain, created, strict=True) if item is None]
        if repeated:
            texts = [(_named_text(document), _stored_metadata(document, named=True)) for document in repeated]
            yield from self._memory._create_items_flow(self._scope, texts, extract=False, trust=Trust.IMPORT)

    def _replace(self, documents: Sequence[tuple[MemoryItem, ScopedDocument]]) -> Flow[bool]:
        """Give documents new texts and metadata; return False if another writer changed one of them."""
        for item, document in documents:
            is_plain = bool(document.text.strip())
            if is_plain:
                try:
                    if (yield from self._write(item, document.text, document, named=False)):
                        continue
                    return False
                except InputError:  # another memory has the text, or it is refused, which the next call repeats
                    pass
            if not (yield from self._write(item, _named_text(document), document, named=True)):
                return False
        return True

    def _write(self, item: MemoryItem, text: str, document: ScopedDocument, *, named: bool) -> Flow[bool]:
        metadata = _stored_metadata(document, named=named)
        metadata |= {key: item.metadata[key] for key in (GRAPH_KEY,) if key in item.metadata}
        if text == item.text and metadata == item.metadata:
            return True
        changed = dataclasses.replace(item, metadata=metadata)
        return (yield from self._memory._replace_items_flow([(changed, text)]))


def _read_documents(
    texts: Sequence[str], metadatas: Sequence[Mapping[str, Any]] | None, ids: Sequence[str | None] | None
) -> list[ScopedDocument]:
    """Return the given documents, each with an id."""
    for name, values in (("metadatas", metadatas), ("ids", ids)):
        if values is not None and len(values) != len(texts):
            raise InputError(f"{name} has {len(values)} entries for {len(texts)} texts; give one for each")
    documents = []
    for index, text in enumerate(texts):
        given = None if ids is None else ids[index]
        if given is not None and not (isinstance(given, str) and given):
            raise InputError(f"ids[{index}] must be a non-empty string, not {given!r}")
        metadata = check_metadata(None if metadatas is None else metadatas[index], f"texts[{index}]")
        documents.append(ScopedDocument(given or new_id(), text, metadata))
    return documents


def _stored_metadata(document: ScopedDocument, *, named: bool) -> dict[str, Any]:
    return {**document.metadata, ID_KEY: document.id, **({NAMED_KEY: True} if named else {})}


def _named_text(document: ScopedDocument) -> str:
    return f"{document.id}\n\n{document.text}"


def _document_id(item: MemoryItem) -> str:
    return str(item.metadata.get(ID_KEY, item.id))


def _to_document(memory_id: str, text: str, metadata: Mapping[str, Any], score: float = 0.0) -> ScopedDocument:
    own = {key: value for key, value in metadata.items() if key not in (ID_KEY, NAMED_KEY, GRAPH_KEY)}
    id = str(metadata.get(ID_KEY, memory_id))
    content = text.removeprefix(f"{id}\n\n") if metadata.get(NAMED_KEY) is True else text
    return ScopedDocument(id, content, own, memory_id, score)
