#!/bin/bash
# shellcheck disable=SC2154 # tap.sh sets work
# The images that `make image` makes of the release build: what is in them, and that the agent's trains in its own root
# tree, as its own user or any other, in the folder in which it is started: as a kubelet would run it.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/e2e/aws.sh
. tests/e2e/aws.sh
# shellcheck source=tests/e2e/hub.sh
. tests/e2e/hub.sh
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
    deploy/image/pack.sh "docker.io/library/$1:test" "$work/$1.tar" "$programs/$1" >"$work/$1.log" || return
    manifest=$(tar -xOf "$work/$1.tar" index.json | jq -r '.manifests[0].digest')
    blob "$1" "$(blob "$1" "$manifest" | jq -r .config.digest)" >"$work/$1.json" && mkdir "$work/$1" || return
    for layer in $(blob "$1" "$manifest" | jq -r '.layers[].digest'); do
        blob "$1" "$layer" | tar -xz -C "$work/$1" || return
    done
}
config() { jq -r ".config.$2 // \"\"" "$work/$1.json"; } # NAME KEY
export SOURCE_URL=https://example.com/shoal
for name in shoal-agent shoal-operator; do
    check "the image of $name is made" unpack "$name"
done

# as the training operator's Deployment calls its program
is_the_manager() { [ "$(readlink "$work/shoal-operator/manager")" = /usr/bin/shoal-operator ]; }
check "the operator's image has /manager" is_the_manager

