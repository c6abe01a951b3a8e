"""A namespace with an operator, in which jobs are made, edited and looked at, while a kubelet of ours runs each pod at once."""
import asyncio
import collections
import copy
import os
import re

import operator_program
import oracle
import world as truth
from leaves import merge_patch
from world import MERGE, path_of, pod_status

truth.PREFIXES["podgroups.scheduling.x-k8s.io"] = "/apis/scheduling.x-k8s.io/v1alpha1"
NAMED = ["horizontalpodautoscalers", "podgroups", "podgroups.scheduling.x-k8s.io", "pytorchjobs"]
DRY = "?dryRun=All"
CONTAINER = {"name": "pytorch", "image": "image:1"}
COMPLAINT = re.compile(r"warning \S+/(\S+): ")
COMPLAINTS_MAX = 20  # of a job that is led through three values


def replicas(count, **more):
    template = {"spec": {"automountServiceAccountToken": False, "containers": [CONTAINER]}}
    return {"replicas": count, "restartPolicy": "OnFailure", "template": template, **more}


def conditions(look):
    """Of a look's job: {type: condition}, of those that are true."""
    found = look.get("pytorchjobs/JOB", {}).get("status", {}).get("conditions", [])
    return {condition["type"]: condition for condition in found if condition["status"] == "True"}


def last_condition(look):
    found = look.get("pytorchjobs/JOB", {}).get("status", {}).get("conditions", [{}])
    return found[-1].get("type")


class Seat:
    def __init__(self, world, number, folder):
        self.world, self.api, self.namespace = world, world.api, f"acto-{os.getpid()}-{number}"
        self.log, self.operator, self.flags, self.jobs = f"{folder}/log-{number}", None, None, 0
        self.tasks, self.ran = set(), set()  # UIDs of pods that the kubelet has run
        self.read = 0  # how far restless() has read the log

    async def open(self):
        await self.world.open_namespace(self.namespace)
        self.world.heard[self.namespace] = self.hear
        for name in "a1", "b2":  # what template_values.py names
            await self.api.ask("POST", f"/api/v1/namespaces/{self.namespace}/serviceaccounts", {"metadata": {"name": name}})

    async def close(self):
        if self.operator:
            self.operator.kill()
            await asyncio.to_thread(self.operator.wait)
            self.operator = None

    async def use(self, flags):
        """An operator with these flags."""
        if self.operator and (self.flags != flags or self.operator.poll() is not None):
            await self.close()
        if not self.operator:
            self.flags = flags
            self.operator = operator_program.start(os.environ["KUBECONFIG"], self.namespace, "operator", flags, self.log)

    def restless(self):
        """Of which jobs the operator complains without end: {name: how often}, since the last call."""
        with open(self.log) as log:
            log.seek(self.read)
            found = collections.Counter(COMPLAINT.findall(log.read()))
            self.read = log.tell()
        return {name: times for name, times in found.items() if times > COMPLAINTS_MAX}

    # ---- the kubelet, and a gang scheduler

    def hear(self, plural, kind, item):
        if kind != "DELETED" and (plural == "pods" or plural == "podgroups" and kind == "ADDED"):
            task = asyncio.create_task(self.admit(item) if plural == "podgroups" else self.serve(item))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def admit(self, group):
        await self.api.ask("PATCH", path_of(self.namespace, "podgroups", group["metadata"]["name"]), {"status": {"phase": "Inqueue"}}, MERGE)

    async def serve(self, pod):
        metadata, target = pod["metadata"], path_of(self.namespace, "pods", pod["metadata"]["name"])
        mine = {"uid": metadata["uid"]}
        if "deletionTimestamp" in metadata:
            if metadata.get("finalizers"):
                await self.api.ask("PATCH", target, {"metadata": {"finalizers": None, **mine}}, MERGE)
            await self.api.ask("DELETE", target, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "preconditions": mine})
        elif metadata["uid"] not in self.ran:
            self.ran.add(metadata["uid"])
            await self.api.ask("PATCH", target + "/status", {"metadata": mine, "status": pod_status("running")}, MERGE)

    # ---- jobs

    def objects(self):
        return self.world.objects[self.namespace]

    async def until(self, what, holds):
        def alive_and_holds():
            if self.operator.poll() is not None:
                raise truth.Stuck(f"the operator has ended with {self.operator.returncode}: {what}")
            return holds()
        return await self.world.until(self.namespace, what, alive_and_holds)

    def job(self):
        self.jobs += 1
        return Job(self, f"j{self.jobs}")

    async def beside(self):
        """Another job comes, runs and goes: then the operator has seen all edits before, and none has stopped it."""
        job = self.job()
        await job.create({"pytorchReplicaSpecs": {"Worker": replicas(1)}})
        await self.until(f"another job, {job.name}, that runs", lambda: last_condition(job.look()) == "Running")
        await job.delete()


