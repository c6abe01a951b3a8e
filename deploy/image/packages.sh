#!/bin/bash
# packages.sh ROOT NAME VERSION LIST [WHEELS]: says whose files lie in the root tree of an image, for those that look for known
# weaknesses. Of each Debian package that a file of ROOT comes from (LIST: a line "PATH" each, as on this machine)
#   - the newest version that Debian offers, security updates among them, takes the place of what this machine has. No
#     package of the machine is changed. Where Debian cannot be asked that is reported, and the machine's own is taken;
#   - ROOT/var/lib/dpkg/status.d/PACKAGE has its record, where scanners of images look;
#   - ROOT/usr/share/sbom/NAME.spdx.json names it, with the program itself, in SPDX 2.3.
# WHEELS has a line "NAME TAB VERSION TAB SHA256" of each wheel whose libraries are in it: the document names those, too.
# All versions are printed on the standard output.
set -euo pipefail

root=$1 name=$2 version=$3 list=$4 wheels=${5:-/dev/null}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=${PACKAGES_CACHE:-build/image/apt} # Debian's lists are fetched once, and then asked whether they have changed
mkdir -p "$cache/lists/partial" "$cache/archives/partial" "$root/var/lib/dpkg/status.d" "$root/usr/share/sbom"
root=$(realpath "$root") cache=$(realpath "$cache")

apt() { # TOOL ARG...: with lists of its own
    "$1" -o "Dir::State::Lists=$cache/lists" -o "Dir::Cache=$cache" -o APT::Sandbox::User= -o Acquire::Retries=1 \
        -o Acquire::http::Timeout=20 -qq "${@:2}"
}
# PACKAGE TAB PATH of each file; dpkg may know a file by its path of before /usr was merged. The bundle of certificates is
# made on this machine, of its package and of what the machine's owner trusts besides.
while read -r path; do
    printf '%s\t%s\n' "$path" "$path" "${path#/usr}" "$path" "/usr$path" "$path" "$(realpath "$path")" "$path"
done <"$list" >"$work/names"
{ cut -f1 "$work/names" | sort -u | xargs dpkg-query -S 2>/dev/null || true; } | sed 's/^\([^:,]*\).* \(\/.*\)$/\2\t\1/' >"$work/owners"
awk -F '\t' 'FILENAME == ARGV[1] { owner[$1] = $2; next } $1 in owner { print owner[$1] "\t" $2 } $1 ~ /ca-certificates.crt$/ { print "ca-certificates\t" $2 }' \
    "$work/owners" "$work/names" | sort -u >"$work/files"
if cut -f2 "$work/files" | sort -u | comm -13 - <(sort -u "$list") | grep . >"$work/strange"; then
    echo "packages.sh: of no Debian package: $(xargs <"$work/strange")" >&2
    exit 1
fi
packages=$(cut -f1 "$work/files" | sort -u)

can_ask=1
[ "$packages" != ca-certificates ] || can_ask= # a program without libraries
[ -z "$can_ask" ] || (flock 9 && apt apt-get update >"$work/log" 2>&1 && ! grep -q '^[WE]:' "$work/log") 9>"$cache/lock" || {
    can_ask=
    echo "packages.sh: Debian cannot be asked for updates; what this machine has is taken ($(tail -n 1 "$work/log"))" >&2
}

# NAME TAB VERSION of all that Debian offers, asked for at once: apt reads all its lists each time
# shellcheck disable=SC2086 # a list of names
[ -z "$can_ask" ] || apt apt-cache show --no-all-versions $packages | awk '/^Package: / { name = $2 } /^Version: / { print name "\t" $2 }' >"$work/offered"
touch "$work/offered"

take() { # PACKAGE: the files of the one that was fetched in the place of this machine's; fails if none was
    local deb path from
    deb=$(echo "$1"_*.deb)
    [ -e "$deb" ] || return
    mkdir "$1.d" && dpkg-deb -x "$deb" "$1.d" && dpkg-deb -f "$deb" >"$record/$1" || return
    awk -F '\t' -v package="$1" '$1 == package { print $2 }' files | while read -r path; do
        for from in "$1.d$path" "$1.d${path#/usr}" "$1.d/usr$path"; do
            [ ! -e "$from" ] || { install -m "$(stat -c %a "$root$path")" "$(realpath "$from")" "$root$path" && break; }
        done
    done
}
record=$root/var/lib/dpkg/status.d
architecture=$(dpkg --print-architecture)
here=$PWD
cd "$work"
declare -A offered installed
while IFS=$'\t' read -r package version_there; do offered[$package]=$version_there; done <offered
# shellcheck disable=SC2086 # a list of names; of a library of two architectures the versions are the same
while IFS=$'\t' read -r package version_here; do installed[$package]=$version_here; done < <(dpkg-query -W -f '${Package}\t${Version}\n' $packages)
newer=()
for package in $packages; do
    [ -z "${offered[$package]-}" ] || [ "$package" = ca-certificates ] || ! dpkg --compare-versions "${offered[$package]}" gt "${installed[$package]}" ||
        newer+=("$package=${offered[$package]}")
