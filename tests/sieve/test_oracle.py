"""The pure parts of the sieve, with objects recorded from an API server: `python3 tests/sieve/test_oracle.py` prints TAP lines."""
import copy
import json
import os
import sys
from collections import Counter

import injections
import oracle
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
                    len(injections.cases(["a", "b"], events)) == 2 * kinds[0] + 4 * kinds[1] - 2 * 3)
    last = {case.kind for case in injections.cases([], events) if case.at == "d"}
    passed &= check("but for what comes some events later, where no such event comes", injections.EVENT_KINDS.keys() - last == {"stale-soon", "behind-soon"})
    return passed


def told():
    """As tests/sieve/mutations.sh reads it, too."""
    case = injections.Injection("stale", "ADDED services j-worker-0 #1")
    command = "tests/sieve/run.sh --only 'a group restarts' stale 'ADDED services j-worker-0 #1'"
    return check("a divergence names the command that runs it alone", sieve.again(SCENARIOS[2], case) == command)


if __name__ == "__main__":
    results = judges(), counts(), names(), told()
    print(f"1..{number}")
    sys.exit(0 if all(results) else 1)
