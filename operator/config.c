#include "operator/config.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"
#include "operator/job/names.h"
#include "operator/manifest/init_template.h"

enum { ROWS_MAX = 40 };

static const char *const log_levels[] = {[LOG_DEBUG] = "debug",
                                         [LOG_INFO] = "info",
                                         [LOG_WARNING] = "warning",
                                         [LOG_ERROR] = "error",
                                         NULL};

/* Of the training operator. */
static const char *const ignored_flags[] = {
    "controller-threads",
    "kube-api-qps",
    "kube-api-burst",
    "webhook-server-port",
    "webhook-service-name",
    "webhook-secret-name",
    "zap-encoder",
    "zap-log-level",
    "zap-stacktrace-level",
    "zap-time-encoding",
    "mpi-kubectl-delivery-image",
};

struct table {
    struct option_row rows[ROWS_MAX];
};

/* clang-format off */
static struct table table_of(struct operator_config *c)
{
    struct table t = {{
        {"metrics-bind-address", 0, OPTION_TEXT, &c->metrics_bind_address, "ADDRESS",
         "address of /metrics; 0: disabled (:8080)", 0, 0, NULL},
        {"health-probe-bind-address", 0, OPTION_TEXT, &c->health_probe_bind_address, "ADDRESS",
         "address of /healthz and /readyz; 0: disabled (:8081)", 0, 0, NULL},
        {"ui-bind-address", 0, OPTION_TEXT, &c->ui_bind_address, "ADDRESS",
         "address of the live page; 0: disabled (" UI_BIND_ADDRESS ")", 0, 0, NULL},
        {"leader-elect", 0, OPTION_FLAG, &c->leader_elect, NULL,
         "elect a leader among several replicas by a Lease", 0, 0, NULL},
        {"leader-election-id", 0, OPTION_TEXT, &c->leader_election_id, "NAME",
         "name of the Lease (shoal-operator)", 0, 0, NULL},
        {"namespace", 0, OPTION_TEXT, &c->namespace_, "NAMESPACE",
         "watch this namespace only ($KUBEFLOW_NAMESPACE; all)", 0, 0, NULL},
        {"kubeconfig", 0, OPTION_TEXT, &c->kubeconfig, "FILE",
         "kubeconfig ($KUBECONFIG, the service account, ~/.kube/config)", 0, 0, NULL},
        {"context", 0, OPTION_TEXT, &c->context, "NAME", "context of the kubeconfig", 0, 0, NULL},
        {"gang-scheduler-name", 0, OPTION_TEXT, &c->gang_scheduler_name, "NAME",
         "volcano, or a scheduler with scheduler-plugins' coscheduling", 0, 0, NULL},
        {"pytorch-init-container-image", 0, OPTION_TEXT, &c->init_image, "IMAGE",
         "init container in which workers wait for the master; empty: none ($SHOAL_OPERATOR_IMAGE)", 0, 0, NULL},
        {"pytorch-init-container-template-file", 0, OPTION_TEXT, &c->init_template_file, "FILE",
         "init containers of workers as YAML (/etc/config/initContainer.yaml)", 0, 0, NULL},
        {"pytorch-init-container-max-tries", 0, OPTION_NUMBER, &c->init_max_tries, "N",
         "DNS lookups of the master, 2 s apart (the operator's own image: no limit; else 100)", 1, INT32_MAX, NULL},
        {"default-backoff-limit", 0, OPTION_NUMBER, &c->default_backoff_limit, "N",
         "backoffLimit of jobs without one; -1: no limit (6)", -1, INT32_MAX, NULL},
        {"node-lost-seconds", 0, OPTION_NUMBER, &c->node_lost_s, "SECONDS",
         "replace pods whose node is lost for this long; 0: never (300)", 0, 86400, NULL},
        {"overdue-seconds", 0, OPTION_NUMBER, &c->overdue_s, "SECONDS",
         "replace lost pods this long after their grace period; 0: never (60)", 0, 86400, NULL},
        {"progress-seconds", 0, OPTION_NUMBER, &c->progress_s, "SECONDS",
         "ask each job's rank 0 how its training goes, this often; 0: never (15)", 0, 3600, NULL},
        {"avoid-node-seconds", 0, OPTION_NUMBER, &c->avoid_node_s, "SECONDS",
         "how long a job avoids a node with bad hardware; 0: it stays there (3600)", 0, 86400 * 30, NULL},
        {"watch-nodes", 0, OPTION_FLAG, &c->watch_nodes, NULL,
         "leave nodes that others mark as bad; needs the ClusterRole of deploy/watch-nodes", 0, 0, NULL},
        {"bad-node-taints", 0, OPTION_TEXT, &c->signs.taints, "LIST",
         "taints that mark such nodes: KEY[=VALUE][:EFFECT],... (NVSentinel's)", 0, 0, NULL},
        {"bad-node-conditions", 0, OPTION_TEXT, &c->signs.conditions, "LIST",
         "likewise conditions: TYPE[=STATUS],... (NVSentinel's, node-problem-detector's)", 0, 0, NULL},
        {"kueue", 0, OPTION_FLAG, &c->kueue, NULL,
         "queue jobs with a queue name in Kueue; needs the ClusterRole of deploy/kueue", 0, 0, NULL},
        {"enable-scheme", 0, OPTION_LIST, &c->schemes, "KIND",
         "one kind of jobs a flag; pytorchjob, the only one here, must be among them", 0, 0, NULL},
        {"log-level", 0, OPTION_CHOICE, &c->log_level, "LEVEL", "debug, info, warning, error (info)",
         0, 0, log_levels},
        {"zap-devel", 0, OPTION_IGNORED, &c->ignored, NULL, NULL, 0, 0, NULL},
        {"version", 0, OPTION_FLAG, &c->version, NULL, "print the version", 0, 0, NULL},
        {"help", 'h', OPTION_FLAG, &c->help, NULL, "print this help", 0, 0, NULL},
    }};
    size_t count = 0;
    while (t.rows[count].name)
        count++;
    assert(count + array_length(ignored_flags) < ROWS_MAX);
    for (size_t i = 0; i < array_length(ignored_flags); i++)
        t.rows[count++] = (struct option_row){
            .name = ignored_flags[i], .kind = OPTION_IGNORED, .target = &c->ignored, .value = "X"};
    return t;
}
/* clang-format on */

