#!/bin/bash
# The real agent on an emulated GPU (tests/emulation): it trains to the CPU's losses, alone and over a fake NCCL or
# through the hosts, and resumes to the same bits.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/emulated_gpu.sh
. tests/e2e/emulated_gpu.sh
# losses NAME NAME [APART]: agree to that, else to 1e-4.
losses() {
    paste -d, "$work/$1.csv" "$work/$2.csv" | awk -F, -v half=0 -v apart="${3:-1e-4}" '
        NR == 1 { half = NF / 2; next }
        { d = $3 - $(half + 3); if (d < 0) d = -d; if (d > apart) bad = 1; rows++ }
        END { exit bad || rows < 3 }' || { cat "$work/$1.csv" "$work/$2.csv"; return 1; }
}

check "one rank on the CPU" llama 1 cpu --device cpu
check "one rank on a GPU" llama 1 gpu --device auto
check "... to the CPU's losses" losses cpu gpu
named() { SHOAL_EMULATION="name=NVIDIA H100 80GB HBM3" llama 1 named --device cuda --style plain && contains "$work/named.log" " | MFU: "; }
check "... whose peak is known by its name: MFU is told" named
check "... as it is of no other" lacks "$work/gpu.log" " | MFU: "
gpt2() { # NAME FLAGS...: GPT-2's ops, with dropout
    llama 1 "$@" --model.name_or_path= --model_type gpt2 --hidden_size 64 --num_hidden_layers 2 --num_attention_heads 2 \
        --vocab_size 32 --max_position_embeddings 16
}
check "GPT-2 on the CPU" gpt2 gpt2_cpu --device cpu
check "GPT-2 on a GPU" gpt2 gpt2_gpu --device cuda
check "... to the CPU's losses" losses gpt2_cpu gpt2_gpu
for precision in bf16 bf16-true; do
    check "$precision on the CPU" gpt2 "$precision-cpu" --device cpu --mixed_precision $precision
    check "$precision on a GPU" gpt2 "$precision-gpu" --device cuda --mixed_precision $precision
    check "... near the CPU's losses" losses "$precision-cpu" "$precision-gpu" 2e-2
done
# a GPU without bf16 in its matrix units
turing() { SHOAL_EMULATION="capability=75,name=Tesla T4" llama 1 "$@"; }
check "a T4 trains in fp32" turing turing --device auto --save_model "$work/model_turing"
newer() { SHOAL_EMULATION=capability=80 llama 1 newer --device cuda --save_model "$work/model_newer"; }
check "... as newer GPUs do" newer
check "... to the same bits" cmp "$work/model_newer/model.safetensors" "$work/model_turing/model.safetensors"
no_bf16="cuda:0 (Tesla T4) has compute capability 7.5, and bf16 needs 8.0: set precision.mixed_precision=no, and it trains in fp32"
for precision in auto bf16 bf16-true; do
    check "... and refuses $precision" fails 2 "$no_bf16" turing "turing-$precision" --device auto --mixed_precision $precision
done

check "slices on the host, activations too" llama 1 offload --device cuda --cpu_offload true --offload_activations true \
    --activation_checkpointing full
check "... to the CPU's losses" losses cpu offload

# ops handed to the GPU as graphs
check "one rank, op by op" llama 1 ops --device cuda --save_model "$work/model_ops"
check "... as graphs" llama 1 graphs --device cuda --save_model "$work/model_graphs" --cuda_graphs
check "... to the same bits" cmp "$work/model_ops/model.safetensors" "$work/model_graphs/model.safetensors"
stale() { SHOAL_EMULATION=stale_graphs=1 llama 1 stale --device cuda --save_model "$work/model_stale" --cuda_graphs; }
check "graphs that keep old arguments" stale
check "... would be seen" bash -c "! cmp -s '$work/model_ops/model.safetensors' '$work/model_stale/model.safetensors'"
no_graphs() { SHOAL_EMULATION=graphs=0 llama 1 no_graphs --device cuda --save_model "$work/model_no_graphs" --cuda_graphs; }
check "a GPU that can capture none" no_graphs
check "... is told" contains "$work/no_graphs.log" "runtime.cuda_graphs: ops are queued one by one: GPU: a graph of ops: "
check "... and done without" cmp "$work/model_ops/model.safetensors" "$work/model_no_graphs/model.safetensors"
check "the CPU has no graphs" fails 2 "runtime.cuda_graphs: the model runs on the CPU" llama 1 cpu_graphs --device cpu --cuda_graphs

