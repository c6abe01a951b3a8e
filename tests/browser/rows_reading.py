"""Rows of test_page.py on what a person reads: that it stays while news come, and can be read at all sizes and in both schemes."""
import looks
import made
from scene import expect, row
from webdriver import wait_for


@row("a point of a chart that is read by keys stays, and so does the keyboard, while news come")
def a_point_is_kept(scene):
    job, reading = scene.made(), "return document.activeElement.parentElement.querySelector('.reading').textContent"
    wait_for("a chart", lambda: scene.browser.press("Tab") or scene.browser.focused() == ("slider", "Loss"))
    scene.browser.press("Left", "Left", "Left")
    before = scene.browser.script(reading)
    expect("at step 160," in before, before)
    expect(scene.browser.script("return document.activeElement.getAttribute('aria-valuetext')") == before, "a screen reader is told something else")
    scene.browser.script("document.activeElement.mine = true")
    job.tell(23, "second")
    expect(scene.browser.script("return document.activeElement.mine") is True, scene.browser.focused())
    expect(scene.browser.script(reading) == before, scene.browser.script(reading))
    scene.browser.press("Left")
    expect("at step 150," in scene.browser.script(reading), scene.browser.script(reading))
    scene.browser.press("End")
    expect("at step 220," in scene.browser.script(reading), scene.browser.script(reading))


@row("a point under the pointer stays while news come, and goes with the pointer")
def a_point_is_hovered(scene):
    job, reading = scene.made(), "return document.querySelector('[data-key=Loss] .reading').textContent"
    left, top, right, bottom = scene.browser.script("const chart = document.querySelector('[data-key=Loss] svg'); chart.scrollIntoView();"
                                                    "const box = chart.getBoundingClientRect(); return [box.left, box.top, box.right, box.bottom]")
    scene.browser.hover(left + (right - left) / 2, (top + bottom) / 2)
    before = wait_for("a point", lambda: "at step" in scene.browser.script(reading) and scene.browser.script(reading))
    job.tell(21, "second")
    expect(scene.browser.script(reading) == before, scene.browser.script(reading))
    scene.browser.hover(5, 5)
    wait_for("the latest", lambda: scene.browser.script(reading).startswith("Loss: "))


@row("what is selected stays, and all that a reader may stand at, while news come")
def a_place_is_kept(scene):
    job = scene.made()
    text = scene.browser.script("const cell = document.querySelector('table[aria-label=Conditions] td.message'); getSelection().selectAllChildren(cell);"
                                "window.there = [...document.querySelectorAll('#main *:not(.chart *, .timeline *, table[aria-label=Events] *)')];"
                                "window.newest = document.querySelector('table[aria-label=Events] tbody tr'); return String(getSelection())")
    expect(text == "someone selects this sentence", text)
    job.tell(22, "second", state="Restarting")
    expect(scene.browser.script("return String(getSelection())") == text, scene.browser.script("return String(getSelection())"))
    gone = scene.browser.script("return there.filter(node => !node.isConnected).map(node => node.innerText)")
    expect(gone == [], gone)
    expect(scene.browser.script("return newest.isConnected && newest.rowIndex") == 3, "the row of an event was made anew")
    for told in ("Restarting", "220/5000", "told as number 21"):
        scene.says(told)


@row("an answer that comes late does not hide a newer one")
def a_late_answer(scene):
    job = scene.made()
    older = job.ask(2)
    job.answer(older + 1, made.job(22, "the newer"))
    wait_for("it", lambda: "the newer" in job.drawn())
    job.answer(older, made.job(21, "the older"))
    job.tell(23, "the last")
    expect(job.drawn() == ["first", "the newer", "the last"], job.drawn())


@row("what would act on a screen, or turn the text around it, is shown as a sign of what cannot be read")
def controls_are_signs(scene):
    scene.made().tell(21, "no \u202egpj.exe\u202c, \u009b2J\u2066,\x1b[31m and \u2026 that")
    scene.says("no \ufffdgpj.exe\ufffd, \ufffd2J\ufffd,\ufffd[31m and \u2026 that")
    found = scene.browser.script("return document.body.innerHTML.match(/[\\u202a-\\u202e\\u2066-\\u2069\\u0080-\\u009f\\u001b]/g)")
    expect(found is None, found)


