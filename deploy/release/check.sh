#!/bin/sh
# Whether VERSION can be released from this checkout; says what is missing.
#   check.sh VERSION
set -eu
version=$1
cannot() {
    echo "make release: $1" >&2
    exit 1
}
[ -z "$(git status --porcelain)" ] || cannot "the checkout has changes: commit them"
git rev-parse -q --verify "refs/tags/v$version" >/dev/null &&
    cannot "tag v$version exists: write the next version (deploy/release/set.sh VERSION)"
newest=$(sed -n 's/^## //p' CHANGELOG.md | head -n 1)
case $newest in
"$version") cannot "CHANGELOG.md: write '## $version (DATE)' above its changes" ;;
"$version (not released)") cannot "CHANGELOG.md says that $version is not released: write its date" ;;
"$version ("*) ;;
*) cannot "the newest section of CHANGELOG.md is '$newest', not '$version (DATE)'" ;;
esac
