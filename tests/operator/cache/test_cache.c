/* The caches: what is told, what is found, what is kept. */
#include "tests/support.h"

#include "base/mem.h"
#include "tests/operator/cache/cache_fixture.h"

#include <stdio.h>
#include <string.h>

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
    assert_null(cache_acquire_job(f->cache, "ns/none"));
    assert_int_equal(cache_count(f->cache, CACHE_JOBS), 2);
    assert_int_equal(cache_count(f->cache, CACHE_PODS), 3);
    assert_int_equal(cache_count(f->cache, CACHE_SERVICES), 2);
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

/* So that it can be deleted as it was seen, or not at all. */
static void a_pod_keeps_the_version_it_was_seen_in(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    for (int version = 4; version < 6; version++) {
        put_pod(f, "j-worker-0", "p", "o", version, "Running");
        struct cached_job *job = cache_acquire_job(f->cache, "ns/j");
        auto_arena struct arena *arena = arena_open();
        struct snapshot snapshot;
        cache_snapshot(f->cache, job, 0, arena, &snapshot);
        assert_string_equal(snapshot.pods[0].version, version == 4 ? "4" : "5");
        cache_release_job(job);
    }
}

static void what_is_gone_is_told_and_not_found(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "j-worker-0", "p", "o", 2, "Pending");
    put_service(f, "j-worker-0", "s", "o", 3);
    str_clear(&f->changed);
    feed_gone(f, CACHE_PODS, object_pod("j-worker-0", "p", "o", 4, "Pending"));
    feed_gone(f, CACHE_PODS, object_pod("j-worker-0", "p", "o", 4, "Pending"));
    assert_told(f->changed, " j");
    feed_gone(f, CACHE_SERVICES, object_service("j-worker-0", "s", "o", 5));
    assert_told(f->changed, " j");
    assert_world(f, "ns/j", "");
    feed_gone(f, CACHE_JOBS, object_job("j", "o", 6, 1));
    assert_told(f->changed, " j");
    assert_null(cache_acquire_job(f->cache, "ns/j"));
}

/* The end of an object that bore the name before is not the end of this one. */
static void what_is_gone_has_a_uid(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o2", 5, 1);
    put_pod(f, "j-worker-0", "p2", "o2", 6, "Pending");
    str_clear(&f->changed);
    feed_gone(f, CACHE_PODS, object_pod("j-worker-0", "p1", "o", 4, "Pending"));
    feed_gone(f, CACHE_JOBS, object_job("j", "o", 3, 1));
    assert_told(f->changed, "");
    assert_world(f, "ns/j", "j-worker-0:p2:Pending");
}

/* Another's child under a name that the job wants is in its snapshot, and its changes are its
 * changes. */
static void a_name_in_the_way_is_seen(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 2);
    put_job(f, "k", "q", 2, 1);
    str_clear(&f->changed);
    static const char in_the_way[] =
        "{metadata: {name: j-worker-1, namespace: ns, uid: x, resourceVersion: '%d'%s}}";
    feed_put(f, CACHE_PODS,
             object_from(in_the_way, 3, ", labels: {training.kubeflow.org/job-name: k}"));
    assert_told(f->changed, " k j");
    feed_put(f, CACHE_SERVICES, object_from(in_the_way, 4, ""));
    assert_told(f->changed, " j");
    assert_world(f, "ns/j", "j-worker-1:x:Pending j-worker-1:x");
    assert_world(f, "ns/k", "j-worker-1:x:Pending");
    feed_gone(f, CACHE_PODS, object_from(in_the_way, 5, ""));
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
    feed_put(f, CACHE_PODS, object_from(free_pod, 3, "j"));
    str_clear(&f->changed);
    feed_put(f, CACHE_PODS, object_from(free_pod, 4, "k"));
    assert_told(f->changed, " j k");
    assert_world(f, "ns/j", "");
    assert_world(f, "ns/k", "p:x:Pending");
    feed_put(f, CACHE_PODS, object_from(free_pod, 5, "''"));
    assert_told(f->changed, " k");
    assert_world(f, "ns/k", "");
    assert_int_equal(cache_count(f->cache, CACHE_PODS), 1);
}

static void why_a_pod_waits_is_kept(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    feed_put(
        f, CACHE_PODS,
        object_from("{metadata: {name: j-worker-0, namespace: ns, uid: p, resourceVersion: '2'}, "
                    "status: {containerStatuses: [{name: pytorch, state: {waiting: {reason: "
                    "ImagePullBackOff, message: no such image}}}]}}"));
    struct cached_job *job = cache_acquire_job(f->cache, "ns/j");
    auto_arena struct arena *arena = arena_open();
    struct snapshot snapshot;
    cache_snapshot(f->cache, job, 0, arena, &snapshot);
    assert_string_equal(snapshot.pods[0].waiting_reason, "ImagePullBackOff");
    assert_string_equal(snapshot.pods[0].waiting_message, "no such image");
    cache_release_job(job);
}