export SHOAL_EMULATION=gpus=2
check "two ranks on the CPU" llama 2 cpu2 --device cpu
check "two ranks on two GPUs, over NCCL" llama 2 nccl --device cuda --collectives nccl
check "... to the CPU's losses" losses cpu2 nccl
kinds() { SHOAL_EMULATION="gpus=2,name=NVIDIA A100-SXM4-80GB/NVIDIA H100 80GB HBM3" llama 2 "$@" --device cuda; }
different="GPUs of different kinds: rank 0 has NVIDIA A100-SXM4-80GB, rank 1 NVIDIA H100 80GB HBM3 (1 of 2 ranks"
check "two ranks on two kinds of GPU" kinds kinds
check "... to the CPU's losses" losses cpu2 kinds
check "... which is told once" [ "$(grep -cF "$different" "$work/kinds.log")" = 1 ]
check "... also where collectives go through the hosts" kinds kinds_host --collectives host
check "... once" [ "$(grep -cF "$different" "$work/kinds_host.log")" = 1 ]
check "... as nothing is of GPUs of one kind" lacks "$work/nccl.log" "different kinds"
same() { cmp "$work/model_$1/model.safetensors" "$work/model_$2/model.safetensors"; }
ordered() { # NAME SETTING FLAGS...: the fake compares the order in which ranks launch everything
    FAKE_NCCL=ordered=1,$2 llama 2 "$1" --device cuda --collectives nccl --save_model "$work/model_$1" "${@:3}"
}
check "gathers beside reduces" ordered beside ""
check "... one after the other" ordered after "" --concurrent_collectives false
check "... to the same bits" same beside after
check "... in registered memory" ordered registered registered=1 --register_buffers true
check "... of NCCL's own" contains "$work/registered.log" "the run's memory is NCCL's (ncclMemAlloc)"
check "... to the same bits" same beside registered
check "... of CUDA's, where NCCL has none" ordered refused registered=1,lends=0 --register_buffers true
check "... which is told" contains "$work/refused.log" "the run's memory is CUDA's own (cudaMalloc), which NVLink SHARP cannot use"
check "... to the same bits" same beside refused
check "... all ranks or none" fails 1 "NCCL has memory (ncclMemAlloc) for rank 0 and none for rank 1, and registers that of all ranks or of none" \
    ordered mixed lends_not=1 --register_buffers true
windows() { # NAME SETTINGS FLAGS...
    ordered "$1" "tell_windows=1,$2" --register_buffers symmetric "${@:3}"
}
ran_in_windows() { grep -E 'fake NCCL: rank 1 ran [1-9][0-9]* collectives in windows' "$work/$1.log"; } # NAME
check "... in symmetric windows" windows windows registered=1
check "... which is told" grep -E 'of [0-9]+ units ([0-9]+) are gathered and \1 reduced in symmetric windows of 0\.[0-9]* GB' "$work/windows.log"
check "... and so they ran" ran_in_windows windows
check "... to the same bits" same beside windows
check "... kept unsharded between the passes" windows windows_zero2 "" --sharding_strategy SHARD_GRAD_OP
check "... to the same bits" same beside windows_zero2
check "... without room on one rank" windows roomless lends_not=1:1
check "... which is told" contains "$work/roomless.log" "no symmetric windows: rank 1 has no room for their"
check "... to the same bits" same beside roomless
check "... without room for the second one" windows second lends_not=1:2
check "... which is told" grep -E 'of [0-9]+ units [1-9][0-9]* are gathered and 0 reduced in .*; reductions have no window: rank 1 has no room for their' \
    "$work/second.log"
