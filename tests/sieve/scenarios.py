"""What happens to the job "j", as data: steps of world.Player, each of which waits for what it needs. flags: of the operator."""
from collections import namedtuple

Scenario = namedtuple("Scenario", "name flags operators steps")


def replicas(count, policy):
    container = {"name": "pytorch", "image": "image:1"}
    return {"replicas": count, "restartPolicy": policy,
            "template": {"spec": {"automountServiceAccountToken": False, "containers": [container]}}}


def job(workers, policy="OnFailure", run_policy=None, master=True, **more):
    types = {**({"Master": replicas(1, policy)} if master else {}), **({"Worker": replicas(workers, policy)} if workers else {})}
    return {"runPolicy": run_policy or {}, "pytorchReplicaSpecs": types, **more}


CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
ELASTIC = {"minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "c10d", "metrics": [CPU]}
PAIR = "j-master-0 j-worker-0"
ALL = "j-master-0 j-worker-0 j-worker-1"
THREE = "j-worker-0 j-worker-1 j-worker-2"
SHRINKS = {"minReplicas": 1, "maxReplicas": 4, "shrinkAfterSeconds": 0}
SCENARIOS = [
    Scenario("life of a job of 3 pods", (), 1, [
        ("create", job(2, run_policy={"cleanPodPolicy": "Running"})),
        ("pods", ALL), ("play", ALL, "running"), ("condition", "Running"),
        ("play", "j-master-0", "exit", 0), ("condition", "Succeeded"), ("pods", "")]),
    Scenario("a failure and its restart", (), 1, [
        ("create", job(1, "ExitCode")),
        ("pods", PAIR), ("play", PAIR, "running"), ("condition", "Running"),
        ("play", "j-worker-0", "exit", 137), ("pods", PAIR), ("play", "j-worker-0", "running"), ("condition", "Running"),
        ("play", "j-master-0", "exit", 0), ("condition", "Succeeded")]),
    Scenario("a group restarts", (), 1, [
        ("create", job(2, "ExitCode", {"restartScope": "Job"})),
        ("pods", ALL), ("play", ALL, "running"), ("condition", "Running"),
        ("expect_new", PAIR), ("play", "j-worker-1", "exit", 137), ("pods", ALL), ("play", ALL, "running"), ("condition", "Running")]),
    Scenario("suspended and resumed", (), 1, [
        ("create", job(1)),
        ("pods", PAIR), ("play", PAIR, "running"), ("condition", "Running"),
        ("expect_new", PAIR), ("edit", {"runPolicy": {"suspend": True}}), ("condition", "Suspended"), ("pods", ""),
        ("gone", "services/j-master-0"), ("gone", "services/j-worker-0"),
        ("edit", {"runPolicy": {"suspend": False}}), ("pods", PAIR), ("play", PAIR, "running"), ("condition", "Running")]),
    Scenario("scaled up and down", (), 1, [
        ("create", job(1)),
        ("pods", PAIR), ("play", PAIR, "running"), ("condition", "Running"),
        ("scale", 3), ("pods", f"{ALL} j-worker-2"), ("play", "j-worker-1 j-worker-2", "running"),
        ("scale", 1), ("pods", PAIR), ("condition", "Running")]),
    Scenario("a gang", ("--gang-scheduler-name=volcano",), 1, [
        ("create", job(1)),
        ("admit",), ("pods", PAIR), ("play", PAIR, "running"), ("condition", "Running"),
        ("play", "j-master-0", "exit", 0), ("condition", "Succeeded"), ("gone", "podgroups/j")]),
    Scenario("an autoscaler", (), 1, [
        ("create", job(1, master=False, elasticPolicy=ELASTIC)),
        ("autoscaler", 3), ("pods", "j-worker-0"), ("play", "j-worker-0", "running"), ("condition", "Running"),
        ("edit", {"elasticPolicy": {"maxReplicas": 5}}), ("autoscaler", 5),
        ("scale", 2), ("pods", "j-worker-0 j-worker-1"), ("play", "j-worker-1", "running"),
        ("play", "j-worker-0", "exit", 0), ("condition", "Succeeded"), ("gone", "horizontalpodautoscalers/j")]),
    Scenario("a deadline and a TTL", (), 1, [
        ("create", job(1, run_policy={"activeDeadlineSeconds": 6, "ttlSecondsAfterFinished": 1, "cleanPodPolicy": "All"})),
        ("pods", PAIR), ("play", PAIR, "running"), ("gone", "pytorchjobs/j"), ("pods", "")]),
    Scenario("a node is lost", ("--node-lost-seconds=1",), 1, [
        ("create", job(1)),
        ("pods", PAIR), ("bind", "j-worker-0"), ("play", PAIR, "running"), ("play", "j-worker-0", "ready"), ("condition", "Running"),
        ("play", "j-worker-0", "lost"), ("pods", PAIR), ("play", "j-worker-0", "running"), ("condition", "Running")]),
    Scenario("room for worker 0", (), 1, [
        ("create", job(4, master=False, elasticPolicy=SHRINKS)),
        ("pods", f"{THREE} j-worker-3"), ("bind", "j-worker-3"), ("play", "j-worker-1 j-worker-2 j-worker-3", "running"), ("active", 3),
        ("play", "j-worker-0", "unschedulable"), ("pods", THREE), ("incidents", 1), ("end", "j-worker-3"),
        ("bind", "j-worker-0"), ("play", "j-worker-0", "running"),
        ("pods", f"{THREE} j-worker-3"), ("play", "j-worker-3", "running"), ("active", 4)]),
    Scenario("the leader hands over", ("--leader-elect",), 2, [
        ("create", job(1, "ExitCode")),
        ("pods", PAIR), ("play", PAIR, "running"), ("condition", "Running"),
        ("hand_over",), ("play", "j-worker-0", "exit", 137), ("pods", PAIR), ("play", "j-worker-0", "running"), ("condition", "Running")]),
]
