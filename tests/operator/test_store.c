/* The caches: what is told, what is found, what is kept. */
#include "tests/support.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/names.h"
#include "operator/store.h"
#include "tests/operator/objects.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
    struct store *store;
    struct str changed; /* keys without "ns/", each after a space */
    struct str trouble; /* a line each */
};

static void on_changed(void *context, const char *key)
{
    struct fixture *f = context;
    assert_true(str_starts_with(key, "ns/"));
    str_printf(&f->changed, " %s", key + 3);
}

static void on_trouble(void *context, const char *message)
{
    struct fixture *f = context;
    str_printf(&f->trouble, "%s\n", message);
}

static int open_store(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    str_init(&f->changed, 1 << 16);
    str_init(&f->trouble, 1 << 16);
    f->store = store_open(&(struct store_options){
        .default_backoff_limit = 6, .changed = on_changed, .trouble = on_trouble, .context = f});
    *state = f;
    return 0;
}

static int close_store(void **state)
{
    struct fixture *f = *state;
    store_close(f->store);
    str_free(&f->changed);
    str_free(&f->trouble);
    free(f);
    return 0;
}

/* Feed an object and let go of it, as a watch does. */
static void put(struct fixture *f, enum store_kind kind, json_t *object)
{
    store_put(f->store, kind, object);
    json_decref(object);
}

static void gone(struct fixture *f, enum store_kind kind, json_t *object)
{
    store_gone(f->store, kind, object);
    json_decref(object);
}

#define put_job(f, ...)     put((f), STORE_JOBS, object_job(__VA_ARGS__))
#define put_pod(f, ...)     put((f), STORE_PODS, object_pod(__VA_ARGS__))
#define put_service(f, ...) put((f), STORE_SERVICES, object_service(__VA_ARGS__))

/* What was told since the last look. */
#define assert_told(text, expected)                                                                \
    do {                                                                                           \
        assert_string_equal(str_text(&(text)), (expected));                                        \
        str_clear(&(text));                                                                        \
    } while (0)

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* "NAME:UID:PHASE" of each pod, then "NAME:UID" of each service, in order of name. */
static const char *world_text(struct fixture *f, const struct store_job *job, struct arena *arena)
{
    struct world world;
    store_world(f->store, job, 77, arena, &world);
    assert_ptr_equal(world.job, job->job);
    assert_ptr_equal(world.status, job->status);
    assert_int_equal(world.now_ms, 77);
    size_t count = world.pod_count + world.service_count;
    const char **texts = arena_array(arena, const char *, count), *all = "";
    for (size_t i = 0; i < world.pod_count; i++)
        texts[i] = arena_printf(arena, "%s:%s:%s", world.pods[i].name, world.pods[i].uid,
                                names_phase(world.pods[i].phase));
    for (size_t i = 0; i < world.service_count; i++)
        texts[world.pod_count + i] =
            arena_printf(arena, "%s:%s", world.services[i].name, world.services[i].uid);
    if (world.pod_count)
        qsort(texts, world.pod_count, sizeof *texts, compare_texts);
    if (world.service_count)
        qsort(texts + world.pod_count, world.service_count, sizeof *texts, compare_texts);
    for (size_t i = 0; i < count; i++)
        all = arena_printf(arena, "%s%s%s", all, i ? " " : "", texts[i]);
    return all;
}

static void assert_world(struct fixture *f, const char *key, const char *expected)
{
    struct store_job *job = store_take_job(f->store, key);
    assert_non_null(job);
    auto_arena struct arena *arena = arena_open();
    assert_string_equal(world_text(f, job, arena), expected);
    store_release_job(job);
}

/* ---- children ---- */

static void a_job_finds_what_is_its_own(void **state)
{
    struct fixture *f = *state;
    put_pod(f, "j-worker-0", "p0", "o", 1, "Running"); /* may come before its job */
    put_job(f, "j", "o", 2, 2);
    put_job(f, "k", "q", 3, 1);
    put_pod(f, "j-worker-1", "p1", "o", 4, "Pending");
    put_pod(f, "k-worker-0", "p2", "q", 5, "Pending");
    put_service(f, "j-master-0", "s0", "o", 6);
    put_service(f, "k-master-0", "s1", "q", 7);
    assert_told(f->changed, " j j k j k j k");
    assert_world(f, "ns/j", "j-worker-0:p0:Running j-worker-1:p1:Pending j-master-0:s0");
    assert_world(f, "ns/k", "k-worker-0:p2:Pending k-master-0:s1");
    assert_null(store_take_job(f->store, "ns/none"));
    assert_int_equal(store_count(f->store, STORE_JOBS), 2);
    assert_int_equal(store_count(f->store, STORE_PODS), 3);
    assert_int_equal(store_count(f->store, STORE_SERVICES), 2);
}

