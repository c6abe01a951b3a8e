"""A person before Chromium: opens pages, finds what a screen reader would tell, clicks, types and looks.

Speaks WebDriver's JSON over HTTP to Debian's chromedriver, which leads Debian's chromium without a window. What a role and a name
find is the browser's own tree of accessibility. The profile lies in the folder that is given, and what the browser asks of other
hosts than the loopback fails.
"""
import base64
import http.client
import json
import os
import re
import subprocess
import time

PATIENCE_S = 60
LOG_KINDS = {"console": "browser", "network": "performance"}
FLAGS = ["--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-default-apps", "--disable-extensions", "--disable-dev-shm-usage", "--mute-audio", "--hide-scrollbars",
         "--proxy-server=direct://", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "End": "\ue010", "Home": "\ue011", "Shift": "\ue008", "Down": "\ue015", "Left": "\ue012", "Right": "\ue014",
        "Up": "\ue013", "PageDown": "\ue00f", "Space": " ", "Backspace": "\ue003"}


class Failed(Exception):
    """What the browser refused, or what did not come."""


def now_s():
    """The test's own clock, as wait_for of tests/wait.sh has it: it stands while the machine lets the test wait."""
    clock = os.environ.get("TEST_CLOCK")
    if not clock:
        return time.monotonic()
    with open(clock) as file:
        return float(file.read().split()[0])


def wait_for(what, find):
    """What find() gives, once that is anything."""
    end, seen = now_s() + PATIENCE_S, None
    while now_s() < end:
        try:
            found = find()
            if found:
                return found
        except Failed as error:  # the page is being made anew
            seen = error
        time.sleep(0.05)
    raise Failed(f"in vain: {what}" + (f" ({seen})" if seen else ""))


class Found:
    """Something of the page, by its node in the browser."""

    def __init__(self, browser, node):
        self.browser, self.node = browser, node

    def call(self, function, *arguments):
        """What a JavaScript function gives whose `this` it is."""
        held = self.browser.cdp("DOM.resolveNode", backendNodeId=self.node)["object"]["objectId"]
        answer = self.browser.cdp("Runtime.callFunctionOn", objectId=held, functionDeclaration=function, returnByValue=True,
                                  arguments=[{"value": value} for value in arguments])
        if "exceptionDetails" in answer:
            raise Failed(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    @property
    def text(self):
        return self.call("function () { return this.innerText }")

    def click(self):
        """Where a person would: in its middle."""
        self.browser.cdp("DOM.scrollIntoViewIfNeeded", backendNodeId=self.node)
        quad = self.browser.cdp("DOM.getContentQuads", backendNodeId=self.node)["quads"][0]
        x, y = round(sum(quad[0::2]) / 4), round(sum(quad[1::2]) / 4)
        self.browser.act([{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "duration": 0, "x": x, "y": y}, {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]}])


