"""Pages of one memory: its history, and its correction, deletion and undo."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mem0_core.domain.records import Scope, new_id
from mem0_core.domain.spaces import SpaceRole, space_scope
from mem0_core.errors import AccessError, CapabilityError, NotFoundError
from mem0_core.memory import Memory
from mem0_core.server._problems import HttpError
from mem0_core.server._reach import OwnMemories, Reach
from mem0_core.server.inspector._find import show_space
from mem0_core.server.inspector._markup import Child, Html, clean, tag
from mem0_core.server.inspector._visit import (
    AXES,
    Page,
    Redirect,
    Visit,
    field_of,
    paragraphs,
    shorten,
    show_moment,
    show_period,
    show_text,
    show_time,
    table,
)
from mem0_core.views import AsyncPrincipal

# A form sends up to nine bytes for each character, and a body has at most 1 MiB.
MAX_FORM_CHARS = 100_000
_WAITS = "Nothing has changed yet: the change waits until an owner of the space approves it."
_RESTORED = (
    *("memory", "created_at", "updated_at", "user_id", "agent_id", "run_id", "metadata", "actor_id", "role"),
    *("memory_type", "expiration_date", "trust"),
)


async def show(memory: Memory, visit: Visit) -> Page:
    """Show a memory with its history."""
    memory_id, reach = visit.parts["memory_id"], _open(memory, visit)
    known = await reach.get(memory_id)
    changes = await reach.history(memory_id)
    if known is None:
        if not changes:
            raise NotFoundError(memory_id)
        return Page("Deleted memory", _show_history(visit, changes, may_restore=False), 200)
    space = await _find_space(reach, known)
    may_change = visit.may_write and (space is None or space["role"] != SpaceRole.READER)
    body = paragraphs(
        tag("blockquote", show_text(known["memory"]), class_="text"),
        _facts(visit, known),
        _forms(visit, known, space) if may_change else tag("p", "You may only read it.", class_="soft"),
        tag("p", tag("a", "Source messages", href=visit.link_memory(memory_id, "sources"))),
        tag("h2", "History"),
        _show_history(visit, changes, may_restore=may_change),
        _ask_why(visit, memory_id),
    )
    return Page("Memory", body)


def _ask_why(visit: Visit, memory_id: str) -> Html:
    return paragraphs(
        tag("h2", "Why was it not found?"),
        visit.get(
            "/ui/missing",
            tag("input", type="hidden", name="id", value=memory_id),
            field_of("Search", "q", "", maxlength=2000, required=True),
            tag("button", "Explain"),
        ),
    )


def _open(memory: Memory, visit: Visit) -> Reach:
    """Return the memories of a request: an administrator may name a memory without its owner."""
    return visit.open(memory) or OwnMemories(memory, visit.ids)


async def _find_space(reach: Reach, known: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the space of a memory, with the role of the user."""
    name = known.get("space")
    if name is None or not isinstance(reach, AsyncPrincipal):
        return None
    return next((one for one in await reach.spaces() if one["space"] == name), None)


async def list_sources(memory: Memory, visit: Visit) -> Page:
    """Show the messages that a memory was learned from."""
    memory_id = visit.parts["memory_id"]
    known = await _open(memory, visit).get(memory_id)
    if known is None:
        raise NotFoundError(memory_id)
    space = known.get("space")  # of which the user is a member, or the memory would not be known
    ids: list[Any] = [known.get(axis) for axis in AXES]
    owner = Scope.from_stored(*ids) if space is None else space_scope(space, visit.ids["user_id"] or "")
    rows: list[list[Child]] = [
        [show_time(one["created_at"]), one["role"], one.get("name"), one.get("source"), show_text(one["content"])]
        for one in await asyncio.to_thread(_read_sources, memory, owner, memory_id)
    ]
    back = tag("p", tag("a", "The memory", href=visit.link_memory(memory_id)))
    heads = ["Time", "Role", "Name", "Source", "Message"]
    return Page(
        "Source messages",
        paragraphs(back, table(heads, rows, "Messages that it was learned from", "No message is kept.")),
    )


def _read_sources(memory: Memory, owner: Scope, memory_id: str) -> list[dict[str, Any]]:
    """Return the messages of a memory, from the records of its owner: memories precede messages there."""
    wanted: set[int] = set()
    found = []
    for one in memory.store.maintenance.iter_records(owner):
        if one["kind"] == "memory" and one["id"] == memory_id:
            wanted.update(one["messages"])
        elif one["kind"] == "message" and one["id"] in wanted:
            found.append(one)
            if len(found) == len(wanted):
                break
    return found


