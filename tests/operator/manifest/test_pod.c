/* What a replica's pod and service are. Names such as D06 and X09 are those of the peer's cases. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/decode/decode.h"
#include "operator/job/resources.h"
#include "operator/manifest/pod.h"

#include <string.h>

static struct manifest *decode_spec_text(const char *spec)
{
    struct manifest *manifest = NULL;
    struct error err;
    auto_free char *text = xasprintf(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j, namespace: ns, uid: u}\n"
        "spec: {%s}\n",
        spec);
    assert_ok(decode_manifest(text, strlen(text), "t", 6, &manifest, &err), &err);
    return manifest;
}

static struct pod_spec *build(const struct manifest *manifest, enum replica_type type,
                              int32_t index)
{
    struct history history = {0};
    struct pod_options options = {0};
    return pod_build(manifest->jobs[0], &history, type, index, &options, manifest->arena);
}

#define TEMPLATE    "template: {spec: {containers: [{name: pytorch, image: i}]}}"
#define MASTER      "Master: {replicas: 1, " TEMPLATE "}"
#define SPECS(m, n) "pytorchReplicaSpecs: {" m "Worker: {replicas: " n ", " TEMPLATE "}}"
#define TAIL        " SHOAL_RESTART_COUNT=0 SHOAL_RUN_ID=u SHOAL_JOB=ns/j"

struct env_row {
    const char *name;
    const char *spec;
    enum replica_type type;
    int32_t index;
    const char *env;
};

static const struct env_row env_rows[] = {
    {"master of 1 + 2", SPECS(MASTER ", ", "2"), REPLICA_MASTER, 0,
     "PYTHONUNBUFFERED=1 MASTER_PORT=23456 PET_MASTER_PORT=23456 MASTER_ADDR=j-master-0 "
     "PET_MASTER_ADDR=j-master-0 WORLD_SIZE=3 RANK=0 PET_NODE_RANK=0 PET_NPROC_PER_NODE=auto "
     "PET_NNODES=3" TAIL},
    {"worker 1 of 1 + 2", SPECS(MASTER ", ", "2"), REPLICA_WORKER, 1,
     "PYTHONUNBUFFERED=1 MASTER_PORT=23456 PET_MASTER_PORT=23456 MASTER_ADDR=j-master-0 "
     "PET_MASTER_ADDR=j-master-0 WORLD_SIZE=3 RANK=2 PET_NODE_RANK=2 PET_NPROC_PER_NODE=auto "
     "PET_NNODES=3" TAIL},
    {"X06 four processes a pod", "nprocPerNode: '4', " SPECS(MASTER ", ", "2"), REPLICA_WORKER, 0,
     "PYTHONUNBUFFERED=1 MASTER_PORT=23456 PET_MASTER_PORT=23456 MASTER_ADDR=j-master-0 "
     "PET_MASTER_ADDR=j-master-0 WORLD_SIZE=12 RANK=1 PET_NODE_RANK=1 PET_NPROC_PER_NODE=4 "
     "PET_NNODES=3" TAIL},
    {"a word is no number", "nprocPerNode: gpu, " SPECS(MASTER ", ", "2"), REPLICA_MASTER, 0,
     "PYTHONUNBUFFERED=1 MASTER_PORT=23456 PET_MASTER_PORT=23456 MASTER_ADDR=j-master-0 "
     "PET_MASTER_ADDR=j-master-0 WORLD_SIZE=3 RANK=0 PET_NODE_RANK=0 PET_NPROC_PER_NODE=gpu "
     "PET_NNODES=3" TAIL},
    {"D05 D08 workers only", SPECS("", "2"), REPLICA_WORKER, 0,
     "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_NNODES=2" TAIL},
    {"D01 elastic", "elasticPolicy: {minReplicas: 1, maxReplicas: 2}, " SPECS("", "2"),
     REPLICA_WORKER, 0,
     "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_RDZV_ENDPOINT=j-worker-0:23456 "
     "PET_RDZV_BACKEND=c10d PET_NNODES=1:2 SHOAL_NNODES=2" TAIL},
    {"D02 only max", "elasticPolicy: {maxReplicas: 1}, " SPECS("", "2"), REPLICA_WORKER, 0,
     "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_RDZV_ENDPOINT=j-worker-0:23456 "
     "PET_RDZV_BACKEND=c10d PET_NNODES=1:1 SHOAL_NNODES=2" TAIL},
    {"D03 only min", "elasticPolicy: {minReplicas: 1}, " SPECS("", "2"), REPLICA_WORKER, 0,
     "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_RDZV_ENDPOINT=j-worker-0:23456 "
     "PET_RDZV_BACKEND=c10d PET_NNODES=1:1 SHOAL_NNODES=2" TAIL},
    {"D04 neither", "elasticPolicy: {}, " SPECS("", "2"), REPLICA_WORKER, 0,
     "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_RDZV_ENDPOINT=j-worker-0:23456 "
     "PET_RDZV_BACKEND=c10d PET_NNODES=2:2 SHOAL_NNODES=2" TAIL},
    {"an empty list is none", "elasticPolicy: {rdzvConf: []}, " SPECS("", "2"), REPLICA_WORKER, 0,
     "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_RDZV_ENDPOINT=j-worker-0:23456 "
     "PET_RDZV_BACKEND=c10d PET_NNODES=2:2 SHOAL_NNODES=2" TAIL},
    {"D06 the elastic number once", "elasticPolicy: {nProcPerNode: 3}, " SPECS("", "2"),
     REPLICA_WORKER, 0,
     "PYTHONUNBUFFERED=1 PET_RDZV_ENDPOINT=j-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=2:2 "
     "PET_NPROC_PER_NODE=3 SHOAL_NNODES=2" TAIL},
    {"the master counts, the patience is told",
     "elasticPolicy: {minReplicas: 1, maxReplicas: 4, shrinkAfterSeconds: 90}, " SPECS(MASTER ", ",
                                                                                       "2"),
     REPLICA_WORKER, 1,
     "PYTHONUNBUFFERED=1 MASTER_PORT=23456 PET_MASTER_PORT=23456 MASTER_ADDR=j-master-0 "
     "PET_MASTER_ADDR=j-master-0 WORLD_SIZE=3 RANK=2 PET_NODE_RANK=2 PET_NPROC_PER_NODE=auto "
     "PET_RDZV_ENDPOINT=j-worker-0:23456 PET_RDZV_BACKEND=c10d PET_NNODES=1:4 SHOAL_NNODES=3 "
     "SHOAL_SHRINK_AFTER=90" TAIL},
    {"D07 everything",
     "elasticPolicy: {minReplicas: 1, maxReplicas: 3, rdzvHost: localhost, rdzvPort: 1234, rdzvId: r, "
     "rdzvConf: [{key: a, value: b}, {key: c, value: d}], maxRestarts: 3, standalone: true}, " SPECS(
         "", "2"),
     REPLICA_WORKER, 0,
     "PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_RDZV_ENDPOINT=localhost:1234 "
     "PET_RDZV_BACKEND=c10d PET_NNODES=1:3 PET_MAX_RESTARTS=3 SHOAL_NNODES=2 PET_RDZV_ID=r PET_RDZV_CONF=a=b,c=d "
     "PET_STANDALONE=1" TAIL},
    {"X07 the user's variables come first",
     "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, env: "
     "[{name: PET_NNODES, value: '7'}]}]}}}}",
     REPLICA_WORKER, 0,
     "PET_NNODES=7 PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_NNODES=1" TAIL},
    {"which run it is may be said",
     "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, env: "
     "[{name: SHOAL_RUN_ID, value: mine}]}]}}}}",
     REPLICA_WORKER, 0,
     "SHOAL_RUN_ID=mine PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_NNODES=1 "
     "SHOAL_RESTART_COUNT=0 SHOAL_JOB=ns/j"},
    {"... and what its job is called",
     "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: pytorch, image: i, env: "
     "[{name: SHOAL_JOB, value: its}]}]}}}}",
     REPLICA_WORKER, 0,
     "SHOAL_JOB=its PYTHONUNBUFFERED=1 PET_NPROC_PER_NODE=auto PET_NNODES=1 SHOAL_RESTART_COUNT=0 "
     "SHOAL_RUN_ID=u"},
    {"P01 the port by its name",
     "pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {containers: [{name: pytorch, "
     "image: i, ports: [{name: http, containerPort: 1}, {name: pytorchjob-port, containerPort: "
     "8080}]}]}}}}",
     REPLICA_MASTER, 0,
     "PYTHONUNBUFFERED=1 MASTER_PORT=8080 PET_MASTER_PORT=8080 MASTER_ADDR=j-master-0 "
     "PET_MASTER_ADDR=j-master-0 WORLD_SIZE=1 RANK=0 PET_NODE_RANK=0 PET_NPROC_PER_NODE=auto "
     "PET_NNODES=1" TAIL},
};

static void print_env(const struct container *container, struct str *out)
{
    for (size_t i = 0; i < container->env_count; i++)
        str_printf(out, "%s%s=%s", i ? " " : "", container->env[i].name, container->env[i].value);
}

static void the_environment_is_as_the_book_says(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(env_rows); i++) {
        const struct env_row *row = &env_rows[i];
        struct manifest *manifest = decode_spec_text(row->spec);
        auto_str struct str env;
        str_init(&env, 4096);
        print_env(&build(manifest, row->type, row->index)->containers[0], &env);
        if (strcmp(str_text(&env), row->env) != 0)
            print_error("%s\n", row->name);
        assert_string_equal(str_text(&env), row->env);
        decode_close(manifest);
    }
}

/* As with the training operator, also those that go on as sidecars (KEP-753). */
static void init_containers_are_as_the_manifest_says(void **state)
{
    (void)state;
    struct manifest *manifest = decode_spec_text(
        "pytorchReplicaSpecs: {" MASTER ", Worker: {template: {spec: {initContainers: [{name: a, "
        "image: i}, {name: b, image: i, restartPolicy: Always, env: [{name: X, value: '1'}]}], "
        "containers: [{name: pytorch, image: i}]}}}}");
    const struct pod_spec *worker = build(manifest, REPLICA_WORKER, 0);
    auto_str struct str env;
    str_init(&env, 4096);
    assert_int_equal(worker->init_container_count, 2);
    for (size_t i = 0; i < 2; i++)
        print_env(&worker->init_containers[i], &env);
    assert_string_equal(str_text(&env), "X=1");
    assert_true(worker->containers[0].env_count > 0);
    decode_close(manifest);
}

