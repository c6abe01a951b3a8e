#!/bin/bash
# shellcheck disable=SC2154 # tap.sh sets work
# `shoal-agent doctor` where there is no GPU, and on emulated ones from which one thing after the other is taken away: what it
# says agrees with what training does there.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
unset AGENT_RUNTIME_DEVICE
doctor() { SHOAL_EMULATION=$1 shoal-agent doctor "${@:2}"; } # SETTINGS FLAGS...
# row SETTINGS STATUS WHAT TEXT [EXIT]: that row has the status and the text, and the command that exit code.
row() {
    local output got=0
    output=$(doctor "$1") || got=$?
    printf '%s\n' "$output"
    [ "$got" -eq "${5:-0}" ] || { echo "exit code $got, not ${5:-0}"; return 1; }
    grep -E "^$2 +$3  " <<<"$output" | grep -qF -- "$4" || { echo "no row: $2 $3 ... $4"; return 1; }
}

check "its help" fails 0 "Usage: shoal-agent doctor" shoal-agent doctor --help
check "the agent's help names it" fails 0 "shoal-agent doctor" shoal-agent --help
check "an unknown option" fails 2 "--device --share_gpus --json --help" shoal-agent doctor --gpus 2
check "an unknown device" fails 2 "--device tpu: it is auto, cuda, cuda:N or cpu" shoal-agent doctor --device tpu

mkdir "$work/bin" && cp "$BUILD/shoal-agent" "$work/bin/torchrun"
check "torchrun takes it for a script" fails 2 "'doctor' is no script" "$work/bin/torchrun" doctor

# ---- no GPU: a program without a backend
without() { (unset SHOAL_CUDA_LIBRARY && cp "$BUILD/shoal-agent" "$work/agent" && "$work/agent" doctor "$@"); }
check "without a GPU training runs on the CPU" fails 0 "training can start: on the CPU, which needs nothing of NVIDIA's" without
check "... that says what the CPU has" fails 0 "GiB of memory" without
check "... a GPU that is asked for is missing" fails 2 "training cannot start: driver (missing), GPU backend (missing)" without --device cuda
check "... for the CPU nothing of NVIDIA's is looked for" answers_no grep -E "NCCL|driver" <(without --device cpu)
check "a variable that training refuses" env WORLD_SIZE=two bash -c "$(declare -f fails without); BUILD=$BUILD work=$work fails 2 'training cannot start: rendezvous' without"
interface() { MASTER_ADDR=localhost WORLD_SIZE=2 RANK=0 GLOO_SOCKET_IFNAME=$1 without; }
check "an interface that is not there" fails 2 'no network interface "eth9"' interface eth9
check "one that is" fails 0 "interface lo at 127.0.0.1, with rank 0 at localhost" interface lo
check "none is named" fails 0 "route to rank 0 at 127.0.0.1" interface ""

# ---- emulated GPUs
# shellcheck source=tests/e2e/emulated_gpu.sh
. tests/e2e/emulated_gpu.sh
check "all is there" fails 0 "training can start: on 2 GPUs" doctor gpus=2
check "... of which one was asked for" fails 0 "training can start: on 1 GPU" doctor gpus=2 --device cuda:1
check "... --check is the same" diff <(doctor gpus=2) <(SHOAL_EMULATION=gpus=2 shoal-agent --check)
check "... as the device that the environment asks for" env AGENT_RUNTIME_DEVICE=cpu SHOAL_EMULATION=gpus=2 \
    bash -c "$(declare -f fails); fails 0 'none are asked for (--device cpu)' shoal-agent doctor"
check "... each GPU" row gpus=2 ok "GPU 1" "emulated GPU, compute capability 9.0, 1.0 GiB, ECC on, at 0000:a1:00.0"
check "... each library" row gpus=2 ok cuBLASLt "13.1.0"
check "... with its path" row gpus=2 ok NCCL "2.28.9: $BUILD/emulation/libnccl.so.2"
json() { doctor gpus=2 --json | jq -e '.can_train and .device == "cuda" and ([.checks[] | select(.what == "cuDNN")][0].status == "ok")'; }
if command -v jq >/dev/null; then check "... as JSON" json; fi

check "no such GPU" fails 2 "training cannot start: GPU 7 (missing)" doctor gpus=2 --device cuda:7
seventh() { SHOAL_EMULATION=gpus=2 llama 1 seventh --device cuda:7; }
check "... training refuses the same" fails 2 "this process may see 2 GPUs" seventh
more() { (export PET_NNODES=1 PET_NPROC_PER_NODE=4 && doctor gpus=2 "$@"); }
check "more ranks than GPUs" fails 2 "training cannot start: GPUs of ranks (missing)" more
check "... that a key of the agent's asks for" env AGENT_RUNTIME_NPROC_PER_NODE=4 SHOAL_EMULATION=gpus=2 \
    bash -c "$(declare -f fails); fails 2 '4 ranks on this node share 2 GPUs' shoal-agent doctor"
