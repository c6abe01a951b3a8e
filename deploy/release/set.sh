#!/bin/sh
# Makes VERSION the version: base/contract.h has it, and what names images by it follows.
#   set.sh VERSION
set -eu
cd "$(dirname "$0")/../.."
version=$1
case $version in
*[!0-9.]* | '' | *.*.*.*) echo "set.sh: '$version' is not MAJOR.MINOR.PATCH" >&2 && exit 2 ;;
*.*.*) ;;
*) echo "set.sh: '$version' is not MAJOR.MINOR.PATCH" >&2 && exit 2 ;;
esac
old=$(sed -n 's/^#define SHOAL_VERSION "\(.*\)"/\1/p' base/contract.h | sed 's/\./\\./g')
sed -i "s/^\(#define SHOAL_VERSION \)\".*\"/\1\"$version\"/" base/contract.h
sed -i "s/^\(version\|appVersion\): $old/\1: $version/" charts/shoal/Chart.yaml
grep -rlE "shoal-(agent|operator)[: ]$old|newTag: $old" deploy kustomize docs --include='*.yaml' --include='*.md' |
    xargs sed -i "s/\(shoal-\(agent\|operator\)[: ]\|newTag: \)$old/\1$version/g"
