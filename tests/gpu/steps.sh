# shellcheck shell=bash
# What bench.sh and first.sh share: programs under a limit of time, the data of whole training steps, those steps, and
# PyTorch's beside them. Sourced from the root of the tree (or bundle) with these variables set:
#   build     where the programs are        out      the folder of logs, data and gpu.txt, the results
#   name      of the script, for messages   dry      not empty: commands are only printed
#   until_s   what runs ends then           gpu      as `shoal plan --device` calls it; empty: nothing is predicted
#   SLOWER    limits are so many times as long: for an emulated GPU on a busy machine; may be unset
# `failed` becomes 1 where a step of ours fails. after_step MODEL BATCH TOKENS is called behind each.
# A line of gpu.txt: "shoal|predicted|torch MODEL shoal|predicted|eager|fsdp2_compile SAMPLES_PER_SECOND".
# shellcheck disable=SC2034,SC2154 # the caller sets them, and looks at what is set here
export SHOAL_CUDA_LIBRARY=${SHOAL_CUDA_LIBRARY:-$(realpath -m "$build")/libshoal_cuda.so}
# a bundle's libraries are for its own programs
python=(env "LD_LIBRARY_PATH=$(tr : '\n' <<<"${LD_LIBRARY_PATH:-}" | grep -vF "$PWD/lib" | paste -sd :)" "${PYTHON:-python3}")
failed=0 torch=1 transformers=1
after_step() { :; }

run() { # LOG SECONDS COMMAND...
    local log=$out/$1 seconds=$(($2 * ${SLOWER:-1})) left=$((until_s - SECONDS))
    shift 2
    [ "$seconds" -le "$left" ] || seconds=$left
    [ "$seconds" -ge 10 ] || {
        echo "$name: left out, the time is over: $*" >&2
        return 1
    }
    if [ "$dry" ]; then
        echo "${SHOAL_ATTENTION:+SHOAL_ATTENTION=$SHOAL_ATTENTION }timeout $seconds $*"
        return 0
    fi
    timeout --kill-after=5 "$seconds" "$@" >"$log" 2>&1 && return 0
    echo "$name: failed or took more than $seconds s: $*" >&2
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

# Looks for a GPU: sets `device` to its name, and `gpu` to that name or, where no time of it is known, to nothing. Leaves
# the script where there is none, which is no failure, or where it does not answer.
find_gpu() {
    timeout --kill-after=5 60 "$build/tests/gpu/gpu" || {
        [ $? = 77 ] || { echo "$name: no GPU that works within 60 s" >&2 && exit 1; }
        echo "$name: skipped, nothing was measured"
        exit 0
    }
    device=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || device=
    device=${device:-a GPU whose name nvidia-smi does not tell}
    gpu=$device
    "$build/shoal" plan --preset mnist --device "$gpu" >/dev/null 2>&1 || {
        echo "shoal plan knows no time of a step on $device: nothing is predicted"
        gpu=
    }
}

# Sets `torch` and `transformers` to nothing where Python has none.
find_torch() {
    timeout 60 "${python[@]}" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null || torch=
    timeout 60 "${python[@]}" -c 'import transformers' 2>/dev/null || transformers=
    [ "$torch" ] || echo "${PYTHON:-python3} cannot import a PyTorch that sees the GPU: no peer"
    [ "$transformers" ] || [ -z "$torch" ] || echo "${PYTHON:-python3} cannot import transformers: no peer for T5 and BERT"
}

# ---- data: what the ids and pixels are does not matter for the speed
find_perl() {
    [ "$dry" ] || perl -e 1 2>/dev/null && return 0
    echo "$name: perl is not here: it makes the data of whole steps, which fail without" >&2
    return 1
}
make_ids() {
    [ -e "$out/ids.bin" ] || [ "$dry" ] || {
        perl -e 'print pack("l<256", 20240520, 1, 600000), map { pack("S<", rand 50257) } 1 .. 600000' >"$out/ids.part" &&
            mv "$out/ids.part" "$out/ids.bin"
    }
}
make_images() {
    local part
    [ -z "$dry" ] || return 0
    mkdir -p "$out/mnist"
    for part in train t10k; do
        perl -e 'print pack("N4", 2051, 16384, 28, 28), map { pack("C784", map { rand 256 } 1 .. 784) } 1 .. 16384' \
            >"$out/mnist/$part-images-idx3-ubyte"
        perl -e 'print pack("N2", 2049, 16384), map { pack("C", rand 10) } 1 .. 16384' \
            >"$out/mnist/$part-labels-idx1-ubyte"
    done
}
# rows of words that are one id each, of BERT's 30522 and T5's 32128, and fill every sample
make_rows() {
    [ -z "$dry" ] || return 0
    mkdir -p "$out/rows"
    perl -e 'print "$_\n" for qw([PAD] [UNK] [CLS] [SEP] [MASK]), map { "w$_" } 0 .. 30516' >"$out/rows/vocab.txt"
    perl -e 'sub words { join " ", map { "w" . int rand 30517 } 1 .. $_[0] }
        printf qq({"text": "%s", "summary": "%s"}\n), words(512), words(128) for 1 .. 3200' >"$out/rows/rows.jsonl"
}

# ---- a step, and what is known of it

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

# Takes a line of an earlier call out of the results, before what it tells is measured anew.
forget() { # shoal|predicted|torch MODEL shoal|predicted|eager|fsdp2_compile
    [ -z "$dry" ] && [ -e "$out/gpu.txt" ] || return 0
    awk -v by="$1" -v model="$2" -v variant="$3" '$1 != by || $2 != model || $3 != variant' "$out/gpu.txt" >"$out/gpu.part"
    mv "$out/gpu.part" "$out/gpu.txt"
}

# Adds what is predicted, in samples/s, to the results.
predict() { # MODEL TOKENS FLAGS...
    local samples
    forget predicted "$1" predicted
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
    forget shoal "$model" shoal
    if run "shoal-$model.log" 60 "$build/shoal-agent" "$@"; then
        [ "$dry" ] || echo "shoal $model shoal $(rate_of "$out/shoal-$model.log" "$tokens")" >>"$out/gpu.txt"
    else
        failed=1
    fi
    after_step "$model" "$batch" "$tokens"
}

theirs() { # MODEL BATCH TOKENS STEPS FLAGS...; of MODEL-64 the model is MODEL
    local variant model=${1%-64}
    [ "$torch" ] || return 0
    case $model in t5 | bert) [ "$transformers" ] || return 0 ;; esac
    for variant in eager fsdp2_compile; do
        forget torch "$1" "$variant"
        run "torch-$1-$variant.log" 75 "${python[@]}" -W ignore tests/gpu/torch_step.py --model "$model" \
            --variant "$variant" --batch "$2" --tokens "$3" --steps "$4" "${@:5}" || continue
        [ "$dry" ] || sed -n "s/^torch $model /torch $1 /p" "$out/torch-$1-$variant.log" >>"$out/gpu.txt"
    done
}

