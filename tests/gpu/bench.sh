#!/bin/bash
# What a GPU makes of our kernels, against the least time their bytes and multiplications need, and of whole training
# steps: MNIST's network, T5-small (512 and 128 tokens) at a batch of 4 and of 64, BERT-base's masked LM at 32 x 128,
# GPT-2 124M at 1024 tokens, Llama-3.2-1B at 8192 (as published, and with the document's vocabulary and heads), a model of
# 1.5B parameters at 16 x 1024, each beside PyTorch where it can be imported (T5 and BERT: and transformers); MNIST and T5
# at 4 also as CUDA graphs (their rows end in -graphs). Beside what was measured stands what `shoal plan --device` predicts
# for such a GPU.
#   tests/gpu/bench.sh [--dry_run]     --dry_run: prints what it would run, and the predictions for an H100
# BUILD: where the programs are (build/release); PYTHON: whose PyTorch is the peer (python3); OUT: where logs,
# results (gpu.txt) and data go (build/bench). Without a GPU it says so and is done. Takes less than 8 minutes.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build/release}
out=${OUT:-build/bench}
dry='' device='no GPU' gpu=h100 name=bench-gpu
until_s=${BENCH_UNTIL_S:-460} # for all; what is left when it is over is left out
case $* in
'') [ -x "$build/tests/gpu/gpu" ] || { echo "bench-gpu: there are no programs in $build: make bench-gpu builds them" >&2 && exit 2; } ;;
--dry_run) dry=1 ;;
*) echo "bench-gpu: \"$*\" is not understood: --dry_run or nothing is" >&2 && exit 2 ;;
esac
# shellcheck source=tests/gpu/steps.sh
. tests/gpu/steps.sh

kernels() { # PEAKS: of three numbers, or none
    local bf16='' fp32='' bytes=''
    [ -z "$1" ] || read -r bf16 fp32 bytes <<<"$1"
    # shellcheck disable=SC2086 # no peaks, no arguments
    run kernels-mnist.log 60 "$build/tests/bench/ops_bench" cuda 1 $fp32 $bytes || failed=1
    # shellcheck disable=SC2086
    run kernels-language.log 120 "$build/tests/bench/language_bench" cuda 1 $bf16 $bytes || failed=1
    # shellcheck disable=SC2086
    run kernels-head.log 60 "$build/tests/bench/head_bench" cuda 1 $bf16 $bytes || failed=1
    run kernels-attention.log 60 "$build/tests/bench/attention_bench" cuda || failed=1
    [ "$dry" ] || cat "$out"/kernels-{mnist,language,head,attention}.log
}

steps() {
    mnist mnist
    mnist mnist-graphs --cuda_graphs
    t5 t5 4 100
    t5 t5-graphs 4 100 --cuda_graphs
    t5 t5-64 64 40
    bert
    gpt2 gpt2
    llama llama
    llama llama-document --num_key_value_heads 2 --vocab_size 50432 --tie_word_embeddings false
    llama_1_5b
    # what comes last may be left out
    theirs gpt2 16 1024 40
    theirs llama 1 8192 20
    theirs llama-1.5b 16 1024 10
    theirs mnist 64 0 1000
    theirs llama-document 1 8192 20
    theirs t5 4 512 100 --targets 128
    theirs t5-64 64 512 40 --targets 128
    theirs bert 32 128 100
}

print_table() {
    printf '%-16s %14s %14s %8s %14s %14s %8s %8s   %s\n' model shoal predicted ratio 'torch eager' 'torch compile' ratio ratio unit
    awk '
        { rate[$2, $3] = $4; if (!seen[$2]++) order[++count] = $2 }
        BEGIN {
            tokens["t5"] = tokens["t5-graphs"] = tokens["t5-64"] = 640; tokens["bert"] = 128; tokens["gpt2"] = tokens["llama-1.5b"] = 1024
            tokens["llama"] = tokens["llama-document"] = 8192
        }
        function cell(x) { return x ? sprintf("%.0f", x) : "-" }
        function ratio(a, b) { return a && b ? sprintf("%.2f", a / b) : "-" }
        END {
            for (i = 1; i <= count; i++) {
                model = order[i]
                each = tokens[model] ? tokens[model] : 1
                s = each * rate[model, "shoal"]; p = each * rate[model, "predicted"]; e = each * rate[model, "eager"]; c = each * rate[model, "fsdp2_compile"]
                printf "%-16s %14s %14s %8s %14s %14s %8s %8s   %s\n", model, cell(s), cell(p), ratio(s, p), cell(e), cell(c),
                       ratio(s, e), ratio(s, c), (each > 1 ? "tokens/s" : "samples/s")
            }
        }' "$out/gpu.txt"
    local log
    for log in "$out"/shoal-*.log; do # the last line of each that tells it
        grep -H 'MFU' "$log" | tail -n 1 | sed 's|.*/shoal-\(.*\).log:|\1: |'
    done
}

mkdir -p "$out"
if [ -z "$dry" ]; then
    find_gpu
    rm -f "$out/gpu.txt" "$out"/shoal-*.log "$out"/torch-*.log
    : >"$out/gpu.txt"
    echo "$device, $(date -u +%Y-%m-%d)"
    find_torch
fi
export PREDICT_FOR=$gpu
find_perl
make_ids
make_images
make_rows
kernels "$(peaks_of "$device")"
steps
[ "$dry" ] || print_table
exit "$failed"
