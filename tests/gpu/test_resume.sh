#!/bin/bash
# shellcheck disable=SC1091,SC2154 # tap.sh sets work
# A run on a GPU that is killed between two checkpoints and goes on from the last ends with the same bits as one that was
# left alone; so does one that hands its ops over as graphs. `make check` does it on the emulated GPU, which is slower.
. "$(dirname "${BASH_SOURCE[0]}")/../tap.sh"
steps=300
if [ -z "${SHOAL_CUDA_LIBRARY-}" ]; then
    steps=10
    . tests/e2e/emulated_gpu.sh
fi
perl -e 'print pack("l<256", 20240520, 1, 4096), map { pack("S<", ($_ * $_ + $_ % 3) % 32) } 1 .. 4096' >"$work/ids.bin"

# gpt2 NAME FLAGS...: a small GPT-2 with dropout, two micro-batches to a step
gpt2() {
    local name=$1
    shift
    shoal-agent --nproc_per_node 1 --device cuda --model_type gpt2 --hidden_size 64 --num_hidden_layers 2 --num_attention_heads 2 \
        --vocab_size 32 --max_position_embeddings 16 --data.dataset "$work/ids.bin" --data.format llmc_bin --max_seq_length 16 \
        --train_batch_size 2 --gradient_accumulation_steps 2 --max_steps "$steps" --dropout 0.1 --optimizer.name adamw --lr 1e-3 \
        --grad_clip 1 --eval_strategy no --mixed_precision "$precision" --prometheus_port 0 --save_model "$work/$name" "$@" \
        >"$work/$name.log" 2>&1 || { cat "$work/$name.log"; return 1; }
}

checkpoints() { [ "$(find "$work/steps" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l)" -gt "$1" ]; }

three_or_ended() { checkpoints 2 || ! kill -0 "$1"; } # PID

# The whole process group, at once. On a busy machine it may have ended before: then it runs once more.
killed() {
    local pid status tries
    export -f gpt2
    export work steps precision
    for tries in 1 2 3 4 5; do
        status=0
        rm -rf "$work/steps"
        setsid bash -c "gpt2 killed --checkpoint_dir $work/steps --save_steps 1 --save_total_limit 5" &
        pid=$!
        wait_for 300 three_or_ended "$pid" || { cat "$work/killed.log"; return 1; }
        kill -KILL -- "-$pid"
        wait "$pid" 2>/dev/null || status=$?
        [ "$status" != 137 ] || return 0
        echo "try $tries: it ended before it could be killed"
    done
    cat "$work/killed.log"
    return 1
}
resumed() {
    gpt2 resumed --checkpoint_dir "$work/steps" --save_steps 1 --save_total_limit 5 --resume latest && contains "$work/resumed.log" "Resumed from $work/steps/"
}
same() { cmp "$work/whole/model.safetensors" "$work/$1/model.safetensors"; }

for precision in no bf16; do
    check "$precision: $steps steps" gpt2 whole
    check "... killed on the way" killed
    check "... and resumed" resumed
    check "... to the same bits" same resumed
    check "... as graphs" gpt2 graphs --cuda_graphs
    check "... to the same bits" same graphs
done
tap_done
