#!/bin/bash
# The kernels of a step that `shoal plan --device` counts are those that a run launches: a layer's to the one, the rest
# nearly. Who fuses kernels, or adds one, meets this test, and tells the model (time_ways_ours() of
# agent/plan/time_step.c, or the lists of time_step_block.c); then the table of docs/gpu.md.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/emulated_gpu.sh
. tests/e2e/emulated_gpu.sh
mkdir "$work/tokenizer"
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' w0 w1 >"$work/tokenizer/vocab.txt"
yes '{"text": "w0 w1 w1 w0 w1 w0 w0 w1"}' | head -n 100 >"$work/rows.jsonl"

# matrix units, so heads of 64; gradients are clipped
common=(--batch_size=1 --mixed_precision=bf16 --grad_clip=1e-6)
flags_of() { # MODEL LAYERS
    flags=("${common[@]}" --hidden_size=128 --num_hidden_layers="$2" --num_attention_heads=2)
    case $1 in
    llama) flags+=(--model_type=llama_v3 --num_key_value_heads=1 --intermediate_size=256 --vocab_size=512 --tie_word_embeddings=true) ;;
    gpt2) flags+=(--model_type=gpt2 --batch_size=4 --vocab_size=512 --max_position_embeddings=64 --dropout=0) ;;
    bert) flags+=(--model_type=bert --head=masked_lm --intermediate_size=256 --vocab_size=16 --max_position_embeddings=64) ;;
    llama_again) flags+=(--model_type=llama_v3 --num_key_value_heads=1 --intermediate_size=256 --vocab_size=512 --activation_checkpointing=full) ;;
    llama_fp8) flags+=(--model_type=llama_v3 --num_key_value_heads=1 --intermediate_size=256 --vocab_size=512 --precision.fp8=true) ;;
    gpt2_fp8) flags+=(--model_type=gpt2 --batch_size=4 --vocab_size=512 --max_position_embeddings=64 --dropout=0 --precision.fp8=true) ;;
    esac
    case $1 in
    bert) flags+=(--dataset="$work/rows.jsonl" --tokenizer="$work/tokenizer" --max_seq_length=16) ;;
    *) flags+=(--dataset="$work/tokens.bin" --data.format=llmc_bin --max_seq_length=32) ;;
    esac
}
# Kernels of the fifth step, from its trace.
launched() { # MODEL LAYERS
    local out=$work/$1-$2
    flags_of "$@"
    shoal-agent --device cuda "${flags[@]}" --max_steps 5 --eval_strategy no --prometheus_port 0 --profiler.enable \
        --profiler.dir "$out" --profiler.warmup_steps 3 >"$out.log" 2>&1 || { cat "$out.log" >&2 && return 1; }
    grep -o '"cat":"kernel"' "$out/trace.json" | wc -l
}
planned() { # MODEL LAYERS
    flags_of "$@"
    shoal plan "${flags[@]}" --device h100 --json 2>/dev/null | grep -o '"launches":[0-9]*' | cut -d: -f2
}
layers() { # MODEL
    local runs2 runs3 plans2 plans3
    runs2=$(launched "$1" 2) && runs3=$(launched "$1" 3) || return 1
    plans2=$(planned "$1" 2) plans3=$(planned "$1" 3)
    echo "2 and 3 layers: $runs2 and $runs3 are launched, $plans2 and $plans3 planned"
    [ $((runs3 - runs2)) -gt 0 ] && [ $((runs3 - runs2)) = $((plans3 - plans2)) ] &&
        [ $((plans2 - runs2)) -le 5 ] && [ $((runs2 - plans2)) -le 5 ]
}
for model in llama llama_again llama_fp8 gpt2 gpt2_fp8 bert; do
    check "a layer of $model has the kernels that are planned, and the rest nearly" layers "$model"
done
images() {
    local runs plans
    shoal-agent --device cuda --preset mnist --data.root /usr/share/datasets/fashion-mnist --batch_size 2 --train_size 12 --max_steps 5 \
        --eval_strategy no --prometheus_port 0 --profiler.enable --profiler.dir "$work/mnist" --profiler.warmup_steps 3 >"$work/mnist.log" 2>&1 ||
        { cat "$work/mnist.log" && return 1; }
    runs=$(grep -o '"cat":"kernel"' "$work/mnist/trace.json" | wc -l)
    plans=$(shoal plan --preset mnist --batch_size 2 --device h100 --json | grep -o '"launches":[0-9]*' | cut -d: -f2)
    echo "$runs are launched, $plans planned"
    [ "$plans" = "$runs" ]
}
one_rank_waits_for_none() { answers_no grep -oE '"name":"(store_gradient|reduce_scatter|all_reduce)[^"]*"' "$work"/*/trace.json; }
check "a rank without others reduces nothing" one_rank_waits_for_none
check "MNIST's network has the kernels that are planned" images
tap_done
