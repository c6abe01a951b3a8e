/* Jobs out of manifests; test_decode_messages.c has what is told of these. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/decode/manifest_text.h"

static void every_field_has_its_place(void **state)
{
    (void)state;
    int result;
    struct error err;
    struct manifest *manifest = decode_text(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"
        "metadata: {name: full, namespace: ml, uid: u, creationTimestamp: '2026-01-31T12:00:00Z'}\n"
        "spec:\n"
        "  nprocPerNode: '4'\n"
        "  runPolicy: {cleanPodPolicy: Running, ttlSecondsAfterFinished: 1, activeDeadlineSeconds: 2,\n"
        "    backoffLimit: -1, restartScope: Job, suspend: true, managedBy: kubeflow.org/training-operator}\n"
        "  pytorchReplicaSpecs:\n"
        "    Master:\n"
        "      replicas: 1\n"
        "      restartPolicy: ExitCode\n"
        "      template:\n"
        "        metadata: {labels: {a: b}, annotations: {c: d}}\n"
        "        spec:\n"
        "          terminationGracePeriodSeconds: 5\n"
        "          initContainers: [{name: prepare, image: p}]\n"
        "          containers:\n"
        "          - name: pytorch\n"
        "            image: i\n"
        "            command: [run]\n"
        "            args: [a, b]\n"
        "            workingDir: /tmp\n"
        "            ports: [{name: pytorchjob-port, containerPort: 8080}, {containerPort: 9, protocol: UDP}]\n"
        "            env: [{name: A, value: '1'}, {name: B}, {name: C, valueFrom: {fieldRef: {fieldPath: x.y}}},\n"
        "              {name: D, valueFrom: {secretKeyRef: {name: s, key: k}}}]\n",
        &result, &err);
    assert_ok(result, &err);
    assert_int_equal(manifest->notes.count, 0);
    const struct job *job = manifest->jobs[0];
    assert_string_equal(job->name, "full");
    assert_string_equal(job->namespace_, "ml");
    assert_int_equal(job->created_ms, 1769860800000);
    assert_string_equal(job->nproc_per_node, "4");
    assert_int_equal(job->run_policy.clean_pod_policy, CLEAN_RUNNING);
    assert_int_equal(job->run_policy.ttl_seconds_after_finished.value, 1);
    assert_int_equal(job->run_policy.active_deadline_seconds.value, 2);
    assert_int_equal(job->run_policy.backoff_limit.value, -1);
    assert_int_equal(job->run_policy.restart_scope, SCOPE_JOB);
    assert_true(job->run_policy.suspend);
    assert_false(job->replicas[REPLICA_WORKER].present);
    const struct replica_spec *master = &job->replicas[REPLICA_MASTER];
    assert_int_equal(master->restart_policy, RESTART_EXIT_CODE);
    assert_string_equal(master->template_.labels.items[0].value, "b");
    assert_string_equal(master->template_.annotations.items[0].key, "c");
    assert_int_equal(master->template_.grace_period_s.value, 5);
    assert_int_equal(master->template_.init_container_count, 1);
    const struct container *container = &master->template_.containers[0];
    assert_string_equal(container->command.items[0], "run");
    assert_int_equal(container->args.count, 2);
    assert_string_equal(container->working_dir, "/tmp");
    assert_int_equal(container->port_count, 2);
    assert_int_equal(container->ports[0].number, 8080);
    assert_string_equal(container->ports[1].name, "");
    assert_string_equal(container->ports[1].protocol, "UDP");
    assert_int_equal(container->env_count, 4);
    assert_string_equal(container->env[1].value, "");
    assert_int_equal(container->env[2].source, ENV_FIELD);
    assert_string_equal(container->env[2].value, "x.y");
    assert_int_equal(container->env[3].source, ENV_SECRET);
    assert_string_equal(container->env[3].value, "s/k");
    decode_close(manifest);
}

static void silence_means_the_defaults(void **state)
{
    (void)state;
    int result;
    struct error err;
    struct manifest *manifest = decode_text(HEAD SPECS "{" MASTER ", " WORKER "}", &result, &err);
    assert_ok(result, &err);
    const struct job *job = manifest->jobs[0];
    const struct replica_spec *worker = &job->replicas[REPLICA_WORKER];
    assert_string_equal(job->namespace_, "default");
    assert_string_equal(job->nproc_per_node, "auto");
    assert_int_equal(job->run_policy.clean_pod_policy, CLEAN_NONE);
    assert_int_equal(job->run_policy.restart_scope, SCOPE_REPLICA);
    assert_int_equal(job->run_policy.backoff_limit.value, 6);
    assert_false(job->run_policy.active_deadline_seconds.set);
    assert_int_equal(worker->replicas.value, 1);
    assert_int_equal(worker->restart_policy, RESTART_ON_FAILURE);
    assert_int_equal(worker->template_.grace_period_s.value, 30);
    assert_int_equal(worker->template_.containers[0].ports[0].number, 23456);
    assert_string_equal(worker->template_.containers[0].ports[0].name, "pytorchjob-port");
    decode_close(manifest);
}

static void backoff_limit_is_read_in_both_places(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        int64_t limit;
    } rows[] = {
        {"  backoffLimit: 3\n", 3},
        {"  runPolicy: {backoffLimit: 2}\n", 2},
        {"  backoffLimit: 3\n  runPolicy: {backoffLimit: 2}\n", 2},
        {"  backoffLimit: 3\n  runPolicy: {backoffLimit: 0}\n", 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int result;
        struct error err;
        auto_free char *text = xasprintf(HEAD "%s" SPECS "{" MASTER "}", rows[i].spec);
        struct manifest *manifest = decode_text(text, &result, &err);
        assert_ok(result, &err);
        assert_int_equal(manifest->jobs[0]->run_policy.backoff_limit.value, rows[i].limit);
        decode_close(manifest);
    }
}

static void lists_hold_jobs_too(void **state)
{
    (void)state;
    int result;
    struct error err;
    struct manifest *manifest = decode_text(
        "{apiVersion: v1, kind: List, items: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, "
        "metadata: {name: a}, spec: {pytorchReplicaSpecs: {" MASTER "}}}, {apiVersion: "
        "kubeflow.org/v1, kind: PyTorchJob, metadata: {name: b}, spec: "
        "{pytorchReplicaSpecs: {" WORKER "}}}]}",
        &result, &err);
    assert_ok(result, &err);
    assert_int_equal(manifest->job_count, 2);
    assert_string_equal(manifest->jobs[1]->name, "b");
    decode_close(manifest);
}

static void what_is_for_schedulers_is_read(void **state)
{
    (void)state;
    int result;
    struct error err;
    struct manifest *manifest = decode_text(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\n"
        "metadata: {name: j, annotations: {a: b}}\n"
        "spec:\n"
        "  runPolicy: {schedulingPolicy: {minAvailable: 2, queue: q, priorityClass: p,\n"
        "    minResources: {cpu: 500m, memory: 1}, scheduleTimeoutSeconds: 9}}\n"
        "  pytorchReplicaSpecs: {Worker: {template: {spec: {schedulerName: s, containers: [{name: "
        "pytorch,\n"
        "    image: i, resources: {limits: {cpu: 2, gpu: 1}, requests: {cpu: 0.5}}}]}}}}\n",
        &result, &err);
    assert_ok(result, &err);
    const struct job *job = manifest->jobs[0];
    const struct scheduling_policy *policy = &job->run_policy.scheduling;
    assert_int_equal(policy->min_available.value, 2);
    assert_string_equal(policy->queue, "q");
    assert_string_equal(policy->priority_class, "p");
    assert_true(policy->has_min_resources);
    assert_int_equal(policy->min_resources.count, 2);
    assert_int_equal(policy->min_resources.items[0].milli, 500);
    assert_int_equal(policy->schedule_timeout_s.value, 9);
    assert_non_null(job->annotations);
    const struct pod_template *template_ = &job->replicas[REPLICA_WORKER].template_;
    assert_string_equal(template_->scheduler_name, "s");
    assert_int_equal(template_->containers[0].requests.count, 2);
    assert_string_equal(template_->containers[0].requests.items[0].resource, "cpu");
    assert_int_equal(template_->containers[0].requests.items[0].milli, 500);
    assert_int_equal(template_->containers[0].requests.items[1].milli, 1000);
    decode_close(manifest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_has_its_place),
        cmocka_unit_test(silence_means_the_defaults),
        cmocka_unit_test(backoff_limit_is_read_in_both_places),
        cmocka_unit_test(lists_hold_jobs_too),
        cmocka_unit_test(what_is_for_schedulers_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