static void only_news_are_told(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "j-worker-0", "p", "o", 2, "Pending");
    put_service(f, "j-worker-0", "s", "o", 3);
    assert_told(f->changed, " j j j");
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "j-worker-0", "p", "o", 2, "Pending");
    put_service(f, "j-worker-0", "s", "o", 3);
    assert_told(f->changed, "");
    put_pod(f, "j-worker-0", "p", "o", 4, "Running");
    assert_told(f->changed, " j");
    assert_world(f, "ns/j", "j-worker-0:p:Running j-worker-0:s");
}

static void what_is_gone_is_told_and_not_found(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "j-worker-0", "p", "o", 2, "Pending");
    put_service(f, "j-worker-0", "s", "o", 3);
    str_clear(&f->changed);
    gone(f, STORE_PODS, object_pod("j-worker-0", "p", "o", 4, "Pending"));
    gone(f, STORE_PODS, object_pod("j-worker-0", "p", "o", 4, "Pending"));
    assert_told(f->changed, " j");
    gone(f, STORE_SERVICES, object_service("j-worker-0", "s", "o", 5));
    assert_told(f->changed, " j");
    assert_world(f, "ns/j", "");
    gone(f, STORE_JOBS, object_job("j", "o", 6, 1));
    assert_told(f->changed, " j");
    assert_null(store_take_job(f->store, "ns/j"));
}

/* The end of an object that bore the name before is not the end of this one. */
static void what_is_gone_has_a_uid(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o2", 5, 1);
    put_pod(f, "j-worker-0", "p2", "o2", 6, "Pending");
    str_clear(&f->changed);
    gone(f, STORE_PODS, object_pod("j-worker-0", "p1", "o", 4, "Pending"));
    gone(f, STORE_JOBS, object_job("j", "o", 3, 1));
    assert_told(f->changed, "");
    assert_world(f, "ns/j", "j-worker-0:p2:Pending");
}

/* Another's child under a name that the job wants is in its world, and its changes are its news. */
static void a_name_in_the_way_is_seen(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 2);
    put_job(f, "k", "q", 2, 1);
    str_clear(&f->changed);
    static const char in_the_way[] =
        "{metadata: {name: j-worker-1, namespace: ns, uid: x, resourceVersion: '%d'%s}}";
    put(f, STORE_PODS, object_from(in_the_way, 3, ", labels: {training.kubeflow.org/job-name: k}"));
    assert_told(f->changed, " k j");
    put(f, STORE_SERVICES, object_from(in_the_way, 4, ""));
    assert_told(f->changed, " j");
    assert_world(f, "ns/j", "j-worker-1:x:Pending j-worker-1:x");
    assert_world(f, "ns/k", "j-worker-1:x:Pending");
    gone(f, STORE_PODS, object_from(in_the_way, 5, ""));
    assert_told(f->changed, " k j");
    /* a name beyond the replicas is of no concern */
    put_job(f, "j", "o", 6, 1);
    assert_world(f, "ns/j", "");
}

static void a_child_may_change_hands(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_job(f, "k", "q", 2, 1);
    static const char free_pod[] = "{metadata: {name: p, namespace: ns, uid: x, resourceVersion: "
                                   "'%d', labels: {training.kubeflow.org/job-name: %s}}}";
    put(f, STORE_PODS, object_from(free_pod, 3, "j"));
    str_clear(&f->changed);
    put(f, STORE_PODS, object_from(free_pod, 4, "k"));
    assert_told(f->changed, " j k");
    assert_world(f, "ns/j", "");
    assert_world(f, "ns/k", "p:x:Pending");
    put(f, STORE_PODS, object_from(free_pod, 5, "''"));
    assert_told(f->changed, " k");
    assert_world(f, "ns/k", "");
    assert_int_equal(store_count(f->store, STORE_PODS), 1);
}

