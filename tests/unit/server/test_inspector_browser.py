"""The inspector in a browser, if there is one: nothing stored runs, the graph draws, and pages are accessible.

The tests need Chromium (Debian: ``apt-get install chromium``) and skip without.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from mem0_core import Memory, Scope
from mem0_core.domain.records import Event, RelationChange, Triplet
from mem0_core.server.rest import build_rest_app
from mem0_core.testing import HashEmbedder

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)"),
]
RUN = "document.documentElement.setAttribute('data-ran','yes')"
HOSTILE = [
    f"<script>{RUN}</script>",
    f"</title></textarea></script><script>{RUN}</script>",
    f'<img src=x onerror="{RUN}">',
    f'" autofocus onfocus="{RUN}" x=\'',
    f'<svg onload="{RUN}"><a href="javascript:{RUN}">x</a></svg>',
]
AUDIT = r"""
const visible = (element) => element.getClientRects().length > 0 && !element.closest(".skip, thead");
const nameOf = (element) => (element.getAttribute("aria-label") || (element.labels && [...element.labels]
  .map((label) => label.textContent).join(" ")) || element.textContent || element.title || "").trim();
const channels = (color) => color.match(/[\d.]+/g).map(Number);
const luminance = (color) => channels(color).slice(0, 3).map((value) => value / 255)
  .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
  .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
const backOf = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor, parts = channels(color);
    if (parts.length < 4 || parts[3] > 0) return color;
  }
  return "rgb(255, 255, 255)";
};
const controls = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), textarea, summary, iframe")]
  .filter(visible);
const texts = [...document.querySelectorAll("body *")].filter((element) => visible(element) &&
  [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
const contrast = (element) => {
  const [one, other] = [getComputedStyle(element).color, backOf(element)].map(luminance).sort((a, b) => b - a);
  return (one + 0.05) / (other + 0.05);
};
const problems = [];
for (const control of controls) if (!nameOf(control)) problems.push(`no name: ${control.outerHTML.slice(0, 80)}`);
for (const text of texts) if (contrast(text) < 4.5) problems.push(`contrast ${contrast(text)}: ${text.textContent}`);
for (const element of document.querySelectorAll("[tabindex]"))
  if (element.tabIndex > 0) problems.push(`order of focus: ${element.outerHTML.slice(0, 80)}`);
for (const control of controls) {
  control.focus();
  if (document.activeElement !== control) problems.push(`no focus: ${control.outerHTML.slice(0, 80)}`);
}
for (const [name, count] of [["h1", 1], ["main", 1], ["nav", 1], ["title", 1]])
  if (document.querySelectorAll(name).length !== count) problems.push(`${name}: not ${count}`);
if (!document.documentElement.lang) problems.push("no language");
for (const table of document.querySelectorAll("table"))
  if (!table.caption || !table.querySelector("th[scope]")) problems.push("a table without heads or caption");
if (document.documentElement.scrollWidth > innerWidth) problems.push(`wider than ${innerWidth}`);
document.body.dataset.audit = JSON.stringify({ problems, controls: controls.length, width: innerWidth,
  dark: matchMedia("(prefers-color-scheme: dark)").matches });
"""

Show = Callable[..., str]


class Audited:
    """Application that adds one more script of the same origin to each page."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == "/ui/audit.js":
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/javascript")]}
            )
            await send({"type": "http.response.body", "body": AUDIT.encode()})
            return

        async def extend(event: Any) -> None:
            if event["type"] == "http.response.start":
                event["headers"] = [one for one in event["headers"] if one[0].lower() != b"content-length"]
            elif event.get("body", b"").endswith(b"</main></body></html>"):
                event["body"] = event["body"].replace(b"</body>", b'<script src="/ui/audit.js" defer></script></body>')
            await send(event)

        await self._app(scope, receive, extend)


@pytest.fixture
def show(memory: Memory, tmp_path: Path) -> Iterator[Show]:
    """Yield a function that returns the document that Chromium makes of an address."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(Audited(build_rest_app(memory, None)), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        yield lambda path, *options: run_chromium(f"{origin}{path}", tmp_path / "profile", *options)
        server.should_exit = True
        thread.join()


def run_chromium(url: str, profile: Path, *options: str) -> str:
    assert CHROMIUM is not None
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions"),
        *("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--virtual-time-budget=10000"),
        *(f"--user-data-dir={profile}", *options, "--dump-dom", url),
    ]
    return subprocess.run(command, check=True, timeout=180, capture_output=True, text=True).stdout


def test_nothing_that_is_stored_runs_in_a_browser(memory: Memory, show: Show) -> None:
    ids = [memory.add(text, user_id="maya", infer=False)["results"][0]["id"] for text in HOSTILE]
    for path in ("/ui/?user_id=maya", f"/ui/memory/{ids[1]}", f"/ui/memory/{ids[3]}"):
        page = show(path)
        assert "data-audit=" in page, "scripts of the pages themselves run"
        assert 'data-ran="yes"' not in page


def test_a_graph_of_two_hundred_nodes_draws_under_the_strict_policy(memory: Memory, show: Show) -> None:
    pytest.importorskip("pyvis")
    embedder = HashEmbedder()
    (vector,) = embedder.embed(["anything"])
    changes = [
        RelationChange(
            Event.ADD,
            Triplet(f"node {number // 3}", "knows", f"node {number}"),
            vectors=(vector, vector, vector),
            effective_at="2025-01-01T00:00:00+00:00",
        )
        for number in range(1, 200)
    ]
    at, space = "2025-01-01T00:00:00+00:00", (embedder.name, embedder.dims)
    memory.store.commit((), relations=changes, scope=Scope("maya"), at=at, embedding_space=space)
    page = show("/ui/graph/drawing?user_id=maya")
    assert 'data-drawn="yes"' in page
    assert 'data-nodes="200"' in page


WIDE, NARROW_AND_DARK = (
    ("--window-size=1300,900",),
    ("--window-size=500,900", "--blink-settings=preferredColorScheme=0"),
)


@pytest.mark.parametrize("options", [WIDE, NARROW_AND_DARK])
def test_pages_are_accessible_at_each_width_and_in_dark(memory: Memory, show: Show, options: tuple[str, ...]) -> None:
    memory.add("I live in Lisbon. My sister Anna works at Galp.", user_id="maya")
    one = memory.add("I moved to Porto.", user_id="maya")["results"][0]["id"]
    for page in ("?q=Where+do+I+live&", f"memory/{one}?", "timeline?", "data?"):
        path = f"/ui/{page}user_id=maya"
        found = re.search(r'data-audit="([^"]*)"', show(path, *options))
        assert found is not None
        audit = json.loads(html.unescape(found[1]))
        assert audit["problems"] == [], path
        assert audit["controls"] > 10
        assert audit["dark"] is (len(options) > 1)
