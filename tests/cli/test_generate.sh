#!/bin/bash
# `shoal generate`: a model that has learned one sentence by heart says it.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
for _ in $(seq 200); do echo "the quick brown fox jumps over the lazy dog."; done >"$work/corpus.txt"
train() {
    shoal-agent --model_type llama --hidden_size 32 --num_hidden_layers 1 --num_attention_heads 2 --intermediate_size 64 \
        --vocab_size 257 --max_position_embeddings 64 --dataset "$work/corpus.txt" --format text --tokenizer deploy/demo/bytes \
        --eval_strategy no --max_seq_length 48 --train_batch_size 8 --lr 1e-2 --max_steps 120 --mixed_precision no \
        --epochs 100 --save_model "$work/model"
}
check "a model learns a sentence" train
says() { shoal generate "$work/model" "$@" >"$work/text"; }
check "the likeliest token each time" says --prompt "the quick" --temperature 0 --max_tokens 40
check "is the sentence" contains "$work/text" "the quick brown fox jumps over the lazy dog"
mv "$work/text" "$work/first"
check "longer than the model's positions" says -p "the quick" -t 0 -n 100
check "it goes on" contains "$work/text" "$(head -n 1 "$work/first")"
cp -r "$work/model" "$work/stretched"
sed -i -e 's/"max_position_embeddings": *64/"max_position_embeddings": 16/' -e '/"rope_scaling": *null/d' \
    -e 's/"rope_theta"/"rope_scaling": {"rope_type": "dynamic", "factor": 8}, &/' "$work/stretched/config.json"
check "angles that depend on the length" shoal generate "$work/stretched" -p "the quick" -t 0 -n 100
check "a high temperature" says -p "the quick" -t 5 -n 40 --seed 1
mv "$work/text" "$work/first"
check "says the same for the same seed" says -p "the quick" -t 5 -n 40 --seed 1
check "to the byte" cmp "$work/first" "$work/text"
check "and something else for another" says -p "the quick" -t 5 -n 40 --seed 2
check "as expected" fails 1 differ cmp "$work/first" "$work/text"
check "no new token" says -p "the quick" -n 1 -t 0
mkdir -p "$work/hub/models--org--fox/snapshots"
ln -s "$work/model" "$work/hub/models--org--fox/snapshots/main"
check "an id that the hub's cache has" env HF_HUB_CACHE="$work/hub" shoal generate org/fox -p "the quick" -t 0 -n 2
check "one that it has not" fails 2 "there is no 'org/wolf' here, nor in the cache $work/hub; if the Hub has it: hf download org/wolf" \
    env -u XDG_CACHE_HOME HF_HUB_CACHE="$work/hub" HOME= shoal generate org/wolf
check "help" fails 0 "Usage: shoal generate DIR" shoal generate --help

unlearned() { # its vocabulary is larger than the tokenizer's
    shoal-agent --model_type llama --hidden_size 32 --num_hidden_layers 1 --num_attention_heads 2 --intermediate_size 64 \
        --vocab_size 4000 --max_position_embeddings 64 --dataset "$work/corpus.txt" --format text --tokenizer deploy/demo/bytes \
        --eval_strategy no --max_seq_length 48 --train_batch_size 8 --max_steps 1 --mixed_precision no --save_model "$work/unlearned"
}
check "a model that has learned nothing" unlearned
check "writes only what its tokenizer has" shoal generate "$work/unlearned" -p "the quick" -t 2 -n 40

# A model with an encoder writes what it has learned to answer.
for _ in $(seq 40); do
    echo '{"text": "the fox", "summary": "jumps over the dog"}'
    echo '{"text": "and dogs", "summary": "sleep"}'
done >"$work/rows.jsonl"
mkdir "$work/t5" && cp tests/data/tiny/t5/config.json tests/data/tokenizers/spm_t5/spiece.model "$work/t5"
answers() { # PROMPT ANSWER
    [ "$(shoal generate "$work/t5-model" -t 0 -p "$1")" = "$2" ] || { shoal generate "$work/t5-model" -t 0 -p "$1"; return 1; }
}
learn() {
    shoal-agent --model_name "$work/t5" --dataset "$work/rows.jsonl" --source_prefix 'say: ' --train_batch_size 8 --lr 1e-2 --dropout 0 \
        --max_steps 60 --epochs 100 --eval_strategy no --mixed_precision no --save_model "$work/t5-model"
}
check "a T5 learns two answers" learn
check "it gives the one" answers "say: the fox" "jumps over the dog"
check "and the other" answers "say: and dogs" "sleep"
check "nothing to read" shoal generate "$work/t5-model" -n 3

# Weights with NaN are read by who insists.
cp -r "$work/model" "$work/nan"
weights=$work/nan/model.safetensors
printf '\377\377\377\177' | dd of="$weights" bs=1 conv=notrunc seek=$(($(stat -c %s "$weights") - 4)) 2>"$work/dd"
check "weights with NaN are refused" fails 2 "is NaN: neither saved nor loaded (--allow-nonfinite insists)" shoal generate "$work/nan" -n 3
check "... but to who insists" shoal generate "$work/nan" -n 3 --allow-nonfinite

check "no directory" fails 2 "one directory is needed" shoal generate
check "one that is not there" fails 2 "$work/none" shoal generate "$work/none"
check "one without weights" fails 2 "deploy/demo/bytes" shoal generate deploy/demo/bytes
check "one that does not go on with texts" fails 2 "only models that predict the next token can write" \
    shoal generate tests/data/pretrained/bert_f16
check "a temperature that is none" fails 2 "--temperature: 'hot'" shoal generate "$work/model" -t hot
check "no tokenizer" fails 2 "--tokenizer: there is no '$work/none' here" shoal generate "$work/model" --tokenizer "$work/none"
tap_done
