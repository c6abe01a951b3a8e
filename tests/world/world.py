"""The truth, as a watch of our own shows it, and the player: users, kubelets and nodes of one namespace, in steps that wait for it."""
import asyncio
import collections
import datetime
import json
import os
import time

from command_line import Refused
from http1 import Lines

PREFIXES = {"pods": "/api/v1", "services": "/api/v1", "pytorchjobs": "/apis/kubeflow.org/v1",
            "horizontalpodautoscalers": "/apis/autoscaling/v1", "podgroups": "/apis/scheduling.volcano.sh/v1beta1"}
PATIENCE_S = float(os.environ.get("WORLD_PATIENCE_S", 40))
MERGE = "application/merge-patch+json"


def clock():
    """Seconds; of the test's own clock where it has one (tests/runner/patience.c)."""
    path = os.environ.get("TEST_CLOCK")
    if not path:
        return time.monotonic()
    with open(path) as file:
        return float(file.read() or 0)


def path_of(namespace, plural, name=None, part=None):
    """plural: one of PREFIXES; of two equal ones the second is followed by its group."""
    return "/".join([f"{PREFIXES[plural]}/namespaces/{namespace}/{plural.split('.')[0]}", *filter(None, [name, part])])


class Stuck(Exception):
    """What must come does not."""


class World:
    """objects: {namespace: {"pods/j-master-0": object}}; lives: {namespace: [(name, uid, type of event)]}."""

    def __init__(self, api):
        self.api = api
        self.objects, self.lives = collections.defaultdict(dict), collections.defaultdict(list)
        self.news = collections.defaultdict(asyncio.Event)
        self.heard = {}  # {namespace: function of a change: plural, type of event, object}

    async def check_served(self, script):
        """script: that has a server with all that is needed."""
        for plural, prefix in PREFIXES.items():
            answer = await self.api.send("GET", f"{prefix}/{plural.split('.')[0]}?limit=1")
            if answer.status == 404:
                group = prefix.removeprefix("/apis/").removeprefix("/api/")
                raise Refused(f"the API server has no {plural.split('.')[0]} of {group}: install their CustomResourceDefinition, or use {script}")

    async def follow(self, plural):
        """For ever: all objects of a kind. A watch that begins without a list is refused by a
        new server on an etcd as old as 3.4; one that begins with the list of a kind that is just defined may be."""
        path = f"{PREFIXES[plural]}/{plural.split('.')[0]}"
        version = is_begun = None
        while True:
            if not is_begun:
                _, found = await self.api.ask("GET", path)
                version = found["metadata"]["resourceVersion"]
                for item in found["items"]:
                    self.take(plural, "ADDED", item)
                    is_begun = True
            _, _, reader, writer = await self.api.watch(f"{path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}")
            lines = Lines(reader)
            while (line := await lines.next()) is not None:
                event = json.loads(line)
                if event["type"] == "ERROR" and not is_begun:
                    break
                if event["type"] == "ERROR":
                    raise RuntimeError(f"the test's own watch of {plural}: {event['object']}")
                is_begun, version = True, event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self.take(plural, event["type"], event["object"])
            writer.close()

    def take(self, plural, kind, item):
        namespace, name = item["metadata"].get("namespace"), f"{plural}/{item['metadata']['name']}"
        if kind == "DELETED":
            self.objects[namespace].pop(name, None)
        else:
            self.objects[namespace][name] = item
        self.lives[namespace].append((name, item["metadata"]["uid"], kind))
        self.news[namespace].set()
        if namespace in self.heard:
            self.heard[namespace](plural, kind, item)

    async def until(self, namespace, what, holds):
        """Waits until holds() is true, which it returns."""
        end = clock() + PATIENCE_S
        while not (found := holds()):
            if clock() > end:
                raise Stuck(f"waits in vain: {what}")
            self.news[namespace].clear()
            try:
                await asyncio.wait_for(self.news[namespace].wait(), 0.1)
            except asyncio.TimeoutError:
                pass
        return found

    async def open_namespace(self, name):
        await self.api.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        end, path = clock() + PATIENCE_S, f"/api/v1/namespaces/{name}/serviceaccounts"
        while (await self.api.ask("GET", f"{path}/default"))[0] != 200:
            if clock() > end:
                raise Stuck(f"no service account in {name}")
            # a server without controllers, as KUBEBUILDER_ASSETS may bring, makes none itself
            await self.api.ask("POST", path, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
            await asyncio.sleep(0.1)

    async def empty(self, namespace):
        """Deletes all that is there; no operator may be alive."""
        objects = self.objects[namespace]
        for name in sorted(objects, key=lambda name: not name.startswith("pytorchjobs/")):
            target = path_of(namespace, *name.split("/"))
            if objects.get(name, {}).get("metadata", {}).get("finalizers"):
                await self.api.ask("PATCH", target, {"metadata": {"finalizers": None}}, MERGE)
            await self.api.ask("DELETE", target, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        await self.until(namespace, "an empty namespace", lambda: not objects)
        self.lives[namespace].clear()


# ---- what kubelets say ----


def container(ready, state, restarts=0, name="pytorch"):
    return {"name": name, "image": "image:1", "imageID": "", "ready": ready, "restartCount": restarts, "state": state}


def now():
    return datetime.datetime.utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")


def ended(code):
    return {"terminated": {"exitCode": code, "finishedAt": now()}}


def pod_status(state, *more):
    """running; exit CODE; unschedulable; ready; lost: its node is, as the node controller says it."""
    if state == "running":
        return {"phase": "Running", "containerStatuses": [container(True, {"running": {"startedAt": now()}})]}
    if state == "exit":
        return {"phase": "Failed" if more[0] else "Succeeded", "containerStatuses": [container(False, ended(more[0]))]}
    if state == "unschedulable":
        return {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available",
                                "lastTransitionTime": now()}]}
    ready = {"type": "Ready", "status": str(state == "ready"), "lastTransitionTime": now()}
    return {"conditions": [ready, {"type": "ContainersReady", "status": "True"}]}