# ---- models; torch_step.py has them, too
mnist() { # MODEL FLAGS...
    ours "$1" 64 0 1000 --preset mnist --data.root "$out/mnist" --num_train_epochs 10 "${@:2}"
}
t5() { # MODEL BATCH STEPS FLAGS...
    ours "$1" "$2" 640 "$3" --model_name_or_path tests/bench/models/t5 --dataset "$out/rows/rows.jsonl" \
        --tokenizer "$out/rows" --max_source_length 512 --max_target_length 128 --drop_last --mixed_precision bf16 \
        --grad_clip 1 --num_train_epochs 10 "${@:4}"
}
bert() {
    ours bert 32 128 100 --preset bert-base --head masked_lm --dataset "$out/rows/rows.jsonl" --tokenizer "$out/rows" \
        --max_seq_length 128 --drop_last --mixed_precision bf16 --grad_clip 1 --num_train_epochs 10
}
gpt2() { # MODEL FLAGS...
    ours "$1" 16 1024 40 --preset gpt2 --dataset "$out/ids.bin" --data.max_seq_length 1024 --mixed_precision bf16 \
        --optimizer.name adamw --grad_clip 1 --dropout 0 --num_train_epochs 10 "${@:2}"
}
llama() { # MODEL FLAGS...
    ours "$1" 1 8192 20 --preset llama3.2-1b --dataset "$out/ids.bin" --data.max_seq_length 8192 \
        --mixed_precision bf16 --optimizer.name adamw --grad_clip 1 "${@:2}"
}
# The shape of Qwen2.5-1.5B without its biases: 1,543,656,960 parameters.
llama_1_5b() {
    ours llama-1.5b 16 1024 10 --preset llama3.2-1b --hidden_size 1536 --intermediate_size 8960 --num_hidden_layers 28 \
        --num_attention_heads 12 --num_key_value_heads 2 --vocab_size 151936 --dataset "$out/ids.bin" \
        --data.max_seq_length 1024 --mixed_precision bf16 --optimizer.name adamw --grad_clip 1 --num_train_epochs 10
}
