"""The inspector in a browser, if there is one: its stories by clicks and keys, accessibility, and hostile texts.

The tests need Chromium (Debian: ``apt-get install chromium``) and skip without. With ``MEM0_ARTIFACTS`` set, a picture
of each page that a story ends with is kept there.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")

from mem0_core import Memory, Principal, Scope
from mem0_core.domain.records import Event, RelationChange, Triplet
from mem0_core.server.keys import KeyRing
from mem0_core.server.rest import build_rest_app
from mem0_core.testing import HashEmbedder
from tests.services.chromium import CHROMIUM, Tab, open_chromium

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
AUDIT = r"""(() => {
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
const kinds = "a[href], button, input:not([type=hidden]), textarea, select, summary, iframe";
const controls = [...document.querySelectorAll(kinds)].filter(visible);
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
return { problems, controls: controls.length, dark: matchMedia("(prefers-color-scheme: dark)").matches };
})()"""


WIDE, PHONE_AND_DARK = (1300, 900, False), (390, 844, True)


class Person:
    """A person who uses the inspector with a browser; each page that they check is accessible."""

    def __init__(self, tab: Tab, origin: str, artifacts: Path | None) -> None:
        self.tab, self._origin, self._artifacts = tab, origin, artifacts

    def open(self, path: str) -> None:
        """Open a page."""
        self.tab.open(f"{self._origin}{path}")

    def check(self, name: str) -> None:
        """Check that the page is accessible and ran nothing that is stored, and keep a picture of it."""
        if self._artifacts is not None:
            (self._artifacts / f"inspector-{name}.png").write_bytes(self.tab.draw())
        audit = self.tab.run(AUDIT)
        assert audit["problems"] == [], name
        assert audit["controls"] > 10
        assert not self.tab.run("document.documentElement.hasAttribute('data-ran')")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_chromium(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


@pytest.fixture
def origin(memory: Memory) -> Iterator[str]:
    """Yield the origin of a running server without keys."""
    with serve(build_rest_app(memory, None)) as origin:
        yield origin


@contextmanager
def serve(app: Any) -> Iterator[str]:
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def maya(browser: Any, origin: str) -> Person:
    """Return a person with a wide screen."""
    person = Person(browser.open_tab(), origin, find_artifacts())
    person.tab.resize(*WIDE[:2])
    return person


def find_artifacts() -> Path | None:
    return Path(kept) if (kept := os.environ.get("MEM0_ARTIFACTS")) else None


def learn(memory: Memory, text: str, **options: Any) -> str:
    return str(memory.add(text, user_id="maya", **options)["results"][0]["id"])


# --- stories ---------------------------------------------------------------------------------------------------------


def test_a_memory_is_found_by_keys_alone(memory: Memory, maya: Person) -> None:
    learn(memory, "I live in Lisbon.")
    learn(memory, "I drink tea.")
    maya.open("/ui/?user_id=maya")
    maya.tab.press("/")
    assert maya.tab.run("document.activeElement.id") == "search"
    maya.tab.call("Input.insertText", text="Where do I live?")
    maya.tab.press("Enter")
    maya.tab.see("Score")
    maya.check("find")
    maya.tab.run("document.querySelector('.card a').focus()")
    maya.tab.press("Enter")
    maya.tab.see("Change it")
    assert maya.tab.run("document.querySelector('blockquote').innerText") == "I live in Lisbon."
    maya.open("/ui/?user_id=maya")
    maya.tab.press("Tab")
    assert maya.tab.run("document.activeElement.className") == "skip", "the first key leads to the content"


def test_a_memory_is_corrected_and_its_earlier_text_comes_back(memory: Memory, maya: Person) -> None:
    one = learn(memory, "I live in Lisbon.")
    maya.open(f"/ui/memory/{one}?user_id=maya")
    maya.tab.fill("Correct it", "I live in Faro.")
    maya.tab.click("Save")
    maya.tab.see("The memory is corrected.")
    maya.check("correct")
    assert texts(memory) == ["I live in Faro."]
    maya.tab.click("Restore")
    maya.tab.wait("document.querySelector('blockquote').innerText === 'I live in Lisbon.'")
    assert texts(memory) == ["I live in Lisbon."]


def test_a_deletion_is_undone(memory: Memory, maya: Person) -> None:
    one = learn(memory, "My sister Anna works at Galp.")
    maya.open(f"/ui/memory/{one}?user_id=maya")
    maya.tab.click("Delete")
    maya.tab.see("with its source messages")
    maya.check("undo")
    assert texts(memory) == []
    maya.tab.click("Undo: My sister Anna")
    maya.tab.see("The memory is back.")
    assert texts(memory) == ["My sister Anna works at Galp."]


def test_a_memory_is_pinned(memory: Memory, maya: Person) -> None:
    maya.open(f"/ui/memory/{learn(memory, 'I live in Lisbon.')}?user_id=maya")
    maya.tab.click("Pin")
    maya.tab.see("The memory is pinned.")
    assert memory.get_all(user_id="maya")["results"][0]["pinned"]
    maya.tab.click("Unpin")
    maya.tab.see("no longer pinned")


def test_a_missing_memory_is_explained(memory: Memory, maya: Person) -> None:
    maya.open(f"/ui/memory/{learn(memory, 'I drink tea.')}?user_id=maya")
    maya.tab.fill("Search", "Where do I live?")
    maya.tab.click("Explain")
    maya.tab.see("Rank in each source")
    maya.check("why-not")


def test_the_timeline_and_the_relations_of_a_day_show_what_held(memory: Memory, maya: Person) -> None:
    learn(memory, "I live in Lisbon.", timestamp="2021-03-01T00:00:00Z")
    learn(memory, "I moved to Porto.", timestamp="2023-06-01T00:00:00Z")
    maya.open("/ui/timeline?user_id=maya")
    maya.tab.see("2021-03-01 to 2023-06-01")
    maya.check("timeline")
    maya.tab.click("Relations")
    maya.tab.see("Relations now")
    maya.tab.run("document.querySelector('[name=as_of]').value = '2022-01-01'")
    maya.tab.click("Show")
    maya.tab.see("Relations as of 2022-01-01")
    shown = maya.tab.run("document.querySelector('tbody').innerText")
    assert "Lisbon" in shown
    assert "Porto" not in shown
    maya.check("relations")


def test_names_are_merged_and_the_merge_undone(memory: Memory, maya: Person) -> None:
    memory.add("I met Robert Smith. Robert Smith works at Galp.", user_id="maya")
    memory.add("I met Robert Smiths. Robert Smiths lives in Porto.", user_id="maya")
    maya.open("/ui/merges?user_id=maya")
    maya.tab.see("Call it Robert Smith")
    maya.check("names")
    maya.tab.click("Call it Robert Smith")
    maya.tab.see("The names are merged.")
    maya.tab.click("Undo: ")
    maya.tab.see("The merge is undone.")


def test_an_owner_is_exported_and_erased_with_a_receipt(memory: Memory, maya: Person, tmp_path: Path) -> None:
    learn(memory, "I live in Lisbon.")
    maya.open("/ui/data?user_id=maya")
    maya.check("data")
    maya.tab.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    maya.tab.click("Download")
    maya.tab.wait_for(lambda: (tmp_path / "memories.jsonl").exists())
    assert "Lisbon" in (tmp_path / "memories.jsonl").read_text()
    maya.tab.fill("Reason for the receipt", "request 7")
    maya.tab.fill("Type the word erase", "erase")
    maya.tab.click("Erase everything")
    maya.tab.see("The signature is valid.")
    maya.check("receipt")
    assert texts(memory) == []


def test_the_queue_and_the_health_of_the_store_are_shown(memory: Memory, maya: Person) -> None:
    learn(memory, "I live in Lisbon.")
    maya.open("/ui/jobs?user_id=maya")
    maya.tab.see("No job waits")
    maya.check("queue")
    maya.tab.click("Health")
    maya.tab.see("healthy: no problems were found")
    maya.check("health")


def test_a_person_signs_in_with_a_key_that_may_only_read(memory: Memory, browser: Any, keys: KeyRing) -> None:
    one = learn(memory, "I live in Lisbon.")
    secret = keys.create("reader", user_id="maya", is_read_only=True)[0]
    with serve(build_rest_app(memory, keys)) as origin:
        reader = Person(browser.open_tab(), origin, None)
        reader.open(f"/ui/memory/{one}")
        reader.tab.fill("API key", secret)
        reader.tab.click("Sign in")
        reader.tab.see("(read only)")
        reader.open(f"/ui/memory/{one}")
        reader.tab.see("You may only read it.")
        reader.check("read-only")
        reader.tab.click("Sign out")
        reader.tab.see("API key")


def test_a_space_is_created_shared_and_reviewed(memory: Memory, maya: Person) -> None:
    maya.open("/ui/spaces?user_id=maya")
    maya.tab.see("not a member of a space yet")
    maya.tab.fill("Name", "release team")
    maya.tab.click("Writes wait for approval")
    maya.tab.click("Create")
    maya.tab.see("you own it")
    maya.tab.fill("User", "bob")
    maya.tab.choose("Role", "writer")
    maya.tab.click("Add the member")
    maya.tab.see("bob is now writer.")
    maya.tab.fill("Add a memory", "We deploy on Thursday.")
    maya.tab.click("Add")
    maya.tab.see("The text is remembered.")

    bob = Principal(memory, "bob")
    for text in ("The release needs two reviewers.", "Nobody reviews."):
        bob.add(text, space="release team")
    maya.open("/ui/spaces?user_id=maya")
    maya.tab.see("2 waiting")
    maya.tab.click("release team")
    maya.tab.see("Waiting for approval (2)")
    maya.check("space")
    maya.tab.click("Accept: add of bob")
    maya.tab.see("The write is accepted.")
    maya.tab.click("Reject: add of bob")
    maya.tab.see("No write waits for approval.")
    shared = [one["memory"] for one in bob.get_all()["results"]]
    assert shared == ["We deploy on Thursday.", "The release needs two reviewers."]

    maya.open("/ui/?user_id=maya&q=Who+reviews+the+release")
    maya.tab.see("Score")
    assert maya.tab.run("document.querySelector('.card .badge').innerText") == "release team"
    assert "bob" in maya.tab.run("document.querySelector('.card').innerText")
    maya.check("find-shared")

    maya.open("/ui/spaces/one?user_id=maya&space=release+team")
    maya.tab.fill("Type the name of the space", "release team")
    maya.tab.click("Erase")
    maya.tab.see("The signature is valid.")
    assert bob.get_all()["results"] == []


def test_a_writer_proposes_withdraws_and_leaves(memory: Memory, maya: Person) -> None:
    ann = Principal(memory, "ann")
    ann.create_space("team", requires_approval=True)
    ann.set_member("team", "maya", "writer")
    kept = ann.add("We deploy on Thursday.", space="team")["results"][0]["id"]
    maya.open(f"/ui/memory/{kept}?user_id=maya")
    maya.tab.fill("Correct it", "We deploy on Friday.")
    maya.tab.click("Save")
    maya.tab.see("Nothing has changed yet")
    maya.tab.click("team")
    maya.tab.see("wants to change")
    maya.check("propose")
    maya.tab.click("Withdraw")
    maya.tab.see("No write waits for approval.")
    maya.tab.click("Leave")
    maya.tab.see("You have left the space.")
    maya.open(f"/ui/memory/{kept}?user_id=maya")
    maya.tab.see("Not Found")
    assert [one["memory"] for one in ann.get_all()["results"]] == ["We deploy on Thursday."]


def texts(memory: Memory) -> list[str]:
    return [one["memory"] for one in memory.get_all(user_id="maya")["results"]]


# --- every page ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("screen", [WIDE, PHONE_AND_DARK], ids=["wide", "phone-dark"])
def test_nothing_that_is_stored_runs_and_every_page_is_accessible(
    memory: Memory, maya: Person, screen: tuple[int, int, bool]
) -> None:
    for text in HOSTILE:
        memory.add(text, user_id="maya", infer=False)
    one = learn(memory, "I live in Lisbon. My sister Anna works at Galp.")
    learn(memory, "supercalifragilistic" * 40, infer=False)
    owner, bob = Principal(memory, "maya"), Principal(memory, "bob")
    name = HOSTILE[2].replace("/", "")
    owner.create_space(name, requires_approval=True)
    owner.set_member(name, "bob", "writer")
    owner.set_member(name, HOSTILE[2], "reader")
    shared = owner.add(HOSTILE[0], space=name, infer=False)["results"][0]["id"]
    for text in [*HOSTILE, "long " * 1_000]:
        bob.add(text, space=name)
    bob.update(shared, HOSTILE[3])
    space = f"spaces/one?{urlencode({'space': name})}&"
    maya.tab.resize(screen[0], screen[1], is_dark=screen[2])
    pages = ["?", "?q=Where+do+I+live&", f"memory/{one}?", f"memory/{shared}?", f"memory/{one}/sources?", "timeline?"]
    pages += ["relations?", "missing?", "merges?", "jobs?", "deleted?", "data?", "health?", "spaces?", space]
    for number, page in enumerate(pages):
        maya.open(f"/ui/{page}user_id=maya")
        assert maya.tab.run("matchMedia('(prefers-color-scheme: dark)').matches") is screen[2]
        maya.check(f"page-{number:02}-{screen[0]}")


def test_a_graph_of_two_hundred_nodes_draws_under_the_strict_policy(memory: Memory, maya: Person) -> None:
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
    maya.open("/ui/graph/drawing?user_id=maya")
    maya.tab.wait("document.body.dataset.drawn === 'yes'")
    assert maya.tab.run("document.body.dataset.nodes") == "200"
    maya.open("/ui/graph?user_id=maya")
    maya.tab.wait("document.readyState === 'complete'")
    maya.check("graph")


def test_ten_thousand_memories_are_shown_page_by_page(memory: Memory, maya: Person) -> None:
    at = "2025-01-01T00:00:00+00:00"
    texts = {f"lamp-{number}": f"I bought lamp number {number}." for number in range(10_000)}
    memory.adopt([{"id": id, "memory": text, "user_id": "maya", "created_at": at} for id, text in texts.items()])
    maya.open("/ui/?user_id=maya")
    maya.tab.see("Next page")
    assert maya.tab.run("document.querySelectorAll('tbody tr').length") == 50
    assert maya.tab.run("document.querySelectorAll('*').length") < 1_000
    maya.tab.click("Next page")
    maya.tab.see("Earlier page")
    assert maya.tab.run("document.querySelector('tbody').innerText").startswith("I bought lamp number 50.")
    maya.open("/ui/?user_id=maya&q=lamp+number+777")
    maya.tab.see("Score")
    assert maya.tab.run("document.querySelectorAll('.card').length") == 20
