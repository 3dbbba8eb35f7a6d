"""The graph as one HTML file that a browser shows without any network: a template of our own around vis-network.

vis-network draws on a canvas, and is kept well; it is read, as it is, from the package data of PyVis (extra ``viz``),
which is not imported. The page's own policy forbids every connection, and what it shows of memories is only ever text.
"""

from __future__ import annotations

import html
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from mem0_core.domain.records import Entity, MemoryItem, Relation, entity_key
from mem0_core.errors import MissingExtra
from mem0_core.graph.layout import layout

__all__ = ["Drawing", "page"]

_FEW = 200  # relations up to which each is labelled


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn.

    Attributes:
        types: type of each entity, by `records.entity_key`, where it is known.
        relations: those that hold and those that held; their ends are the nodes.
        memories: by id, those that the relations came from.
        marked: names of the entities that were asked for.
        left_out: how many nodes there are beside these.
    """

    title: str
    relations: Sequence[Relation]
    types: Mapping[bytes, str]
    memories: Mapping[str, MemoryItem]
    marked: Sequence[str] = ()
    left_out: int = 0


def page(drawing: Drawing) -> str:
    """A whole HTML page, with the library and the data in it.

    Raises:
        MissingExtra: the library is not installed.
    """
    template = (files("mem0_core.graph") / "view.html").read_text(encoding="utf-8")
    parts = {"title": html.escape(drawing.title), "library": _library(), "data": _json(_data(drawing))}
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found.group(1)], template)


def _data(drawing: Drawing) -> dict[str, Any]:
    number: dict[tuple[str | None, bytes], int] = {}  # by user and name, as in an adjacency
    entities: list[Entity] = []
    ends: list[tuple[int, int]] = []
    for relation in drawing.relations:
        pair = []
        for name in (relation.triplet.source, relation.triplet.destination):
            key = entity_key(name)
            pair.append(number.setdefault((relation.scope.user_id, key), len(entities)))
            if pair[-1] == len(entities):
                entities.append(Entity(name, drawing.types.get(key, "")))
        ends.append((pair[0], pair[1]))
    degrees = Counter(end for pair in ends for end in pair)
    places = layout(len(entities), ends).round().astype(int).tolist()
    marked = {entity_key(name) for name in drawing.marked}
    kept = {memory for relation in drawing.relations for memory in relation.memories}
    return {
        "nodes": [
            {
                "name": entity.name,
                "type": entity.type,
                "x": x,
                "y": y,
                "degree": degrees[place],
                "marked": entity_key(entity.name) in marked,
            }
            for place, (entity, (x, y)) in enumerate(zip(entities, places, strict=True))
        ],
        "relations": [
            {
                "from": source,
                "to": destination,
                "label": relation.triplet.relationship,
                "weight": relation.weight,
                "since": relation.valid_from,
                "until": relation.valid_to,
                "memories": list(relation.memories),
            }
            for relation, (source, destination) in zip(drawing.relations, ends, strict=True)
        ],
        "memories": {
            id: {"text": item.text, "at": item.created_at} for id, item in drawing.memories.items() if id in kept
        },
        "labelled": len(drawing.relations) <= _FEW,
        "left_out": drawing.left_out,
    }


def _json(data: Mapping[str, Any]) -> str:
    """JSON that can stand in a script element: nothing in it ends the element, or begins a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda sign: f"\\u{ord(sign.group()):04x}", text)


@lru_cache(maxsize=1)
def _library() -> str:
    """vis-network, of the newest version that the installed PyVis brings."""
    spec = importlib.util.find_spec("pyvis")  # found, not imported: that would import IPython
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("pyvis", "viz")
    found = [file for root in spec.submodule_search_locations for file in Path(root).rglob("vis-network.min.js")]
    if not found:
        raise MissingExtra("the vis-network of pyvis", "viz")
    newest = max(found, key=lambda file: [int(part) for part in re.findall(r"\d+", file.parent.name)])
    text = newest.read_text(encoding="utf-8").replace("</script", "<\\/script")
    return re.sub(r"//# sourceMappingURL=.*", "", text)  # a debugger would ask for it
