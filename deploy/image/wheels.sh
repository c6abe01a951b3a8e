#!/bin/bash
# NVIDIA's libraries from PyPI's wheels, for the agent's image. NVIDIA_WHEELS (nvidia.txt) names them, by version and hash.
#   wheels.sh fetch FOLDER          downloads what FOLDER lacks, by pip, and checks the hash of each
#   wheels.sh unpack FOLDER ROOT    puts the libraries that are named into ROOT/usr/lib/shoal/cuda and the licence of each wheel into
#                                   ROOT/usr/share/doc/NAME; nothing else of a wheel. Prints "NAME TAB VERSION TAB SHA256" of each
set -euo pipefail
table=${NVIDIA_WHEELS:-$(dirname "$0")/nvidia.txt}
die() { echo "wheels.sh: $*" >&2; exit 1; }

rows() { sed -n 's/^\([a-z0-9-]*\)==\([^ ]*\) --hash=sha256:\([0-9a-f]*\) # \(.*\)$/\1 \2 \3 \4/p' "$table"; } # NAME VERSION HASH FILE...
wheel_of() { compgen -G "$1/${2//-/_}-$3-*.whl" || true; } # FOLDER NAME VERSION

# A file of that name with other bytes is told as such, not fetched again in silence.
check() { # FOLDER NAME VERSION HASH: prints the wheel's path
    local wheel found
    wheel=$(wheel_of "$1" "$2" "$3")
    [ -f "$wheel" ] || die "$1 has no wheel of $2 $3: deploy/image/wheels.sh fetch $1"
    found=$(sha256sum <"$wheel")
    [ "${found%% *}" = "$4" ] || die "$wheel has the hash ${found%% *}, not $4: remove it"
    echo "$wheel"
}

fetch() { # FOLDER
    local name version hash lacks=
    mkdir -p "$1"
    while read -r name version hash _; do
        [ -n "$(wheel_of "$1" "$name" "$version")" ] || lacks+=" $name"
    done < <(rows)
    if [ -n "$lacks" ]; then
        python3 -m pip --version >/dev/null 2>&1 || die "pip is not here to fetch$lacks: install python3-pip"
        echo "wheels.sh: fetching$lacks into $1"
        # beside it first: a download that is cut short leaves nothing that looks whole
        mkdir -p "$1/part"
        python3 -m pip download --quiet --disable-pip-version-check --no-cache-dir --no-deps --only-binary :all: --require-hashes \
            --find-links "$1" --dest "$1/part" --requirement "$table" || die "they cannot be fetched"
        mv "$1"/part/*.whl "$1"
        rmdir "$1/part"
    fi
    while read -r name version hash _; do
        check "$1" "$name" "$version" "$hash" >/dev/null
    done < <(rows)
}

unpack() { # FOLDER ROOT
    local name version hash files file wheel place licences
    mkdir -p "$2/usr/lib/shoal/cuda"
    while read -r name version hash files; do
        wheel=$(check "$1" "$name" "$version" "$hash")
        mkdir -p "$2/usr/share/doc/$name"
        for file in $files; do
            place=$(unzip -Z1 "$wheel" "*/lib/$file") || die "$wheel has no $file"
            unzip -p "$wheel" "$place" >"$2/usr/lib/shoal/cuda/$file"
            chmod 755 "$2/usr/lib/shoal/cuda/$file"
        done
        licences=$(unzip -Z1 "$wheel" '*.dist-info/*[Ll][Ii][Cc][Ee][Nn][SsCc][Ee]*[!/]') || die "$wheel has no licence"
        while read -r place; do
            unzip -p "$wheel" "$place" >"$2/usr/share/doc/$name/${place##*/}"
        done <<<"$licences"
        printf '%s\t%s\t%s\n' "$name" "$version" "$hash"
    done < <(rows)
}

case $#-${1:-} in
2-fetch) fetch "$2" ;;
3-unpack) unpack "$2" "$3" ;;
*) echo "usage: deploy/image/wheels.sh fetch FOLDER | unpack FOLDER ROOT" >&2 && exit 2 ;;
esac
