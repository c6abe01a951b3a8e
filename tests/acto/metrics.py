"""The leaves of elasticPolicy.metrics, which an autoscaler is made from.

What must come of them is what the API server itself makes of an autoscaler with these metrics.
"""
import re

import fields
import oracle
from leaves import Leaf, leaves, with_leaf
from subject import Subject, told
from template_values import BAD_BY_TYPE, kind_of
from world import path_of

METRICS = "spec.elasticPolicy.metrics[]"
VERSIONS = ("v2", "v2beta2")  # of autoscaling, as the operator chooses them
METRICS_OF_V1 = "autoscaling.alpha.kubernetes.io/metrics"  # where autoscaling/v1, which the world watches, shows what it has no fields for
HPA = "horizontalpodautoscalers"
IDENTIFIER = {"name": "m"}
VALUE, AVERAGE = {"type": "Value", "value": "10"}, {"type": "AverageValue", "averageValue": "10"}
UTILIZATION = {"type": "Utilization", "averageUtilization": 80}
SOURCES = {  # by their field: the type, and a good one
    "resource": ("Resource", {"name": "cpu", "target": UTILIZATION}),
    "containerResource": ("ContainerResource", {"name": "cpu", "container": "pytorch", "target": UTILIZATION}),
    "pods": ("Pods", {"metric": IDENTIFIER, "target": AVERAGE}),
    "object": ("Object", {"describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"}, "metric": IDENTIFIER, "target": VALUE}),
    "external": ("External", {"metric": IDENTIFIER, "target": VALUE}),
}
# Two values, by the end of the path; the first that fits counts.
VALUES = [(re.compile(pattern + "$"), values) for pattern, values in [
    (r"esource\.name", ("cpu", "memory")), (r"container", ("pytorch", "pytorch-0")), (r"averageUtilization", (80, 50)),
    (r"esource\.target\.type", ("Utilization", "AverageValue")), (r"target\.type", ("AverageValue", "Value")),
    (r"[vV]alue", ("20", "30")), (r"operator", ("In", "NotIn")), (r"apiVersion", ("v1", "apps/v1")), (r"kind", ("Service", "Deployment")),
    (r"", ("a1", "b2")),
]]


def leaves_of(schema):
    """Of the schema of spec."""
    return [leaf for leaf in leaves(schema, "spec") if leaf.path.startswith(METRICS)]


def good(leaf):
    return next(values for pattern, values in VALUES if pattern.search(leaf.path))


def bad(leaf):
    return BAD_BY_TYPE["quantity" if leaf.schema.get("pattern") else kind_of(leaf.schema)]


def metric_beside(leaf):
    """A good metric for the leaf to be in; a target has one value."""
    source = re.match(r"\.(\w+)", leaf.path.removeprefix(METRICS))[1]
    source = "resource" if source == "type" else source
    name, made = SOURCES[source]
    if leaf.path.endswith("target.averageValue"):
        made = {**made, "target": {"type": "AverageValue"}}
    return {"type": name, source: made}


def spec_with(leaf, value):
    def beside(path):
        return {"key": "k", "operator": "In", "values": ["a1"]} if path.endswith("matchExpressions[]") else {}
    base = {"spec": {**fields.ELASTIC, "elasticPolicy": {**fields.ELASTIC["elasticPolicy"], "metrics": [metric_beside(leaf)]}}}
    return with_leaf(base, leaf.path, value, lambda path: "app", beside)["spec"]


def good_specs(leaf):
    """A type goes with what it names: then both change."""
    if leaf.path == f"{METRICS}.type":
        return [spec_with(Leaf(f"{METRICS}.{source}", {}), SOURCES[source][1]) for source in ("resource", "pods")]
    return [spec_with(leaf, value) for value in good(leaf)]


def part(scaler):
    """What the metrics decide of an autoscaler."""
    return {"cpu": scaler.get("spec", {}).get("targetCPUUtilizationPercentage"),
            "others": scaler.get("metadata", {}).get("annotations", {}).get(METRICS_OF_V1)}


class MetricSubject(Subject):
    of_job = True

    def __init__(self, leaf, rest, probe):
        self.made = []  # [(spec, what the API server makes of its metrics, or its refusal as a text)]
        super().__init__(leaf.path, rest, (), probe, fields.ELASTIC, *good_specs(leaf), [(value, spec_with(leaf, value)) for value in bad(leaf)])

    async def make(self, seat, spec):
        """An autoscaler of nobody."""
        name, metadata = f"metrics-{len(self.made)}", {"namespace": seat.namespace}
        for version in VERSIONS:
            path = f"/apis/autoscaling/{version}/namespaces/{seat.namespace}/{HPA}"
            scaler = {"apiVersion": f"autoscaling/{version}", "kind": "HorizontalPodAutoscaler", "metadata": {**metadata, "name": name},
                      "spec": {"minReplicas": 1, "maxReplicas": 3, "metrics": spec["elasticPolicy"]["metrics"],
                               "scaleTargetRef": {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "none"}}}
            status, answer = await seat.api.ask("POST", path, scaler)
            if status != 404:
                break
        if status >= 300:
            self.made.append((spec, answer["message"]))
            return
        await seat.until(f"autoscaler {name}", lambda: f"{HPA}/{name}" in seat.objects())
        self.made.append((spec, part(oracle.masked(seat.objects()[f"{HPA}/{name}"], {seat.namespace: "NAMESPACE"}))))
        await seat.api.ask("DELETE", path_of(seat.namespace, HPA, name))
        await seat.until(f"no autoscaler {name}", lambda: f"{HPA}/{name}" not in seat.objects())

    def of(self, spec):
        return next(found for known, found in self.made if known is spec)

    async def prepare(self, seat):
        for spec in self.first, self.second, *(spec for _, spec in self.bads):
            await self.make(seat, spec)
        first, second = self.of(self.first), self.of(self.second)
        if isinstance(first, str) or isinstance(second, str):
            self.counts["told why not"] += 1
        else:
            self.counts["unknown or default" if first == second else "has effect"] += 1

    def faults(self, spec, look, calm):
        want, got = self.of(spec), part(look.get(f"{HPA}/JOB", {}))
        if isinstance(want, str):
            return [] if told(look) else [f"the API server refuses the autoscaler, and nothing says so: {want}"]
        return [] if got == want else [f"{name}: {got[name]}, not {value}" for name, value in want.items() if got[name] != value]

    def is_right(self, spec):
        return not isinstance(self.of(spec), str)
