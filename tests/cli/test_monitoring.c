/* deploy/monitoring against the pages that agent and operator serve: every metric and every label
 * that a dashboard or an alert asks for is there, and the monitors look where the pages are. */
#include "tests/support.h"

#include "agent/config/config.h"
#include "agent/telemetry/gpu_metrics.h"
#include "agent/telemetry/run_metrics.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "operator/metrics.h"
#include "tests/cli/monitoring.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES (1 << 20)

/* ---- what is served ---- */

static void print_run(struct str *page)
{
    const struct run_facts facts = {.model = "m",
                                    .strategy = "s",
                                    .precision = "p",
                                    .preset = "q",
                                    .job = "j",
                                    .run = "r",
                                    .node = "n",
                                    .world_size = 1,
                                    .flops_per_token = {1, 1},
                                    .peak_flops_per_s = 1};
    const struct run_numbers numbers = {
        .step = 1, .loss = 1, .samples = 1, .tokens = 1, .step_s = 1};
    const struct run_eval eval = {.step = 1, .loss = 1, .perplexity = 1, .accuracy = 1};
    const struct run_save save = {.step = 1, .path = "c", .seconds = 1, .bytes = 1};
    struct run_state state;
    run_state_init(&state, &facts, 1);
    const struct time_account account = time_account_open(0);
    state.account = &account;
    run_state_step(&state, &numbers, 2);
    run_state_eval(&state, &eval, 3);
    run_state_save(&state, &save, 4);
    run_metrics_print(&state, 1, page);
    run_metrics_print_health(&state.facts, 0, 0, page);
}

static void print_gpu(struct str *page)
{
    struct gpu_sample gpu = {.uuid = "u", .pci_bus_id = "b", .model = "m", .xid = {{79, 1}}};
    for (int i = 0; i < GPU_VALUES; i++)
        gpu.value[i] = 1;
    const struct gpu_labels labels = {.driver = "d",
                                      .hostname = "h",
                                      .pod_namespace = "n",
                                      .pod = "p",
                                      .container = "c",
                                      .job = "j"};
    gpu_metrics_print(&gpu, 1, GPU_NAMES_BOTH, &labels, page);
}

static void print_operator(struct str *page)
{
    struct metrics *metrics = metrics_open();
    const struct job_status none = {0};
    struct avoided_node node = {.name = "n"};
    struct job_status works = {.goodput = {.known = true, .ms = {[TRAINING_SPENT_STEP] = 1000}}};
    works.history.avoided = &node;
    works.history.avoided_count = 1;
    metrics_job_seen(metrics, "n/j", &(struct job){.uid = "u"}, &none, 0);
    metrics_status_written(metrics, "n/j", &none, &works);
    const struct metrics_view view = {
        .resident_bytes = 1, .watches = {{"pods", true}}, .watch_count = 1};
    metrics_print(metrics, &view, page);
    metrics_close(metrics);
}

static void print_pages(struct str *page)
{
    str_init(page, PAGE_BYTES);
    print_run(page);
    print_gpu(page);
    print_operator(page);
    assert_false(page->truncated);
}

static bool is_served(const char *page, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *line = page; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, bytes) == 0 && (line[bytes] == '{' || line[bytes] == ' '))
            return true;
    }
    return false;
}

/* Whether a sample of this metric bears the label. */
static bool bears(const char *page, const char *name, const char *label)
{
    auto_free char *start = xasprintf("\n%s{", name);
    auto_free char *first = xasprintf("{%s=\"", label);
    auto_free char *later = xasprintf(",%s=\"", label);
    for (const char *line = strstr(page, start); line; line = strstr(line + 1, start)) {
        auto_free char *sample = strndup(line, strcspn(line + 1, "\n") + 1);
        if (strstr(sample, first) || strstr(sample, later))
            return true;
    }
    return false;
}

/* ---- what is asked for ---- */

enum { MAX_NAMES = 32, NAME_BYTES = 96 };

struct names {
    char items[MAX_NAMES][NAME_BYTES];
    int count;
};

