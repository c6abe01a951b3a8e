# shellcheck shell=bash
# shellcheck disable=SC2154 # cluster: of whoever started the control plane
# A new server for PyTorchJobs beside the old control plane of tests/cluster, which has the rest of the API: pods,
# services, leases, events, rights. The old server's aggregation layer hands all of kubeflow.org/v1 to the new one, so
# whoever uses $KUBECONFIG sees one cluster whose custom resources are served as a new Kubernetes serves them.
# SHOAL_TEST_NEWER is the folder that tests/newer/build.sh prints. Source tests/cluster/lib.sh before.

# To the new server itself, which has CustomResourceDefinitions and their objects and nothing else.
newer_kubectl() { KUBECONFIG=$cluster/newer.kubeconfig "$SHOAL_TEST_NEWER/kubectl" "$@"; }

newer_start() { # leaves its port in $newer_port
    local pki=$cluster/pki
    . tests/cluster/control_plane.sh
    newer_port=$(free_port)
    certificate newer /CN=newer DNS:newer.kube-system.svc,IP:127.0.0.1
    # the policies of admission that it would ask the old server for are not known there
    cluster_start apiextensions-apiserver "$SHOAL_TEST_NEWER/apiextensions-apiserver" --bind-address 127.0.0.1 --secure-port "$newer_port" \
        --etcd-servers "$(grep -oE 'http://[0-9.:]+' "$cluster/run/kube-apiserver" | head -n 1)" --cert-dir "$pki" \
        --tls-cert-file "$pki/newer.crt" --tls-private-key-file "$pki/newer.key" --client-ca-file "$pki/ca.crt" \
        --kubeconfig "$KUBECONFIG" --authentication-kubeconfig "$KUBECONFIG" --authorization-kubeconfig "$KUBECONFIG" \
        --enable-priority-and-fairness=false --disable-admission-plugins=ValidatingAdmissionPolicy,MutatingAdmissionPolicy
    sed "s|server: .*|server: https://127.0.0.1:$newer_port|" "$KUBECONFIG" >"$cluster/newer.kubeconfig"
    cluster_wait 60 apiextensions-apiserver newer_kubectl get --raw /readyz
}

# newer_crd FOLDER: installs the CRD of that folder there, and waits until both servers serve it.
newer_crd() {
    newer_kubectl apply -k "$1" && wait_for 60 newer_kubectl wait --for=condition=Established --timeout=5s crd/pytorchjobs.kubeflow.org &&
        newer_register && wait_for 60 kubectl wait --for=condition=Available --timeout=1s apiservice/v1.kubeflow.org &&
        wait_for 60 kubectl get pytorchjobs
}
newer_register() {
    kubectl apply -f - <<END
apiVersion: v1
kind: Service
metadata: {name: newer, namespace: kube-system}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.kubeflow.org}
spec:
  group: kubeflow.org
  version: v1
  groupPriorityMinimum: 1000
  versionPriority: 100
  service: {name: newer, namespace: kube-system, port: $newer_port}
  caBundle: $(base64 -w0 "$cluster/pki/ca.crt")
END
}

# newer_crd_end FOLDER: the reverse.
newer_crd_end() { newer_kubectl delete -k "$1" && kubectl delete apiservice v1.kubeflow.org; }
