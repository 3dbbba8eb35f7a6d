"""Pages that look for memories: search with the share of each signal, and the reason why one is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mem0_core.memory import Memory
from mem0_core.server._requests import read_number
from mem0_core.server.inspector._markup import Child, Html, tag
from mem0_core.server.inspector._visit import (
    AXES,
    Page,
    Visit,
    field_of,
    paragraphs,
    shorten,
    show_period,
    show_text,
    show_time,
    table,
)

PAGE_ROWS = 50
FOUND_ROWS = 20
_BAR_UNITS = 1000


async def find(memory: Memory, visit: Visit) -> Page:
    """Show the results of a search, or all memories page by page."""
    reach = visit.open(memory)
    if reach is None:
        return ask_owner(visit)
    query = visit.query.get("q", "").strip()
    form = visit.get(
        "/ui/",
        field_of("Search", "q", query, type="search", id="search", maxlength=2000),
        field_of("As of", "as_of", visit.query.get("as_of"), type="date"),
        tag("button", "Find"),
        role="search",
    )
    if not query:
        return Page("Find", paragraphs(form, await list_memories(memory, visit)))
    found = await reach.search(query, limit=FOUND_ROWS, explain=True, as_of=visit.query.get("as_of") or None)
    results = [_result(visit, number, one) for number, one in enumerate(found["results"], 1)]
    none = tag("p", "Nothing was found. ", tag("a", "Ask why", href=visit.link("/ui/missing", q=query)), ".")
    note = tag("p", found["note"], class_="note") if "note" in found else None
    return Page("Find", paragraphs(form, note, tag("ol", results, class_="cards") if results else none))


async def list_memories(memory: Memory, visit: Visit, space: str | None = None) -> Html:
    """Return one page of all memories of an owner, or of one of their spaces, oldest first."""
    reach, page = visit.open(memory), max(1, read_number(visit.query, "page") or 1)
    assert reach is not None
    only: dict[str, Any] = {} if space is None else {"spaces": [space], "own": False}
    found = (await reach.get_all(**only, limit=page * PAGE_ROWS + 1, show_expired=True))["results"]
    rows = found[(page - 1) * PAGE_ROWS : page * PAGE_ROWS]
    turns = [
        tag("a", "Earlier page", href=visit.link(visit.path, space=space, page=page - 1)) if page > 1 else None,
        " ",
        tag("a", "Next page", href=visit.link(visit.path, space=space, page=page + 1))
        if len(found) > page * PAGE_ROWS
        else None,
    ]
    cells: list[list[Child]] = [
        [
            _memory_link(visit, one),
            show_time(one["created_at"]),
            [show_space(visit, one) if space is None else None, _origin(one)],
        ]
        for one in rows
    ]
    none = "Nothing is remembered yet." if page == 1 else "There are no more memories."
    return paragraphs(
        table(["Memory", "Date", "From"], cells, "All memories, oldest first", none),
        tag("p", turns, class_="turns") if any(isinstance(turn, Html) for turn in turns) else None,
    )


def ask_owner(visit: Visit) -> Page:
    """Ask for the owner of the memories to show."""
    inputs = [tag("p", field_of(label, axis, "")) for axis, label in AXES.items()]
    text = "Memories belong to a user, an agent or a run. Name at least one of them."
    form = tag("form", inputs, tag("button", "Show"), method="get", action=visit.path)
    return Page("Whose memories?", paragraphs(tag("p", text), form))


async def missing(memory: Memory, visit: Visit) -> Page:
    """Explain why a search does not return a memory."""
    reach = visit.open(memory)
    if reach is None:
        return ask_owner(visit)
    query, memory_id = visit.query.get("q", "").strip(), visit.query.get("id", "").strip()
    form = visit.get(
        "/ui/missing",
        tag("p", field_of("Search", "q", query, maxlength=2000, required=True)),
        tag("p", field_of("Id of the memory", "id", memory_id, maxlength=200, size=40, required=True)),
        tag("button", "Explain"),
    )
    if not query or not memory_id:
        text = "Each memory has its id on its page, and a search of its own for this question."
        return Page("Why not?", paragraphs(tag("p", text), form))
    found = await reach.explain_missing(query, memory_id, limit=FOUND_ROWS)
    ranks: list[list[Child]] = [[source, rank] for source, rank in found["ranks"].items()]
    return Page(
        "Why not?",
        paragraphs(
            form,
            tag("p", tag("strong", found["reason"].replace("_", " ")), ": ", found["detail"], class_="answer"),
            show_signals(found["signals"], found["score"]) if found["signals"] else None,
            table(["Source", "Rank"], ranks, "Rank in each source") if ranks else None,
            tag("p", tag("a", "The memory", href=visit.link_memory(memory_id))),
        ),
    )


def show_signals(signals: Mapping[str, Any], score: float | None) -> Html:
    """Return a bar of the contributions to a score, as long as the score is high, and a table of them."""
    names = list(signals)
    total = sum(max(0.0, one["contribution"]) for one in signals.values()) or 1.0
    length = _BAR_UNITS * (1.0 if score is None else min(max(score, 0.0), 1.0))
    bars, start = [], 0.0
    for number, name in enumerate(names):
        width = length * max(0.0, signals[name]["contribution"]) / total
        bars.append(tag("rect", x=round(start, 1), y=0, width=round(width, 1), height=10, class_=f"s{number % 12}"))
        start += width
    order = sorted(names, key=lambda name: -abs(signals[name]["contribution"]))
    rows = [_signal_row(name, names.index(name), signals[name], total) for name in order]
    largest = ", ".join(name.replace("_", " ") for name in order[:3] if signals[name]["contribution"])
    drawn = tag(
        "svg",
        bars,
        class_="bar",
        viewBox=f"0 0 {_BAR_UNITS} 10",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"Largest shares: {largest or 'none'}",
    )
    heads = ["Signal", "Value", "Weight", "Contribution", "Share"]
    summary = tag("summary", f"Score {score:.3f}" if score is not None else "Signals")
    return tag("div", drawn, tag("details", summary, table(heads, rows, "Signals of the score")), class_="signals")


def _signal_row(name: str, number: int, signal: Mapping[str, float], total: float) -> list[Child]:
    key = tag("svg", tag("rect", width=10, height=10, class_=f"s{number % 12}"), class_="key", aria_hidden="true")
    share = max(0.0, signal["contribution"]) / total
    numbers = [f"{signal[field]:.3f}" for field in ("value", "weight", "contribution")]
    return [[key, " ", name.replace("_", " ")], *numbers, f"{share:.0%}"]


def _result(visit: Visit, number: int, one: Mapping[str, Any]) -> Html:
    explanation = one.get("explanation", {})
    period = show_period(one)
    return tag(
        "li",
        tag("p", _memory_link(visit, one)),
        tag(
            "p",
            [show_space(visit, one), show_time(one["created_at"]), " · ", _origin(one)],
            [" · held ", period] if period else None,
            class_="soft",
        ),
        show_signals(explanation["signals"], one["score"]) if "signals" in explanation else None,
        class_="card",
        value=number,
    )


def show_space(visit: Visit, one: Mapping[str, Any]) -> Child:
    """Return the space that a memory is shared in; nothing for a memory of the owner."""
    name = one.get("space")
    if name is None:
        return None
    return [tag("a", name, href=visit.link("/ui/spaces/one", space=name), class_="badge", title=f"Space {name}"), " "]


def _memory_link(visit: Visit, one: Mapping[str, Any]) -> Html:
    text = show_text(shorten(one["memory"]))
    return text if one.get("pending") else tag("a", text, href=visit.link_memory(one["id"]))


def _origin(one: Mapping[str, Any]) -> Child:
    parts = [one.get("actor_id") or one.get("role") or "", one.get("trust"), "pinned" if one.get("pinned") else None]
    return ", ".join(str(part) for part in parts if part)
