"""Drives headless Chromium over its debugging pipe, with nothing but Python's library.

    browser = Browser("chromium", "/tmp/profile")
    page = browser.open("file:///report.html", width=400, height=800)
    page.evaluate("document.title"); page.point_at("circle"); page.errors; page.fetched
"""

import base64
import json
import os
import select
import subprocess
import time


class Browser:
    def __init__(self, program, profile):
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()

        def give_pipes():  # as descriptors 3 and 4, where Chromium looks for them
            reading, writing = os.dup(to_read), os.dup(from_write)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self._process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--disable-extensions", "--disable-background-networking", "--no-first-run",
             "--hide-scrollbars", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=give_pipes, close_fds=False, env={**os.environ, "HOME": profile},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(from_write)
        self._to, self._from = to_write, from_read
        self._buffer = b""
        self._number = 0
        self.events = []

    def call(self, method, parameters=None, session=None, seconds=60):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters or {}}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + seconds
        while True:
            answer = self._next(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, deadline):
        while b"\0" not in self._buffer:
            if not select.select([self._from], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self._from, 1 << 16)
            if not part:
                raise RuntimeError("the browser has ended")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, address, width, height, dark=False):
        return Page(self, address, width, height, dark)

    def close(self):
        try:
            self.call("Browser.close")
        except (RuntimeError, TimeoutError):
            self._process.kill()
        self._process.wait(20)


class Page:
    def __init__(self, browser, address, width, height, dark):
        self._browser = browser
        target = browser.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self._session = browser.call("Target.attachToTarget",
                                     {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.call("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}]})
        self._address = address
        self.call("Page.navigate", {"url": address})
        for _ in range(600):
            if self.evaluate("document.readyState + location.protocol") != "completeabout:":
                if self.evaluate("document.readyState") == "complete":
                    return
            time.sleep(0.05)
        raise TimeoutError(f"{address} does not load")

    def call(self, method, parameters=None):
        return self._browser.call(method, parameters, self._session)

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True,
                                                "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def _events(self, method):
        return [event["params"] for event in self._browser.events
                if event.get("sessionId") == self._session and event.get("method") == method]

    @property
    def errors(self):
        """Exceptions, and whatever the console calls an error."""
        thrown = [event["exceptionDetails"].get("exception", {}).get("description", "an exception")
                  for event in self._events("Runtime.exceptionThrown")]
        logged = [event["entry"]["text"] for event in self._events("Log.entryAdded")
                  if event["entry"]["level"] == "error"]
        return thrown + logged

    @property
    def fetched(self):
        """Addresses that were asked for, the page's own aside."""
        return [address for event in self._events("Network.requestWillBeSent")
                if (address := event["request"]["url"]) != self._address]

    def point_at(self, selector):
        """Moves the pointer to the middle of the first such element."""
        x, y = self.evaluate(
            "(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
            % json.dumps(selector))
        for nudge in (1, 0):
            self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x + nudge, "y": y})

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": key})

    def for_print(self):
        self.call("Emulation.setEmulatedMedia", {"media": "print"})

    def picture(self, path, clip=None):
        """A PNG of what is seen, or of {x, y, width, height} of the page."""
        options = {"format": "png", "captureBeyondViewport": clip is not None}
        if clip:
            options["clip"] = {**clip, "scale": 1}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", options)["data"]))
