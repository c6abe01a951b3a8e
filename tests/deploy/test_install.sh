#!/bin/bash
# deploy/ and charts/ agree on what they install. Whether a cluster takes it is tests/cluster's matter.
# shellcheck source=tests/tap.sh disable=SC1091,SC2154
. "$(dirname "$0")/../tap.sh"
chart=charts/shoal

links() { # LINK FILE: a relative link within the tree to that very file or folder
    [ -L "$1" ] && [[ $(readlink "$1") != /* ]] && [ "$1" -ef "$2" ]
}

# listed: the entries of `resources` of deploy/kustomization.yaml
listed() { sed -n 's/^  - //p' deploy/kustomization.yaml | sort; }
every_file_is_installed() {
    diff <(listed) <(cd deploy && printf '%s\n' namespace.yaml crd/pytorchjobs.yaml operator/*.yaml | sort)
}

# plain YAML as the kustomize 2.0.3 of kubectl 1.20 has it
only_files() { ! grep -vE '^(#.*|apiVersion: .*|kind: Kustomization|resources:|  - [a-z_/]+\.yaml)$' deploy/kustomization.yaml; }

# the kustomize of kubectl 1.21 to 1.23 fails at them: "json: unsupported type: map[interface {}]interface {}"
no_merge_keys() { ! grep -rnE '(^|[ {,])<<:' --include='*.yaml' deploy kustomize; }

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

# small enough to be kept in the annotation of a plain `kubectl apply`, twice over
crd_is_small() { [ "$(wc -c <deploy/crd/pytorchjobs.yaml)" -lt 100000 ]; }

# every path of a rule is in the CRD: the last names before x-kubernetes-validations
rules_have_their_places() {
    local name
    sed -n 's|.*/properties/\([A-Za-z]*\)/x-kubernetes-validations$|\1|p' deploy/cel/rules.yaml | while read -r name; do
        grep -qE "^ +$name:" deploy/crd/pytorchjobs.yaml || { echo "the CRD has no $name"; exit 1; }
    done
}

# the job of the demo is that of the overlay, less what only a cluster has
demo_is_the_overlay() {
    local line
    sed -n 's/^ *- \(--.*\)/\1/p' deploy/demo/mnist.yaml | grep -v -- --device | while read -r line; do
        grep -qF -- "- $line" kustomize/overlays/mnist/pytorchjob.yaml || { echo "the overlay has no $line"; exit 1; }
    done
}

check "deploy/kustomization.yaml lists every file" every_file_is_installed
check "... and nothing that kubectl 1.20 does not know" only_files
check "no manifest has merge keys" no_merge_keys
check "the chart's CRD is deploy's" links $chart/crds/pytorchjobs.yaml deploy/crd/pytorchjobs.yaml
check "the chart's objects are deploy's" links $chart/objects deploy/operator
check "the chart's monitoring is deploy's" links $chart/monitoring deploy/monitoring
check "... all of it" monitoring_is_complete
check "the chart's files exist" special_files_exist
check "the chart's version is the program's" same "$(value $chart/Chart.yaml version)" "$version"
check "... and its appVersion" same "$(value $chart/Chart.yaml appVersion)" "$version"
check "the chart's image is deploy's" same "$(value $chart/values.yaml repository):$version" \
    "$(value deploy/operator/deployment.yaml image)"
check "... pulled alike" same "$(value $chart/values.yaml pullPolicy)" "$(value deploy/operator/deployment.yaml imagePullPolicy)"
check "the chart's replicas are deploy's" same "$(value $chart/values.yaml replicas)" \
    "$(value deploy/operator/deployment.yaml replicas)"
check "every value is described" values_are_described
check "the CRD is small" crd_is_small
check "the CEL rules have their places" rules_have_their_places
check "the demo is the overlay's job" demo_is_the_overlay
tap_done