/* The metrics and the labels of an expression. */
struct expression {
    struct names metrics, labels;
};

static void add_name(struct names *names, const char *text, size_t bytes)
{
    assert_true(names->count < MAX_NAMES && bytes < NAME_BYTES);
    memcpy(names->items[names->count], text, bytes);
    names->items[names->count++][bytes] = '\0';
}

static bool is_one_of(const char *const *words, const char *text, size_t bytes)
{
    for (; *words; words++)
        if (strlen(*words) == bytes && strncmp(*words, text, bytes) == 0)
            return true;
    return false;
}

/* As much of PromQL as tells names of metrics, labels and the rest apart: labels are within braces
 * and after by, on and their like; a name before a parenthesis is a function. */
static void read_expression(const char *at, struct expression *e)
{
    static const char *const lists[] = {"by", "without", "on", "ignoring", "group_left", NULL};
    static const char *const words[] = {"and", "or", "unless", "offset", "bool", NULL};
    bool in_braces = false, in_list = false, list_comes = false;
    *e = (struct expression){0};
    while (*at) {
        size_t bytes = 1;
        if (*at == '"') {
            bytes = strcspn(at + 1, "\"") + 2;
        } else if (isalpha((unsigned char)*at) || *at == '_') {
            while (isalnum((unsigned char)at[bytes]) || at[bytes] == '_')
                bytes++;
            size_t gap = strspn(at + bytes, " ");
            if (in_braces || in_list)
                add_name(&e->labels, at, bytes);
            else if (is_one_of(lists, at, bytes))
                list_comes = true;
            else if (!is_one_of(words, at, bytes) && at[bytes + gap] != '(' && !list_comes &&
                     strncmp(at + bytes + gap, "by ", 3) != 0)
                add_name(&e->metrics, at, bytes);
        } else if (isdigit((unsigned char)*at) || *at == '$') { /* 15m, $__rate_interval */
            while (isalnum((unsigned char)at[bytes]) || at[bytes] == '_')
                bytes++;
        } else if (*at == '{' || *at == '}') {
            in_braces = *at == '{';
        } else if (*at == '(') {
            in_list = list_comes;
            list_comes = false;
        } else if (*at == ')') {
            in_list = false;
        }
        at += bytes;
    }
}

static void check_label(const char *page, const struct expression *e, const char *label,
                        const char *text)
{
    /* what Prometheus adds to all of a target's samples (job_monitor.yaml), and the words before a
     * list of labels */
    static const char *const targets[] = {"namespace", "pod", "job_name", NULL};
    if (is_one_of(targets, label, strlen(label)))
        return;
    for (int i = 0; i < e->metrics.count; i++)
        if (bears(page, e->metrics.items[i], label))
            return;
    fail_msg("nothing has the label %s in: %s", label, text);
}

static void check_expression(const char *page, const char *text)
{
    struct expression e;
    read_expression(text, &e);
    if (e.metrics.count == 0)
        fail_msg("no metric in: %s", text);
    for (int i = 0; i < e.metrics.count; i++)
        if (!is_served(page, e.metrics.items[i]))
            fail_msg("nobody serves %s: %s", e.metrics.items[i], text);
    for (int i = 0; i < e.labels.count; i++)
        check_label(page, &e, e.labels.items[i], text);
}

static void expressions_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *metrics, *labels;
    } rows[] = {
        {"a", "a ", ""},
        {"sum by (x, y) (rate(a_total{z=~\"b\"}[5m])) > 0.1 * c", "a_total c ", "x y z "},
        {"time() - max by (x) (a) > 900", "a ", "x "},
        {"a{x=\"b, c{\"} unless on (y) a offset 15m", "a a ", "x y "},
        {"a * on (x) group_left (y) b", "a b ", "x y "},
        {"max(a and b == 1) or absent(c)", "a b c ", ""},
        {"label_values(a{x=~\"$x\"}, y)", "a y ", "x "},
        {"histogram_quantile(0.5, sum by (le) (rate(a_bucket[$__rate_interval])))", "a_bucket ",
         "le "},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct expression e;
        auto_str struct str metrics, labels;
        read_expression(rows[i].text, &e);
        str_init(&metrics, 1024);
        str_init(&labels, 1024);
        for (int k = 0; k < e.metrics.count; k++)
            str_printf(&metrics, "%s ", e.metrics.items[k]);
        for (int k = 0; k < e.labels.count; k++)
            str_printf(&labels, "%s ", e.labels.items[k]);
        assert_string_equal(str_text(&metrics), rows[i].metrics);
        assert_string_equal(str_text(&labels), rows[i].labels);
    }
}

