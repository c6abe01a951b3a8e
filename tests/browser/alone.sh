# shellcheck shell=bash
# Sourced first by what leads a browser: runs the script again in a network of its own, where nothing but its loopback can be
# reached, and then what tests have (tests/tap.sh).
alone=(unshare --net)
[ "$(id -u)" -eq 0 ] || alone+=(--map-root-user)
if [ "${1:-}" != inside ] && "${alone[@]}" true >/dev/null 2>&1; then
    exec "${alone[@]}" "$0" inside
fi
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
[ "${1:-}" != inside ] || ip link set lo up
export PYTHONDONTWRITEBYTECODE=1
few_images
