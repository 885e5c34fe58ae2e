# SPDX-License-Identifier: Apache-2.0
"""A browser for tests: Chromium, driven by chromedriver over the WebDriver protocol, with Python's own library only."""
import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"tab": "\ue004", "enter": "\ue007", "left": "\ue012", "right": "\ue014", "home": "\ue011", "end": "\ue010",
        "up": "\ue013", "down": "\ue015", "escape": "\ue00c"}
# no network, no user's profile: the pages are files
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-dev-shm-usage", "--force-device-scale-factor=1",
         "--host-resolver-rules=MAP * ~NOTFOUND"]


class BrowserError(Exception):
    """The browser or its driver answered with an error."""


def plain(value):
    if isinstance(value, str):
        return value.replace("\u00a0", " ")
    if isinstance(value, list):
        return [plain(v) for v in value]
    return {plain(name): plain(v) for name, v in value.items()} if isinstance(value, dict) else value


class Browser:
    """One session; use it with `with`."""

    def __init__(self, chromium, chromedriver, width=1280, height=900):
        self.profile = tempfile.mkdtemp(prefix="cuwhy-browser-")
        # it takes a port that is free, and says which: one that was chosen here may be another's by then
        self.log = os.path.join(self.profile, "chromedriver.log")
        with open(self.log, "w", encoding="utf-8") as log:
            self.driver = subprocess.Popen([chromedriver, "--port=0"], stdout=log, stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=self.profile))
        self.port = None
        self.session = None
        try:
            self.wait_for_driver()
            flags = FLAGS + ["--user-data-dir=" + self.profile, "--window-size=%d,%d" % (width, height)]
            options = {"browserName": "chrome", "goog:chromeOptions": {"binary": chromium, "args": flags},
                       "goog:loggingPrefs": {"browser": "ALL"}}
            answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": options}})
            self.session = "/session/" + answer["sessionId"]
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def wait_for_driver(self):
        end = time.monotonic() + 300
        while time.monotonic() < end and self.driver.poll() is None:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                told = re.search(r"started successfully on port (\d+)", log.read())
            self.port = int(told.group(1)) if told else None
            try:
                if told and self.ask("GET", "/status")["ready"]:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise BrowserError("chromedriver did not start")

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise BrowserError("%s: %s" % (value["error"], value["message"].split("\n")[0]))
        return value

    def close(self):
        try:
            if self.session:
                self.ask("DELETE", self.session)
        except (OSError, BrowserError):
            pass
        self.driver.terminate()
        self.driver.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, path):
        self.ask("POST", self.session + "/url", {"url": path if "://" in path else "file://" + os.path.abspath(path)})

    def run(self, script, *args):
        """The value of a function body in the page; a space that does not break is a space."""
        return plain(self.ask("POST", self.session + "/execute/sync", {"script": script, "args": list(args)}))

    def find(self, selector):
        return self.ask("POST", self.session + "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.ask("POST", "%s/element/%s/click" % (self.session, self.find(selector)), {})

    def type(self, text, selector=None):
        """Sends keys to an element, or to whatever has the focus."""
        element = self.find(selector) if selector else self.ask("GET", self.session + "/element/active")[ELEMENT]
        self.ask("POST", "%s/element/%s/value" % (self.session, element), {"text": KEYS.get(text, text)})

    def cdp(self, command, **params):
        return self.ask("POST", self.session + "/goog/cdp/execute", {"cmd": command, "params": params})

    def prefer(self, scheme):
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def console(self):
        """Console messages since the last call."""
        return self.ask("POST", self.session + "/se/log", {"type": "browser"})

    def screenshot(self, path, whole=False):
        if whole:
            height = self.run("return document.documentElement.scrollHeight")
            data = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                            clip={"x": 0, "y": 0, "width": self.run("return innerWidth"), "height": min(height, 12000), "scale": 1})["data"]
        else:
            data = self.ask("GET", self.session + "/screenshot")
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(data))
