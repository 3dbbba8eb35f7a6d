"""One request as the pages see it, their replies, and the frame around each page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any
from urllib.parse import quote, urlencode

from mem0_core._system.records import dataclass
from mem0_core.memory import Memory
from mem0_core.server._problems import HttpError
from mem0_core.server._reach import Reach, open_reach
from mem0_core.server.inspector._markup import SCRIPT, Child, Html, clean, join, tag
from mem0_core.server.inspector._sessions import Session
from mem0_core.server.scope import ScopeIds, ServerScope

SHORT_CHARS = 600
AXES = {"user_id": "User", "agent_id": "Agent", "run_id": "Run"}
_PAGES = (
    ("/ui/", "Find"),
    ("/ui/spaces", "Spaces"),
    ("/ui/timeline", "Timeline"),
    ("/ui/relations", "Relations"),
    ("/ui/graph", "Graph"),
    ("/ui/missing", "Why not?"),
    ("/ui/merges", "Names"),
    ("/ui/jobs", "Queue"),
    ("/ui/deleted", "Undo"),
    ("/ui/data", "Data"),
    ("/ui/health", "Health"),
)


@dataclass(frozen=True, slots=True)
class Page:
    """A page to show."""

    title: str
    body: Html
    status: int = 200
    frames: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Redirect:
    """Another page to show."""

    path: str


@dataclass(frozen=True, slots=True)
class Download:
    """A file to save, or a document of its own."""

    content: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


Reply = Page | Redirect | Download


@dataclass(frozen=True, slots=True)
class Visit:
    """One request.

    Attributes:
        ids: Ids of the owner of the memories that it reaches.
        query, parts, form: Values of the query string, of the path, and of the form.
    """

    session: Session
    ids: ScopeIds
    query: Mapping[str, str]
    parts: Mapping[str, str]
    form: Mapping[str, str]
    path: str = "/ui/"

    @property
    def has_scope(self) -> bool:
        """True if there is an owner."""
        return any(self.ids.values())

    def open(self, memory: Memory) -> Reach | None:
        """Return the memories of its owner, for a user with those of their spaces; None without an owner."""
        return open_reach(memory, ServerScope(**self.ids)) if self.has_scope else None

    @property
    def may_write(self) -> bool:
        """True if its key may change memories."""
        return not self.session.key.is_read_only

    def require_admin(self) -> None:
        """Refuse keys that are bound to an owner, or may only read."""
        if not self.session.key.is_admin:
            raise HttpError(403, "only a key without a user, agent or run may do this")

    def link(self, path: str, **values: str | int | None) -> str:
        """Return the address of a page for the same owner."""
        bound = self.session.key.ids
        given = {axis: value for axis, value in self.ids.items() if value is not None and bound[axis] is None}
        query = urlencode({**given, **{key: value for key, value in values.items() if value is not None}})
        return f"{path}?{query}" if query else path

    def link_memory(self, memory_id: str, action: str = "") -> str:
        """Return the address of a memory, or of something to do with it."""
        return self.link(f"/ui/memory/{quote(memory_id, safe='')}{action and '/' + action}")

    def post(self, path: str, *children: Child, **attributes: str | None) -> Html:
        """Return a form that changes something; nothing if the key may only read."""
        if not self.may_write:
            return Html("")
        token = tag("input", type="hidden", name="token", value=self.session.form_token)
        return tag("form", token, *children, method="post", action=path, accept_charset="utf-8", **attributes)

    def button(
        self, path: str, label: str, /, about: str | None = None, look: str | None = None, **fields: str
    ) -> Html:
        """Return a form that is one button; `look` is the class of the button."""
        hidden = [tag("input", type="hidden", name=key, value=value) for key, value in fields.items()]
        name = f"{label}: {about[:80]}" if about else None
        return self.post(path, *hidden, tag("button", label, aria_label=name, class_=look), class_="inline")

    def get(self, path: str, *children: Child, **attributes: str | None) -> Html:
        """Return a form that asks for a page of the same owner."""
        owner = self.link("").removeprefix("?")  # encoded, so that a browser changes nothing of it
        given = tag("input", type="hidden", name="owner", value=owner) if owner else None
        return tag("form", given, *children, method="get", action=path, **attributes)


def frame(page: Page, visit: Visit | None) -> str:
    """Return the document of a page."""
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{page.title} - mem0-core"),
        tag("link", rel="stylesheet", href="/ui/style.css"),
        tag("link", rel="icon", href="/ui/icon.svg"),
        SCRIPT,
    )
    note = visit.session.take_note() if visit is not None else ""
    body = tag(
        "body",
        tag("a", "Skip to the content", class_="skip", href="#content"),
        _header(visit),
        tag(
            "main",
            tag("h1", page.title),
            tag("p", note, role="status", class_="note") if note else None,
            page.body,
            id="content",
            tabindex="-1",
        ),
    )
    return f"<!doctype html>{tag('html', head, body, lang='en')}"


def _header(visit: Visit | None) -> Html:
    name = tag("strong", "mem0-core")
    if visit is None:
        return tag("header", name)
    links = [
        tag("a", label, href=visit.link(path), aria_current=_say_current(path, visit.path))
        for path, label in _PAGES
        if path != "/ui/health" or visit.session.key.is_admin
    ]
    owner = ", ".join(f"{AXES[axis]} {value}" for axis, value in visit.ids.items() if value)
    role = "" if visit.may_write else " (read only)"
    token = tag("input", type="hidden", name="token", value=visit.session.form_token)
    leave = tag("form", token, tag("button", "Sign out"), method="post", action="/ui/sign-out", class_="inline")
    return tag(
        "header",
        name,
        tag("span", owner or "no owner chosen", role, class_="owner"),
        leave,
        tag("nav", tag("ul", [tag("li", link) for link in links]), aria_label="Pages"),
    )


def _say_current(path: str, current: str) -> str | None:
    """Return the relation of a page in the menu to the current one."""
    if path == current:
        return "page"
    return "true" if path != "/ui/" and current.startswith(f"{path}/") else None


def shorten(text: str) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= SHORT_CHARS else f"{text[:SHORT_CHARS]}…"


def show_text(text: object) -> Html:
    """Return a text as its own direction of writing."""
    return tag("bdi", str(text))


def show_time(time: object) -> Html:
    """Return a time: its day, with the rest as a title."""
    text = str(time) if time else ""
    return tag("time", text[:10], datetime=text, title=text) if text else tag("span", "…")


def show_moment(time: str) -> Html:
    """Return a time to the minute, with the rest as a title."""
    return tag("time", f"{time[:10]} {time[11:16]} UTC", datetime=time, title=time)


def show_period(thing: Mapping[str, Any]) -> Child:
    """Return the time in which something held."""
    first, last = thing.get("valid_from"), thing.get("valid_to")
    if last:
        return tag("span", show_time(first), " to ", show_time(last), class_="period")
    return tag("span", show_time(first), " to now", class_="period") if first else ""


def field_of(label: str, name: str, value: str | None = "", /, **attributes: str | int | bool | None) -> Html:
    """Return a labelled input."""
    return tag("label", label, " ", tag("input", name=name, value=clean(value or "", is_marked=False), **attributes))


def choice_of(label: str | None, name: str, options: list[str], chosen: str, **attributes: str) -> Html:
    """Return a list to choose from, with a label unless an attribute names it."""
    listed = [tag("option", one, value=one, selected=one == chosen) for one in options]
    select = tag("select", listed, name=name, **attributes)
    return select if label is None else tag("label", label, " ", select)


def table(heads: list[str], rows: list[list[Child]], caption: str, empty: str = "There is nothing here.") -> Html:
    """Return a table, whose rows are cards on a narrow screen; without rows, a sentence."""
    if not rows:
        return tag("p", empty, class_="soft")
    head = tag("tr", [tag("th", one, scope="col") for one in heads])
    body = [
        tag("tr", [tag("td", cell, data_label=name) for name, cell in zip(heads, row, strict=True)]) for row in rows
    ]
    return tag("table", tag("caption", caption), tag("thead", head), tag("tbody", body))


def paragraphs(*parts: Child) -> Html:
    """Return several parts as the body of a page."""
    return join(parts)
