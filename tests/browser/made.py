"""A job whose answers are the test's own, each at a moment of its choice: the page asks for it as for any other."""
import kubernetes
from webdriver import wait_for

KEY = "default/made"
START = 1767225600  # 2026-01-01
KINDS = ["pending", "containerStart", "initialization", "dataLoading", "step", "evaluation", "checkpointSave", "checkpointRestore", "peerWait",
         "lostWork", "recovery", "suspended", "other"]
PIECES = 60

# The page's questions for the job wait in `asks` until the test answers; `drawn` has the messages of the answers that were shown.
TAKE_OVER = """
const {ask, draw} = module.JobView.prototype, fetched = window.fetch;
Object.assign(window, {asks: [], drawn: []});
module.JobView.prototype.ask = function () { window.view = this; return ask.call(this); };
module.JobView.prototype.draw = function (job) { draw.call(this, job); window.drawn.push(job.message); };
window.fetch = (url, ...more) => !String(url).endsWith(given[0]) ? fetched(url, ...more)
    : new Promise(resolve => window.asks.push(job => resolve(new Response(JSON.stringify(job)))));
location.hash = `#/${given[0]}`;
"""


def job(points, message="news", **more):
    """So many points of its series are known; the newest event is the last of as many."""
    times = [START + 15 * i for i in range(points)]
    pieces = [START + 15 * points * i / PIECES for i in range(PIECES + 1)]
    events = [{"time": kubernetes.time_text(START + i), "type": "Normal", "reason": f"Event{i}", "message": f"told as number {i}"} for i in range(points)]
    return {"namespace": "default", "name": "made", "creationTimestamp": kubernetes.time_text(START), "state": "Running", "message": message,
            "training": {"step": 10 * points, "steps": 5000, "loss": 2.5, "goodput": 0.9, "seconds": {kind: 10 + i for i, kind in enumerate(KINDS)}},
            "series": {"unit": "tokensPerSecond", "time": times, "step": [10 * i for i in range(points)], "loss": [4 - i / 100 for i in range(points)],
                       "rate": [12000.5 + i % 7 for i in range(points)]},
            "timeline": [{"kind": KINDS[i % len(KINDS)], "from": pieces[i], "to": pieces[i + 1]} for i in range(PIECES)],
            "conditions": [{"type": "Running", "status": "True", "reason": "PyTorchJobRunning", "message": "someone selects this sentence",
                            "lastTransitionTime": kubernetes.time_text(START)}],
            "events": events[::-1][:10], **more}


class Made:
    def __init__(self, browser):
        """With the list of jobs open."""
        self.browser = browser
        failure = browser.module("job.js", TAKE_OVER, KEY)
        if failure:
            raise AssertionError(failure)
        wait_for("the page to ask for it", lambda: browser.script("return window.asks.length"))

    def ask(self, times=1):
        """The page asks again; gives the number of the first of these questions."""
        return self.browser.script("const first = asks.length; for (let i = 0; i < arguments[0]; i++) view.ask(); return first", times)

    def answer(self, question, told):
        self.browser.script("asks[arguments[0]](arguments[1])", question, told)

    def drawn(self):
        """The messages of the answers that the page has shown, in order."""
        return self.browser.script("return drawn")

    def tell(self, points, message, **more):
        """News, and the page shows them."""
        self.answer(self.ask(), job(points, message, **more))
        wait_for(f"the page to show {message}", lambda: message in self.drawn())
