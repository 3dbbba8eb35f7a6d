"""Abort verbs at a share of their boundaries: ``python -m benchmarks.faults STORE FAULT SHARE [VERB ...]``.

STORE is ``sqlite``, ``killed`` (SQLite, where a process really ends at each boundary) or ``postgres``. It prints the
number of aborts and the problems as JSON. The exit status is `NO_SERVER` where no PostgreSQL can be started.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from benchmarks.faults.cancellation import COROUTINES, CancellationMatrix
from benchmarks.faults.injector import Fault
from benchmarks.faults.matrix import MEMORY_FOLDER, SQLiteMatrix, rotate, scratch_folder
from benchmarks.faults.postgres_matrix import SERVER_VERBS, PostgresMatrix
from benchmarks.faults.verbs import VERBS
from tests.services.postgres_server import PostgresUnavailable, temporary_server

NO_SERVER = 3


@contextmanager
def open_matrix(store: str, fault: str) -> Iterator[SQLiteMatrix]:
    """Build the base state of a store in a scratch folder."""
    with scratch_folder() as folder:
        if store == "postgres":
            with temporary_server(MEMORY_FOLDER) as server:
                yield PostgresMatrix(folder, server)
        elif fault == "cancel":
            yield CancellationMatrix(folder)
        else:
            yield SQLiteMatrix(folder, kills=store == "killed")


def main(store: str, fault: str, share: str, *names: str) -> int:
    """Print the aborts and problems of verbs; return the exit status."""
    every = SERVER_VERBS if store == "postgres" else COROUTINES if fault == "cancel" else tuple(VERBS)
    try:
        with open_matrix(store, fault) as matrix:
            found = [
                matrix.run(VERBS[name], lambda count: rotate(count, int(share), 0), fault=cast(Fault, fault))
                for name in names or every
            ]
    except PostgresUnavailable as error:
        print(error, file=sys.stderr)
        return NO_SERVER
    print(json.dumps([sum(one.aborted for one in found), [problem for one in found for problem in one.problems]]))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
