"""What a person sees, clicks and loses on the live page: `tests/browser/test_page.py FOLDER IMAGES` prints TAP lines. One browser
looks at all of it. A row that the page answers with an error or a warning in the console fails.
"""
import re
import socket
import sys
import traceback

import kubernetes
import looks
import world
from scene import EVIL, FINISHED, Scene, expect, row, rows
from webdriver import wait_for

LISTENERS_MAX = 16  # of base/httpd.h
GONE = "ERR_CONNECTION_REFUSED|WebSocket connection to|ERR_EMPTY_RESPONSE|ERR_CONNECTION_RESET"


# ---- all jobs

@row("all jobs are told: first what runs, then what something stands in the way of")
def all_jobs(scene):
    scene.jobs()
    expect(scene.browser.script("return document.title") == "Shoal", "the title")
    expect(scene.drawn()[:2] == ["live", "stuck"], scene.drawn()[:5])
    expect("Failed" in scene.row_of(scene.drawn()[2]), scene.row_of(scene.drawn()[2]))
    wait_for("their states", lambda: "Running" in scene.row_of("live") and "Waiting" in scene.row_of("stuck"))
    expect(scene.browser.all("button", "~Failed 142"), [found.text for found in scene.browser.all("button")])
    scene.connection("Live")


@row("a row tells of step, loss, rate and goodput, and goes on by itself")
def a_row_is_live(scene):
    def step():
        told = re.search(r"(\d+)/\d+", scene.row_of("live"))
        return int(told[1]) if told else 0
    first = wait_for("a step", step)
    wait_for("the next", lambda: step() > first)
    wait_for("a curve of losses", lambda: scene.browser.script("return document.querySelector('tr.job svg.spark path') !== null"))
    wait_for("a goodput", lambda: re.search(r"\d\d\.\d %", scene.row_of("live")))


COMPUTE = "return document.querySelector('table[aria-label=Ranks] tbody tr')?.cells[5].textContent || ''"


@row("who looks at a job sees its ranks, how long each takes, phases and memory")
def a_job_has_ranks(scene):
    scene.job("default/live")
    for title in ("Ranks", "Phases of a step", "Memory of rank 0"):
        scene.browser.find("heading", title)
    wait_for("a rank's compute time", lambda: "%" in scene.browser.script(COMPUTE))
    ranks = "return [...document.querySelectorAll('table[aria-label=Ranks] tbody tr')].map(row => row.firstChild.textContent)"
    expect(scene.browser.script(ranks) == ["0", "1"], scene.browser.script(ranks))
    expect(not looks.faint(scene.browser), looks.faint(scene.browser))
    scene.agent.close()  # it has shown that it lives, and costs the machine its cores


@row("of 1,000 jobs only those on the screen are in the page")
def rows_are_virtual(scene):
    scene.jobs()
    most = 60
    expect(3 < len(scene.drawn()) < most, len(scene.drawn()))
    for part in (0.5, 1):
        scene.browser.script("scrollTo(0, arguments[0] * document.documentElement.scrollHeight)", part)
        wait_for("other rows", lambda: "live" not in scene.drawn())
        expect(3 < len(scene.drawn()) < most, len(scene.drawn()))
    wait_for("the last one", lambda: "done-0999" in scene.drawn() or "done-0993" in scene.drawn())
    nodes = scene.browser.script("return document.querySelectorAll('*').length")
    expect(nodes < 2000, f"{nodes} nodes")
    scene.browser.script("scrollTo(0, 0)")


@row("what is typed into the filter is looked for")
def the_filter(scene):
    scene.browser.press("/", *"stuck")
    scene.listed(1)
    expect(scene.drawn() == ["stuck"], scene.drawn())
    scene.browser.press(*["Backspace"] * 5, *"no such job")
    scene.says("No job fits the filter.")
    scene.browser.press(*["Backspace"] * 11)
    scene.listed(FINISHED + 2)


@row("a click shows the jobs of a state, a click on a column sorts")
def states_and_columns(scene):
    scene.browser.find("button", "~Failed").click()
    scene.listed(142)
    expect("Failed" in scene.row_of(scene.drawn()[0]), scene.row_of(scene.drawn()[0]))
    scene.browser.find("button", "~Failed").click()
    scene.browser.find("button", "Job").click()
    wait_for("jobs by name", lambda: scene.drawn()[0] == "done-0000")
    scene.browser.find("button", "~Job").click()
    wait_for("... and the other way", lambda: scene.drawn()[0] == "stuck")


@row("a job that is made appears, and one that is deleted goes")
def jobs_come_and_go(scene):
    scene.jobs()
    scene.cluster.put(kubernetes.JOBS, world.job("comes"), "ADDED")
    wait_for("the new job", lambda: "comes" in scene.drawn())
    scene.cluster.delete(kubernetes.JOBS, "comes")
    wait_for("it to go", lambda: "comes" not in scene.drawn())


