# shellcheck shell=bash
# shellcheck disable=SC2154 # cluster, kind, programs, service_network: of up.sh
# The part of up.sh that starts etcd, the API server and the controller manager. Services get addresses in
# $service_network.0/24; the first is the API server's.

# certificate NAME SUBJECT ALTERNATIVE_NAMES: pki/NAME.crt and pki/NAME.key, signed by pki/ca
certificate() {
    openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "$2" \
        -CA "$pki/ca.crt" -CAkey "$pki/ca.key" -addext "subjectAltName=$3" -addext basicConstraints=CA:FALSE \
        -keyout "$pki/$1.key" -out "$pki/$1.crt" 2>>"$cluster/log/openssl"
}

make_certificates() {
    openssl req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj /CN=shoal-test-ca \
        -keyout "$pki/ca.key" -out "$pki/ca.crt" 2>>"$cluster/log/openssl"
    openssl genrsa -out "$pki/sa.key" 2048 2>>"$cluster/log/openssl"
    certificate server /CN=kube-apiserver \
        "IP:127.0.0.1,IP:$service_network.1,DNS:localhost,DNS:kubernetes.default,DNS:kubernetes.default.svc"
    certificate admin /O=system:masters/CN=admin DNS:admin
    certificate front-proxy /CN=front-proxy DNS:front-proxy
}

make_kubeconfig() {
    cat <<END
apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: admin}}]
clusters:
- name: test
  cluster:
    server: https://127.0.0.1:$api
    certificate-authority-data: $(base64 -w0 "$pki/ca.crt")
users:
- name: admin
  user:
    client-certificate-data: $(base64 -w0 "$pki/admin.crt")
    client-key-data: $(base64 -w0 "$pki/admin.key")
END
}

start_etcd() {
    local port peer
    port=$(free_port "$api")
    peer=http://127.0.0.1:$(free_port "$api" "$port")
    etcd_url=http://127.0.0.1:$port
    cluster_start etcd etcd --data-dir "$cluster/etcd" --unsafe-no-fsync --log-level warn \
        --listen-client-urls "$etcd_url" --advertise-client-urls "$etcd_url" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"
}

start_apiserver() {
    local flags=()
    # without a controller manager nobody makes service accounts, which pods would wait for
    [ -x "$programs/kube-controller-manager" ] || flags+=(--disable-admission-plugins=ServiceAccount)
    # looks for garbage less often than by default (100), for some 250 MB more: a request costs less
    cluster_start kube-apiserver env GOGC=300 "$(command -v kube-apiserver)" --etcd-servers "$etcd_url" --cert-dir "$pki" \
        --bind-address 127.0.0.1 --secure-port "$api" --advertise-address 127.0.0.1 --endpoint-reconciler-type none \
        --tls-cert-file "$pki/server.crt" --tls-private-key-file "$pki/server.key" --client-ca-file "$pki/ca.crt" \
        --service-account-key-file "$pki/sa.key" --service-account-signing-key-file "$pki/sa.key" \
        --service-account-issuer https://kubernetes.default.svc --service-cluster-ip-range "$service_network.0/24" \
        --requestheader-client-ca-file "$pki/ca.crt" --requestheader-allowed-names front-proxy \
        --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
        --requestheader-extra-headers-prefix X-Remote-Extra- \
        --proxy-client-cert-file "$pki/front-proxy.crt" --proxy-client-key-file "$pki/front-proxy.key" \
        --authorization-mode RBAC --allow-privileged=true --kubelet-preferred-address-types InternalIP "${flags[@]}"
}

# known_flag PROGRAM FLAG: FLAG if the program knows it: those for ports without TLS left about 1.24, others came later
# All of the help is read: a program that is cut off fails, and with it, under pipefail, the look for its flag.
known_flag() { if "$1" --help 2>&1 | grep -- "^ *${2%%=*} " >/dev/null; then echo "$2"; fi; }

start_controller_manager() {
    local flags without=(${CLUSTER_WITHOUT:+"$CLUSTER_WITHOUT"})
    mapfile -t flags < <(known_flag kube-controller-manager --port=0)
    # where no pod runs nobody needs a service's addresses, which are two writes more each time that one of its pods changes
    [ "$kind" = node ] || without+=(endpoint endpointslice endpointslicemirroring)
    flags+=("--controllers=*$([ ${#without[@]} -eq 0 ] || printf ',-%s' "${without[@]}")")
    cluster_start kube-controller-manager kube-controller-manager --kubeconfig "$cluster/kubeconfig" \
        --bind-address 127.0.0.1 --secure-port "$(free_port)" --cert-dir "$pki" --leader-elect=false \
        --service-account-private-key-file "$pki/sa.key" --root-ca-file "$pki/ca.crt" "${flags[@]}"
}

start_control_plane() { # leaves `pki`, the certificates' folder, and `api`, the API server's port
    pki=$cluster/pki
    api=$(free_port)
    export KUBECONFIG=$cluster/kubeconfig
    make_certificates
    make_kubeconfig >"$KUBECONFIG"
    start_etcd
    start_apiserver
    cluster_wait 300 kube-apiserver kubectl get --raw /readyz
    [ -x "$programs/kube-controller-manager" ] || return 0
    start_controller_manager
    cluster_wait 300 kube-controller-manager kubectl get serviceaccount default
}
