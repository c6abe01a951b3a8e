#!/bin/bash
# Prints the folder that has promtool, which reads the metrics pages as Prometheus does, prometheus itself and
# prometheus-alertmanager: from PATH, else from the cache, else taken out of Debian 13's packages into the cache. Nothing is
# installed: the packages would start servers. What happens is said on stderr.
#
# They must know kubernetes_sd_configs, as deploy/monitoring/prometheus.yaml has them. Debian 12's are built without; those of
# Debian 13 are built with it, and run here, too (libc6 of 2.34 and newer).
set -euo pipefail

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=${XDG_CACHE_HOME:-$HOME/.cache}/shoal/prometheus-13

knows_pods() { # FOLDER: it has all three, and finds pods by asking an API server
    [ -x "$1/promtool" ] && [ -x "$1/prometheus" ] && [ -x "$1/prometheus-alertmanager" ] &&
        "$1/promtool" check config /dev/stdin <<<'scrape_configs: [{job_name: pods, kubernetes_sd_configs: [{role: pod}]}]' >/dev/null 2>&1
}

apt() { # TOOL ARG...: with lists of its own, and as if no package were installed
    local tool=$1
    shift
    "$tool" -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$work/lists" \
        -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User= -o APT::Default-Release= -qq "$@" >&2
}

if found=$(command -v promtool) && knows_pods "${found%/*}"; then
    dirname "$found"
    exit 0
fi
if ! knows_pods "$cache"; then
    echo "promtool.sh: taking Prometheus and Alertmanager out of Debian 13's packages" >&2
    mkdir -p "${cache%/*}"
    work=$(mktemp -d "$cache.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/files"
    : >"$work/status"
    echo "deb [signed-by=$keyring] $mirror trixie main" >"$work/sources.list"
    cd "$work"
    { apt apt-get update && apt apt-get download promtool prometheus prometheus-alertmanager; } || {
        echo "promtool.sh: cannot get them from $mirror: set DEBIAN_MIRROR to another mirror, or put promtool, prometheus and" \
            "prometheus-alertmanager of Debian 13 into one folder of the PATH" >&2
        exit 1
    }
    for package in *.deb; do
        dpkg-deb -x "$package" files
    done
    mkdir -p "$cache"
    mv files/usr/bin/{promtool,prometheus,prometheus-alertmanager} "$cache/"
fi
echo "$cache"
