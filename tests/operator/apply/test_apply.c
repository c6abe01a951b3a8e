/* Plans carried out on a backend that writes down what it is asked, and fails on demand. */
#include "base/mem.h"
#include "base/str.h"
#include "operator/apply/apply.h"
#include "tests/operator/cluster.h"
#include "tests/support.h"

#include <string.h>

struct recorder {
    struct str said;
    const char *failing; /* the call that fails, as it is written down; NULL: none */
    enum error_code code;
};

static int record(void *context, const char *verb, const char *name, struct error *err)
{
    struct recorder *recorder = context;
    auto_free char *call = xasprintf("%s %s", verb, name);
    str_printf(&recorder->said, "%s\n", call);
    if (recorder->failing && !strcmp(recorder->failing, call))
        return error_set(err, recorder->code, "no luck");
    return 0;
}

static int set_status(void *context, const struct job *job, const struct job_status *status,
                      struct error *err)
{
    (void)status;
    return record(context, "status", job->name, err);
}

static int create_pod(void *context, const struct pod_spec *spec, struct error *err)
{
    return record(context, "create", spec->name, err);
}

static int create_service(void *context, const struct service_spec *spec, struct error *err)
{
    return record(context, "serve", spec->name, err);
}

static int delete_pod(void *context, const struct job *job, const char *name, const char *uid,
                      struct error *err)
{
    (void)job, (void)uid;
    return record(context, "delete", name, err);
}

static int delete_job(void *context, const struct job *job, struct error *err)
{
    return record(context, "delete job", job->name, err);
}

static void event(void *context, const struct job *job, enum event_type type, const char *reason,
                  const char *message)
{
    (void)job;
    struct recorder *recorder = context;
    str_printf(&recorder->said, "%s %s: %s\n", type == EVENT_WARNING ? "Warning" : "Normal", reason,
               message);
}

static const struct row {
    const char *name;
    const char *failing;
    enum error_code code;
    int result;
    const char *said;
} rows[] = {
    {"all goes well", NULL, ERR_NONE, 0,
     "status j\n"
     "serve j-worker-0\n"
     "create j-worker-0\nNormal SuccessfulCreatePod: Created pod: j-worker-0\n"},
    {"what exists is no failure, but told", "create j-worker-0", ERR_EXISTS, 0,
     "status j\n"
     "serve j-worker-0\n"
     "create j-worker-0\nWarning FailedCreatePod: Error creating: no luck\n"},
    {"the first failure ends it", "serve j-worker-0", ERR_IO, -1,
     "status j\n"
     "serve j-worker-0\nWarning FailedCreateService: Error creating: no luck\n"},
    {"without the status nothing is done", "status j", ERR_CONFLICT, -1, "status j\n"},
};

static struct backend backend_of(struct recorder *recorder)
{
    return (struct backend){.context = recorder,
                            .set_status = set_status,
                            .create_pod = create_pod,
                            .create_service = create_service,
                            .delete_pod = delete_pod,
                            .delete_service = delete_pod,
                            .delete_job = delete_job,
                            .event = event};
}

static void test_creating(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct cluster *cluster = cluster_open(0, 1, "OnFailure", "activeDeadlineSeconds: 9", "");
        cluster_plan(cluster);
        struct recorder recorder = {.failing = rows[i].failing, .code = rows[i].code};
        str_init(&recorder.said, 4096);
        struct backend backend = backend_of(&recorder);
        int64_t requeue_ms;
        struct error err;
        assert_int_equal(
            apply(cluster->plan, cluster->job, &cluster->status, &backend, &requeue_ms, &err),
            rows[i].result);
        assert_string_equal(str_text(&recorder.said), rows[i].said);
        assert_int_equal(requeue_ms, 1000 + 9000); /* also after a failure */
        str_free(&recorder.said);
        cluster_close(cluster);
    }
}

static void test_deleting(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct job job = {.name = "j"};
    struct job_status status = {0};
    struct plan *plan = plan_open(arena);
    plan_add(plan, (struct action){.kind = ACTION_DELETE_POD, .name = "a", .uid = "1"});
    plan_add(plan, (struct action){.kind = ACTION_DELETE_SERVICE, .name = "b", .uid = "2"});
    plan_add(plan, (struct action){.kind = ACTION_DELETE_JOB, .name = "j", .uid = "3"});
    struct recorder recorder = {.failing = "delete a", .code = ERR_NOT_FOUND};
    str_init(&recorder.said, 4096);
    struct backend backend = backend_of(&recorder);
    int64_t requeue_ms;
    struct error err;
    assert_ok(apply(plan, &job, &status, &backend, &requeue_ms, &err), &err);
    assert_string_equal(str_text(&recorder.said),
                        "delete a\n"
                        "delete b\n"
                        "delete job j\nNormal SuccessfulDeletePod: Deleted job: j\n");
    assert_int_equal(requeue_ms, 0);
    str_free(&recorder.said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_creating),
        cmocka_unit_test(test_deleting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