static const char *find(const struct pairs *pairs, const char *key)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (strcmp(pairs->items[i].key, key) == 0)
            return pairs->items[i].value;
    return "(none)";
}

static void labels_lie_over_the_templates(void **state)
{
    (void)state;
    struct manifest *manifest = decode_spec_text(
        "pytorchReplicaSpecs: {" MASTER ", Worker: {template: {metadata: {labels: {app: x, "
        "training.kubeflow.org/job-name: z}, annotations: {note: z, shoal.dev/avoided-nodes: x, "
        "shoal.dev/init-containers: c}}, spec: {containers: [{name: "
        "pytorch, image: i}]}}}}");
    struct pod_spec *worker = build(manifest, REPLICA_WORKER, 0);
    assert_string_equal(worker->name, "j-worker-0");
    assert_string_equal(worker->owner_uid, "u");
    assert_string_equal(find(&worker->labels, "app"), "x"); /* C15 */
    assert_string_equal(find(&worker->annotations, "note"), "z");
    /* of a running pod, from which the template was copied */
    assert_string_equal(find(&worker->annotations, "shoal.dev/avoided-nodes"), "(none)");
    assert_string_equal(find(&worker->annotations, "shoal.dev/init-containers"), "(none)");
    assert_string_equal(find(&worker->labels, "training.kubeflow.org/job-name"), "j");
    assert_string_equal(find(&worker->labels, "training.kubeflow.org/operator-name"),
                        "pytorchjob-controller");
    assert_string_equal(find(&worker->labels, "training.kubeflow.org/replica-type"), "worker");
    assert_string_equal(find(&worker->labels, "training.kubeflow.org/replica-index"), "0");
    assert_string_equal(find(&worker->labels, "training.kubeflow.org/job-role"), "(none)");
    assert_int_equal(worker->labels.count, 5);
    struct pod_spec *master = build(manifest, REPLICA_MASTER, 0);
    assert_string_equal(find(&master->labels, "training.kubeflow.org/job-role"), "master");
    decode_close(manifest);
}

