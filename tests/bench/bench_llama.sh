#!/bin/bash
# Tokens per second and peak memory of a 25M-parameter Llama at sequence 512, batch 4 per rank: whole steps with
# AdamW and clipping, fp32 and bf16, at 1 and 2 ranks, on this machine.
#   tests/bench/bench_llama.sh [torch]    torch: also the same in transformers and PyTorch, and the ratios
# The best of RUNS (default 3) runs counts. With torch, ours and theirs take turns, so that a disturbance meets both.
set -eu
cd "$(dirname "$0")/../.."
runs=${RUNS:-3}
agent=$PWD/build/release/shoal-agent
out=build/bench
venv=build/torch-venv
tokens=512
mkdir -p "$out"
: >"$out/llama.txt"

make_data() { # random ids: what they are does not matter for the speed
    [ -e "$out/random.bin" ] || python3 - "$out/random.bin" <<'PYTHON'
import random, struct, sys
count = 512 * 200 + 1
header = struct.pack("<256i", 20240520, 1, count, *[0] * 253)
with open(sys.argv[1], "wb") as file:
    file.write(header + struct.pack(f"<{count}H", *(random.randrange(32000) for _ in range(count))))
PYTHON
}

ours() { # RANKS PRECISION
    local log=$out/llama-$1-$2.log precision=no
    [ "$2" = fp32 ] || precision=bf16
    python3 tests/bench/peak.py "$agent" --model_type llama --hidden_size 384 --num_hidden_layers 8 \
        --num_attention_heads 6 --num_key_value_heads 2 --intermediate_size 1024 --vocab_size 32000 \
        --max_position_embeddings $tokens --tie_word_embeddings true --dataset "$out/random.bin" --eval_strategy no \
        --batch_size 4 --grad_clip 1 --mixed_precision "$precision" --nproc_per_node "$1" --max_steps 16 \
        --logging.http_port 0 >"$log" 2>&1 || { tail "$log" >&2; exit 1; }
    awk -v variant="$2" -v ranks="$1" -v tokens=$tokens '
        /^Throughput:/ { rate = $2 * tokens }
        /^peak resident bytes:/ { print "shoal", variant, ranks, rate, $4 }' "$log" >>"$out/llama.txt"
}

theirs() { # RANKS PRECISION
    local variant
    for variant in "$2" "$2_compile"; do
        "$venv/bin/python" -W ignore tests/bench/torch/fsdp_llama.py --ranks "$1" --threads $((2 / $1)) --rounds 1 \
            "$variant" 2>/dev/null | sed -n "s/^torch [^ ]*/torch $2/p" >>"$out/llama.txt"
    done
}

install_torch() {
    "$venv/bin/python" -c 'import torch, transformers' 2>/dev/null && return
    echo "bench-llama: installing PyTorch and transformers into $venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --no-cache-dir --disable-pip-version-check torch==2.15.0 transformers==5.23.0
}

make_data
[ "${1:-}" != torch ] || install_torch
for _ in $(seq "$runs"); do
    for ranks in 1 2; do
        for precision in fp32 bf16; do
            ours $ranks $precision
            [ "${1:-}" != torch ] || theirs $ranks $precision
        done
    done
done
awk '
    { row[$3 " " $2] }
    $4 > rate[$1, $3, $2] { rate[$1, $3, $2] = $4; peak[$1, $3, $2] = $5 }
    function ratio(a, b) { return a && b ? sprintf("%.2f", a / b) : "-" }
    END {
        printf "%-5s %-5s %14s %16s %7s %12s %14s %7s\n", "ranks", "dtype", "shoal tokens/s", "pytorch tokens/s", "ratio",
               "shoal peak B", "pytorch peak B", "ratio"
        for (key in row) {
            split(key, part, " ")
            s = rate["shoal", part[1], part[2]]; t = rate["torch", part[1], part[2]]
            m = peak["shoal", part[1], part[2]]; n = peak["torch", part[1], part[2]]
            printf "%-5s %-5s %14.0f %16.0f %7s %12.0f %14.0f %7s\n", part[1], part[2], s, t, ratio(s, t), m, n, ratio(m, n)
        }
    }' "$out/llama.txt"
