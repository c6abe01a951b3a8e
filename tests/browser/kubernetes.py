"""An API server, a scheduler and the kubelets of a cluster, as far as shoal-operator sees them: lists, watches and writes of the
objects that it asks for, in memory. A pod runs as soon as it is made, at 127.0.0.1, unless its job's annotation "pods" says how
else. What a real API server refuses it takes: tests/cluster has the real one.
"""
import http.server
import json
import threading
import time
import uuid

JOBS = "pytorchjobs"
GROUPS = {JOBS: "/apis/kubeflow.org/v1", "pods": "/api/v1", "services": "/api/v1", "events": "/api/v1",
          "horizontalpodautoscalers": "/apis/autoscaling/v2", "leases": "/apis/coordination.k8s.io/v1"}


def time_text(seconds=None):
    """RFC 3339, of now or of that second since 1970."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def merge(into, patch):
    """RFC 7396."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


class Cluster:
    def __init__(self):
        self.change = threading.Condition()
        self.objects = {kind: {} for kind in GROUPS}  # by namespace and name
        self.log = []  # (version, kind, type of event, object as text), from the beginning
        self.version = 1
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"cluster": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def kubeconfig(self, path):
        with open(path, "w") as file:
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "here",
                       "clusters": [{"name": "here", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}],
                       "users": [{"name": "me", "user": {"token": "mine"}}],
                       "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}]}, file)

    def put(self, kind, thing, event="MODIFIED"):
        """Writes an object and tells whoever watches."""
        with self.change:
            self.version += 1
            meta = thing["metadata"]
            meta.setdefault("namespace", "default")
            meta.setdefault("uid", str(uuid.uuid4()))
            meta.setdefault("creationTimestamp", time_text())
            meta["resourceVersion"] = str(self.version)
            key = (meta["namespace"], meta["name"])
            if event == "DELETED":
                self.objects[kind].pop(key, None)
            else:
                self.objects[kind][key] = thing
            self.log.append((self.version, kind, event, json.dumps(thing)))
            self.change.notify_all()
            return thing

    def get(self, kind, name, namespace="default"):
        with self.change:
            return self.objects[kind].get((namespace, name))

    def edit(self, kind, name, patch, namespace="default"):
        with self.change:
            thing = json.loads(json.dumps(self.get(kind, name, namespace)))
            merge(thing, patch)
            return self.put(kind, thing)

    def delete(self, kind, name, namespace="default"):
        with self.change:
            thing = self.get(kind, name, namespace)
            if not thing:
                return None
            if kind == JOBS:  # what it owns goes with it
                for other in ("pods", "services"):
                    for (space, child), held in list(self.objects[other].items()):
                        if held["metadata"].get("ownerReferences", [{}])[0].get("uid") == thing["metadata"]["uid"]:
                            self.delete(other, child, space)
            return self.put(kind, json.loads(json.dumps(thing)), "DELETED")

    def create(self, kind, thing):
        if kind == "pods":
            labels = thing["metadata"].get("labels", {})
            job = self.get(JOBS, labels.get("training.kubeflow.org/job-name", ""), thing["metadata"].get("namespace", "default"))
            how = (job or {}).get("metadata", {}).get("annotations", {}).get("pods", "")
            thing["status"] = pod_status(thing, how)
            thing["spec"]["nodeName"] = "node-1"
        return self.put(kind, thing, "ADDED")


def pod_status(pod, how):
    """how: "REASON: MESSAGE" of containers that wait; "": they run."""
    reason, _, message = how.partition(": ")
    state = {"waiting": {"reason": reason, "message": message}} if how else {"running": {"startedAt": time_text()}}
    names = [container["name"] for container in pod["spec"]["containers"]]
    return {"phase": "Pending" if how else "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}], "startTime": time_text(),
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": time_text()}],
            "containerStatuses": [{"name": name, "image": "image:1", "imageID": "", "ready": not how, "restartCount": 0, "state": state}
                                  for name in names]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cluster = None

    def place(self):
        """Kind, namespace, name and subresource of the path; None: there is no such thing here."""
        path = self.path.partition("?")[0]
        for kind, group in GROUPS.items():
            rest = path[len(group):].strip("/").split("/") if path.startswith(group + "/") else []
            namespace = rest[1] if rest[:1] == ["namespaces"] else None
            rest = rest[2:] if namespace else rest
            if rest[:1] == [kind]:
                return kind, namespace, rest[1] if len(rest) > 1 else None, rest[2] if len(rest) > 2 else None
        return None

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def refuse(self, status, reason):
        self.answer(status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status, "message": reason})

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")

    def do_GET(self):
        place = self.place()
        if not place:
            return self.refuse(404, "NotFound")
        kind, namespace, name, _ = place
        if name:
            thing = self.cluster.get(kind, name, namespace)
            return self.answer(200, thing) if thing else self.refuse(404, "NotFound")
        if "watch=1" in self.path:
            return self.watch(kind, namespace)
        with self.cluster.change:
            items = [thing for (space, _), thing in self.cluster.objects[kind].items() if namespace in (None, space)]
            return self.answer(200, {"kind": "List", "metadata": {"resourceVersion": str(self.cluster.version)}, "items": items})

    def watch(self, kind, namespace):
        cluster, place = self.cluster, 0
        seen = int(self.path.partition("resourceVersion=")[2].partition("&")[0] or 0)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while True:
                with cluster.change:
                    while place == len(cluster.log):
                        cluster.change.wait()
                    news, place = cluster.log[place:], len(cluster.log)
                lines = "".join(f'{{"type": "{event}", "object": {text}}}\n' for version, what, event, text in news
                                if what == kind and version > seen and (namespace is None or json.loads(text)["metadata"]["namespace"] == namespace))
                if lines:
                    data = lines.encode()
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        except OSError:
            self.close_connection = True  # nobody watches any more

    def do_POST(self):
        place, thing = self.place(), self.body()
        if not place:
            return self.refuse(404, "NotFound")
        kind, namespace, _, _ = place
        thing["metadata"]["namespace"] = namespace
        thing["metadata"].setdefault("name", thing["metadata"].get("generateName", "") + uuid.uuid4().hex[:5])
        with self.cluster.change:
            if self.cluster.get(kind, thing["metadata"]["name"], namespace):
                return self.refuse(409, "AlreadyExists")
            return self.answer(201, self.cluster.create(kind, thing))

    def write(self, change):
        place, body = self.place(), self.body()
        if not place or not place[2]:
            return self.refuse(404, "NotFound")
        kind, namespace, name, subresource = place
        with self.cluster.change:
            thing = self.cluster.get(kind, name, namespace)
            if not thing:
                return self.refuse(404, "NotFound")
            thing = json.loads(json.dumps(thing))
            change(thing, body, subresource)
            return self.answer(200, self.cluster.put(kind, thing))

    def do_PUT(self):
        def change(thing, body, subresource):
            if subresource == "status":
                thing["status"] = body.get("status", {})
            else:
                merge(thing, body)
        return self.write(change)

    def do_PATCH(self):
        return self.write(lambda thing, body, _: merge(thing, body))

    def do_DELETE(self):
        self.body()
        place = self.place()
        thing = self.cluster.delete(place[0], place[2], place[1]) if place and place[2] else None
        return self.answer(200, thing) if thing else self.refuse(404, "NotFound")

    def log_message(self, *_):
        pass