static void without_a_master_worker_0_has_its_role(void **state)
{
    (void)state;
    struct manifest *manifest = decode_spec_text(SPECS("", "2"));
    assert_string_equal(
        find(&build(manifest, REPLICA_WORKER, 0)->labels, "training.kubeflow.org/job-role"),
        "master");
    assert_string_equal(
        find(&build(manifest, REPLICA_WORKER, 1)->labels, "training.kubeflow.org/job-role"),
        "(none)");
    decode_close(manifest);
}

static void workers_wait_for_a_master(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        enum replica_type type;
        const char *wait_for;
    } rows[] = {
        {SPECS("", "1"), REPLICA_WORKER, NULL},                  /* I01 */
        {SPECS(MASTER ", ", "1"), REPLICA_WORKER, "j-master-0"}, /* I02 */
        {SPECS(MASTER ", ", "1"), REPLICA_MASTER, NULL},         /* I03 */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct manifest *manifest = decode_spec_text(rows[i].spec);
        struct pod_spec *pod = build(manifest, rows[i].type, 0);
        if (rows[i].wait_for)
            assert_string_equal(pod->wait_for, rows[i].wait_for);
        else
            assert_null(pod->wait_for);
        decode_close(manifest);
    }
}

static void who_restarts_containers(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *scope;
        enum pod_restart restart;
    } rows[] = {
        {"Always", "Replica", POD_RESTART_ALWAYS},
        {"OnFailure", "Replica", POD_RESTART_ON_FAILURE},
        {"Never", "Replica", POD_RESTART_NEVER},
        {"ExitCode", "Replica", POD_RESTART_NEVER}, /* C13 */
        {"Always", "Job", POD_RESTART_NEVER},
        {"OnFailure", "Job", POD_RESTART_NEVER},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *spec = xasprintf("runPolicy: {restartScope: %s}, pytorchReplicaSpecs: "
                                         "{Worker: {restartPolicy: %s, " TEMPLATE "}}",
                                         rows[i].scope, rows[i].policy);
        struct manifest *manifest = decode_spec_text(spec);
        assert_int_equal(build(manifest, REPLICA_WORKER, 0)->restart, rows[i].restart);
        decode_close(manifest);
    }
}

