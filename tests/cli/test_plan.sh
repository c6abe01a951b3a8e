#!/bin/bash
# shoal plan: the published sizes, wrong input, and that a run then shows the numbers that were planned.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
data=/usr/share/datasets/fashion-mnist

# has TEXT OPTION...: a line of the plan for the options has the text.
has() {
    local text=$1
    shift
    shoal plan "$@" >"$work/plan" && contains "$work/plan" "$text"
}

while read -r preset parameters; do
    check "$preset has its parameters" has "$parameters parameters" --preset="$preset"
done <<EOT
mnist 1,199,882
gpt2 124,439,808
llama-single-gpu 172,508,160
llama3.2-1b 1,235,814,400
llama3.2-3b 3,212,749,824
llama2-7b 6,738,415,616
llama3-8b 8,030,261,248
llama3.1-70b 70,553,706,496
EOT
check "flags of a model are taken" has "1,154,549,760 parameters in 19 units" --preset=hyperpod --gpus=8 \
    --hidden_width=2048 --num_layers=16 --num_heads=32 --num_key_value_heads=2 --intermediate_size=8192
check "the configured strategy is marked" has "* HYBRID_SHARD " --preset=llama3-8b --gpus 16 --sharding_strategy=hybrid
check "the guide's advice is given" has "Advice for 1B to 10B parameters: --sharding_strategy=SHARD_GRAD_OP" \
    --preset=llama3-8b
check "... without a strategy that the plan shows to need more" has \
    "Advice for 1B to 10B parameters: --offload_activations=0, 4 to 8 GPUs per node, 1 to 2 nodes (SHARD_GRAD_OP would need 17.338 GB more)" \
    --preset=llama3-8b --gpus=8
check "... but with one that it shows to need less" has "Advice for 1B to 10B parameters: --sharding_strategy=SHARD_GRAD_OP" \
    --preset=llama3-8b --gpus=8 --sharding_strategy=NO_SHARD
less_recompute="is faster, backward computing nothing again, and takes"
check "what GPUs hold need not be computed again" has \
    "--activation_checkpointing=none $less_recompute 62.157 GB per rank: GPUs of 80 GB have that" \
    --preset=hyperpod,llama3-8b --max_seq_length=8192 --train_batch_size=1 --gpus=8
check "... in part" has "--activation_checkpointing=selective is faster, backward computing less again, and takes" \
    --preset=hyperpod,llama3-8b --max_seq_length=8192 --train_batch_size=2 --gpus=8
silent() { answers_no has "is faster, backward computing" "$@"; }
check "... which is not said of what they do not" silent --preset=hyperpod,llama3-8b --max_seq_length=8192 --gpus=1
check "... nor where nothing is computed again" silent --preset=llama3-8b --max_seq_length=8192 --gpus=8
check "FLOPs are told by both counts" has "591.5 TFLOP (causal), 697 TFLOP (full attention)" --preset=llama3.2-1b \
    --gpus=8 --max_context_width=8192

