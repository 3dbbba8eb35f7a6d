"""Pages of spaces: members and their roles, writes that wait for approval, and the memories that a team shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mem0_core.domain.spaces import SpaceRole
from mem0_core.memory import Memory
from mem0_core.server._problems import HttpError
from mem0_core.server.inspector._find import list_memories
from mem0_core.server.inspector._markup import Child, Html, tag
from mem0_core.server.inspector._visit import (
    Page,
    Redirect,
    Visit,
    choice_of,
    field_of,
    paragraphs,
    shorten,
    show_text,
    show_time,
    table,
)
from mem0_core.views import AsyncPrincipal

MAX_WRITES = 100
_ROLES = [role.value for role in SpaceRole]
_KINDS = {"add": "wants to add", "update": "wants to change", "delete": "wants to delete"}


async def list_spaces(memory: Memory, visit: Visit) -> Page:
    """List the spaces of a user."""
    principal = visit.open(memory)
    if not isinstance(principal, AsyncPrincipal):
        return _ask_user(visit)
    rows: list[list[Child]] = []
    for one in await principal.spaces():
        name, waiting = one["space"], len(await principal.pending_writes(one["space"]))
        members = len(await principal.members(name))
        link = tag("a", show_text(name), href=visit.link("/ui/spaces/one", space=name))
        rows.append([link, one["role"], members, _say_approval(one), f"{waiting} waiting" if waiting else "none"])
    form = visit.post(
        visit.link("/ui/spaces/create"),
        field_of("Name", "space", "", required=True, maxlength=100),
        tag("label", tag("input", type="checkbox", name="approval", value="yes"), " Writes wait for approval"),
        tag("button", "Create"),
    )
    heads = ["Space", "Your role", "Members", "Writes", "Waiting"]
    return Page(
        "Spaces",
        paragraphs(
            tag("p", "A space is memory that a team shares. Its members recall it together with their own memories."),
            table(heads, rows, "Spaces of this user", "This user is not a member of a space yet."),
            tag("h2", "New space") if form else None,
            form,
        ),
    )


async def create(memory: Memory, visit: Visit) -> Redirect:
    """Create a space."""
    name = visit.form.get("space", "").strip()
    await _open(memory, visit).create_space(name, requires_approval=visit.form.get("approval") == "yes")
    return _return(visit, name, "The space is created, and you own it.")


async def show(memory: Memory, visit: Visit) -> Page:
    """Show one space."""
    principal, name = _open(memory, visit), visit.query.get("space", "")
    one = next((each for each in await principal.spaces() if each["space"] == name), None)
    if one is None:
        raise HttpError(404, "this user is not a member of a space of that name")
    is_owner = one["role"] == SpaceRole.OWNER
    writes = await principal.pending_writes(name)
    cards = [_show_write(visit, write, is_owner=is_owner) for write in writes[:MAX_WRITES]]
    waits = one["requires_approval"]
    label, value = ("Let writes take effect", "no") if waits else ("Let writes wait for approval", "yes")
    none = tag("p", "No write waits for approval.", class_="soft")
    return Page(
        name,
        paragraphs(
            tag("p", "You are ", tag("strong", one["role"]), ". Writes of other members ", _say_approval(one), "."),
            visit.button(visit.link("/ui/spaces/approval"), label, space=name, approval=value) if is_owner else None,
            tag("h2", f"Waiting for approval ({len(writes)})"),
            tag("ol", cards, class_="cards") if cards else none,
            tag("h2", "Members"),
            _show_members(visit, name, await principal.members(name), is_owner=is_owner),
            tag("h2", "Memories"),
            _add_form(visit, one),
            await list_memories(memory, visit, space=name),
            _erase_form(visit, name) if is_owner and visit.may_write else None,
        ),
    )


async def add(memory: Memory, visit: Visit) -> Redirect:
    """Add a text to a space."""
    name, text = visit.form.get("space", ""), visit.form.get("text", "").replace("\r\n", "\n")
    done = await _open(memory, visit).add(text, space=name, infer=False)
    waits = "pending_write" in done
    return _return(visit, name, "The text waits until an owner approves it." if waits else "The text is remembered.")


async def set_approval(memory: Memory, visit: Visit) -> Redirect:
    """Let the writes of a space wait for approval, or not."""
    name, waits = visit.form.get("space", ""), visit.form.get("approval") == "yes"
    await _open(memory, visit).set_approval(name, waits)
    return _return(visit, name, "Writes now wait for approval." if waits else "Writes no longer wait for approval.")


async def set_member(memory: Memory, visit: Visit) -> Redirect:
    """Add a member, or change a role."""
    name, role = visit.form.get("space", ""), visit.form.get("role", "")
    member = visit.form.get("member", "").strip()
    await _open(memory, visit).set_member(name, member, role)  # type: ignore[arg-type]  # checked there
    return _return(visit, name, f"{member} is now {role}.")


async def remove_member(memory: Memory, visit: Visit) -> Redirect:
    """Remove a member, or leave a space."""
    principal, name, member = _open(memory, visit), visit.form.get("space", ""), visit.form.get("member", "")
    await principal.remove_member(name, member)
    if member != principal.user_id:
        return _return(visit, name, f"{member} is no longer a member.")
    visit.session.note = "You have left the space."
    return Redirect(visit.link("/ui/spaces"))


async def settle(memory: Memory, visit: Visit) -> Redirect:
    """Approve or reject a write."""
    principal, write, name = _open(memory, visit), visit.form.get("id", ""), visit.form.get("space", "")
    if visit.form.get("verdict") == "accept":
        await principal.approve(write)
        return _return(visit, name, "The write is accepted.")
    await principal.reject(write)
    return _return(visit, name, "The write is dropped.")


async def erase(memory: Memory, visit: Visit) -> Redirect:
    """Erase a space."""
    name = visit.form.get("space", "")
    if visit.form.get("confirm", "").strip() != name:
        raise HttpError(400, "nothing was erased: type the name of the space to confirm")
    done = await _open(memory, visit).delete_space(name)
    visit.session.receipts.append(dict(done))
    visit.session.note = "The space is erased." if done["complete"] else "It is erased, and residue was found."
    return Redirect(visit.link("/ui/receipt", id=done["id"]))


# --- Parts -----------------------------------------------------------------------------------------------------------


def _open(memory: Memory, visit: Visit) -> AsyncPrincipal:
    """Return the principal of a request.

    Raises:
        HttpError: 400, without a user, or with another id too.
    """
    principal = visit.open(memory)
    if not isinstance(principal, AsyncPrincipal):
        raise HttpError(400, "spaces belong to a user: name one, without an agent and a run")
    return principal


def _ask_user(visit: Visit) -> Page:
    text = "Spaces belong to a user. Name one, without an agent and a run."
    if any(visit.session.key.ids.values()):
        text = "This session is for one agent or run, or for a store without spaces; spaces belong to a user."
        return Page("Spaces", tag("p", text))
    form = tag("form", field_of("User", "user_id", ""), tag("button", "Show"), method="get", action="/ui/spaces")
    return Page("Whose spaces?", paragraphs(tag("p", text), form))


def _return(visit: Visit, space: str, note: str) -> Redirect:
    visit.session.note = note
    return Redirect(visit.link("/ui/spaces/one", space=space))


def _say_approval(space: Mapping[str, Any]) -> str:
    return "wait for approval" if space["requires_approval"] else "take effect"


def _show_write(visit: Visit, write: Mapping[str, Any], *, is_owner: bool) -> Html:
    """Return one pending write, with the buttons of the reader."""
    given, kind, name = write["arguments"], write["kind"], write["space"]
    texts = [_say(one, write["author"]) for one in given["messages"]] if kind == "add" else [given.get("data", "")]
    before = given.get("previous")
    fields = {"id": write["id"], "space": name}
    about = f"{kind} of {write['author']}"
    action = visit.link("/ui/spaces/settle")
    buttons: list[Child] = [visit.button(action, "Withdraw", about, **fields, verdict="reject")]
    if is_owner:
        buttons = [
            visit.button(action, "Accept", about, **fields, verdict="accept"),
            " ",
            visit.button(action, "Reject", about, **fields, verdict="reject"),
        ]
    return tag(
        "li",
        tag("p", show_text(write["author"]), f" {_KINDS[kind]} · ", show_time(write["created_at"]), class_="soft"),
        tag("p", tag("del", show_text(shorten(before)))) if before else None,
        [tag("p", show_text(shorten(text))) for text in texts if text],
        tag("p", buttons),
        class_="card",
    )


def _say(message: Mapping[str, Any], author: str) -> str:
    """Return the text of a message, which may have parts, with its speaker if that is not the author."""
    content, speaker = message["content"], message.get("name") or message["role"]
    text = content if isinstance(content, str) else " ".join(str(part.get("text", "[image]")) for part in content)
    return text if speaker == author else f"{speaker}: {text}"


def _show_members(visit: Visit, space: str, members: Any, *, is_owner: bool) -> Html:
    rows: list[list[Child]] = []
    for one in members:
        whom, is_self = one["user_id"], one["user_id"] == visit.ids["user_id"]
        fields = {"space": space, "member": whom}
        role: Child = one["role"]
        if is_owner and visit.may_write:
            hidden = [tag("input", type="hidden", name=key, value=value) for key, value in fields.items()]
            select = choice_of(None, "role", _ROLES, one["role"], aria_label=f"Role of {whom}")
            save = tag("button", "Save", aria_label=f"Save the role of {whom}")
            role = visit.post(visit.link("/ui/spaces/member"), hidden, select, " ", save, class_="inline")
        leave: Child = None
        if is_owner or is_self:
            leave = visit.button(visit.link("/ui/spaces/remove"), "Leave" if is_self else "Remove", whom, **fields)
        rows.append([[show_text(whom), " (you)" if is_self else None], role, show_time(one["since"]), leave])
    form = visit.post(
        visit.link("/ui/spaces/member"),
        tag("input", type="hidden", name="space", value=space),
        field_of("User", "member", "", required=True, maxlength=200),
        choice_of("Role", "role", _ROLES, "reader"),
        tag("button", "Add the member"),
    )
    heads = ["Member", "Role", "Since", "Remove"]
    return paragraphs(table(heads, rows, "Members, longest-standing first"), form if is_owner else None)


def _add_form(visit: Visit, space: Mapping[str, Any]) -> Html | None:
    if space["role"] == SpaceRole.READER:
        return None
    area = tag("textarea", name="text", rows=2, required=True, dir="auto")
    return visit.post(
        visit.link("/ui/spaces/add"),
        tag("input", type="hidden", name="space", value=space["space"]),
        tag("label", "Add a memory", area, class_="block"),
        tag("button", "Add"),
    )


def _erase_form(visit: Visit, space: str) -> Html:
    return paragraphs(
        tag("h2", "Erase the space"),
        visit.post(
            visit.link("/ui/spaces/erase"),
            tag("p", "This erases its memories, members and waiting writes for everybody, and cannot be undone."),
            tag("input", type="hidden", name="space", value=space),
            field_of("Type the name of the space", "confirm", "", required=True, autocomplete="off"),
            tag("button", "Erase", class_="danger"),
        ),
    )
