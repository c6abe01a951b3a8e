#!/bin/bash
# The first document: T5, fully sharded over the four pods of its overlay, with a tiny model and a few bills.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/t5.sh
. tests/e2e/t5.sh
t5_place "$work/fsx" || exit
short="--max_source_length 48 --max_target_length 16 --prometheus_port 0"
step='^Epoch 0 \| Step 0 \| Loss: [0-9.]+ \| Strategy: FULL_SHARD$'
log() { cat "$work/$1/pytorch-dist-job/pytorch-dist-job-master-0.log"; }
says() { log "$1" | grep -qE -- "$2" || { log "$1"; return 1; }; }

# trains NAME [VARIABLE...]: runs the manifest on the standard input.
trains() {
    cat >"$work/$1.yaml"
    env "${@:2}" shoal run -f "$work/$1.yaml" --log-dir "$work/$1" --progress never >"$work/$1.out" 2>&1 ||
        { cat "$work/$1.out"; return 1; }
}

# What the original repository renders, of which only the image is another: one that brings the model and the data.
original() {
    sed "s|t5-fsdp.py|t5-fsdp.py $short|" tests/data/toe/fsdp.yaml | trains original HF_HOME="$work/fsx/hf" DATA_PATH="$work/fsx/datasets"
}
check "the original's manifest trains with only the image changed" original
check "... on four pods" contains "$work/original.out" "4 ranks on 4 nodes"
check "... starts from the beginning" says original '^--- There is no checkpoint. Training starts from the beginning. ---$'
check "... tells its steps" says original "$step"
check "... and that its blocks are small units" says original '5 units of [0-9.e-]+M parameters are small \(below [0-9]+M\): one unit '
check "... and its time" says original '^Elapsed time of the code block: [0-9]+\.[0-9]{4} seconds$'

# Our own overlay, on a volume that is a folder here.
overlay() { # NAME [FLAGS]
    kubectl kustomize kustomize/overlays/fsdp 2>/dev/null |
        sed "s|/fsx/|$work/fsx/|; s|t5-fsdp.py|t5-fsdp.py $short ${*:2}|" | trains "$1"
}
if command -v kubectl >/dev/null; then
    check "the fsdp overlay trains" overlay first --train_size 32
    check "... and tells its steps" says first "$step"
    check "... and its checkpoint" says first "^--- Checkpoint saved: .*/checkpoints/t5-fsdp/checkpoint_FULL_SHARD-2steps \(Epoch: 0\) ---$"
    check "... the whole model lies beside it" test -e "$work/fsx/checkpoints/t5-fsdp/model/model.safetensors"
    check "... with its tokenizer" test -e "$work/fsx/checkpoints/t5-fsdp/model/spiece.model"
    check "shoal export takes it along, too" shoal export "$work/fsx/checkpoints/t5-fsdp" "$work/exported"
    check "... from where the run had it" cmp tests/data/tokenizers/spm_t5/spiece.model "$work/exported/spiece.model"
    check "a second run goes on" overlay second --train_size 32 --epochs 2 --lang ko
    check "... and says so in the document's words" says second '^--- 체크포인트를 로드했습니다. 1 에폭부터 재시작합니다. ---$'
    check "... as of its checkpoint" says second '^--- 체크포인트 저장 완료: .*/checkpoint_FULL_SHARD-4steps \(Epoch: 1\) ---$'
    check "... and its time" says second '^코드 블록 실행 시간: [0-9]+\.[0-9]{4} 초$'
    only_one() { [ "$(find "$work/fsx/checkpoints/t5-fsdp" -name COMPLETE | wc -l)" -eq 1 ]; }
    check "... the one before is gone" only_one
else
    skip "the fsdp overlay" "kubectl is not on the PATH"
fi