# saving OPTION: the gigabytes that the plan of the wiki's recipe says it saves, and those that a plan with it has less.
recipe=(--preset=fabric --devices=4 --max_seq_length=8192)
on_device() { shoal plan "${recipe[@]}" "$@" 2>/dev/null | awk '/^\* FULL_SHARD/ { print $9 }'; }
saving() {
    shoal plan "${recipe[@]}" 2>/dev/null | grep -oF -- "$1 saves " >/dev/null || return
    local said whole part
    said=$(shoal plan "${recipe[@]}" 2>/dev/null | grep -o -- "$1 saves [0-9.]*" | grep -o '[0-9.]*$')
    whole=$(on_device) part=$(on_device "$1")
    [ "$(awk "BEGIN { printf \"%.3g\", $whole - $part }")" = "$said" ] || { echo "$said, but $whole and $part"; return 1; }
}
check "what saves memory is computed: accumulation" saving --accumulation_sync=every
check "... and recomputation" saving --activation_checkpointing=full
check "... the most first" has "on its device: --activation_checkpointing=full saves 35.3 GB, --accumulation_sync=every saves" "${recipe[@]}"

check "a preset that is none is refused" fails 2 "llama3.2-1b" shoal plan --preset=llama9
check "a number that is none is refused" fails 2 "--gpus many: must be a whole number" shoal plan --gpus many
check "groups that do not divide the ranks are refused" fails 2 "do not divide 12 ranks" \
    shoal plan --preset=gpt2 --gpus=12 --shard_group_size=8 --sharding_strategy=hybrid
check "an option that is none is refused" fails 2 "no_such_option" shoal plan --strict --no_such_option=1
check "what recommend does not do is refused" fails 2 "--json: shoal recommend has text only" \
    shoal recommend --preset=gpt2 --json
check "a number of nodes that is none is refused" fails 2 "runtime.nnodes: '4:2' is not a number of nodes" \
    shoal plan --preset=gpt2 --nnodes=4:2
check "of MIN:MAX nodes MIN are planned" has "6 ranks" --preset=gpt2 --nnodes=2:4 --nproc_per_node=3
check "... and what memory takes with so few is told, of more" has \
    "With 6 ranks, the fewest there may be, checkpoints in memory take 0.498 GB per rank on the host, and 0.249 GB more while they are cut anew" \
    --preset=gpt2 --nnodes=2:4 --nproc_per_node=3 --gpus=12
check "... but not where their number stays" test "$(shoal plan --preset=gpt2 --gpus=12 | grep -c 'the fewest there may be')" -eq 0
check "accelerate's processes are all" has "6 ranks" --preset=gpt2 --num_processes=6 --num_machines=2
check "what only the nodes know is told" contains <(shoal plan --preset=gpt2 --nnodes=2 --nproc_per_node=auto 2>&1) \
    "planned is one rank on each, 2 in all; --gpus says how many"
check "--help tells of it" fails 0 "--gpus-per-node" shoal plan --help
kept() { shoal plan --preset=mnist --gpus=2 --json "$@" | grep -o '"memory_checkpoint_bytes":[0-9]*' | sort -u | tr '\n' ' '; }
check "who begins anew keeps no checkpoints in memory" test "$(kept --auto_resume=false)" = '"memory_checkpoint_bytes":0 '
check "... but who resumes does" test "$(kept --auto_resume=false --resume=latest --checkpoint_dir=ckpt)" = "$(kept)"
full() { # COMMAND...
    fails 1 "write to stdout: " eval "$* >/dev/full"
}
check "a plan that cannot be written is no success" full shoal plan --preset=gpt2
check "nor is the agent's" full shoal-agent --dry_run --preset=mnist --data.root=$data
check "nor is its help" full shoal-agent --help
check "nor the operator's" full shoal-operator --help
check "nor a version" full shoal-operator --version

# planned STRATEGY FIELD: a number of the configured strategy.
planned() {
    shoal plan --preset=mnist --gpus=2 --json "${@:2:1}" --sharding_strategy="$1" |
        grep -o '"configured":true[^}]*' | grep -o "\"$3\":[0-9]*" | cut -d: -f2
}
# shown KIND: peak bytes of that kind as the run told them.
shown() { grep '^Peak memory' "$work/run" | grep -o " $1 [0-9]*" | cut -d' ' -f3; }

# as_planned STRATEGY WRAP: memory of a run by two ranks is what was planned, to the byte.
as_planned() {
    local wrap=--auto_wrap_policy=$2
    shoal-agent --preset=mnist --nproc_per_node=2 --data.root="$data" --train_size=16 --eval_size=8 --batch_size=4 \
        --epochs=1 "$wrap" --sharding_strategy="$1" >"$work/run" || return 1
    cat "$work/run"
    [ "$(shown shard)" = "$(planned "$1" "$wrap" value_bytes)" ] &&
        [ "$(shown unit)" = "$(planned "$1" "$wrap" gathered_bytes)" ] &&
        [ "$(shown optimizer)" = "$(planned "$1" "$wrap" optimizer_bytes)" ] &&
        [ "$(shown gradient)" = $(($(planned "$1" "$wrap" gradient_bytes) + $(planned "$1" "$wrap" whole_gradient_bytes))) ]
}
check "a run has the memory that was planned: FULL_SHARD, one unit" as_planned FULL_SHARD NO_WRAP
check "a run has the memory that was planned: FULL_SHARD, two units" as_planned FULL_SHARD SIZE_BASED_WRAP
check "a run has the memory that was planned: SHARD_GRAD_OP" as_planned SHARD_GRAD_OP SIZE_BASED_WRAP
check "a run has the memory that was planned: NO_SHARD" as_planned NO_SHARD NO_WRAP

# A small Llama: memory and traffic of each strategy, by four ranks in groups of two.
llama=(--preset=llama-single-gpu --hidden_width=64 --num_layers=4 --num_heads=4 --num_key_value_heads=2
    --intermediate_size=160 --vocab_size=704 --max_context_width=64 --batch_size=2 --mixed_precision=no
    --shard_group_size=2 --max_steps=2 --eval_strategy=no --dataset="$work/text.jsonl"
    --tokenizer=tests/data/tokenizers/llama2_metaspace)
seq -f '{"text": "the quick brown fox %g jumps over the lazy dog and runs away from it"}' 200 >"$work/text.jsonl"

# field NAME: a number of the configured strategy of the plan in $work/plan.
field() { grep -o '"configured":true[^}]*' "$work/plan" | grep -o "\"$1\":[0-9]*" | cut -d: -f2; }
# is PLANNED SHOWN: to the byte.
is() {
    echo "planned $1, shown $2"
    [ "$2" = "$1" ]
}
# near PLANNED SHOWN MOST: as planned, but for the sums of losses and norms.
near() {
    echo "planned $1, shown $2"
    [ "$2" -ge "$1" ] && [ "$2" -le $(($1 + $3)) ]
}
llama_as_planned() { # STRATEGY FLAG...
    local sent sums=256
    [[ "$*" != *reduction_slots* ]] || sums=768 # a norm that knows no order is 18 numbers (kernels/exact_sum.h)
    rm -f "$work/steps"
    shoal plan "${llama[@]}" --gpus=4 --json --sharding_strategy "$@" >"$work/plan" || return 1
    shoal-agent "${llama[@]}" --nproc_per_node=4 --prometheus_port=0 --jsonl="$work/steps" --sharding_strategy "$@" \
        >"$work/run" || return 1
    mapfile -t sent < <(grep -o '"collective_bytes":[0-9]*' "$work/steps" | cut -d: -f2)
    is $(($(field value_bytes) + $(field master_bytes))) "$(shown shard)" &&
        is "$(field gathered_bytes)" "$(shown unit)" &&
        is "$(field optimizer_bytes)" "$(shown optimizer)" &&
        is $(($(field gradient_bytes) + $(field whole_gradient_bytes))) "$(shown gradient)" &&
        near $(($(field sent_in_group_bytes) + $(field sent_between_groups_bytes))) $((sent[1] - sent[0])) "$sums"
}
for strategy in FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD HYBRID_SHARD_ZERO2; do
    check "a Llama has the memory and the traffic that were planned: $strategy" llama_as_planned "$strategy"
    check "... with reduction slots" llama_as_planned "$strategy" --parallel.reduction_slots=4
done
while read -r flags; do
    # shellcheck disable=SC2086 # the flags are words
    check "so it has with --sharding_strategy=$flags" llama_as_planned $flags
done <<'END'
FULL_SHARD --mixed_precision=bf16
SHARD_GRAD_OP --mixed_precision=bf16 --reduce_dtype=bf16
NO_SHARD --mixed_precision=bf16 --reduce_dtype=bf16
FULL_SHARD --mixed_precision=bf16 --reduce_dtype=bf16 --accumulation_sync=every --gradient_accumulation_steps=2
HYBRID_SHARD --mixed_precision=bf16-true --reduce_dtype=bf16
FULL_SHARD --mixed_precision=bf16-true --accumulation_sync=every --gradient_accumulation_steps=2
FULL_SHARD --mixed_precision=bf16-true --optim=sgd --momentum=0.9
SHARD_GRAD_OP --mixed_precision=bf16-true --optim=adadelta
HYBRID_SHARD_ZERO2 --mixed_precision=bf16 --reduce_dtype=bf16 --gradient_accumulation_steps=2
FULL_SHARD --parallel.reduction_slots=7 --mixed_precision=bf16 --reduce_dtype=bf16
NO_SHARD --parallel.reduction_slots=5
NO_SHARD --parallel.reduction_slots=4 --accumulation_sync=every --gradient_accumulation_steps=2
HYBRID_SHARD --shard_group_size=1 --parallel.reduction_slots=4 --accumulation_sync=every --gradient_accumulation_steps=2
END

# ---- time on a GPU, predicted: nothing below runs on a device ----
unset AGENT_RUNTIME_DEVICE

in_windows() { shoal plan --preset=gpt2 --gpus 8 --register_buffers symmetric --json "$@" | grep -q '"window_bytes":[1-9]'; }
check "symmetric windows have their bytes" in_windows
check "... not where collectives go through the hosts" answers_no in_windows --collectives host

llama_1b=(--preset=llama3.2-1b --max_seq_length=8192 --grad_clip=1)
timed() { # TEXT OPTION...: a line of the plan of time has the text
    local text=$1
    shift
    shoal plan "${llama_1b[@]}" --device h100 "$@" >"$work/plan" && contains <(sed -n '/^Predicted/,$p' "$work/plan") "$text"
}
check "it is told that nothing was measured" timed "Predicted for 1 x NVIDIA H100 80GB HBM3 by a model of its kernels (docs/gpu.md); not measured:"
for kind in "matrix products" "attention forward" "attention backward" "memory-bound kernels" optimizer "launch gaps" "a step"; do
    check "milliseconds: $kind" timed "  $kind "
done
check "tokens per second, and MFU" grep -qE '^[0-9]+ tokens/s per GPU \([0-9]+ to [0-9]+\); MFU [0-9.]+ % \(causal\)' "$work/plan"
check "... and in all" timed " in all; MFU" --gpus 8
check "exposed communication within a node" timed "Collectives: 25.7 ms per step at 340.0 GB/s per rank within a node, " --gpus 8
check "... between nodes" timed " at 45.5 GB/s per rank between nodes, " --gpus 8 --gpus-per-node 1
check "... over the network that is given" timed " at 9.1 GB/s per rank between nodes, " --gpus 8 --gpus-per-node 1 --network 10e9
check "no price, no cost" bash -c "! shoal plan --preset=gpt2 --device h100 | grep -q 'per GPU and hour'"
check "the cost of a billion tokens" timed "At 3.6 per GPU and hour: " --price-per-gpu-hour 3.6
# 3.6 an hour is 0.001 a second
cost_is_right() {
    awk '/ tokens\/s per GPU/ { rate = $1 } /per GPU and hour/ { cost = $7 }
        END { exit !(rate > 0 && cost / (1e6 / rate) > 0.999 && cost / (1e6 / rate) < 1.001) }' "$work/plan"
}
check "... is its time's price" cost_is_right
check "what is faster: no recomputation where memory allows it" timed "--activation_checkpointing=none " --activation_checkpointing=full
check "... a larger batch" timed "twice --train_batch_size "
check "... less cutting" timed "--sharding_strategy=SHARD_GRAD_OP " --device a100 --gpus 16 --gpus-per-node 1
check "... bf16" timed "--mixed_precision=bf16 " --mixed_precision=no
check "... sums of cuDNN's in any order" timed "--deterministic=false "
check "... not with slots, which refuse it" timed "Not to be had here: --deterministic=false (--parallel.reduction_slots refuses it)" \
    --parallel.reduction_slots=2
check "... fp8, with what it saves and gives up" grep -qE \
    '^  --precision.fp8=true .* ms less \(matrix products [0-9.]+\); another numerics: compare losses first$' \
    <(shoal plan "${llama_1b[@]}" --device h100)
# fp8_as_planned OPTION...: the advice for fp8 is what the plan with it gives, in bytes and samples/s
fp8_as_planned() {
    python3 - <(shoal plan "$@" --json) <(shoal plan "$@" --json --precision.fp8=true) <<'END'
import json, sys
now, then = (json.load(open(path)) for path in sys.argv[1:])
row = next(a for a in now["time"]["faster"] if a["setting"] == "--precision.fp8=true")
gain = then["time"]["samples_per_second"] / now["time"]["samples_per_second"] - 1
size = next(s["device_bytes"] for s in then["strategies"] if s["configured"])
assert abs(row["device_bytes"] / size - 1) < 1e-8 and abs(row["gain"] - gain) < 1e-8, (row, size, gain)
END
}
check "... as the plan with it says, of one GPU" fp8_as_planned "${llama_1b[@]}" --device h100
check "... and of eight, which gather in fp8" fp8_as_planned --preset=llama3-8b --gpus 8 --max_seq_length=8192 --device h100
check "... not where there is none" timed "--precision.fp8=true (it needs compute capability 8.9)" --device a100
check "... nor where it loses" grep -qE '^Gains less than 1 %:.* --precision.fp8=true \(-[0-9.]+ %\)' <(shoal plan --preset=gpt2 --device h100)
check "... but to be without it" grep -qE '^  --precision.fp8=false +\+' <(shoal plan --preset=gpt2 --precision.fp8=true --device h100)
check "... nor of layers that it cannot multiply" contains <(shoal plan --preset=gpt2 --device h100 --hidden_width=72 --num_heads=9) \
    "--precision.fp8=true (sizes of layers are no multiples of 16)"
check "... the optimizer beside the next pass" timed "--overlap_optimizer=true " --overlap_optimizer=false
check "... or why not" timed "--overlap_optimizer=true (not with --cuda_graphs)" --overlap_optimizer=false --cuda_graphs
check "... graphs, or none" timed " --cuda_graphs=false" --cuda_graphs
check "... less recomputation where none does not fit" grep -qE '^  --activation_checkpointing=selective ' \
    <(shoal plan --preset=llama3-8b --gpus 8 --max_seq_length=8192 --batch_size=2 --activation_checkpointing=full --device h100)
check "... other attention, and that nobody has seen it run" grep -qE '^  SHOAL_ATTENTION=hopper .*; no GPU has run it$' \
    <(shoal plan "${llama_1b[@]}" --device h100)
check "... not what it cannot do" contains <(shoal plan --preset=gpt2 --dropout=0.1 --device h100) \
    "SHOAL_ATTENTION=hopper (it is for bf16, heads 64 or 128 wide, no dropout and no bias)"
by_attention="Attention forward and backward, by SHOAL_ATTENTION: ours [0-9.]+ and [0-9.]+ ms, cudnn [0-9.]+ and [0-9.]+ ms"
unknown="backward as ours: its speed with equal bits is not known"
check "attention by who does it" grep -qE "^$by_attention \($unknown\), hopper [0-9.]+ and [0-9.]+ ms \(no GPU has run it\)$" \
    <(shoal plan "${llama_1b[@]}" --device h200)
check "... backward in any order, too" grep -qE "^$by_attention, hopper" <(shoal plan "${llama_1b[@]}" --device h200 --deterministic=false)
check "... and what is not known of cuDNN is told beside its advice" grep -qE "^  SHOAL_ATTENTION=cudnn .*; $unknown$" \
    <(SHOAL_ATTENTION=ours shoal plan "${llama_1b[@]}" --device h100)
forward_alone='"cudnn":{"forward_ms":[0-9.]*}'
check "... and has no number in JSON" grep -q "$forward_alone" <(shoal plan "${llama_1b[@]}" --device h100 --json)
check "... where it is known it has" answers_no grep -q "$forward_alone" <(shoal plan "${llama_1b[@]}" --device h100 --deterministic=false --json)
check "... which has no choice on an A100" answers_no grep -q "by SHOAL_ATTENTION" <(shoal plan "${llama_1b[@]}" --device a100)
hopper() { SHOAL_ATTENTION=hopper shoal plan "${llama_1b[@]}" "$@"; }
check "what is asked for is planned" test "$(hopper --device h100 | awk '/^  attention backward/ { print $3 }')" = \
    "$(shoal plan "${llama_1b[@]}" --device h100 | sed -n 's/.*, hopper [0-9.]* and \([0-9.]*\) ms.*/\1/p')"
check "... and refused where it cannot be had" fails 2 "SHOAL_ATTENTION=hopper is for compute capability 9.0: the GPU has 8.0" hopper --device a100
shoal plan --preset=llama3-8b --gpus 8 --max_seq_length=8192 --device h100 | grep '^Does not fit: ' >"$work/too_large"
check "... nothing that does not fit" bash -c \
    "! shoal plan --preset=llama3-8b --gpus 8 --max_seq_length=8192 --device h100 | grep -q '^  --sharding_strategy=NO_SHARD '"
check "... of which it is told how large it would be" contains "$work/too_large" ", --sharding_strategy=NO_SHARD (184.821 GB)"
bert() { shoal plan --preset=bert-base --head "$1" --batch_size 32 --max_seq_length 128 --device h100 | awk '/s per GPU/ { print $1 }'; }
check "classes have no head of the vocabulary's size" [ "$(bert sequence_classification)" -gt "$(bert masked_lm)" ]
check "images have images per second" contains <(shoal plan --preset=mnist --batch_size=64 --device l40s) " images/s per GPU"
check "a plan that does not fit says so" contains <(shoal plan --preset=llama3-8b --gpus 8 --max_seq_length=8192 --device l40s) \
    "It does not fit: the plan takes 62.157 GB of a GPU, which has 48.3 GB"
check "... and what would" contains <(shoal plan --preset=llama3-8b --gpus 8 --max_seq_length=8192 --device l40s | sed -n '/^What fits/,$p') \
    "  --activation_checkpointing=full "
shoal plan "${llama_1b[@]}" --device h100 --json --price-per-gpu-hour=2 >"$work/plan"
for key in '"device":"h100"' '"measured":false' '"fits":true' '"step_ms":' '"attention_backward":' '"cost_per_billion_tokens":' '"faster":[{' \
    '"attention":{"ours":{"forward_ms":' '"not_advised":[{' '"saved_ms":' '"note":"no GPU has run it"'; do
    check "JSON has $key" contains "$work/plan" "$key"
done
check "... and is JSON" python3 -c 'import json, sys; json.load(open(sys.argv[1]))["time"]["ms"]["optimizer"]' "$work/plan"
check "without a GPU's name there is none" bash -c "! shoal plan --preset=gpt2 --json | grep -q '\"time\"'"
# Without any recomputation or offloading where that fits, by the same model.
overlay_is_fast() { # NAME GPUS
    local args
    mapfile -t args < <(sed -n 's/^ *- \(--[^ ]*\).*/\1/p' "kustomize/overlays/$1/pytorchjob.yaml")
    shoal plan "${args[@]}" --gpus "$2" --gpus-per-node 8 --device h100 --json >"$work/overlay"
    grep -q '"fits":true' "$work/overlay" &&
        answers_no grep -qE '"setting":"--(activation_checkpointing|offload)' <(sed 's/"not_advised".*//' "$work/overlay")
}
check "overlay llama3-1b computes nothing twice" overlay_is_fast llama3-1b 16
check "... nor does llama3-8b" overlay_is_fast llama3-8b 32
check "... nor llama-single-gpu" overlay_is_fast llama-single-gpu 1
check "... nor gpt2" overlay_is_fast gpt2 8
check "the agent's own --device is the agent's" bash -c "! shoal plan --preset=gpt2 --device cuda | grep -q Predicted"
check "a GPU that is not in the table is refused with the nearest and the list" fails 2 \
    "--device: 'h1oo0' is not one of: h100 h200 a100 b200 l40s t4" shoal plan --preset=gpt2 --device h1oo0
check "... with the nearest" fails 2 "--device: 'v100' (the nearest is h100) is not one of: " shoal plan --preset=gpt2 --device=v100
no_bf16="Tesla T4 has compute capability 7.5, and bf16 needs 8.0: set precision.mixed_precision=no, and it trains in fp32"
for precision in auto bf16 bf16-true; do
    check "a T4 has no bf16: $precision is refused" fails 2 "--device: $no_bf16" shoal plan --preset=gpt2 --device t4 --mixed_precision=$precision
done
t4() { shoal plan --preset=gpt2 --device "Tesla T4" --mixed_precision no >"$work/t4"; }
check "... its time in fp32 is planned" t4
check "... which is told" contains "$work/t4" " tokens/s per GPU"
check "... and bf16 is not advised" contains "$work/t4" "Not to be had here: --mixed_precision=bf16 (it needs compute capability 8.0)"
# without an end, or no number at all
all_finite() { answers_no grep -iwE -- '-?(inf|infinity|nan)' "$1"; }
check "... nor is anything infinite" all_finite "$work/t4"
# the machine's own GPU: FLAG...
on_a_t4() {
    FAKE_NVML=t4 SHOAL_CUDA_LIBRARY=$BUILD/emulation/libshoal_cuda.so SHOAL_CUDA_LIBRARY_PATH=$BUILD/emulation:$BUILD/fakes \
        SHOAL_EMULATION="capability=75,name=Tesla T4" shoal-agent --dry_run --preset=gpt2 --tokenizer=tests/data/tokenizers/llama2_metaspace "$@" \
        >"$work/t4" 2>&1
}
if [ -e "$BUILD/emulation/libshoal_cuda.so" ] && [ -e "$BUILD/fakes/libnvidia-ml.so.1" ]; then
    check "a dry run in bf16 on a T4" on_a_t4
    check "... says that it would fail, and what to set" contains "$work/t4" "the run would fail: $no_bf16"
    check "... and predicts no time" lacks "$work/t4" "Predicted"
    check "... least of all an infinite one" all_finite "$work/t4"
    check "a dry run in fp32 on a T4" on_a_t4 --mixed_precision no
    check "... predicts its time" contains "$work/t4" "Predicted for Tesla T4, not measured: "
    check "... all of it finite" all_finite "$work/t4"
else
    skip "a dry run on a T4" "this build has no emulated GPU or no fake NVML"
fi
t4_does_not_hold() { shoal plan --preset=llama3.2-1b --device t4 --mixed_precision no --max_context_width=8192 "$@" >"$work/t4"; }
for form in --gpus=1 --gpus=8 --json; do
    check "what a T4 cannot hold is planned, too: $form" t4_does_not_hold $form
    check "... all of it finite" all_finite "$work/t4"
done
check "a CPU's configuration is refused" fails 2 "--device h100: the configuration has runtime.device cpu" \
    shoal plan --preset=gpt2 --device h100 --runtime.device=cpu
check "a price without a GPU is refused" fails 2 "--price-per-gpu-hour: needs --device" shoal plan --preset=gpt2 --price-per-gpu-hour 2
check "so is a network" fails 2 "--network: needs --device" shoal plan --preset=gpt2 --device cpu --network 5e9
check "a sample that is longer than the model takes is refused" fails 2 "data.max_seq_length: 2048 tokens, but the model has only 1024 positions" \
    shoal plan --preset=gpt2 --max_seq_length 2048
rope() { shoal plan --preset=llama2-7b --rope_type "$1" --rope_scaling.factor 2 --max_seq_length 8192; }
for type in linear dynamic; do
    check "... by no more than its $type rope stretches it" rope "$type"
done
check "... which Llama 3's does not" fails 2 "the model has only 4096 positions" shoal plan --preset=llama2-7b --max_seq_length 8192
for price in -1 0 nan inf 1e308; do
    check "so is the price $price" fails 2 "--price-per-gpu-hour $price: must be a number from" \
        shoal plan --preset=gpt2 --device h100 --price-per-gpu-hour $price
done
check "a network that would take for ever is refused" fails 2 "--network 1e-300: must be a number from 1e+06 to 1e+13" \
    shoal plan --preset=gpt2 --device h100 --network 1e-300
check "a manifest is not read, which is told" fails 2 "-k: no manifest is read here: give the options that its container's args have" \
    shoal plan -k kustomize/overlays/gpt2
check "a price that is none is refused" fails 2 "--price-per-gpu-hour free: must be a number from 1e-06 to 1e+09, as 2.5" \
    shoal plan --preset=gpt2 --device h100 --price-per-gpu-hour free
check "--help has every GPU" bash -c "shoal plan --help | tr -c 'a-z0-9' '\n' | grep -cxE 'h100|h200|a100|b200|l40s|t4' | grep -qx 6"

# shellcheck disable=SC2016 # backticks are Markdown's
check "docs/gpu.md has what the commands of its rows print" diff <(grep -E '^\| `--preset' docs/gpu.md) <(tests/cli/predicted_rows.sh)

sizes=(--model_type=llama_v3 --num_layers=2 --hidden_width=64 --num_heads=4)
shoal plan "${sizes[@]}" --tokenizer=nobody/nothing >"$work/plan" 2>"$work/note"
check "a plan needs no tokenizer" contains "$work/plan" " parameters in 3 units"
check "that the run will is told" contains "$work/note" "the run will need it: data.tokenizer: there is no 'nobody/nothing'"
shoal plan --preset=fabric --devices=4 >"$work/plan" 2>"$work/note"
check "the Fabric scripts' own model needs no file" contains "$work/plan" "8,030,261,248 parameters in 35 units"
check "it is planned for their devices" contains "$work/plan" "4 ranks, 1 sample each, 64 micro-batches per step"
check "that the run will need it is told" contains "$work/note" \
    "the run will need it, planned is with published sizes: model.name_or_path: there is no 'meta-llama/Meta-Llama-3-8B'"
check "a model that nobody knows is refused with what to give" fails 2 "a plan needs its config.json, or" \
    shoal plan --preset=fabric --model_name=mine/own-llama
check "shoal recommend prints the flags for the size" contains <(shoal recommend "${sizes[@]}" 2>/dev/null) \
    "Advice for below 1B parameters: --sharding_strategy=NO_SHARD"
shoal recommend --preset llama3.2-1b >"$work/advice" 2>/dev/null
check "... by what it chose" contains "$work/advice" "GPUs, their memory and the links between them were not looked at"
check "... what it takes on the least of the ranks that it names" grep -qE '^On 8 ranks it takes about [0-9]+\.[0-9]+ GB per rank' "$work/advice"
shoal recommend --preset llama3.2-1b --gpus 64 >"$work/advice" 2>/dev/null
check "... or on those that there are" contains "$work/advice" "On 64 ranks it takes about"
check "a preset's is its own matter" contains <(shoal plan --preset hyperpod 2>&1 | head -n 1) "410,143,488 parameters"
tap_done