# ---- one job

@row("a click opens a job, and the browser's way back leads back")
def a_job_opens(scene):
    scene.browser.find("link", "live").click()
    scene.browser.find("heading", "~live")
    expect(scene.browser.url.endswith("#/default/live"), scene.browser.url)
    for title in ("Where the time went", "Loss", "Samples per second", "Pods", "Events", "Conditions"):
        scene.browser.find("heading", title)
    expect(scene.browser.all("image", "~In order: "), "no timeline")
    expect(len(scene.browser.find("slider", "Loss").call("function () { return this.querySelectorAll('text').length + '' }")) > 0, "no axis")
    scene.says("live-worker-0")
    scene.browser.back()
    scene.browser.find("table", "Jobs")


@row("a chart has numbers on its axis")
def charts_have_axes(scene):
    scene.job("default/live")
    labels = scene.browser.find("slider", "Loss").call("function () { return [...this.querySelectorAll('text')].map(label => label.textContent) }")
    expect(any(re.fullmatch(r"-?[\d.]+", label) for label in labels), labels)


@row("a reload shows the same job again")
def a_reload(scene):
    scene.job("default/live")
    scene.browser.reload()
    scene.browser.find("heading", "~live")
    expect(scene.browser.script("return document.title") == "default/live - Shoal", "the title")
    scene.browser.find("link", "All jobs").click()
    scene.browser.find("table", "Jobs")


@row("a message that is a script is shown as text")
def scripts_are_text(scene):
    scene.jobs()
    expect("<script>" in scene.row_of("stuck"), scene.row_of("stuck"))
    scene.job("default/stuck")
    scene.says(EVIL)
    expect(scene.browser.script("return document.title") == "default/stuck - Shoal", "the script ran")
    expect(scene.browser.script("return document.querySelectorAll('main script, main img').length") == 0, "it became an element")


@row("what was some time ago gets older without news")
def ages(scene):
    age = "return [...document.querySelectorAll('.facts div')].find(fact => fact.textContent.startsWith('Age'))?.lastChild.textContent"
    scene.job("default/stuck")
    before = wait_for("its age", lambda: scene.browser.script(age))
    wait_for("it is older", lambda: scene.browser.script(age) != before)


@row("a job that is not there is told", allows="default/nobody .* 404")
def no_such_job(scene):
    scene.browser.open(f"{scene.operator.url}#/default/nobody")
    scene.says("There is no such job.")


@row("an address that leads up names no job, and nothing is asked for it")
def leads_up(scene):
    for key in ("..%2F..%2Fx/y", "../../x", "default/..", "./..", "default/../../../x", "%2E%2E/x"):
        scene.browser.open("about:blank")
        scene.browser.open(f"{scene.operator.url}#/{key}")
        scene.says("There is no such job.")
        scene.connection("Live")
    paths = {url.partition("#")[0].partition("://")[2].partition("/")[2] for url in scene.browser.asked()}
    stray = [path for path in paths if not re.fullmatch(r"|live|page/[a-z]+\.[a-z]+|api/v1/jobs(/[^/]+/[^/]+)?", path)]
    expect(not stray, stray)


# ---- by keyboard and screen reader

@row("Tab reaches each job, and Enter opens it")
def by_keyboard(scene):
    scene.jobs()
    scene.browser.press("Tab")
    expect(scene.browser.focused() == ("link", "Skip to the content"), scene.browser.focused())
    wait_for("the first job", lambda: scene.browser.press("Tab") or scene.browser.focused() == ("link", "live"))
    order = scene.browser.script("return [...document.querySelectorAll('tr.job a')].map(link => link.textContent)")
    reached = ["live"]
    for _ in range(60):  # more than there are rows
        scene.browser.press("Tab")
        reached.append(scene.browser.focused()[1])
    expect(reached[:len(order)] == order and len(set(reached)) == 61, reached)
    expect(all(re.fullmatch("done-[0-9]{4}", name) for name in reached[2:]), reached)
    scene.browser.press("Enter")
    scene.browser.find("heading", f"~{reached[-1]}")


@row("arrow keys and End go through the list")
def by_arrows(scene):
    scene.jobs()
    wait_for("the first job", lambda: scene.browser.press("Tab") or scene.browser.focused() == ("link", "live"))
    scene.browser.press("Down")
    expect(scene.browser.focused() == ("link", "stuck"), scene.browser.focused())
    scene.browser.press("End")
    last = wait_for("the last", lambda: scene.browser.focused()[1] != "stuck" and scene.browser.focused()[1])
    expect(last in ("done-0993", "done-0999"), last)


