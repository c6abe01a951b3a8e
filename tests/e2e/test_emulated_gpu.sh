#!/bin/bash
# The real agent on an emulated GPU (tests/emulation): it trains to the CPU's losses, alone and over a fake NCCL or
# through the hosts, resumes to the same bits, and is told of what goes wrong.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
export SHOAL_CUDA_LIBRARY=$BUILD/emulation/libshoal_cuda.so SHOAL_CUDA_LIBRARY_PATH=$BUILD/emulation
[ -e "$SHOAL_CUDA_LIBRARY" ] || { skip "training on an emulated GPU" "this build has none"; tap_done; }
models=$PWD/tests/data/pretrained

# a llm.c token file: 256 int32 of header (magic, version, tokens), then 16-bit tokens 0 .. 31
le32() { printf '%b' "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255)))"; }
{
    le32 20240520
    le32 1
    le32 4096
    head -c 1012 /dev/zero
    head -c 4096 /dev/zero | od -An -v -tu1 -w1 | awk '{printf "%c%c", 64 + (NR * NR + NR % 3) % 32, 0}' | tr '\100-\137' '\000-\037'
} >"$work/tokens.bin"

# llama RANKS NAME FLAGS...: a few steps of a tiny Llama; losses go to NAME.csv, all else to NAME.log.
llama() {
    local ranks=$1 name=$2
    shift 2
    shoal-agent --standalone --nproc_per_node "$ranks" --model.name_or_path "$models/llama_sharded" --data.dataset "$work/tokens.bin" \
        --data.format llmc_bin --max_seq_length 16 --train_batch_size 2 --max_steps 3 --eval_strategy no --lr 1e-2 \
        --mixed_precision no --logging_steps 1 --prometheus_port 0 --csv "$work/$name.csv" "$@" >"$work/$name.log" 2>&1 ||
        { local code=$?; cat "$work/$name.log"; return "$code"; }
}
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
check "slices on the host, activations too" llama 1 offload --device cuda --cpu_offload true --offload_activations true \
    --activation_checkpointing full
check "... to the CPU's losses" losses cpu offload

export SHOAL_EMULATION=gpus=2
check "two ranks on the CPU" llama 2 cpu2 --device cpu
check "two ranks on two GPUs, over NCCL" llama 2 nccl --device cuda --collectives nccl
check "... to the CPU's losses" losses cpu2 nccl
same() { cmp "$work/model_$1/model.safetensors" "$work/model_$2/model.safetensors"; }
ordered() { # NAME SETTING FLAGS...: the fake compares the order in which ranks launch everything
    FAKE_NCCL=ordered=1,$2 llama 2 "$1" --device cuda --collectives nccl --save_model "$work/model_$1" "${@:3}"
}
check "gathers beside reduces" ordered beside ""
check "... one after the other" ordered after "" --concurrent_collectives false
check "... to the same bits" same beside after
check "... and with an NCCL that cannot do it" ordered before version=22500
check "... to the same bits" same beside before
for pair in "reduces<-compute" "compute<-reduces" "transfer<-compute"; do
    loose() { rm -rf "$work/model_loose"; SHOAL_EMULATION=gpus=2,skip_wait=$pair ordered loose "" && ! same beside loose; }
    check "... not without a wait of streams ($pair)" loose
done
check "two ranks of gradients on the way in bf16" llama 2 nccl16 --device cuda --reduce_dtype bf16 --sharding_strategy SHARD_GRAD_OP
check "two ranks that share a GPU" llama 2 shared --device cuda:0
check "... are told how they talk" contains "$work/shared.log" "ranks share GPUs, which NCCL cannot: collectives go through the hosts"
check "... to the CPU's losses" losses cpu2 shared
check "two ranks, slices on the host" llama 2 offload2 --device cuda --cpu_offload true
check "... to the CPU's losses" losses cpu2 offload2
check "more ranks than GPUs are no accident" fails 2 "4 ranks on this node, but 2 GPUs" llama 4 more --device cuda
export SHOAL_EMULATION=gpus=4
check "four ranks on the CPU" llama 4 cpu4 --device cpu --sharding_strategy HYBRID_SHARD --shard_group_size 2
check "HYBRID_SHARD in two groups over NCCL" llama 4 hybrid --device cuda --sharding_strategy HYBRID_SHARD --shard_group_size 2
check "... to the CPU's losses" losses cpu4 hybrid