check "... that may share them" fails 0 "training can start" more --share_gpus
check "... as the environment says, too" env AGENT_RUNTIME_SHARE_GPUS=true bash -c "$(declare -f fails doctor more); fails 0 'training can start' more"
check "... on the CPU" fails 0 "training can start: on the CPU" more --device cpu
check "... a rank that srun started may have a GPU of its own" env LOCAL_RANK=0 LOCAL_WORLD_SIZE=4 RANK=0 WORLD_SIZE=4 \
    bash -c "$(declare -f fails doctor); fails 0 'training can start' doctor gpus=2"

check "no cuBLASLt" row missing=libcublasLt missing cuBLASLt "pip install nvidia-cublas" 2
trains() { SHOAL_EMULATION=$1 llama 1 "$2" --device auto; } # SETTINGS NAME
check "... training refuses the same" fails 2 "matrix products on a GPU need cuBLASLt: libcublasLt.so.13" trains missing=libcublasLt no_cublaslt
check "no cuDNN" row cudnn=absent missing cuDNN "attention is done by our own kernels"
check "cuDNN too old" row cudnn=old "too old" cuDNN "cuDNN 9.9 is too old: 9.10 is needed"
check "half a cuDNN" row cudnn=half broken cuDNN "installed by half: libcudnn_graph.so.9"
half() { SHOAL_ATTENTION=cudnn SHOAL_EMULATION=cudnn=half llama 1 half --device cuda; }
check "... training goes on" half
check "no NVRTC" row missing=libnvrtc missing NVRTC "cuDNN has fewer kernels"
check "no CUPTI" row missing=libcupti missing CUPTI "a trace has no kernels"
check "NCCL too old" env FAKE_NCCL=version=20803 bash -c "$(declare -f row doctor); row gpus=2 'too old' NCCL '2.8.3 is too old: 2.14'"
check "NCCL of before 2.26" env FAKE_NCCL=version=22500 bash -c "$(declare -f row doctor); row gpus=2 warning \"NCCL's rules\" 'before NCCL 2.26.0'"
check "a driver too old" row driver=12040 "too old" driver "serves CUDA 12.4; this build needs CUDA 13.0" 2
check "no driver" row driver=0 missing driver "580.65.06 or newer"
check "a GPU too old" row gpus=2,capability=70 "too old" "GPU 1" "compute capability 7.0: at least 7.5 is needed" 2
check "a GPU for fp32 alone" row gpus=2,capability=75 warning "GPU 1" "precision.mixed_precision=no trains in fp32"
check "no code for the GPU" row built_for=80,capability=89 "too old" "GPU 0" "build it with CUDA_ARCHS=89" 2
check "no peer access" row gpus=3,peers=0 warning "peer access" "0 of 3 pairs of GPUs"

# ---- what NVML adds
if [ -e "$BUILD/fakes/libnvidia-ml.so.1" ]; then
    mkdir "$work/fakes" && ln -s "$BUILD/fakes/libnvidia-ml.so.1" "$work/fakes"
    SHOAL_CUDA_LIBRARY_PATH=$SHOAL_CUDA_LIBRARY_PATH:$work/fakes
    check "NVML's version" row gpus=2 ok NVML "550.54.15: $work/fakes/libnvidia-ml.so.1"
    check "the driver's version" row driver=12040 "too old" driver "550.54.15, serves CUDA 12.4; this build needs" 2
    check "GPUs that are not shown" row gpus=0 missing GPUs "this process sees no GPU: no CUDA-capable device is detected (NVML counts 2)" 2
    check "... nor wanted" env CUDA_VISIBLE_DEVICES= bash -c "$(declare -f row doctor); row gpus=0 missing GPUs 'NVML counts 2'"
    check "MIG without slices" env FAKE_NVML=mig bash -c "$(declare -f row doctor); row gpus=0 missing GPUs 'cut into MIG slices' 2"
    check "memory that is worn" env FAKE_NVML=broken bash -c "$(declare -f row doctor); row gpus=2 broken 'GPU 0' 'drain the node'"
    check "NVML without its driver" env FAKE_NVML=no-driver bash -c "$(declare -f row doctor); row gpus=2 broken NVML 'Driver Not Loaded'"
else
    skip "what NVML adds" "no fake of it was built"
fi
tap_done
