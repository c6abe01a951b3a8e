#!/bin/bash
# `shoal export`: a checkpoint as a Hugging Face directory, the same that the run itself writes at its end.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
model=$PWD/tests/data/pretrained/llama_sharded

# a llm.c token file: 256 int32 of header (magic, version, tokens), then 16-bit tokens
{
    printf '\x88\xd8\x34\x01\x01\x00\x00\x00\x00\x10\x00\x00'
    head -c 1012 /dev/zero
    head -c 8192 /dev/zero
} >"$work/tokens.bin"
train() {
    shoal-agent --nproc_per_node 2 --model.name_or_path "$model" --data.dataset "$work/tokens.bin" --data.format llmc_bin \
        --max_seq_length 16 --train_batch_size 2 --max_steps 3 --save_steps 2 --eval_strategy no --lr 1e-3 \
        --checkpoint_dir "$work/steps" --save_model "$work/saved"
}
check "a run with checkpoints" train
steps=("$work"/steps/*)
config=("--config" "$model/config.json")

check "the newest checkpoint" shoal export "$work/steps" "$work/out" "${config[@]}"
check "has the weights that the run saved" cmp "$work/out/model.safetensors" "$work/saved/model.safetensors"
check "and its config.json" cmp "$work/out/config.json" "$work/saved/config.json"
check "an earlier checkpoint" shoal export "${steps[0]}" "$work/early" "${config[@]}"
check "has other weights" fails 1 differ cmp "$work/early/model.safetensors" "$work/saved/model.safetensors"
check "an export replaces an older one" shoal export "${steps[0]}" "$work/out" "${config[@]}"
check "as a whole" cmp "$work/out/model.safetensors" "$work/early/model.safetensors"
check "bf16 takes half the bytes" shoal export "$work/steps" "$work/half" --dtype bfloat16 "${config[@]}"
size() { wc -c <"$work/$1/model.safetensors"; }
is_half() { [ "$(size half)" -lt $(($(size out) * 6 / 10)) ]; }
check "to be exact" is_half
check "and config.json says so" contains "$work/half/config.json" '"torch_dtype": "bfloat16"'
check "that there is no tokenizer is told" fails 0 "no tokenizer is copied" shoal export "$work/steps" "$work/half" "${config[@]}"
mkdir "$work/words"
echo '{}' >"$work/words/tokenizer.json"
check "a tokenizer goes along" shoal export "$work/steps" "$work/with" --tokenizer "$work/words" "${config[@]}"
check "byte for byte" cmp "$work/words/tokenizer.json" "$work/with/tokenizer.json"
check "one that is not there" fails 2 "--tokenizer: there is no '$work/none' here" shoal export "$work/steps" "$work/with" --tokenizer "$work/none" "${config[@]}"
cp "$work/words/tokenizer.json" "$work/words.json"
check "one that is a file of its own, too" shoal export "$work/steps" "$work/with" --tokenizer "$work/words.json" "${config[@]}"
check "under the name it is found by" cmp "$work/words.json" "$work/with/tokenizer.json"

# what is read beside a tokenizer goes along: the pieces that were added, the special tokens, how chats are written
mkdir "$work/pieces" "$work/gpt2"
for name in tokenizer.model added_tokens.json special_tokens_map.json tokenizer_config.json chat_template.jinja README.md; do echo "$name" >"$work/pieces/$name"; done
for name in vocab.json merges.txt words.txt added_tokens.json; do echo "$name" >"$work/gpt2/$name"; done
exports() { # TOKENIZER NAMES...: besides the model's
    rm -rf "$work/of" && shoal export "$work/steps" "$work/of" --tokenizer "$work/$1" "${config[@]}" && shift &&
        [ "$(cd "$work/of" && printf '%s\n' *)" = "$(printf '%s\n' config.json generation_config.json model.safetensors "$@" | LC_ALL=C sort)" ]
}
check "all that a tokenizer is made of, and nothing else" exports pieces tokenizer.model added_tokens.json special_tokens_map.json tokenizer_config.json chat_template.jinja
check "GPT-2's file that is named, with its merges" exports gpt2/vocab.json vocab.json merges.txt added_tokens.json
check "BERT's list of words, without another one's merges" exports gpt2/words.txt vocab.txt added_tokens.json
check "as it was" cmp "$work/gpt2/words.txt" "$work/of/vocab.txt"

# a run whose tokenizer lies below its directory: found from everywhere; and as older runs named it, nowhere
bytes=$PWD/deploy/demo/bytes
mkdir -p "$work/run/words" && cp "$bytes"/* "$work/run/words"
echo "some words to learn from, and some more of them" >"$work/run/text.txt"
relative() {
    (cd "$work/run" && shoal-agent --device cpu --model_type llama --hidden_size 16 --num_hidden_layers 1 --num_attention_heads 2 \
        --intermediate_size 32 --vocab_size 257 --max_position_embeddings 8 --dataset text.txt --format text --tokenizer words \
        --max_steps 1 --eval_strategy no --prometheus_port 0 --checkpoint_dir ck)
}
check "a tokenizer of a relative path" relative
check "is found from elsewhere" shoal export "$work/run/ck" "$work/run/out"
check "and goes along" cmp "$bytes/tokenizer.json" "$work/run/out/tokenizer.json"
saved=$(dirname "$work"/run/ck/*/COMPLETE)
begins_with() { # MODEL NAME
    (cd "$work/run" && shoal-agent --device cpu --model_name_or_path "$1" --tokenizer words --dataset text.txt --format text \
        --max_steps 1 --eval_strategy no --prometheus_port 0 --logging.jsonl="$work/$2.jsonl")
}
check "a run may begin with a checkpoint" begins_with "$saved" by_checkpoint
check "as with its export" begins_with "$work/run/out" by_export
same_loss() { [ "$(jq .loss "$work/by_checkpoint.jsonl")" = "$(jq .loss "$work/by_export.jsonl")" ]; }
check "of the same loss" same_loss
check "who wants a model is told how" fails 2 "a checkpoint of Shoal's, and no model's directory: shoal export makes one of it" \
    shoal generate "$saved" --tokenizer "$work/run/words" --prompt a