# six steps at once, and in two runs
export SHOAL_EMULATION=gpus=2
check "six steps" llama 2 whole --device cuda --max_steps 6 --save_model "$work/model_whole" --decay_steps 6
check "four of them" llama 2 first --device cuda --max_steps 4 --checkpoint_dir "$work/steps" --save_steps 2 --decay_steps 6
check "... and the rest" llama 2 rest --device cuda --max_steps 6 --checkpoint_dir "$work/steps" --resume latest \
    --save_model "$work/model_rest" --decay_steps 6
check "the same bits" cmp "$work/model_whole/model.safetensors" "$work/model_rest/model.safetensors"

# what goes wrong
killed() { FAKE_NCCL=lose=1:7 fails 137 "$1" llama 2 killed --device cuda --max_steps 50; }
check "a rank that is killed is seen" timeout 60 bash -c "$(declare -f fails llama killed); $(declare -p work models); killed 'rank 1'"
hung() {
    FAKE_NCCL=hang=1:7 NCCL_TIMEOUT=2 TORCH_NCCL_DEBUG_INFO_TEMP_FILE=$work/trace_rank_ fails 138 "did not end within 2 s" \
        llama 2 hung --device cuda --max_steps 50
}
check "a collective that hangs ends the run" timeout 60 bash -c "$(declare -f fails llama hung); $(declare -p work models); hung"
check "... and is told" contains "$work/trace_rank_0" "runs for"
FAKE_NCCL=version=20803 check "an NCCL that is too old" fails 2 "NCCL 2.8.3 is too old" llama 2 old --device cuda --collectives nccl
FAKE_NCCL=version=20803 check "... is done without" llama 2 without --device cuda
check "... in words" contains "$work/without.log" "NCCL 2.8.3 is too old"
# unlike NAME TEXT SETTING SETTING: two ranks that are started apart, rank 0 with the first setting, rank 1 with the second.
unlike() {
    local name=$1 text=$2 port rank settings=("$3" "$4")
    port=$(free_port 21000)
    for rank in 1 0; do
        env RANK="$rank" WORLD_SIZE=2 LOCAL_RANK="$rank" LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" \
            "${settings[rank]}" shoal-agent --model.name_or_path "$models/llama_sharded" --data.dataset "$work/tokens.bin" \
            --data.format llmc_bin --max_seq_length 16 --train_batch_size 2 --max_steps 3 >"$work/$name.$rank" 2>&1 &
    done
    wait
    contains "$work/$name.0" "$text"
}
check "ranks on different devices are told" unlike devices "rank 0 runs on cpu and rank 1 on cuda" \
    AGENT_RUNTIME_DEVICE=cpu AGENT_RUNTIME_DEVICE=cuda
check "ranks with different NCCLs are told" unlike versions "rank 0 has NCCL 2.27.3 and rank 1 2.28.9: give all ranks the same" \
    FAKE_NCCL=version=22703 FAKE_NCCL=version=22809
small() { SHOAL_EMULATION=memory_mib=1 fails 1 "GB are missing; try a smaller" llama 1 small --device cuda --train_batch_size 250; }
check "a model that cannot fit is refused" small
nobody() { SHOAL_EMULATION=gpus=0 "$@"; }
check "no GPU" nobody fails 2 "runtime.device=cuda: " llama 1 none --device cuda
check "auto then takes the CPU" nobody llama 1 auto --device auto
check "... and says so" contains "$work/auto.log" "the model runs on the CPU"

check "the MNIST network on a GPU" shoal-agent --preset mnist --data.root /usr/share/datasets/fashion-mnist --device cuda \
    --train_size 2 --eval_size 1 --batch_size 1 --eval_batch_size 1 --epochs 1 --checkpoint_dir= --prometheus_port 0
tap_done
