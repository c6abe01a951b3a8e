"""The fields of a PyTorchJob outside its pod templates and metrics, as data: values, and what they do. Each leaf of the schema must have a row.

effect(look, value) says whether a job shows the value; how each is known is in docs/pytorchjob.md and, for names of variables, in the
training operator's documentation.
"""
from collections import namedtuple

from leaves import leaves, with_leaf
from seat import conditions, last_condition, replicas

# values: the two good ones, the first is also set after each bad one; base: S0; ways: at rest "running", "suspended" or "finished", with
# what brings the effect to light (subject.py); flags: of the operator
Field = namedtuple("Field", "path values bad effect base ways flags")


def job(elastic=None, workers=1, **more):
    types = {"Worker": replicas(workers), **({} if elastic else {"Master": replicas(1)})}
    return {"runPolicy": {}, "pytorchReplicaSpecs": types, **({"elasticPolicy": elastic} if elastic else {}), **more}


def cpu(percent):
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}}


PLAIN, ELASTIC = job(), job(elastic={"minReplicas": 1, "maxReplicas": 3})
GANG, PLUGINS = ("--gang-scheduler-name=volcano",), ("--gang-scheduler-name=coscheduler",)
REMADE = (("running", "remake"), ("suspended", "remake"))
IN_PLACE = (("running", "none"), ("suspended", "remake"))
HUGE = 1 << 40


# ---- what a look shows


def pod(look, name):
    return look.get(f"pods/JOB-{name}", {}).get("spec", {})


def of(look, name, *path):
    """A part of an object, or None."""
    found = look.get(name)
    for step in path:
        found = (found or {}).get(step)
    return found


def variable(look, name):
    """An environment variable of worker 0."""
    return next((item.get("value") for container in pod(look, "worker-0").get("containers", []) for item in container.get("env", [])
                 if item["name"] == name), None)


def env(name):
    return lambda look, value: variable(look, name) == str(value)


def limit(look, value):
    return "Failed" in conditions(look) and of(look, "pytorchjobs/JOB", "status", "history", "restarts") == value


def cleaned(look, value):
    left = {name for name in look if name.startswith("pods/")}
    return "Succeeded" in conditions(look) and left == ({"pods/JOB-master-0"} if value == "Running" else set())


def time_to_live(look, value):
    return ("pytorchjobs/JOB" in look) == (value > 0)


def deadline(look, value):
    return ("Failed" if value < 10 else "Running") in conditions(look)


def restarted(look, value):
    return variable(look, "SHOAL_RESTART_COUNT") == "2" and (pod(look, "worker-0").get("restartPolicy") == "Never") == (value == "Job")


def suspension(look, value):
    return last_condition(look) == ("Suspended" if value else "Running") and (pod(look, "worker-0") == {}) == value


def manager(look, value):
    return (pod(look, "worker-0") != {}) == (value == "kubeflow.org/training-operator")


def of_group(*path, plural="podgroups"):
    return lambda look, value: of(look, f"{plural}/JOB", "spec", *path) == value


def the_queue_stays(look, value):
    """A PodGroup's queue does not change while it lives (docs/install.md)."""
    return of(look, "podgroups/JOB", "spec", "queue") == "default"


def bounds(look, value):
    scaler = of(look, "horizontalpodautoscalers/JOB", "spec") or {}
    return value in (scaler.get("minReplicas"), scaler.get("maxReplicas"))


def bounds_of_pods(look, value):
    scaler = of(look, "horizontalpodautoscalers/JOB", "spec") or {}
    return bounds(look, value) and variable(look, "PET_NNODES") == f"{scaler['minReplicas']}:{scaler['maxReplicas']}"


def endpoint(look, value):
    return str(value) in (variable(look, "PET_RDZV_ENDPOINT") or "").split(":")


def conf(look, value):
    return value in (variable(look, "PET_RDZV_CONF") or "").split("=")


def workers(look, value):
    return sum(name.startswith("pods/JOB-worker-") for name in look) == value and "Running" in conditions(look)


def policy(kind):
    return lambda look, value: pod(look, f"{kind}-0").get("restartPolicy") == value


