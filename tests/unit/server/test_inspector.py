"""The inspector: its stories through an HTTP client, hostile texts, keys, and forged requests."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("httpx")

import httpx

from mem0_core import Memory, Principal
from mem0_core.server.inspector import build_inspector_app, listen_on_loopback
from mem0_core.server.inspector._app import FORM_PATHS
from mem0_core.server.inspector._markup import tag
from mem0_core.server.keys import ApiKey, KeyRing
from mem0_core.server.rest import build_rest_app

URL = "http://localhost:8766"
ALL = ApiKey("local", "local", "")
FORM = {"content-type": "application/x-www-form-urlencoded"}


class Browser:
    """A browser without scripts: it follows links, and sends forms with their hidden fields."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def open(self, path: str) -> str:
        """Return a page."""
        reply = await self.client.get(path)
        assert reply.status_code == 200, reply.text
        return str(reply.text)

    async def send(self, page: str, action: str, **fields: str) -> Any:
        """Send the form of a page whose address contains a text, with its hidden fields."""
        for form in re.findall(r'<form [^>]*method="post".*?</form>', page, re.DOTALL):
            target = html.unescape(re.search(r'action="([^"]*)"', form)[1])  # type: ignore[index]
            if action in target:
                hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', form)
                given = {name: html.unescape(value) for name, value in hidden} | fields
                return await self.client.post(target, data=given)
        raise AssertionError(f"the page has no form for {action}")


@asynccontextmanager
async def browse(memory: Memory, key: ApiKey = ALL) -> AsyncIterator[Browser]:
    app, path = build_inspector_app(memory, key=key)
    async with connect(app) as client:
        assert (await client.get(path)).status_code == 200
        yield Browser(client)


def connect(app: Any, **headers: str) -> Any:
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(transport=transport, base_url=URL, headers=headers, follow_redirects=True)


@pytest.fixture
async def maya(memory: Memory) -> AsyncIterator[Browser]:
    async with browse(memory, ApiKey("local", "local", "", user_id="maya")) as browser:
        yield browser


def learn(memory: Memory, text: str, user: str = "maya", **options: Any) -> str:
    """Add a text, and return the id of its memory."""
    return str(memory.add(text, user_id=user, **options)["results"][0]["id"])


async def test_a_search_shows_the_share_of_each_signal_in_its_score(memory: Memory, maya: Browser) -> None:
    learn(memory, "I live in Lisbon.")
    page = await maya.open("/ui/?q=Where+do+I+live%3F")
    assert "I live in Lisbon." in page
    shares = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)" height="10" class="s', page)]
    (found,) = memory.search("Where do I live?", user_id="maya", explain=True)["results"]
    assert sum(shares) == pytest.approx(1000 * found["score"] + 10 * page.count('class="key"'), abs=2)
    assert all(name.replace("_", " ") in page for name in found["explanation"]["signals"])


async def test_a_memory_is_corrected_and_its_earlier_text_restored(memory: Memory, maya: Browser) -> None:
    one = learn(memory, "I live in Lisbon.")
    page = (await maya.send(await maya.open(f"/ui/memory/{one}"), "/correct", text="I live in\r\nFaro.")).text
    known = memory.get(one)
    assert known is not None
    assert known["memory"] == "I live in\nFaro."
    assert "The memory is corrected." in page
    assert "I live in Lisbon." in page
    await maya.send(page.partition("<h2>History")[2], "/correct")
    restored = memory.get(one)
    assert restored is not None
    assert restored["memory"] == "I live in Lisbon."