async def correct(memory: Memory, visit: Visit) -> Redirect:
    """Replace the text of a memory, by a new or an earlier one."""
    memory_id, text = visit.parts["memory_id"], visit.form.get("text", "")
    text, reach = text.replace("\r\n", "\n"), _open(memory, visit)  # as browsers send lines
    if change := visit.form.get("change"):
        changes = await reach.history(memory_id)
        text = next((one["old_memory"] or "" for one in changes if one["id"] == change), "")
    if not text.strip():
        raise HttpError(400, "the text is empty; delete the memory instead")
    done = await reach.update(memory_id, text)
    visit.session.note = (
        _WAITS if "pending_write" in done else "The memory is corrected. Its history has the earlier text."
    )
    return Redirect(visit.link_memory(memory_id))


async def pin(memory: Memory, visit: Visit) -> Redirect:
    """Pin a memory, or end this."""
    memory_id, is_pinned = visit.parts["memory_id"], visit.form.get("pinned") == "yes"
    await _open(memory, visit).pin(memory_id, is_pinned)
    visit.session.note = "The memory is pinned." if is_pinned else "The memory is no longer pinned."
    return Redirect(visit.link_memory(memory_id))


async def delete(memory: Memory, visit: Visit) -> Redirect:
    """Delete a memory, and keep it for undo while the session lasts."""
    memory_id, reach = visit.parts["memory_id"], _open(memory, visit)
    known = await reach.get(memory_id)
    if known is None:
        raise NotFoundError(memory_id)
    await _drop_erased(memory, visit)
    done = await reach.delete(memory_id)
    if "pending_write" in done:
        visit.session.note = _WAITS
        return Redirect(visit.link("/ui/spaces/one", space=known["space"]))
    visit.session.keep_deleted(known)
    visit.session.note = "The memory is deleted, with its source messages."
    return Redirect(visit.link("/ui/deleted"))


async def _drop_erased(memory: Memory, visit: Visit) -> None:
    with suppress(CapabilityError):  # a store without erasures
        visit.session.drop_erased(frozenset(receipt["id"] for receipt in await memory.aerasures()))


async def list_deleted(memory: Memory, visit: Visit) -> Page:
    """Show the memories that this session deleted."""
    await _drop_erased(memory, visit)
    reach = _open(memory, visit)
    spaces = {one["space"] for one in await reach.spaces()} if isinstance(reach, AsyncPrincipal) else set()
    rows: list[list[Child]] = [
        [
            show_text(shorten(one["memory"])),
            show_space(visit, one),
            visit.button(visit.link("/ui/undo"), "Undo", one["memory"], id=one["id"]),
        ]
        for one in reversed(visit.session.deleted.values())
        if one.get("space") is None or one["space"] in spaces  # a former member sees nothing of a space
    ]
    text = (
        "The last deletions of this session can be undone until it ends. A memory that comes back has a new id, and its"
        " own text as its source."
    )
    heads = ["Memory", "Space", "Undo"]
    return Page(
        "Undo",
        paragraphs(tag("p", text), table(heads, rows, "Deleted in this session", "Nothing was deleted in it.")),
    )


async def undo(memory: Memory, visit: Visit) -> Redirect:
    """Add a deleted memory again, unless an owner was erased since."""
    await _drop_erased(memory, visit)
    known = visit.session.deleted.get(visit.form.get("id", ""))
    if known is None:
        raise HttpError(404, "this session no longer has that memory")
    if known.get("space"):
        return await _undo_in_space(memory, visit, known)
    restored = {name: known[name] for name in _RESTORED if known.get(name) is not None}
    memory_id = new_id()  # stores never use an id again
    done = await memory.aadopt([{**restored, "id": memory_id}])
    if not done["added"]:
        raise HttpError(409, "another memory of this owner has the same text")
    visit.session.deleted.pop(known["id"], None)
    if known.get("pinned"):
        await memory.apin(memory_id, **visit.ids)
    visit.session.note = "The memory is back."
    return Redirect(visit.link_memory(memory_id))


