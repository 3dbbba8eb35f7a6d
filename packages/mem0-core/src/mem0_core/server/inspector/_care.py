"""Pages of the store: the queue, its health, exports and erasures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mem0_core.memory import Memory
from mem0_core.server._problems import HttpError
from mem0_core.server.inspector._find import ask_owner
from mem0_core.server.inspector._markup import Child, Html, tag
from mem0_core.server.inspector._visit import (
    AXES,
    Download,
    Page,
    Redirect,
    Reply,
    Visit,
    field_of,
    paragraphs,
    shorten,
    show_text,
    show_time,
    table,
)

MAX_ROWS = 200
ERASE_WORD = "erase"


async def jobs(memory: Memory, visit: Visit) -> Page:
    """Show queued and failed jobs."""
    found = await memory.apending(**visit.ids)
    rows: list[list[Child]] = []
    for one in found[:MAX_ROWS]:
        again = visit.button(visit.link("/ui/jobs/retry"), "Retry", one["id"], id=one["id"])
        owner = ", ".join(str(one.get(axis)) for axis in AXES if one.get(axis))
        messages = [tag("p", show_text(shorten(str(message.get("content", ""))))) for message in one["messages"][:5]]
        state: Child = [one["state"], f", {one['attempts']} attempts"]
        error = show_text(one["error"]) if one["error"] else ""
        when = show_time(one["created_at"])
        rows.append([when, one["kind"], state, owner, messages, error, again if one["state"] == "failed" else ""])
    heads = ["Time", "Kind", "State", "Owner", "Messages", "Error", "Retry"]
    return Page("Queue", table(heads, rows, f"{len(found)} jobs, oldest first", "No job waits, and none has failed."))


async def retry(memory: Memory, visit: Visit) -> Redirect:
    """Queue a failed job again."""
    await memory.aretry(visit.form.get("id", ""), **visit.ids)
    visit.session.note = "The job is queued again."
    return Redirect(visit.link("/ui/jobs"))


async def health(memory: Memory, visit: Visit) -> Page:
    """Show the findings of the doctor, without repairs."""
    visit.require_admin()
    return Page("Health", _show_diagnosis(visit, await memory.adoctor(repair=False), await memory.astats()))


async def repair(memory: Memory, visit: Visit) -> Page:
    """Repair the findings of the doctor."""
    visit.require_admin()
    return Page("Health", _show_diagnosis(visit, await memory.adoctor(), await memory.astats()))


async def data(memory: Memory, visit: Visit) -> Page:
    """Offer the export and the erasure of a scope, and show the receipts."""
    if not visit.has_scope:
        return ask_owner(visit)
    counts = _list_numbers(await memory.astats(**visit.ids))
    parts: list[Child] = [
        table(["What", "Number"], counts, "What is stored of this owner"),
        tag("h2", "Export"),
        tag("p", "One JSON object a line: memories, messages, relations and their history."),
        visit.get("/ui/export", tag("button", "Download")),
    ]
    if visit.may_write:
        parts += [tag("h2", "Erase"), _erase_form(visit)]
    known = list(visit.session.receipts)
    if visit.session.key.is_admin:
        known = [dict(one) for one in await memory.aerasures()]
    rows: list[list[Child]] = [
        [
            show_time(one["finished_at"]),
            show_text(one["reason"]),
            "complete" if one["complete"] else "residue was found",
            tag("a", "Receipt", href=visit.link("/ui/receipt", id=one["id"]), aria_label=f"Receipt {one['id']}"),
        ]
        for one in reversed(known)
    ]
    parts += [
        tag("h2", "Receipts"),
        table(["Time", "Reason", "Result", "Receipt"], rows, "Erasures, newest first", "Nothing was erased yet."),
    ]
    return Page("Data", paragraphs(*parts))


async def export(memory: Memory, visit: Visit) -> Reply:
    """Return everything of a scope as JSON Lines."""
    if not visit.has_scope:
        return ask_owner(visit)
    with TemporaryDirectory(prefix="mem0-core-") as folder:
        file = Path(folder) / "memories.jsonl"
        await memory.aexport(file, **visit.ids)
        content = await asyncio.to_thread(file.read_bytes)
    return _attach(content, "memories.jsonl")


async def erase(memory: Memory, visit: Visit) -> Redirect:
    """Erase everything of a scope."""
    if not visit.has_scope:
        raise HttpError(400, "name the owner whose memories are to be erased")
    if visit.form.get("confirm", "").strip().casefold() != ERASE_WORD:
        raise HttpError(400, f"nothing was erased: type the word {ERASE_WORD} to confirm")
    done = await memory.aerase(**visit.ids, reason=visit.form.get("reason", ""))
    visit.session.receipts.append(dict(done))
    visit.session.deleted.clear()  # they may be of this owner
    visit.session.note = "Everything is erased." if done["complete"] else "It is erased, and residue was found."
    return Redirect(visit.link("/ui/receipt", id=done["id"]))


async def receipt(memory: Memory, visit: Visit) -> Reply:
    """Show the receipt of an erasure."""
    known: list[Any] = list(visit.session.receipts)
    if visit.session.key.is_admin:
        known += await memory.aerasures()
    found = next((one for one in known if one["id"] == visit.query.get("id")), None)
    if found is None:
        raise HttpError(404, "no receipt has that id")
    text = json.dumps(found, indent=1)
    if "download" in visit.query:
        return _attach(text.encode(), "receipt.json")
    is_valid = await memory.averify_receipt(found)
    probes: list[list[Child]] = [[one["where"], one["searched"], one["found"]] for one in found["probes"]]
    erased: list[list[Child]] = [[name.replace("_", " "), number] for name, number in found["erased"].items()]
    summary = "complete: no residue was found" if found["complete"] else "incomplete: residue was found"
    return Page(
        "Receipt",
        paragraphs(
            tag("p", tag("strong", summary), ". The signature is ", "valid." if is_valid else "not valid."),
            tag("p", "Reason: ", show_text(found["reason"])),
            table(["What", "Erased"], erased, "Erased records"),
            table(["Where", "Searched", "Found"], probes, "Search for residue"),
            tag("p", tag("a", "Download", href=visit.link("/ui/receipt", id=found["id"], download="yes"))),
            tag("details", tag("summary", "As JSON"), tag("pre", text)),
        ),
    )


# --- Parts -----------------------------------------------------------------------------------------------------------


def _show_diagnosis(visit: Visit, diagnosis: Any, stats: Any) -> Html:
    problems: list[list[Child]] = [
        [one["where"], show_text(one["what"]), "yes" if one["mended"] else "no", show_text(one["action"] or "")]
        for one in diagnosis["findings"]
    ]
    verdict = "healthy: no problems were found" if diagnosis["healthy"] else "not healthy"
    return paragraphs(
        tag("p", "The store is ", tag("strong", verdict), ". Checked: ", ", ".join(diagnosis["checked"]), "."),
        table(["Where", "Problem", "Repaired", "Action"], problems, "Problems") if problems else None,
        visit.button(visit.link("/ui/health"), "Repair") if problems else None,
        tag("h2", "Store"),
        table(["What", "Number"], _list_numbers(stats), "Numbers of the whole store"),
    )


def _list_numbers(stats: Mapping[str, Any]) -> list[list[Child]]:
    """Return the rows of the statistics that are one number or time."""
    return [
        [name.replace("_", " "), show_time(value) if isinstance(value, str) else value]
        for name, value in stats.items()
        if isinstance(value, (int, str))
    ]


def _erase_form(visit: Visit) -> Html:
    text = (
        "This erases memories, history, messages and relations of this owner, and cannot be undone. The receipt has"
        " counts and digests, and no text. Export first if in doubt."
    )
    return visit.post(
        visit.link("/ui/erase"),
        tag("p", text),
        tag("p", field_of("Reason for the receipt", "reason", "", required=True, maxlength=200)),
        tag("p", field_of(f"Type the word {ERASE_WORD}", "confirm", "", required=True, autocomplete="off")),
        tag("button", "Erase everything", class_="danger"),
    )


def _attach(content: bytes, name: str) -> Download:
    return Download(content, "application/octet-stream", {"Content-Disposition": f'attachment; filename="{name}"'})
