#!/bin/bash
# The pages in docs/guides, from nothing to their document's last command: each block is run as it is printed, but for the folders at
# the root of a file system and the sizes of what Slurm starts. What they would fetch are small stand-ins.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/t5.sh
. tests/e2e/t5.sh
# shellcheck source=tests/e2e/hub.sh
. tests/e2e/hub.sh
# shellcheck source=tests/e2e/guides.sh
. tests/e2e/guides.sh
hub_place "$work" || exit
export PYTHONPATH=$work/python HOME=$work/home USER=somebody
export AGENT_LOGGING_PROMETHEUS_PORT=0 AGENT_RUNTIME_MASTER_PORT=$MASTER_PORT AGENT_RUNTIME_THREADS=1
SLURM_TEST_PORT=$(free_port 27000)
export SLURM_TEST_PORT
unset HF_HOME DATA_PATH
PATH=$work/bin:$PATH

# run_page PAGE: its blocks in one shell, one after the other, in a folder that has the tree's.
run_page() {
    local page=$1 folder=$work/$1 i=0 first
    mkdir -p "$folder"
    ln -s "$PWD/kustomize" "$PWD/deploy" "$folder"
    echo 'set -eu; ulimit -c 0' >"$folder/script"
    while guide_block "$page" "" $((i + 1)) >"$folder/block"; do
        i=$((i + 1))
        sed -E "s!([ =\":])/(fsx|data)\b!\1$folder/\2!g" "$folder/block" >>"$folder/script"
        echo "echo $i >'$folder/reached'" >>"$folder/script"
    done
    echo 0 >"$folder/reached"
    (cd "$folder" && bash script) >"$folder/log" 2>&1
    i=0
    while guide_block "$page" "" $((i + 1)) >"$folder/block"; do
        i=$((i + 1)) first=$(head -n 1 "$folder/block")
        check "$page: ${first%% \\}" reached "$folder" "$i"
    done
}
reached() { [ "$(cat "$1/reached")" -ge "$2" ] || { tail -n 30 "$1/log"; return 1; }; }
log() { contains "$work/$1/log" "$2"; } # PAGE TEXT

run_page training-on-eks
check "... trains in two processes" log training-on-eks "2 ranks on 1 node"
check "... on what was fetched" log training-on-eks "/fsx/datasets/billsum"
check "... and saves the model" test -e "$work/training-on-eks/fsx/checkpoints/try/model/model.safetensors"

types() { grep -oE '\b[gp][0-9]+[a-z]*\.(metal|[0-9]+xlarge)\b' "$1" | sort -u; }
same_types() { diff <(types tests/data/toe/fsdp.yaml) <(types "kustomize/overlays/fsdp/$1.yaml"); }
for role in master worker; do check "the $role goes to each type of node that the document has" same_types $role; done

run_page hyperpod-slurm
slurm=$work/hyperpod-slurm
check "... one GPU: a rank" contains "$slurm/logs/llama3_2_1b-FSDP_0.out" "1 rank on 1 node"
check "... two nodes: two ranks" contains "$slurm/logs/llama3_2_1b-FSDP_1.out" "2 ranks on 2 nodes"
check "... their losses are told" grep -qE 'Loss: [0-9.]+' "$slurm/logs/llama3_2_1b-FSDP_1.out"
check "... whose checkpoints lie where the job was started" test -e "$slurm/checkpoints/llama_v3-4steps/COMPLETE"
printf '#!/bin/sh\necho "torchrun: error: unrecognized arguments" >&2\nexit 2\n' >"$work/torchrun"
chmod +x "$work/torchrun"
not_ours() { PATH=$work:$PATH bash -c "$(guide_block hyperpod-slurm "" 5 | sed -n '/--version/p')"; }
check "... a torchrun that is another's is noticed" fails 1 "torchrun is not Shoal's: $work/torchrun" not_ours

run_page fsdp-tutorial-mnist
mnist=$work/fsdp-tutorial-mnist
check "... tells what the tutorial tells" grep -qE '^Test set: Average loss: [0-9.]+, Accuracy: [0-9]+/64 \([0-9.]+%\)$' "$mnist/log"
check "... the layer that is wrapped" log fsdp-tutorial-mnist "(fc1): FullyShardedDataParallel("
check "... the weights" test -e "$mnist/tutorial/mnist_cnn.safetensors"

run_page accelerate-trainer
bert=$work/accelerate-trainer
check "... goes on from a checkpoint" log accelerate-trainer "Resumed from ckpt/checkpoint-4"
check "... and merges its slices" test -e "$bert/merged/model.safetensors"

run_page fabric-llama
fabric=$work/fabric-llama
check "... on four ranks" log fabric-llama "4 ranks on 1 node"
check "... with whole weights in its checkpoints" compgen -G "$fabric/checkpoints/*/full/model.safetensors"

# What is not run is at least a shell's, and every page is here.
for page in docs/guides/*.md; do
    page=$(basename "$page" .md)
    check "$page is tried" test -d "$work/$page"
    for kind in cluster elsewhere; do
        for ((i = 1; i <= $(guide_count "$page" $kind); i++)); do
            guide_block "$page" $kind $i >"$work/block"
            check "$page, $kind $i: the shell reads it" bash -n "$work/block"
        done
    done
done

# The files that the pages name are those of the tree.
named() { # PAGE
    local path missing=
    while read -r path; do
        [ -e "$path" ] || missing+=" $path"
    done < <(grep -oE '\b(kustomize|deploy)/[a-z0-9/._-]*[a-z0-9]' "$1" | sort -u)
    while read -r path; do
        [ -e "docs/guides/$path" ] || missing+=" $path"
    done < <(grep -oE '\]\([^)#]+' "$1" | cut -c3- | grep -v '^http' | sort -u)
    [ -z "$missing" ] || { echo "not there:$missing"; return 1; }
}
for page in docs/guides/*.md; do check "$(basename "$page"): the files that it names" named "$page"; done
tap_done
