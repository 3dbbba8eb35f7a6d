"""Chromium without a window, driven as a person drives it: by addresses, clicks and keys. It reaches no network.

It is spoken to by the debugging protocol over a pair of pipes, which needs no library.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["CHROMIUM", "Tab", "open_chromium"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WAIT_SECONDS = 30.0
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32}
_START = """import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
_FIND = """((name) => {
  const textOf = (label) => [...label.childNodes].filter((node) => node.nodeType === 3)
    .map((node) => node.textContent).join("");
  const nameOf = (one) => (one.getAttribute("aria-label") || (one.labels && one.labels[0] && textOf(one.labels[0])) ||
    one.textContent || one.title || "").trim();
  const every = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), textarea, select, summary")];
  const found = every.find((one) => nameOf(one) === name) || every.find((one) => nameOf(one).startsWith(name));
  if (!found) throw new Error(`no control is called ${name}: ${every.map(nameOf)}`);
  return found;
})"""


class Tab:
    """One tab of the browser."""

    def __init__(self, process: _Process, session: str) -> None:
        self._process, self._session = process, session

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the debugging protocol."""
        return self._process.call(method, self._session, parameters)

    def open(self, url: str) -> None:
        """Open an address, and wait until it has loaded."""
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(done["exceptionDetails"]["exception"].get("description", done))
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true, across loads of pages."""

        def is_true() -> bool:
            try:
                return bool(self.run(condition))
            except (AssertionError, RuntimeError):  # while a page replaces another
                return False

        self.wait_for(is_true, condition)

    def wait_for(self, is_true: Callable[[], bool], what: str = "") -> None:
        """Wait until a function returns True."""
        ends_at = time.monotonic() + WAIT_SECONDS
        while not is_true():
            if time.monotonic() > ends_at:
                raise AssertionError(f"{what}: {self.run('document.body.innerText')}")
            time.sleep(0.05)

    def see(self, text: str) -> None:
        """Wait until the page shows a text."""
        self.wait(f"document.readyState === 'complete' && document.body.innerText.includes({json.dumps(text)})")

    def click(self, name: str) -> None:
        """Click on the first control with an accessible name, or one that begins with it."""
        box = self.run(
            f"(() => {{ const one = {_FIND}({json.dumps(name)}); one.scrollIntoView({{ block: 'center' }});"
            " const box = one.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def fill(self, name: str, text: str) -> None:
        """Replace the content of a field by typing."""
        self.run(f"(() => {{ const one = {_FIND}({json.dumps(name)}); one.focus(); one.select(); }})()")
        self.call("Input.insertText", text=text)

    def choose(self, name: str, option: str) -> None:
        """Choose an option of a list."""
        self.run(f"{_FIND}({json.dumps(name)}).value = {json.dumps(option)}")

    def press(self, key: str) -> None:
        """Press a key."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        common = {"key": key, "windowsVirtualKeyCode": _KEYS.get(key, ord(key[0].upper()))}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def resize(self, width: int, height: int, *, is_dark: bool = False) -> None:
        """Set the size of the page in pixels, and the preferred colors."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def draw(self) -> bytes:
        """Return a picture of the whole page as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])


class _Process:
    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        theirs_in, self._out = _pipe()
        self._in, theirs_out = _pipe()
        options = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--disable-extensions", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
            *("--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={profile}"),
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(theirs_in), str(theirs_out), CHROMIUM, *options, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest, self._last = b"", 0

    def call(self, method: str, session: str | None, parameters: dict[str, Any]) -> dict[str, Any]:
        self._last += 1
        request: dict[str, Any] = {"id": self._last, "method": method, "params": parameters}
        if session is not None:
            request["sessionId"] = session
        os.write(self._out, json.dumps(request).encode() + b"\0")
        while True:
            reply = self._read()
            if reply.get("id") == self._last:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                found: dict[str, Any] = reply["result"]
                return found

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], WAIT_SECONDS)[0]:
                raise TimeoutError("Chromium does not answer")
            part = os.read(self._in, 1 << 20)
            if not part:
                raise RuntimeError("Chromium has ended")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\0")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def open_tab(self) -> Tab:
        context = self.call("Target.createBrowserContext", None, {})["browserContextId"]
        target = self.call("Target.createTarget", None, {"url": "about:blank", "browserContextId": context})
        found = self.call("Target.attachToTarget", None, {"targetId": target["targetId"], "flatten": True})
        tab = Tab(self, found["sessionId"])
        tab.call("Page.enable")
        return tab

    def close(self) -> None:
        try:
            self.call("Browser.close", None, {})
        finally:
            self._process.wait(WAIT_SECONDS)
            os.close(self._in)
            os.close(self._out)


@contextmanager
def open_chromium(profile: Path) -> Iterator[_Process]:
    """Yield a running browser; `open_tab` opens a tab with cookies of its own."""
    process = _Process(profile)
    try:
        yield process
    finally:
        process.close()


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are not 3 and 4, which the browser uses."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