static const char *value_or_default(const char *text, const char *other)
{
    return text && *text ? text : other;
}

int operator_config_address(const char *text, char *host, size_t host_bytes, int *ret_port,
                            struct error *err)
{
    *ret_port = 0;
    host[0] = '\0';
    if (!strcmp(text, "0"))
        return 0;
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (!colon || !str_to_i64(colon + 1, 1, 65535, &port))
        return error_set(err, ERR_CONFIG, "%s: must be [HOST]:PORT, such as :8080, or 0", text);
    const char *end = colon;
    if (text[0] == '[' && end > text + 1 && end[-1] == ']') { /* IPv6 */
        text++;
        end--;
    }
    size_t bytes = (size_t)(end - text);
    if (bytes >= host_bytes)
        return error_set(err, ERR_CONFIG, "%s: the host is too long", text);
    memcpy(host, text, bytes);
    host[bytes] = '\0';
    *ret_port = (int)port;
    return 0;
}

static int check_address(const char *flag, const char *text, struct error *err)
{
    char host[256];
    int port;
    if (operator_config_address(text, host, sizeof host, &port, err) < 0)
        return error_wrap(err, "--%s", flag);
    return 0;
}

static int check_signs(const struct node_signs *signs, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    const char *taints = node_taints_problem(signs->taints, arena);
    const char *conditions = node_conditions_problem(signs->conditions, arena);
    if (taints)
        return error_set(err, ERR_CONFIG, "--bad-node-taints: %s", taints);
    if (conditions)
        return error_set(err, ERR_CONFIG, "--bad-node-conditions: %s", conditions);
    return 0;
}

