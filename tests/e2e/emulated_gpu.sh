# shellcheck shell=bash disable=SC2154 # tap.sh sets work
# For tests of the agent on an emulated GPU (tests/emulation): sourced after tap.sh.
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