/* ---- files ---- */

/* label_values(METRIC{...}, LABEL) */
static void check_variable(const char *page, const char *query)
{
    struct expression e;
    assert_int_equal(strncmp(query, "label_values(", 13), 0);
    read_expression(query, &e);
    assert_int_equal(e.metrics.count, 2); /* the second is the label */
    e.metrics.count = 1;
    assert_true(is_served(page, e.metrics.items[0]));
    check_label(page, &e, e.metrics.items[1], query);
    for (int i = 0; i < e.labels.count; i++)
        check_label(page, &e, e.labels.items[i], query);
}

static void dashboards_ask_for_what_is_served(void **state)
{
    (void)state;
    auto_str struct str page;
    print_pages(&page);
    for (const char *const *path = monitoring_dashboards; *path; path++) {
        struct json *dashboard = monitoring_document(*path), *panel, *target, *variable;
        json_each_item(panel, json_get(dashboard, "panels")) {
            json_each_item(target, json_get(panel, "targets")) {
                check_expression(str_text(&page), monitoring_text(target, "expr"));
            }
        }
        json_each_item(variable, json_get(json_get(dashboard, "templating"), "list")) {
            if (strcmp(monitoring_text(variable, "type"), "query") == 0)
                check_variable(str_text(&page), monitoring_text(variable, "query"));
        }
        json_free(dashboard);
    }
}

static void alerts_ask_for_what_is_served(void **state)
{
    (void)state;
    auto_str struct str page;
    print_pages(&page);
    struct json *rules = monitoring_document(MONITORING_FOLDER "rules.yaml"), *group, *rule;
    size_t count = 0;
    json_each_item(group, json_get(json_get(rules, "spec"), "groups")) {
        json_each_item(rule, json_get(group, "rules")) {
            check_expression(str_text(&page), monitoring_text(rule, "expr"));
            count++;
        }
    }
    assert_true(count > 0);
    json_free(rules);
}

static const char *no_variable(void *context, const char *name)
{
    (void)context;
    (void)name;
    return NULL;
}

static void jobs_are_looked_for_where_they_are(void **state)
{
    (void)state;
    struct error err;
    auto_free char *port = NULL;
    struct json *monitor = monitoring_document(MONITORING_FOLDER "job_monitor.yaml");
    const struct json *spec = json_get(monitor, "spec");
    const struct json *labels = json_get(json_get(spec, "selector"), "matchLabels");
    assert_string_equal(monitoring_text(labels, LABEL_OPERATOR_NAME), OPERATOR_NAME);
    const struct json *endpoint = json_at(json_get(spec, "podMetricsEndpoints"), 0);
    assert_string_equal(monitoring_text(endpoint, "port"), API_PORT_NAME);
    auto_arena struct arena *arena = arena_open();
    struct config config;
    assert_ok(config_parse(0, NULL, no_variable, NULL, arena, &config, &err), &err);
    port = xasprintf("$1:%" PRId64, config.value.logging.http_port);
    const struct json *address = json_at(json_get(endpoint, "relabelings"), 0);
    assert_string_equal(monitoring_text(address, "replacement"), port);
    json_free(monitor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_are_read),
        cmocka_unit_test(dashboards_ask_for_what_is_served),
        cmocka_unit_test(alerts_ask_for_what_is_served),
        cmocka_unit_test(jobs_are_looked_for_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