bool operator_config_runs_scheme(const char *scheme)
{
    return strcasecmp(scheme, "pytorchjob") == 0;
}

/* Whose flags leave PyTorchJobs out has given them to the wrong operator. */
static int check_schemes(const struct option_list *schemes, struct error *err)
{
    for (int i = 0; i < schemes->count; i++)
        if (operator_config_runs_scheme(schemes->items[i]))
            return 0;
    if (schemes->count == 0)
        return 0;
    return error_set(err, ERR_CONFIG,
                     "--enable-scheme=%s: shoal-operator runs PyTorchJobs alone, and none of these "
                     "flags is --enable-scheme=pytorchjob. Leave them out here, and give them to "
                     "the operator of the other kinds",
                     schemes->items[0]);
}

/* A namespace of another name is watched without a word, as if it had no jobs. */
static int check_namespace(const char *name, struct error *err)
{
    if (!name || names_is_label(name))
        return 0;
    return error_set(err, ERR_CONFIG,
                     "--namespace (KUBEFLOW_NAMESPACE) %s: must be the name of a namespace: up to "
                     "%d lower case letters, digits and '-', with a letter or digit at both ends",
                     name, NAMES_LABEL_MAX_BYTES);
}

int operator_config_parse(struct operator_config *c, int argc, char *const *argv,
                          const char *(*env)(const char *name), struct error *err)
{
    *c = (struct operator_config){
        .metrics_bind_address = ":8080",
        .health_probe_bind_address = ":8081",
        .leader_election_id = "shoal-operator",
        .own_namespace = value_or_default(env("MY_POD_NAMESPACE"), "shoal-system"),
        .own_name = value_or_default(env("MY_POD_NAME"),
                                     value_or_default(env("HOSTNAME"), "shoal-operator")),
        .namespace_ = env("KUBEFLOW_NAMESPACE"),
        .init_image =
            value_or_default(env("SHOAL_OPERATOR_IMAGE"), "shoal-operator:" SHOAL_VERSION),
        .init_template_file = INIT_TEMPLATE_PATH,
        .default_backoff_limit = 6,
        .node_lost_s = 300,
        .overdue_s = 60,
        .progress_s = 15,
        .avoid_node_s = 3600,
        .signs = {.taints = NODE_TAINTS, .conditions = NODE_CONDITIONS},
        .log_level = LOG_INFO,
    };
    struct table table = table_of(c);
    if (options_parse(table.rows, argc, argv, err) < 0)
        return -1;
    c->namespace_ = value_or_default(c->namespace_, NULL);
    if (c->ui_bind_address && !*c->ui_bind_address)
        c->ui_bind_address = "0";
    c->gang_scheduler_name = value_or_default(c->gang_scheduler_name, NULL);
    if (check_namespace(c->namespace_, err) < 0 || check_schemes(&c->schemes, err) < 0 ||
        check_signs(&c->signs, err) < 0 ||
        check_address("metrics-bind-address", c->metrics_bind_address, err) < 0 ||
        (c->ui_bind_address && check_address("ui-bind-address", c->ui_bind_address, err) < 0))
        return -1;
    return check_address("health-probe-bind-address", c->health_probe_bind_address, err);
}

void operator_config_help(struct str *out)
{
    struct operator_config none;
    struct table table = table_of(&none);
    str_add(
        out,
        "Usage: shoal-operator [OPTION...]\n"
        "       shoal-operator wait-for NAME [--tries N]\n"
        "\n"
        "Watches kubeflow.org/v1 PyTorchJobs, creates their pods and services, restarts failed\n"
        "pods up to the job's limit, and writes status and events. The second form, for init\n"
        "containers, waits until DNS resolves NAME.\n"
        "\n");
    options_help(table.rows, out);
    str_add(
        out,
        "\nA flag may have one dash. $MY_POD_NAMESPACE is the namespace of the Lease, and\n"
        "$MY_POD_NAME is part of its holder's identity. Flags of the training operator without\n"
        "a meaning here are ignored; a log line names each.\n");
}
