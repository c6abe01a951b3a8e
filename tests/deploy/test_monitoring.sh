#!/bin/bash
# What deploy/monitoring installs: promtool takes its rules, its scrape jobs and every expression of its dashboards, the
# alerts fire when they should and not before, and kubectl builds it. That its metrics exist:
# tests/cli/test_monitoring.c; that its scrape jobs find pods: tests/e2e/test_dashboards.sh.
# shellcheck source=tests/tap.sh disable=SC1091,SC2154
. "$(dirname "$0")/../tap.sh"
folder=deploy/monitoring

# as docs/monitoring.md says it
sed '1,/^spec:/d; s/^  //' "$folder"/rules.yaml >"$work/rules.yaml"
cp tests/deploy/alerts.yaml "$work/"
{ echo "rule_files: [rules.yaml]"; cat "$folder"/prometheus.yaml; } >"$work/prometheus.yaml"

# every expression as a recording rule, with what Grafana puts for its variables
dashboard_rules() { # FILE
    jq '{groups: [{name: "g", rules: [.panels[] | .targets[]?.expr
        | gsub("\\$__rate_interval"; "5m") | gsub("\\$[a-z_]+"; ".*")] | to_entries
        | map({record: "panel:\(.key)", expr: .value})}]}' "$1" >"$work/dashboard.yaml"
    promtool check rules "$work/dashboard.yaml"
}

# the same relabelling for those with and those without the Prometheus Operator: what each monitor names is in the jobs
monitors_agree() {
    local word
    grep -ohE '__meta_kubernetes_[a-z_]+|"[^"]*9401"|pytorchjob-[a-z]+|"DCGM_[^"]*"|exported_[a-z]+' "$folder"/*_monitor.yaml | sort -u | while read -r word; do
        grep -qF -- "$word" "$folder"/prometheus.yaml || { echo "prometheus.yaml has no $word"; exit 1; }
    done
}

every_file_is_installed() {
    diff <(sed -n 's/^ *- \([a-z_/]*\.[a-z]*\)$/\1/p' "$folder"/kustomization.yaml | sort) \
        <(cd "$folder" && printf '%s\n' dashboards/*.json ./*.yaml | sed 's|^\./||' | grep -vxE 'kustomization.yaml|prometheus.yaml' | sort)
}
kinds() { sed -n 's/^kind: //p' "$work/built" | sort | xargs; }
built_are() { # KINDS
    kubectl kustomize "$folder" >"$work/built" && diff <(kinds) <(echo "$1")
}

if command -v promtool >/dev/null; then
    check "promtool takes the rules" promtool check rules "$work/rules.yaml"
    check "the alerts fire in time" promtool test rules "$work/alerts.yaml"
    check "promtool takes the scrape jobs as they are" promtool check config "$work/prometheus.yaml"
    for dashboard in "$folder"/dashboards/*.json; do
        check "promtool takes each expression of $(basename "$dashboard")" dashboard_rules "$dashboard"
    done
else
    skip "rules, scrape jobs and expressions" "promtool is not installed"
fi
check "monitors and scrape jobs look at the same" monitors_agree
check "the kustomization lists every file" every_file_is_installed
if command -v kubectl >/dev/null; then
    check "kubectl builds it" built_are "ConfigMap PodMonitor PodMonitor PrometheusRule"
else
    skip "kubectl builds it" "kubectl is not installed"
fi
tap_done