# ---- the player ----


class Player:
    """Steps of scenarios.py. hand_over: what the step of this name does. The job is "j"."""

    def __init__(self, world, namespace, hand_over):
        self.world, self.api, self.namespace, self.hand_over = world, world.api, namespace, hand_over
        self.over = set()  # UIDs of pods that have ended or were deleted

    async def run(self, steps):
        for verb, *arguments in steps:
            await getattr(self, verb)(*arguments)

    def objects(self):
        return self.world.objects[self.namespace]

    async def until(self, what, holds):
        return await self.world.until(self.namespace, what, holds)

    async def change(self, method, plural, name, value, part=None, content_type=MERGE):
        status, answer = await self.api.ask(method, path_of(self.namespace, plural, name, part), value, content_type)
        if status >= 300:
            raise Stuck(f"{method} {plural}/{name}: {answer.get('message')}")

    def alive(self):
        """{name: UID} of pods that may run."""
        pods = {name: item["metadata"] for name, item in self.objects().items() if name.startswith("pods/")}
        return {name.removeprefix("pods/"): metadata["uid"] for name, metadata in pods.items()
                if "deletionTimestamp" not in metadata and metadata["uid"] not in self.over}

    # steps

    async def create(self, spec):
        job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "j"}, "spec": spec}
        await self.change("POST", "pytorchjobs", None, job, content_type="application/json")

    async def edit(self, spec):
        await self.change("PATCH", "pytorchjobs", "j", {"spec": spec})

    async def scale(self, replicas):
        await self.change("PATCH", "pytorchjobs", "j", {"spec": {"replicas": replicas}}, "scale")

    async def pods(self, names):
        """Waits until exactly these are alive."""
        await self.until(f"pods {names}; there are {' '.join(sorted(self.alive()))}", lambda: sorted(self.alive()) == sorted(names.split()))

    async def expect_new(self, names):
        """Those of now do not count as pods from now on."""
        for name in names.split():
            self.over.add(self.alive()[name])

    async def play(self, names, state, *more):
        for name in names.split():
            uid = await self.until(f"pod {name}", lambda name=name: self.alive().get(name))
            await self.change("PATCH", "pods", name, {"status": pod_status(state, *more)}, "status")
            if state in ("exit", "lost"):
                self.over.add(uid)

    async def bind(self, name):
        """To a node that is well for as long as a case takes."""
        node, heard = f"node-of-{self.namespace}", [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now()}]
        await self.api.ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
        await self.api.ask("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"conditions": heard}}, MERGE)
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
        await self.change("POST", "pods", name, binding, "binding", "application/json")

    async def admit(self):
        """As a gang scheduler does."""
        await self.there("podgroups/j")
        await self.change("PATCH", "podgroups", "j", {"status": {"phase": "Inqueue"}})

    async def autoscaler(self, most):
        def holds():
            return self.objects().get("horizontalpodautoscalers/j", {}).get("spec", {}).get("maxReplicas") == most
        await self.until(f"an autoscaler up to {most}", holds)

    async def condition(self, wanted):
        """Waits until that is the job's last condition, and true."""
        def holds():
            conditions = self.objects().get("pytorchjobs/j", {}).get("status", {}).get("conditions")
            return conditions and (conditions[-1]["type"], conditions[-1]["status"]) == (wanted, "True")
        await self.until(f"condition {wanted}", holds)

    async def active(self, workers):
        """Waits until the job's status counts so many."""
        def holds():
            return self.objects().get("pytorchjobs/j", {}).get("status", {}).get("replicaStatuses", {}).get("Worker", {}).get("active") == workers
        await self.until(f"{workers} active workers", holds)

    async def incidents(self, count):
        """Waits until the job's status has seen so many."""
        def holds():
            return self.objects().get("pytorchjobs/j", {}).get("status", {}).get("history", {}).get("incidents") == count
        await self.until(f"{count} incidents", holds)

    async def end(self, name):
        """A kubelet ends what is being deleted."""
        await self.api.ask("DELETE", path_of(self.namespace, "pods", name), {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        await self.gone(f"pods/{name}")

    async def there(self, name):
        await self.until(name, lambda: name in self.objects())

    async def gone(self, name):
        await self.until(f"no {name}", lambda: name not in self.objects())