@row("of each range the axis of a chart has three to five numbers, all of them different")
def ticks(scene):
    scene.jobs()
    ranges = [[0.04, 0.97], [0, 1], [1, 2], [2.3001, 2.3009], [0.9, 7.4], [-5, 5], [1e-6, 3e-6], [12301, 12309.5], [0, 1e9]]
    found = scene.browser.module("chart.js", """
        const ranges = given[0];
        for (let i = 1; i < 2000; i++) ranges.push([i / 7, i / 7 + 1.01 ** i / 50]);
        return ranges.map(([low, high]) => [low, high, module.labelsOf(module.ticks(low, high, false), String)]).filter(([low, high, labels]) =>
            labels.length < 3 || labels.length > 5 || new Set(labels).size < labels.length || labels.some(at => at < low - 1e-9 || at > high * (1 + 1e-9)));""", ranges)
    expect(found == [], found[:5])
    whole = scene.browser.module("chart.js", "return [[1, 2], [2, 8], [1, 1000]].map(([low, high]) => module.ticks(low, high, true))")
    expect(whole == [[1, 2], [2, 4, 6, 8], [200, 400, 600, 800, 1000]], whole)
    same = scene.browser.module("chart.js", "return module.labelsOf([12302, 12304, 12306], () => '12.3k')")
    expect(same == ["12302", "12304", "12306"], same)


@row("texts of all sizes of window can be read, charts' too, and pieces of a timeline lie apart")
def sizes(scene):
    scene.made()
    for width in (1600, 700, 400):
        scene.browser.size(width, 900)
        wait_for("the charts' width", lambda: scene.browser.script("return [...document.querySelectorAll('.line-chart')].every(node => node.firstChild.width.baseVal.value === node.clientWidth)"))
        expect(scene.browser.script("return document.querySelectorAll('.chart text').length") >= 10, "no axes")
        expect(not looks.small(scene.browser), (width, looks.small(scene.browser)))
        expect(not looks.touching(scene.browser), (width, looks.touching(scene.browser)))
        expect(not looks.too_wide(scene.browser), (width, looks.too_wide(scene.browser)))
    scene.jobs()
    expect(not looks.small(scene.browser), looks.small(scene.browser))
    scene.browser.size(1280, 800)


@row("a job of which all is known has room in the list, at all sizes, and so have the titles above it")
def all_is_known(scene):
    job = made.job(20, gpus=1024, restarts=12, losses=[4, 3, 2], waiting={"reason": "Hung", "message": "Rank 3 makes no progress"})
    job["training"].update(step=123456, steps=999999, tokensPerSecond=56789, secondsLeft=90061, loss=0.01234)
    for width, state in ((1600, "Succeeded"), (1370, "Restarting"), (1350, "Suspended"), (1210, "Succeeded"), (1190, "Running"), (700, "Failed"),
                         (400, "Succeeded"), (400, "Restarting"), (400, "Suspended")):
        job["state"] = state
        scene.browser.size(width, 800)
        scene.jobs()
        scene.browser.module("table.js", "new module.JobTable(document.getElementById('main')).show(new Map([given]), {server: 'operator', leading: true})",
                             made.KEY, job)
        expect(scene.drawn() == ["made"], scene.drawn())
        for told in ("123456/999999, 1d1h left", "0.01234", "56.8k", "1.02k", "12", "90.0 %", "Rank 3 makes"):
            expect(told in scene.row_of("made"), (width, told, scene.row_of("made")))
        expect(not looks.cut(scene.browser), (width, looks.cut(scene.browser)))
        expect(not looks.too_wide(scene.browser), (width, looks.too_wide(scene.browser)))
        room = scene.browser.script("return document.querySelector('tr.job .c-way').clientWidth")
        expect(room > 100, (width, f"{room} pixels for what stands in the way"))
    scene.browser.size(1280, 800)


@row("marks can be told from what lies behind them in light and in dark: 3 to 1")
def marks(scene):
    for scheme in ("dark", "light"):
        scene.browser.scheme(scheme)
        scene.made()
        expect(not looks.faint_marks(scene.browser), (scheme, looks.faint_marks(scene.browser)))


@row("however often the window tells that it was scrolled, a frame draws once and reads no styles")
def one_draw_a_frame(scene):
    scene.jobs()
    told = scene.browser.wait_script("""
        const body = document.querySelector('table.jobs tbody'), measure = body.getBoundingClientRect, styles = window.getComputedStyle, done = arguments[0];
        let measured = 0, styled = 0;
        requestAnimationFrame(() => {
            body.getBoundingClientRect = function () { measured++; return measure.call(body); };
            window.getComputedStyle = function (...nodes) { styled++; return styles.call(window, ...nodes); };
            for (let i = 0; i < 50; i++) dispatchEvent(new Event('scroll'));
            requestAnimationFrame(() => {
                delete body.getBoundingClientRect;
                window.getComputedStyle = styles;
                done([measured, styled]);
            });
        });""")
    expect(told[0] in (1, 2) and told[1] == 0, told)  # 2: there were news, too
