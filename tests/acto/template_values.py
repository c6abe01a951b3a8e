"""What the leaves of a pod template are set to. Pure: tests/acto/test_leaves.py tries it.

Which leaves there are says our CustomResourceDefinition, and which of these values make a pod says the API server (judge.py). These
tables have just what neither can know: values that fit together, such as a probe that has something to ask.
"""
import re

from leaves import Leaf, at, leaves

# Two values, by the end of the path; the first that fits counts.
VALUES = [(re.compile(pattern + "$"), values) for pattern, values in [
    (r"imagePullPolicy|\bpullPolicy", ("Always", "Never")), (r"terminationMessagePolicy", ("FallbackToLogsOnError", "File")),
    (r"dnsPolicy", ("Default", "ClusterFirstWithHostNet")), (r"preemptionPolicy", ("PreemptLowerPriority", "Never")),
    (r"nodeSelectorTerms\[\]\.\w+\[\]\.operator|preference\.\w+\[\]\.operator", ("In", "NotIn")),
    (r"[lL]abelSelector\.matchExpressions\[\]\.operator|namespaceSelector\.matchExpressions\[\]\.operator", ("In", "NotIn")),
    (r"volumeClaimTemplate\.spec\.selector\.matchExpressions\[\]\.operator", ("In", "NotIn")),
    (r"matchFields\[\]\.key", ("metadata.name",) * 2),
    (r"tolerations\[\]\.operator", ("Exists", "Equal")), (r"effect", ("NoSchedule", "NoExecute")),
    (r"tolerationSeconds", (30, 50)), (r"whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway")),
    (r"nodeAffinityPolicy|nodeTaintsPolicy", ("Honor", "Ignore")), (r"protocol", ("UDP", "SCTP")),
    (r"scheme", ("HTTPS", "HTTP")), (r"mountPropagation", ("HostToContainer", "None")), (r"procMount", ("Default", "Unmasked")),
    (r"seccompProfile\.type", ("RuntimeDefault", "Unconfined")), (r"appArmorProfile\.type", ("RuntimeDefault", "Unconfined")),
    (r"localhostProfile", ("a1.json", "b2.json")), (r"fsGroupChangePolicy", ("OnRootMismatch", "Always")),
    (r"seLinuxChangePolicy", ("MountOption", "Recursive")), (r"supplementalGroupsPolicy", ("Merge", "Strict")),
    (r"sysctls\[\]\.name", ("kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies")), (r"os\.name", ("linux", "windows")),
    (r"ip", ("10.0.0.1", "10.0.0.2")), (r"hostIP", ("10.0.0.1", "10.0.0.2")), (r"nameservers\[\]", ("10.0.0.1", "10.0.0.2")),
    (r"fieldPath", ("metadata.name", "metadata.namespace")), (r"apiVersion", ("v1", "v1")),
    (r"resourceFieldRef\.resource", ("limits.cpu", "limits.memory")), (r"divisor", ("1", "1")),
    (r"mountPath|devicePath|hostPath\.path", ("/a1", "/b2")), (r"nfs\.path|glusterfs\.path", ("/a1", "/b2")),
    (r"hostPath\.type", ("Directory", "File")), (r"emptyDir\.medium", ("Memory", "HugePages")),
    (r"sizeLimit|limits\{\}|overhead\{\}", ("2", "3")), (r"requests\{\}", ("1", "2")), (r"weight", (3, 5)),
    (r"finalizers\[\]", ("test.shoal/a1", "test.shoal/b2")), (r"accessModes\[\]", ("ReadWriteOnce", "ReadOnlyMany")),
    (r"volumeMode", ("Filesystem", "Block")), (r"azureDisk\.kind", ("Shared", "Dedicated")), (r"cachingMode", ("ReadOnly", "None")),
    (r"defaultMode|\bmode", (256, 292)), (r"expirationSeconds", (600, 700)), (r"terminationGracePeriodSeconds", (5, 7)),
    (r"restartPolicy", ("Always", "Never")), (r"stopSignal", ("SIGTERM", "SIGUSR1")), (r"keyType", ("ED25519", "ECDSAP256")),
    (r"initContainers\[\]\.name", ("before", "earlier")), (r"containers\[\]\.name", ("pytorch", "pytorch")),
    (r"ontainers\[\]\.volume\w+\[\]\.name", ("a1", "b2")),
    (r"windowsOptions\.hostProcess", (False, False)), (r"successThreshold", (1, 1)), (r"lun", (3, 5)),
    (r"conditionType", ("test.shoal/a1", "test.shoal/b2")), (r"env\[\]\.value", ("a1", "b2")), (r"readOnly", (True, False)),
]]
BY_TYPE = {"boolean": (True, False), "integer": (3, 5), "string": ("a1", "b2"), "date-time": ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
           "int-or-string": (3, "b2"), "quantity": ("2", "3"), "object": ({}, {})}
BAD_BY_TYPE = {"boolean": ("yes",), "integer": ("three", -1, 1 << 40), "string": (3, "", "NO such! value"), "date-time": (3, "yesterday"),
               "int-or-string": (True, -1, ""), "quantity": ("lots", "-1", True), "object": (3,)}

