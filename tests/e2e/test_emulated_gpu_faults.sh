#!/bin/bash
# Bad days of an agent on emulated GPUs: each is told in one clear line, ends in the right class of exit code, reaches the
# other ranks at once, and leaves the checkpoint as it was.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/emulated_gpu.sh
. tests/e2e/emulated_gpu.sh
export SHOAL_EMULATION=gpus=2

# ---- at the start ----

FAKE_NCCL=version=20803 check "an NCCL that is too old" fails 2 "NCCL 2.8.3 is too old" llama 2 old --device cuda --collectives nccl
FAKE_NCCL=version=20803 check "... is done without" llama 2 without --device cuda
check "... in words" contains "$work/without.log" "NCCL 2.8.3 is too old"
small() { SHOAL_EMULATION=memory_mib=1 fails 1 " GB, more GPUs share the rest" llama 1 small --device cuda --train_batch_size 250; }
check "a model that cannot fit is refused" small
with() { env SHOAL_EMULATION="$1" "${@:2}"; } # SETTING COMMAND...: of the emulated GPUs
check "no GPU" fails 2 "runtime.device=cuda: this process sees no GPU" with gpus=0 shoal-agent --device cuda
check "no driver" fails 2 "runtime.device=cuda: no NVIDIA driver answers" with driver=0 shoal-agent --device cuda
check "a driver that is too old" fails 2 "the NVIDIA driver is too old: it knows CUDA 12.4" with driver=12040 shoal-agent --device cuda
check "a GPU that is too old" fails 2 "has compute capability 7.0: at least 7.5 is needed" with capability=70 shoal-agent --device cuda
too_old() { SHOAL_EMULATION=capability=70 llama 1 too_old --device auto; }
check "... and how to do without, if it was not asked for" fails 2 "at least 7.5 is needed; --device cpu trains without it" too_old
no_cublaslt() { SHOAL_EMULATION=missing=libcublasLt llama 1 no_cublaslt --device auto; }
check "... or if a library is missing" fails 2 "cuBLASLt: libcublasLt.so.13 is not emulated; --device cpu trains without it" no_cublaslt
check "a GPU this build has no code for" fails 2 "this build has no code for GPU 0" with built_for=80 shoal-agent --device cuda
nobody() { SHOAL_EMULATION=gpus=0 "$@"; }
check "auto takes the CPU where there is no GPU" nobody llama 1 auto --device auto
check "... and says so" contains "$work/auto.log" "the model runs on the CPU"

# ---- pods of one rank each ----

