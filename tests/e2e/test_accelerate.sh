#!/bin/bash
# The fourth document: a BERT, wrapped by BertLayer as accelerate's file says, launched by accelerate.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
ln -s "$BUILD/shoal-agent" "$work/accelerate"
PATH=$work:$PATH
export HF_HOME=$work/hf
document=$PWD/tests/data/accelerate/default_config.yaml
mkdir -p "$work/bert" "$work/data"
cp tests/data/tiny/bert/config.json tests/data/tokenizers/bert_uncased_files/* "$work/bert"
for split in train validation; do
    seq -f '{"text": "the quick brown fox %g jumps over the lazy dog and runs away from it"}' 40 >"$work/data/$split.jsonl"
done
named=(--model_name_or_path "$work/bert" --dataset "$work/data" --head masked_lm --max_seq_length 32
    --per_device_train_batch_size 4 --learning_rate 1e-3 --max_steps 4 --prometheus_port 0)
arguments=("${named[@]}" --init random) # there are no weights
# Runs that name no directory save where Trainer would, in a folder of their own.
trains() {
    rm -rf "$work/cwd" && mkdir "$work/cwd"
    (cd "$work/cwd" && "$@" "${arguments[@]}") >"$work/out" 2>&1 && return
    cat "$work/out"
    return 1
}

check "accelerate launch with the document's file" trains accelerate launch --config_file "$document" my-trainer-script.py \
    --output_dir "$work/ckpt" --checkpointing_steps 2 --log_memory
check "... in its two processes" contains "$work/out" "2 ranks on 1 node"
check "... by its types" contains "$work/out" "precision.mixed_precision=bf16 (file), precision.reduce_dtype=bf16 (preset)"
check "... tells what memory it took" grep -qE '^Total Peak Memory consumed during the train \(max\): [0-9]+$' "$work/out"
check "... saves slices meanwhile" test -e "$work/ckpt/checkpoint-2/COMPLETE"
check "... and no whole weights" test ! -e "$work/ckpt/checkpoint-2/full"
check "... which it does at the end" test -e "$work/ckpt/model/model.safetensors"
check "its slices are merged" accelerate merge-weights "$work/ckpt/checkpoint-4/pytorch_model_fsdp_0" "$work/merged"
check "... into the same weights" cmp "$work/merged/model.safetensors" "$work/ckpt/model/model.safetensors"
check "a run goes on from a checkpoint" trains accelerate launch --config_file "$document" my-trainer-script.py \
    --resume_from_checkpoint "$work/ckpt/checkpoint-2"
check "... and says so" contains "$work/out" "Resumed from $work/ckpt/checkpoint-2"

check "Trainer's True without a checkpoint is an error, as there" fails 2 "no valid checkpoint found in output directory $work/none" \
    accelerate launch --cpu --num_processes 1 my-trainer-script.py "${arguments[@]}" --output_dir "$work/none" --resume_from_checkpoint True
check "... and latest begins" trains accelerate launch --cpu --num_processes 1 my-trainer-script.py --output_dir "$work/none" \
    --resume_from_checkpoint latest
check "... and says so" contains "$work/out" "No checkpoint in $work/none yet: training starts from the beginning"
check "... where True then goes on" trains accelerate launch --cpu --num_processes 1 my-trainer-script.py --output_dir "$work/none" \
    --resume_from_checkpoint True
check "what the named model has no use for is told" fails 0 "data.target_column is ignored: it needs a sequence-to-sequence model" \
    accelerate launch --cpu --num_processes 1 my-trainer-script.py "${arguments[@]}" --output_dir "$work/told" --target_column x

check "... falling over other steps" trains accelerate launch --config_file "$document" my-trainer-script.py \
    --resume_from_checkpoint "$work/ckpt/checkpoint-2" --decay_steps 6
check "... which is told in words, once" fails 0 1 grep -c "the checkpoint's run was another than this one: steps that the rate falls over .*: it had 4, this one has 6" "$work/out"

check "more steps than an epoch has" accelerate launch --num_processes 2 my-trainer-script.py "${arguments[@]}" --max_steps 7 \
    --output_dir "$work/seven" --csv "$work/steps.csv"
check "... go on into the next" grep -q '^7,' "$work/steps.csv"
check "a run whose arguments say little" trains accelerate launch --cpu --num_processes 1 my-trainer-script.py --lr_scheduler_type linear \
    --warmup_steps 1 --jsonl "$work/rates.jsonl"
# in_order FILE REGEX...: a line has each, one after the other, whatever stdout says between: a launcher hands on two streams.
in_order() {
    local file=$1 line
    shift
    while IFS= read -r line; do
        [ $# -gt 0 ] && grep -qE -- "$1" <<<"$line" && shift
    done <"$file"
    [ $# -eq 0 ] || { echo "no line, or an earlier one, has: $1"; cat "$file"; return 1; }
}
check "... says first whose place is taken, then where it saves" in_order "$work/out" \
    "info my-trainer-script.py \(there is no such file here\) is not run: preset trainer stands in for it \(the defaults of Transformers' Trainer: batches of 8" \
    "warning checkpoints go to trainer_output, as no checkpoint.dir says otherwise"
check "... which it does" test -e "$work/cwd/trainer_output/checkpoint-4/COMPLETE" -a -e "$work/cwd/trainer_output/model/model.safetensors"
check "... evaluates nothing" lacks "$work/rates.jsonl" eval
check "... and trains at Trainer's rates" fails 0 "[0, 0.001, 0.000667, 0.000333]" python3 -c "
import json
rows = [json.loads(line) for line in open('$work/rates.jsonl')]
print([round(row['learning_rate'], 6) for row in rows if 'learning_rate' in row])"
check "steps without a masked word" trains accelerate launch --cpu --num_processes 1 my-trainer-script.py --mlm_probability 1e-9 \
    --jsonl "$work/empty.jsonl"
check "... have no loss" contains "$work/empty.jsonl" '"loss":null'
check "... and are not counted as lost" lacks "$work/empty.jsonl" '"nonfinite_steps":1'
check "... nor told to be" lacks "$work/out" "no number"
check "Trainer's words, and whole weights with each checkpoint" trains accelerate launch --num_processes 2 --fsdp="full shard" \
    --fsdp_config='{"transformer_layer_cls_to_wrap": ["BertLayer", "BertEmbeddings"], "min_num_params": 0}' my-trainer-script.py \
    --output_dir "$work/full" --checkpointing_steps 4
check "... lie in its folder" cmp "$work/full/checkpoint-4/full/model.safetensors" "$work/full/model/model.safetensors"
units() { accelerate launch --config_file "$document" my-trainer-script.py "${arguments[@]}" --dry_run; }
check "a unit per BertLayer" fails 0 "in 3 units" units
evaluates_on() { accelerate launch my-trainer-script.py "${arguments[@]}" --do_eval --validation_file "$1" --dry_run; }
printf '{"text": "held out"}\n' >"$work/held-out.jsonl"
check "data to evaluate on is looked for" fails 0 "Evaluation data: 1 file, the first is $work/held-out.jsonl, read as jsonl" \
    evaluates_on "$work/held-out.jsonl"
check "... and missed" fails 0 "the run would fail: no data set $work/none.jsonl" evaluates_on "$work/none.jsonl"

check "what the launcher of others tells its processes" env ACCELERATE_USE_FSDP=true FSDP_VERSION=2 FSDP_RESHARD_AFTER_FORWARD=false \
    FSDP_STATE_DICT_TYPE=SHARDED_STATE_DICT FSDP_TRANSFORMER_CLS_TO_WRAP=BertLayer shoal-agent "${arguments[@]}" --output_dir "$work/env" \
    --max_steps 1
check "... is heard" test -e "$work/env/checkpoint-1/COMPLETE"
printf 'distributed_type: FSDP\nnum_processes: 2\nmain_process_port: 0\nenable_cpu_affinity: true\ngpu_ids: 0,1\n' >"$work/free.yaml"
check "a free port, the cores of a NUMA node, and some GPUs" trains accelerate launch --config_file "$work/free.yaml" my-trainer-script.py
check "... the port is another one" lacks "$work/out" "master_port=29500"

check "accelerate tells what it takes" fails 0 "Usage: accelerate launch" accelerate --help
check "... each of its commands, too" fails 0 "accelerate merge-weights CHECKPOINT DIRECTORY" accelerate env --help
check "accelerate config writes a file" fails 0 "accelerate configuration saved at $HF_HOME/accelerate/default_config.yaml" \
    accelerate config default --num_processes 2 --fsdp_transformer_layer_cls_to_wrap BertLayer
check "... which accelerate launch finds" trains accelerate launch my-trainer-script.py
check "... and heeds" contains "$work/out" "2 ranks on 1 node"
check "accelerate env tells of it" fails 0 "  fsdp_transformer_layer_cls_to_wrap: BertLayer" accelerate env
check "accelerate config default leaves a file as it is, and says so" fails 0 \
    "Configuration already exists at $HF_HOME/accelerate/default_config.yaml, will not override. Remove it, name another by --config_file" \
    accelerate config default --num_processes 4
check "... as it was" contains "$HF_HOME/accelerate/default_config.yaml" "num_processes: 2"
echo 'left: over' >"$work/fsdp.yaml"
check "accelerate config writes over one" fails 0 "accelerate configuration saved at $work/fsdp.yaml" \
    bash -c "accelerate config --config_file '$work/fsdp.yaml' --num_processes 4 </dev/null"
check "... the whole of it" lacks "$work/fsdp.yaml" left
check "... with the new values" contains "$work/fsdp.yaml" "num_processes: 4"
check "a folder is not written over" fails 1 "accelerate config: $work: Is a directory" \
    bash -c "accelerate config --config_file '$work' </dev/null"
check "a shell's questions are answered" bash -c "printf '2\n\n1\n4\n' | accelerate config --config_file - | grep -q 'distributed_type: FSDP'"

launch() { accelerate launch --config_file "$work/bad.yaml" my-trainer-script.py "${arguments[@]}"; }
bad() { # NAME TEXT LINE...
    printf '%s\n' "${@:3}" >"$work/bad.yaml"
    check "$1" fails 2 "$2" launch
}
bad "the flag that named the file" "shoal-agent: --config_file $work/bad.yaml: " 'distributed_type: FSDP' 'mixed_precision: fp16'
bad "modules that FSDP would pass over" "fsdp_ignored_modules: 'x': not supported: every parameter lies in a unit" \
    'distributed_type: FSDP' 'fsdp_config: {fsdp_ignored_modules: x}'
bad "unknown keys" "had unknown keys (['fsdp_konfig', 'zero'])" 'distributed_type: FSDP' 'fsdp_konfig: {}' 'zero: 3'
bad "xla" "xla: 'true': there is no TPU backend" 'distributed_type: FSDP' 'fsdp_config: {xla: true}'
bad "DeepSpeed" "distributed_type: 'DEEPSPEED' is not supported" 'distributed_type: DEEPSPEED'
bad "a file read by one rank, and not sent on" "set --fsdp_sync_module_states to True" 'distributed_type: FSDP' \
    'fsdp_config: {fsdp_cpu_ram_efficient_loading: true, fsdp_sync_module_states: false}'
bad "a class that the model has not" "Could not find the transformer layer class T5Block in the model." 'distributed_type: FSDP' \
    'fsdp_config: {fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP, fsdp_transformer_layer_cls_to_wrap: T5Block}'
check "a script whose arguments do not say what it trains" fails 2 "scripts are not run" accelerate launch my-trainer-script.py
check "a model without weights, which from_pretrained refuses" fails 2 \
    "$work/bert: neither model.safetensors nor model.safetensors.index.json is there; model.init=random draws the values" \
    accelerate launch --cpu --num_processes 1 my-trainer-script.py "${named[@]}" --output_dir "$work/none"
check "... unless it goes on from a checkpoint" fails 0 "Resumed from $work/ckpt/checkpoint-2" \
    accelerate launch --cpu --num_processes 1 my-trainer-script.py "${named[@]}" --output_dir "$work/none" \
    --resume_from_checkpoint "$work/ckpt/checkpoint-2"
check "sequences beyond BERT's positions" fails 2 "data.max_seq_length: 65 tokens, but the model has only 64 positions" \
    accelerate launch my-trainer-script.py "${arguments[@]}" --max_seq_length 65
tap_done
