#!/bin/bash
# shoal inspect: what real checkpoints and files hold, and that damage of each sort is found.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
few_images
all=$work/checkpoints

train() {
    shoal-agent --preset=mnist --nproc_per_node=2 --data.root="$data" --train_size=192 --eval_size=64 --batch_size=32 \
        --epochs=1 --checkpoint_dir="$all" --save_steps=2 --save-model="$work/mnist_cnn.safetensors"
}
check "two ranks leave checkpoints and a model" train
mapfile -t saved < <(ls -d "$all"/*)
one=${saved[0]}

# tells TEXT ARG...: shoal inspect succeeds and a line of it has the text.
tells() {
    local text=$1
    shift
    shoal inspect "$@" >"$work/out" && contains "$work/out" "$text"
}
check "a checkpoint is complete and undamaged" tells "complete, and undamaged: all checksums fit" "$one"
check "its state is told" tells "saved by 2 ranks with FULL_SHARD" "$one"
check "its files are told" tells "model/shard-00002-model-00001-of-" "$one"
check "its model has all elements" tells "model: 8 tensors, 1199882 elements, 4799528 bytes of F32" "$one"
check "so has its optimizer" tells "optimizer: 16 tensors, 2399764 elements, 9599056 bytes" "$one"
check "a tensor of several ranks is told as one" tells "model/fc1.weight  F32 [128, 9216]  4718592 bytes in" --tensors "$one"
check "--quick says what it did not look at" tells "complete, checksums not looked at" --quick "$one"
check "--json has it all" tells '"kind":"checkpoint","complete":true,"verified":true,"step":' --json "$one"
check "a directory of checkpoints is told, the newest first" tells "(the newest)" "$all"
check "all of them are there" tells "${one##*/}" "$all"
check "a safetensors file is told" tells "8 tensors, 1199882 elements, 4799528 bytes" "$work/mnist_cnn.safetensors"

model=$work/model
mkdir "$model"
cp "$work/mnist_cnn.safetensors" "$model/model.safetensors"
check "a Hugging Face directory is told" tells "Hugging Face model" "$model"
cat >"$model/model.safetensors.index.json" <<EOT
{"metadata": {"total_size": 4799528}, "weight_map": {"conv1.weight": "model.safetensors", "gone.weight": "model.safetensors"}}
EOT
check "a tensor that the index names and no file has is found" \
    fails 1 "PROBLEM: tensor gone.weight is not in model.safetensors" shoal inspect "$model"
cat >"$model/model.safetensors.index.json" <<EOT
{"metadata": {"total_size": 4799528}, "weight_map": {"conv1.weight": "model-00001-of-00002.safetensors"}}
EOT
check "a file that is missing is found" fails 1 "model-00001-of-00002.safetensors" shoal inspect "$model"

# damaged NAME: a copy of the checkpoint to break.
damaged() {
    rm -rf "${work:?}/$1"
    cp -r "$one" "$work/$1"
    local shards=("$work/$1/model"/*)
    shard=${shards[0]}
}
damaged flipped
printf '\xff\xff' | dd of="$shard" bs=1 seek=$(($(stat -c %s "$shard") - 9)) conv=notrunc status=none
check "a flipped bit is found" fails 1 "damaged: its checksum is" shoal inspect "$work/flipped"
check "but not by --quick" tells "complete, checksums not looked at" --quick "$work/flipped"
damaged cut
truncate -s -8 "$shard"
check "a file that was cut is found, by --quick too" fails 1 "PROBLEM: $shard" shoal inspect --quick "$work/cut"
mkdir "$work/several"
cp -r "$one" "$work/several/good"
cp -r "$one" "$work/several/too"
check "two of one step are both there" tells "/good" "$work/several"
check "and neither is damaged" contains "$work/out" "complete, and undamaged: all checksums fit"
contains_too() { contains "$work/out" "/too  (the newest)"; }
check "the other one" contains_too
cp -r "$work/cut" "$work/several/cut"
check "damage in a directory of checkpoints is found" fails 1 "PROBLEM: $work/several/cut" shoal inspect "$work/several"
check "and in its JSON" fails 1 '"complete":false' shoal inspect --json "$work/several"
damaged lost
rm "$shard"
check "a file that is missing is found in a checkpoint" fails 1 "$shard: No such file" shoal inspect "$work/lost"
damaged state
sed -i 's/"step"/"stop"/' "$work/state/state.json"
check "a state that was changed is found" fails 1 "state.json: damaged" shoal inspect "$work/state"
damaged half
rm "$work/half/COMPLETE"
check "a save that did not finish is told" fails 2 "a save that did not finish" shoal inspect "$work/half"
damaged manifest
echo x >>"$work/manifest/COMPLETE"
check "a manifest that was changed is told" fails 2 "its checksum does not fit its text" shoal inspect "$work/manifest"

printf 'abc' >"$work/short"
mkdir "$work/empty"
check "what is no such file is refused" fails 2 "short" shoal inspect "$work/short"
check "an empty directory is none of it" fails 2 "no checkpoint, no directory of checkpoints" shoal inspect "$work/empty"
check "what is not there is told" fails 2 "nowhere" shoal inspect "$work/nowhere"
check "a path is needed" fails 2 "give a PATH" shoal inspect
check "an option that is none is refused" fails 2 "--quiet" shoal inspect --quiet "$one"
tap_done