@row("on a narrow screen Tab stops at nothing that cannot be seen")
def no_hidden_stops(scene):
    scene.browser.size(400, 800)
    try:
        scene.jobs()
        wait_for("the filter", lambda: scene.browser.press("Tab") or scene.browser.focused()[0] == "searchbox")
        stops = []
        while scene.browser.focused() != ("link", "live"):
            expect(len(stops) < 12, stops)
            is_seen = scene.browser.script("const box = document.activeElement.getBoundingClientRect(), hit = document.elementFromPoint("
                                           "(box.left + box.right) / 2, (box.top + box.bottom) / 2); return document.activeElement.contains(hit)")
            stops.append(scene.browser.focused()[1])
            expect(is_seen, f"{stops[-1]} cannot be seen")
            scene.browser.press("Tab")
        expect("Sort by" in stops, stops)
        heads = [found.call("function () { return this.textContent }") for found in scene.browser.all("columnheader")]
        expect(len(heads) == 10, f"a screen reader is told of columns {heads}")
    finally:
        scene.browser.size(1280, 800)


@row("on a narrow screen jobs can be sorted both ways, and what they are sorted by is shown")
def narrow_sorting(scene):
    scene.browser.size(400, 800)
    try:
        scene.jobs()
        scene.browser.find("combobox", "Sort by").call("function () { this.focus() }")
        scene.browser.press("g", "o")
        for way, other in (("Ascending", "Descending"), ("Descending", "Ascending")):
            wait_for("goodput of the first", lambda: re.search(r"\d\.\d %", scene.row_of(scene.drawn()[0])))
            scene.browser.find("button", f"~{way}").click()
            scene.browser.find("button", f"~{other}")
        scene.browser.find("combobox", "Sort by").call("function () { this.focus() }")
        scene.browser.press("a")
        wait_for("the youngest", lambda: not scene.drawn()[0].startswith("done-"))
        scene.browser.find("button", "~Ascending").click()
        wait_for("the oldest", lambda: scene.drawn()[0] == f"done-{FINISHED - 1:04}")
        expect(re.search("[0-9]+d", scene.row_of(scene.drawn()[0])), scene.row_of(scene.drawn()[0]))
        scene.browser.find("button", "~Descending")
    finally:
        scene.browser.size(1280, 800)


@row("all that can be operated has a name")
def names(scene):
    scene.jobs()
    expect(not looks.nameless(scene.browser), looks.nameless(scene.browser))
    scene.job("default/live")
    expect(not looks.nameless(scene.browser), looks.nameless(scene.browser))


# ---- how it looks

@row("nothing is wider than the window or has no room, from 400 to 1600 pixels")
def widths(scene):
    for width, height in ((400, 800), (1210, 800), (1370, 800), (1600, 1000)):
        scene.browser.size(width, height)
        scene.jobs()
        expect(not looks.too_wide(scene.browser), (width, looks.too_wide(scene.browser)))
        expect(not looks.cut(scene.browser), (width, looks.cut(scene.browser)))
        expect("live" in scene.drawn() and len(scene.drawn()) < 60, (width, len(scene.drawn())))
        for name in ("live", "stuck"):
            scene.job(f"default/{name}")
            expect(not looks.too_wide(scene.browser), (width, name, looks.too_wide(scene.browser)))
    scene.browser.size(1280, 800)


@row("texts can be read in light and in dark: AA's contrasts")
def contrasts(scene):
    backs = set()
    for scheme in ("dark", "light"):
        scene.browser.scheme(scheme)
        scene.jobs()
        backs.add(scene.browser.script("return getComputedStyle(document.documentElement).backgroundColor"))
        expect(not looks.faint(scene.browser), (scheme, looks.faint(scene.browser)))
        for name in ("live", "stuck"):
            scene.job(f"default/{name}")
            scene.browser.find("heading", "Conditions")
            expect(not looks.faint(scene.browser), (scheme, name, looks.faint(scene.browser)))
    expect(len(backs) == 2, backs)


import rows_reading  # noqa: E402, F401: its rows come here
import rows_tables  # noqa: E402, F401: likewise
import rows_time  # noqa: E402, F401: likewise


# ---- what goes wrong

@row("where WebSockets are refused the page asks, and listens again when it can", allows="WebSocket connection to")
def refused(scene):
    scene.browser.open("about:blank")  # whose WebSocket ends
    listeners = [listen(scene.operator.ui) for _ in range(LISTENERS_MAX)]
    scene.jobs()
    scene.connection("Polls every 5 s")
    scene.cluster.put(kubernetes.JOBS, world.job("asked"), "ADDED")
    wait_for("the new job", lambda: "asked" in scene.drawn())
    for one in listeners:
        one.close()
    scene.connection("Live")
    scene.cluster.delete(kubernetes.JOBS, "asked")
    scene.listed(FINISHED + 2)


