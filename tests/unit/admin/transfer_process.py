"""Run as a script: migrate one store to another in small chunks, saying of each that it is done.

``python transfer_process.py SOURCE TARGET`` is killed by the test that reads what it says. It goes on when it is sent
a line, so that it is not done before a test that is slow to read.
"""

from __future__ import annotations

import sys

from mem0_core.admin.transfer import migrate, open_archive


def main(source: str, target: str) -> None:
    with open_archive(source) as one, open_archive(target, create=True) as other:
        done = migrate(one, other, chunk=6, on_progress=tell)
    print(f"done, resumed: {done.resumed}", flush=True)  # noqa: T201


def tell(section: str, count: int) -> None:
    if section != "verify":
        print(section, count, flush=True)  # noqa: T201
        sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