class Job:
    def __init__(self, seat, name):
        self.seat, self.name, self.spec, self.uids = seat, name, None, {}

    async def ask(self, method, value, query="", content_type=MERGE):
        name = None if method == "POST" else self.name
        return await self.seat.api.ask(method, path_of(self.seat.namespace, "pytorchjobs", name) + query, value, content_type)

    async def create(self, spec):
        """Returns why the API server refuses it, or None."""
        body = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": self.name}, "spec": spec}
        status, answer = await self.ask("POST", body, content_type="application/json")
        self.spec = copy.deepcopy(spec)
        return answer["message"] if status >= 300 else None

    async def edit(self, spec):
        """As create."""
        status, answer = await self.ask("PATCH", {"spec": merge_patch(self.spec, spec)})
        if status >= 300:
            return answer["message"]
        self.spec = copy.deepcopy(spec)
        return None

    async def may_become(self, spec):
        """Whether the API server would take an edit."""
        return (await self.ask("PATCH", {"spec": merge_patch(self.spec, spec)}, DRY))[0] < 300

    async def suspend(self, suspend):
        await self.edit({**self.spec, "runPolicy": {**self.spec.get("runPolicy", {}), "suspend": suspend}})

    async def delete(self):
        """With all that it has."""
        background = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        await self.seat.api.ask("DELETE", path_of(self.seat.namespace, "pytorchjobs", self.name), background)
        for name in list(self.objects()):
            await self.seat.api.ask("DELETE", path_of(self.seat.namespace, *name.split("/")),
                                    {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})

    def objects(self):
        names = {f"{plural}/{self.name}" for plural in NAMED}
        return {name: item for name, item in self.seat.objects().items()
                if name in names or name.startswith((f"pods/{self.name}-", f"services/{self.name}-"))}

    def pods(self):
        """{name: UID}"""
        return {name: item["metadata"]["uid"] for name, item in self.objects().items() if name.startswith("pods/")}

    def look(self):
        """All of its objects, without what differs between two jobs that were led here on different ways; nothing, if it is gone: what it
        had is up to the garbage collector."""
        if f"pytorchjobs/{self.name}" not in self.seat.objects():
            return {}
        names = {self.seat.namespace: "NAMESPACE", self.name: "JOB"}
        look = {oracle.masked(name, names): oracle.masked(item, names) for name, item in self.objects().items()}
        for name, item in look.items():
            item["metadata"].pop("generation", None)
            if name.startswith("horizontal"):  # what its own controller says, in its own time
                item.pop("status", None)
                item["metadata"].get("annotations", {}).pop("autoscaling.alpha.kubernetes.io/conditions", None)
        if "pytorchjobs/JOB" in look:
            look["pytorchjobs/JOB"]["spec"].get("runPolicy", {}).pop("suspend", None)  # the tests' own doing
            status = look["pytorchjobs/JOB"].get("status", {})
            status["conditions"] = [condition for condition in status.get("conditions", []) if condition["status"] == "True"]
            status.get("history", {}).pop("formed", None)  # what restartScope: Job remembers; nobody else asks for it
        return look

    # ---- being led

    async def until(self, what, holds):
        return await self.seat.until(f"{self.name}: {what}", holds)

    async def settled(self):
        """Runs, or says why not, or is over."""
        def holds():
            look = self.look()
            counts = look.get("pytorchjobs/JOB", {}).get("status", {}).get("replicaStatuses", {})
            active = sum(count.get("active", 0) for count in counts.values())
            wanted = sum(replica.get("replicas", 1) for replica in self.spec["pytorchReplicaSpecs"].values())
            return last_condition(look) == "Running" and active == wanted or conditions(look).keys() & {"Waiting", "Succeeded", "Failed"}
        await self.until("that it runs or says why not", holds)

    async def suspended(self):
        await self.until("that it is suspended", lambda: "Suspended" in conditions(self.look()) and not self.pods())

    async def exit(self, replica, code):
        await self.seat.api.ask("PATCH", path_of(self.seat.namespace, "pods", f"{self.name}-{replica}", "status"),
                                {"status": pod_status("exit", code)}, MERGE)

    async def begin(self, spec, rest):
        """Comes to rest with it: running, suspended or finished."""
        asleep = {**spec, "runPolicy": {**spec.get("runPolicy", {}), "suspend": True}}
        if refused := await self.create(asleep if rest == "suspended" else spec):
            raise truth.Stuck(f"{self.name} is refused: {refused}")
        if rest == "suspended":
            await self.suspended()
            return
        await self.settled()
        if rest == "finished":
            await self.exit("master-0", 0)
            await self.until("that it is finished", lambda: last_condition(self.look()) == "Succeeded")

    async def remade(self, rest, goes_on):
        """All pods are made anew, from the template of now."""
        if rest == "running":
            await self.suspend(True)
            await self.suspended()
        await self.suspend(False)
        await self.until("that it is resumed, or says why not", lambda: {"Suspended", "Waiting"} & conditions(self.look()).keys() != {"Suspended"})
        await self.settled()
        if rest == "suspended" and goes_on:
            await self.suspend(True)
            await self.suspended()

    def worker(self):
        """Its UID, once it runs."""
        found = self.objects().get(f"pods/{self.name}-worker-0", {})
        return found["metadata"]["uid"] if found.get("status", {}).get("phase") == "Running" else None

    async def fail(self, times):
        """A worker fails so often, unless the job ends before."""
        failed = None

        def goes_on():
            return "Failed" in conditions(self.look()) or self.worker() not in (None, failed)
        for _ in range(times):
            await self.until("a worker that runs, or the end", goes_on)
            if failed := self.worker():
                await self.exit("worker-0", 1)
        await self.until("a worker that runs, or the end", goes_on)
