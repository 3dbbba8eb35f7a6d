"""Pages of a person: the timeline, the relations at a time, the graph, and names that may mean the same."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from mem0_core.memory import Memory
from mem0_core.server._problems import HttpError
from mem0_core.server.inspector._find import ask_owner
from mem0_core.server.inspector._markup import Child, Html, tag
from mem0_core.server.inspector._visit import (
    Download,
    Page,
    Redirect,
    Reply,
    Visit,
    field_of,
    paragraphs,
    shorten,
    show_period,
    show_text,
    show_time,
    table,
)

MAX_ROWS = 200
MAX_NODES = 500
_BAR_UNITS = 1000


async def timeline(memory: Memory, visit: Visit) -> Page:
    """Show when each relation and each memory held."""
    if not visit.has_scope:
        return ask_owner(visit)
    who = visit.query.get("who", "").strip()
    form = visit.get("/ui/timeline", field_of("About", "who", who, maxlength=200), tag("button", "Show"))
    known = await memory.arelations(**visit.ids, ended=True)
    shown = [one for one in known if _is_about(one, who)]
    shown.sort(key=lambda one: (one["valid_from"], one["source"], one["relationship"], one["destination"]))
    rows = [_relation_row(visit, one) for one in shown[-MAX_ROWS:]]
    bars = _draw_periods(shown[-MAX_ROWS:])
    none = f"No relation is about {who!r}." if who else "There are no relations yet."
    parts: list[Child] = [form, bars, table(_RELATION_HEADS, rows, "Relations, oldest first", none)]
    if not who:
        found = (await memory.aget_all(**visit.ids, limit=None, show_expired=True))["results"]
        found.sort(key=lambda one: one.get("valid_from") or one["created_at"])
        rows = [
            [
                show_time(one.get("valid_from") or one["created_at"]),
                show_time(one["valid_to"]) if one.get("valid_to") else "",
                tag("a", show_text(shorten(one["memory"])), href=visit.link_memory(one["id"])),
            ]
            for one in found[-MAX_ROWS:]
        ]
        caption = f"The last {MAX_ROWS} memories at most, oldest first"
        parts.append(table(["From", "Until", "Memory"], rows, caption, "Nothing is remembered yet."))
    return Page("Timeline", paragraphs(*parts))


async def relations(memory: Memory, visit: Visit) -> Page:
    """Show the relations that hold, or held at a time."""
    if not visit.has_scope:
        return ask_owner(visit)
    as_of, who = visit.query.get("as_of") or None, visit.query.get("who", "").strip()
    form = visit.get(
        "/ui/relations",
        field_of("As of", "as_of", as_of, type="date"),
        field_of("About", "who", who, maxlength=200),
        tag("button", "Show"),
    )
    known = await memory.arelations(**visit.ids, as_of=as_of, ended=as_of is None and "ended" in visit.query)
    rows = [_relation_row(visit, one) for one in known if _is_about(one, who)]
    more = tag("p", f"and {len(rows) - MAX_ROWS} more", class_="soft") if len(rows) > MAX_ROWS else None
    caption = f"Relations as of {as_of}" if as_of else "Relations now"
    none = f"No relation is about {who!r}." if who else "There are no relations yet."
    shown = table(_RELATION_HEADS, rows[:MAX_ROWS], caption, none)
    return Page("Relations", paragraphs(form, shown, more))


async def graph(memory: Memory, visit: Visit) -> Page:
    """Show the graph around an entity, or the whole one."""
    if not visit.has_scope:
        return ask_owner(visit)
    entity, depth = visit.query.get("entity", "").strip(), visit.query.get("depth", "2")
    form = visit.get(
        "/ui/graph",
        field_of("Around", "entity", entity, maxlength=200),
        field_of("Steps", "depth", depth, type="number", min=1, max=4),
        tag("button", "Draw"),
    )
    known = await memory.arelations(**visit.ids, ended=True, limit=1)
    if not known:
        return Page("Graph", paragraphs(form, tag("p", "There are no relations yet.")))
    source = visit.link("/ui/graph/drawing", entity=entity or None, depth=depth)
    drawn = tag("iframe", src=source, title="Drawing of the graph", sandbox="allow-scripts", class_="graph")
    text = tag(
        "p", "Without JavaScript, read the ", tag("a", "relations", href=visit.link("/ui/relations", who=entity)), "."
    )
    return Page("Graph", paragraphs(form, drawn, text), frames=True)


async def drawing(memory: Memory, visit: Visit) -> Reply:
    """Return the drawing as a document of its own, with the hashes of its scripts in its policy."""
    entity, depth = visit.query.get("entity"), visit.query.get("depth", "2")
    if depth not in ("1", "2", "3", "4"):
        raise HttpError(400, "depth is a number from 1 to 4")
    with TemporaryDirectory(prefix="mem0-core-") as folder:
        file = await memory.avisualize(
            Path(folder) / "graph.html",
            entities=[entity] if entity else None,
            depth=int(depth),
            limit=MAX_NODES,
            **visit.ids,
        )
        page = await asyncio.to_thread(Path(file).read_bytes)
    return Download(page, "text/html; charset=utf-8", {"Content-Security-Policy": hash_inline(page)})


def hash_inline(page: bytes) -> str:
    """Return a policy that allows exactly the inline scripts and styles of a document."""
    policy = ["default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'self'"]
    for element in ("script", "style"):
        found = re.findall(rb"<%b>(.*?)</%b>" % (element.encode(), element.encode()), page, re.DOTALL)
        hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(one).digest()).decode()}'" for one in found]
        policy.append(f"{element}-src {' '.join(hashes)}")
    return "; ".join(policy)


async def merges(memory: Memory, visit: Visit) -> Page:
    """Show names that may mean the same, and the merges."""
    if not visit.has_scope:
        return ask_owner(visit)
    found = await memory.amerge(**visit.ids, dry_run=True)
    proposed = [_proposal_row(visit, [one["name"], *one["merged"]], one, one["reasons"]) for one in found["merges"]]
    proposed += [_proposal_row(visit, one["names"], one, [one["reason"]]) for one in found["same_as"]]
    done: list[list[Child]] = []
    for one in reversed(await memory.amerges(**visit.ids)):
        undo = None
        if one["undone"] is None and one["id"] is not None:
            undo = visit.button(visit.link("/ui/unmerge"), "Undo", one["name"], id=one["id"])
        state = ["undone ", show_time(one["undone"])] if one["undone"] else show_time(one["at"])
        done.append([show_text(one["name"]), show_text(", ".join(one["merged"])), state, undo])
    return Page(
        "Names",
        paragraphs(
            tag("h2", "Candidates"),
            table(
                ["Names", "Kind", "Score", "Reason", "Accept"],
                proposed,
                "Names that may mean the same",
                "No two names seem to mean the same.",
            ),
            tag("h2", "Merges"),
            table(["Name", "Merged", "Time", "Undo"], done, "Accepted merges, newest first", "No names are merged."),
        ),
    )


async def accept(memory: Memory, visit: Visit) -> Redirect:
    """Merge names."""
    try:
        names, into = json.loads(visit.form.get("names", "")), json.loads(visit.form.get("into", ""))
    except (ValueError, RecursionError):
        names = into = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in [*names, into]):
        raise HttpError(400, "names is a JSON list of texts, and into one of them")
    kind = visit.form.get("kind", "")
    what: Literal["entities", "relationships"] = "relationships" if kind.startswith("relation") else "entities"
    done = await memory.amerge(what, **visit.ids, names=names, into=into, dry_run=False)
    visit.session.note = "The names are merged." if done["merges"] else "Nothing was merged."
    return Redirect(visit.link("/ui/merges"))


async def unmerge(memory: Memory, visit: Visit) -> Redirect:
    """Revert a merge."""
    await memory.aunmerge(visit.form.get("id", ""), **visit.ids)
    visit.session.note = "The merge is undone."
    return Redirect(visit.link("/ui/merges"))


# --- Parts -----------------------------------------------------------------------------------------------------------

_RELATION_HEADS = ["Source", "Relation", "Destination", "Held", "Memories"]


def _is_about(one: Mapping[str, Any], who: str) -> bool:
    return not who or who.casefold() in (one["source"].casefold(), one["destination"].casefold())


def _relation_row(visit: Visit, one: Mapping[str, Any]) -> list[Child]:
    ends = [
        tag("a", show_text(shorten(one[end])), href=visit.link("/ui/graph", entity=one[end]))
        for end in ("source", "destination")
    ]
    evidence = [
        [tag("a", str(number), href=visit.link_memory(memory_id), aria_label=f"Memory {number}"), " "]
        for number, memory_id in enumerate(one["memories"][:9], 1)
    ]
    return [ends[0], show_text(one["relationship"].replace("_", " ")), ends[1], show_period(one), evidence]


def _draw_periods(shown: Sequence[Mapping[str, Any]]) -> Html | None:
    """Return a bar for each relation, from its begin to its end, on one axis of days."""
    days = sorted({str(one[end])[:10] for one in shown for end in ("valid_from", "valid_to") if one[end]})
    if not days:
        return None
    place = {day: round(_BAR_UNITS * number / len(days)) for number, day in enumerate(days)}
    bars = []
    for number, one in enumerate(shown):
        start = place[str(one["valid_from"])[:10]]
        end = place[str(one["valid_to"])[:10]] if one["valid_to"] else _BAR_UNITS
        kind = "then" if one["valid_to"] else "now"
        bars.append(tag("rect", x=start, y=number * 8, width=max(6, end - start), height=6, class_=kind))
    drawn = tag(
        "svg",
        bars,
        class_="periods",
        viewBox=f"0 0 {_BAR_UNITS} {8 * len(shown)}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{len(shown)} relations from {days[0]}; the table below has each of them",
    )
    return tag("figure", drawn, tag("figcaption", f"{days[0]} to now, one bar for each relation of the table"))


def _proposal_row(visit: Visit, names: list[str], one: Mapping[str, Any], reasons: Sequence[str]) -> list[Child]:
    buttons = [
        [
            visit.button(
                visit.link("/ui/merges/accept"),
                f"Call it {name[:60]}",
                " and ".join(names),
                names=json.dumps(names),
                into=json.dumps(name),
                kind=one["kind"],
            ),
            " ",
        ]
        for name in names[:4]
    ]
    score = f"{one['score']:.2f}" if one["score"] is not None else ""
    return [show_text(", ".join(names)), one["kind"], score, show_text("; ".join(reasons)), buttons]