sed -i "s|$work/run/words|words|" "$work"/run/ck/*/agent_config.yaml
stray() { (cd "$work/run" && shoal export ck stray); }
check "none is taken of the current directory" fails 0 "no tokenizer is copied" stray
check "by accident" test ! -e "$work/run/stray/tokenizer.json"

check "no checkpoint" fails 2 "$work/words" shoal export "$work/words" "$work/none" "${config[@]}"
check "another model's config.json is told from the checkpoint" fails 2 "embed_tokens" \
    shoal export "$work/steps" "$work/none" --config "$PWD/tests/data/pretrained/llama_tied_bf16/config.json"
check "a directory with other files stays" fails 2 "holds tokens.bin" shoal export "$work/steps" "$work" "${config[@]}"
check "a missing argument" fails 2 "give a CHECKPOINT and a DIRECTORY" shoal export "$work/steps"
check "an unknown dtype" fails 2 "float32" shoal export "$work/steps" "$work/none" --dtype int8
check "nothing was left of what failed" test ! -e "$work/none"
check "the help" fails 0 "--max-shard-mib" shoal export --help

# weights that are no numbers: each update makes them a billion times larger
diverge() {
    shoal-agent --nproc_per_node 2 --model.name_or_path "$model" --data.dataset "$work/tokens.bin" --data.format llmc_bin \
        --max_seq_length 16 --train_batch_size 2 --max_steps 8 --eval_strategy no --optim sgd --lr 1e6 --weight_decay 1000 \
        --checkpoint_dir "$work/$1" "${@:2}"
}
check "weights with NaN are not saved" fails 1 "checkpoint at step 8: rank 0: tensor model.embed_tokens.weight[0, 0] is NaN" diverge refused
check "and nothing is left of them" test -z "$(ls "$work/refused")"
check "but by who insists" diverge nan --allow_nonfinite
check "inspect names their file" fails 1 "NaN or infinity in 10 of 10 tensors, the first is model.embed_tokens.weight" \
    shoal inspect "$work/nan"
check "but not at a quick look" shoal inspect --quick "$work/nan"
check "nor are they exported" fails 2 "tensor model.embed_tokens.weight[0, 0] is NaN" shoal export "$work/nan" "$work/nan_out" "${config[@]}"
check "or a part of them" test ! -e "$work/nan_out"
check "but by who insists" shoal export "$work/nan" "$work/nan_out" --allow-nonfinite "${config[@]}"

# a run that keeps bf16 alone saves bf16, and so is what it and its checkpoints are exported as
half() {
    shoal-agent --nproc_per_node 2 --model.name_or_path "$model" --data.dataset "$work/tokens.bin" --data.format llmc_bin \
        --max_seq_length 16 --train_batch_size 2 --max_steps 2 --eval_strategy no --lr 1e-3 --precision bf16-true \
        --checkpoint.prefix llama --checkpoint_dir "$work/bf16" --save_model "$work/bf16_saved"
}
says() { shoal inspect "$1" >"$work/told" && grep -q "^$2" "$work/told"; }
dtype() { contains "$work/$1/config.json" "\"torch_dtype\": \"$2\""; }
check "a run in bf16-true" half
bf16=$work/bf16/llama-2steps
check "its weights are saved as bf16" says "$bf16" 'model: .* bytes of BF16$'
check "so is the optimizer's state" says "$bf16" 'optimizer: .* bytes of BF16$'
check "which the checkpoint's config.json says" dtype bf16/llama-2steps bfloat16
check "the export is bf16, too" shoal export "$work/bf16" "$work/bf16_out"
check "which are the weights that the run saved" cmp "$work/bf16_out/model.safetensors" "$work/bf16_saved/model.safetensors"
check "and its config.json" cmp "$work/bf16_out/config.json" "$work/bf16_saved/config.json"
check "float32 on request" shoal export "$work/bf16" "$work/bf16_wide" --dtype float32
check "is float32" says "$work/bf16_wide" '.* bytes of F32$'
check "and says so" dtype bf16_wide float32
check "accelerate merge-weights keeps bf16, too" shoal-agent accelerate merge-weights "$bf16" "$work/bf16_merged"
check "weight for weight" cmp "$work/bf16_merged/model.safetensors" "$work/bf16_saved/model.safetensors"

# what version 0.1.0 saved of such a run is fp32, and loses nothing
old=$PWD/tests/data/checkpoints/llama_bf16_0.1
go_on() {
    shoal-agent --nproc_per_node "$1" --model.name_or_path "$old" --model.init random --data.dataset "$old/../tokens.bin" \
        --data.format llmc_bin --max_seq_length 16 --train_batch_size 2 --max_steps "$2" --eval_strategy no --lr 1e-2 \
        --precision bf16-true --resume_from_checkpoint "$old" --checkpoint.prefix llama --checkpoint_dir "$work/old$1" \
        --save_model "$work/old_saved$1"
}
check "an old checkpoint of bf16-true is whole" says "$old" 'model: .* bytes of F32$'
check "it is exported as it was saved" shoal export "$old" "$work/old"
check "in fp32" says "$work/old" '.* bytes of F32$'
check "or as bf16" shoal export "$old" "$work/old_half" --dtype bfloat16
check "a run that loads it and has nothing to do" go_on 1 2
check "has the same weights" cmp "$work/old_half/model.safetensors" "$work/old_saved1/model.safetensors"
for ranks in 1 2 3; do
    check "$ranks ranks go on from it" go_on "$ranks" 4
    check "and save bf16" says "$work/old$ranks/llama-4steps" 'optimizer: .* bytes of BF16$'
done

tap_done
