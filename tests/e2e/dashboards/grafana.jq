# What Grafana asks Prometheus for a dashboard, and what it shows of the answers. `$values` has the values of each variable,
# as an object of lists; `$rate` is $__rate_interval.

# In a regular expression within a string of PromQL.
def escaped: gsub("(?<c>[\\\\$^*{}\\[\\]'+?.()|])"; "\\\\\(.c)");
# Of a variable with several values, the way Grafana writes them ("All" is all of them).
def alternatives: map(escaped) | if length == 1 then .[0] else "(" + join("|") + ")" end;
def filled($values; $rate):
    reduce ($values | to_entries[]) as $v (gsub("\\$__rate_interval\\b"; $rate);
        gsub("\\$\\{?\($v.key)\\b\\}?"; $v.value | alternatives));

# "NAME LABEL SELECTOR", in order, of the variables that are asked for: label_values(SELECTOR, LABEL).
def variables: .templating.list[] | select(.type == "query")
    | .name as $name | .query | capture("^label_values\\((?<selector>.*), *(?<label>[A-Za-z_]+)\\)$")
    | "\($name) \(.label) \(.selector)";

# A row for each thing that a panel asks for.
def questions($values; $rate): .title as $dashboard
    | [foreach .panels[] as $p ({row: ""}; if $p.type == "row" then .row = $p.title else .panel = $p end; select(.panel) | . as $at
        | $p | select(.type != "row") | .targets | to_entries[]
        | {dashboard: $dashboard, row: $at.row, panel: $p.title, unit: ($p.fieldConfig.defaults.unit // "none"),
           thresholds: ($p.fieldConfig.defaults.thresholds.steps // [] | map(.value | select(. != null)) | join(", ")),
           several: ($p.targets | length > 1), name: (.value.legendFormat // ""), instant: (.value.instant // false),
           expr: (.value.expr | filled($values; $rate))})];

# curl's configuration: an answer a file.
def requests($at; $from; $until; $folder): to_entries[]
    | "url = \"\($at)/api/v1/query\(if .value.instant then "?time=\($until)" else "_range?start=\($from)&end=\($until)&step=1" end)&query=\(.value.expr | @uri)\"",
      "output = \"\($folder)/\(.key).json\"";

# Of an answer: how many series there are, and the newest number of one of them.
def numbers: if .resultType == "matrix" then .result[] | [.values[][1] | select(. != "NaN")] | select(length > 0) | .[-1]
    else .result[] | .value[1] | select(. != "NaN") end;
def shown: [numbers] | {series: length, value: (if length > 0 then .[0] else null end)};

# Who measures what an expression is made of.
def source: if test("fsdp_gpu_|DCGM_") then "NVML" elif test("fsdp_model_flops_utilization") then "agent, on a GPU"
    elif test("shoal_operator_|training_operator_") then "operator" else "agent" end;
def rounded: tonumber | if . == 0 or fabs >= 1000 then round
    else (fabs | log10 | floor | pow(10; 2 - .)) as $scale | . * $scale | round / $scale end | tostring;
# A page's part: of a list of what was asked, a table of a dashboard's panels.
def table: "## \(.[0].dashboard)", "", "| row | panel | query | unit | thresholds | measured by | series | value |",
    "| --- | --- | --- | --- | --- | --- | --- | --- |",
    (.[] | "| \(.row) | \(.panel) | \(if .several then .name | gsub("\\{\\{(?<l>[a-zA-Z_]+)\\}\\} *"; "") else "" end) | \(.unit) | \(.thresholds) | \(.expr | source) | \(.series) | \(if .value then .value | rounded else "" end) |"), "";
