"""Synthetic relations by the hundred thousand, and stores filled with them.

One user is a hub: a third of their relations begin at the user, the others at one of 500 people of theirs. Names are
    two
words of 3,000 random letter strings, so that no name is near another: an embedder would merge them into one node.
"""

from __future__ import annotations

import random
import shutil
import string
from collections.abc import Iterator, Sequence
from pathlib import Path

from mem0_core import Event, Scope
from mem0_core.domain.records import MemoryChange, MemoryItem, Message, RelationChange, Triplet, content_hash, new_id
from mem0_core.interfaces import Embedder
from mem0_core.stores.sqlite.store import SQLiteStore

__all__ = ["HUB", "fill_relations", "fresh_name", "grown", "triplets_of"]

HUB = "alice_123"
_OTHERS = 90
_PEOPLE = 500
_BATCH = 100
_AT = "2025-03-01T09:00:00+00:00"
_RELATIONSHIPS = ("likes", "works_at", "knows", "visited")


def fresh_name(chance: random.Random, letters: int = 10) -> str:
    """Return an unused name."""
    return "".join(chance.choices(string.ascii_lowercase, k=letters)).capitalize()


_WORDS = [fresh_name(random.Random(number), 7) for number in range(3_000)]


def triplets_of(user: str, positions: range) -> list[Triplet]:
    """Return the relations of `user` at these positions, always the same."""
    chance = random.Random(positions.start)
    return [
        Triplet(
            user if position % 3 == 0 else _name(random.Random(f"{user} {chance.randrange(_PEOPLE)}")),
            _RELATIONSHIPS[position % 4],
            _name(chance),
        )
        for position in positions
    ]


def _name(chance: random.Random) -> str:
    return f"{chance.choice(_WORDS)} {chance.choice(_WORDS)}"


def grown(sizes: Sequence[int], own: int, work: Path, embedder: Embedder) -> Iterator[tuple[int, Path]]:
    """Build a store of each size, each grown from the one before; the first `own` relations are the hub's."""
    start, previous = 0, None
    for size in sizes:
        folder = work / f"relations-{size}"
        if previous is not None:
            shutil.copytree(previous, folder)
        fill_relations(folder, embedder, start, size, own)
        yield size, folder
        start, previous = size, folder


def fill_relations(folder: Path, embedder: Embedder, start: int, stop: int, own: int) -> None:
    """Commit the relations from `start` to `stop` as `add` would, each with memory and message, but many at once."""
    store = SQLiteStore(folder / "memory.db", durability="process")
    for user, positions in batches(start, stop, own):
        _commit(store, embedder, user, triplets_of(user, positions))
    store.close()


def batches(start: int, stop: int, own: int) -> Iterator[tuple[str, range]]:
    """Yield relations by user: the first `own` of the hub, the rest of other users in turn."""
    for first, last in ((start, min(stop, own)), (max(start, own), stop)):
        for at in range(first, last, _BATCH):
            user = HUB if at < own else f"user {at // _BATCH % _OTHERS}"
            yield user, range(at, min(at + _BATCH, last))


def _commit(store: SQLiteStore, embedder: Embedder, user: str, triplets: Sequence[Triplet]) -> None:
    scope = Scope(user)
    texts = [text for each in triplets for text in (each.source, each.destination, each.sentence)]
    vectors = embedder.embed(texts).reshape(len(triplets), 3, -1)
    store.commit(
        [
            MemoryChange(Event.ADD, _item(triplet.sentence, scope), vector=vector, message_indexes=(place,))
            for place, (triplet, (_, _, vector)) in enumerate(zip(triplets, vectors, strict=True))
        ],
        scope=scope,
        messages=[Message("user", triplet.sentence) for triplet in triplets],
        at=_AT,
        embedding_space=(embedder.name, embedder.dims),
        relations=[
            RelationChange(
                Event.ADD,
                triplet,
                types=("person", "place"),
                vectors=(of_one[0], of_one[1], of_one[2]),
                change_indexes=(place,),
                message_indexes=(place,),
            )
            for place, (triplet, of_one) in enumerate(zip(triplets, vectors, strict=True))
        ],
    )


def _item(text: str, scope: Scope) -> MemoryItem:
    return MemoryItem(id=new_id(), text=text, scope=scope, hash=content_hash(text), created_at=_AT, role="user")
