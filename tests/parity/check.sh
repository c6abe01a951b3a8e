#!/bin/bash
# What shoal-agent writes, read by the programs that it is meant for: the safetensors library, PyTorch's distributed
# checkpoints, transformers. `make check-torch` runs it, with PyTorch from PyPI, which is why `make check` does not;
# PYTHON=...: one that has torch, transformers and sentencepiece.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/bench/torch/install.sh
. tests/bench/torch/install.sh
# shellcheck source=tests/e2e/t5.sh
. tests/e2e/t5.sh
if [ -z "${PYTHON:-}" ]; then
    PYTHON=build/torch-venv/bin/python
    install_torch build/torch-venv && build/torch-venv/bin/pip install --quiet sentencepiece || exit
fi

formats() { # RANKS: the export and the checkpoint of a run's end hold the same weights
    local out=$work/formats$1
    shoal-agent --preset=mnist --nproc_per_node="$1" --data.root=/usr/share/datasets/fashion-mnist --train_size=128 \
        --eval_size=64 --batch_size=32 --epochs=1 --checkpoint.dir="$out" --save-model="$out.safetensors" &&
        "$PYTHON" tests/parity/check_formats.py "$out.safetensors" "$out"/mnist_cnn-*steps
}
check "the safetensors library and PyTorch read the same weights: one rank" formats 1
check "the safetensors library and PyTorch read the same weights: two ranks" formats 2

# causal NAME TOKENIZER CONFIG: a language model's directory, without weights.
causal() {
    mkdir -p "$work/$1" && cp "tests/data/tokenizers/$2/tokenizer.json" "$work/$1" && echo "$3" >"$work/$1/config.json"
}
causal llama_sizes llama3 '{"model_type": "llama", "vocab_size": 1024, "hidden_size": 32, "intermediate_size": 48,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64}'
causal gpt2_sizes gpt2 '{"model_type": "gpt2", "vocab_size": 1024, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}'
printf '{"text": "%s"}\n' "the fox" "the quick fox & jumps" "over the lazy dogs, 12 of them" "a dog" >"$work/texts.jsonl"

formats_of_llama() { # PRECISION KEPT
    local out=$work/$1
    shoal-agent --model_name="$work/llama_sizes" --dataset="$work/texts.jsonl" --packing=none --train_batch_size=2 \
        --nproc_per_node=2 --max_steps=1 --mixed_precision="$1" --eval_strategy=no --prometheus_port=0 \
        --checkpoint.dir="$out" --save_model="$out.whole" &&
        "$PYTHON" tests/parity/check_formats.py "$out.whole/model.safetensors" "$out"/*steps "$2"
}
check "... and a Llama's that two ranks share" formats_of_llama no fp32
check "... and one's that keeps bf16 alone" formats_of_llama bf16-true bf16

# saves NAME MODEL DATA FLAG...: a step without effect with four rows, and what it saved read by transformers, into
# $work/NAME.read: its loss and, if MODEL has weights, how its logits are off those of MODEL.
saves() {
    local source=()
    [ ! -e "$2/model.safetensors" ] || source=("$2")
    shoal-agent --model_name="$2" --dataset="$3" --train_size=4 --train_batch_size=4 --shuffle=false --dropout=0 --lr=0 \
        --weight_decay=0 --mixed_precision=no --max_steps=1 --eval_strategy=no --prometheus_port=0 --csv="$work/$1.csv" \
        --save_model="$work/$1" "${@:4}" &&
        "$PYTHON" tests/parity/check_export.py "$work/$1" "$3" "${source[@]}" >"$work/$1.read"
}
same_logits() { awk '$1 == "logits" && $2 < 1e-6 {good = 1} END {exit !good}' "$work/$1.read"; } # NAME
# same_loss NAME MODEL DATA FLAG...: as transformers computes it from what was saved.
same_loss() {
    saves "$@" || return
    awk -v a="$(tail -n 1 "$work/$1.csv" | cut -d, -f3)" \
        '$1 == "loss" && (a - $2) ^ 2 < 1e-10 * $2 * $2 && $2 > 0 {good = 1} END {exit !good}' "$work/$1.read"
}
mkdir -p "$work/bert"
cp tests/data/tiny/bert/config.json tests/data/tokenizers/bert_uncased/tokenizer.json "$work/bert"
seq 0 3 | sed 's/.*/{"text": "the fox & jumps", "label": &}/; s/3}/0}/' >"$work/classes.jsonl"
check "transformers computes a BERT classifier's loss" same_loss classifier "$work/bert" "$work/classes.jsonl" \
    --head=sequence_classification --num_labels=3
mkdir "$work/words" && cp "$work/bert"/* "$work/words" &&
    draw_weights "$work/words" --head masked_lm --dataset "$work/classes.jsonl" --packing none --max_seq_length 16
check "transformers reads a masked LM" saves masked "$work/words" "$work/classes.jsonl" \
    --head=masked_lm --packing=none --max_seq_length=16
check "... whose logits are as before" same_logits masked
t5_place "$work/place" 4
t5=$work/place/hf/hub/models--google-t5--t5-small/snapshots/abc
bills=$work/place/datasets/billsum/train.jsonl
check "transformers computes a T5's loss" same_loss t5 "$t5" "$bills" --label_pad_token_id=-100 --source_prefix=
check "... and logits as before" same_logits t5
mkdir "$work/gated" && cp "$t5/spiece.model" "$work/gated" &&
    sed '/"feed_forward_proj"/s/relu/gated-gelu/; /"tie_word_embeddings"/s/true/false/' "$t5/config.json" >"$work/gated/config.json" &&
    draw_weights "$work/gated" --dataset "$work/place/datasets/billsum" --max_target_length 8
check "transformers computes a T5 v1.1's loss" same_loss gated "$work/gated" "$bills" --label_pad_token_id=-100 --source_prefix=
check "... and logits as before" same_logits gated
check "transformers computes a Llama's loss" same_loss llama "$work/llama_sizes" "$work/texts.jsonl" --packing=none
check "transformers computes a GPT-2's loss" same_loss gpt2 "$work/gpt2_sizes" "$work/texts.jsonl" --packing=none
tap_done
