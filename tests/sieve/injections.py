"""What a case does to the operator, as tables. `at`: the name of a request or of a watch event, as trace.py gives it."""
import json
from collections import namedtuple

from http1 import Answer
from trace import is_write

Injection = namedtuple("Injection", "kind at")
CALM = Injection("calm", None)
HOLD_S = 1.0  # of events that come late: longer than an operator needs to act on what it knows
DEPOSED_S = 30.0  # longer than a Lease lasts when it is not renewed (15 s), and others need to see that

REFUSALS = {"409": (409, "Conflict"), "410": (410, "Expired"), "429": (429, "TooManyRequests"), "500": (500, "InternalError")}

# A request is carried out but for refusals.
REQUEST_KINDS = {
    "kill": "the operator is killed after the request is carried out, and another one starts",
    "no-answer": "the request is carried out, and its answer is lost",
    "torn": "the request is carried out, and its answer ends in the middle",
    **{code: f"the request is refused with {code} {reason}" for code, (_, reason) in REFUSALS.items()},
}
# At what a leader writes, where operators elect one.
LEADER_KINDS = {"deposed": "from here on the leader's requests for its Lease are lost: another one leads, and it must not go on"}
EVENT_KINDS = {
    "drop": "the event is left out; a while later the watch ends with 410",
    "hold": "all events from this one on come late",
    "cut": "the connection ends in place of the event",
    "gone": "the watch ends with 410 in place of the event",
    "stale": "after the scenario another operator starts, whose lists are of the time of this event",
    "behind": "the same, and what it watches of all but jobs comes later still",
    "stale-now": "the operator is killed, and another one starts, whose lists are of the time of this event; the scenario goes on",
    "behind-now": "the same, and what it watches of all but jobs comes later still",
    "stale-soon": "the same as stale-now, a few events later",
    "behind-soon": "the same as behind-now, a few events later",
}
# Those for which another operator starts with old lists: how many events later, or None, when the scenario is over.
OLD_LISTS = {"stale": None, "behind": None, "stale-now": 0, "behind-now": 0, "stale-soon": 3, "behind-soon": 3}


def refusal(kind):
    code, reason = REFUSALS[kind]
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": f"refused by the test: {reason}"}
    headers = {"Content-Type": "application/json", **({"Retry-After": "1"} if code == 429 else {})}
    return Answer(code, headers, json.dumps(body).encode())


def gone_event():
    return json.dumps({"type": "ERROR", "object": json.loads(refusal("410").body)}).encode()


def cases(requests, events, elects):
    """All of a calm run's: [Injection], from the names of its requests and events. elects: whether its operators elect a leader."""
    return [Injection(kind, name) for name in requests for kind in REQUEST_KINDS] + \
           [Injection(kind, name) for name in requests for kind in LEADER_KINDS if elects and is_write(name)] + \
           [Injection(kind, name) for i, name in enumerate(events) for kind in EVENT_KINDS if i + (OLD_LISTS.get(kind) or 0) < len(events)]
