"""Pages in a headless Chromium, driven through its debugging pipe; needs no driver and no package."""

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
#: Chromium reads commands from descriptor 3 and answers on 4.
_LAUNCHER = "import os, sys; _, read, write, *command = sys.argv; "
_LAUNCHER += "os.dup2(int(read), 3); os.dup2(int(write), 4); os.execv(command[0], command)"
_PATIENCE = 60  # seconds until the browser has ended


def chromium() -> str:
    """The browser's path (``CHROMIUM`` or a usual name); skips the test where there is none."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if not found:
        pytest.skip("no Chromium on this machine (apt-get install chromium, or set CHROMIUM)")
    return found


class Page:
    """One open page: evaluates scripts, takes screenshots, and keeps what went wrong or left the page."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._out, self._in = os.fdopen(to_browser, "wb"), os.fdopen(from_browser, "rb")
        self._session: str | None = None
        self._last, self._rest = 0, b""
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._out.close()
        self._in.close()

    def open(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Loads a page in a window of so many CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, script: str) -> Any:
        """The value of a script's last expression (a promise is awaited)."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """The whole page, also what lies below the window, as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip={**size, "scale": 1})
        path.write_bytes(base64.b64decode(answer["data"]))

    def press(self, key: str) -> None:
        """Presses and lets go of a key (``Tab``, ``Enter``)."""
        code = {"Tab": 9, "Enter": 13}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text
            )

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the Chrome DevTools Protocol."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._in.fileno(), 1 << 16)
            assert read, "the browser has gone"
            self._rest += read
        line, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, said: dict[str, Any]) -> None:
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(said["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and said["type"] in {"error", "warning", "assert"}:
            self.errors.append(str(said["args"]))
        elif method == "Log.entryAdded" and said["entry"]["level"] in {"error", "warning"}:
            self.errors.append(said["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(said["request"]["url"])


def screenshot(html: Path, png: Path, width: int = 1280, *, dark: bool = False) -> None:
    """A picture of a whole page in a window of so many CSS pixels."""
    with browser() as page:
        page.open(html.resolve().as_uri(), width=width, dark=dark)
        page.screenshot(png)


def dump_dom(html: Path) -> str:
    """The page's document after its scripts have run."""
    with browser() as page:
        page.open(html.resolve().as_uri())
        return str(page.evaluate("document.documentElement.outerHTML"))


@contextmanager
def browser() -> Iterator[Page]:
    """A page in a browser of its own; skips the test where there is no browser."""
    path = chromium()
    commands, answers = os.pipe(), os.pipe()
    launcher = (sys.executable, "-c", _LAUNCHER, str(commands[0]), str(answers[1]))

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [*launcher, path, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(commands[0], answers[1]),
        )
        os.close(commands[0])
        os.close(answers[1])
        page = None
        try:
            page = Page(commands[1], answers[0])
            yield page
        finally:
            if page:
                page.close()
            process.terminate()
            process.wait(_PATIENCE)