check "... to the same bits" same beside second
check "... with an NCCL that registers none on one rank" windows windowless no_windows=1
check "... which is told" contains "$work/windowless.log" "no symmetric windows: rank 1's NCCL registers none"
check "... to the same bits" same beside windowless
check "... with an NCCL of before 2.27" windows old version=22605
check "... which is told" contains "$work/old.log" "no rank uses symmetric windows, since rank 0 cannot: NCCL 2.26.5 has none (2.27 or newer)"
check "... to the same bits" same beside old
check "... and with an NCCL that cannot do it" ordered before version=22500
check "... to the same bits" same beside before
SHOAL_EMULATION=gpus=2,runtime=12040,driver=12020 check "... and with a driver that cannot" ordered driver ""
check "... to the same bits" same beside driver
slots=(--parallel.reduction_slots 4)
check "four slots on two ranks, over NCCL" ordered slots "" "${slots[@]}"
check "... gathers and reduces one after the other" ordered slots_after "" "${slots[@]}" --concurrent_collectives false
check "... to the same bits" same slots slots_after
check "... in registered memory" ordered slots_registered registered=1 "${slots[@]}" --register_buffers true
check "... to the same bits" same slots slots_registered
check "... gathers in symmetric windows" windows slots_windows registered=1 "${slots[@]}"
check "... which is told" contains "$work/slots_windows.log" "are gathered and 0 reduced in symmetric windows"
check "... to the same bits" same slots slots_windows
check "... through the hosts" llama 2 slots_host --device cuda --collectives host --save_model "$work/model_slots_host" "${slots[@]}"
check "... to the same bits" same slots slots_host
# loose PAIR: without that wait of streams something else comes out, under one of a few orders.
loose() {
    local seed
    for seed in {1..20}; do
        rm -rf "$work/model_loose"
        SHOAL_EMULATION=gpus=2,seed=$seed,skip_wait=$1 ordered loose "" || return 0
        same beside loose || return 0
    done
    return 1
}
for pair in "reduces<-compute" "transfer<-compute" "transfer<-update"; do
    check "... not without a wait of streams ($pair)" loose "$pair"
done
check "two ranks as graphs" llama 2 nccl_graphs --device cuda --collectives nccl --cuda_graphs
check "... to the same losses" losses nccl nccl_graphs 0
check "two ranks of gradients on the way in bf16" llama 2 nccl16 --device cuda --reduce_dtype bf16 --sharding_strategy SHARD_GRAD_OP
check "two ranks that share a GPU" llama 2 shared --device cuda:0
check "... are told how they talk" contains "$work/shared.log" "ranks share GPUs, which NCCL cannot: collectives go through the hosts"
check "... to the CPU's losses" losses cpu2 shared
check "two ranks, slices on the host" llama 2 offload2 --device cuda --cpu_offload true --register_buffers symmetric
check "... for which there are no windows" contains "$work/offload2.log" "no symmetric windows: slices are on the host (memory.cpu_offload)"
check "... to the CPU's losses" losses cpu2 offload2
check "more ranks than GPUs are no accident" fails 2 "ranks 0 and 2 have one GPU (GPU-00000000-" llama 4 more --device cuda
export SHOAL_EMULATION=gpus=4
check "four ranks on the CPU" llama 4 cpu4 --device cpu --sharding_strategy HYBRID_SHARD --shard_group_size 2
windows_of_4() { # NAME FLAGS...
    FAKE_NCCL=tell_windows=1 llama 4 "$1" --device cuda --save_model "$work/model_$1" --register_buffers symmetric "${@:2}" &&
        ran_in_windows "$1"
}
check "HYBRID_SHARD in two groups over NCCL" llama 4 hybrid --device cuda --save_model "$work/model_hybrid" --sharding_strategy HYBRID_SHARD --shard_group_size 2
check "... to the CPU's losses" losses cpu4 hybrid
check "... in symmetric windows of each group's" windows_of_4 hybrid_windows --sharding_strategy HYBRID_SHARD --shard_group_size 2
check "... to the same bits" same hybrid hybrid_windows

# six steps at once, and in two runs
export SHOAL_EMULATION=gpus=2
for precision in no bf16-true; do
    kept=(--device cuda --mixed_precision "$precision" --decay_steps 6)
    steps=$work/steps_$precision whole=$work/whole_$precision rest=$work/rest_$precision
    check "$precision: six steps" llama 2 whole "${kept[@]}" --max_steps 6 --save_model "$whole"
    check "... four of them" llama 2 first "${kept[@]}" --max_steps 4 --checkpoint_dir "$steps" --save_steps 2
    check "... and the rest" llama 2 rest "${kept[@]}" --max_steps 6 --checkpoint_dir "$steps" --resume latest --save_model "$rest"
    check "... the same bits" cmp "$whole/model.safetensors" "$rest/model.safetensors"
done

check "the MNIST network on a GPU" shoal-agent --preset mnist --data.root /usr/share/datasets/fashion-mnist --device cuda \
    --train_size 2 --eval_size 1 --batch_size 1 --eval_batch_size 1 --epochs 1 --checkpoint_dir= --prometheus_port 0
tap_done