static void why_a_pod_waits_is_kept(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put(f, STORE_PODS,
        object_from("{metadata: {name: j-worker-0, namespace: ns, uid: p, resourceVersion: '2'}, "
                    "status: {containerStatuses: [{name: pytorch, state: {waiting: {reason: "
                    "ImagePullBackOff, message: no such image}}}]}}"));
    struct store_job *job = store_take_job(f->store, "ns/j");
    auto_arena struct arena *arena = arena_open();
    struct world world;
    store_world(f->store, job, 0, arena, &world);
    assert_string_equal(world.pods[0].waiting_reason, "ImagePullBackOff");
    assert_string_equal(world.pods[0].waiting_message, "no such image");
    store_release_job(job);
}

/* ---- lists ---- */

static void a_list_drops_what_it_does_not_hold(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 3);
    put_job(f, "k", "q", 2, 3);
    for (int i = 0; i < 3; i++) {
        auto_free char *name = xasprintf("j-worker-%d", i);
        put_pod(f, name, "p", "o", 3 + i, "Pending");
    }
    str_clear(&f->changed);
    store_begin_list(f->store, STORE_PODS);
    put_pod(f, "j-worker-0", "p", "o", 3, "Pending");
    put_pod(f, "j-worker-1", "p", "o", 9, "Running");
    assert_told(f->changed, " j");
    /* until it ends, nothing is missing */
    assert_world(f, "ns/j", "j-worker-0:p:Pending j-worker-1:p:Running j-worker-2:p:Pending");
    store_end_list(f->store, STORE_PODS);
    assert_told(f->changed, " j");
    assert_world(f, "ns/j", "j-worker-0:p:Pending j-worker-1:p:Running");
    store_begin_list(f->store, STORE_JOBS);
    put_job(f, "k", "q", 2, 3);
    store_end_list(f->store, STORE_JOBS);
    assert_told(f->changed, " j");
    assert_null(store_take_job(f->store, "ns/j"));
    assert_int_equal(store_count(f->store, STORE_JOBS), 1);
    assert_int_equal(store_count(f->store, STORE_PODS), 2);
}

static void a_list_that_begins_anew_holds_nothing(void **state)
{
    struct fixture *f = *state;
    put_pod(f, "j-worker-0", "p", "o", 1, "Pending");
    store_begin_list(f->store, STORE_PODS);
    put_pod(f, "j-worker-0", "p", "o", 1, "Pending");
    store_begin_list(f->store, STORE_PODS);
    store_end_list(f->store, STORE_PODS);
    assert_int_equal(store_count(f->store, STORE_PODS), 0);
}

/* ---- jobs ---- */

static void a_job_that_is_taken_stays(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 2);
    struct store_job *old = store_take_job(f->store, "ns/j");
    assert_ptr_equal(store_take_job(f->store, "ns/j"), old);
    put_job(f, "j", "o", 2, 5);
    struct store_job *new = store_take_job(f->store, "ns/j");
    assert_int_equal(old->job->replicas[REPLICA_WORKER].replicas.value, 2);
    assert_int_equal(new->job->replicas[REPLICA_WORKER].replicas.value, 5);
    store_release_job(old);
    gone(f, STORE_JOBS, object_job("j", "o", 3, 5));
    assert_null(store_take_job(f->store, "ns/j"));
    assert_string_equal(old->job->name, "j");
    auto_arena struct arena *arena = arena_open();
    assert_string_equal(world_text(f, new, arena), "");
    store_release_job(old);
    store_release_job(new);
    store_release_job(NULL);
}

static void a_job_is_decoded_whole(void **state)
{
    struct fixture *f = *state;
    put(f, STORE_JOBS,
        object_from(
            "{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {name: j, namespace: "
            "ns, uid: o, resourceVersion: '8', managedFields: [{manager: m}], annotations: "
            "{a: b, kubectl.kubernetes.io/last-applied-configuration: '{}'}}, spec: "
            "{pytorchReplicaSpecs: {Master: {replicas: 1, template: {spec: {nodeName: node-1, "
            "containers: [{name: pytorch, image: i}]}}}}}, status: {history: {failures: 3}, "
            "startTime: '1970-01-01T00:00:05Z'}}"));
    struct store_job *job = store_take_job(f->store, "ns/j");
    assert_null(job->job->invalid);
    assert_int_equal(job->job->run_policy.backoff_limit.value, 6);
    assert_int_equal(job->status->history.failures, 3);
    assert_int_equal(job->status->start_ms, 5000);
    json_t *expected = object_from("{name: j, namespace: ns, uid: o, resourceVersion: '8', "
                                   "annotations: {a: b}}");
    assert_true(json_equal(json_object_get(job->object, "metadata"), expected));
    json_decref(expected);
    json_t *raw = (json_t *)job->job->replicas[REPLICA_MASTER].template_.raw;
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(raw, "spec"), "nodeName")), "node-1");
    store_release_job(job);
}

