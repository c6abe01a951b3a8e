# shellcheck shell=bash
# For black-box tests: `. tests/tap.sh`. Each check prints a TAP line; tap_done prints the plan and leaves with the
# result. $work is a directory of the test's own, removed at the end; $BUILD has the programs and is on the PATH.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
: "${BUILD:=$PWD/build/debug}"
PATH=$BUILD:$PATH
# agents of one machine share its cores: threads that wait for work are not to spin (7 times the time under ASan)
export OMP_WAIT_POLICY=passive
[ ! -e /dev/nvidia0 ] || export AGENT_RUNTIME_DEVICE=cpu # tests have more ranks than most machines have GPUs
work=$(mktemp -d)
tap_number=0
tap_failed=0
trap 'rm -rf "$work"' EXIT
. tests/wait.sh

# check NAME COMMAND...: passes if the command succeeds; its output is shown if not.
check() {
    local name=$1 output
    shift
    tap_number=$((tap_number + 1))
    if output=$("$@" 2>&1); then
        echo "ok $tap_number - $name"
    else
        echo "not ok $tap_number - $name"
        printf '%s\n' "command: $*" "$output" | sed 's/^/# /'
        tap_failed=1
    fi
}

# skip NAME REASON
skip() {
    tap_number=$((tap_number + 1))
    echo "ok $tap_number - $1 # SKIP $2"
}

# fails STATUS TEXT COMMAND...: succeeds if the command leaves with STATUS and its output has TEXT in one line.
fails() {
    local status=$1 text=$2 output got=0
    shift 2
    output=$("$@" 2>&1) || got=$?
    printf '%s\n' "$output"
    [ "$got" -eq "$status" ] || { echo "exit code $got, not $status"; return 1; }
    grep -qF -- "$text" <<<"$output" || { echo "no line has: $text"; return 1; }
}

# answers_no COMMAND...: succeeds if the command leaves with 1, the "no" of grep, diff and test. `! COMMAND` would also take
# a command that could not find out: a server that does not answer, a file that is not there (tests/lint.sh refuses it).
answers_no() {
    local got=0
    "$@" || got=$?
    [ "$got" -eq 1 ] || { echo "exit code $got, not 1: $*"; return 1; }
}

# seed: of this commit's own, for what draws from more cases than one run can try: another commit draws others, and the same
# commit the same on every machine.
seed() { echo $((16#$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1))); }

# contains FILE TEXT / lacks FILE TEXT
contains() { grep -qF -- "$2" "$1" || { echo "$1 has no: $2"; tail -n 40 "$1"; return 1; }; }
lacks() { answers_no grep -F -- "$2" "$1"; }

# free_port FROM: a port below those of connections, which nobody has.
free_port() {
    local port=$(($1 + $$ % 5000))
    while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
    echo "$port"
}
MASTER_PORT=$(free_port 24000) # of agents that are told no other: more tests, or somebody's jobs, may run beside
export MASTER_PORT

# few_images: sets $data to a folder in $work with the first 4,096 images of Fashion-MNIST's two halves. Unpacking all 60,000
# takes every rank of every run longer than what most tests train.
few_images() {
    local file
    data=$work/images
    mkdir -p "$data"
    for file in {train,t10k}-{images-idx3,labels-idx1}-ubyte.gz; do tests/first_images.sh "$file" 4096 >"$data/${file%.gz}"; done
    chmod -R a+rX "$data" # pods have users of their own
}

tap_done() {
    echo "1..$tap_number"
    exit "$tap_failed"
}
