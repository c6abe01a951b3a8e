#!/bin/bash
# Samples/s of the same training in PyTorch (FSDP and DDP on the CPU, gloo; eager and compiled, of which the better
# counts), and the ratio to ours.
#   tests/bench/bench_torch.sh [OURS]
# OURS holds our figures, one a line: `shoal STRATEGY RANKS SAMPLES_PER_S`; without such a file only PyTorch's are
# printed. They are left in build/bench/torch.txt in the same form. PyTorch is installed into build/torch-venv the first
# time. BENCH_STEPS: of each of the three rounds (30).
set -eu
cd "$(dirname "$0")/../.."
venv=build/torch-venv
ours=${1:-build/bench/shoal.txt}
peers=build/bench/torch.txt

. tests/bench/torch/install.sh

run_torch() { # RANKS THREADS STRATEGY...: prints `torch STRATEGY RANKS SAMPLES_PER_S`, the median of three rounds
    local ranks=$1 threads=$2 log
    shift 2
    log=$(mktemp)
    if ! OMP_NUM_THREADS=$threads "$venv/bin/python" -W ignore tests/bench/torch/fsdp_mnist.py \
        --ranks "$ranks" --threads "$threads" --steps "${BENCH_STEPS:-30}" "$@" >"$log" 2>&1; then
        cat "$log" >&2
        rm "$log"
        return 1
    fi
    sed -nE 's/^strategy=(\S+) ranks=(\S+) .*samples_per_s=(\S+) .*/torch \1 \2 \3/p' "$log"
    rm "$log"
}

print_ratios() { # FILE...: every strategy measured, and per number of ranks the best of ours over the best of theirs
    printf '%-5s %-40s %10s %10s %7s\n' ranks 'strategy (samples/s)' shoal pytorch ratio
    awk '
        { sub(/_compile$/, "", $2) }
        $4 > rate[$1, $3, $2] { rate[$1, $3, $2] = $4; row[$3 " " $2] }
        $4 > best[$1, $3] { best[$1, $3] = $4; name[$1, $3] = $2; ranks[$3] }
        function line(r, strategy, shoal, torch) {
            return sprintf("%-5s %-40s %10s %10s %7s", r, strategy, shoal ? shoal : "-", torch ? torch : "-",
                           shoal && torch ? sprintf("%.2f", shoal / torch) : "-")
        }
        END {
            for (key in row) {
                split(key, part, " ")
                print line(part[1], part[2], rate["shoal", part[1], part[2]], rate["torch", part[1], part[2]])
            }
            for (r in ranks)
                print line(r, "the best of each: " name["shoal", r] " / " name["torch", r],
                           best["shoal", r], best["torch", r])
        }' "$@" | sort -b -k1,1n -k2
}

install_torch "$venv"
mkdir -p build/bench
{
    run_torch 4 1 ddp no_shard shard_grad_op full_shard full_shard_wrapped hybrid_shard hybrid_shard_zero2 ddp_compile full_shard_compile
    run_torch 1 2 plain ddp no_shard plain_compile
} >"$peers"
if [ -e "$ours" ]; then
    print_ratios "$ours" "$peers"
else
    cat "$peers"
fi
