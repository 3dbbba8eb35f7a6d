"""Program that runs a server: it ends the server on request, and kills it if the requesting process died."""

from __future__ import annotations

import os
import subprocess
import sys
import threading


def main(command: list[str]) -> None:
    """Run a command until it ends, or until standard input has a byte (terminate) or ends (kill)."""
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    end = lambda: server.terminate() if os.read(0, 1) else server.kill()  # noqa: E731
    threading.Thread(target=end, daemon=True).start()
    os._exit(server.wait() & 0xFF)  # without the thread, which may wait for ever


if __name__ == "__main__":
    main(sys.argv[1:])
