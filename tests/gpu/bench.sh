#!/bin/bash
# What a GPU makes of our kernels, against the least time their bytes and multiplications need, and of whole training
# steps: MNIST's network, T5-small (512 and 128 tokens) at a batch of 4 and of 64, BERT-base's masked LM at 32 x 128,
# GPT-2 124M at 1024 tokens, Llama-3.2-1B at 8192 (as published, and with the document's vocabulary and heads), each
# beside PyTorch where it can be imported (T5 and BERT: and transformers); MNIST and T5 at 4 also as CUDA graphs (their
# rows end in -graphs). Beside what was measured stands what `shoal plan --device` predicts for such a GPU.
#   tests/gpu/bench.sh [--dry_run]     --dry_run: prints what it would run, and the predictions for an H100
# BUILD: where the programs are (build/release); PYTHON: whose PyTorch is the peer (python3); OUT: where logs,
# results (gpu.txt) and data go (build/bench). Without a GPU it says so and is done. Takes less than 8 minutes.
set -eu
cd "$(dirname "$0")/../.."
build=${BUILD:-build/release}
export SHOAL_CUDA_LIBRARY=${SHOAL_CUDA_LIBRARY:-$(realpath -m "$build")/libshoal_cuda.so}
# a bundle's libraries are for its own programs
python=(env "LD_LIBRARY_PATH=$(tr : '\n' <<<"${LD_LIBRARY_PATH:-}" | grep -vF "$PWD/lib" | paste -sd :)" "${PYTHON:-python3}")
out=${OUT:-build/bench}
dry=
until_s=${BENCH_UNTIL_S:-460} # for all; what is left when it is over is left out
case $* in
'') [ -x "$build/tests/gpu/gpu" ] || { echo "bench-gpu: there are no programs in $build: make bench-gpu builds them" >&2 && exit 2; } ;;
--dry_run) dry=1 ;;
*) echo "bench-gpu: \"$*\" is not understood: --dry_run or nothing is" >&2 && exit 2 ;;
esac

run() { # LOG SECONDS COMMAND...
    local log=$out/$1 seconds=$2 left=$((until_s - SECONDS))
    shift 2
    [ "$seconds" -le "$left" ] || seconds=$left
    [ "$seconds" -ge 10 ] || {
        echo "bench-gpu: left out, the time is over: $*" >&2
        return 1
    }
    if [ "$dry" ]; then
        echo "timeout $seconds $*"
        return 0
    fi
    timeout --kill-after=5 "$seconds" "$@" >"$log" 2>&1 && return 0
    echo "bench-gpu: failed or took more than $seconds s: $*" >&2
    tail -n 5 "$log" >&2
    return 1
}

# The most the GPU can do: TFLOP/s of bf16 matrix products (dense), of fp32, GB/s of memory. NVIDIA's data sheets.
peaks_of() {
    case $1 in
    *H200*) echo 989 67 4800 ;;
    *H100*PCIe*) echo 756 51 2000 ;;
    *H100*) echo 989 67 3350 ;;
    *A100*80GB*) echo 312 19.5 2039 ;;
    *A100*) echo 312 19.5 1555 ;;
    *L40S*) echo 362 91.6 864 ;;
    *B200*) echo 2250 75 8000 ;;
    esac
}

kernels() { # PEAKS: of three numbers, or none
    local bf16='' fp32='' bytes=''
    [ -z "$1" ] || read -r bf16 fp32 bytes <<<"$1"
    # shellcheck disable=SC2086 # no peaks, no arguments
    run kernels-mnist.log 60 "$build/tests/bench/ops_bench" cuda 1 $fp32 $bytes || failed=1
    # shellcheck disable=SC2086
    run kernels-language.log 120 "$build/tests/bench/language_bench" cuda 1 $bf16 $bytes || failed=1
    run kernels-attention.log 60 "$build/tests/bench/attention_bench" cuda || failed=1
    [ "$dry" ] || cat "$out/kernels-mnist.log" "$out/kernels-language.log" "$out/kernels-attention.log"
}

