"""Spaces: memory that a team shares, by `Principal`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from mem0_core import AccessError, AsyncPrincipal, InputError, Memory, NotFoundError, Principal, ScopeError
from mem0_core.testing import HashEmbedder

Call: TypeAlias = Callable[..., Any]


class _Awaited:
    """An `AsyncPrincipal` whose methods run to their end."""

    def __init__(self, principal: AsyncPrincipal) -> None:
        self._principal = principal

    def __getattr__(self, name: str) -> Call:
        method = getattr(self._principal, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            return asyncio.run(method(*args, **kwargs))

        return call


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(path=tmp_path, embedder=HashEmbedder()) as memory:
        yield memory


@pytest.fixture(params=["sync", "async"])
def act_as(request: pytest.FixtureRequest, memory: Memory) -> Call:
    """Return the principal of a user."""

    def make(user_id: str) -> Any:
        return Principal(memory, user_id) if request.param == "sync" else _Awaited(AsyncPrincipal(memory, user_id))

    return make


@pytest.fixture
def ann(act_as: Call) -> Any:
    """The owner of the space `team`, in which bob writes and cy reads."""
    ann = act_as("ann")
    ann.create_space("team")
    ann.set_member("team", "bob", "writer")
    ann.set_member("team", "cy", "reader")
    return ann


def texts(result: Any) -> list[tuple[str, str | None]]:
    return sorted((one["memory"], one["space"]) for one in result["results"])


def test_a_member_recalls_their_own_memories_and_those_of_their_spaces(ann: Any, act_as: Call) -> None:
    ann.add("We deploy on Friday", space="team")
    cy = act_as("cy")
    cy.add("I deploy my garden robot on Monday")
    found = cy.search("When do we deploy?")
    assert texts(found) == [("I deploy my garden robot on Monday", None), ("We deploy on Friday", "team")]
    assert [one["score"] for one in found["results"]] == sorted(
        (one["score"] for one in found["results"]), reverse=True
    )
    assert texts(cy.get_all()) == texts(found)
    assert texts(cy.search("deploy", own=False)) == [("We deploy on Friday", "team")]
    assert texts(cy.search("deploy", spaces=[])) == [("I deploy my garden robot on Monday", None)]
    assert texts(ann.search("deploy")) == [("We deploy on Friday", "team")]
    shared = next(one for one in found["results"] if one["space"])
    assert (shared["actor_id"], shared.get("user_id")) == ("ann", None)
    assert "mem0.internal" not in repr(found)


def test_why_a_shared_memory_was_not_found_is_explained_to_members(ann: Any, act_as: Call) -> None:
    kept = ann.add("We deploy on Friday", space="team")["results"][0]["id"]
    cy = act_as("cy")
    assert cy.explain_missing("When do we deploy?", kept)["reason"] == "found"
    own = cy.add("When do we deploy? On Monday")["results"][0]["id"]
    [best] = cy.search("When do we deploy?", limit=1)["results"]
    lost = kept if best["id"] == own else own
    assert cy.explain_missing("When do we deploy?", lost, limit=1)["reason"] == "below_limit"
    assert cy.explain_missing("When do we deploy?", kept, filters={"place": "office"})["reason"] == "filtered"
    ann.delete(kept)
    assert cy.explain_missing("When do we deploy?", kept)["reason"] == "deleted"


def test_context_and_answer_name_the_space(ann: Any, act_as: Call) -> None:
    ann.add("My sister lives in Lyon", space="team")
    cy = act_as("cy")
    cy.add("I like tea")
    context = cy.context("sister in Lyon, tea")
    assert '"space":"team"' in context["text"].replace(" ", "")
    assert {one["space"] for one in context["memories"]} <= {None, "team"}
    answer = cy.answer("Where does my sister live?")
    assert (answer["space"], answer["answer"]) == ("team", "Lyon")
    assert [one["space"] for one in answer["memories"]] == ["team"]


def test_a_past_or_ended_statement_is_found_where_it_is_asked_for(ann: Any, act_as: Call) -> None:
    bob = act_as("bob")
    bob.add("We deploy from Lisbon.", space="team", timestamp="2024-02-01")
    later = bob.add("We deploy from Porto.", space="team", timestamp="2025-03-01")["results"][0]["id"]
    bob.update(later, "We deploy from Oslo.")
    past = bob.context("Where do we deploy from?", as_of="2024-06-01", own=False)
    assert [one["memory"] for one in past["memories"]] == ["We deploy from Lisbon."]
    assert bob.context("Where do we deploy from?", threshold=1.0)["memories"] == []
    found = bob.search("Where do we deploy from?", include_superseded=True, own=False)["results"]
    assert {one["memory"] for one in found} >= {"We deploy from Lisbon.", "We deploy from Oslo."}


def test_a_text_of_a_model_keeps_its_trust_in_a_space(ann: Any, act_as: Call) -> None:
    bob = act_as("bob")
    bob.add("Anna leads the release.", space="team", trust="assistant")
    ann.set_approval("team", True)
    ann.approve(bob.add("The release needs two reviewers.", space="team", trust="tool")["pending_write"])
    bob.add("I lead it.", trust="import")
    found = {one["memory"]: one["trust"] for one in bob.get_all()["results"]}
    assert found == {
        "Anna leads the release.": "assistant",
        "The release needs two reviewers.": "tool",
        "I lead it.": "import",
    }
    with pytest.raises(InputError, match="trust"):
        bob.add("Nothing.", space="team", trust="nobody")
    assert ann.pending_writes("team") == []


def test_no_writer_speaks_for_another_member(ann: Any, act_as: Call) -> None:
    bob = act_as("bob")
    forged = [{"role": "user", "name": "cy", "content": "I leave the team."}]
    with pytest.raises(AccessError, match="may not add messages of 'cy'"):
        bob.add(forged, space="team")
    bob.add([{"role": "user", "name": "Guest", "content": "The office is in Faro."}], space="team")
    ann.add([{"role": "user", "name": "cy", "content": "I prefer tea."}], space="team")
    ann.set_approval("team", True)
    ann.approve(bob.add(forged, space="team")["pending_write"])
    found = {one["memory"]: one["actor_id"] for one in bob.get_all()["results"]}
    assert found == {"The office is in Faro.": "Guest", "I prefer tea.": "cy", "I leave the team.": "cy"}


def test_a_stranger_gets_nothing(ann: Any, act_as: Call, tmp_path: Path) -> None:
    added = ann.add("The launch code is 4711", space="team")["results"][0]["id"]
    eve = act_as("eve")
    assert eve.search("launch code")["results"] == []
    assert eve.get_all()["results"] == []
    assert eve.get(added) is None
    assert eve.history(added) == []
    assert eve.explain_missing("launch code", added)["reason"] == "unknown"
    assert eve.changes()["results"] == []
    assert eve.answer("What is the launch code?")["answer"] is None
    assert eve.context("launch code")["text"] == ""
    assert eve.spaces() == []
    calls: list[Call] = [
        lambda: eve.update(added, "mine"),
        lambda: eve.delete(added),
        lambda: eve.pin(added),
        lambda: eve.feedback(added, True),
    ]
    for call in calls:
        with pytest.raises(NotFoundError):
            call()
    for space in ("team", "unknown"):
        calls = [
            lambda: eve.search("launch", spaces=[space]),  # noqa: B023
            lambda: eve.add("hello", space=space),  # noqa: B023
            lambda: eve.members(space),  # noqa: B023
            lambda: eve.pending_writes(space),  # noqa: B023
            lambda: eve.set_member(space, "eve", "owner"),  # noqa: B023
            lambda: eve.remove_member(space, "ann"),  # noqa: B023
            lambda: eve.delete_space(space),  # noqa: B023
            lambda: eve.export(tmp_path / "out.jsonl", space=space),  # noqa: B023
        ]
        for call in calls:
            with pytest.raises(AccessError) as refused:
                call()
            assert str(refused.value) == f"'eve' is not a member of a space {space!r}"
    assert ann.get(added)["memory"] == "The launch code is 4711"


def test_no_user_id_reaches_a_space(memory: Memory, ann: Any) -> None:
    ann.add("We deploy on Friday", space="team")
    for user_id in ("mem0.internal:space/team", "space/team", "team"):
        try:
            assert memory.search("deploy", user_id=user_id)["results"] == []
        except ScopeError:
            assert user_id.startswith("mem0.internal:")
    with pytest.raises(ScopeError):
        Principal(memory, "mem0.internal:space/team")
    with pytest.raises(ScopeError):
        ann.search("deploy", filters={"user_id": "ann"})
    with pytest.raises(InputError):
        memory.add("I ski", user_id="eve", source="mem0.internal:member/ann")


def test_roles_bound_what_a_member_may_do(ann: Any, act_as: Call) -> None:
    added = act_as("bob").add("We deploy on Friday", space="team")["results"][0]["id"]
    cy = act_as("cy")
    assert cy.get(added)["space"] == "team"
    assert [row["event"] for row in cy.history(added)] == ["ADD"]
    calls: list[Call] = [
        lambda: cy.add("I write", space="team"),
        lambda: cy.update(added, "mine"),
        lambda: cy.delete(added),
        lambda: cy.pin(added),
        lambda: cy.feedback(added, True),
        lambda: cy.set_member("team", "cy", "owner"),
        lambda: act_as("bob").delete_space("team"),
        lambda: act_as("bob").set_approval("team", True),
    ]
    for call in calls:
        with pytest.raises(AccessError):
            call()
    ann.set_member("team", "cy", "writer")
    cy.update(added, "We deploy on Monday")
    assert cy.feedback(added, True) == {"id": added, "useful": 1, "useless": 0}
    assert (ann.get(added)["memory"], ann.get(added)["useful"]) == ("We deploy on Monday", 1)
    cy.delete(added)
    assert ann.get(added) is None


def test_a_removed_member_sees_nothing_at_once(ann: Any, act_as: Call) -> None:
    added = ann.add("We deploy on Friday", space="team")["results"][0]["id"]
    cy = act_as("cy")
    assert texts(cy.search("deploy")) == [("We deploy on Friday", "team")]
    ann.remove_member("team", "cy")
    assert cy.search("deploy")["results"] == []
    assert cy.get(added) is None
    assert cy.changes()["results"] == []


def test_writes_wait_for_approval(ann: Any, act_as: Call) -> None:
    ann.set_approval("team", True)
    bob = act_as("bob")
    added = bob.add("We deploy on Friday", space="team", metadata={"topic": "release"})
    assert added["results"] == []
    assert ann.search("deploy")["results"] == bob.search("deploy")["results"] == []
    [write] = ann.pending_writes("team")
    assert (write["id"], write["author"], write["kind"]) == (added["pending_write"], "bob", "add")
    assert bob.pending_writes("team") == [write]
    assert act_as("cy").pending_writes("team") == []
    for member in (bob, act_as("cy"), act_as("eve")):
        with pytest.raises(AccessError):
            member.approve(write["id"])
    [memory] = ann.approve(write["id"])["results"]
    assert ann.pending_writes("team") == []
    found = bob.search("deploy")["results"][0]
    assert (found["id"], found["actor_id"], found["metadata"]) == (memory["id"], "bob", {"topic": "release"})
    events = [(one["event"], one["actor_id"], one["space"]) for one in bob.changes()["results"]]
    assert events == [("PROPOSE", "bob", "team"), ("ADD", "bob", "team"), ("APPROVE", "ann", "team")]
    assert ann.add("Owners need no approval", space="team")["results"]


def test_changes_of_memories_wait_for_approval_too(ann: Any, act_as: Call) -> None:
    added = ann.add("We deploy on Friday", space="team")["results"][0]["id"]
    ann.set_approval("team", True)
    bob = act_as("bob")
    update = bob.update(added, "We deploy on Monday")["pending_write"]
    stale = bob.update(added, "We deploy on Sunday")["pending_write"]
    assert ann.get(added)["memory"] == "We deploy on Friday"
    ann.approve(update)
    assert ann.get(added)["memory"] == "We deploy on Monday"
    with pytest.raises(InputError, match="has changed since"):
        ann.approve(stale)
    bob.reject(stale)
    delete = bob.delete(added)["pending_write"]
    assert ann.get(added) is not None
    ann.reject(delete)
    assert ann.pending_writes("team") == []
    ann.approve(bob.delete(added)["pending_write"])
    assert ann.get(added) is None


def test_deleting_a_space_leaves_no_trace(ann: Any, act_as: Call, memory: Memory, tmp_path: Path) -> None:
    ann.set_approval("team", True)
    ann.add("The launch code is 4711", space="team")
    act_as("bob").add("The second code is 4712", space="team")
    receipt = ann.delete_space("team")
    assert receipt["complete"], [probe for probe in receipt["probes"] if probe["found"]]
    assert act_as("bob").spaces() == []
    assert memory.get_all(user_id="ann")["results"] == []
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(code in file.read_bytes() for file in files for code in (b"launch code", b"second code"))


def test_erasing_a_user_erases_what_they_wrote_in_spaces(ann: Any, act_as: Call, memory: Memory) -> None:
    bob = act_as("bob")
    bob.add("I bring the red umbrella", space="team")
    ann.add("We deploy on Friday", space="team")
    bob.create_space("only bob")
    assert memory.erase(user_id="bob", reason="request 1")["complete"]
    assert texts(ann.get_all()) == [("We deploy on Friday", "team")]
    assert [member["user_id"] for member in ann.members("team")] == ["ann", "cy"]
    assert ann.create_space("only bob")["role"] == "owner"
    assert "bob" not in repr(ann.changes())


def test_the_last_owner_cannot_leave(ann: Any) -> None:
    with pytest.raises(InputError, match="no owner"):
        ann.remove_member("team", "ann")
    with pytest.raises(InputError, match="no owner"):
        ann.set_member("team", "ann", "reader")


def test_arguments_are_checked(ann: Any, memory: Memory) -> None:
    for name in ("", " team", "a/b", "x" * 101, "a\nb", None, 7):
        with pytest.raises(InputError):
            ann.create_space(name)
    with pytest.raises(InputError, match="exists already"):
        ann.create_space("team")
    with pytest.raises(InputError, match="unknown role"):
        ann.set_member("team", "dan", "admin")
    with pytest.raises(InputError, match="list of names"):
        ann.search("deploy", spaces="team")
    for user_id in ("", "*", None, "u" * 201):
        with pytest.raises(ScopeError):
            Principal(memory, user_id)  # type: ignore[arg-type]


def test_the_export_of_a_member_has_the_texts_of_the_space(ann: Any, act_as: Call, tmp_path: Path) -> None:
    ann.add("We deploy on Friday", space="team")
    cy = act_as("cy")
    cy.add("I like tea")
    cy.export(tmp_path / "own.jsonl")
    cy.export(tmp_path / "team.jsonl", space="team")
    own, team = ((tmp_path / f"{name}.jsonl").read_text(encoding="utf-8") for name in ("own", "team"))
    assert ("I like tea" in own, "We deploy" in own) == (True, False)
    assert ("I like tea" in team, "We deploy" in team) == (False, True)


def test_both_principals_have_the_same_methods() -> None:
    def public(owner: type) -> dict[str, inspect.Signature]:
        methods = {name: method for name, method in vars(owner).items() if not name.startswith("_")}
        return {name: inspect.signature(method) for name, method in methods.items()}

    assert public(Principal) == public(AsyncPrincipal)
