"""Headless Chromium for tests and screenshots: the DevTools protocol over a pipe, without packages."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

TIMEOUT_S = 60


def found():
    """The browser's path, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One browser with one page at a time. Use with `with`; everything is removed at the end."""

    def __init__(self):
        self._profile = tempfile.mkdtemp(prefix="rubato-browser-")
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()

        def fds():
            # Chromium reads commands from 3 and writes to 4.
            reading, writing = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self._process = subprocess.Popen(
            [found(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={self._profile}"],
            preexec_fn=fds, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer, self._last, self._session = b"", 0, None
        self.console = []  # what the page wrote, errors included
        self.downloads = Path(self._profile) / "downloads"
        self.downloads.mkdir()
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")
        self._call("Browser.setDownloadBehavior", whole=True, behavior="allow", downloadPath=str(self.downloads))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _message(self):
        while b"\0" not in self._buffer:
            read = os.read(self._in, 1 << 20)
            if not read:
                raise RuntimeError("the browser ended")
            self._buffer += read
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])

    def _call(self, method, whole=False, **params):
        """@param whole  of the browser, not of the page"""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session and not whole:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def open(self, path, width=1300, height=900, dark=False, media="screen"):
        """Opens a file and waits until it is loaded and its scripts ran."""
        self.open_url(Path(path).resolve().as_uri(), width, height, dark, media)

    def open_url(self, url, width=1300, height=900, dark=False, media="screen"):
        self.console.clear()
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                   mobile=width < 600)
        self._call("Emulation.setEmulatedMedia", media=media,
                   features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self._call("Page.navigate", url=url)
        self.evaluate("new Promise((done) => document.readyState === 'complete' ? done(0) : addEventListener('load', () => done(0)))")
        self.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))")

    def evaluate(self, script):
        """The value of an expression, promises awaited."""
        answer = self._call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Tab": 9}.get(key, 0))

    def hover(self, selector):
        """The pointer on the middle of an element, scrolled into view."""
        frame = "await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)));"
        at = self.evaluate(f"(async () => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}}); {frame}"
                           " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=at[0], y=at[1])
        self.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))")

    def drag(self, selector, begin, end, release=True):
        """The pointer over an element, from one share of its width to another, the button held."""
        self.hover(selector)
        x, y, width, height = self.evaluate(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }})()")
        steps = [("mousePressed", begin), ("mouseMoved", (begin + end) / 2), ("mouseMoved", end)] + [("mouseReleased", end)] * release
        for kind, share in steps:
            self._call("Input.dispatchMouseEvent", type=kind, x=x + share * width, y=y + 0.5 * height, button="left", buttons=int(kind != "mouseReleased"), clickCount=1)

    def double_click(self, selector):
        x, y = self.evaluate(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()")
        for count in (1, 2):
            for kind in ("mousePressed", "mouseReleased"):
                self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)

    def download(self, extension):
        """The text of the file of that extension that the page saved; it is removed."""
        until = time.monotonic() + TIMEOUT_S
        while time.monotonic() < until:
            self.evaluate("new Promise((done) => setTimeout(done, 50))")
            for path in self.downloads.glob(f"*.{extension}"):
                text = path.read_text(encoding="utf-8")
                path.unlink()
                return text
        raise RuntimeError(f"no .{extension} was saved")

    def screenshot(self, path, until=None, begin=None):
        """The page from its top, or that of an element, to the end of an element, or the whole of it, as PNG."""
        def edge(selector, side):
            return self.evaluate(f"Math.ceil(document.querySelector({json.dumps(selector)}).getBoundingClientRect().{side} + scrollY)")

        top = 0 if begin is None else edge(begin, "top")
        height = (self.evaluate("document.documentElement.scrollHeight") if until is None else edge(until, "bottom")) - top
        width = self.evaluate("document.documentElement.clientWidth")
        shot = self._call("Page.captureScreenshot", captureBeyondViewport=True,
                          clip={"x": 0, "y": top, "width": width, "height": height, "scale": 1})
        Path(path).write_bytes(base64.b64decode(shot["data"]))