static void a_wrong_spec_is_a_job_that_says_so(void **state)
{
    struct fixture *f = *state;
    put(f, STORE_JOBS,
        object_from("{metadata: {name: j, namespace: ns, uid: o, resourceVersion: "
                    "'1'}, spec: none}"));
    put_pod(f, "j-worker-0", "p", "o", 2, "Pending");
    assert_told(f->trouble, "");
    struct store_job *job = store_take_job(f->store, "ns/j");
    assert_non_null(strstr(job->job->invalid, "spec: must be a mapping"));
    store_release_job(job);
    assert_world(f, "ns/j", "j-worker-0:p:Pending");
}

/* ---- what cannot be read ---- */

static void the_unreadable_is_told_and_disturbs_nobody(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "j-worker-0", "p", "o", 2, "Pending");
    str_clear(&f->changed);
    put(f, STORE_PODS, object_from("{metadata: {namespace: ns, uid: u}}"));
    assert_told(f->trouble, "pod ns/: metadata.name: Required value: must be text\n");
    put(f, STORE_SERVICES, object_from("{metadata: []}"));
    assert_told(f->trouble, "service /: metadata.name: Required value: must be text\n");
    gone(f, STORE_JOBS, object_from("{metadata: {name: x, namespace: ns}}"));
    assert_told(f->trouble, "PyTorchJob ns/x: metadata.uid: Required value: must be text\n");
    assert_told(f->changed, "");
    assert_world(f, "ns/j", "j-worker-0:p:Pending");
}

static void a_known_one_that_became_unreadable_is_forgotten(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "j-worker-0", "p", "o", 2, "Pending");
    str_clear(&f->changed);
    put(f, STORE_PODS, object_from("{metadata: {name: j-worker-0, namespace: ns, uid: p}}"));
    assert_told(f->changed, " j");
    assert_told(f->trouble, "pod ns/j-worker-0: metadata.resourceVersion: Required value: must be "
                            "text\n");
    assert_world(f, "ns/j", "");
    put(f, STORE_JOBS, object_from("{metadata: {name: j, namespace: ns, resourceVersion: '3'}}"));
    assert_told(f->changed, " j");
    assert_null(store_take_job(f->store, "ns/j"));
    put_job(f, "j", "o", 4, 1);
    assert_world(f, "ns/j", "");
}

static void a_spoilt_pod_keeps_its_place(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "j-worker-0", "p", "o", 2, "Running");
    put_pod(f, "j-worker-0", "p", "o", 3, "Dancing");
    assert_told(f->trouble,
                "pod ns/j-worker-0: status.phase: Unsupported value: \"Dancing\": "
                "supported values: \"Pending\", \"Running\", \"Succeeded\", \"Failed\", "
                "\"Unknown\"\n");
    assert_world(f, "ns/j", "j-worker-0:p:Unknown");
    put_pod(f, "j-worker-0", "p", "o", 3, "Dancing");
    assert_told(f->trouble, ""); /* told once a version */
}

#define test(function) cmocka_unit_test_setup_teardown(function, open_store, close_store)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_job_finds_what_is_its_own),
        test(only_news_are_told),
        test(what_is_gone_is_told_and_not_found),
        test(what_is_gone_has_a_uid),
        test(a_name_in_the_way_is_seen),
        test(a_child_may_change_hands),
        test(why_a_pod_waits_is_kept),
        test(a_list_drops_what_it_does_not_hold),
        test(a_list_that_begins_anew_holds_nothing),
        test(a_job_that_is_taken_stays),
        test(a_job_is_decoded_whole),
        test(a_wrong_spec_is_a_job_that_says_so),
        test(the_unreadable_is_told_and_disturbs_nobody),
        test(a_known_one_that_became_unreadable_is_forgotten),
        test(a_spoilt_pod_keeps_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