# What the ids and pixels are does not matter for the speed.
make_data() {
    [ -z "$dry" ] || return 0
    mkdir -p "$out/mnist"
    perl -e 'print pack("l<256", 20240520, 1, 600000), map { pack("S<", rand 50257) } 1 .. 600000' >"$out/ids.bin"
    local part
    for part in train t10k; do
        perl -e 'print pack("N4", 2051, 16384, 28, 28), map { pack("C784", map { rand 256 } 1 .. 784) } 1 .. 16384' \
            >"$out/mnist/$part-images-idx3-ubyte"
        perl -e 'print pack("N2", 2049, 16384), map { pack("C", rand 10) } 1 .. 16384' \
            >"$out/mnist/$part-labels-idx1-ubyte"
    done
    # rows of words that are one id each, of BERT's 30522 and T5's 32128, and fill every sample
    mkdir -p "$out/rows"
    perl -e 'print "$_\n" for qw([PAD] [UNK] [CLS] [SEP] [MASK]), map { "w$_" } 0 .. 30516' >"$out/rows/vocab.txt"
    perl -e 'sub words { join " ", map { "w" . int rand 30517 } 1 .. $_[0] }
        printf qq({"text": "%s", "summary": "%s"}\n), words(512), words(128) for 1 .. 3200' >"$out/rows/rows.jsonl"
}

# Samples/s of a run's log: of language models the mean of what its lines say after the tenth step, else the last line's,
# which has one digit only.
rate_of() { # LOG TOKENS
    awk -v tokens="$2" '
        tokens && match($0, /Step [0-9]+/) && substr($0, RSTART + 5, RLENGTH - 5) > 10 && match($0, /[0-9]+ tokens\/s/) {
            sum += substr($0, RSTART) + 0
            count++
        }
        /^Throughput:/ { last = $2 }
        END { print count ? sum / count / tokens : last }' "$1"
}

# Adds what is predicted, in samples/s, to the results.
predict() { # MODEL TOKENS FLAGS...
    local samples
    [ "$gpu" ] || return 0
    samples=$("$build/shoal" plan --device "$gpu" --json "${@:3}" 2>"$out/predicted-$1.log" |
        sed -n 's/.*"samples_per_second":\([0-9.e+]*\).*/\1/p') || samples=
    if [ "$dry" ]; then
        awk -v model="$1" -v gpu="$gpu" -v samples="$samples" -v tokens="$2" 'BEGIN {
            printf "predicted for %s on %s: ", model, gpu
            if (samples) printf "%.0f %s\n", samples * (tokens ? tokens : 1), tokens ? "tokens/s" : "samples/s"
            else print "shoal plan failed"
        }'
        [ "$samples" ] || sed 's/^/# /' "$out/predicted-$1.log"
    elif [ "$samples" ]; then
        echo "predicted $1 predicted $samples" >>"$out/gpu.txt"
    fi
}

ours() { # MODEL BATCH TOKENS STEPS FLAGS...
    local model=$1 batch=$2 tokens=$3 steps=$4
    shift 4
    # the first ten steps do not count
    set -- --device cuda --nproc_per_node 1 --batch_size "$batch" --max_steps $((steps + 10)) --eval_strategy no \
        --sharding_strategy NO_SHARD --logging.prometheus_port 0 "$@"
    predict "$model" "$tokens" "$@"
    run "shoal-$model.log" 60 "$build/shoal-agent" "$@" || {
        failed=1
        return 0
    }
    [ "$dry" ] || echo "shoal $model shoal $(rate_of "$out/shoal-$model.log" "$tokens")" >>"$out/gpu.txt"
}

