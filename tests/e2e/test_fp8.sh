#!/bin/bash
# precision.fp8: a run near the one in bf16, with the same bits on any number of ranks, after a checkpoint, and on the emulated
# GPU from run to run; and what is refused before anything is computed.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/emulated_gpu.sh
. tests/e2e/emulated_gpu.sh
# train RANKS NAME FLAGS...
train() {
    llama "$1" "$2" --device cpu --model.name_or_path= --model_type llama_v3 --hidden_size 64 --num_hidden_layers 2 \
        --num_attention_heads 4 --num_key_value_heads 2 --intermediate_size 128 --vocab_size 512 --mixed_precision bf16 \
        --threads 1 "${@:3}"
}
fp8() { train "$1" "$2" --precision.fp8=true --save_model "$work/model_$2" "${@:3}"; }
# By NAME's and NAME's losses: relative differences of the last steps' mean; never nothing.
near() { # MOST NAME NAME
    paste -d, "$work/$2.csv" "$work/$3.csv" | awk -F, -v most="$1" '
        NR == 1 { half = NF / 2; next }
        { a[NR] = $3; b[NR] = $(half + 3); if (a[NR] != b[NR]) differ = 1 }
        END {
            for (i = NR; i > NR / 2; i--) { x += a[i]; y += b[i] }
            d = x / y - 1; if (d < 0) d = -d
            print d; exit !(differ && d <= most && NR > 3)
        }'
}
same() { cmp "$work/model_$1/model.safetensors" "$work/model_$2/model.safetensors"; }

slowly=(--max_steps 60 --lr 1e-3 --train_batch_size 8)
check "a run in bf16" train 1 bf16 "${slowly[@]}"
check "the same in fp8" fp8 1 fp8 "${slowly[@]}"
check "... has losses within 2 % of it, while they fall from 6.2 to 2" near 0.02 fp8 bf16
check "... and tells that a CPU is slow at it" contains "$work/fp8.log" "precision.fp8: this CPU multiplies no numbers of 8 bits"

slots=(--parallel.reduction_slots 2 --max_steps 4)
check "one rank, with slots" fp8 1 one "${slots[@]}"
check "two ranks that share the model" fp8 2 two "${slots[@]}" --sharding_strategy FULL_SHARD
check "... to the same bits" same one two
check "four ranks in groups of two" fp8 4 four --max_steps 4 --parallel.reduction_slots 4 --sharding_strategy HYBRID_SHARD \
    --parallel.shard_group_size 2
check "two ranks of four slots" fp8 2 fewer --max_steps 4 --parallel.reduction_slots 4 --sharding_strategy FULL_SHARD
check "... to the same bits" same four fewer
check "a checkpoint on the way" fp8 1 half --max_steps 2 --parallel.reduction_slots 2 --checkpoint_dir "$work/half"
check "... gone on from by two ranks" fp8 2 whole "${slots[@]}" --resume_from_checkpoint "$work/half"
check "... to the same bits" same one whole
check "blocks that are computed again" fp8 2 again "${slots[@]}" --activation_checkpointing full
check "... to the same bits" same one again

gpus() { SHOAL_EMULATION=gpus=2 FAKE_NCCL=ordered=1 fp8 2 "$1" --device cuda "${slots[@]}" "${@:2}"; }
check "two GPUs that share the model, over NCCL" gpus shared --sharding_strategy FULL_SHARD --collectives nccl
check "... in symmetric windows" gpus windows --sharding_strategy FULL_SHARD --collectives nccl --register_buffers symmetric
check "... where codes are outside, which is told" contains "$work/windows.log" \
    "of 3 units 1 are gathered and 0 reduced in symmetric windows of 0.002 GB; the others take 32 MiB or more, or are gathered in fp8"
check "... to the same bits" same shared windows
check "... through the hosts" gpus hosts --sharding_strategy FULL_SHARD --collectives host
check "... to the same bits" same shared hosts
check "two that share nothing" gpus apart --sharding_strategy NO_SHARD --collectives nccl
check "... to the same bits" same shared apart
check "a run on a GPU" fp8 1 gpu --device cuda
check "the same on the CPU" fp8 1 cpu
check "... has losses near the GPU's" near 0.002 cpu gpu
check "... and is not told to be slow" lacks "$work/gpu.log" "numbers of 8 bits"
check "another, of CUDA graphs" fp8 1 graphs --device cuda --cuda_graphs
check "... to the same bits" same gpu graphs

ampere() { SHOAL_EMULATION="capability=80,name=NVIDIA A100" fp8 1 ampere --device cuda; }
why="(NVIDIA A100) has compute capability 8.0, and fp8 needs 8.9 (L4, L40S, H100 and newer): set precision.fp8=false"
check "a GPU without fp8 is refused" fails 2 "$why" ampere
check "... in the plan, too" fails 2 "has compute capability 8.0, and fp8 needs 8.9" shoal plan --preset=llama3-8b --gpus 8 --device a100 --precision.fp8=true
check "fp32 is refused" fails 2 "precision.fp8 needs precision.mixed_precision=bf16 or bf16-true" fp8 1 fp32 --mixed_precision no
check "weights in bf16 alone are not" fp8 1 true --mixed_precision bf16-true --max_steps 2
check "sizes that do not fit are refused, and named" fails 2 "model.layers.0.mlp.gate_proj has a weight of 120 x 64" fp8 1 sizes --intermediate_size 120
check "... by the plan" fails 2 "has a weight of 120 x 64" shoal plan --model_type llama_v3 --hidden_size 64 --num_attention_heads 4 \
    --num_key_value_heads 2 --intermediate_size 120 --precision.fp8=true
check "a model without blocks ignores it, which is told" contains <(shoal-agent --preset=mnist --precision.fp8=true --dry_run 2>&1) \
    "precision.fp8 is ignored: it needs a language model"
check "Hugging Face's word for it says what to set" fails 2 "fp8 is a setting beside it: mixed_precision=bf16 and precision.fp8=true" \
    train 1 word --mixed_precision fp8

# tokens NAME FLAGS...: tokens/s that the plan predicts for an H100
tokens() { shoal plan "${@:2}" --device h100 >"$work/$1" && awk '/tokens\/s per GPU/ { gsub(",", ""); print $1 }' "$work/$1"; }
faster=(--preset llama3-8b --gpus 8 --max_seq_length 8192)
check "the plan predicts that it is faster" [ "$(tokens with "${faster[@]}" --precision.fp8=true)" -gt "$(tokens without "${faster[@]}")" ]
check "... and has its copies" contains "$work/with" "GB of it copies in fp8)"
check "... but not in bf16" lacks "$work/without" "copies in fp8"
# gathered FLAGS...: bytes of gathered units that the plan has for FULL_SHARD
gathered() { shoal plan "${faster[@]}" --json "$@" | grep -o '"gathered_bytes":[0-9]*' | head -1 | cut -d: -f2; }
check "... and less memory for what is gathered" [ "$(gathered --precision.fp8=true)" -lt "$(gathered)" ]
tap_done
