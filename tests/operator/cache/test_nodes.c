/* Nodes in the cache: which of a job's nodes are marked as bad, how many others could take its
 * pods, and which jobs look again. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/cache/cache.h"
#include "tests/operator/cache/cache_fixture.h"

#include <stdlib.h>
#include <string.h>

#define GPUS       "capacity: {nvidia.com/gpu: '8'}"
#define TAINT      "taints: [{key: bad, effect: NoSchedule}]"
#define MAIN_NODES "taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]"

static int open_nodes(void **state)
{
    fixture_open(state);
    struct fixture *f = *state;
    struct cache_options options = f->options;
    options.signs = (struct node_signs){"bad", "Broken"};
    cache_close(f->cache);
    f->cache = cache_open(&options);
    return 0;
}

static struct json *node(const char *name, const char *spec, const char *status)
{
    return object_from("metadata: {name: %s, uid: %s-1, resourceVersion: '1'}\nspec: {%s}\nstatus: "
                       "{conditions: [{type: Ready, status: 'True'}], %s}\n",
                       name, name, spec, status);
}

static void put_node(struct fixture *f, const char *name, const char *spec)
{
    feed_put(f, CACHE_NODES, node(name, spec, GPUS));
}

static void put_pod_on(struct fixture *f, const char *name, const char *uid, const char *node_name)
{
    struct json *pod = object_pod(name, uid, "j1", 1, "Running");
    json_set(pod, "spec", object_from("nodeName: %s", node_name));
    feed_put(f, CACHE_PODS, pod);
}

/* "NODE:SIGN:SPARES" of each bad node of the job j, which avoids `avoided`. */
static void assert_bad(struct fixture *f, const char *avoided, const char *expected)
{
    auto_arena struct arena *arena = arena_open();
    struct cached_job *job = cache_acquire_job(f->cache, "ns/j");
    struct snapshot snapshot;
    cache_snapshot(f->cache, job, 0, arena, &snapshot);
    struct avoided_node node = {.name = avoided, .since_ms = 1};
    struct job_status status = {.history = {.avoided = &node, .avoided_count = avoided != NULL}};
    snapshot.status = &status;
    cache_find_bad_nodes(f->cache, &snapshot, arena);
    const char *text = "";
    for (size_t i = 0; i < snapshot.bad_node_count; i++)
        text = arena_printf(arena, "%s%s:%s:%zu ", text, snapshot.bad_nodes[i].name,
                            snapshot.bad_nodes[i].sign, snapshot.bad_nodes[i].spares);
    assert_string_equal(text, expected);
    cache_release_job(job);
}

static void assert_changed(struct fixture *f, const char *expected)
{
    assert_string_equal(str_text(&f->changed), expected);
    str_clear(&f->changed);
}

static void open_job(struct fixture *f)
{
    feed_put(f, CACHE_JOBS, object_job("j", "j1", 1, 1));
    feed_put(f, CACHE_JOBS, object_job("k", "k1", 1, 1));
    put_pod_on(f, "j-master-0", "p1", "a");
    put_pod_on(f, "j-worker-0", "p2", "b");
    str_clear(&f->changed);
}

static void marked_nodes_of_a_job_are_found(void **state)
{
    struct fixture *f = *state;
    open_job(f);
    assert_bad(f, NULL, ""); /* no node is known: nothing is watched */
    for (const char *name = "abcdef"; *name; name++)
        put_node(f, (char[]){*name, '\0'}, "");
    assert_changed(f, "");
    assert_bad(f, NULL, "");
    put_node(f, "b", TAINT);
    assert_changed(f, " j");
    assert_bad(f, NULL, "b:taint bad:NoSchedule:4 ");
    put_node(f, "a", TAINT);
    assert_bad(f, NULL, "a:taint bad:NoSchedule:4 b:taint bad:NoSchedule:4 ");
    assert_bad(f, "a", "b:taint bad:NoSchedule:4 "); /* it is left already */
    assert_bad(f, "c", "a:taint bad:NoSchedule:3 b:taint bad:NoSchedule:3 ");
}

static void only_what_could_take_a_pod_is_spare(void **state)
{
    struct fixture *f = *state;
    open_job(f);
    put_node(f, "a", "");
    put_node(f, "b", TAINT);
    put_node(f, "c", TAINT);
    put_node(f, "d", "unschedulable: true");
    put_node(f, "e", MAIN_NODES);
    feed_put(f, CACHE_NODES, node("f", "", "capacity: {nvidia.com/gpu: '4'}"));
    feed_put(f, CACHE_NODES, node("g", "", "capacity: {cpu: '8'}"));
    assert_bad(f, NULL, "b:taint bad:NoSchedule:0 ");
    put_node(f, "h", "");
    assert_bad(f, NULL, "b:taint bad:NoSchedule:1 ");
}

static void jobs_look_when_signs_come_and_go(void **state)
{
    struct fixture *f = *state;
    open_job(f);
    put_node(f, "b", TAINT);
    assert_changed(f, " j");
    put_node(f, "b", TAINT); /* a heartbeat */
    put_node(f, "x", TAINT); /* nobody's */
    assert_changed(f, "");
    put_node(f, "b", "");
    assert_changed(f, " j");
    put_node(f, "b", TAINT);
    feed_gone(f, CACHE_NODES, node("b", TAINT, ""));
    assert_changed(f, " j j");
    feed_gone(f, CACHE_NODES, node("b", TAINT, ""));
    assert_bad(f, NULL, "");
    assert_changed(f, "");
}

/* However many nodes a list changes, each job looks once. */
static void a_list_replaces_all_nodes(void **state)
{
    struct fixture *f = *state;
    open_job(f);
    put_node(f, "a", TAINT);
    put_node(f, "b", TAINT);
    str_clear(&f->changed);
    cache_begin_list(f->cache, CACHE_NODES);
    put_node(f, "b", "");
    put_node(f, "c", "");
    assert_changed(f, "");
    cache_end_list(f->cache, CACHE_NODES);
    assert_int_equal(strlen(str_text(&f->changed)), strlen(" j k"));
    assert_int_equal(cache_count(f->cache, CACHE_NODES), 2);
    assert_bad(f, NULL, "");
}

static void there_are_limits(void **state)
{
    struct fixture *f = *state;
    open_job(f);
    cache_begin_list(f->cache, CACHE_NODES);
    for (int i = 0; i < FIXTURE_MAX_OBJECTS + 3; i++) {
        auto_free char *name = xasprintf("n%d", i);
        put_node(f, name, "");
    }
    cache_end_list(f->cache, CACHE_NODES);
    assert_int_equal(cache_count(f->cache, CACHE_NODES), FIXTURE_MAX_OBJECTS);
    assert_string_equal(str_text(&f->warn),
                        "node n20: not taken, like all that follow: too many\n");
    str_clear(&f->warn);
    feed_put(f, CACHE_NODES, object_from("metadata: {}"));
    feed_put(f, CACHE_NODES, object_from("metadata: {name: n1}\nspec: {taints: 7}"));
    assert_string_equal(str_text(&f->warn),
                        "node n1: spec.taints: must be a list, not the number 7\n");
}

#define test_nodes(function) cmocka_unit_test_setup_teardown(function, open_nodes, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_nodes(marked_nodes_of_a_job_are_found),
        test_nodes(only_what_could_take_a_pod_is_spare),
        test_nodes(jobs_look_when_signs_come_and_go),
        test_nodes(a_list_replaces_all_nodes),
        test_nodes(there_are_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
