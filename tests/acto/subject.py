"""One leaf, tried at one rest: jobs that are led to it on different ways, and what they must have in common.

S0 has no such leaf, S1 and S2 have one value each. With look() for what a job and all of its objects come to:
(a) after S1 and after S2 the effect is there, or a condition says why not;
(b) S0 -> S1 -> S2 looks like S0 -> S2;
(c) S0 -> S1 -> S0 looks like S0;
(d) after a bad value another job comes and runs, and S0 -> bad -> S1 looks like S0 -> S1.
"""
import asyncio
import collections
import copy

import fields
import oracle
import template_values
import world as truth
from leaves import with_leaf
from seat import DRY, conditions

# Where the operator refuses what API servers make a pod of, against their own documentation.
STRICTER = ("spec.pytorchReplicaSpecs.*.template.spec.terminationGracePeriodSeconds",)
TEMPLATE_METADATA = ("labels", "annotations", "finalizers")  # the training operator drops the others, name and namespace


def told(look):
    """The condition that says why something is not done."""
    found = conditions(look)
    return found.get("Waiting") or found.get("Failed")


class Immutable(Exception):
    """A rule of the definition, which the API server knows from 1.25 on, lets nobody edit the leaf: that says why not."""


class Subject:
    """first, second: S1 and S2; bads: [(value, spec)]; of subclasses: of_job, prepare, faults."""

    of_job = False  # whether the leaf is outside of pod templates

    def __init__(self, path, rest, flags, probe, base, first, second, bads):
        self.path, self.rest, self.flags, self.probe = path, rest, flags, probe
        self.base, self.first, self.second, self.bads = base, first, second, bads
        self.counts, self.trouble = collections.Counter(), []

    async def prepare(self, seat):
        """Before any job is made."""
        raise NotImplementedError

    def faults(self, spec, look, calm):
        """What of the effect of a good spec is missing: [line]; calm: a look of S0."""
        raise NotImplementedError

    async def lead(self, seat, specs):
        """A job that has been at rest with each of them."""
        job = seat.job()
        self.counts["histories"] += 1
        await job.begin(specs[0], self.rest)
        if len(specs) == 1:
            await self.bring_to_light(seat, job, False)
        for i, spec in enumerate(specs[1:], 2):
            if refused := await self.edit(job, spec):
                raise Immutable if "immutable" in refused else truth.Stuck(f"the API server refuses the good value: {refused}")
            await self.bring_to_light(seat, job, i < len(specs))
        return job

    async def edit(self, job, spec):
        if self.rest == "suspended":
            spec = {**spec, "runPolicy": {**spec.get("runPolicy", {}), "suspend": True}}
        return await job.edit(spec)

    async def bring_to_light(self, seat, job, goes_on):
        """What an edit does is not seen before pods are made, or fail, or end."""
        if self.probe == "remake":
            await job.remade(self.rest, goes_on)
        elif goes_on or self.probe == "none":
            await seat.beside()
        elif self.probe == "fail":
            await job.fail(2)
        elif self.probe == "succeed":
            await job.exit("master-0", 0)
        elif self.probe == "resume":
            await job.suspend(False)
            await seat.beside()

    # ---- judging

    def look(self, job):
        """Where no pod is made anew, variables tell when each was made, as docs/pytorchjob.md says."""
        look = job.look()
        for name, item in look.items():
            if self.probe == "none" and name.startswith("pods/"):
                for container in item["spec"]["containers"]:
                    container.pop("env", None)
        return look

    async def equal(self, seat, what, job, other):
        try:
            await seat.until(what, lambda: self.look(job) == self.look(other))
        except truth.Stuck:
            self.trouble += [f"{what}: {line}" for line in oracle.differences(self.look(other), self.look(job))]

    async def effect(self, seat, what, spec, job, calm):
        try:
            await seat.until(what, lambda: not self.faults(spec, job.look(), calm.look()))
        except truth.Stuck:
            self.trouble += [f"{what}: {line}" for line in self.faults(spec, job.look(), calm.look())]

    async def untouched(self, seat):
        """An edit of a running job changes no pod that lives; what it does to the others is seen by the other ways."""
        job = seat.job()
        await job.begin(self.base, "running")
        uids = job.pods()
        await self.edit(job, self.first)
        await seat.beside()
        if not uids.items() <= job.pods().items():
            self.trouble.append(f"(a) the edit replaces living pods: {uids}, then {job.pods()}")
        await job.delete()

    async def bad(self, seat, value, spec, good):
        self.counts["bad values"] += 1
        if not await good.may_become(spec):
            self.counts["refused"] += 1
            return
        job = seat.job()
        await job.begin(self.base, self.rest)
        if refused := await self.edit(job, spec):
            raise truth.Stuck(f"the API server refuses {value!r}, which it would take: {refused}")
        if self.rest == "finished":
            self.counts["taken"] += 1  # a finished job does not mind, as docs/pytorchjob.md says
        else:
            await self.let_through(seat, job, value, spec)
        await seat.beside()
        if refused := await self.edit(job, self.first):
            self.trouble.append(f"(d) after {value!r} the good value is refused: {refused}")
        await self.bring_to_light(seat, job, False)
        await self.equal(seat, f"(d) S0 -> {value!r} -> S1 is not S0 -> S1", job, good)
        await job.delete()

    def is_right(self, spec):
        """Whether the API server makes a pod of a value that was meant to be bad."""
        return False

    async def let_through(self, seat, job, value, spec):
        """What the operator cannot know is wrong, the API server says when it comes to the children."""
        await seat.beside()
        lit = self.probe == "remake" and not told(job.look())
        if lit:
            await self.bring_to_light(seat, job, False)
        right = self.is_right(spec) and self.path not in STRICTER
        try:
            if right:
                self.counts["taken"] += 1
                await job.until(f"{value!r} in the pods", lambda: not self.faults(spec, job.look(), None))
            else:
                self.counts["told"] += 1
                await job.until(f"that it says what is wrong with {value!r}", lambda: told(job.look()))
        except truth.Stuck as stuck:
            self.trouble.append(f"(d) {stuck}")
        if lit and self.rest == "suspended":
            await job.suspend(True)
            await job.suspended()

    async def run(self, seat):
        """Leaves self.trouble."""
        try:
            await seat.use(self.flags)
            await self.prepare(seat)
            ways = [[self.base], [self.base, self.first], [self.base, self.second], [self.base, self.first, self.second],
                    [self.base, self.first, self.base]]
            led = await asyncio.gather(*(self.lead(seat, way) for way in ways), return_exceptions=True)
            for failure in (job for job in led if isinstance(job, Exception)):
                raise failure
            calm, first, second, by_first, back = led
            await self.effect(seat, "(a) S1", self.first, first, calm)
            await self.effect(seat, "(a) S2", self.second, second, calm)
            await self.equal(seat, "(b) S0 -> S1 -> S2 is not S0 -> S2", by_first, second)
            await self.equal(seat, "(c) S0 -> S1 -> S0 is not S0", back, calm)
            if self.rest == "running" and self.probe == "remake":
                await self.untouched(seat)
            await asyncio.gather(*(self.bad(seat, value, spec, first) for value, spec in self.bads))
            await asyncio.gather(*(job.delete() for job in (calm, first, second, by_first, back)))
        except Immutable:
            self.counts["told why not"] += 1
            self.counts["has effect"] = 0
        except truth.Stuck as stuck:
            self.trouble.append(str(stuck))
        self.trouble += [f"the operator complains {times} times of {name}" for name, times in seat.restless().items()]


