#!/bin/bash
# Samples/s of the same training in PyTorch (FSDP and DDP on the CPU, gloo), and the ratio to ours.
#   tests/bench/bench_torch.sh [OURS]
# OURS holds our figures, one a line: `shoal STRATEGY RANKS SAMPLES_PER_S`; without such a file only PyTorch's are
# printed. They are left in build/bench/torch.txt in the same form. PyTorch is installed from PyPI into
# build/torch-venv the first time (7 GB: its wheel does not load without the CUDA libraries, even on the CPU).
set -eu
cd "$(dirname "$0")/../.."
venv=build/torch-venv
ours=${1:-build/bench/shoal.txt}
peers=build/bench/torch.txt

install_torch() {
    "$venv/bin/python" -c 'import torch' 2>/dev/null && return
    python3 -c 'import ensurepip' 2>/dev/null || {
        echo "bench-torch: python3-venv is missing: apt-get install python3-venv" >&2
        exit 1
    }
    echo "bench-torch: installing PyTorch into $venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check numpy==2.4.6 torch==2.9.1
}

run_torch() { # RANKS THREADS STRATEGY...: prints `torch STRATEGY RANKS SAMPLES_PER_S`, the median of three rounds
    local ranks=$1 threads=$2 log
    shift 2
    log=$(mktemp)
    if ! OMP_NUM_THREADS=$threads "$venv/bin/python" -W ignore tests/bench/torch/fsdp_mnist.py \
        --ranks "$ranks" --threads "$threads" "$@" >"$log" 2>&1; then
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
        { rate[$1, $3, $2] = $4; row[$3 " " $2] }
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

install_torch
mkdir -p build/bench
{
    run_torch 4 1 ddp no_shard shard_grad_op full_shard full_shard_wrapped hybrid_shard hybrid_shard_zero2
    run_torch 1 2 plain ddp no_shard
} >"$peers"
if [ -e "$ours" ]; then
    print_ratios "$ours" "$peers"
else
    cat "$peers"
fi
