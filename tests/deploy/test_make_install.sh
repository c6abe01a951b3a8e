#!/bin/bash
# `make install`, `make uninstall`, `make dist` and what `make release` refuses.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL
chmod 755 "$work"
root=$work/root tree=$work/tree
installed=$root/opt/shoal
version=$(sed -n 's/^#define SHOAL_VERSION "\(.*\)"/\1/p' base/contract.h)
quiet_make() { make --no-print-directory NVCC= "$@"; }

mkdir -p "$root/opt/shoal/share/man/man1" && echo other >"$root/opt/shoal/share/man/man1/other.1"
check "make install" quiet_make install DESTDIR="$root" PREFIX=/opt/shoal
for program in shoal shoal-agent shoal-operator; do
    check "$program is there, with its page" test -x "$installed/bin/$program" -a -s "$installed/share/man/man1/$program.1"
done
check "shoal is kubectl's plugin, too" test "$(readlink "$installed/bin/kubectl-shoal")" = shoal
check "the pages are there" test -s "$installed/share/doc/shoal/docs/pytorchjob.md" -a -s "$installed/share/doc/shoal/LICENSE"

# outside NAME...: as another user, in a namespace where an empty folder is mounted over this checkout
here=$PWD
cat >"$work/outside" <<'END'
mount -t tmpfs none "$1" && shift && cd / && exec setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH="$PATH" HOME=/tmp "$@"
END
if unshare -m true 2>/dev/null; then
    outside() { PATH=$installed/bin:/usr/bin:/bin unshare -m sh "$work/outside" "$here" "$@"; }
else # an ordinary user, who has no namespaces: only from elsewhere
    outside() { (cd / && env -i PATH="$installed/bin:/usr/bin:/bin" HOME="$work" "$@"); }
fi
says() { outside "$@" 2>&1 | tee "$work/said" && grep -qF "$version" "$work/said"; }
for program in shoal shoal-agent shoal-operator; do
    check "$program runs without the checkout" says "$program" --version
done
check "and so does the plugin" says kubectl-shoal --version
cat >"$work/job.yaml" <<'END'
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: hello}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      template:
        spec:
          containers:
            - {name: pytorch, image: shoal-agent, command: [shoal-agent, --version]}
END
mkdir -m 1777 "$work/logs"
check "shoal run starts the installed agent" fails 0 "shoal-agent $version" \
    outside shoal run -f "$work/job.yaml" --log-dir "$work/logs" --progress never

# ---- man pages: each option of --help, and nothing that groff or man warns of
options_of() { "$installed/bin/$1" "${@:2}" --help | grep -oE '^ +(-[a-z], )?--[a-z0-9._-]+' | grep -oE -e '--.*' | sort -u; }
page_has_all() { # PROGRAM [COMMAND]
    options_of "$@" >"$work/options" && [ -s "$work/options" ] || return
    sed 's/\\-/-/g' "$installed/share/man/man1/$1.1" | grep -oE '^\.B .*' | grep -oE -e '--[a-z0-9._-]+' | sort -u >"$work/in_page"
    [ -z "$(comm -23 "$work/options" "$work/in_page" | tee /dev/stderr)" ]
}
no_warnings() { [ -z "$(man --warnings -E UTF-8 -l -Tutf8 -Z "$1" 2>&1 >/dev/null | tee /dev/stderr)" ]; }
for program in shoal shoal-agent shoal-operator; do
    check "man has nothing to say of $program(1)" no_warnings "$installed/share/man/man1/$program.1"
done
check "shoal-operator(1) has each option" page_has_all shoal-operator
check "shoal-agent(1) has each key" page_has_all shoal-agent
commands=$("$installed/bin/shoal" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
for name in $commands; do
    check "shoal(1) has each option of $name" page_has_all shoal "$name"
done

check "make uninstall" quiet_make uninstall DESTDIR="$root" PREFIX=/opt/shoal
left() { diff <(cd "$root" && find . -type f) <(echo ./opt/shoal/share/man/man1/other.1); }
check "... leaves what it did not install, and nothing else" left

# ---- the archive
if [ -e .git ]; then
    check "make dist" quiet_make dist
    cp "build/shoal-$version.tar.gz" "$work/first.tar.gz"
    check "... again" quiet_make dist
    check "... gives the same bytes" cmp "build/shoal-$version.tar.gz" "$work/first.tar.gz"
    tar -xzf "$work/first.tar.gz" -C "$work"
    holds_tracked_files() { diff <(git ls-tree -r --name-only HEAD | sort) <(cd "$work/shoal-$version" && find . ! -type d | sed 's#^\./##' | sort); }
    check "it holds what is committed" holds_tracked_files
    check "it plans a build without git" env GIT_DIR=/nonexistent make --no-print-directory -n -C "$work/shoal-$version" V=release NVCC= programs
    # one room for all: what is compiled does not depend on where
    check "... and builds in a clean folder" env GIT_DIR=/nonexistent make --no-print-directory -j2 -C "$work/shoal-$version" V=debug NVCC= \
        build/debug/shoal-operator

    # ---- what a release needs, in a copy of the last commit
    git clone -q --depth 1 "file://$PWD" "$tree" 2>/dev/null
    release() { (cd "$tree" && deploy/release/check.sh "$1"); }
    section() { # VERSION LINE: a checkout of that version whose newest changes have this heading
        git -C "$tree" reset -q --hard && (cd "$tree" && deploy/release/set.sh "$1" && sed -i "0,/^## .*/s//## $2/" CHANGELOG.md) &&
            git -C "$tree" -c user.name=t -c user.email=t@example.org commit -qam "release $1"
    }
    section 7.8.9 "7.8.9 (not released)"
    check "changes that are not released" fails 1 "says that 7.8.9 is not released: write its date" release 7.8.9
    section 7.8.10 "7.8.9 (2026-11-23)"
    check "changes of another version" fails 1 "is '7.8.9 (2026-11-23)', not '7.8.10 (DATE)'" release 7.8.10
    section 7.8.11 "7.8.11 (2026-11-23)"
    check "all is there" release 7.8.11
    follows() { answers_no git -C "$tree" grep -nF "shoal-agent:$version" -- deploy kustomize && git -C "$tree" grep -qF 'appVersion: 7.8.11' -- charts; }
    check "images and the chart follow the version" follows
    git -C "$tree" -c user.name=t -c user.email=t@example.org tag -a v7.8.11 -m x
    check "a version twice" fails 1 "tag v7.8.11 exists" release 7.8.11
    echo x >>"$tree/README.md"
    check "a checkout with changes" fails 1 "the checkout has changes" release 7.8.11
    check "a version that is none" fails 2 "'7.8' is not MAJOR.MINOR.PATCH" "$tree/deploy/release/set.sh" 7.8
fi
tap_done
