#!/bin/bash
# pod_template.sh SWAGGER.json: writes the schema of pod templates into deploy/crd/pytorchjobs.yaml anew, from the OpenAPI 2
# description of an API server (jq does it: pod_template.jq). What is there is of Kubernetes 1.36, whose repository has the
# description as api/openapi-spec/swagger.json. A cluster prints its own: kubectl get --raw /openapi/v2 >swagger.json
set -euo pipefail
[ $# -eq 1 ] || {
    echo "usage: deploy/crd/pod_template.sh SWAGGER.json" >&2
    exit 2
}
made=$(mktemp)
trap 'rm -f "$made"' EXIT
jq --raw-output --argjson indent 26 --from-file "${0%.sh}.jq" "$1" >"$made"
sed -i -e "/^ *template: &template/r $made" -e '/^ *template: &template/,/^ *Worker:/{/^ *template: /b; /^ *Worker:/b; d}' "${0%/*}/pytorchjobs.yaml"