static void it_takes_no_more_than_it_may(void **state)
{
    struct fixture *f = *state;
    char name[32], pod[48];
    for (int i = 0; i < FIXTURE_MAX_OBJECTS + 2; i++) {
        snprintf(name, sizeof name, "j%d", i);
        put_job(f, name, name, 1, 1);
        snprintf(pod, sizeof pod, "%s-worker-0", name);
        put_pod(f, pod, pod, name, 1, "Pending");
    }
    assert_told(f->warn,
                "PyTorchJob ns/j20: not taken, like all that follow: too many; watch "
                "fewer namespaces (--namespace)\n"
                "pod ns/j20-worker-0: not taken, like all that follow: too many; watch fewer "
                "namespaces (--namespace)\n");
    assert_int_equal(cache_count(f->cache, CACHE_JOBS), FIXTURE_MAX_OBJECTS);
    assert_int_equal(cache_count(f->cache, CACHE_PODS), FIXTURE_MAX_OBJECTS);
    /* news of those that were taken are taken, and what goes makes room */
    put_pod(f, "j0-worker-0", "j0-worker-0", "j0", 2, "Running");
    feed_gone(f, CACHE_PODS, object_pod("j0-worker-0", "j0-worker-0", "j0", 3, "Running"));
    put_pod(f, "j20-worker-0", "p", "j20", 4, "Pending");
    assert_int_equal(cache_count(f->cache, CACHE_PODS), FIXTURE_MAX_OBJECTS);
    assert_told(f->warn, "");
}

/* ---- lists ---- */

/* News of a job that has ended can wait, be it of the job, of its children or of its going. */
static void what_is_told_says_whether_the_job_has_ended(void **state)
{
    struct fixture *f = *state;
    static const char job[] = "{metadata: {name: j, namespace: ns, uid: o, resourceVersion: '%d'}, "
                              "spec: {}, status: {conditions: [{type: %s, status: 'True'}]}}";
    feed_put(f, CACHE_JOBS, object_from(job, 1, "Running"));
    assert_told(f->changed, " j");
    feed_put(f, CACHE_JOBS, object_from(job, 2, "Succeeded"));
    assert_told(f->changed, " j~");
    feed_put(f, CACHE_JOBS, object_from(job, 3, "Failed"));
    put_pod(f, "j-worker-0", "p", "o", 4, "Pending");
    cache_resync_jobs(f->cache);
    assert_told(f->changed, " j~ j~ j~");
    feed_gone(f, CACHE_JOBS, object_from(job, 5, "Failed"));
    put_pod(f, "j-worker-0", "p", "o", 6, "Running");
    assert_told(f->changed, " j~ j");
}

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
    cache_begin_list(f->cache, CACHE_PODS);
    put_pod(f, "j-worker-0", "p", "o", 3, "Pending");
    put_pod(f, "j-worker-1", "p", "o", 9, "Running");
    assert_told(f->changed, " j");
    /* until it ends, nothing is missing */
    assert_world(f, "ns/j", "j-worker-0:p:Pending j-worker-1:p:Running j-worker-2:p:Pending");
    cache_end_list(f->cache, CACHE_PODS);
    assert_told(f->changed, " j");
    assert_world(f, "ns/j", "j-worker-0:p:Pending j-worker-1:p:Running");
    cache_begin_list(f->cache, CACHE_JOBS);
    put_job(f, "k", "q", 2, 3);
    cache_end_list(f->cache, CACHE_JOBS);
    assert_told(f->changed, " j");
    assert_null(cache_acquire_job(f->cache, "ns/j"));
    assert_int_equal(cache_count(f->cache, CACHE_JOBS), 1);
    assert_int_equal(cache_count(f->cache, CACHE_PODS), 2);
}

static void a_list_that_begins_anew_holds_nothing(void **state)
{
    struct fixture *f = *state;
    put_pod(f, "j-worker-0", "p", "o", 1, "Pending");
    cache_begin_list(f->cache, CACHE_PODS);
    put_pod(f, "j-worker-0", "p", "o", 1, "Pending");
    cache_begin_list(f->cache, CACHE_PODS);
    cache_end_list(f->cache, CACHE_PODS);
    assert_int_equal(cache_count(f->cache, CACHE_PODS), 0);
}

static void all_jobs_can_be_marked(void **state)
{
    struct fixture *f = *state;
    put_job(f, "j", "o", 1, 1);
    put_pod(f, "x-worker-0", "p", "q", 2, "Pending"); /* its job is not known */
    put_job(f, "k", "r", 3, 1);
    str_clear(&f->changed);
    cache_resync_jobs(f->cache);
    bool in_order = strcmp(str_text(&f->changed), " j k") == 0;
    assert_true(in_order || strcmp(str_text(&f->changed), " k j") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_job_finds_what_is_its_own),
        test(only_news_are_told),
        test(a_pod_keeps_the_version_it_was_seen_in),
        test(what_is_gone_is_told_and_not_found),
        test(what_is_gone_has_a_uid),
        test(a_name_in_the_way_is_seen),
        test(what_is_told_says_whether_the_job_has_ended),
        test(a_child_may_change_hands),
        test(why_a_pod_waits_is_kept),
        test(it_takes_no_more_than_it_may),
        test(a_list_drops_what_it_does_not_hold),
        test(a_list_that_begins_anew_holds_nothing),
        test(all_jobs_can_be_marked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
