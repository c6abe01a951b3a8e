#!/bin/bash
# A Hugging Face directory in, training, and a Hugging Face directory out: with a learning rate of 0 the weights come
# back as they were, whatever the number of ranks.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
models=$PWD/tests/data/pretrained

# shellcheck source=tests/e2e/tokens.sh
. tests/e2e/tokens.sh

# train RANKS MODEL OUT FLAGS...: two steps.
train() {
    local ranks=$1 model=$2 out=$3
    shift 3
    shoal-agent --nproc_per_node "$ranks" --model.name_or_path "$model" --data.dataset "$work/tokens.bin" \
        --data.format llmc_bin --max_seq_length 16 --train_batch_size 2 --max_steps 2 --eval_strategy no \
        --save_model "$work/$out" "$@" >"$work/$out.log" 2>&1 || { local code=$?; cat "$work/$out.log"; return "$code"; }
}
same() { cmp "$work/$1/$3" "$work/$2/$3"; }

for model in llama_sharded llama_tied_bf16 gpt2_f16; do
    check "$model: two ranks load, train and save it" train 2 "$models/$model" "$model" --lr 0 --weight_decay 0
    check "$model: the log tells where the weights came from" contains "$work/$model.log" "Initial weights from $models/$model"
    check "$model: what was saved is loaded by one rank" train 1 "$work/$model" "$model.again" --lr 0 --weight_decay 0
    check "$model: the weights are the same, byte for byte" same "$model" "$model.again" model.safetensors
    check "$model: and so is config.json" same "$model" "$model.again" config.json
done
check "what no parameter wants is told" contains "$work/gpt2_f16.log" "tensor odd.weight is not used"

check "a step with a learning rate changes the weights" train 1 "$models/llama_sharded" moved --lr 1e-3
check "they differ" fails 1 "differ" same llama_sharded moved model.safetensors
check "drawn weights are others than the pretrained" train 1 "$models/llama_sharded" drawn --lr 0 --weight_decay 0 --model.init random
check "they differ too" fails 1 "differ" same llama_sharded drawn model.safetensors

check "a checkpoint of the run" train 2 "$models/llama_sharded" kept --lr 1e-3 --checkpoint_dir "$work/steps" --save_steps 2
step=$(echo "$work"/steps/*)
check "initial values of another run from that checkpoint" train 1 "$models/llama_sharded" started --lr 0 --weight_decay 0 \
    --init_weights "$step"
check "they are the checkpoint's" same kept started model.safetensors

mkdir "$work/broken"
cp "$models/llama_sharded/"{config.json,model.safetensors.index.json,model-0000[123]*} "$work/broken"
check "a missing file is named" fails 2 "model-00004-of-00004.safetensors is missing: " \
    train 2 "$work/broken" none --lr 0
mkdir "$work/full"
touch "$work/full/other"
mkdir "$work/sizes"
cp "$models/llama_sharded/config.json" "$work/sizes"
check "a directory without weights gives the sizes" train 1 "$work/sizes" sized
check "that the values are drawn is told" contains "$work/sized.log" "Initial weights: random"
check "and why" contains "$work/sized.log" "$work/sizes has no weights (model.safetensors): the values are drawn"
touch "$work/sizes/pytorch_model.bin"
check "weights that are not read are refused" fails 2 "sizes/pytorch_model.bin is not read, only model.safetensors" \
    train 1 "$work/sizes" none
check "a directory with other files stays" fails 2 "full holds other" train 1 "$models/llama_sharded" full
tap_done
