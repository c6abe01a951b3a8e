#!/bin/bash
# shellcheck disable=SC2154 # tap.sh sets work
# The images that `make image` makes of the release build: what is in them, and that the agent's trains in its own root
# tree, as its own user or any other, in the folder in which it is started: as a kubelet would run it.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/aws.sh
. tests/e2e/aws.sh
# shellcheck source=tests/e2e/t5.sh
. tests/e2e/t5.sh
programs=${BUILD%/*}/release
if ! command -v buildah >/dev/null || [ "$(id -u)" -ne 0 ]; then
    skip "the images" "they are made by buildah, and tried by root"
    tap_done
fi

# ---- unpack NAME: the image's archive as a folder, $work/NAME, and its configuration, $work/NAME.json
blob() { tar -xOf "$work/$1.tar" "blobs/sha256/${2#sha256:}"; }
unpack() {
    local manifest layer
    deploy/image/pack.sh "docker.io/library/$1:test" "$work/$1.tar" "$programs/$1" || return
    manifest=$(tar -xOf "$work/$1.tar" index.json | jq -r '.manifests[0].digest')
    blob "$1" "$(blob "$1" "$manifest" | jq -r .config.digest)" >"$work/$1.json" && mkdir "$work/$1" || return
    for layer in $(blob "$1" "$manifest" | jq -r '.layers[].digest'); do
        blob "$1" "$layer" | tar -xz -C "$work/$1" || return
    done
}
config() { jq -r ".config.$2 // \"\"" "$work/$1.json"; } # NAME KEY
for name in shoal-agent shoal-operator; do
    check "the image of $name is made" unpack "$name"
done

# ---- the agent in its own tree
tree=$work/shoal-agent
mkdir -p "$tree/proc" "$tree/dev" "$tree/fsx"
aws_place "$tree/fsx" && t5_place "$tree/fsx" && chmod -R a+rX "$tree/fsx" "$work" || exit
here=$(config shoal-agent WorkingDir)

# in_image USER:GROUP COMMAND...: with nothing but what a container has: the image's variables and folder, /proc, /dev, ports of its own
in_image() {
    local variables
    mapfile -t variables < <(config shoal-agent 'Env[]')
    variables+=(HOME=/ HF_HOME=/fsx/hf DATA_PATH=/fsx/data) # as the pod's are
    # shellcheck disable=SC2016 # the shells' own
    unshare --mount --net bash -c 'ip link set lo up && { [ -z "$2" ] || mount -o bind,ro "$1" "$1"; } && mount --rbind /proc "$1/proc" &&
        mount --rbind /dev "$1/dev" && shift 2 && exec "$@"' - "$tree" "${readonly:-}" env -i "${variables[@]}" /usr/sbin/chroot --userspec="$1" --groups= "$tree" \
        /bin/bash -c 'cd "$0" && exec "$@"' "$here" "${@:2}"
}
trains() { in_image "$@" >"$work/out" 2>&1 || { cat "$work/out"; return 1; }; } # USER:GROUP COMMAND...
# what upstream's manifest runs, on one node
mapfile -t aws < <(sed -n '/^ *command:/,/^ *volumeMounts:/s/^ *- \(-*[^ ]*\).*/\1/p' tests/data/adt/llama-fsdp.yaml |
    sed 's/--nnodes=2/--standalone/; /^name:/d')
without() { printf '%s\n' "${aws[@]}" | grep -vE "^--($1)="; } # REGEX
mapfile -t unsaved < <(without 'checkpoint_dir|resume_from_checkpoint|checkpoint_freq')
clean() { rm -rf "${tree:?}$here"/* "$work/out"; }

for user in 65532:65532 1000680000:0; do # the image's, and one that OpenShift chooses
    clean
    check "user $user: AWS's job trains" trains $user "${aws[@]}"
    check "... into ./checkpoints" test -e "$tree$here/checkpoints/llama_v3-4steps"
    check "... with its preset's log" test -d "$tree$here/tensorboard_logs"
    clean
    check "... without a folder for checkpoints, too" trains $user "${unsaved[@]}"
    check "a job of the Fabric scripts trains" trains $user shoal-agent --preset=fabric --model_name= --model_type=llama --init=random \
        --hidden_size=32 --num_hidden_layers=1 --num_attention_heads=2 --intermediate_size=64 --vocab_size=704 --max_steps=2 \
        --dataset=allenai/c4 --dataset_config_name=en --tokenizer=hf-internal-testing/llama-tokenizer --max_seq_length=32 --eval_strategy=no --checkpoint.dir=saved
    check "... with its preset's record" test -d "$tree$here/wandb"
    check "accelerate's job trains" trains $user accelerate launch --num_processes 2 train.py --model_name_or_path google-t5/t5-small \
        --dataset /fsx/datasets/billsum --output_dir out --max_steps 2
    check "... into a folder of its own" test -e "$tree$here/out/model/model.safetensors"
done
# with readOnlyRootFilesystem, and no volume to write to
clean
readonly=1
check "a read-only image trains" trains 65532:65532 "${unsaved[@]}"
check "... and tells what its preset would have written" grep -q 'logging.tensorboard_dir: make directory ./tensorboard_logs: Read-only file system; the run goes on' "$work/out"
check "what was asked for ends it" fails 2 "logging.tensorboard_dir: make directory ./logs: Read-only file system" \
    in_image 65532:65532 "${unsaved[@]}" --tensorboard_dir=./logs
tap_done
