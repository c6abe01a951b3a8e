#!/bin/bash
# kustomize/: each overlay is a job that shoal run decodes, the first document's base and overlays train; and so does what
# the original repository renders, of which only the image is another.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/t5.sh
. tests/e2e/t5.sh
if ! command -v kubectl >/dev/null; then
    skip "overlays" "kubectl is not on the PATH"
    tap_done
fi
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
render() { kubectl kustomize "kustomize/overlays/$1" 2>/dev/null; }
small="--data.root=/usr/share/datasets/fashion-mnist --train_size=24 --eval_size=8 --epochs=1 --batch_size=4 --prometheus_port=0"

# The names that manifests give pods and services are in what is rendered.
has() { # OVERLAY TEXT...
    local text
    render "$1" >"$work/rendered" || return 1
    for text in "${@:2}"; do contains "$work/rendered" "$text" || return 1; done
}
check "overlay fsdp is the document's job" has fsdp "name: pytorch-dist-job" "namespace: pytorch" "replicas: 3" \
    "topologyKey: kubernetes.io/hostname" "nodeAffinity:" "torchrun --nnodes 4 --nproc_per_node 1 t5-fsdp.py"
affinities() { [ "$(render fsdp | grep -c podAffinity)" -eq 1 ]; }
check "... whose master waits for no other pod's node" affinities
check "overlay ddp" has ddp "replicas: 2" "torchrun --nnodes 3 --nproc_per_node 1 mnist-ddp.py"

# The other overlays' arguments, with the sizes of their models in the place of what only their volume has.
plan() { # OVERLAY NAME
    mapfile -t arguments < <(sed -n '/args:/,/env:/s/^ *- \([^ ]*\).*/\1/p' "kustomize/overlays/$1/pytorchjob.yaml")
    [ "$1" != bert ] || arguments=(accelerate "${arguments[@]}")
    shoal-agent "${arguments[@]}" --model.name_or_path= --model.architecture="$2" --init=random --strict --dry_run
}
check "overlay t5-small" fails 0 "60506624 parameters in 13 units" plan t5-small t5_small
check "overlay t5-base" fails 0 "222903552 parameters in 25 units" plan t5-base t5_base
check "overlay bert" fails 0 "109514298 parameters in 13 units" plan bert bert_base_uncased

# What these overlays' pods do, with a tiny model in the place of each and two processes a pod.
tiny() { # OVERLAY MODEL: a place as the claim has it
    local hub=$work/fsx/hf/hub/models--$2
    mkdir -p "$hub/refs" "$hub/snapshots/abc" && printf abc >"$hub/refs/main"
    case $1 in
    bert)
        cp tests/data/tiny/bert/config.json tests/data/tokenizers/bert_uncased_files/* "$hub/snapshots/abc"
        draw_weights "$hub/snapshots/abc" --head masked_lm --dataset "$work/fsx/datasets/wikitext" --max_seq_length 32
        ;;
    *)
        cp tests/data/tiny/t5/config.json tests/data/tokenizers/spm_t5/spiece.model "$hub/snapshots/abc"
        draw_weights "$hub/snapshots/abc" --dataset "$work/fsx/datasets/billsum" --max_target_length 8
        ;;
    esac
}
job() { # OVERLAY FLAGS...
    render "$1" | sed "s|/fsx|$work/fsx|; s|nprocPerNode: .*|nprocPerNode: \"2\"|; s|num_processes=4|num_processes=2|" |
        sed "s|^\( *\)- --batch_size=.*|&${*:2}|; s|^\( *\)- --per_device_train_batch_size=.*|&${*:2}|" | trains "$1"
}
more() { printf '\\n\\1- %s' "$@"; } # further arguments, each a line of the list

# trains NAME: runs the manifest on the standard input.
trains() {
    cat >"$work/$1.yaml"
    shoal run -f "$work/$1.yaml" --log-dir "$work/$1" --progress never >"$work/$1.out" 2>&1 || { cat "$work/$1.out"; return 1; }
}
ddp() { render ddp | sed "s|mnist-ddp.py .*|mnist-ddp.py $small|" | trains ddp; }
check "shoal run trains the ddp overlay" ddp
check "... on three pods" contains "$work/ddp.out" "3 ranks on 3 nodes"
check "... with the tutorial's lines" grep -q $'^Train Epoch: 1 \tLoss: ' "$work/ddp.out"

mkdir -p "$work/fsx/datasets/billsum" "$work/fsx/datasets/wikitext"
seq 64 | sed 's/.*/{"text": "the quick brown fox jumps over the lazy dog", "summary": "a fox jumps &"}/' >"$work/fsx/datasets/billsum/train.jsonl"
seq -f '{"text": "the quick brown fox %g jumps over the lazy dog"}' 64 >"$work/fsx/datasets/wikitext/train.jsonl"
cp "$work/fsx/datasets/wikitext/train.jsonl" "$work/fsx/datasets/wikitext/validation.jsonl"
for overlay in t5-small t5-base; do
    tiny $overlay "google-t5--$overlay"
    check "shoal run trains the $overlay overlay" job $overlay "$(more --max_source_length=48 --max_target_length=16 --device=cpu --prometheus_port=0)"
    check "... by two processes" contains "$work/$overlay.out" "2 ranks on 1 node"
    check "... and leaves the model on the volume" test -e "$work/fsx/checkpoints/$overlay/model/model.safetensors"
done
tiny bert google-bert--bert-base-uncased
check "shoal run trains the bert overlay" job bert "$(more --max_seq_length=32 --max_steps=4 --device=cpu --prometheus_port=0)"
check "... and leaves the model on the volume" test -e "$work/fsx/checkpoints/bert/model/model.safetensors"

original() { sed "s|mnist-ddp.py|mnist-ddp.py $small|" tests/data/toe/ddp.yaml | trains original; }
check "the original's manifest trains with only the image changed" original
check "... git clone fetches nothing" contains "$work/original.out" "git: nothing is fetched: this is shoal-agent"
check "... nor does pip install" contains "$work/original.out" "pip: nothing is fetched: this is shoal-agent"
check "... on three pods" contains "$work/original.out" "3 ranks on 3 nodes"
check "... and leaves nothing behind" rmdir "$TMPDIR"
tap_done
