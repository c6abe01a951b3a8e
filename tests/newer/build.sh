#!/bin/bash
# Prints the folder that has apiextensions-apiserver, the part of an API server that serves CustomResourceDefinitions, and
# kubectl, both as new as Debian unstable has them (1.36 in 2026). From the cache if they are there, else built into
# it in 3 to 5 minutes on 2 cores (1.5 GB of disk meanwhile; some 200 MB are fetched). What happens is said on stderr.
#
# Debian has no newer kube-apiserver, but the sources of this part as a library with a main program. They, what they
# need and the Go that they need are unpacked in a folder of this script's own; nothing is installed, and apt's own lists
# are left alone. Unstable moves: what is built is what it has on that day, said at the end and part of the cache's
# name, and it may one day not build; then remove nothing, an older build in the cache goes on being used.
set -euo pipefail

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shoal
sources=golang-k8s-apiextensions-apiserver-dev
# of other parts of the libraries that this program needs: large, and not one of their packages is imported
left_out='cloudflare-circl|google-api|aws-aws-sdk|google-cloud|golang-x-tools$|mongodb|pierrec-lz4|gonum|nats-io|go-git|x-image'

say() { echo "build.sh: $*" >&2; }
die() {
    say "$*"
    exit 1
}

newest() { find "$cache" -maxdepth 1 -name 'apiextensions-[0-9]*' | sort -V | tail -n 1; }

run() { # COMMAND...: its output goes to the log
    "$@" >>"$tree/log" 2>&1 </dev/null || {
        tail -n 20 "$tree/log" >&2
        die "failed: $*"
    }
}

apt() { # TOOL ARG...: with lists of its own, and as if no package were installed
    local tool=$1
    shift
    "$tool" -o "Dir::Etc::SourceList=$tree/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$tree/lists" \
        -o "Dir::State::status=$tree/status" -o "Dir::Cache=$tree/cache" -o APT::Sandbox::User= -o APT::Install-Recommends=0 \
        -qq "$@"
}

fetch() {
    local names package
    mkdir -p "$tree/lists/partial" "$tree/cache/archives/partial" "$tree/packages" "$tree/root"
    : >"$tree/status"
    echo "deb [signed-by=$keyring] $mirror sid main" >"$tree/sources.list"
    say "fetching Go and the sources from $mirror"
    run apt apt-get update
    # Go's own packages: of the two of a version one has the programs and one the library
    mapfile -t names < <(apt apt-get --simulate install $sources golang-go 2>>"$tree/log" |
        sed -nE 's/^Inst (golang-[^ ]*|gogoproto[^ ]*) .*/\1/p' | grep -vE "$left_out")
    [ "${#names[@]}" -gt 0 ] || die "Debian unstable cannot install $sources now: try again later"
    (cd "$tree/packages" && run apt apt-get download "${names[@]}" kubectl)
    for package in "$tree"/packages/*.deb; do
        run dpkg-deb -x "$package" "$tree/root"
    done
}

# As part of kube-apiserver it leaves /apis and the schema of OpenAPI 2 to others: alone it has to tell them itself, as
# kubectl asks for both.
prepare() {
    local at=$1
    sed -i 's/GenericConfig\.EnableDiscovery = false/GenericConfig.EnableDiscovery = true/' "$at/pkg/apiserver/apiserver.go"
    sed -i 's/^\tserverConfig\.OpenAPIV3Config = genericapiserver\.DefaultOpenAPIV3Config(\(.*\))$/&\n\tserverConfig.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(\1)/' \
        "$at/pkg/cmd/server/options/options.go"
    if ! grep -q 'EnableDiscovery = true' "$at/pkg/apiserver/apiserver.go" ||
        ! grep -q 'serverConfig\.OpenAPIConfig = ' "$at/pkg/cmd/server/options/options.go"; then
        die "the sources have changed: look at prepare() in this script"
    fi
}

build() {
    local at=$tree/root/usr/share/gocode/src/k8s.io/apiextensions-apiserver go
    go=$(find "$tree/root/usr/lib" -maxdepth 1 -name 'go-*' | sort -V | tail -n 1)
    prepare "$at"
    say "building apiextensions-apiserver (about 3 minutes on 2 cores)"
    mkdir -p "$tree/bin" "$tree/tmp"
    cd "$at"
    run env -u GOFLAGS GOROOT="$go" GOPATH="$tree/root/usr/share/gocode" GOCACHE="$tree/gocache" TMPDIR="$tree/tmp" \
        GO111MODULE=off GOTOOLCHAIN=local CGO_ENABLED=0 "$go/bin/go" build -trimpath -ldflags '-s -w' -o "$tree/bin/" .
    mv "$tree/root/usr/bin/kubectl" "$tree/bin/"
}

clean_up() { rm -rf "$tree"; }

mkdir -p "$cache"
built=$(newest)
if [ -n "$built" ]; then
    echo "$built"
    exit
fi
for tool in apt-get dpkg-deb flock "$keyring"; do
    [ -e "$tool" ] || command -v "$tool" >/dev/null || die "$tool is not here: run 'make cluster-deps'"
done
exec 9>"$cache/newer.lock"
flock --nonblock 9 || {
    say "waiting for another run that builds it"
    flock 9
}
built=$(newest)
if [ -z "$built" ]; then
    rm -rf "$cache"/newer-tree.* # of a run that was killed
    tree=$(mktemp -d "$cache/newer-tree.XXXXXX")
    trap clean_up EXIT
    trap 'exit 1' HUP INT TERM
    fetch
    build
    built=$cache/apiextensions-$(basename "$tree"/packages/${sources}_*.deb | cut -d_ -f2)
    mv "$tree/bin" "$built"
    say "it is in $built ($(du -sh "$built" | cut -f1), $SECONDS s)"
fi
echo "$built"