static void a_pod_knows_what_was_before_it(void **state)
{
    (void)state;
    struct replica_history replica = {
        .type = REPLICA_WORKER, .index = 1, .uid = "x", .counted = 2, .earlier = 3};
    struct history history = {
        .failures = 9, .attempt = 4, .replicas = &replica, .replica_count = 1};
    struct pod_options options = {0};
    struct manifest *manifest = decode_spec_text(SPECS("", "2"));
    struct job *job = manifest->jobs[0];
    struct pod_spec *pod = pod_build(job, &history, REPLICA_WORKER, 1, &options, manifest->arena);
    assert_int_equal(pod->restart_count, 5);
    assert_int_equal(pod->attempt, 4);
    assert_string_equal(find(&pod->labels, LABEL_ATTEMPT), "4");
    pod = pod_build(job, &history, REPLICA_WORKER, 0, &options, manifest->arena);
    assert_int_equal(pod->restart_count, 0);
    job->run_policy.restart_scope = SCOPE_JOB;
    pod = pod_build(job, &history, REPLICA_WORKER, 0, &options, manifest->arena);
    assert_int_equal(pod->restart_count, 4);
    decode_close(manifest);
}

static const char *env_value(const struct pod_spec *pod, const char *name)
{
    const struct container *container = &pod->containers[0];
    for (size_t i = container->env_count; i-- > 0;)
        if (strcmp(container->env[i].name, name) == 0)
            return container->env[i].value;
    return "(none)";
}

static void each_attempt_meets_by_itself(void **state)
{
    (void)state;
    static const struct {
        const char *scope, *elastic;
        int32_t attempt;
        const char *id;
    } rows[] = {
        {"Job", "rdzvId: r", 0, "r"},           {"Job", "rdzvId: r", 2, "r-2"},
        {"Job", "minReplicas: 1", 0, "(none)"}, {"Job", "minReplicas: 1", 2, "j-2"},
        {"Replica", "rdzvId: r", 2, "r"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *spec =
            xasprintf("runPolicy: {restartScope: %s}, elasticPolicy: {%s}, " SPECS("", "2"),
                      rows[i].scope, rows[i].elastic);
        struct manifest *manifest = decode_spec_text(spec);
        struct history history = {.attempt = rows[i].attempt};
        struct pod_options options = {0};
        struct pod_spec *pod =
            pod_build(manifest->jobs[0], &history, REPLICA_WORKER, 0, &options, manifest->arena);
        assert_string_equal(env_value(pod, "PET_RDZV_ID"), rows[i].id);
        decode_close(manifest);
    }
}

static void services_carry_the_main_containers_ports(void **state)
{
    (void)state;
    struct manifest *manifest = decode_spec_text(
        "pytorchReplicaSpecs: {Worker: {template: {spec: {containers: [{name: sidecar, image: s, ports: "
        "[{name: other, containerPort: 9}]}, {name: pytorch, image: i, ports: [{name: u, "
        "containerPort: 5, protocol: UDP}]}]}}}}");
    struct service_spec *service =
        pod_build_service(manifest->jobs[0], REPLICA_WORKER, 0, manifest->arena);
    assert_string_equal(service->name, "j-worker-0");
    assert_int_equal(service->labels.count, 4); /* C30 */
    assert_int_equal(service->port_count, 2);   /* X09 */
    assert_string_equal(service->ports[0].protocol, "UDP");
    assert_string_equal(service->ports[1].name, "pytorchjob-port");
    struct pod_spec *pod = build(manifest, REPLICA_WORKER, 0);
    assert_int_equal(pod->containers[0].env_count, pod->containers[1].env_count);
    assert_true(pod->containers[0].env_count > 0);
    decode_close(manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_is_as_the_book_says),
        cmocka_unit_test(init_containers_are_as_the_manifest_says),
        cmocka_unit_test(labels_lie_over_the_templates),
        cmocka_unit_test(without_a_master_worker_0_has_its_role),
        cmocka_unit_test(workers_wait_for_a_master),
        cmocka_unit_test(who_restarts_containers),
        cmocka_unit_test(a_pod_knows_what_was_before_it),
        cmocka_unit_test(each_attempt_meets_by_itself),
        cmocka_unit_test(services_carry_the_main_containers_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
