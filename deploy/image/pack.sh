#!/bin/bash
# pack.sh NAME:TAG ARCHIVE PROGRAM [WHEELS]: makes an OCI archive of an image that holds PROGRAM in /usr/bin, the shared libraries
# it needs, the certificates of public CAs, and nothing else: no package manager, and no shell but in the agent's, for
# manifests whose command is bash -c. It runs PROGRAM, as user 65532. The agent is there under the names of the launchers
# that manifests call, and of what they run before them, too. `ctr -n k8s.io images import ARCHIVE` and `skopeo copy oci-archive:ARCHIVE docker://...` take it.
#
# WHEELS is a folder with NVIDIA's (wheels.sh): their libraries are a layer of their own, below all else, which stays the same from
# version to version. Then the agent's GPU backend (libshoal_cuda.so beside PROGRAM) is in the image, too, and only then. What a GPU needs is whole then, but for the driver, which NVIDIA's container toolkit brings.
#
# packages.sh says which Debian packages are in it. ARCHIVE.spdx.json lies beside the archive. The same tree and the same
# packages make the same archive, byte for byte; its digest is printed. SOURCE_URL: of the label that says where the sources
# are, if the checkout has no remote.
set -euo pipefail

[ $# -eq 3 ] || [ $# -eq 4 ] || {
    echo "usage: deploy/image/pack.sh NAME:TAG ARCHIVE PROGRAM [WHEELS]" >&2
    exit 2
}
name=$1 archive=$2 program=$3 wheels=${4:-}
command -v buildah >/dev/null || {
    echo "pack.sh: buildah is not here: run 'make cluster-deps'" >&2
    exit 1
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root nvidia=$work/nvidia
storage=(--root "$work/storage" --runroot "$work/run" --storage-driver vfs)

libraries() { # PROGRAM: those of a static one are none
    ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true
}

mkdir -p "$root/usr/bin" "$root/etc/ssl/certs" "$nvidia"
mkdir -m 1777 "$root/tmp"
install -m 755 "$program" "$root/usr/bin/"
strip "$root/usr/bin/$(basename "$program")"
if [ "$(basename "$program")" = shoal-agent ]; then
    mkdir -p "$root/usr/local/bin" "$root/bin" "$root/workspace/code/samples/fsdp"
    chmod -R 1777 "$root/workspace" # where the training-on-eks repository would be
    names=$(sed -n 's/^#define AGENT_\(LAUNCHERS\|IMAGE_NAMES\) //p' base/contract.h | grep -o '"[^"]*"' | tr -d '"')
    for name_there in $names; do
        ln -s /usr/bin/shoal-agent "$root/usr/local/bin/$name_there"
    done
    install -m 755 /bin/bash "$root/bin/"
    ln -s bash "$root/bin/sh"
    shell=/bin/bash
    # not where one happens to lie beside the program: an image without NVIDIA's libraries has no use for it
    gpu=${wheels:+$(dirname "$program")/libshoal_cuda.so}
    [ -z "$gpu" ] || [ -e "$gpu" ] || { echo "pack.sh: there is no $gpu: make V=release gpu" >&2 && exit 1; }
    [ -z "$gpu" ] || install -D -m 644 "$gpu" "$root/usr/lib/shoal/libshoal_cuda.so"
else
    ln -s /usr/bin/shoal-operator "$root/manager" # as the training operator's Deployment calls it
fi
# NVIDIA's driver was linked where these were no part of libc.so.6 yet
system=$(libraries "$program" | grep '/libc\.so\.6$' || true)
[ -z "${gpu:-}" ] || ls "${system%/*}"/lib{dl.so.2,pthread.so.0,rt.so.1} >"$work/list"
touch "$work/list" "$work/wheels"
[ -z "$wheels" ] || deploy/image/wheels.sh unpack "$wheels" "$nvidia" >"$work/wheels"
# those of the wheels need more of the C library than the agent does, as the driver's do
for object in "$program" ${shell:-} $(find "$nvidia" -name '*.so*'); do
    libraries "$object"
done | { grep -v "^$nvidia/" || true; } | sort -u - "$work/list" -o "$work/list"
while read -r library; do
    install -D -m 755 "$library" "$root$library"
done <"$work/list"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
printf '%s\n' /etc/ssl/certs/ca-certificates.crt ${shell:+"$shell"} >>"$work/list"
echo 'shoal:x:65532:65532::/tmp:/sbin/nologin' >"$root/etc/passwd"
echo 'shoal:x:65532:' >"$root/etc/group"

workdir=/
[ ! -d "$root/workspace" ] || workdir=/workspace
image=${name##*/} version=$(sed -n 's/^#define SHOAL_VERSION "\(.*\)"/\1/p' base/contract.h)
deploy/image/packages.sh "$root" "${image%:*}" "$version" "$work/list" "$work/wheels"
labels=(--label "org.opencontainers.image.title=${image%:*}" --label "org.opencontainers.image.version=$version"
    --label "org.opencontainers.image.licenses=Apache-2.0" --label "org.opencontainers.image.revision=$(git rev-parse HEAD 2>/dev/null || true)")
source=${SOURCE_URL:-$(git config --get remote.origin.url || true)}
[ -z "$source" ] || labels+=(--label "org.opencontainers.image.source=$source")
unpacked=$(du -sbc "$root" "$nvidia" | tail -n 1 | cut -f1)
container=$(buildah "${storage[@]}" from scratch)
variables=(--env PATH=/usr/local/bin:/usr/bin:/bin)
if [ -n "$wheels" ]; then
    buildah "${storage[@]}" copy --quiet "$container" "$nvidia" / >/dev/null
    buildah "${storage[@]}" commit --quiet --timestamp 0 --rm "$container" localhost/nvidia >/dev/null
    rm -rf "$nvidia"
    container=$(buildah "${storage[@]}" from localhost/nvidia)
    variables+=(--env SHOAL_CUDA_LIBRARY_PATH=/usr/lib/shoal/cuda --env "NVIDIA_DRIVER_CAPABILITIES=compute,utility")
fi
buildah "${storage[@]}" copy --quiet "$container" "$root" / >/dev/null
# A job without a workingDir starts where it may write, as in the folders of its trainer's own image.
buildah "${storage[@]}" config "${variables[@]}" --user 65532:65532 --workingdir "$workdir" \
    --entrypoint "[\"/usr/bin/$(basename "$program")\"]" "${labels[@]}" "$container"
buildah "${storage[@]}" commit --quiet --timestamp 0 --disable-compression=false "$container" "oci:$work/oci:$name" >/dev/null
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -C "$work/oci" -cf "$archive" oci-layout index.json blobs
install -m 644 "$root/usr/share/sbom/${image%:*}.spdx.json" "$archive.spdx.json"
manifest=$work/oci/blobs/sha256/$(jq -r '.manifests[0].digest | sub("sha256:"; "")' "$work/oci/index.json")
[ -z "$wheels" ] || jq -r '.layers | "layers: \(.[0].size) bytes packed of NVIDIA'"'"'s libraries, \(.[1].size) of all else"' "$manifest"
echo "$archive: $name, $(stat -c %s "$archive") bytes packed, $unpacked unpacked, $(jq -r '.manifests[0].digest' "$work/oci/index.json")"
