"""Synthetic memories by the hundred thousand, and stores filled with them.

A memory is a sentence with a person, a deed and its object (of one of ten themes), a place, a time and company. Every
user has three people and four places of their own, so that their memories are similar, and shares themes and words with
all others, as real users do. No word is a serial number: an embedder sees a few hundred words.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mem0_core import Event, Scope
from mem0_core.domain.records import MemoryChange, MemoryItem, Message, content_hash
from mem0_core.interfaces import Embedder
from mem0_core.stores.sqlite.store import SQLiteStore

__all__ = ["USERS", "Memo", "embed_memos", "fill", "memos", "take", "user_name", "user_of"]

USERS = 100
_AT = "2025-03-01T09:00:00+00:00"
_RUN = 10
"""Memories of one user that follow one another in a filled store, and are committed at once: five adds of two facts."""
_BULK = 100
"""Memories in one commit where all belong to one user."""


def _split_words(text: str) -> list[str]:
    return text.split(", ")


_PEOPLE = _split_words(
    "Ana, Boris, Chen, Dalia, Emeka, Farah, Goran, Hanna, Ivo, Jamila, Kenji, Lucia, Mateo, Nadia, Omar, "
    "Priya, Quinn, Rosa, Samir, Tove, Umar, Vera, Wen, Ximena, Yusuf, Zora, Anton, Bea, Cyril, Dunja, Elio, "
    "Freya, Gita, Hugo, Ines, Jonas, Keiko, Liam, Mira, Noor"
)
_PLACES = _split_words(
    "Lisbon, Oslo, Kyoto, Lagos, Quito, Tunis, Galway, Porto, Tartu, Bergen, Malmo, Lyon, Turin, Ghent, "
    "Basel, Izmir, Cusco, Perth, Hobart, Calgary, Boston, Denver, Austin, Merida, Recife, Salta, Accra, "
    "Nairobi, Harare, Pune, Kochi, Hanoi, Penang, Busan, Osaka, Sapporo, Almaty, Tbilisi, Varna, Split"
)
_TIMES = _split_words(
    "last Monday, last Tuesday, last Friday, at the weekend, in January, in February, in March, in April, in May,"
    " in June, in July, in August, in autumn, in winter, before breakfast, after lunch, after midnight, at dawn,"
    " on a rainy evening, on a public holiday, two days ago, a week ago, a month ago, three years ago, during the"
    " strike, during the heatwave, before the wedding, after the exam, on the first day, on the last day"
)
_THEMES: dict[str, tuple[str, str]] = {
    "food": (
        "cooked, tasted, ordered, gave up",
        "a lentil soup, the spicy noodles, cheese pizza, oat pancakes, a mushroom risotto, grilled sardines, dark"
        " chocolate, a rhubarb pie, pickled cabbage, sourdough bread",
    ),
    "travel": (
        "booked, missed, planned, cancelled",
        "a night train, the ferry to the islands, a window seat, a walking tour, the early flight, a mountain hut,"
        " a rental car, the airport transfer, a guided hike, the museum pass",
    ),
    "work": (
        "finished, presented, postponed, reviewed",
        "the quarterly budget, a database migration, the hiring plan, the design draft, a security audit, the release"
        " notes, the customer survey, a training course, the supplier contract, the office move",
    ),
    "health": (
        "scheduled, skipped, recovered from, worried about",
        "a dental check, the flu vaccine, a knee operation, an allergy test, the physiotherapy session, a sprained"
        " ankle, the blood test, a migraine, the eye exam, a fever",
    ),
    "music": (
        "practised, recorded, heard, bought",
        "a cello suite, the piano duet, a jazz record, the choir mass, a drum kit, an acoustic guitar, the opera"
        " recording, a synthesizer, a folk song, the brass quintet",
    ),
    "sport": (
        "won, lost, watched, trained for",
        "the chess tournament, a half marathon, the tennis final, a bouldering league, the rowing regatta, a cycling"
        " race, the swimming relay, a football derby, the archery round, a cricket match",
    ),
    "home": (
        "repaired, painted, sold, replaced",
        "the kitchen window, a bookshelf, the washing machine, the garden fence, a leather sofa, the boiler, a brass"
        " lamp, the balcony door, a wooden table, the roof tiles",
    ),
    "pets": (
        "adopted, fed, walked, photographed",
        "a grey kitten, the old spaniel, a talking parrot, two rabbits, the neighbour's goat, a rescued greyhound, the"
        " tortoise, a stray puppy, the goldfish, a lame horse",
    ),
    "study": (
        "started, passed, failed, dropped",
        "a Portuguese course, the statistics exam, a pottery class, the driving test, a law degree, the first aid"
        " training, a welding course, the sign language class, a history thesis, the sailing licence",
    ),
    "money": (
        "paid, received, forgot, disputed",
        "the parking fine, a tax refund, the monthly rent, a birthday voucher, the insurance claim, an inheritance,"
        " the phone bill, a student loan, the deposit, a consulting fee",
    ),
}


@dataclass(frozen=True, slots=True)
class Memo:
    """A memory to add, its theme, and a question that it answers in part of its words."""

    text: str
    theme: str
    question: str


def memos(seed: int = 7) -> Iterator[Memo]:
    """Yield memories without end, all different; the one at position i is for user ``user_of(i)``."""
    chance = random.Random(seed)
    said: set[str] = set()
    themes = [(theme, _split_words(deeds), _split_words(objects)) for theme, (deeds, objects) in _THEMES.items()]
    while True:
        memo = _memo(chance, themes, user_of(len(said)))
        if memo.text not in said:
            said.add(memo.text)
            yield memo


def _memo(chance: random.Random, themes: list[tuple[str, list[str], list[str]]], user: int) -> Memo:
    theme, deeds, objects = chance.choice(themes)
    person = _PEOPLE[(user * 7 + chance.randrange(3)) % len(_PEOPLE)]
    place = _PLACES[(user * 3 + chance.randrange(4)) % len(_PLACES)]
    company = chance.choice(_PEOPLE)
    deed, thing, time = chance.choice(deeds), chance.choice(objects), chance.choice(_TIMES)
    return Memo(
        text=f"{person} {deed} {thing} in {place} {time}, together with {company}.",
        theme=theme,
        question=f"When was it that {person} {deed} {thing} in {place}?",
    )


def take(source: Iterator[Memo], count: int) -> list[Memo]:
    return list(islice(source, count))


def user_of(position: int) -> int:
    """Return the user of the memory at `position`, a number below `USERS`."""
    return position // _RUN % USERS


def user_name(number: int) -> str:
    return f"user {number}"


def embed_memos(embedder: Embedder, given: Sequence[Memo], batch: int = 256) -> NDArray[np.float32]:
    """Return the vectors of `given`, in order."""
    texts = [memo.text for memo in given]
    parts = [embedder.embed(texts[start : start + batch]) for start in range(0, len(texts), batch)]
    return np.concatenate(parts) if parts else np.empty((0, embedder.dims), np.float32)


def fill(
    folder: Path,
    given: Sequence[Memo],
    vectors: NDArray[np.float32],
    embedder: Embedder,
    *,
    start: int = 0,
    user: str | None = None,
) -> None:
    """Commit `given` from position `start` on as `add` would (messages, sources, history), but many at once.

    They are shared by a hundred users, or all belong to `user`.
    """
    batch = _RUN if user is None else _BULK
    store = SQLiteStore(folder / "memory.db", durability="process")
    for first in range(start, len(given), batch):
        part = slice(first, first + batch)
        scope = Scope(user or user_name(user_of(first)))
        store.commit(
            [
                MemoryChange(Event.ADD, _item(memo, scope), vector=vector, message_indexes=(place,))
                for place, (memo, vector) in enumerate(zip(given[part], vectors[part], strict=True))
            ],
            scope=scope,
            messages=[Message("user", memo.text) for memo in given[part]],
            at=_AT,
            embedding_space=(embedder.name, embedder.dims),
        )
    store.close()


def _item(memo: Memo, scope: Scope) -> MemoryItem:
    return MemoryItem(
        id=str(uuid.uuid4()),
        text=memo.text,
        scope=scope,
        hash=content_hash(memo.text),
        created_at=_AT,
        metadata={"theme": memo.theme},
        role="user",
    )
