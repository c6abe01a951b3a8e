#!/bin/bash
# A tiny BERT with each of its heads, through tokenizer, training, export and import; the loss is that of any layout.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
mkdir -p "$work/model" "$work/words" "$work/classes"
cp tests/data/tiny/bert/config.json tests/data/tokenizers/bert_uncased/tokenizer.json "$work/model"
for i in 1 2 3 4 5 6 7 8; do
    printf '{"text": "the fox %d jumps\\nover the dog\\nand dog %d sleeps"}\n' "$i" "$i" >>"$work/words/train.jsonl"
    printf '{"text": "the fox %d", "label": %d}\n' "$i" $((i % 3)) >>"$work/classes/train.jsonl"
done

# train NAME RANKS MODEL HEAD DATA FLAGS...: two steps of four rows of all ranks.
train() {
    shoal-agent --nproc_per_node "$2" --model.name_or_path "$3" --head "$4" --dataset "$work/$5" --max_seq_length 32 \
        --train_batch_size $((4 / $2)) --shuffle false --dropout 0 --lr 1e-2 --mixed_precision no --max_steps 2 \
        --eval_strategy no --csv "$work/$1.csv" --save_model "$work/$1" "${@:6}" >"$work/$1.log" 2>&1 ||
        { local code=$?; cat "$work/$1.log"; return "$code"; }
}
losses() { cut -d, -f1,3 "$work/$1.csv"; }
# near A B: the losses of two runs, but for the order of their sums.
near() { paste -d, <(losses "$1") <(losses "$2") | awk -F, 'NR > 1 && ($2 - $4) ^ 2 > 1e-10 {print; bad = 1} END {exit bad || NR != 3}'; }

for head in masked_lm pretraining; do
    check "$head: one rank" train "$head" 1 "$work/model" "$head" words
    check "$head: two ranks" train "$head.2" 2 "$work/model" "$head" words
    check "$head: the losses are the same" near "$head" "$head.2"
done
check "classification by two ranks, with a head of its own" train labels 2 "$work/pretraining" sequence_classification \
    classes --num_labels 3
check "... which begins with random values, as is told" contains "$work/labels.log" \
    "tensor classifier.weight is missing: it begins with random values"
check "... its config.json says how many" contains "$work/labels/config.json" '"LABEL_2": 2'
check "... and what was saved goes on" train again 1 "$work/labels" auto classes
mkdir "$work/named"
sed 's/: 0}/: "bad"}/; s/: 1}/: "so so"}/; s/: 2}/: "good"}/' "$work/classes/train.jsonl" >"$work/named/train.jsonl"
check "classes by names" train names 1 "$work/pretraining" sequence_classification named --num_labels 3 --label_names "bad,so so,good"
check "... which its config.json has" contains "$work/names/config.json" '"so so": 1'
check "... and data may have then, too" train named_again 1 "$work/names" auto named
check "... or numbers" train numbered 1 "$work/names" auto classes
check "... that mean the same" near named_again numbered
fails_text() { fails 2 "$1" train none 1 "${@:2}"; }
check "a head that BERT has not" fails_text "model.head: seq2seq_lm is not for a bert model" "$work/model" seq2seq_lm words
told_once() { # by two ranks
    train none 2 "$work/model" causal_lm words >"$work/twice" 2>&1
    [ "$(grep -c "model.head: " "$work/twice")" -eq 1 ] || { cat "$work/twice"; return 1; }
}
check "... is told once, whatever the number of ranks" told_once
check "no data set" fails_text "data.dataset is not set" "$work/model" masked_lm words --dataset=
evaluated() { train tested 1 "$work/labels" auto classes --eval_strategy epoch --train_split 'train[:4]' --eval_split 'train[4:]' --style plain; }
check "classes are evaluated" evaluated
check "... by how many are right" grep -qE '^Evaluation at step [0-9]+ \| Loss: [0-9.]+ \| accuracy: [0-9.]+% \|' "$work/tested.log"
check "labels beyond the classes" fails_text "train.jsonl:2: " "$work/model" sequence_classification classes
check "one label" fails_text "regression is not supported" "$work/model" sequence_classification classes --num_labels 1
tap_done
