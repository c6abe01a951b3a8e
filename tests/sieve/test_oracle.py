"""The pure parts of the sieve, with objects recorded from an API server: `python3 tests/sieve/test_oracle.py` prints TAP lines."""
import copy
import json
import os
import sys
from collections import Counter

import injections
import oracle
import proxy
import rules
import sieve
import trace
from scenarios import SCENARIOS

number = 0


def check(name, holds):
    global number
    number += 1
    print(f"{'ok' if holds else 'not ok'} {number} - {name}")
    return holds


with open(os.path.join(os.path.dirname(__file__), "recorded.json")) as recorded:
    RUNS = json.load(recorded)  # {namespace: {name: object}}: the same job's life, twice
FIRST, SECOND = ({name: oracle.masked(item, {namespace: "NAMESPACE"}) for name, item in objects.items()} for namespace, objects in RUNS.items())


def changed(change):
    """What is told of the second run after a change."""
    objects = copy.deepcopy(SECOND)
    change(objects)
    return oracle.differences(FIRST, objects)


def judges():
    passed = True
    passed &= check("two runs differ as they are", list(RUNS.values())[0] != list(RUNS.values())[1])
    passed &= check("and are equal but for what is volatile", oracle.differences(FIRST, SECOND) == [])
    passed &= check("and where the API server keeps what", oracle.masked("(*core.Handler)(0xc005b4e8a0)", {"n": "N"}) == "(*core.Handler)(ADDRESS)")
    passed &= check("a pod less is seen", changed(lambda o: o.pop("pods/j-worker-0")) != [])
    passed &= check("a pod more is seen", changed(lambda o: o.update({"pods/j-worker-7": {}})) == ["pods/j-worker-7: {}, calm nothing"])
    passed &= check("a count is seen", "status.history.failures: 2, calm 1" in changed(
        lambda o: o["pytorchjobs/j"]["status"]["history"].update(failures=2))[0])
    passed &= check("a condition is seen", changed(lambda o: o["pytorchjobs/j"]["status"]["conditions"].pop()) != [])
    passed &= check("two conditions in another order are seen", changed(lambda o: o["pytorchjobs/j"]["status"]["conditions"].reverse()) != [])
    passed &= check("a variable of a pod is seen", changed(
        lambda o: o["pods/j-worker-0"]["spec"]["containers"][0]["env"][0].update(value="7")) != [])
    passed &= check("how long what took is not, in status.training alone", oracle.masked(
        {"training": {"seconds": {"step": 2}, "goodput": 0.5, "step": 7}, "sleep": {"seconds": 5}}, {"n": "N"}) ==
        {"training": {"step": 7}, "sleep": {"seconds": 5}})
    passed &= check("a time that is left out is seen", changed(lambda o: o["pytorchjobs/j"]["status"].pop("startTime")) != [])
    return passed


def counts():
    passed, twice = True, [("pods/a", "1", "ADDED"), ("pods/a", "1", "MODIFIED"), ("pods/a", "1", "DELETED"), ("pods/a", "2", "ADDED")]
    calm, got = oracle.tally(twice[:3]), oracle.tally(twice)
    passed &= check("one life", calm == Counter({("created", "pods/a"): 1, ("deleted", "pods/a"): 1}))
    passed &= check("one more is told", oracle.miscounts(calm, got) == ["pods/a: created 2 times, calm 1"])
    passed &= check("and is beyond what waiting mends", oracle.is_beyond(calm, got) and not oracle.is_beyond(got, calm))
    passed &= check("one less is told, too", oracle.miscounts(got, calm) == ["pods/a: created 1 times, calm 2"])
    return passed


NAMES = [
    ("POST", "/api/v1/namespaces/n/pods", '{"metadata": {"name": "j-master-0"}}', "POST pods j-master-0"),
    ("POST", "/api/v1/namespaces/n/events", '{"reason": "Created", "metadata": {"name": "j.17"}}', "POST events Created"),
    ("GET", "/api/v1/namespaces/n/pods?limit=250&labelSelector=a", "", "LIST pods"),
    ("GET", "/api/v1/namespaces/n/pods?watch=1&resourceVersion=7", "", "WATCH pods"),
    ("PATCH", "/apis/kubeflow.org/v1/namespaces/n/pytorchjobs/j/status", "{}", "PATCH pytorchjobs/status j"),
    ("DELETE", "/api/v1/namespaces/n/pods/j-master-0", "{}", "DELETE pods j-master-0"),
    ("GET", "/apis/autoscaling/v2beta2/namespaces/n/horizontalpodautoscalers/j", "", "GET horizontalpodautoscalers j"),
    ("GET", "/version", "", "GET /version"),
]


