#!/bin/bash
# shellcheck disable=SC1091,SC2034,SC2154 # see jobs.sh
# shoal run -k: through kubectl or kustomize, whichever is there.
. "$(dirname "$0")/jobs.sh"
shoal=$BUILD/shoal
folder=$work/kustomization
mkdir "$folder" "$work/kubectl" "$work/kustomize" "$work/neither"
job 'echo trained' >"$folder/job.yaml"
echo 'resources: [job.yaml]' >"$folder/kustomization.yaml"
for name in kubectl kustomize; do
    cat >"$work/$name/$name" <<END
#!/bin/sh
echo "$name \$*" >"$work/called"
[ -e "\$2/kustomization.yaml" ] || { echo "Error: no kustomization in it" >&2; exit 1; }
while IFS= read -r line; do printf '%s\n' "\$line"; done <<EOF
$(cat "$folder/job.yaml")
EOF
END
    chmod +x "$work/$name/$name"
    ln -s "$(command -v sh)" "$work/$name/sh"
done
kustomize() { # TOOL FOLDER
    PATH=$work/$1 "$shoal" run -k "$2" --log-dir "$logs"
}

verb() { [ "$1" = kubectl ] && echo kustomize || echo build; }

check "neither is there" fails 2 \
    "shoal: $folder: a kustomization needs kubectl or kustomize, and neither is on the PATH" kustomize neither "$folder"
for name in kubectl kustomize; do
    check "$name" fails 0 trained kustomize $name "$folder"
    check "$name fails" fails 2 "Error: no kustomization in it" kustomize $name "$work/neither"
    sed -i 's/replicas: 1/replicas: 2/' "$work/$name/$name"
    check "$name: a fault in what it makes" fails 2 \
        "shoal: $name $(verb $name) $folder:10: document 1 (PyTorchJob job): spec.pytorchReplicaSpecs[Master].replicas" \
        kustomize $name "$folder"
done
check "a file" fails 2 "not a folder; for a file use -f" kustomize kubectl "$folder/job.yaml"

if real=$(command -v kubectl) && "$real" kustomize "$folder" >/dev/null 2>&1; then
    check "the real kubectl" fails 0 trained shoal run -k "$folder" --log-dir "$logs"
else
    skip "the real kubectl" "kubectl is not on the PATH"
fi
tap_done
