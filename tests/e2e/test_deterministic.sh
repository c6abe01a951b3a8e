#!/bin/bash
# runtime.deterministic on an emulated GPU whose cuDNN adds in an order drawn by the seed: by default two runs have the same
# bits, with false they differ, and the log says so; so does a run that goes on from one of the other kind.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/emulated_gpu.sh
. tests/e2e/emulated_gpu.sh
export SHOAL_ATTENTION=cudnn
given_up="runtime.deterministic=false: where cuDNN does attention, its backward adds up in any order"
# train SEED NAME FLAGS...: heads that cuDNN takes, in bf16, at a rate at which last bits show
train() {
    SHOAL_EMULATION=seed=$1 llama 1 "$2" --device cuda --model.name_or_path= --model_type llama_v3 --hidden_size 128 \
        --num_hidden_layers 2 --num_attention_heads 2 --num_key_value_heads 1 --intermediate_size 64 --vocab_size 64 \
        --mixed_precision bf16 --max_seq_length 64 --save_model "$work/model_$2" "${@:3}"
}
same() { cmp "$work/model_$1/model.safetensors" "$work/model_$2/model.safetensors"; }
differ() { ! same "$1" "$2" >"$work/cmp" 2>&1 || { echo "the same bits"; return 1; }; }
near() { # NAME NAME: losses that agree to bf16's rounding
    paste -d, "$work/$1.csv" "$work/$2.csv" | awk -F, -v half=0 '
        NR == 1 { half = NF / 2; next }
        { d = $3 - $(half + 3); if (d < 0) d = -d; if (d > 1e-2) bad = 1; rows++ }
        END { exit bad || rows < 3 }' || { cat "$work/$1.csv" "$work/$2.csv"; return 1; }
}

check "a run" train 1 first
check "another, whose GPU works in another order" train 2 second
check "... to the same bits" same first second
check "... of which nothing is told" lacks "$work/first.log" "$given_up"
check "a run with runtime.deterministic=false" train 1 fast --deterministic=false
check "... told at its start" contains "$work/fast.log" "$given_up"
check "another" train 2 faster --deterministic=false
check "... to other bits" differ fast faster
check "... near to each other" near fast faster
check "... and to the deterministic one" near fast first
check "with our own kernels the setting changes nothing" env SHOAL_ATTENTION=ours bash -c "$(declare -f train llama); models=$models work=$work train 3 ours --deterministic=false"
check "... in whatever order the GPU works" env SHOAL_ATTENTION=ours bash -c "$(declare -f train llama); models=$models work=$work train 4 ours_again --deterministic=false"
check "... to the same bits" same ours ours_again
check "on the CPU it changes nothing" train 1 cpu --deterministic=false --device auto --runtime.device cpu
check "... which is told" contains "$work/cpu.log" "runtime.deterministic is ignored: it needs another runtime.device than cpu"

check "a checkpoint" train 1 saved --checkpoint_dir "$work/saved"
check "... gone on from without equal bits" train 1 resumed --max_steps 4 --checkpoint_dir "$work/resumed" --resume_from_checkpoint "$work/saved" --deterministic=false
check "... is told" contains "$work/resumed.log" "runtime.deterministic: it had true, this one has false"
check "... and again with them" train 1 back --max_steps 5 --resume_from_checkpoint "$work/resumed"
check "... is told, too" contains "$work/back.log" "runtime.deterministic: it had false, this one has true"
check "slots, which are there for the bits" fails 2 "parallel.reduction_slots=2 gives the same bits on fewer ranks, and runtime.deterministic=false gives them up" \
    train 1 slots --parallel.reduction_slots 2 --deterministic=false
check "slots of a checkpoint" train 1 slots --parallel.reduction_slots 2 --checkpoint_dir "$work/slots"
check "... gone on from without equal bits" train 1 slots_on --max_steps 4 --resume_from_checkpoint "$work/slots" --deterministic=false
check "... are told" contains "$work/slots_on.log" "parallel.reduction_slots=2, as of the checkpoint, whose bits runtime.deterministic=false gives up"
tap_done