def listen(port):
    """A WebSocket of nobody's."""
    wire = socket.create_connection(("127.0.0.1", port))
    wire.sendall(f"GET /live HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
    answer = wire.recv(12)
    if answer != b"HTTP/1.1 101":
        raise AssertionError(answer)
    return wire


@row("a lost connection is told, and the page comes back with what has changed", allows=GONE)
def lost(scene):
    scene.jobs()
    scene.connection("Live")
    scene.operator.stop()
    scene.connection("No connection.")
    expect("live" in scene.drawn(), "the jobs are gone")
    scene.cluster.put(kubernetes.JOBS, world.job("meanwhile"), "ADDED")
    scene.operator.start()
    scene.connection("Live")
    wait_for("the new job", lambda: "meanwhile" in scene.drawn())
    scene.cluster.delete(kubernetes.JOBS, "meanwhile")
    scene.listed(FINISHED + 2)


@row("an operator that stands by says who leads")
def standby(scene):
    scene.cluster.put("leases", {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                                 "metadata": {"name": "shoal-operator", "namespace": "ml"},
                                 "spec": {"holderIdentity": "operator-a_00ff", "leaseDurationSeconds": 3600,
                                          "renewTime": kubernetes.time_text().replace("Z", ".000000Z")}}, "ADDED")
    other = world.Operator(scene.folder, scene.cluster, "--leader-elect", namespace="ml")
    try:
        other.start()
        scene.browser.open(other.url)
        wait_for("who leads", lambda: "operator-a works on the jobs" in scene.browser.text)
        expect("kubectl -n ml port-forward pod/operator-a 8082" in scene.browser.text, scene.browser.text)
        expect(scene.browser.script("return document.querySelectorAll('tr.job').length") == 0, "a standby's jobs are shown")
        scene.browser.open("about:blank")
    finally:
        other.close()


@row("no script but the page's own runs", allows="Content Security Policy|Content-Security-Policy")
def policy(scene):
    headers = {name.lower(): value for name, value in world.get(scene.operator.ui, "/")[1].items()}
    expect("default-src 'none'" in headers["content-security-policy"], headers)
    expect("unsafe" not in headers["content-security-policy"], headers)
    scene.jobs()
    scene.browser.script("const one = document.createElement('script'); one.textContent = \"document.title = 'taken'\"; document.body.append(one)")
    expect(scene.browser.script("return document.title") == "Shoal", "an inline script ran")


@row("without JavaScript a person reads where else to look")
def no_script(scene):
    scene.browser.cdp("Emulation.setScriptExecutionDisabled", value=True)
    try:
        scene.browser.open("about:blank")
        scene.browser.open(scene.operator.url)
        scene.browser.find("link", "all jobs as JSON")
        expect("shoal top" in scene.browser.text and "Loading" not in scene.browser.text, scene.browser.text)
    finally:
        scene.browser.cdp("Emulation.setScriptExecutionDisabled", value=False)


# ---- a training without an operator

@row("an agent serves its own job: ranks and how long each takes, phases, memory")
def an_agent(scene):
    scene.train()
    scene.browser.open(f"http://127.0.0.1:{scene.agent.port}/")
    scene.browser.find("heading", "~50% of mnist")
    for title in ("Where the time went", "Loss", "Ranks", "Phases of a step", "Memory of rank 0"):
        scene.browser.find("heading", title)
    scene.connection("Live")
    scene.browser.find("image", "~In order: ")
    wait_for("a rank's compute time", lambda: "%" in scene.browser.script(COMPUTE))
    expect(not looks.faint(scene.browser), looks.faint(scene.browser))
    expect(not looks.nameless(scene.browser), looks.nameless(scene.browser))


@row("no page asked another host for anything")
def strangers(scene):
    expect(len(scene.browser.asked()) > 50, scene.browser.asked())
    expect(not scene.browser.strangers(), scene.browser.strangers())


def run(scene):
    failed = 0
    for number, (name, allows, function) in enumerate(rows, 1):
        before = len(scene.browser.complaints())
        try:
            function(scene)
            heard = [text for text in scene.browser.complaints()[before:] if not allows or not re.search(allows, text)]
            expect(not heard, f"the console has {heard}")
            print(f"ok {number} - {name}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} - {name}")
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end="", flush=True)
    return failed


if __name__ == "__main__":
    stage = Scene(*sys.argv[1:3])
    try:
        failures = run(stage)
    finally:
        stage.close()
    print(f"1..{len(rows)}")
    sys.exit(failures > 0)