RUN, ELASTIC_POLICY, TYPES = "spec.runPolicy", "spec.elasticPolicy", "spec.pytorchReplicaSpecs"
METERED = {"metrics": [cpu(80)]}
SCALED_TO_3, SCALED_FROM_2 = job({"maxReplicas": 3, **METERED}, 2), job({"minReplicas": 2, **METERED}, 2)
FIELDS = [Field(*row) for row in [
    ("spec.backoffLimit", (0, 1), (-2, "two", HUGE), limit, PLAIN, (("running", "fail"),), ()),
    ("spec.nprocPerNode", ("2", "4"), ("0", "many", 2, " 4"), env("PET_NPROC_PER_NODE"), PLAIN, REMADE, ()),
    (f"{RUN}.cleanPodPolicy", ("All", "Running"), ("Some", 1), cleaned, PLAIN, (("running", "succeed"),), ()),
    (f"{RUN}.ttlSecondsAfterFinished", (100000, 0), (-1, "soon", HUGE), time_to_live, PLAIN, (("finished", "none"),), ()),
    (f"{RUN}.ttlSecondsAfterFinished", (100000, 0), (-1, "soon", HUGE), time_to_live, PLAIN, (("running", "succeed"),), ()),
    (f"{RUN}.activeDeadlineSeconds", (100000, 1), (-1, "soon"), deadline, PLAIN, (("running", "none"),), ()),
    (f"{RUN}.backoffLimit", (0, 1), (-2, "two", HUGE), limit, PLAIN, (("running", "fail"),), ()),
    (f"{RUN}.restartScope", ("Job", "Replica"), ("Node", 1), restarted, PLAIN, (("running", "fail"),), ()),
    (f"{RUN}.suspend", (True, False), ("yes", 1), suspension, PLAIN, (("running", "none"),), ()),
    (f"{RUN}.managedBy", ("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"), ("someone", "", 1), manager, PLAIN,
     (("suspended", "resume"),), ()),
    (f"{RUN}.schedulingPolicy.minAvailable", (1, 3), (0, -1, "two", HUGE), of_group("minMember"), PLAIN, IN_PLACE, GANG),
    (f"{RUN}.schedulingPolicy.queue", ("a1", "b2"), (1,), of_group("queue"), PLAIN, (("suspended", "remake"),), GANG),
    (f"{RUN}.schedulingPolicy.queue", ("a1", "b2"), (1,), the_queue_stays, PLAIN, (("running", "none"),), GANG),
    (f"{RUN}.schedulingPolicy.minResources{{}}", ("2", "3"), ("lots", True), of_group("minResources", "cpu"), PLAIN, IN_PLACE, GANG),
    (f"{RUN}.schedulingPolicy.priorityClass", ("a1", "b2"), (1,), of_group("priorityClassName"), PLAIN, IN_PLACE, GANG),
    (f"{RUN}.schedulingPolicy.scheduleTimeoutSeconds", (9, 11), (-1, "soon", HUGE),
     of_group("scheduleTimeoutSeconds", plural="podgroups.scheduling.x-k8s.io"), PLAIN, IN_PLACE, PLUGINS),
    (f"{ELASTIC_POLICY}.minReplicas", (1, 2), (0, -1, "two", 4), bounds_of_pods, SCALED_TO_3, REMADE, ()),
    (f"{ELASTIC_POLICY}.minReplicas", (1, 2), (0, -1, "two", 4), bounds, SCALED_TO_3, (("running", "none"),), ()),
    (f"{ELASTIC_POLICY}.maxReplicas", (3, 4), (0, -1, "two", 1), bounds_of_pods, SCALED_FROM_2, REMADE, ()),
    (f"{ELASTIC_POLICY}.maxReplicas", (3, 4), (0, -1, "two", 1), bounds, SCALED_FROM_2, (("running", "none"),), ()),
    (f"{ELASTIC_POLICY}.rdzvBackend", ("etcd", "etcd-v2"), (1,), env("PET_RDZV_BACKEND"), ELASTIC, REMADE, ()),
    (f"{ELASTIC_POLICY}.rdzvPort", (1234, 2345), (0, -1, 70000, "http"), endpoint, ELASTIC, REMADE, ()),
    (f"{ELASTIC_POLICY}.rdzvHost", ("a1", "b2"), (1,), endpoint, ELASTIC, REMADE, ()),
    (f"{ELASTIC_POLICY}.rdzvId", ("a1", "b2"), (1,), env("PET_RDZV_ID"), ELASTIC, REMADE, ()),
    (f"{ELASTIC_POLICY}.rdzvConf[].key", ("a1", "b2"), (1, ""), conf, ELASTIC, REMADE, ()),
    (f"{ELASTIC_POLICY}.rdzvConf[].value", ("a1", "b2"), (1,), conf, ELASTIC, REMADE, ()),
    (f"{ELASTIC_POLICY}.standalone", (True, False), ("yes", 1), lambda look, value: (variable(look, "PET_STANDALONE") == "1") == value,
     ELASTIC, REMADE, ()),
    (f"{ELASTIC_POLICY}.nProcPerNode", (2, 4), (0, -1, "two", HUGE), env("PET_NPROC_PER_NODE"), ELASTIC, REMADE, ()),
    (f"{ELASTIC_POLICY}.maxRestarts", (2, 4), (-1, "two", HUGE), env("PET_MAX_RESTARTS"), ELASTIC, REMADE, ()),
    (f"{ELASTIC_POLICY}.shrinkAfterSeconds", (10, 20), (-1, "soon", 1000001), env("SHOAL_SHRINK_AFTER"), ELASTIC, REMADE, ()),
    (f"{TYPES}.Master.replicas", (1, 1), (0, 2, -1, "one"), lambda look, value: pod(look, "master-0") != {}, PLAIN, REMADE, ()),
    (f"{TYPES}.Master.restartPolicy", ("Always", "Never"), ("Sometimes", 1), policy("master"), PLAIN, REMADE, ()),
    (f"{TYPES}.Worker.replicas", (3, 2), (0, -1, "two", 10001, HUGE), workers, PLAIN, IN_PLACE, ()),
    (f"{TYPES}.Worker.restartPolicy", ("Always", "Never"), ("Sometimes", 1), policy("worker"), PLAIN, REMADE, ()),
]]


def spec_with(field, value):
    """The field's base with the value; a leaf of the base is replaced."""
    def beside(path):
        return {"key": "k", "value": "v"} if path == "spec.elasticPolicy.rdzvConf[]" else {}
    return with_leaf({"spec": field.base}, field.path, value, lambda path: "cpu", beside)["spec"]


def leaves_of(schema):
    """Those outside of pod templates and of an autoscaler's metrics, which metrics.py has."""
    return [leaf for leaf in leaves(schema, "spec") if ".template." not in leaf.path and ".metrics[]" not in leaf.path]
