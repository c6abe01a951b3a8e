"""What a request or a watch event is called: by what it is about, so that it has the same name in each run. Pure."""
import json
import re
from collections import Counter
from urllib.parse import parse_qs, urlsplit

PATH = re.compile(r"/api(?:s/[^/]+)?/[^/]+(?:/namespaces/[^/]+)?/([^/]+)(?:/([^/]+))?(?:/([^/]+))?$")


def is_watch(target):
    return "watch" in parse_qs(urlsplit(target).query)


def plural_of(target):
    found = PATH.match(urlsplit(target).path)
    return found[1] if found else None


def request_name(method, target, body):
    """Such as "POST pods j-worker-0" and "PATCH pytorchjobs/status j"; a list is LIST, a watch WATCH; events go by their reason."""
    found = PATH.match(urlsplit(target).path)
    if not found:
        return f"{method} {urlsplit(target).path}"
    plural, name, part = found.groups()
    if method == "GET" and not name:
        return f"{'WATCH' if is_watch(target) else 'LIST'} {plural}"
    if method == "POST" and not part:
        made = json.loads(body)
        name = made.get("reason") if plural == "events" else made["metadata"].get("name")
    return f"{method} {plural}{'/' + part if part else ''} {name}"


def is_write(name):
    """Of a request, but for one for the Lease, by which the others are allowed."""
    return name.split(" ")[0] not in ("GET", "LIST", "WATCH") and " leases" not in name


def event_name(plural, event):
    """Such as "MODIFIED pods j-worker-0"; None: it is a bookmark, an error, or of a node, whose life is its own."""
    if event["type"] not in ("ADDED", "MODIFIED", "DELETED") or plural == "nodes":
        return None
    return f"{event['type']} {plural} {event['object']['metadata']['name']}"


class Trace:
    """The names of a run in their order; the third of a name ends with "#3"."""

    def __init__(self):
        self.seen, self.names, self.refused = Counter(), [], {}

    def note(self, name):
        self.seen[name] += 1
        self.names.append(f"{name} #{self.seen[name]}")
        return self.names[-1]

    def answered(self, name, status):
        if status >= 400:
            self.refused[name] = status

    def told(self):
        """For people: with the status of each that was refused."""
        return [f"{name} ({self.refused[name]})" if name in self.refused else name for name in self.names]