# ---- what is in them
label() { [ "$(config "$1" "Labels.\"org.opencontainers.image.$2\"")" = "$3" ] || { config "$1" Labels; return 1; }; }
records() { (cd "$work/$1/var/lib/dpkg/status.d" && sed -n 's/^Package: //p' ./* | sort); }
documented() { diff <(records "$1") <(jq -r '.packages[1:][].name' "$2" | sort); } # NAME SPDX
# each library is of a package that is recorded, with its version, architecture and maintainer
recorded() {
    local packages package
    packages=$(cd "$work/$1" && find . -name '*.so*' -not -path '*/usr/lib/shoal/*' -printf '/%P\n/usr/%P\n' | xargs dpkg-query -S 2>/dev/null | sed 's/[:,].*//' | sort -u)
    [ "$(wc -l <<<"$packages")" -gt 10 ] || { echo "$packages"; return 1; }
    for package in $packages; do
        [ "$(grep -cE '^(Version|Architecture|Maintainer): ' "$work/$1/var/lib/dpkg/status.d/$package")" = 3 ] || { echo "$package"; return 1; }
    done
}
told() { [ "$(grep -cE '^[a-z0-9.+-]+ [0-9]' "$work/$1.log")" -eq "$(records "$1" | wc -l)" ] || { cat "$work/$1.log"; return 1; }; }
digest() { contains "$work/$1.log" "$(tar -xOf "$work/$1.tar" index.json | jq -r '.manifests[0].digest')"; }
# no older than this machine's: what Debian has mended meanwhile was taken
no_older() {
    local package
    for package in $(records "$1"); do
        dpkg --compare-versions "$(sed -n 's/^Version: //p' "$work/$1/var/lib/dpkg/status.d/$package")" ge \
            "$(dpkg-query -W -f '${Version}\n' "$package" | head -n 1)" || { echo "$package"; return 1; }
    done
}
for name in shoal-agent shoal-operator; do
    check "$name: its sources are named" label $name source "$SOURCE_URL"
    check "... its version, license and revision" eval "label $name version $(sed -n 's/^#define SHOAL_VERSION "\(.*\)"/\1/p' base/contract.h) &&
        label $name licenses Apache-2.0 && label $name revision '$(git rev-parse HEAD 2>/dev/null)'"
    check "... the package of each library, as scanners look for it" recorded $name
    check "... and the distribution" grep -q '^ID=debian' "$work/$name/etc/os-release"
    check "... with its versions" no_older $name
    check "... which are told" told $name
    check "... and the image's digest" digest $name
    check "... an SPDX document in it" documented $name "$work/$name/usr/share/sbom/$name.spdx.json"
    check "... and beside it" cmp "$work/$name/usr/share/sbom/$name.spdx.json" "$work/$name.tar.spdx.json"
done
purl() { jq -e '.spdxVersion == "SPDX-2.3" and (.packages[1:] | all(.externalRefs[0].referenceLocator | test("^pkg:deb/debian/[^@]+@[^?]+[?]arch=.+&distro=debian-")))' "$1"; }
check "its packages have addresses that scanners know" purl "$work/shoal-agent.tar.spdx.json"
again() {
    mv "$work/shoal-operator.tar" "$work/first.tar" && deploy/image/pack.sh "docker.io/library/shoal-operator:test" \
        "$work/shoal-operator.tar" "$programs/shoal-operator" >/dev/null && cmp "$work/first.tar" "$work/shoal-operator.tar"
}
check "a second archive is the same, byte for byte" again
beside() {
    mkdir "$work/beside" && cp "$programs/shoal-agent" "$work/beside/" && echo "a GPU backend" >"$work/beside/libshoal_cuda.so" &&
        deploy/image/pack.sh "docker.io/library/shoal-agent:test" "$work/beside.tar" "$work/beside/shoal-agent" >/dev/null &&
        cmp "$work/beside.tar" "$work/shoal-agent.tar"
}
check "... also where a GPU backend lies beside the program" beside
check "... which has no place in the small image" [ ! -e "$work/shoal-agent/usr/lib/shoal" ]
offline() {
    PACKAGES_CACHE=$work/apt http_proxy=http://127.0.0.1:9 https_proxy=http://127.0.0.1:9 \
        deploy/image/pack.sh "docker.io/library/shoal-operator:test" "$work/offline.tar" "$programs/shoal-operator"
}
check "where Debian cannot be reached that is told" fails 0 "Debian cannot be asked for updates; what this machine has is taken" offline

# as the test cluster's pause has none
static() {
    echo 'int main(void) { return 0; }' | gcc -static -x c -o "$work/static" - && deploy/image/pack.sh shoal.test/static:1 "$work/static.tar" "$work/static"
}
check "an image without libraries has the certificates' package" fails 0 "ca-certificates 2" static

# ---- how the programs are built
hardened() { # PROGRAM
    local dynamic symbols
    dynamic=$(readelf -dlW "$1") symbols=$(readelf --dyn-syms -W "$1")
    grep -q 'Flags:.* NOW.* PIE' <<<"$dynamic" || { echo "no immediate binding, or no PIE"; return 1; }
    grep -q GNU_RELRO <<<"$dynamic" || { echo "its tables stay writable"; return 1; }
    grep -qE 'GNU_STACK .* RW ' <<<"$dynamic" || { echo "its stack is executable"; return 1; }
    grep -q __stack_chk_fail <<<"$symbols" || { echo "no stack protector"; return 1; }
    grep -qE '__[a-z]+_chk' <<<"$symbols" || { echo "no _FORTIFY_SOURCE"; return 1; }
    [ "$(objdump -d --no-show-raw-insn "$1" | grep -c endbr64)" -gt 100 ] || { echo "jumps land anywhere (no CET)"; return 1; }
}
for name in shoal shoal-agent shoal-operator; do
    check "$name is hardened" hardened "$programs/$name"
done
# Debian's crt1.o, crti.o and crtn.o are not marked for CET, and so no program is; what is ours lacks the mark nowhere.
marked() { # ARCHIVE
    readelf -nW "$1" | awk '/^File: /{file = $2; files++} /IBT, SHSTK/{if (file) marked++; file = ""} END{print marked + 0 " of " files; exit files == 0 || marked != files}'
}
for name in base operator kernels agent cli; do
    check "lib$name: each object is marked for CET" marked "$programs/lib$name.a"
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
# ---- a container of Slurm's, which has of the machine what the script mounts
mkdir -p "$work/bin" "$work/cuda/lib64" "$work/job/logs" && hub_programs "$work" && aws_place "$work/shared" || exit
slurm() { # SCRIPT
    (cd "$work/job" && PATH=$work/bin:$PATH SLURM_TEST_PORT=$(free_port 28000) CONTAINER_IMAGE=$tree CUDA_HOME=$work/cuda \
        HF_HOME=$work/shared/hf DATA_PATH=$work/shared/data sbatch "$OLDPWD/$1")
}
check "the script for Slurm trains in a container" slurm deploy/slurm/train-fsdp.sbatch
check "... which its checkpoints outlive" test -e "$work/job/checkpoints/llama_v3-4steps/COMPLETE"

clean
readonly=1
check "a read-only image trains" trains 65532:65532 "${unsaved[@]}"
check "... and tells what its preset would have written" grep -q 'logging.tensorboard_dir: make directory ./tensorboard_logs: Read-only file system; the run goes on' "$work/out"
check "what was asked for ends it" fails 2 "logging.tensorboard_dir: make directory ./logs: Read-only file system" \
    in_image 65532:65532 "${unsaved[@]}" --tensorboard_dir=./logs
tap_done
