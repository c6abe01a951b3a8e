#!/bin/bash
# deploy/ and charts/ agree on what they install. Whether a cluster takes it is tests/cluster's matter.
# shellcheck source=tests/tap.sh disable=SC1091,SC2154
. "$(dirname "$0")/../tap.sh"
chart=charts/shoal

links() { # LINK FILE: a relative link within the tree to that very file or folder
    [ -L "$1" ] && [[ $(readlink "$1") != /* ]] && [ "$1" -ef "$2" ]
}

listed() { sed -n 's/^  - //p' "$1/kustomization.yaml" | sort; } # FOLDER: what its kustomization builds on
every_file_is_installed() { diff <(listed "$1") <(cd "$1" && printf '%s\n' *.yaml | grep -vx kustomization.yaml | sort); }
installs() { diff <(listed "$1") <(printf '%s\n' "${@:2}"); } # FOLDER ENTRY...

# what the kustomize 2.0.3 of kubectl 1.20 knows: files among resources, folders among bases, and no `patches`
for_old_kubectl() { # FOLDER
    answers_no grep -vE '^(#.*|apiVersion: .*|kind: Kustomization|(resources|bases|patchesJson6902):|  - ([a-z_]+\.yaml|[a-z./]+|path: .*)|    target:|      [a-z]+: [A-Za-z0-9.]+)$' \
        "$1/kustomization.yaml" &&
        answers_no grep -v '\.yaml$' < <(sed -n '/^resources:/,/^[^ ]/s/^  - //p' "$1/kustomization.yaml") &&
        answers_no grep '\.yaml$' < <(sed -n '/^bases:/,/^[^ ]/s/^  - //p' "$1/kustomization.yaml")
}

# the kustomize of kubectl 1.21 to 1.23 fails at them: "json: unsupported type: map[interface {}]interface {}"
no_merge_keys() { answers_no grep -rnE '(^|[ {,])<<:' --include='*.yaml' deploy kustomize; }

value() { # FILE KEY: of a line "KEY: VALUE  # comment"
    sed -n "s/^ *$2: *\"\{0,1\}\([^\"# ]*\).*/\1/p" "$1" | head -n 1
}
version=$(sed -n 's/^#define SHOAL_VERSION "\(.*\)"/\1/p' base/contract.h)
same() { [ -n "$1" ] && diff <(echo "$1") <(echo "$2"); }

# the names of files that the chart treats apart are files of deploy/operator
special_files_exist() {
    local file
    grep -o '"[a-z_]*\.yaml"' "$chart/templates/objects.yaml" | tr -d '"' | while read -r file; do
        [ -e "deploy/operator/$file" ] || { echo "no deploy/operator/$file"; exit 1; }
    done
}

# what the templates replace is in the files that they replace it in, to the letter
replaced_texts_exist() {
    local file
    for file in deploy/operator/rbac.yaml:shoal-operator deploy/kueue/role_binding.yaml:shoal-operator-kueue; do
        grep -A2 '^kind: ClusterRoleBinding$' "${file%:*}" | tr '\n' '|' | grep -q "^kind: ClusterRoleBinding|metadata:|  name: ${file#*:}|" || { echo "$file"; return 1; }
    done
    for file in deploy/monitoring/{job_monitor,operator_monitor,rules}.yaml; do
        grep -qx '    release: prometheus # by which kube-prometheus-stack finds it' "$file" || { echo "$file"; return 1; }
    done
}

# the template of deploy/monitoring lists its objects by name
monitoring_is_complete() {
    diff <(sed -n 's/^{{- range list \(.*\) }}$/\1/p' "$chart/templates/monitoring.yaml" | tr -d '"' | tr ' ' '\n' | sort) \
        <(sed -n '/^resources:/,/^[^ r]/s/^  - \(.*\)\.yaml$/\1/p' deploy/monitoring/kustomization.yaml | sort)
}

# values.schema.json knows each value and no other
values_are_described() {
    diff <(grep -oE '^[a-zA-Z]+:' "$chart/values.yaml" | tr -d : | sort) \
        <(sed -n 's/^    "\([a-zA-Z]*\)": {.*/\1/p' "$chart/values.schema.json" | grep -v '^global$' | sort)
}

# Helm itself, where it is installed, against kustomize; both go through kustomize, which sorts
normal() { # reads objects
    local folder
    folder=$(mktemp -d -p "$work")
    cat >"$folder/objects.yaml" && echo 'resources: [objects.yaml]' >"$folder/kustomization.yaml" && kubectl kustomize "$folder"
}
without_namespace() { awk 'BEGIN { RS = "---\n" } !/\nkind: Namespace\n/ { printf "---\n%s", $0 }'; }
rendered() { helm template shoal "$chart" --namespace shoal-system --include-crds "$@" | normal; } # OPTION...
renders_the_same() {
    diff <(rendered "$@") <({ kubectl kustomize deploy/crd && echo --- && kubectl kustomize deploy/operator; } | without_namespace | normal)
}
leaves_out() { # LINE OPTION...
    rendered "${@:2}" >"$work/rendered" && contains "$work/rendered" "kind: Deployment" && answers_no grep -x -- "$1" "$work/rendered"
}

# the job of the demo is that of the overlay, less what only a cluster has
demo_is_the_overlay() {
    local line
    sed -n 's/^ *- \(--.*\)/\1/p' deploy/demo/mnist.yaml | grep -v -- --device | while read -r line; do
        grep -qF -- "- $line" kustomize/overlays/mnist/pytorchjob.yaml || { echo "the overlay has no $line"; exit 1; }
    done
}

check "deploy/ installs all" installs deploy crd operator
check "... and so does deploy/before-1.23" installs deploy/before-1.23 ../operator crd
if command -v kubectl >/dev/null; then
    # the cluster's binding is gone, that of the namespace names the same role, and the operator looks there alone
    one_namespace() {
        kubectl kustomize deploy/one-namespace >"$work/one" && lacks "$work/one" "kind: ClusterRoleBinding" &&
            contains "$work/one" "- --namespace=$(value deploy/one-namespace/role_binding.yaml namespace)" &&
            [ "$(grep -c '^kind: ' "$work/one")" -eq "$(kubectl kustomize deploy | grep -c '^kind: ')" ]
    }
    check "deploy/one-namespace installs as much, with rights in one" one_namespace
    watch_nodes() {
        kubectl kustomize deploy/watch-nodes >"$work/nodes" && contains "$work/nodes" "- --watch-nodes" &&
            diff <(grep '^kind: ' "$work/nodes" | sort) <({ kubectl kustomize deploy && cat deploy/watch-nodes/role.yaml; } | grep '^kind: ' | sort)
    }
    with_kueue() {
        kubectl kustomize deploy/kueue >"$work/kueue" && contains "$work/kueue" "- --kueue" &&
            diff <(grep '^kind: ' "$work/kueue" | sort) <({ kubectl kustomize deploy && cat deploy/kueue/role*.yaml; } | grep '^kind: ' | sort)
    }
    check "deploy/kueue installs all, its rights, and the flag" with_kueue
    check "deploy/watch-nodes installs all, the right to see nodes, and the flag" watch_nodes
fi
for folder in deploy/crd deploy/operator; do
    check "$folder lists every file" every_file_is_installed $folder
done
for folder in deploy/crd deploy/operator deploy/before-1.23 deploy/before-1.23/crd; do
    check "$folder has nothing that kubectl 1.20 does not know" for_old_kubectl $folder
done
check "no manifest has merge keys" no_merge_keys
check "the chart's CRD is deploy's" links $chart/crds/pytorchjobs.yaml deploy/crd/pytorchjobs.yaml
check "the chart's objects are deploy's" links $chart/objects deploy/operator
check "the chart's right to see nodes is deploy's" links $chart/watch-nodes deploy/watch-nodes
check "the chart's right to queue jobs is deploy's" links $chart/kueue deploy/kueue
check "the chart's monitoring is deploy's" links $chart/monitoring deploy/monitoring
check "... all of it" monitoring_is_complete
check "the chart's files exist" special_files_exist
check "the texts that the chart replaces are there" replaced_texts_exist
check "the chart's version is the program's" same "$(value $chart/Chart.yaml version)" "$version"
check "... and its appVersion" same "$(value $chart/Chart.yaml appVersion)" "$version"
check "the chart's image is deploy's" same "$(value $chart/values.yaml repository):$version" \
    "$(value deploy/operator/deployment.yaml image)"
check "... pulled alike" same "$(value $chart/values.yaml pullPolicy)" "$(value deploy/operator/deployment.yaml imagePullPolicy)"
check "the chart's replicas are deploy's" same "$(value $chart/values.yaml replicas)" \
    "$(value deploy/operator/deployment.yaml replicas)"
check "every value is described" values_are_described
if command -v helm >/dev/null; then # Debian has none
    check "helm lint" helm lint --strict $chart
    check "helm renders what deploy/ installs" renders_the_same
    check "... for an old server" renders_the_same --kube-version 1.20.0
    check "... and a new one" renders_the_same --kube-version 1.36.0
    check "... without what is not wanted" leaves_out "kind: NetworkPolicy" --set networkPolicy=false
    check "... with rights in one namespace" leaves_out "kind: ClusterRoleBinding" --set watchNamespace=ml
    check "... whose jobs it works on" contains "$work/rendered" "- --namespace=ml"
    check "... nothing of nodes, unless" leaves_out "  name: shoal-operator-nodes"
    watches_nodes() { rendered --set watchNodes=true >"$work/rendered" && contains "$work/rendered" "- --watch-nodes"; }
    check "... it is wanted" watches_nodes
    check "... nothing of Kueue, unless" leaves_out "  name: shoal-operator-kueue"
    queues() { rendered --set kueue=true >"$work/rendered" && contains "$work/rendered" "- --kueue"; }
    check "... it is wanted" queues
    binds_workloads_there() {
        rendered --set kueue=true --set watchNamespace=ml >"$work/rendered" && grep -A3 '^kind: RoleBinding$' "$work/rendered" | grep -A1 'name: shoal-operator-kueue$' | grep -q 'namespace: ml'
    }
    check "... with its Workloads in one namespace" binds_workloads_there
    of_a_number() { helm template shoal "$chart" --namespace 2024 --set watchNamespace=2025 >"$work/number" && contains "$work/number" 'namespace: "2025"'; }
    check "... in namespaces that look like numbers" of_a_number
    waits_as_told() { rendered --set initContainerTemplate='[]' >"$work/rendered" && contains "$work/rendered" "mountPath: /etc/config"; }
    check "... with a template of init containers" waits_as_told
    found_by() { rendered --set monitoring=true --set monitoringLabels.release=kps >"$work/rendered" && contains "$work/rendered" "release: kps"; }
    check "... with labels for Prometheus" found_by
    check "... nor that" leaves_out "  name: shoal-edit" --set userRoles=false
    check "a value that is misspelt" fails 1 "replica" helm template shoal $chart --set replica=1
fi
check "the demo is the overlay's job" demo_is_the_overlay
tap_done