theirs() { # MODEL BATCH TOKENS STEPS FLAGS...; of MODEL-64 the model is MODEL
    local variant model=${1%-64}
    [ "$torch" ] || return 0
    case $model in t5 | bert) [ "$transformers" ] || return 0 ;; esac
    for variant in eager fsdp2_compile; do
        run "torch-$1-$variant.log" 75 "${python[@]}" -W ignore tests/gpu/torch_step.py --model "$model" \
            --variant "$variant" --batch "$2" --tokens "$3" --steps "$4" "${@:5}" || continue
        [ "$dry" ] || sed -n "s/^torch $model /torch $1 /p" "$out/torch-$1-$variant.log" >>"$out/gpu.txt"
    done
}

mnist() { # MODEL FLAGS...
    ours "$1" 64 0 1000 --preset mnist --data.root "$out/mnist" --num_train_epochs 10 "${@:2}"
}

t5() { # MODEL BATCH STEPS FLAGS...
    ours "$1" "$2" 640 "$3" --model_name_or_path tests/bench/models/t5 --dataset "$out/rows/rows.jsonl" \
        --tokenizer "$out/rows" --max_source_length 512 --max_target_length 128 --drop_last --mixed_precision bf16 \
        --grad_clip 1 --num_train_epochs 10 "${@:4}"
}

llama() { # MODEL FLAGS...
    ours "$1" 1 8192 20 --preset llama3.2-1b --dataset "$out/ids.bin" --data.max_seq_length 8192 \
        --mixed_precision bf16 --optimizer.name adamw --grad_clip 1 "${@:2}"
}

steps() {
    mnist mnist
    mnist mnist-graphs --cuda_graphs
    t5 t5 4 100
    t5 t5-graphs 4 100 --cuda_graphs
    t5 t5-64 64 40
    ours bert 32 128 100 --preset bert-base --head masked_lm --dataset "$out/rows/rows.jsonl" --tokenizer "$out/rows" \
        --max_seq_length 128 --drop_last --mixed_precision bf16 --grad_clip 1 --num_train_epochs 10
    ours gpt2 16 1024 40 --preset gpt2 --dataset "$out/ids.bin" --data.max_seq_length 1024 --mixed_precision bf16 \
        --optimizer.name adamw --grad_clip 1 --dropout 0 --num_train_epochs 10
    llama llama
    llama llama-document --num_key_value_heads 2 --vocab_size 50432 --tie_word_embeddings false
    # what comes last may be left out
    theirs gpt2 16 1024 40
    theirs llama 1 8192 20
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
            tokens["t5"] = tokens["t5-graphs"] = tokens["t5-64"] = 640; tokens["bert"] = 128; tokens["gpt2"] = 1024
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

failed=0 name='no GPU' torch=1 transformers=1 gpu=h100
mkdir -p "$out"
if [ -z "$dry" ]; then
    timeout --kill-after=5 60 "$build/tests/gpu/gpu" || {
        [ $? = 77 ] || { echo "bench-gpu: no GPU that works within 60 s" >&2 && exit 1; }
        echo "bench-gpu: skipped, nothing was measured"
        exit 0
    }
    name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || name=
    name=${name:-a GPU whose name nvidia-smi does not tell}
    timeout 60 "${python[@]}" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null || torch=
    timeout 60 "${python[@]}" -c 'import transformers' 2>/dev/null || transformers=
    gpu=$name
    "$build/shoal" plan --preset mnist --device "$gpu" >/dev/null 2>&1 || {
        echo "shoal plan knows no time of a step on $name: nothing is predicted"
        gpu=
    }
    rm -f "$out/gpu.txt" "$out"/shoal-*.log "$out"/torch-*.log
    : >"$out/gpu.txt"
    echo "$name, $(date -u +%Y-%m-%d)"
    [ "$torch" ] || echo "${PYTHON:-python3} cannot import a PyTorch that sees the GPU: no peer"
    [ "$transformers" ] || [ -z "$torch" ] || echo "${PYTHON:-python3} cannot import transformers: no peer for T5 and BERT"
fi
export PREDICT_FOR=$gpu
make_data
kernels "$(peaks_of "$name")"
steps
[ "$dry" ] || print_table
exit "$failed"