def names():
    passed = True
    for method, target, body, name in NAMES:
        passed &= check(name, trace.request_name(method, target, body) == name)
    seen = trace.Trace()
    passed &= check("the second of a name", [seen.note("a"), seen.note("b"), seen.note("a")] == ["a #1", "b #1", "a #2"])
    passed &= check("an event", trace.event_name("pods", {"type": "ADDED", "object": {"metadata": {"name": "j"}}}) == "ADDED pods j")
    passed &= check("a bookmark is none", trace.event_name("pods", {"type": "BOOKMARK", "object": {}}) is None)
    passed &= check("nor is a node's", trace.event_name("nodes", {"type": "ADDED", "object": {"metadata": {"name": "n"}}}) is None)
    kinds, events = (len(injections.REQUEST_KINDS), len(injections.EVENT_KINDS)), ["c", "d", "e", "f"]
    passed &= check("each request and each event has all its kinds",
                    len(injections.cases(["a", "b"], events, False)) == 2 * kinds[0] + 4 * kinds[1] - 2 * 3)
    last = {case.kind for case in injections.cases([], events, False) if case.at == "d"}
    passed &= check("but for what comes some events later, where no such event comes", injections.EVENT_KINDS.keys() - last == {"stale-soon", "behind-soon"})
    written = [case.at for case in injections.cases(["LIST pods #1", "POST pods a #1", "PUT leases l #1"], [], True) if case.kind == "deposed"]
    passed &= check("a leader is deposed where it writes, but not at its Lease", written == ["POST pods a #1"])
    return passed


def owed():
    """What is written down of operator 0, or 1, in turn: (method of Rules, arguments), and what is against the rules."""
    got, passed = rules.Rules(False), True
    got.told_to_wait(0, "LIST pods", 11.0)
    got.told_to_wait(0, "POST events Created", 11.0)
    for listener, name, now in (1, "LIST pods", 10.1), (0, "LIST services", 10.1), (0, "POST events Created", 10.1), (0, "POST pods a", 10.1):
        got.asks(listener, name, now)
    passed &= check("another request is early for no Retry-After, and nobody needs a Lease where none is elected", got.broken == [])
    got.asks(0, "LIST pods", 10.25)
    passed &= check("the same one is", got.broken == ["LIST pods: asked again 0.75 s before its Retry-After is over"])
    got.asks(0, "LIST pods", 10.5)
    passed &= check("and is told once", len(got.broken) == 1)
    got.told_to_wait(0, "LIST pods", 11.0)
    got.ends(0)
    got.asks(0, "LIST pods", 10.5)
    passed &= check("of the next operator nothing is asked that the one before was told", len(got.broken) == 1)
    got.told_to_wait(0, "LIST pods", 11.0)
    got.asks(0, "LIST pods", 11.0)
    passed &= check("nor is it early when the time is over", len(got.broken) == 1)
    return passed


def deposes():
    """[listener of each open connection], and whether a leader is deposed then."""
    passed, at = True, "POST pods a #1"
    for listeners, kind in ([0, 0], None), ([0, 1, 0], "deposed"):
        got = proxy.Proxy(None)
        got.begin(injections.Injection("deposed", at), None, True)
        got.writers = dict(enumerate(listeners))
        passed &= check(f"connections of {listeners}: deposed is {kind}", got.take(at) == kind and got.is_over == (kind is not None))
    return passed


def leads():
    """Who may write: a row of what happens, and whether operator 0 and operator 1 may after it."""
    got, passed = rules.Rules(True), True
    rows = [("nobody", lambda: None, False, False), ("the holder", lambda: got.lease_is_stored(0, "a"), True, False),
            ("the next one alone", lambda: got.lease_is_stored(1, "b"), False, True), ("as before, when another ends", lambda: got.ends(0), False, True),
            ("nobody, when it has given it up", lambda: got.lease_is_stored(1, ""), False, False),
            ("it again", lambda: got.lease_is_stored(1, "b"), False, True), ("nobody, when it has ended", lambda: got.ends(1), False, False)]
    for what, happens, *may in rows:
        happens()
        for listener in 0, 1:
            before = len(got.broken)
            for name in "LIST pods", "WATCH pods", "GET /version", "PUT leases l", "DELETE pods a":
                got.asks(listener, name, 1.0)
            passed &= check(f"a Lease lets write {what}: operator {listener}", len(got.broken) - before == (not may[listener]))
    return passed & check("who writes without it is told", got.broken[0] == "DELETE pods a: operator 0 writes, and the Lease is nobody's")


def told():
    """As tests/sieve/mutations.sh reads it, too."""
    case = injections.Injection("stale", "ADDED services j-worker-0 #1")
    command = "tests/sieve/run.sh --only 'a group restarts' stale 'ADDED services j-worker-0 #1'"
    return check("a divergence names the command that runs it alone", sieve.again(SCENARIOS[2], case) == command)


if __name__ == "__main__":
    results = judges(), counts(), names(), owed(), deposes(), leads(), told()
    print(f"1..{number}")
    sys.exit(0 if all(results) else 1)
