"""Acknowledged writes survive the death of the process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from memory_conformance.api import list_verbs
from memory_conformance.registry import CheckError, Kit, check, expect
from memory_conformance.runner import child_environment

ACKNOWLEDGED = 20
START_SECONDS = 120.0


@check("crash", "add list durable", "crash_safe")
def a_killed_writer_loses_nothing(kit: Kit) -> None:
    """All memories that were acknowledged before kill -9 are listed and found afterwards, and writing goes on."""
    owner = kit.new_owner()
    kit.close()
    acknowledged = kill_a_writer(kit, owner)
    texts = set(kit.list_texts(owner))
    lost = [text for text in acknowledged if text not in texts]
    expect(not lost, f"{len(lost)} of {len(acknowledged)} acknowledged memories are lost, {lost[:1]}")
    if "search" in list_verbs(kit.system):
        last = acknowledged[-1]
        word = last.split()[1]
        expect(last in kit.search_texts(owner, word), f"a search for {word!r} does not find an acknowledged memory")
    after = kit.system.add(owner, "Life goes on.")
    expect("Life goes on." in kit.list_texts(owner), f"the memory {after} added after the crash is not listed")


def kill_a_writer(kit: Kit, owner: str) -> list[str]:
    """Start a process that adds memories, kill it amid its work, and return the acknowledged texts."""
    log = kit.folder.parent / f"{kit.folder.name}-acknowledged"
    command = [sys.executable, "-m", "memory_conformance", "write", kit.spec, str(kit.folder), owner, str(log)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=child_environment())
    deadline = time.monotonic() + START_SECONDS
    while len(read_acknowledged(log)) < ACKNOWLEDGED and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    ended = process.poll()
    if ended is None:
        process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    _, errors = process.communicate()
    acknowledged = read_acknowledged(log)
    if ended is not None or not acknowledged:
        raise CheckError(f"the writing process failed: {errors.decode(errors='replace').strip()[-200:]}")
    return acknowledged


def read_acknowledged(log: Path) -> list[str]:
    """Return the complete lines of the log of a writer."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    return text.split("\n")[:-1]