async def test_a_deletion_is_undone_with_the_time_and_metadata_of_the_memory(memory: Memory, maya: Browser) -> None:
    one = learn(memory, "My sister Anna works at Galp.", metadata={"place": "office"}, timestamp="2024-05-01T10:00:00Z")
    memory.pin(one)
    page = (await maya.send(await maya.open(f"/ui/memory/{one}"), "/delete")).text
    assert memory.get(one) is None
    assert "My sister Anna works at Galp." in page
    assert "DELETE" in await maya.open(f"/ui/memory/{one}")
    assert (await maya.send(page, "/undo")).status_code == 200
    [back] = memory.get_all(user_id="maya")["results"]
    assert (back["memory"], back["metadata"]) == ("My sister Anna works at Galp.", {"place": "office"})
    assert back["created_at"].startswith("2024-05-01T10:00")
    assert back["pinned"]
    assert [one["destination"] for one in memory.relations(user_id="maya") if one["relationship"] == "works_at"] == [
        "Galp"
    ]
    assert (await maya.client.post("/ui/undo", data={"id": one})).status_code == 403


async def test_a_deletion_is_not_undone_after_an_erasure_elsewhere(memory: Memory, maya: Browser) -> None:
    one = learn(memory, "My sister Anna works at Galp.")
    page = (await maya.send(await maya.open(f"/ui/memory/{one}"), "/delete")).text
    memory.erase(user_id="maya", reason="request 4711")
    assert (await maya.send(page, "/undo")).status_code == 404
    assert "Anna" not in await maya.open("/ui/deleted")
    assert memory.get_all(user_id="maya")["results"] == []


async def test_the_source_messages_of_a_memory_are_shown(memory: Memory, maya: Browser) -> None:
    said = [{"role": "user", "name": "Maya", "content": "I live in Lisbon."}]
    one = learn(memory, "We met in June.", source="diary")
    [other] = memory.add(said, user_id="maya", run_id="r1", source="chat 7")["results"]
    page = await maya.open(f"/ui/memory/{other['id']}/sources")
    assert all(text in page for text in ("I live in Lisbon.", "chat 7", "Maya"))
    assert "diary" not in page
    assert "diary" in await maya.open(f"/ui/memory/{one}/sources")
    assert (await maya.client.get("/ui/memory/none/sources")).status_code == 404


async def test_a_missing_memory_is_explained(memory: Memory, maya: Browser) -> None:
    one = learn(memory, "I live in Lisbon.")
    found = memory.explain_missing("boats", one, user_id="maya", limit=20)
    page = await maya.open(f"/ui/missing?q=boats&id={one}")
    assert html.escape(found["detail"]) in page
    assert "unknown" in await maya.open("/ui/missing?q=boats&id=none")


async def test_the_timeline_and_the_relations_show_when_each_held(memory: Memory, maya: Browser) -> None:
    memory.add("I live in Lisbon.", user_id="maya", timestamp="2021-03-01T00:00:00Z")
    memory.add("I moved to Porto.", user_id="maya", timestamp="2023-06-01T00:00:00Z")
    page = await maya.open("/ui/timeline")
    row = next(one for one in page.split("<tr>") if "Lisbon" in one)
    assert "2021-03-01" in row
    assert "2023-06-01" in row
    now, then = await maya.open("/ui/relations"), await maya.open("/ui/relations?as_of=2022-01-01")
    assert "Porto" in now
    assert "Lisbon" not in now
    assert "Lisbon" in then
    assert "Porto" not in then
    assert "No relation is about" in await maya.open("/ui/relations?who=Anna")


async def test_names_that_mean_the_same_are_accepted_and_parted_again(memory: Memory, maya: Browser) -> None:
    memory.add("I met Robert Smith. Robert Smith works at Galp.", user_id="maya")
    memory.add("I met Robert Smiths. Robert Smiths lives in Porto.", user_id="maya")
    names = ["Robert Smith", "Robert Smiths"]
    found = memory.merge(user_id="maya")
    assert found["merges"] or found["same_as"]
    page = (await maya.send(await maya.open("/ui/merges"), "/merges/accept")).text
    assert "The names are merged." in page
    [merge] = memory.merges(user_id="maya")
    assert sorted([merge["name"], *merge["merged"]]) == names
    await maya.send(page, "/unmerge")
    assert memory.merges(user_id="maya")[0]["undone"]