class FieldSubject(Subject):
    """A row of fields.py."""

    of_job = True

    def __init__(self, field, rest, probe):
        first, second = (fields.spec_with(field, value) for value in field.values)
        super().__init__(field.path, rest, field.flags, probe, field.base, first, second,
                         [(value, fields.spec_with(field, value)) for value in field.bad])
        self.field = field

    async def prepare(self, seat):
        self.counts["has effect"] += 1

    def faults(self, spec, look, calm):
        value = self.field.values[spec is not self.first]
        return [] if self.field.effect(look, value) else [f"{value!r} has no effect"]


class TemplateSubject(Subject):
    """The same leaf of both pod templates: S1 gives one value to Master and the other to Worker, S2 the other way round.

    What must come of it in a pod is what the API server itself makes of a pod of that template, in a dry run.
    """

    def __init__(self, leaf, schema, rest):
        self.schema, self.leaf_path, self.dry = schema, leaf.path, []
        values = template_values.good(leaf)
        base = self.job(template_values.base(leaf.path), template_values.base(leaf.path))
        made = [self.template(value) for value in values]
        bads = [(value, self.job(template_values.base(leaf.path), self.template(value))) for value in template_values.bad(leaf)]
        super().__init__(f"spec.pytorchReplicaSpecs.*.template.{leaf.path}", rest, (), "remake", base, self.job(*made),
                         self.job(*reversed(made)), bads)

    @staticmethod
    def job(master, worker):
        spec = copy.deepcopy(fields.PLAIN)
        for name, template in ("Master", master), ("Worker", worker):
            spec["pytorchReplicaSpecs"][name]["template"] = template
        return spec

    def template(self, value):
        return with_leaf(template_values.base(self.leaf_path), self.leaf_path, value, template_values.key,
                         template_values.beside(self.schema, self.leaf_path))

    @staticmethod
    def part(pod):
        """The leaves of what a template decides."""
        metadata = pod.get("metadata", {})
        return oracle.leaves({"metadata": {name: metadata.get(name, {}) for name in TEMPLATE_METADATA}, "spec": pod.get("spec", {})})

    async def dry_run(self, seat, spec):
        """{"master-0": leaves of its pod, or the API server's refusal as a text}"""
        found = {}
        for name, replica in spec["pytorchReplicaSpecs"].items():
            template = replica["template"]
            metadata = {name: value for name, value in template.get("metadata", {}).items() if name in TEMPLATE_METADATA}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": "dry"},
                   "spec": {**template["spec"], "restartPolicy": replica["restartPolicy"]}}
            status, answer = await seat.api.ask("POST", truth.path_of(seat.namespace, "pods") + DRY, pod)
            found[f"{name.lower()}-0"] = self.part(oracle.masked(answer, {seat.namespace: "NAMESPACE"})) if status < 300 else answer["message"]
        return found

    def of(self, spec):
        return next(found for known, found in self.dry if known is spec)

    async def prepare(self, seat):
        self.dry = [(spec, await self.dry_run(seat, spec)) for spec in (self.base, self.first, self.second, *(spec for _, spec in self.bads))]
        results = [found for spec in (self.first, self.second) for found in self.of(spec).values()]
        if any(isinstance(found, str) for found in results):
            self.counts["told why not"] += 1
        elif all(found == self.of(self.base)[name] for spec in (self.first, self.second) for name, found in self.of(spec).items()):
            self.counts["unknown or default"] += 1
        else:
            self.counts["has effect"] += 1

    def faults(self, spec, look, calm):
        want, base = self.of(spec), self.of(self.base)
        if refused := [text for text in want.values() if isinstance(text, str)]:
            return [] if told(look) else [f"the API server refuses the pod, and nothing says so: {refused[0]}"]
        lines = []
        for name, leaves in want.items():
            got = self.part(look.get(f"pods/JOB-{name}", {}))
            lines += [f"{name} {path}: {got.get(path, 'nothing')}, not {leaf}" for path, leaf in leaves.items()
                      if base[name].get(path) != leaf and got.get(path) != leaf]
        return lines

    def is_right(self, spec):
        return not any(isinstance(found, str) for found in self.of(spec).values())
