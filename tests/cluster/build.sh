#!/bin/bash
# Prints the folder that has Kubernetes's programs for the test cluster: `build.sh control-plane` needs kube-apiserver
# and etcd, `build.sh node` needs kubelet, kube-controller-manager and kube-scheduler too. Taken from
# KUBEBUILDER_ASSETS if they are there, else from PATH, else from the cache, else built into the cache from Debian's
# source package (about 5 minutes on 2 cores, 3 GB of disk meanwhile). What happens is said on stderr, a line each.
#
# Two traps of building 1.20 with Go 1.19: plain `go build` lacks generated code, so Kubernetes's own make it is; and
# its vendored reflect2 1.0.1 reads Go's maps by their layout of before 1.18, which kills the API server at the first
# custom resource, so Debian's reflect2 1.0.2 takes its place.
set -euo pipefail

version=1.20.2
programs='kube-apiserver kube-controller-manager kube-scheduler kubelet'
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
reflect2=/usr/share/gocode/src/github.com/modern-go/reflect2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shoal
built=$cache/kubernetes-$version

say() { echo "build.sh: $*" >&2; }
die() {
    say "$*"
    exit 1
}

needed() { # the programs the wanted kind of cluster cannot do without
    echo kube-apiserver
    [ "$1" = control-plane ] || printf '%s\n' kube-controller-manager kube-scheduler kubelet
}

has_all() { # FOLDER PROGRAM...
    local folder=$1 program
    shift
    for program; do
        [ -x "$folder/$program" ] || return 1
    done
}

# run COMMAND...: runs it in a process group of its own, which ends with this script; its output goes to the log.
group=
run() {
    setsid nice "$@" >>"$tree/log" 2>&1 </dev/null &
    group=$!
    wait "$group" || {
        tail -n 20 "$tree/log" >&2
        die "failed: $*"
    }
    group=
}

clean_up() {
    [ -z "$group" ] || kill -KILL -- "-$group" 2>/dev/null || true
    rm -rf "$tree"
}

fetch() {
    local apt=(-o "Dir::Etc::SourceList=$tree/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$tree/apt/lists" -o "Dir::Cache=$tree/apt/cache" -o APT::Sandbox::User= -qq)
    local kind

    mkdir -p "$tree/apt/lists/partial" "$tree/apt/cache/archives/partial"
    for kind in deb deb-src; do
        echo "$kind [signed-by=$keyring] $mirror bookworm main"
    done >"$tree/apt/sources.list"
    cd "$tree/apt"
    say "fetching Debian's source package of Kubernetes, and its kubectl, from $mirror"
    run apt-get "${apt[@]}" update
    run apt-get "${apt[@]}" source --download-only kubernetes
    run apt-get "${apt[@]}" download kubernetes-client
    say "unpacking them"
    mkdir -p "$tree/src/k8s.io" "$tree/tmp"
    run dpkg-source --no-check -x kubernetes_*"$version"*.dsc "$tree/src/k8s.io/kubernetes"
    run dpkg-deb -x kubernetes-client_*"$version"*.deb "$tree/client"
}

build() {
    local program what=()

    for program in $programs; do
        what+=("cmd/$program")
    done
    cd "$tree/src/k8s.io/kubernetes"
    rm -r vendor/github.com/modern-go/reflect2
    cp -r "$reflect2" vendor/github.com/modern-go/reflect2
    say "building $programs (about 5 minutes on 2 cores)"
    # Without what no test cluster has (the APIs of clouds, Docker) and what a debugger reads, which no panic prints. All four
    # are static: a kubelet with cgo would compile most of what it shares with the others once more.
    run env GOGC=300 GOFLAGS=-tags=providerless,dockerless KUBE_STATIC_OVERRIDES=kubelet GOPATH="$tree" TMPDIR="$tree/tmp" \
        make WHAT="${what[*]}" KUBE_GIT_VERSION="v$version" GOGCFLAGS=all=-dwarf=false
    mkdir "$tree/bin"
    for program in $programs; do
        mv "_output/bin/$program" "$tree/bin/"
    done
    mv "$tree/client/usr/bin/kubectl" "$tree/bin/"
}

fill_cache() {
    local tool

    for tool in go make rsync jq dpkg-source apt-get flock "$keyring" "$reflect2"; do
        [ -e "$tool" ] || command -v "$tool" >/dev/null || die "$tool is not here: run 'make cluster-deps'"
    done
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock --nonblock 9 || {
        say "waiting for another run that builds Kubernetes"
        flock 9
    }
    [ ! -d "$built" ] || return 0
    rm -rf "$cache"/tree.* # of a run that was killed
    tree=$(mktemp -d "$cache/tree.XXXXXX")
    trap clean_up EXIT
    trap 'exit 1' HUP INT TERM
    fetch
    build
    mv "$tree/bin" "$built"
    say "Kubernetes $version is in $built ($(du -sh "$built" | cut -f1), $SECONDS s)"
}

kind=${1:-}
case $kind in
control-plane | node) ;;
*) die "usage: tests/cluster/build.sh control-plane|node" ;;
esac
mapfile -t wanted < <(needed "$kind")
on_path=$(dirname "$(command -v kube-apiserver || echo .)")
for folder in ${KUBEBUILDER_ASSETS:+"$KUBEBUILDER_ASSETS"} "$on_path" "$built"; do
    if has_all "$folder" "${wanted[@]}" && { [ -x "$folder/etcd" ] || command -v etcd >/dev/null; }; then
        echo "$folder"
        exit
    fi
done
fill_cache
echo "$built"