async def test_a_failed_job_is_shown_with_its_error_and_retried(
    memory: Memory, maya: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [{"role": "user", "content": "I <b>ski</b>."}]
    job = {"id": "7", "kind": "add", "state": "failed", "attempts": 5, "error": "no <i>model</i>", "messages": said}
    retried: list[tuple[str, Any]] = []

    async def list_jobs(**ids: Any) -> list[dict[str, Any]]:
        return [{**job, "created_at": "2025-01-01T00:00:00+00:00", "user_id": ids["user_id"]}]

    async def retry(job_id: str, **ids: Any) -> None:
        retried.append((job_id, ids["user_id"]))

    monkeypatch.setattr(memory, "apending", list_jobs)
    monkeypatch.setattr(memory, "aretry", retry)
    page = await maya.open("/ui/jobs")
    assert "no &lt;i&gt;model&lt;/i&gt;" in page
    assert "I &lt;b&gt;ski&lt;/b&gt;." in page
    assert "queued again" in (await maya.send(page, "/jobs/retry")).text
    assert retried == [("7", "maya")]


async def test_the_health_of_the_store_is_shown_to_administrators_only(memory: Memory, maya: Browser) -> None:
    learn(memory, "I live in Lisbon.")
    assert (await maya.client.get("/ui/health")).status_code == 403
    async with browse(memory) as admin:
        assert "healthy: no problems were found" in await admin.open("/ui/health")


async def test_data_are_exported_and_erased_with_a_receipt(memory: Memory, maya: Browser) -> None:
    learn(memory, "I live in Lisbon.")
    learn(memory, "I live in Faro.", "ben")
    exported = await maya.client.get("/ui/export")
    assert "Lisbon" in exported.text
    assert "Faro" not in exported.text
    assert exported.headers["content-disposition"].startswith("attachment")
    page = await maya.open("/ui/data")
    assert (await maya.send(page, "/erase", reason="request 7", confirm="no")).status_code == 400
    receipt = (await maya.send(page, "/erase", reason="request 7", confirm="erase")).text
    assert "complete: no residue was found" in receipt
    assert "The signature is valid." in receipt
    assert memory.get_all(user_id="maya")["results"] == []
    assert memory.get_all(user_id="ben")["results"]


# --- hostile texts ---------------------------------------------------------------------------------------------------

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</textarea><svg onload=alert(1)>",
    "\" autofocus onfocus=alert(1) x='",
    "javascript:alert(1) <a href='javascript:alert(1)'>x</a>",
    "\x1b]0;title\x07\x1b[31mred",
    "safe \u202egnp.exe\u2066 text\u2069\u200b",
    "&lt;b&gt; &amp;amp; <!-- ]]> \u2028 {{data}}",
]


