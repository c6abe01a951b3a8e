#!/bin/bash
# shellcheck disable=SC2154 # tap.sh sets work
# The agent's image with NVIDIA's libraries, made of stand-ins for their wheels: what is taken of a wheel, what is refused, and that
# the agent finds all of it in its own root tree, where a step runs on the emulated GPU. With REAL_WHEELS=FOLDER the image is made
# of NVIDIA's own, by hand: it takes minutes and 6 GB in TMPDIR.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
programs=${BUILD%/*}/release
wheels=${REAL_WHEELS:-$work/wheels}
for need in buildah unzip python3; do
    command -v $need >/dev/null || { skip "the image with CUDA's libraries" "$need is not here"; tap_done; }
done
python3 -c 'import zipfile' 2>/dev/null || { skip "the image with CUDA's libraries" "this python3 makes no wheels"; tap_done; }
[ "$(id -u)" -eq 0 ] || { skip "the image with CUDA's libraries" "it is made by buildah, and tried by root"; tap_done; }
[ -e "$programs/libshoal_cuda.so" ] || { skip "the image with CUDA's libraries" "this build has no GPU backend"; tap_done; }

# ---- stand-ins: each library has the functions that the program looks for
stand_in() { # LIBRARY OUT: every function does nothing but those that say a version
    local prefix
    case $1 in
    libnccl.*) cp "$BUILD/emulation/libnccl.so.2" "$2" && return ;;
    libnvrtc.*) echo 'int nvrtcVersion(int *major, int *minor) { *major = 13; *minor = 0; return 0; }' ;;
    libcublasLt.*) prefix=cublasLt && echo 'unsigned long cublasLtGetVersion(void) { return 130100; }' ;;
    libcudnn.*) prefix=cudnn && echo 'unsigned long cudnnGetVersion(void) { return 91900; } unsigned long cudnnGetCudartVersion(void) { return 13000; }' ;;
    libcupti.*) prefix=cupti && echo 'int cuptiGetVersion(unsigned *version) { *version = 130001; return 0; }' ;;
    *) echo 'int stand_in;' ;;
    esac >"$work/stand_in.c"
    [ -z "${prefix:-}" ] || grep -ohE "\"${prefix}[A-Z][A-Za-z0-9]*\"" kernels/cuda/*.c | tr -d '"' | sort -u | grep -vE 'Get(Cudart)?Version$' |
        sed 's/.*/void &(void); void &(void) {}/' >>"$work/stand_in.c"
    gcc -w -shared -fPIC -Wl,-soname,"$1" -o "$2" "$work/stand_in.c"
}
# wheel NAME VERSION FILE...: like NVIDIA's, with what else is in one
wheel() {
    local tree=$work/tree name=${1//-/_} file
    rm -rf "$tree" && mkdir -p "$tree/nvidia/cu13/lib" "$tree/nvidia/cu13/include" "$tree/$name-$2.dist-info/licenses"
    for file in "${@:3}" libother.so.1; do stand_in "$file" "$tree/nvidia/cu13/lib/$file" || return; done
    echo "licence of $1" >"$tree/$name-$2.dist-info/licenses/License.txt"
    touch "$tree/nvidia/__init__.py" "$tree/nvidia/cu13/include/header.h" "$tree/$name-$2.dist-info/METADATA"
    (cd "$tree" && python3 -m zipfile -c "$wheels/$name-$2-py3-none-manylinux_2_27_x86_64.whl" nvidia "$name-$2.dist-info")
}
mkdir -p "$work/wheels"
if [ -z "${REAL_WHEELS:-}" ]; then
    export NVIDIA_WHEELS=$work/nvidia.txt
    while read -r name version files; do
        # shellcheck disable=SC2086 # a list of names
        wheel "$name" "$version" $files || exit
        sum=$(sha256sum <"$(echo "$wheels/${name//-/_}-$version"-*.whl)")
        echo "$name==$version --hash=sha256:${sum%% *} # $files"
    done < <(sed -n 's/^\([a-z0-9-]*\)==\([^ ]*\) --hash=[^ ]* # /\1 \2 /p' deploy/image/nvidia.txt) >"$NVIDIA_WHEELS"
fi
table=${NVIDIA_WHEELS:-deploy/image/nvidia.txt}
names() { sed -n 's/^\([a-z0-9-]*\)==.*/\1/p' "$table"; }
libraries() { sed -n 's/^[a-z].* # //p' "$table" | tr ' ' '\n'; }

# ---- what is taken, and what is refused
unpack() { deploy/image/wheels.sh unpack "$wheels" "$1"; } # ROOT
check "nothing is fetched that is there" deploy/image/wheels.sh fetch "$wheels"
check "the wheels are unpacked" unpack "$work/nvidia"
taken() { diff <({ libraries | sed 's|^|./usr/lib/shoal/cuda/|'; names | sed 's|.*|./usr/share/doc/&/License.txt|'; } | sort) <(cd "$work/nvidia" && find . -type f | sort); }
check "... the libraries that are named, a licence each, and nothing else" taken
rm -rf "$work/nvidia"
if [ -z "${REAL_WHEELS:-}" ]; then
    whole=$(echo "$wheels"/nvidia_cuda_nvrtc-*.whl)
    spoil() { mv "$whole" "$work/whole" && "$@"; }
    mend() { mv "$work/whole" "$whole"; }
    spoil cp "$work/whole" "$whole" && echo >>"$whole"
    check "a wheel of another hash" fails 1 "nvidia_cuda_nvrtc-13.0.88-py3-none-manylinux_2_27_x86_64.whl has the hash" unpack "$work/spoilt"
    check "... is told when it is fetched, too" fails 1 "remove it" deploy/image/wheels.sh fetch "$wheels"
    mend && spoil true
    check "a wheel that is not there" fails 1 "has no wheel of nvidia-cuda-nvrtc 13.0.88: deploy/image/wheels.sh fetch" unpack "$work/spoilt"
    mend
    sed 's/ # libcupti.so.13/ # libcupti.so.14/' "$NVIDIA_WHEELS" >"$work/other.txt"
    other() { NVIDIA_WHEELS=$work/other.txt unpack "$work/spoilt"; }
    check "a library that is not in it" fails 1 "has no libcupti.so.14" other
    rm -rf "$work/spoilt"
fi

# ---- the image
archive=$work/agent.tar tree=$work/root
blob() { tar -xOf "$archive" "blobs/sha256/${1#sha256:}"; }
make_image() { deploy/image/pack.sh docker.io/library/shoal-agent:test-cuda13 "$archive" "$programs/shoal-agent" "$wheels" >"$work/log"; }
check "the image is made" make_image
manifest=$(blob "$(tar -xOf "$archive" index.json | jq -r '.manifests[0].digest')")
blob "$(jq -r .config.digest <<<"$manifest")" >"$work/config.json"
mapfile -t layers < <(jq -r '.layers[].digest' <<<"$manifest")
mkdir "$tree"
for layer in "${layers[@]}"; do blob "$layer" | tar -xz -C "$tree" || exit; done
contents() { blob "${layers[$1]}" | tar -tz | grep -cE "$2"; } # LAYER REGEX
check "... in two layers: NVIDIA's libraries" [ "$(contents 0 '^usr/lib/shoal/cuda/.*\.so')" -eq "$(libraries | wc -l)" ]
check "... and all else" [ "$(contents 1 'shoal/cuda/.|usr/share/doc/nvidia')" -eq 0 ]
check "... whose sizes are told" grep -qE "^layers: [0-9]+ bytes packed of NVIDIA's libraries, [0-9]+ of all else" "$work/log"
told() { for name in $(names); do grep -qE "^$name [0-9.]+$" "$work/log" || { cat "$work/log"; return 1; }; done; }
check "... and the versions" told
documented() { diff <(names | sort) <(jq -r '.packages[] | select(.externalRefs[0].referenceLocator // "" | test("^pkg:pypi/.*@[0-9.]+$")) | .name' "$archive.spdx.json" | sort); }
check "... which the SPDX document has, too" documented
check "no Python is in it" answers_no grep -E 'python3\.|\.py$|dist-info' <(find "$tree")
linked() { find "$tree/lib" "$tree/usr/lib" -name "$1" | grep .; }
for library in libdl.so.2 libpthread.so.0 librt.so.1; do check "what NVIDIA's driver was linked against: $library" linked $library; done
check "its user may write where it starts" [ "$(stat -c %a "$tree$(jq -r .config.WorkingDir "$work/config.json")")" = 1777 ]

# ---- the agent in its own tree, with nothing of the machine's but what NVIDIA's container toolkit would bring
mkdir -p "$tree/proc" "$tree/dev" "$tree/driver"
more=(GCOV_PREFIX=/tmp/gcov)
in_image() { # COMMAND...: with the image's variables, and those in `more`
    local variables
    mapfile -t variables < <(jq -r '.config.Env[]' "$work/config.json")
    # shellcheck disable=SC2016 # the shells' own
    unshare --mount --net bash -c 'ip link set lo up && mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" && shift && exec "$@"' - "$tree" \
        env -i "${variables[@]}" "${more[@]}" /usr/sbin/chroot --userspec=65532:65532 --groups= "$tree" /bin/bash -c 'cd /workspace && exec "$@"' - "$@"
}
row() { in_image shoal-agent doctor >"$work/out"; grep -E "^$1 +$2  " "$work/out" | grep -qF -- "$3" || { cat "$work/out"; return 1; }; } # STATUS WHAT TEXT
for pair in cuBLASLt:libcublasLt.so.13 cuDNN:libcudnn.so.9 NVRTC:libnvrtc.so.13 CUPTI:libcupti.so.13 NCCL:libnccl.so.2; do
    check "${pair%:*} is found in the image" row ok "${pair%:*}" ": /usr/lib/shoal/cuda/${pair#*:}"
done
check "... the backend, too" row ok "GPU backend" "lib/shoal/libshoal_cuda.so"
check "without a driver that is what is missing" row missing driver "libcuda.so.1 is not on this machine"
if [ -e "$BUILD/fakes/libcuda.so.1" ] && [ -e "$BUILD/fakes/libnvidia-ml.so.1" ]; then
    cp "$BUILD"/fakes/lib*.so.1 "$tree/driver"
    more+=(LD_LIBRARY_PATH=/driver) # where the toolkit's libraries lie is in the loader's cache
    check "a driver too old for the image: both versions" row "too old" driver "550.54.15, serves CUDA 12.4: /driver/libcuda.so.1; this build needs CUDA 13.0"
fi

# ---- a step on the emulated GPU
# shellcheck source=tests/e2e/emulated_gpu.sh
. tests/e2e/emulated_gpu.sh
mkdir "$tree/emulation" "$tree/data"
cp "$SHOAL_CUDA_LIBRARY" "$tree/emulation"
for library in $(ldd "$SHOAL_CUDA_LIBRARY" | grep -o '/[^ ]*'); do
    [ -e "$tree$library" ] || cp "$library" "$tree/emulation"
done
cp -r "$models/llama_sharded" "$work/tokens.bin" "$tree/data" && chmod -R a+rX "$tree/data" "$tree/emulation" "$work"
more+=(LD_LIBRARY_PATH=/driver:/emulation SHOAL_CUDA_LIBRARY=/emulation/libshoal_cuda.so SHOAL_EMULATION=gpus=1)
check "a job trains on the emulated GPU" in_image torchrun --standalone --nproc_per_node=1 train.py --model.name_or_path=/data/llama_sharded \
    --data.dataset=/data/tokens.bin --data.format=llmc_bin --max_seq_length=16 --train_batch_size=2 --max_steps=2 --eval_strategy=no \
    --mixed_precision=no --logging_steps=1 --prometheus_port=0 --device=cuda --save_model=model
check "... to a model where it started" test -e "$tree/workspace/model/model.safetensors"
tap_done