async def _undo_in_space(memory: Memory, visit: Visit, known: Mapping[str, Any]) -> Redirect:
    """Add a deleted memory to its space again, with the rights of the user, who may no longer be a member."""
    principal, space = _open(memory, visit), known["space"]
    if not isinstance(principal, AsyncPrincipal):
        raise HttpError(400, "spaces belong to a user: name one, without an agent and a run")
    said = {"role": known.get("role") or "user", "content": known["memory"]}
    named = {**said, "name": known["actor_id"]} if known.get("actor_id") else said
    more = {"metadata": known["metadata"] or None, "timestamp": known["created_at"], "trust": known.get("trust")}
    note = "The memory is back."
    try:
        done = await principal.add([named], space=space, infer=False, **more)
    except AccessError:  # the words of another member, which an owner alone may add in their name
        done = await principal.add([said], space=space, infer=False, **more)
        note = "The memory is back, as said by you: an owner of the space alone may add the words of another member."
    visit.session.deleted.pop(known["id"], None)
    if "pending_write" in done:
        visit.session.note = _WAITS
        return Redirect(visit.link("/ui/spaces/one", space=space))
    visit.session.note = note
    added = next((one["id"] for one in done["results"]), None)
    if added is not None and known.get("pinned"):
        await principal.pin(added, True)
    return Redirect(visit.link_memory(added) if added else visit.link("/ui/spaces/one", space=space))


def _facts(visit: Visit, known: Mapping[str, Any]) -> Html:
    """Return the properties of a memory as a list of terms."""
    pairs: list[tuple[str, Child]] = [("Id", tag("code", known["id"])), ("Created", show_moment(known["created_at"]))]
    if known.get("space"):
        pairs.append(("Shared in", show_space(visit, known)))
    pairs += [(label, show_text(known[axis])) for axis, label in AXES.items() if known.get(axis)]
    if known.get("updated_at"):
        pairs.append(("Updated", show_moment(known["updated_at"])))
    names = {"role": "Role", "actor_id": "Said by", "trust": "Trust", "memory_type": "Type"}
    names |= {"expiration_date": "Expires"}
    pairs += [(label, show_text(known[name])) for name, label in names.items() if known.get(name)]
    if period := show_period(known):
        pairs.append(("Holds", period))
    if known.get("superseded_by"):
        pairs.append(("Ended by", tag("a", "another memory", href=visit.link_memory(known["superseded_by"]))))
    pairs += [(str(name), show_text(value)) for name, value in known["metadata"].items()]
    return tag("dl", [[tag("dt", name), tag("dd", value)] for name, value in pairs])


def _forms(visit: Visit, known: Mapping[str, Any], space: Mapping[str, Any] | None) -> Html:
    """Return the forms that change a memory, as far as the role of the user in its space allows it."""
    memory_id, text = known["id"], known["memory"]
    waits = space is not None and space["requires_approval"] and space["role"] != SpaceRole.OWNER
    shown = clean(text, is_marked=False)
    lost = tag("p", "Hidden characters of the text are left out here.", class_="note") if shown != text else None
    area = tag("textarea", "\n" + shown, name="text", rows=4, required=True, dir="auto")
    change: Child = visit.post(
        visit.link_memory(memory_id, "correct"),
        tag("label", "Correct it", area, class_="block"),
        lost,
        tag("button", "Save"),
    )
    if len(text) > MAX_FORM_CHARS:
        change = tag("p", "The text is too long to be corrected here.", class_="note")
    label, value = ("Unpin", "no") if known.get("pinned") else ("Pin", "yes")
    return tag(
        "section",
        tag("h2", "Change it"),
        tag("p", "A change waits until an owner of the space approves it.", class_="soft") if waits else None,
        change,
        None if waits else [visit.button(visit.link_memory(memory_id, "pin"), label, pinned=value), " "],
        visit.button(visit.link_memory(memory_id, "delete"), "Delete", look="danger"),
    )


def _show_history(visit: Visit, changes: Any, *, may_restore: bool) -> Html:
    rows: list[list[Child]] = []
    for one in changes:
        restore = None
        if may_restore and one["old_memory"]:
            action = visit.link_memory(one["memory_id"], "correct")
            restore = visit.button(action, "Restore", one["old_memory"], change=one["id"])
        shown = [show_text(one[name]) if one[name] else "" for name in ("old_memory", "new_memory")]
        rows.append([show_time(one["updated_at"] or one["created_at"]), one["event"], *shown, restore])
    return table(["Time", "Change", "Before", "After", "Undo"], rows, "Changes, oldest first")
