# shellcheck shell=bash disable=SC2154 # tap.sh sets work
# For tests of the agent on an emulated GPU (tests/emulation): sourced after tap.sh.
export SHOAL_CUDA_LIBRARY=$BUILD/emulation/libshoal_cuda.so SHOAL_CUDA_LIBRARY_PATH=$BUILD/emulation
[ -e "$SHOAL_CUDA_LIBRARY" ] || { skip "training on an emulated GPU" "this build has none"; tap_done; }
models=$PWD/tests/data/pretrained

# shellcheck source=tests/e2e/tokens.sh
. tests/e2e/tokens.sh

# llama RANKS NAME FLAGS...: a few steps of a tiny Llama; losses go to NAME.csv, all else to NAME.log.
llama() {
    local ranks=$1 name=$2
    shift 2
    shoal-agent --standalone --nproc_per_node "$ranks" --model.name_or_path "$models/llama_sharded" --data.dataset "$work/tokens.bin" \
        --data.format llmc_bin --max_seq_length 16 --train_batch_size 2 --max_steps 3 --eval_strategy no --lr 1e-2 \
        --mixed_precision no --logging_steps 1 --prometheus_port 0 --csv "$work/$name.csv" "$@" >"$work/$name.log" 2>&1 ||
        { local code=$?; cat "$work/$name.log"; return "$code"; }
}