done
# at once, as apt reads all its lists each time
[ ${#newer[@]} -eq 0 ] || apt apt-get download "${newer[@]}" 2>>"$work/log" ||
    echo "packages.sh: not all newer packages came; of the others what this machine has is taken ($(tail -n 1 "$work/log"))" >&2
for package in $packages; do
    if take "$package"; then
        echo "$package ${offered[$package]} (this machine has ${installed[$package]})"
        continue
    fi
    # a library of two architectures has a record for each
    { dpkg-query -s "$package:$architecture" 2>/dev/null || dpkg-query -s "$package"; } |
        sed '/^Conffiles:/,/^[^ ]/{/^Conffiles:/d; /^ /d}; /^Status:/d' >"$record/$package"
    echo "$package ${installed[$package]}"
done
cd "$here"
sed 's/\t[^\t]*$//; s/\t/ /' "$wheels"
field() { sed -n "s/^$2: //p" "$record/$1"; }
for package in $packages; do
    source=$(field "$package" Source)
    printf '%s\t%s\t%s\t%s\t%s\n' "$package" "$(field "$package" Version)" "$(field "$package" Architecture)" "${source:-$package}" \
        "$(field "$package" Maintainer)"
done >"$work/table"
cp /usr/lib/os-release "$root/etc/os-release"

# The time of a document is that of the commit, so that the same tree makes the same image.
created=$(date -u -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}" +%Y-%m-%dT%H:%M:%SZ)
distribution=$(sed -n 's/^VERSION_ID="\(.*\)"/debian-\1/p' /usr/lib/os-release)
jq --raw-input --slurp --arg name "$name" --arg version "$version" --arg created "$created" --arg distribution "$distribution" \
        --rawfile wheels "$wheels" \
        --arg sum "$(cat "$record"/* "$wheels" | sha256sum | cut -c 1-32)" '
    def package($name; $version): {SPDXID: ("SPDXRef-" + ($name | gsub("[^A-Za-z0-9.-]"; "-"))), name: $name, versionInfo: $version,
        downloadLocation: "NOASSERTION", filesAnalyzed: false, licenseConcluded: "NOASSERTION", copyrightText: "NOASSERTION"};
    def rows: [split("\n")[] | select(. != "") | split("\t")];
    rows as $debian | ($wheels | rows) as $pypi |
    {spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", name: "\($name)-\($version)",
        documentNamespace: "https://spdx.org/spdxdocs/\($name)-\($version)-\($sum)",
        creationInfo: {created: $created, creators: ["Tool: shoal-deploy/image/packages.sh"]},
        packages: ([package($name; $version) + {licenseDeclared: "Apache-2.0", primaryPackagePurpose: "APPLICATION"}] + [$debian[] |
            package(.[0]; .[1]) + {licenseDeclared: "NOASSERTION", supplier: "Organization: \(.[4])", sourceInfo: "built from: \(.[3])",
                externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl",
                    referenceLocator: "pkg:deb/debian/\(.[0])@\(.[1] | @uri)?arch=\(.[2])&distro=\($distribution)"}]}] + [$pypi[] |
            package(.[0]; .[1]) + {licenseDeclared: "NOASSERTION", supplier: "Organization: NVIDIA", checksums: [{algorithm: "SHA256", checksumValue: .[2]}],
                externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator: "pkg:pypi/\(.[0])@\(.[1])"}]}]),
        relationships: ([{spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES", relatedSpdxElement: package($name; $version).SPDXID}] +
            [($debian + $pypi)[] | {spdxElementId: package($name; $version).SPDXID, relationshipType: "CONTAINS", relatedSpdxElement: package(.[0]; .[1]).SPDXID}])}
    ' <"$work/table" >"$root/usr/share/sbom/$name.spdx.json"
