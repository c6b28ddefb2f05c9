"""A browser that is driven by real input, over the W3C WebDriver protocol of chromedriver.

    with Browser(width=1400, height=900) as browser:
        browser.open("file:///tmp/t.html")
        browser.click(300, 200)

Needs the Debian packages chromium and chromium-driver, and no Python package. `MISSING` is a
sentence when they are not there, else None.
"""
import base64
import json
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zlib

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = None if CHROMIUM and DRIVER else (
    "the report page is tested in Chromium, which is missing; scripts/setup installs chromium and "
    "chromium-driver")

KEYS = {"Escape": "\ue00c", "Enter": "\ue007", "Shift": "\ue008"}


class BrowserError(Exception):
    pass


class Browser:
    def __init__(self, width=1400, height=900, dark=False):
        self.width, self.height, self.dark = width, height, dark

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.profile = tempfile.mkdtemp(prefix="acltape_page_")
        self.driver = subprocess.Popen([DRIVER, f"--port={self.port}", "--silent"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self):
        deadline = time.monotonic() + 30
        while True:
            try:
                if self._request("GET", "/status")["ready"]:
                    break
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--force-color-profile=srgb", "--disable-background-networking",
                     f"--window-size={self.width},{self.height}", f"--user-data-dir={self.profile}"]
        if self.dark:
            arguments.append("--blink-settings=preferredColorScheme=0")
        answer = self._request("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": CHROMIUM, "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            "timeouts": {"script": 120000, "pageLoad": 120000},
            "unhandledPromptBehavior": "ignore"}}})
        self.session = "/session/" + answer["sessionId"]

    def __exit__(self, *unused):
        try:
            if hasattr(self, "session"):
                self._request("DELETE", self.session)
        except (BrowserError, urllib.error.URLError, ConnectionError):
            pass
        self.driver.terminate()
        self.driver.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _request(self, method, path, body=None):
        data = None if body is None and method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise BrowserError(f"{value['error']}: {value['message']}") from None

    def call(self, method, path, body=None):
        return self._request(method, self.session + path, body)

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """Runs a function body in the page and returns its value."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """Likewise; the last argument of the script is a function that takes the value."""
        return self.call("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def wait_for(self, script, seconds=20):
        deadline = time.monotonic() + seconds
        while True:
            value = self.run(script)
            if value:
                return value
            if time.monotonic() > deadline:
                raise BrowserError(f"{script} did not become true within {seconds} s; the page says: "
                                   f"{self.run('return document.body.innerText')[:800]}")
            time.sleep(0.05)

    def _actions(self, *sources):
        self.call("POST", "/actions", {"actions": list(sources)})

    def move(self, x, y):
        self._actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                       "actions": [{"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0}]})

    def click(self, x, y):
        self._actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0},
            {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]})

    def drag(self, x, y, to_x, to_y, shift=False):
        # A key of its own source keeps step with the pointer: down before it, up after it.
        key = [{"type": "keyDown", "value": KEYS["Shift"]}, *[{"type": "pause"}] * 3,
               {"type": "keyUp", "value": KEYS["Shift"]}] if shift else []
        wait = [{"type": "pause", "duration": 0}] if shift else []
        keyboard = [{"type": "key", "id": "keyboard", "actions": key}] if shift else []
        self._actions(*keyboard, {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            *wait, {"type": "pointerMove", "x": int(x), "y": int(y), "duration": 0},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": int(to_x), "y": int(to_y), "duration": 120},
            {"type": "pointerUp", "button": 0}]})

    def wheel(self, x, y, by, times=1):
        self._actions({"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": int(x), "y": int(y), "deltaX": 0, "deltaY": int(by), "duration": 0}] * times})

    def keys(self, *words):
        """Types words; each is a text, or the name of a key."""
        actions = []
        for word in words:
            for letter in KEYS.get(word, word):
                actions += [{"type": "keyDown", "value": letter}, {"type": "keyUp", "value": letter}]
        self._actions({"type": "key", "id": "keyboard", "actions": actions})

    def box(self, selector):
        """The rectangle of an element: x, y, width, height."""
        found = self.run("const e = document.querySelector(arguments[0]); if (!e) return null;"
                         "const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]", selector)
        if found is None:
            raise BrowserError(f"the page has no {selector}")
        return found

    def click_on(self, selector):
        x, y, width, height = self.box(selector)
        self.click(x + width / 2, y + height / 2)

    def text(self, selector="body"):
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def alert_is_open(self):
        try:
            self.call("GET", "/alert/text")
            return True
        except BrowserError:
            return False

    def console(self):
        """Messages since the last call."""
        return self.call("POST", "/se/log", {"type": "browser"})

    def requests(self):
        """Addresses that pages asked for since the last call."""
        found = []
        for entry in self.call("POST", "/se/log", {"type": "performance"}):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def screenshot(self, path=None):
        data = base64.b64decode(self.call("GET", "/screenshot"))
        if path:
            with open(path, "wb") as file:
                file.write(data)
        return data


def pixels(png):
    """Width, height and the rows of a PNG that a browser made: RGB or RGBA, eight bits."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    offset, packed = 8, b""
    while offset < len(png):
        length, kind = struct.unpack(">I4s", png[offset:offset + 8])
        body = png[offset + 8:offset + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        offset += 12 + length
    assert depth == 8 and colour in (2, 6)
    unit = 3 if colour == 2 else 4
    data = zlib.decompress(packed)
    rows, before = [], bytearray(width * unit)
    for y in range(height):
        start = y * (width * unit + 1)
        method, row = data[start], bytearray(data[start + 1:start + 1 + width * unit])
        for x in range(len(row)):
            left = row[x - unit] if x >= unit else 0
            up = before[x]
            corner = before[x - unit] if x >= unit else 0
            if method == 1:
                row[x] = (row[x] + left) & 255
            elif method == 2:
                row[x] = (row[x] + up) & 255
            elif method == 3:
                row[x] = (row[x] + (left + up) // 2) & 255
            elif method == 4:
                guess = left + up - corner
                distances = (abs(guess - left), abs(guess - up), abs(guess - corner))
                row[x] = (row[x] + (left, up, corner)[distances.index(min(distances))]) & 255
        rows.append(row)
        before = row
    return width, height, unit, rows