# pods NAME CODES SETTING SETTING FLAGS...: two of them, the first with the first setting, the second with the second; their
# exit codes are CODES ("2 2"), within two minutes (and $limit) of the test's own clock: one that is not told of the other's end
# waits for 8 or more. What they say goes to NAME.0 and NAME.1. With srun set they are tasks of one node.
pods() {
    local name=$1 codes=$2 settings=("$3" "$4") port rank gpus where pids=() got=() now began
    shift 4
    test_clock
    began=$now
    port=$(free_port 21000)
    for rank in 0 1; do
        where=(PET_NODE_RANK="$rank" PET_NNODES=2 PET_NPROC_PER_NODE=1)
        [ -z "${srun-}" ] || where=(SLURM_STEP_ID=0 SLURM_PROCID="$rank" SLURM_NTASKS=2 SLURM_LOCALID="$rank" SLURM_JOB_NUM_NODES=1
            SLURM_NODEID=0)
        gpus=$SHOAL_EMULATION
        [[ ${settings[rank]} != SHOAL_EMULATION=* ]] || gpus=${settings[rank]#*=}
        env "${where[@]}" MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" \
            "${settings[rank]}" SHOAL_EMULATION="$gpus,node=$rank" "${container[@]}" shoal-agent --model.name_or_path "$models/llama_sharded" \
            --data.dataset "$work/tokens.bin" --data.format llmc_bin --max_seq_length 16 --train_batch_size 2 --max_steps 6 \
            --lr 1e-2 --decay_steps 6 --eval_strategy no --mixed_precision no --prometheus_port 0 "$@" >"$work/$name.$rank" 2>&1 &
        pids+=($!)
    done
    for rank in 0 1; do
        wait "${pids[rank]}"
        got+=($?)
    done
    cat "$work/$name.0" "$work/$name.1"
    test_clock
    [ $((now - began)) -lt $((120 + ${limit:-0})) ] || { echo "they took $((now - began)) s"; return 1; }
    [ "${got[*]}" = "$codes" ] || { echo "exit codes ${got[*]}, not $codes"; return 1; }
}
says() { contains "$work/$1.0" "$2" && contains "$work/$1.1" "$3"; } # NAME TEXT TEXT: of the first, of the second
any=DUMMY=
container=()
check "ranks on different devices" pods devices "2 2" AGENT_RUNTIME_DEVICE=cpu AGENT_RUNTIME_DEVICE=cuda
check "... are told" contains "$work/devices.0" "rank 0 runs on cpu and rank 1 on cuda"
one=SHOAL_EMULATION=gpus=1
srun=1 check "tasks of a node that see a GPU of their own each" pods tasks "0 0" $one $one --device cuda --collectives nccl
check "ranks with different NCCLs" pods versions "2 2" FAKE_NCCL=version=22703 FAKE_NCCL=version=22809 --device cuda
check "... are told" contains "$work/versions.0" "rank 0 has NCCL 2.27.3 and rank 1 2.28.9: give all ranks the same"
check "one with a GPU that is too old" pods arch "2 2" "$any" SHOAL_EMULATION=gpus=2,capability=70 --device cuda
check "... is told of" says arch "rank 1: GPU 0 (emulated GPU) has compute capability 7.0" "rank 1: GPU 0 (emulated GPU) has"
check "one that orders no launches" pods unordered "0 0" "$any" NCCL_LAUNCH_ORDER_IMPLICIT=0 --device cuda
check "one without free memory" pods memory "1 1" "$any" SHOAL_EMULATION=gpus=2,memory_mib=1 --device cuda --train_batch_size 120
check "... is told of" says memory "rank 1: " "rank 1: "

# what breaks on the way: a checkpoint is written after each step
check "six steps" pods whole "0 0" "$any" "$any" --device cuda --save_model "$work/model_whole"
broken() { # NAME STATUS TEXT: of cudaError_t. What of rank 1 meets it hangs on how far the GPU has come by then.
    local said
    pods "$1" "138 138" "$any" SHOAL_EMULATION="gpus=2,breaks=300:$2" --device cuda --checkpoint_dir "$work/steps_$1" --save_steps 1 || return
    said=$(sed -nE "s/^shoal-agent: (GPU: [^:]+: $3.*)/\1/p" "$work/$1.1")
    [ -n "$said" ] && contains "$work/$1.0" "rank 1 failed ($said"
}
resumed() {
    pods again "0 0" "$any" "$any" --device cuda --checkpoint_dir "$work/steps_$1" --save_steps 1 --resume latest --save_model "$work/model_$1" &&
        contains "$work/again.0" "Resumed from $work/steps_$1/" && cmp "$work/model_whole/model.safetensors" "$work/model_$1/model.safetensors"
}
check "an ECC error is told to all" broken ecc 214 "uncorrectable ECC error"
check "... and the checkpoint goes on to the same bits" resumed ecc
in_place() { # without snapshots, so that both rounds meet the fault
    SHOAL_RESTART_COUNT=0 PET_MAX_RESTARTS=1 pods in_place "138 138" "$any" SHOAL_EMULATION=gpus=2,breaks=300:214 --device cuda \
        --memory_every_steps 0 &&
        [ "$(grep -c "rank 1 (.* failed at .*: exit code 138: GPU: .*: uncorrectable ECC error" "$work/in_place.1")" = 2 ]
}
check "... and names its rank also where that starts again" in_place
check "... which the other launcher does not" says in_place "a peer was lost (rank 1 failed (GPU: " "all local ranks start again, 1 of 1"
check "... nor does its own take it for a lost peer" lacks "$work/in_place.1" "a peer was lost"
check "a GPU that is lost is told to all" broken lost 999 "unknown error"
check "... and the checkpoint goes on to the same bits" resumed lost
check "a GPU that fails in the first step is one that failed, whatever met it" pods early "138 138" "$any" SHOAL_EMULATION=gpus=2,breaks=20:719 --device cuda
check "a kernel that fails is told to all" broken kernel 719 "unspecified launch failure"
check "... and the checkpoint goes on to the same bits" resumed kernel
# a number that was damaged on its way to the GPU: its readers have checked it. Whoever started again would meet it again.
label() { SHOAL_EMULATION=damages=256:37:70000 fails 2 "loss: label 5 is 70000, not within 0 .. 36: the batch is damaged" llama 1 label --device cuda; }
check "a label without a class ends the run" label
id() { SHOAL_EMULATION=damages=256:5:-3 fails 2 "embedding: id 5 is -3, not within 0 .. 36" llama 1 id --device cuda --cuda_graphs; }
check "an id without a row, too, where ops are graphs" id
again() { SHOAL_RESTART_COUNT=0 PET_MAX_RESTARTS=3 SHOAL_EMULATION=gpus=2,damages=256:5:70000 fails 2 "exit code 2: embedding: id 5 is 70000" llama 2 again --device cuda; }
check "... and nobody is started again" again
check "... in words" lacks "$work/again.log" "start again"
damaged() { pods "data_$1" "138 2" "$any" SHOAL_EMULATION=gpus=2,damages=256:5:70000 --device cuda --collectives "$1"; }
for how in nccl host; do
    check "one rank's alone, over $how" damaged $how
    check "... is told to the other" contains "$work/data_$how.0" "rank 1 failed (embedding: id 5 is 70000, not within 0 .. 36"
done
check "NCCL's error ends both" pods nccl "138 138" "$any" FAKE_NCCL=fail=1:14 --device cuda
check "... with its words" says nccl "rank 1 failed (between ranks: NCCL: remote process exited" "NCCL: remote process exited"
xid() { # FLAGS...
    SHOAL_CUDA_LIBRARY_PATH=$SHOAL_CUDA_LIBRARY_PATH:$BUILD/fakes FAKE_NVML=xid llama 1 xid --device cuda --prometheus_port "$(free_port 22000)" "$@" &&
        contains "$work/xid.log" "GPU 1 reports Xid 79: GPU has fallen off the bus"
}
leaves() {
    SHOAL_CUDA_LIBRARY_PATH=$SHOAL_CUDA_LIBRARY_PATH:$BUILD/fakes SHOAL_RESTART_COUNT=0 pods leaves "143 144" PET_MAX_RESTARTS=0 FAKE_NVML=xid=79 \
        --device cuda --checkpoint_dir "$work/steps_leaves"
}
dry() { # NAME: FAKE_NVML's
    SHOAL_CUDA_LIBRARY_PATH=$SHOAL_CUDA_LIBRARY_PATH:$BUILD/fakes FAKE_NVML=$1 llama 1 "dry_$1" --device cuda --dry_run
}
if [ -e "$BUILD/fakes/libnvidia-ml.so.1" ]; then
    check "an Xid is told" xid
    export KUBERNETES_SERVICE_HOST=127.0.0.1 # from here on in a pod, as a GPU's agent sees it
    check "... in a pod, an Xid of bad hardware ends it with a code of its own" leaves
    check "... with the reason" contains "$work/leaves.1" "bad hardware: GPU 1 reports Xid 79: GPU has fallen off the bus: restart the machine"
    check "... and nobody starts it there again" lacks "$work/leaves.1" "all local ranks start again"
    check "... after all have saved: another takes its place, and they end with the same bits" resumed leaves
    check "... unless it is to stay" xid --leave_bad_hardware false
    unset KUBERNETES_SERVICE_HOST
    check "a dry run on a GPU that the model of time knows" dry h200
    check "... predicts the time of a step" contains "$work/dry_h200.log" "Predicted for NVIDIA H200, not measured: "
    check "a dry run on another" dry ampere
    check "... does not" bash -c "! grep -q Predicted '$work/dry_ampere.log'"
else
    skip "an Xid is told, and bad hardware is left" "the fake NVML is not built"
    skip "a dry run predicts the time of a step" "the fake NVML is not built"
fi

# as a container's first process, which nobody else could end
first() {
    TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=$limit pods first "138 138" "$any" FAKE_NCCL=stop=1:7 --device cuda
}
if unshare --pid --fork true 2>/dev/null; then
    container=(unshare --pid --fork)
    check "one that is stuck as process 1 of its container is killed" longer first
    check "... which is told" grep -E "is stuck: it gave no sign of life for [0-9]+ s, and is killed" "$work/first.1"
    container=()
else
    skip "one that is stuck as process 1 of its container is killed" "this needs the right to make namespaces"
fi

# ---- the launcher's ranks ----

killed() { FAKE_NCCL=lose=1:7 fails 137 "rank 1" llama 2 killed --device cuda --max_steps 50; }
hung() {
    FAKE_NCCL=hang=1:7 NCCL_TIMEOUT=$limit TORCH_NCCL_DEBUG_INFO_TEMP_FILE=$work/trace_rank_ fails 138 "did not end within $limit s" \
        llama 2 hung --device cuda --max_steps 50
}
hung_beside() { # the second step's first gather hangs; another communicator's reduce waits beside it
    FAKE_NCCL=hang=1:22 NCCL_TIMEOUT=$limit fails 138 "did not end within $limit s" llama 2 beside --device cuda --max_steps 50
}
deaf() { FAKE_NCCL=hang=1:7,abort_hangs=1 NCCL_TIMEOUT=$limit fails 138 "did not end within $limit s" llama 2 deaf --device cuda; }
stopped() {
    FAKE_NCCL=stop=1:7 TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=$limit fails 138 "is stuck: it gave no sign of life for $limit s, and is killed" \
        llama 2 stopped --device cuda
}
for what in "a rank that is killed is seen:killed" "a collective that hangs ends the run:hung" \
    "one that hangs beside another communicator's does, too:hung_beside" "an abort that hangs does, too:deaf" \
    "a rank that is stuck is killed:stopped"; do
    check "${what%:*}" longer "${what#*:}"
done
check "what it did last is told" grep -qE "and is killed; it was in phase .* at step [0-9]+; its last collective: [0-9]+, " "$work/stopped.log"
check "... and what the kernel says of it" grep -qE "rank 1, process [0-9]+, as the kernel shows it:" "$work/stopped.log"
check "what hung is told" contains "$work/trace_rank_0" "runs for"
check "... what waited beside it, too" contains "$work/beside.log" "reduce_scatter 3 of nccl.0:0, 8736 bytes: runs for"
tap_done
