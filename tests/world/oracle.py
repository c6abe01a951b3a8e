"""What two runs must have in common. Pure: tests/sieve/test_oracle.py tries it with recorded objects."""
import json
import re
from collections import Counter

UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
ADDRESS = re.compile(r"\b0x[0-9a-f]+")  # of the API server's memory, in its messages
VOLATILE = {"resourceVersion", "managedFields"}
TIMES = {"seconds", "goodput", "goodputPercent"}  # of status.training: how long what took


def masked(value, names):
    """An object without what differs from run to run: UIDs, times, versions, and {name of this run: what stands for it}."""
    words = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")

    def walk(value, left_out=VOLATILE):
        if isinstance(value, dict):
            return {walk(key): walk(child, TIMES if key == "training" else VOLATILE) for key, child in value.items() if key not in left_out}
        if isinstance(value, list):
            return [walk(child) for child in value]
        if isinstance(value, str):
            value = words.sub(lambda found: names[found[1]], value)
            return ADDRESS.sub("ADDRESS", TIME.sub("TIME", UID.sub("UID", value)))
        return value
    return walk(value)


def leaves(value, path=""):
    """{path: leaf} of what masked() returns."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if not children:
        return {path: json.dumps(value)}
    return {at: leaf for key, child in children for at, leaf in leaves(child, f"{path}.{key}" if path else str(key)).items()}


def differences(calm, got):
    """Of two worlds {"pods/j-master-0": masked object}: a line for each leaf that only one has, or that differs."""
    calm, got = leaves(calm), leaves(got)
    return [f"{path}: {got.get(path, 'nothing')}, calm {calm.get(path, 'nothing')}"
            for path in sorted(calm.keys() | got.keys()) if calm.get(path) != got.get(path)]


def tally(lives):
    """How often each name was created and deleted: Counter of ("created" or "deleted", name), from [(name, uid, type of event)]."""
    created = {(name, uid) for name, uid, _ in lives}
    deleted = {(name, uid) for name, uid, kind in lives if kind == "DELETED"}
    return Counter([("created", name) for name, _ in created] + [("deleted", name) for name, _ in deleted])


def miscounts(calm, got):
    """Of two tallies: a line for each name that was created or deleted more or less often."""
    return [f"{name}: {what} {got[what, name]} times, calm {calm[what, name]}"
            for what, name in sorted(calm.keys() | got.keys()) if calm[what, name] != got[what, name]]


def is_beyond(calm, got):
    """Whether something was created or deleted too often, which no waiting mends."""
    return any(count > calm[what] for what, count in got.items())
