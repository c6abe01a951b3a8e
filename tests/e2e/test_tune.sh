#!/bin/bash
# runtime.tune on an emulated GPU whose cuBLASLt lists a fast algorithm last, among others that do not run: what is taken
# and told, and that a run which promises equal bits refuses it.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/emulated_gpu.sh
. tests/e2e/emulated_gpu.sh
export SHOAL_EMULATION=clock=work,gpus=2
begins="runtime.tune=true: cuBLASLt's algorithms are timed where a product is first met"
timed="cuBLASLt: [0-9]* products timed by step 1, [0-9]* algorithms of which [1-9][0-9]* failed: [1-9][0-9]* have another than the heuristic's first"
# train RANKS NAME FLAGS...: sums long enough for algorithms to differ
train() {
    llama "$1" "$2" --device cuda --model.name_or_path= --model_type llama_v3 --hidden_size 128 --num_hidden_layers 2 \
        --num_attention_heads 2 --num_key_value_heads 1 --intermediate_size 256 --vocab_size 512 --max_seq_length 64 \
        --save_model "$work/model_$2" "${@:3}"
}
same() { cmp "$work/model_$1/model.safetensors" "$work/model_$2/model.safetensors"; }
differ() { ! same "$1" "$2" >"$work/cmp" 2>&1 || { echo "the same bits"; return 1; }; }
near() { # NAME NAME: losses that agree to the rounding of sums in fp32
    paste -d, "$work/$1.csv" "$work/$2.csv" | awk -F, -v half=0 '
        NR == 1 { half = NF / 2; next }
        { d = $3 - $(half + 3); if (d < 0) d = -d; if (d > 1e-3) bad = 1; rows++ }
        END { exit bad || rows < 3 }' || { cat "$work/$1.csv" "$work/$2.csv"; return 1; }
}

check "a run without equal bits" train 1 first --deterministic=false
check "... of which nothing is timed" lacks "$work/first.log" "cuBLASLt: "
check "a run with runtime.tune" train 1 tuned --deterministic=false --tune
check "... told at its start" contains "$work/tuned.log" "$begins"
check "... and after the first step" grep -q "$timed" "$work/tuned.log"
check "... once, where no product is new" test "$(grep -c "products timed by" "$work/tuned.log")" = 1
check "... takes other algorithms" differ first tuned
check "... to nearly the same losses" near first tuned
check "with graphs and recomputation" train 1 graphs --deterministic=false --tune --cuda_graphs --activation_checkpointing full
check "... to the same bits" same tuned graphs
check "on two GPUs, in micro-batches" train 2 two --deterministic=false --tune --gradient_accumulation_steps 2
check "... each of which times them" grep -q "$timed" "$work/two.log"
check "a line for each product" train 1 debug --deterministic=false --tune --log_level debug
check "... names its size and both times" grep -q "cuBLASLt: fp32 product, m [0-9]*, n [0-9]*, k [0-9]*: algorithm 4 of 4 takes 10.0 us, the heuristic's first 30.0 us (1 failed)" \
    "$work/debug.log"
check "equal bits, which are the default, refuse it" fails 2 "runtime.tune=true takes algorithms by their time" train 1 refused --tune
check "... and so do those that were asked for" fails 2 "set runtime.deterministic=false, or leave runtime.tune out" \
    train 1 refused --tune --deterministic=true
check "on the CPU it changes nothing" train 1 cpu --deterministic=false --tune --device auto --runtime.device cpu
check "... which is told" contains "$work/cpu.log" "runtime.tune is ignored: it needs another runtime.device than cpu"
tap_done
