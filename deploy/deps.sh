#!/bin/sh
# Installs what Shoal needs to build, run and test itself, from Debian's packages only. Does nothing when
# all of it is there. `deps.sh cluster` adds what makes images and runs the test cluster.
set -eu

packages='
    gcc g++ make binutils git
    libcjson-dev libyaml-dev libdnnl-dev zlib1g-dev libxxhash-dev
    libpcre2-dev libutf8proc-dev
    libcurl4-openssl-dev libwebsockets-dev libssl-dev
    dataset-fashion-mnist fortunes
    libcmocka-dev libboost-context-dev clang lld clang-format cppcheck shellcheck gcovr bear python3 procps iproute2 man-db
    chromium chromium-driver'
# the second line builds Kubernetes, the third runs it, the fourth is for a node with pods
cluster_packages='
    buildah ca-certificates unzip
    golang-go golang-github-modern-go-reflect2-dev dpkg-dev debian-archive-keyring rsync jq
    etcd-server openssl curl
    containerd runc containernetworking-plugins dnsmasq-base socat'

case ${1:-} in
'') ;;
cluster) packages="$packages $cluster_packages" ;;
*)
    echo "usage: deploy/deps.sh [cluster]" >&2
    exit 2
    ;;
esac

missing=
for package in $packages; do
    status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

command -v apt-get >/dev/null || {
    echo "shoal: missing packages:$missing; apt-get is not here: install them by hand" >&2
    exit 1
}
sudo=
if [ "$(id -u)" -ne 0 ]; then
    sudo=sudo
    command -v sudo >/dev/null || {
        echo "shoal: missing packages:$missing; run 'apt-get install$missing' as root" >&2
        exit 1
    }
fi
echo "shoal: installing:$missing"
$sudo apt-get update -qq
# shellcheck disable=SC2086 # a list of names
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
