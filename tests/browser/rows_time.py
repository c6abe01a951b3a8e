"""Rows of test_page.py on where a job's time went: what is told of it, and what goes on since, which the page adds."""
import re

import kubernetes
import made
from scene import FINISHED, expect, row
from webdriver import wait_for

# 950 s are told: of them 700 s count, and 600 s are steps.
TOLD = {"pending": 100, "step": 600, "suspended": 200, "untold": 50}
PIECES = [("pending", 0, 100), ("suspended", 100, 300), ("untold", 300, 350), ("step", 350, 950)]
STILL = "window.still = arguments[0]; Date.now = () => 1000 * window.still"  # the page's clock


def job(kind, goodput=0.857, seconds=TOLD, pieces=PIECES):
    """What the operator tells of a job in which that kind of time goes on; None: its processes tell."""
    training = {"step": 200, "steps": 5000, "seconds": seconds, **({"goodput": goodput} if goodput else {}), **({"secondsKind": kind} if kind else {})}
    return made.job(20, training=training, timeline=[{"kind": name, "from": made.START + begin, "to": made.START + end} for name, begin, end in pieces])


@row("what goes on is added to the seconds told and to the goodput, once")
def open_time(scene):
    scene.jobs()
    rows = [  # kind, told goodput; at 1250 s: what is added, and the goodput
        ("recovery", 0.857, {"recovery": 300}, 0.6), ("pending", 0.857, {"pending": 300}, 0.6), ("other", 0.857, {"other": 300}, 0.6),
        ("suspended", 0.857, {"suspended": 300}, 600 / 700), ("untold", 0.857, {"untold": 300}, 600 / 700),
        ("recovery", None, {"recovery": 300}, None), (None, 0.857, {}, 0.857)]
    for kind, goodput, added, shown in rows:
        told = job(kind, goodput)
        seconds, ratio, kept = scene.browser.module("text.js", """
            const [job, now] = given, kept = JSON.stringify(job);
            return [module.secondsOf(job, now), module.goodputOf(job, now) ?? null, JSON.stringify(job) === kept];""", told, made.START + 1250)
        expect(seconds == {**TOLD, **{name: TOLD.get(name, 0) + more for name, more in added.items()}}, (kind, seconds))
        expect(kind is None or sum(seconds.values()) == 1250, (kind, seconds))
        expect(ratio == shown or abs(ratio - shown) < 1e-9, (kind, ratio))
        expect(kept, f"{kind}: what was told is changed")
    early = scene.browser.module("text.js", "return module.secondsOf(given[0], given[1])", job("recovery"), made.START + 900)
    expect(early == TOLD, early)  # a clock that is behind takes nothing away


@row("one job's page has it in the goodput, the table and the timeline, and it grows")
def time_grows(scene):
    def spent():
        return dict(scene.browser.script("return [...document.querySelectorAll('table[aria-label=\"Time by kind\"] tbody tr')].map("
                                         "row => [row.cells[0].textContent, `${row.cells[1].textContent} ${row.cells[2].textContent}`])"))

    def shown(now, told):
        scene.browser.script(STILL, made.START + now)
        page.answer(page.ask(), {**told, "message": f"{now}: {told['training'].get('secondsKind')}"})
        wait_for("the answer", lambda: page.drawn()[-1].startswith(f"{now}: "))
        goodput = scene.browser.script("return [...document.querySelectorAll('.facts div')].find(fact => fact.textContent.startsWith('Goodput'))?.lastChild.textContent")
        timeline = scene.browser.all("image", "~In order: ")[0].call("function () { return this.getAttribute('aria-label') }")
        return goodput, spent(), timeline

    page = scene.made()
    before = "In order: pending 1m40s, suspended 3m20s, not told 50s, steps 10m"
    goodput, kinds, timeline = shown(1250, job("recovery"))
    expect(goodput == "60.0 %" and kinds["recovery"] == "5m 24.0 %" and kinds["steps"] == "10m 48.0 %", (goodput, kinds))
    expect(timeline == f"{before}, recovery 5m", timeline)
    goodput, kinds, timeline = shown(1450, job("recovery"))  # nothing new is told
    expect(goodput == "50.0 %" and kinds["recovery"] == "8m20s 34.5 %", (goodput, kinds))
    expect(timeline == f"{before}, recovery 8m20s", timeline)
    # a kind that went on before goes on in its piece
    _, _, timeline = shown(1500, job("recovery", seconds={**TOLD, "recovery": 250}, pieces=[*PIECES, ("recovery", 950, 1200)]))
    expect(timeline == f"{before}, recovery 9m10s", timeline)
    goodput, kinds, timeline = shown(1600, job(None))
    expect(goodput == "85.7 %" and "recovery" not in kinds and timeline == before, (goodput, kinds, timeline))
    goodput, kinds, timeline = shown(1650, job("pending", None, seconds={"step": 1}, pieces=[]))  # of which no operator saw the past
    expect(goodput is None and kinds["pending"].startswith("27m29s") and timeline == "In order: pending 27m30s", (kinds, timeline))


@row("jobs that have ended have the goodput of their status, however long ago it was")
def ended(scene):
    told = {name: thing["status"]["training"]["goodputPercent"].replace("%", " %")
            for (_, name), thing in scene.cluster.objects[kubernetes.JOBS].items() if name.startswith("done-")}
    scene.jobs()
    scene.browser.press("/", *"done-")
    scene.listed(FINISHED)
    shown = {name: re.findall(r"\d+\.\d %", scene.row_of(name)) for name in scene.drawn()}
    expect(shown == {name: [told[name]] for name in shown}, shown)
    expect(len(set(told.values())) > 10, "all have the same")
    name = scene.drawn()[0]
    scene.browser.script("const now = Date.now; Date.now = () => now() + 86400000")
    scene.browser.find("link", name).click()
    scene.browser.find("heading", f"~{name}")
    scene.says(told[name])
    scene.says("recovery")
