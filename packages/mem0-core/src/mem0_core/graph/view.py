"""Drawing of the graph as one HTML file that a browser shows without a network.

The template is ours; vis-network draws on a canvas. It is read unchanged from the package data of PyVis (extra
``viz``), which is not imported. The page's content security policy forbids every connection, and the page shows
memories as text only.
"""

from __future__ import annotations

import html
import importlib.util
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from mem0_core._system.records import dataclass
from mem0_core.domain.records import Entity, MemoryItem, Relation, entity_key
from mem0_core.errors import MissingExtraError
from mem0_core.graph._layout import layout


@dataclass(frozen=True, slots=True)
class Drawing:
    """Contents of a drawing.

    Attributes:
        relations: valid and ended relations; their ends are the nodes.
        types: types of the entities, by `records.entity_key`, as far as known.
        memories: the memories that support the relations, by id.
        marked: names of the entities to highlight.
        omitted_count: number of nodes that the drawing leaves out.
    """

    title: str
    relations: Sequence[Relation]
    types: Mapping[bytes, str]
    memories: Mapping[str, MemoryItem]
    marked: Sequence[str] = ()
    omitted_count: int = 0


def render_page(drawing: Drawing) -> str:
    """Return an HTML page that contains the library and the data.

    Raises:
        MissingExtraError: PyVis is not installed.
    """
    template = (files("mem0_core.graph") / "view.html").read_text(encoding="utf-8")
    parts = {
        "title": html.escape(drawing.title),
        "library": _read_library(),
        "data": _to_script_json(_build_data(drawing)),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda placeholder: parts[placeholder.group(1)], template)


def _build_data(drawing: Drawing) -> dict[str, Any]:
    """Return the data of the page: nodes with their positions, relations between them, and memories."""
    entities, ends = _number_entities(drawing)
    degrees = Counter(end for pair in ends for end in pair)
    positions = layout(len(entities), ends).round().astype(int).tolist()
    marked = {entity_key(name) for name in drawing.marked}
    supporting = {memory for relation in drawing.relations for memory in relation.memories}
    return {
        "nodes": [
            {
                "name": entity.name,
                "type": entity.type,
                "x": x,
                "y": y,
                "degree": degrees[number],
                "marked": entity_key(entity.name) in marked,
            }
            for number, (entity, (x, y)) in enumerate(zip(entities, positions, strict=True))
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
            id: {"text": item.text, "at": item.created_at} for id, item in drawing.memories.items() if id in supporting
        },
        "left_out": drawing.omitted_count,
    }


def _number_entities(drawing: Drawing) -> tuple[list[Entity], list[tuple[int, int]]]:
    """Return the entities of a drawing, and for each relation the numbers of its ends."""
    numbers: dict[tuple[str | None, bytes], int] = {}  # by user and name, as in an adjacency
    entities: list[Entity] = []
    ends: list[tuple[int, int]] = []
    for relation in drawing.relations:
        pair = []
        for name in (relation.triplet.source, relation.triplet.destination):
            key = entity_key(name)
            pair.append(numbers.setdefault((relation.scope.user_id, key), len(entities)))
            if pair[-1] == len(entities):
                entities.append(Entity(name, drawing.types.get(key, "")))
        ends.append((pair[0], pair[1]))
    return entities, ends


def _to_script_json(data: Mapping[str, Any]) -> str:
    """Return JSON that is safe in a script element: it neither ends the element nor starts a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda sign: f"\\u{ord(sign.group()):04x}", text)


@lru_cache(maxsize=1)
def _read_library() -> str:
    """Return the newest vis-network of the installed PyVis."""
    spec = importlib.util.find_spec("pyvis")  # located, not imported: importing it imports IPython
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("pyvis", "viz")
    found = [file for root in spec.submodule_search_locations for file in Path(root).rglob("vis-network.min.js")]
    if not found:
        raise MissingExtraError("the vis-network of pyvis", "viz")
    newest = max(found, key=lambda file: [int(part) for part in re.findall(r"\d+", file.parent.name)])
    text = newest.read_text(encoding="utf-8").replace("</script", "<\\/script")
    return re.sub(r"//# sourceMappingURL=.*", "", text)  # a debugger would request it