# The script alone, and what it refuses.
ln -s "$BUILD/shoal-agent" "$work/torchrun"
PATH=$work:$PATH
export HF_HOME=$work/fsx/hf DATA_PATH=$work/fsx/datasets
# shellcheck disable=SC2086
script() { torchrun --standalone t5-fsdp.py $short "$@" 2>&1; }
lines() { # PATTERN FLAGS...
    script "${@:2}" >"$work/out" || { cat "$work/out"; return 1; }
    grep -qE -- "$1" "$work/out" || { cat "$work/out"; return 1; }
}
check "every tenth micro-batch is told" lines '^Epoch 1 \| Step 10 \| Loss: ' --epochs 2 --grad_acc_steps 4
check "a step of several such" lines '^Epoch 0 \| Step 10 \| Loss: ' --grad_acc_steps 16
check "more micro-batches a step than there are" fails 2 "32 micro-batches make a step, but an epoch has only 16 on each rank" script --grad_acc_steps 32
check "... all in one step, if that is asked for" lines "$step" --grad_acc_steps 32 --drop_incomplete_accumulation false
mkdir -p "$work/old" "$work/pickles/checkpoint_FULL_SHARD" && touch "$work/pickles/checkpoint_FULL_SHARD/.metadata"
check "a run" script --train_size 8 --save_path "$work/run"
mv "$work"/run/checkpoint_FULL_SHARD-* "$work/old/checkpoint_FULL_SHARD"
beside() { cd "$work/$1" && script --train_size 8 --epochs 2 --save_path "$work/of_$1"; }
check "... whose checkpoint has the name that the script gives it" fails 0 "Training goes on from epoch 1" beside old
check "... but not PyTorch's of that name" fails 0 "checkpoint_FULL_SHARD: a checkpoint of PyTorch's, whose pickles are not read" beside pickles
check "recomputed, offloaded and prefetched" lines "$step" --use_checkpointing --use_offload --use_prefetch
check "in fp32, without shards" lines 'Strategy: NO_SHARD$' --precision fp32 --sharding_strategy NO_SHARD
check "as one unit" lines "$step" --auto_wrap_policy NO_WRAP
check "its units are the blocks" fails 0 "in 5 units" script --dry_run
check "an unknown strategy" fails 2 "'SOME_SHARD' is not one of: FULL_SHARD" script --sharding_strategy SOME_SHARD
check "a model that is no T5" fails 2 "model.head: seq2seq_lm is not for a bert model" script --model_id "$PWD/tests/data/tiny/bert"
mkdir "$work/cut" && cp tests/data/tiny/t5/config.json "$work/cut" && head -c 3000 tests/data/tokenizers/spm_t5/spiece.model >"$work/cut/spiece.model"
check "a part of a SentencePiece model" fails 2 "spiece.model: not a SentencePiece model: another file, or a part of one" script --model_id "$work/cut"
mkdir "$work/bare" && cp "$work/cut/config.json" tests/data/tokenizers/spm_t5/spiece.model "$work/bare"
check "a model without weights" fails 2 "model.safetensors.index.json is there; model.init=random draws the values" script --model_id "$work/bare"
check "... which may be drawn" lines "$step" --model_id "$work/bare" --init random
check "a file in the place of a model" fails 2 "config.json is a file: name the directory" script --model_id "$work/bare/config.json"
mkdir "$work/holes" && cp "$work/cut/config.json" tests/data/tokenizers/spm_t5/spiece.model "$work/holes" && cp tests/data/pretrained/bert_f16/model.safetensors "$work/holes"
no_time() { fails 2 "is missing" script --model_id "$work/holes" >"$work/out" && lacks "$work/out" "Elapsed time"; }
check "weights that are not T5's: no time is told" no_time
check "a model that is not there" fails 2 "google-t5/t5-large" script --model_id google-t5/t5-large
printf '{"text": "a"}\n{"summary": "b"}\n' >"$work/fsx/datasets/billsum/train.jsonl"
check "rows without a summary" fails 2 "train.jsonl:1: " script
tap_done
