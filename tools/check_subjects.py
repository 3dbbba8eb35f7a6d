"""Refuse commit subjects of more than 72 characters.

With a file it reads the message that git is about to commit; without one it reads the commits since the rule began.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MAX_SUBJECT_CHARS = 72
FIRST_EXEMPT = "c1f468c"  # the commits up to here are older than the rule


def read_subjects(arguments: list[str]) -> list[str]:
    """Return the subjects to check: one from the file that git names, or all since the rule began."""
    if arguments:
        return Path(arguments[0]).read_text(encoding="utf-8").splitlines()[:1]
    known = subprocess.run(["git", "merge-base", "--is-ancestor", FIRST_EXEMPT, "HEAD"], capture_output=True)
    commits = [f"{FIRST_EXEMPT}..HEAD"] if known.returncode == 0 else ["-1"]  # a shallow clone has the last one only
    log = ["git", "log", "--no-merges", "--format=%s", *commits]
    return subprocess.run(log, check=True, capture_output=True, text=True).stdout.splitlines()


def main() -> int:
    """Print each subject that is too long; return 1 if there is one."""
    too_long = [subject for subject in read_subjects(sys.argv[1:]) if len(subject) > MAX_SUBJECT_CHARS]
    for subject in too_long:
        print(f"{len(subject)} characters, at most {MAX_SUBJECT_CHARS} allowed: {subject}")
    return bool(too_long)


if __name__ == "__main__":
    sys.exit(main())
