"""Markup that is escaped by construction: a text becomes markup only through `tag`, which escapes it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
_ADDRESSES = frozenset({"action", "formaction", "href", "src"})
_REFUSED = frozenset({"script", "style", "object", "embed", "base"})
# Controls but tab and line feed, bidirectional controls, invisible separators and tags, and lone surrogates.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_JOINERS = "\u200c\u200d"  # part of words in Persian and of emoji


class Html(str):
    """Markup that is safe to send; only this module makes it."""

    __slots__ = ()


SCRIPT = Html('<script src="/ui/script.js" defer></script>')
"""The one script of the pages."""

Child = str | int | float | None | Iterable["Child"]


def tag(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """Return an element. Underscores in the names of attributes are hyphens; a final one is dropped.

    Raises:
        ValueError: The element or an attribute could run code, or an address is not one of these pages.
    """
    if name in _REFUSED:
        raise ValueError(f"<{name}> is not part of a page")
    opening = "".join([name, *(_attribute(key, value) for key, value in attributes.items())])
    return Html(f"<{opening}>") if name in _VOID else Html(f"<{opening}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Html:
    """Return children as one piece of markup; each text among them is escaped."""
    return Html("".join(map(_render, children)))


def clean(text: str, *, is_marked: bool = True) -> str:
    """Return a text with each hidden character as its code point, or without them."""
    return _HIDDEN.sub(lambda found: _mark(found[0]) if is_marked or found[0] in _JOINERS else "", text)


def _mark(sign: str) -> str:
    return sign if sign in _JOINERS else f"[U+{ord(sign):04X}]"


def _render(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    if isinstance(child, (str, int, float)):
        return escape(clean(str(child)))
    return join(child)


def _attribute(key: str, value: str | int | float | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    if name.startswith("on") or name in ("style", "srcdoc"):
        raise ValueError(f"the attribute {name} is not part of a page")
    if value is None or value is False:
        return ""
    text = "" if value is True else str(value)
    if name in _ADDRESSES and not re.match(r"/ui(?![^/?#])|#", text):
        raise ValueError(f"{name} leads out of these pages: {text[:40]!r}")
    return f' {name}="{escape(clean(text))}"'