class Browser:
    """Use it with `with`: it ends with its block."""

    def __init__(self, folder):
        self.session, self.messages = None, {kind: [] for kind in LOG_KINDS}
        # HOME: what chromium keeps beside its profile
        home = {**os.environ, "HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder, "TMPDIR": folder}
        self.log = open(f"{folder}/chromedriver.log", "w")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=self.log, env=home, text=True)
        try:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port(), timeout=600)
            flags = [*FLAGS, f"--user-data-dir={folder}/profile", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
            options = {"timeouts": {"script": 600000}, "goog:chromeOptions": {"binary": "/usr/bin/chromium", "args": flags},
                       "goog:loggingPrefs": {kind: "ALL" for kind in LOG_KINDS.values()}}
            self.session = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": options}})["sessionId"]
            for domain in ["DOM", "Accessibility"]:
                self.cdp(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise

    def port(self):
        for line in self.driver.stdout:
            if "started successfully on port" in line:
                return int(line.split()[-1].rstrip("."))
        raise Failed("chromedriver does not start: see its log")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.session:
                self.ask("DELETE", f"/session/{self.session}")
        except (Failed, OSError, http.client.HTTPException):
            pass  # it is gone, and the driver ends it otherwise
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        self.log.close()

    # ---- what goes over the wire
    def ask(self, method, path, body=None):
        self.connection.request(method, path, json.dumps(body if body is not None else {}) if method == "POST" else None,
                                {"Content-Type": "application/json"})
        value = json.loads(self.connection.getresponse().read())["value"]
        if isinstance(value, dict) and "error" in value:
            raise Failed(f"{path.split('/')[-1]}: {value['error']}: {value['message'].splitlines()[0]}")
        return value

    def tell(self, path, **body):
        return self.ask("POST", f"/session/{self.session}/{path}", body)

    def cdp(self, command, **parameters):
        """A command of the Chrome DevTools protocol."""
        return self.tell("goog/cdp/execute", cmd=command, params=parameters)

    def act(self, actions):
        self.tell("actions", actions=actions)

    # ---- what a person does
    def open(self, url):
        self.tell("url", url=url)

    def reload(self):
        self.tell("refresh")

    def back(self):
        self.tell("back")

    def press(self, *names):
        """Keys, one after the other: "Tab", "a"; "Shift+Tab" holds the first."""
        strokes = []
        for name in names:
            keys = [KEYS.get(key, key) for key in name.split("+")]
            strokes += [{"type": "keyDown", "value": key} for key in keys] + [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self.act([{"type": "key", "id": "keyboard", "actions": strokes}])

    def hover(self, x, y):
        """The mouse goes there, in the window's pixels."""
        self.act([{"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"},
                   "actions": [{"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}]}])

    def size(self, width, height):
        """Of what is seen; a window has a least width."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        """What the person prefers: "dark" or "light"."""
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    # ---- what a person sees
    def script(self, text, *arguments):
        """What the body of a JavaScript function returns."""
        return self.tell("execute/sync", script=text, args=list(arguments))

    def wait_script(self, text, *arguments):
        """What it tells its last argument, a function, some time later."""
        return self.tell("execute/async", script=text, args=list(arguments))

    @property
    def text(self):
        return self.script("return document.body.innerText")

    @property
    def url(self):
        return self.ask("GET", f"/session/{self.session}/url")

    def all(self, role, name=None):
        """What has that role, in the page's order; name: all of what a screen reader calls it, or a part of it behind "~"."""
        root = self.cdp("DOM.getDocument", depth=0)["root"]["nodeId"]
        nodes = self.cdp("Accessibility.queryAXTree", nodeId=root, role=role)["nodes"]
        return [Found(self, node["backendDOMNodeId"]) for node in nodes if not node.get("ignored") and "backendDOMNodeId" in node and
                is_named(node.get("name", {}).get("value", ""), name)]

    def module(self, file, text, *arguments):
        """What the body of a JavaScript function returns whose `module` is that script of the page; it may wait."""
        return self.wait_script(f"const [file, given, done] = arguments; import(file).then(async module => {{ {text} }}).then(done, "
                                "error => done(`failed: ${error}`))", f"/page/{file}", list(arguments))

    def find(self, role, name=None):
        return wait_for(f"{role} {name or ''}", lambda: self.all(role, name))[0]

    def focused(self):
        """Role and name of what has the keyboard."""
        held = self.cdp("Runtime.evaluate", expression="document.activeElement")["result"]["objectId"]
        node = self.cdp("Accessibility.getPartialAXTree", objectId=held, fetchRelatives=False)["nodes"][0]
        return node.get("role", {}).get("value", ""), node.get("name", {}).get("value", "")

    def picture(self, path, **part):
        """Of what is seen, as WebP: a third of a PNG's bytes. part: x, y, width and height; else all of it."""
        clip = {"clip": {**part, "scale": 1}} if part else {}
        data = self.cdp("Page.captureScreenshot", format="webp", quality=75, **clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    # ---- what happened behind it
    def logged(self, kind):
        """All that a log ("console", "network") has had so far."""
        for row in self.tell("se/log", type=LOG_KINDS[kind]):
            self.messages[kind].append(row if kind == "console" else json.loads(row["message"])["message"])
        return self.messages[kind]

    def complaints(self):
        """Errors and warnings of the console."""
        return [row["message"] for row in self.logged("console") if row["level"] in ("SEVERE", "WARNING")]

    def asked(self):
        """The addresses that went over the network, WebSockets included."""
        events = [(row["method"], row["params"]) for row in self.logged("network")]
        urls = [params["request"]["url"] for method, params in events if method == "Network.requestWillBeSent"] + \
               [params["url"] for method, params in events if method == "Network.webSocketCreated"]
        return [url for url in urls if re.match("https?:|wss?:|ftp:", url)]

    def strangers(self):
        """Of them, those of other hosts."""
        return [url for url in self.asked() if not re.match(r"(http|ws)://(127\.0\.0\.1|localhost)[:/]", url)]


def is_named(name, wanted):
    if wanted is None:
        return True
    return wanted[1:] in name if wanted.startswith("~") else wanted == name
