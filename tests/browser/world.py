"""What the browser looks at: shoal-operator, with jobs of a cluster in memory, and agents of this machine in the place of pods'."""
import http.client
import os
import signal
import socket
import subprocess
import time

import kubernetes
from webdriver import wait_for

BUILD = os.environ.get("BUILD", "build/debug")
CONTAINER_PORT = "metrics"


def free_port():
    """Below those of connections."""
    port = 20000 + os.getpid() % 5000
    while True:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                port += 1
                continue
        if port not in free_port.given:
            free_port.given.add(port)
            return port
        port += 1


free_port.given = set()


def get(port, path, headers=None):
    """Status, headers and body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def serves(port, path):
    try:
        return get(port, path)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def job(name, workers=1, port=None, gpus=0, namespace="default", annotations=None, status=None, created=None, completed=None):
    """A PyTorchJob; port: where the agent of its pods is asked."""
    container = {"name": "pytorch", "image": "shoal-agent:0.1.0"}
    if port:
        container["ports"] = [{"name": CONTAINER_PORT, "containerPort": port}]
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    replica = {"restartPolicy": "OnFailure", "template": {"spec": {"containers": [container]}}}
    types = {"Master": {**replica, "replicas": 1}}
    if workers:
        types["Worker"] = {**replica, "replicas": workers}
    thing = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": name, "namespace": namespace, "annotations": annotations or {}},
             "spec": {"pytorchReplicaSpecs": types}}
    if created:
        thing["metadata"]["creationTimestamp"] = kubernetes.time_text(created)
    if status:
        thing["status"] = status
    return thing


def ended(kind, message, created, lasted, **training):
    """The status of a job that has Succeeded or Failed."""
    times = [kubernetes.time_text(created + part * lasted) for part in (0, 0.1, 1)]
    conditions = [{"type": what, "status": state, "reason": reason, "message": text, "lastUpdateTime": when, "lastTransitionTime": when}
                  for what, state, reason, text, when in [("Created", "True", "PyTorchJobCreated", "PyTorchJob is created.", times[0]),
                                                          ("Running", "False", "PyTorchJobRunning", "PyTorchJob is running.", times[1]),
                                                          (kind, "True", "PyTorchJob" + kind, message, times[2])]]
    status = {"conditions": conditions, "startTime": times[0], "replicaStatuses": {"Master": {"succeeded": 1} if kind == "Succeeded" else {"failed": 1}}}
    if kind == "Succeeded":
        status["completionTime"] = times[2]
    return {**status, "training": training} if training else status


def spent(seconds, step):
    """Where so many seconds of a job went, as an operator writes it; step: the share of steps."""
    kinds = {"pending": 4, "containerStart": 11, "initialization": 23.5, "checkpointSave": 0.01 * seconds, "step": round(step * seconds, 3)}
    kinds["recovery"] = round(seconds - sum(kinds.values()), 3)
    return {"seconds": kinds, "goodput": round(kinds["step"] / seconds, 3), "goodputPercent": f"{100 * kinds['step'] / seconds:.1f}%"}


def finished_jobs(count):
    """Of them each seventh has failed."""
    now = time.time()
    for i in range(count):
        created, kind = now - 86400 - 60 * i, "Failed" if i % 7 == 6 else "Succeeded"
        text = "Pod failed with exit code 1" if kind == "Failed" else f"PyTorchJob done-{i:04} is successfully completed."
        steps = 1000 + i
        yield job(f"done-{i:04}", namespace="team-a" if i % 2 else "team-b", gpus=8, created=created,
                  status=ended(kind, text, created, 3600 + i, step=steps if kind == "Succeeded" else steps // 2, steps=steps,
                               progress=f"{steps if kind == 'Succeeded' else steps // 2}/{steps}", loss=2 + 1 / (1 + i), worldSize=16, restarts=0, **spent(3600 + i, 0.93 - i % 13 / 200)))


class Agent:
    """A training of this machine, which serves itself."""

    def __init__(self, folder, name, *flags):
        self.port = free_port()
        self.log = open(f"{folder}/{name}.log", "w")
        self.process = subprocess.Popen([f"{BUILD}/shoal-agent", "--device=cpu", "--threads=1", f"--master_port={free_port()}",
                                         "--prometheus_addr=127.0.0.1", f"--prometheus_port={self.port}", f"--dir={folder}/{name}", *flags],
                                        stdout=self.log, stderr=subprocess.STDOUT, env={**os.environ, "OMP_WAIT_POLICY": "passive"}, start_new_session=True)
        wait_for(f"{name} to be served", lambda: self.process.poll() is not None or serves(self.port, "/status"))

    def send(self, number):
        os.killpg(self.process.pid, number)

    def close(self):
        try:
            self.send(signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()


class Operator:
    """Serves the page at one port, also when it is started again."""

    def __init__(self, folder, cluster, *flags, namespace="shoal-system"):
        self.flags, self.namespace = flags, namespace
        self.folder, self.ui, self.metrics, self.process, self.starts = folder, free_port(), free_port(), None, 0
        self.kubeconfig = f"{folder}/kubeconfig"
        cluster.kubeconfig(self.kubeconfig)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.ui}/"

    def start(self):
        self.starts += 1
        at = f"127.0.0.1:{self.metrics}"
        with open(f"{self.folder}/operator-{self.ui}-{self.starts}.log", "w") as log:
            self.process = subprocess.Popen([f"{BUILD}/shoal-operator", "--kubeconfig", self.kubeconfig, "--progress-seconds=1", "--health-probe-bind-address", at,
                                             "--metrics-bind-address", at, "--ui-bind-address", f"127.0.0.1:{self.ui}", *self.flags],
                                            stdout=log, stderr=log, env={**os.environ, "MY_POD_NAMESPACE": self.namespace})
        wait_for("the operator to be ready", lambda: serves(self.metrics, "/readyz"))

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process = None

    def close(self):
        if self.process:
            self.process.kill()
            self.process.wait()
