"""Users on several stores behind a router.

Data of one user never refers to data of another, so each user can live on a store of their own choice. The router
hashes the user id, so every process finds the same store without a table of users. Give it the URLs of PostgreSQL
servers, or the paths of files:

    python examples/sharded_users.py postgresql://one.example.org/mem0 postgresql://two.example.org/mem0
"""

import hashlib
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from mem0_core import Memory


class Router:
    """Memories over several stores, of which each user has one."""

    def __init__(self, stores: Sequence[str], folder: Path) -> None:
        """Open all stores; `folder` is for the local files of each, such as snapshots."""
        with ExitStack() as opened:
            self._memories = {
                name: opened.enter_context(Memory({"store": name, "path": str(folder / f"shard{number}")}))
                for number, name in enumerate(stores)
            }
            self._opened = opened.pop_all()

    def __enter__(self) -> "Router":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def of(self, user_id: str) -> Memory:
        """Return the memory of a user. A further store takes over only the users that move to it."""
        return self._memories[max(self._memories, key=lambda name: _score(name, user_id))]

    @property
    def memories(self) -> dict[str, Memory]:
        """All memories by store: for maintenance, and for questions that concern no single user."""
        return dict(self._memories)


def _score(store: str, user_id: str) -> bytes:
    """Return a number that a store and a user share (rendezvous hashing)."""
    return hashlib.blake2b(f"{store}\0{user_id}".encode(), digest_size=8).digest()


def main(stores: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = stores or [str(folder / f"{number}.db") for number in ("one", "two")]
        with Router(given, folder) as router:
            for user in ("ana", "ben", "eva", "leo"):
                router.of(user).add(f"My name is {user.title()}, and I live in Porto.", user_id=user)
            found = router.of("eva").search("Where do I live?", user_id="eva")
            print(found["results"][0]["memory"])
            for number, memory in enumerate(router.memories.values(), start=1):
                print(f"store {number}: {memory.stats()['users']} users")


if __name__ == "__main__":
    main(sys.argv[1:])
