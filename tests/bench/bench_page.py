#!/usr/bin/env python3
"""The live page in Chromium, by the browser's own measures: first paint, bytes, and how smoothly 1,000 jobs scroll. And what the
operator holds for it, without jobs and with those. What running jobs cost: tests/bench/bench_progress.sh.

  tests/bench/bench_page.py [LOADS] [JOBS]     loads of the page (20), jobs that it lists (1000)
"""
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "browser"))
import kubernetes
import world
from webdriver import Browser, wait_for

LOADS = int(sys.argv[1]) if len(sys.argv) > 1 else 20
JOBS = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
SCROLLED_FRAMES = 100
REST_S = 10  # after which an operator is idle

PAINTS = "return Object.fromEntries(performance.getEntriesByType('paint').map(paint => [paint.name, paint.startTime]))"
FETCHED = """return performance.getEntriesByType('navigation').concat(performance.getEntriesByType('resource'))
    .filter(one => !one.name.includes('/api/')).reduce((sum, one) => sum + one.encodedBodySize, 0)"""
# From one end to the other in so many frames; milliseconds from frame to frame.
SCROLL = """
const [frames, done] = [arguments[0], arguments[1]], times = [];
const step = document.documentElement.scrollHeight / frames;
function next(time) {
    times.push(time);
    if (times.length > frames) return done(times.slice(1).map((at, i) => at - times[i]));
    scrollBy(0, step);
    requestAnimationFrame(next);
}
requestAnimationFrame(next);
"""


def row(name, value):
    print(f"{name:<66} {value:>16}", flush=True)


def line(numbers, unit):
    return f"{statistics.median(numbers):.0f}; {max(numbers):.0f} {unit}"


def main(folder):
    row(f"load of this machine of {os.cpu_count()} cores at the start", f"{os.getloadavg()[0]:.1f}")
    cluster = kubernetes.Cluster()
    operator = world.Operator(folder, cluster)
    try:
        operator.start()
        with Browser(folder) as browser:
            browser.open(operator.url)
            wait_for("the page", lambda: "There are no jobs." in browser.text)
            time.sleep(REST_S)
            row("the operator's resident memory, idle with the page open", memory(operator))
            for job in world.finished_jobs(JOBS):
                cluster.put(kubernetes.JOBS, job, "ADDED")
            wait_for("the jobs", lambda: f"{JOBS} jobs" in browser.text)
            time.sleep(REST_S)
            row(f"... with {JOBS} jobs that have ended", memory(operator))
            measure(browser, operator)
            row("... after all of the above", memory(operator))
            row("load of this machine at the end", f"{os.getloadavg()[0]:.1f}")
    finally:
        operator.close()
        cluster.close()


def memory(operator):
    with open(f"/proc/{operator.process.pid}/status") as status:
        kib = next(int(text.split()[1]) for text in status if text.startswith("VmRSS"))
    return f"{kib / 1024:.1f} MiB"


def scraped(port, path):
    """Milliseconds of each answer, and bytes."""
    times, size = [], 0
    for _ in range(LOADS):
        start = time.monotonic()
        status, _, body = world.get(port, path)
        times.append(1000 * (time.monotonic() - start))
        size = len(body.encode())
        if status != 200:
            raise RuntimeError(f"{path}: {status}")
    return times, size


def measure(browser, operator):
    browser.size(1280, 800)
    first, content = [], []
    for _ in range(LOADS):
        browser.open("about:blank")
        browser.open(operator.url)
        browser.find("table", "Jobs")
        paints = wait_for("a paint", lambda: browser.script(PAINTS))
        first.append(paints["first-paint"])
        content.append(paints["first-contentful-paint"])
    row("first paint: median; worst", line(first, "ms"))
    row("first contentful paint: median; worst", line(content, "ms"))
    row("the page and its files", f"{browser.script(FETCHED) / 1000:.1f} kB")
    wait_for("the jobs", lambda: browser.script("return document.querySelectorAll('tr.job').length"))
    frames = browser.wait_script(SCROLL, SCROLLED_FRAMES)
    row(f"{JOBS} jobs, scrolled through in {SCROLLED_FRAMES} frames: median; worst", line(frames, "ms"))
    for name, port, path in (("/metrics", operator.metrics, "/metrics"), ("all jobs as JSON", operator.ui, "/api/v1/jobs")):
        times, size = scraped(port, path)
        row(f"{name} of {JOBS} jobs over HTTP, {LOADS} times: median; worst", line(times, "ms"))
        row("... bytes", size)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(place)