HANDLERS = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}
SOURCE = {"emptyDir": {}}
TERM = [{"matchExpressions": [{"key": "a1", "operator": "Exists"}]}]
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}
# What an object needs besides its leaf, by the end of its path.
BESIDE = [(re.compile(pattern + "$"), needed) for pattern, needed in [
    (r"initContainers\[\]", {"name": "before", "image": "image:1"}),
    (r"[cC]ontainers\[\]\.volumeMounts\[\]", {"name": "v", "mountPath": "/v"}),
    (r"[cC]ontainers\[\]\.volumeDevices\[\]", {"name": "v", "devicePath": "/v"}),
    (r"volumes\[\]", {"name": "v"}), (r"env\[\]", {"name": "E"}), (r"[cC]ontainers\[\]\.ports\[\]", {"name": "p", "containerPort": 1234}),
    (r"envFrom\[\]\.(configMap|secret)Ref", {"name": "c"}), (r"envFrom\[\]", {"configMapRef": {"name": "c"}}),
    (r"(liveness|readiness|startup)Probe", {"tcpSocket": {"port": 1}}),
    (r"postStart|preStop", {"exec": {"command": ["c"]}}), (r"httpGet|tcpSocket|grpc", {"port": 1}),
    (r"matchExpressions\[\]", {"key": "a1", "operator": "In", "values": ["a1"]}),
    (r"matchFields\[\]", {"key": "metadata.name", "operator": "In", "values": ["a1"]}),
    (r"requiredDuringSchedulingIgnoredDuringExecution(\[\])?|podAffinityTerm", {}),
    (r"nodeAffinity\.preferredDuringSchedulingIgnoredDuringExecution\[\]", {"weight": 1, "preference": TERM[0]}),
    (r"pod(Anti)?Affinity\.preferredDuringSchedulingIgnoredDuringExecution\[\]", {"weight": 1, "podAffinityTerm": {"topologyKey": "t"}}),
    (r"volumeClaimTemplate\.spec", CLAIM), (r"dnsConfig", {"nameservers": ["10.0.0.3"]}), (r"topologySpreadConstraints\[\]", {
        "maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"a": "b"}}}),
    (r"hostAliases\[\]", {"ip": "10.0.0.3", "hostnames": ["h"]}), (r"(configMap|secret)\.items\[\]", {"key": "k", "path": "p"}),
    (r"volumes\[\]\.configMap|volumes\[\]\.projected\.sources\[\]\.configMap", {"name": "c"}),
    (r"volumes\[\]\.secret", {"secretName": "c"}), (r"volumes\[\]\.projected\.sources\[\]\.secret", {"name": "c"}),
    (r"downwardAPI\.items\[\]", {"path": "p"}), (r"resourceFieldRef", {"containerName": "pytorch", "resource": "limits.cpu"}),
    (r"securityContext\.seccompProfile|appArmorProfile", {"type": "RuntimeDefault"}),
    (r"sysctls\[\]", {"name": "kernel.shm_rmid_forced", "value": "1"}),
    (r"fieldRef", {"fieldPath": "metadata.name"}), (r"(configMap|secret)KeyRef", {"name": "c", "key": "k"}),
    (r"httpHeaders\[\]", {"name": "H", "value": "v"}), (r"tolerations\[\]", {"key": "k"}), (r"azureFile", {"secretName": "s", "shareName": "s"}),
    (r"azureDisk", {"diskName": "d", "diskURI": "/u"}), (r"cephfs", {"monitors": ["m"]}), (r"photonPersistentDisk", {"pdID": "p"}),
    (r"serviceAccountToken", {"path": "p"}), (r"clusterTrustBundle", {"path": "p", "name": "n"}), (r"dataSource(Ref)?", {"kind": "K", "name": "n"}),
    (r"fc", {"targetWWNs": ["w"], "lun": 1}), (r"iscsi", {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.a:b", "lun": 1}),
    (r"rbd", {"monitors": ["m"], "image": "i"}), (r"nfs|glusterfs", {"path": "/p"}), (r"flexVolume", {"driver": "a/b"}),
]]
KEYS = [(re.compile(pattern + "$"), key) for pattern, key in [(r"resources\.(limits|requests)\{\}|overhead\{\}", "cpu"), (r".*", "team")]]


def base(path):
    """The template without the leaf of this path; volumes are there to be mounted."""
    volumes = {"volumes": [{"name": name, **SOURCE} for name in ("v", "a1", "b2")]} if "].volume" in path else {}
    return {"spec": {"automountServiceAccountToken": False, "containers": [{"name": "pytorch", "image": "image:1"}], **volumes}}


def leaves_of(schema):
    """Of a template's schema, by their path in it."""
    return [Leaf(leaf.path.removeprefix("."), leaf.schema) for leaf in leaves(schema, "")]


def kind_of(schema):
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return "quantity"
    return schema.get("format") if schema.get("format") == "date-time" else schema["type"]


def good(leaf):
    """The two values of a Leaf."""
    for pattern, values in VALUES:
        if pattern.search(leaf.path):
            return values
    return BY_TYPE[kind_of(leaf.schema)]


def bad(leaf):
    return BAD_BY_TYPE[kind_of(leaf.schema)]


def key(path):
    return next(name for pattern, name in KEYS if pattern.search(path))


def beside(template_schema, leaf_path):
    """Function for with_leaf: what stands beside the leaf of this path."""
    def needed(path):
        schema, more = at(template_schema, path) or {}, {}
        next_name = re.match(r"\.?([^.\[{]*)", leaf_path[len(path):])[1]
        for name in schema.get("required", []):
            child = schema["properties"][name]
            more[name] = [] if child.get("type") == "array" else {} if child.get("properties") else good(Leaf(f"{path}.{name}", child))[0]
        for pattern, needed in BESIDE:
            if pattern.search(path):
                more = {**more, **needed}
                break
        if next_name in HANDLERS:
            more = {name: value for name, value in more.items() if name not in HANDLERS}
        if next_name in ("secretRef", "configMapRef"):
            more.pop("configMapRef", None)
        more.pop(next_name, None)
        return more
    return needed

