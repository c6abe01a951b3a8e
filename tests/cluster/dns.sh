#!/bin/bash
# dns.sh DIR ADDRESS API SERVICE_IP: the cluster's DNS. dnsmasq answers on ADDRESS from a file that is written anew from
# the API's Endpoints when one of them changes: NAME.NAMESPACE.svc.cluster.local, and HOSTNAME before that where a pod
# has one. As in a real cluster, only addresses that are ready (or published before they are) have names.
set -uo pipefail
cluster=$1 address=$2 api=$3 service_ip=$4
hosts=$cluster/node/hosts # a folder: dnsmasq sees by itself what becomes of the files in it

get() {
    curl --silent --no-buffer --cacert "$cluster/pki/ca.crt" --cert "$cluster/pki/admin.crt" \
        --key "$cluster/pki/admin.key" "$api/api/v1/endpoints$1"
}

write_hosts() {
    {
        echo "$service_ip kubernetes.default.svc.cluster.local"
        get "" | jq -r '.items[] | "\(.metadata.name).\(.metadata.namespace).svc.cluster.local" as $name
            | .subsets[]?.addresses[]? | .ip + " " + $name, (select(.hostname) | .ip + " " + .hostname + "." + $name)'
    } >"$hosts.new" && mv "$hosts.new" "$hosts/hosts"
}

mkdir -p "$hosts"
echo "$service_ip kubernetes.default.svc.cluster.local" >"$hosts/hosts"
dnsmasq --keep-in-foreground --user=root --pid-file= --no-resolv --no-hosts --local=/cluster.local/ \
    --listen-address="$address" --bind-interfaces --hostsdir="$hosts" &
while :; do
    # a status above 128 is the time-out: written anew now and then all the same, for what may have been missed
    get '?watch=1' | while read -r -t 5 _ || [ $? -gt 128 ]; do
        while read -r -t 0.05 _; do :; done # the rest of a burst
        until write_hosts; do sleep 0.2; done
    done
    sleep 0.2 # the API server restarts
done
