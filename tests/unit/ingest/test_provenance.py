"""The messages that facts came from: as the model names them, if their words agree."""

from __future__ import annotations

import pytest

from mem0_core.domain.records import Message
from mem0_core.ingest._provenance import SourceFinder

TALK = [
    Message("system", "Be brief."),
    Message("user", "I moved to Porto in May."),
    Message("assistant", "Porto is lovely! Do you have any pets?"),
    Message("user", "Her name is Jesica."),
    Message("user", "My sister has a dog, and I like green tea."),
    Message("assistant", "Green tea is healthy."),
    Message("tool", "I like green tea."),
]


def sources(text: str, *named: int, talk: list[Message] = TALK, role: str = "user") -> tuple[int, ...]:
    return SourceFinder(talk, role).find_sources(text, named)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Moved to Porto in May", (1,)),
        ("Likes green tea", (4,)),
        ("Jesica has a dog", (3, 4)),
        ("Has a sister named Jesica", (3, 4)),
        ("Sisters", (4,)),
        ("Portobello", (1,)),
        ("Xyzzy", (4,)),
        ("", (4,)),
    ],
)
def test_without_a_named_message_the_words_decide(text: str, expected: tuple[int, ...]) -> None:
    assert sources(text) == expected


def test_a_named_message_is_a_place_among_those_of_users_and_assistants() -> None:
    assert sources("Moved to Porto in May", 0) == (1,)
    assert sources("Likes Porto", 1) == (2,)
    assert sources("Jesica has a dog", 2, 3) == (3, 4)


def test_a_named_message_with_other_words_is_not_believed() -> None:
    assert sources("Moved to Porto in May", 1) == (1,)
    assert sources("Likes green tea", 0, 99, -1) == (4,)


def test_a_named_message_is_believed_if_no_message_has_the_words() -> None:
    assert sources("Es vegetariana", 2) == (3,)


def test_every_message_that_tells_the_whole_fact_is_a_source() -> None:
    talk = [Message("user", "I like tea."), Message("assistant", "So you like tea!"), Message("user", "Tea at five?")]
    assert sources("Likes tea", talk=talk) == (0, 1)


def test_the_agents_facts_prefer_its_own_messages() -> None:
    talk = [Message("user", "Tea?"), Message("assistant", "Tea."), Message("user", "Good.")]
    assert sources("Xyzzy", talk=talk, role="assistant") == (1,)


def test_one_message_is_the_source_of_everything() -> None:
    assert sources("Xyzzy", 5, talk=[Message("system", "a"), Message("user", "b")]) == (1,)
    assert sources("Xyzzy", talk=[Message("tool", "a")]) == ()
    assert sources("Xyzzy", talk=[]) == ()