class Markup(HTMLParser):
    """The elements and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, element: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((element, dict(attributes)))


def check_inert(page: str) -> None:
    """Check that a page has no element, attribute, address or hidden character of a stored text."""
    for element, attributes in Markup(page).found:
        assert element not in ("img", "style", "object", "base")
        assert not any(name.startswith("on") or name == "style" for name in attributes), attributes
        for name in ("href", "src", "action"):
            assert attributes.get(name, "/ui/").startswith(("/ui", "#")), attributes  # type: ignore[union-attr]
        if element == "script":
            assert attributes == {"src": "/ui/script.js", "defer": None}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028]", page)


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_texts_come_out_inert(memory: Memory, text: str) -> None:
    owner = f"maya {text}"
    one = learn(memory, text, owner, infer=False, metadata={"note": text})
    memory.add(f"My sister works at {text[:40]}.", user_id=owner)
    async with browse(memory, ApiKey("local", "local", "", user_id=owner)) as browser:
        paths = ["/ui/", "/ui/timeline", "/ui/relations?ended=1", "/ui/merges", "/ui/data", "/ui/jobs", "/ui/graph"]
        pages = [await browser.open(path) for path in [*paths, f"/ui/memory/{one}"]]
        for path in ("/ui/", "/ui/missing", "/ui/timeline", "/ui/relations", "/ui/graph"):
            asked = {"q": text, "id": text, "who": text, "entity": text, "as_of": ""}
            pages.append((await browser.client.get(path, params=asked)).text)
        pages.append((await browser.send(pages[7], "/delete")).text)
        for page in pages:
            check_inert(page)


async def test_a_text_of_a_megabyte_is_shown(memory: Memory, maya: Browser) -> None:
    one = learn(memory, "<b>" + "wide " * 200_000, infer=False)
    page = await maya.open(f"/ui/memory/{one}")
    assert len(page) > 1_000_000
    assert "too long to be corrected here" in page
    assert len(await maya.open("/ui/")) < 10_000
    check_inert(page)


@pytest.mark.parametrize(
    "attributes", [{"onclick": "x"}, {"style": "x"}, {"href": "javascript:alert(1)"}, {"action": "//evil.example"}]
)
def test_markup_that_could_run_code_is_refused(attributes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="page"):
        tag("a", "x", **attributes)


# --- keys and forged requests ----------------------------------------------------------------------------------------

CHANGES = ("correct", "delete", "pin")


async def test_forms_of_a_space_do_no_more_than_the_role_of_the_user(memory: Memory) -> None:
    ann = Principal(memory, "ann")
    ann.create_space("team", requires_approval=True)
    ann.set_member("team", "bob", "writer")
    ann.set_member("team", "cat", "reader")
    kept = ann.add("We deploy on Thursday.", space="team")["results"][0]["id"]
    write = Principal(memory, "bob").add("Nobody reviews.", space="team")["pending_write"]
    before = memory.stats(), ann.members("team"), ann.pending_writes("team"), ann.spaces()
    fields = {"space": "team", "member": "cat", "role": "owner", "id": write, "verdict": "accept", "approval": "no"}
    forms = ["approval", "member", "remove", "settle", "erase"]
    for user, refused in (("bob", forms), ("cat", [*forms, "add"]), ("dan", [*forms, "add"])):
        async with browse(memory, ApiKey("local", "local", "", user_id=user)) as browser:
            token = re.search(r'name="token" value="(\w+)"', await browser.open("/ui/"))[1]  # type: ignore[index]
            for form in refused:
                given = {**fields, "token": token, "text": "mine", "confirm": "team"}
                given["member"] = "ann" if form == "remove" else given["member"]
                reply = await browser.client.post(f"/ui/spaces/{form}", data=given)
                assert reply.status_code == 403, (user, form, reply.text)
            shown = await browser.client.get("/ui/spaces/one?space=team")
            assert (shown.status_code, "We deploy" in shown.text) == ((404, False) if user == "dan" else (200, True))
            assert ("Nobody reviews." in shown.text) is (user == "bob")
            one = await browser.client.get(f"/ui/memory/{kept}")
            assert one.status_code == (404 if user == "dan" else 200)
            assert ("Save" in one.text) is (user == "bob")
            sources = await browser.client.get(f"/ui/memory/{kept}/sources")
            assert ("We deploy" in sources.text) is (user != "dan")
    assert (memory.stats(), ann.members("team"), ann.pending_writes("team"), ann.spaces()) == before


async def test_a_deletion_in_a_space_is_undone_with_the_rights_of_the_member(memory: Memory) -> None:
    ann = Principal(memory, "ann")
    ann.create_space("team")
    ann.set_member("team", "bob", "writer")
    kept = ann.add("We deploy on Thursday.", space="team", metadata={"place": "office"}, timestamp="2024-05-01")
    one = kept["results"][0]["id"]
    for user in ("bob", "ann"):  # an owner alone may add the words of another member
        async with browse(memory, ApiKey("local", "local", "", user_id=user)) as browser:
            page = (await browser.send(await browser.open(f"/ui/memory/{one}"), "/delete")).text
            assert ann.get_all(own=False)["results"] == []
            assert "Undo" in page
            assert "We deploy on Thursday." in page
            assert (await browser.send(page, "/undo")).status_code == 200
        [back] = ann.get_all(own=False)["results"]
        one = back["id"]
        assert (back["memory"], back["space"]) == ("We deploy on Thursday.", "team")
        assert (back["actor_id"], back["metadata"]) == ("bob", {"place": "office"})
        assert back["created_at"].startswith("2024-05-01")


async def test_a_former_member_neither_sees_nor_undoes_deletions_of_the_space(memory: Memory) -> None:
    ann = Principal(memory, "ann")
    ann.create_space("team")
    ann.set_member("team", "bob", "writer")
    one = ann.add("We deploy on Thursday.", space="team")["results"][0]["id"]
    async with browse(memory, ApiKey("local", "local", "", user_id="bob")) as browser:
        page = (await browser.send(await browser.open(f"/ui/memory/{one}"), "/delete")).text
        ann.remove_member("team", "bob")
        assert "We deploy" not in await browser.open("/ui/deleted")
        assert (await browser.send(page, "/undo")).status_code == 403
    assert ann.get_all(own=False)["results"] == []


async def test_a_member_asks_why_a_memory_of_a_space_was_not_found(memory: Memory) -> None:
    ann = Principal(memory, "ann")
    ann.create_space("team")
    one = ann.add("We deploy on Thursday.", space="team")["results"][0]["id"]
    async with browse(memory, ApiKey("local", "local", "", user_id="ann")) as browser:
        assert "Why was it not found?" in await browser.open(f"/ui/memory/{one}")
        assert "it is result 1 of 1" in await browser.open(f"/ui/missing?q=When+do+we+deploy&id={one}")
    async with browse(memory, ApiKey("local", "local", "", user_id="eve")) as browser:
        assert "unknown" in await browser.open(f"/ui/missing?q=When+do+we+deploy&id={one}")


@pytest.mark.parametrize("narrow", [{"agent_id": "helper"}, {"user_id": "ann", "run_id": "one"}])
async def test_a_session_of_an_agent_or_a_run_has_no_spaces(memory: Memory, narrow: dict[str, Any]) -> None:
    ann = Principal(memory, "ann")
    ann.create_space("team")
    ann.add("We deploy on Thursday.", space="team")
    async with browse(memory, ApiKey("local", "local", "", **narrow)) as browser:
        assert "spaces belong to a user" in await browser.open("/ui/spaces")
        assert "Thursday" not in await browser.open("/ui/?q=When+do+we+deploy")
        token = re.search(r'name="token" value="(\w+)"', await browser.open("/ui/"))[1]  # type: ignore[index]
        reply = await browser.client.post("/ui/spaces/add", data={"token": token, "space": "team", "text": "mine"})
        assert reply.status_code == 400


async def test_a_read_only_key_changes_nothing(memory: Memory, keys: KeyRing) -> None:
    one = learn(memory, "I live in Lisbon.")
    before = memory.stats()
    secret, key = keys.create("reader", user_id="maya", is_read_only=True)
    async with connect(build_rest_app(memory, keys)) as client:
        page = (await client.post("/ui/sign-in", data={"key": secret})).text
        token = re.search(r'name="token" value="(\w+)"', page)[1]  # type: ignore[index]
        fields = {"token": token, "text": "mine", "reason": "mine", "confirm": "erase", "id": one}
        paths = [path.replace("{memory_id}", one) for path in FORM_PATHS]
        assert len(paths) > 12
        assert {(await client.post(path, data=fields)).status_code for path in paths} == {403}
        shown = (await client.get(f"/ui/memory/{one}")).text
        assert "/correct" not in shown
        assert "I live in Lisbon." in shown
        keys.revoke(key.id)
        assert "Sign in" in (await client.get(f"/ui/memory/{one}")).text
    assert memory.stats() == before


async def test_a_key_reaches_only_its_owner(memory: Memory, maya: Browser) -> None:
    one = learn(memory, "My PIN is quagga.", "ben")
    token = re.search(r'name="token" value="(\w+)"', await maya.open("/ui/"))[1]  # type: ignore[index]
    for path in (f"/ui/memory/{one}", "/ui/?user_id=ben", "/ui/export?owner=user_id%3Dben", "/ui/?user_id=*"):
        reply = await maya.client.get(path)
        assert reply.status_code in (403, 404)
        assert "quagga" not in reply.text
    for change in CHANGES:
        reply = await maya.client.post(f"/ui/memory/{one}/{change}", data={"token": token, "text": "mine"})
        assert reply.status_code == 404
    known = memory.get(one)
    assert known is not None
    assert known["memory"] == "My PIN is quagga."


async def test_the_limits_of_a_key_hold_for_its_session(memory: Memory, keys: KeyRing) -> None:
    secret, _ = keys.create("small", user_id="maya", requests_per_minute=3, max_body_bytes=100)
    async with connect(build_rest_app(memory, keys)) as client:
        page = (await client.post("/ui/sign-in", data={"key": secret})).text
        token = re.search(r'name="token" value="(\w+)"', page)[1]  # type: ignore[index]
        reply = await client.post("/ui/undo", data={"token": token, "id": "x" * 100})
        assert reply.status_code == 413
        replies = [await client.get("/ui/jobs") for _ in range(3)]
        assert replies[-1].status_code == 429
        assert int(replies[-1].headers["retry-after"]) > 0


async def test_forged_requests_are_refused(memory: Memory) -> None:
    one = learn(memory, "I live in Lisbon.")
    app, path = build_inspector_app(memory)
    async with connect(app) as client:
        assert "Sign in" in (await client.get("/ui/")).text
        token = re.search(r'name="token" value="(\w+)"', (await client.get(path)).text)[1]  # type: ignore[index]
        again = connect(app)
        assert (await again.get(path)).status_code == 401, "the address works once"
        forms: list[tuple[dict[str, str], dict[str, str]]] = [
            ({"text": "mine"}, {}),
            ({"token": "x" * 64}, {}),
            ({"token": token}, {"origin": "http://evil.example"}),
            ({"token": token}, {"origin": "null"}),
            ({"token": token}, {"sec-fetch-site": "same-site"}),
            ({"token": token}, {"host": "evil.example"}),
        ]
        for fields, headers in forms:
            reply = await client.post(f"/ui/memory/{one}/delete", data=fields, headers=headers)
            assert reply.status_code in (403, 421)
        reply = await client.post(f"/ui/memory/{one}/delete", content=b"token=" + b"x" * 2**21, headers=FORM)
        assert reply.status_code == 413
        assert (await client.post(f"/ui/memory/{one}/delete", json={"token": token})).status_code == 415
        assert (await client.get(f"/ui/memory/{one}/delete")).status_code == 405
    assert memory.get(one) is not None


async def test_pages_have_a_strict_policy_and_cookies_stay_with_them(memory: Memory) -> None:
    app, path = build_inspector_app(memory)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=URL) as client:
        reply = await client.get(path)
        cookie = reply.headers["set-cookie"].casefold()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "path=/ui" in cookie
        page = await client.get(reply.headers["location"])
    assert "unsafe" not in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"


def test_the_inspector_listens_on_this_machine_only(tmp_path: Path) -> None:
    with listen_on_loopback(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        with pytest.raises(ValueError, match="port"):
            listen_on_loopback(listening.getsockname()[1])


async def test_a_server_of_several_processes_says_how_to_get_the_pages(memory: Memory) -> None:
    async with connect(build_rest_app(memory, None, workers=2)) as client:
        for path in ("/ui/", "/ui/graph"):
            reply = await client.get(path)
            assert reply.status_code == 501
            assert "--workers 1" in reply.json()["detail"]
