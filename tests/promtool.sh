#!/bin/bash
# Prints the folder that has promtool, which reads the metrics pages as Prometheus does, and prometheus itself: from PATH,
# else from the cache, else taken out of Debian's package prometheus into the cache. The package itself is not installed: it
# would start a server. What happens is said on stderr.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/shoal/prometheus

if found=$(command -v promtool) && [ -x "${found%/*}/prometheus" ]; then
    dirname "$found"
    exit 0
fi
if [ ! -x "$cache/usr/bin/promtool" ] || [ ! -x "$cache/usr/bin/prometheus" ]; then
    echo "promtool.sh: taking promtool and prometheus out of Debian's package prometheus" >&2
    mkdir -p "$cache"
    work=$(mktemp -d "$cache/get.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    chmod 755 "$work"
    (cd "$work" && apt-get -o APT::Sandbox::User="$(id -un)" download -qq prometheus >&2 && dpkg-deb -x prometheus_*.deb files)
    mkdir -p "$cache/usr/bin"
    mv "$work/files/usr/bin/promtool" "$work/files/usr/bin/prometheus" "$cache/usr/bin/"
fi
echo "$cache/usr/bin"
