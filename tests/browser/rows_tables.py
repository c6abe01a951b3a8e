"""Rows of test_page.py on the tables of one job: that they can be read in a narrow window, and what they mark."""
import looks
import made
from scene import expect, row

IMAGE = "registry.example.com/research/a-team-with-a-long-name/shoal-agent@sha256:" + "0123456789abcdef" * 4
PULL = f'ImagePullBackOff: Back-off pulling image "{IMAGE}": rpc error: code = NotFound desc = failed to pull and unpack image'
TABLES = ["Conditions", "Events", "Memory", "Phases", "Pods", "Ranks", "Time by kind"]


def rank(number, ratio, state="running"):
    return {"rank": number, "pod": f"pretraining-worker-{number}", "host": "node", "state": state, "phase": "forward", "op": "all_gather",
            "unit": "blocks.11", "step": 87500 + number, "compute_ratio": ratio}


def whole(**more):
    """What a job has that fills every table."""
    return {"ranks": [rank(number, 1 + number / 100) for number in range(4)],
            "phases": {"data": 0.1, "forward": 1.25, "backward": 2.5, "optimizer": 0.5},
            "memory": {kind: {"current": 12345678 * n, "peak": 123456789 * n} for n, kind in enumerate(["shards", "gathered_units", "all"], 1)},
            "pods": [{"name": f"pretraining-worker-{n}", "phase": "Pending", "node": "gke-pool-a-0123456789ab", "restarts": 3,
                      "waiting": {"reason": "ImagePullBackOff", "message": PULL}} for n in range(2)], **more}


@row("words, numbers and titles of a job's tables stay whole and in their panel, from 320 to 1600 pixels")
def tables(scene):
    job = scene.made()
    job.tell(21, PULL, **whole())
    told = scene.browser.script("return [...document.querySelectorAll('.panel table')].map(table => table.getAttribute('aria-label')).sort()")
    expect(told == TABLES, told)
    for width in (320, 400, 861, 1600):
        scene.browser.size(width, 900)
        expect(not looks.broken(scene.browser), (width, looks.broken(scene.browser)))
        expect(not looks.too_wide(scene.browser), (width, looks.too_wide(scene.browser)))
        scrolled = scene.browser.script("return [...document.querySelectorAll('.panel')].filter(one => one.scrollWidth > one.clientWidth).map(one => one.dataset.key)")
        expect(not scrolled, (width, scrolled))
        tables_of = [len(scene.browser.all("table", name)) for name in TABLES]
        expect(tables_of == [1] * len(TABLES), (width, tables_of))
    scene.browser.size(1280, 800)


@row("a job whose image cannot be pulled can be read at 320 pixels")
def stuck(scene):
    scene.browser.size(320, 800)
    scene.job("default/stuck")
    scene.browser.find("heading", "Conditions")
    expect(not looks.broken(scene.browser), looks.broken(scene.browser))
    expect(not looks.too_wide(scene.browser), looks.too_wide(scene.browser))
    scene.browser.size(1280, 800)


@row("a rank is marked as slow from 1.3 times the median's time on, as the agent's watch does")
def slow_ranks(scene):
    job = scene.made()
    marked = "return [...document.querySelectorAll('table[aria-label=Ranks] tr.slow')].map(row => row.cells[2].textContent)"
    for ranks, expected in (([rank(0, 0.99), rank(1, 1.01)], []), ([rank(0, 0.5), rank(1, 1.29)], []),
                            ([rank(0, 1), rank(1, 1.31), rank(2, 1.4)], ["running, slow", "running, the slowest"]),
                            ([rank(0, 1), rank(1, 1.0, "hung")], ["hung"])):
        job.tell(21, "news", **whole(ranks=ranks))
        expect(scene.browser.script(marked) == expected, (ranks, scene.browser.script(marked)))
