/* Random histories of an API server and three watches that keep one cache in step with it: pages
 * whose token expires, streams that lag, repeat themselves, are cut within a line, end or break,
 * errors as answers and as events, a past that is compacted. Beside it an observer who looks only
 * at keys of which the cache told him. Once the server is quiet, the cache holds what the server
 * holds, and the observer knows it. A failing run names its seed: SIMULATION_SEED=n runs that one
 * alone. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "operator/kube/watch.h"
#include "tests/operator/cache/objects.h"
#include "tests/operator/cache/watch_server.h"
#include "tests/operator/seed.h"

#include <stdlib.h>
#include <string.h>

#define SEEDS       300
#define STEPS       SERVER_MAX_LOG
#define MAX_ROUNDS  400  /* until all must be in step */
#define PATIENCE_MS 5000 /* with what was changed and is not heard of */

struct feed {
    struct simulation *simulation;
    enum cache_kind kind;
    struct watch *watch;
    enum watch_action in_flight;
    char path[256];
    int position;    /* of the stream: the version up to which it was sent */
    int64_t mute_ms; /* since when the stream says nothing, whatever changes; 0: it does */
};

struct simulation {
    uint64_t seed;
    int64_t now_ms;
    struct watch_server server;
    struct feed feeds[SERVER_KINDS];
    struct cache *cache;
    bool told[SERVER_JOBS];   /* and not yet looked at */
    char *known[SERVER_JOBS]; /* what the observer saw last */
};

#define check(s, condition, ...)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            print_error("seed %llu: ", (unsigned long long)(s)->seed);                             \
            print_error(__VA_ARGS__);                                                              \
            print_error("\n");                                                                     \
            fail();                                                                                \
        }                                                                                          \
    } while (0)

/* ---- the client ---- */

/* Returns whether the stream goes on. */
static bool send_line(struct feed *feed, const char *line)
{
    return watch_feed_line(feed->watch, line, strlen(line), feed->simulation->now_ms);
}

static void start(struct feed *feed)
{
    const char *path = NULL;
    feed->mute_ms = 0;
    feed->in_flight = watch_next(feed->watch, feed->simulation->now_ms, &path);
    if (feed->in_flight == WATCH_ACTION_NOTHING)
        return;
    check(feed->simulation, strstr(path, "labelSelector=app%3Dx"), "%s has no selector", path);
    snprintf(feed->path, sizeof feed->path, "%s", path);
    feed->position = watch_server_position(path);
}

static void answer_list(struct feed *feed)
{
    struct simulation *s = feed->simulation;
    struct error err;
    struct json *answer = watch_server_list(&s->server, feed->kind, feed->path, &err);
    watch_feed_list(feed->watch, answer, &err, 0, s->now_ms);
    json_free(answer);
}

static void end_stream(struct feed *feed)
{
    struct simulation *s = feed->simulation;
    struct error err = {0};
    if (watch_server_chance(&s->server, 50))
        error_set(&err, watch_server_chance(&s->server, 30) ? ERR_GONE : ERR_TIMEOUT, "a fault");
    watch_feed_end(feed->watch, &err, 0, s->now_ms);
}

/* A stream that says nothing. Somebody may miss what it should say. */
static void be_mute(struct feed *feed)
{
    struct simulation *s = feed->simulation;
    bool is_missed = s->now_ms - feed->mute_ms > PATIENCE_MS &&
                     !watch_server_sent_all(&s->server, feed->kind, feed->position);
    if (!is_missed || !watch_relist_if_silent(feed->watch, s->now_ms - PATIENCE_MS, s->now_ms))
        feed->in_flight = WATCH_ACTION_STREAM;
}

static void drive(struct feed *feed)
{
    struct simulation *s = feed->simulation;
    enum watch_action in_flight = feed->in_flight;
    feed->in_flight = WATCH_ACTION_NOTHING;
    if (in_flight == WATCH_ACTION_NOTHING) {
        start(feed);
    } else if (in_flight == WATCH_ACTION_LIST) {
        answer_list(feed);
    } else if (!s->server.calm && watch_server_chance(&s->server, 4)) {
        end_stream(feed);
    } else if (feed->mute_ms) {
        be_mute(feed);
    } else {
        auto_free char *line = watch_server_line(&s->server, feed->kind, &feed->position);
        if (!line || send_line(feed, line))
            feed->in_flight = WATCH_ACTION_STREAM;
        if (!s->server.calm && watch_server_chance(&s->server, 2))
            feed->mute_ms = s->now_ms;
    }
}

static void on_begin(void *context)
{
    struct feed *feed = context;
    cache_begin_list(feed->simulation->cache, feed->kind);
}

static void on_put(void *context, const struct json *object)
{
    struct feed *feed = context;
    cache_put(feed->simulation->cache, feed->kind, object);
}

static void on_remove(void *context, const struct json *object)
{
    struct feed *feed = context;
    cache_delete(feed->simulation->cache, feed->kind, object);
}

static void on_end(void *context)
{
    struct feed *feed = context;
    cache_end_list(feed->simulation->cache, feed->kind);
}

static void on_warn(void *context, const char *message)
{
    (void)context;
    assert_non_null(message);
}

static void on_changed(void *context, const char *key, bool finished)
{
    (void)finished;
    struct simulation *s = context;
    for (int i = 0; i < SERVER_JOBS; i++)
        if (strcmp(key + 3, server_job_names[i]) == 0)
            s->told[i] = true;
}

/* ---- the observer ---- */

/* As watch_server_state, from the cache. */
static char *seen_world(struct simulation *s, int job)
{
    auto_free char *key = xasprintf("ns/%s", server_job_names[job]);
    struct cached_job *taken = cache_acquire_job(s->cache, key);
    if (!taken)
        return xstrdup("none");
    auto_arena struct arena *arena = arena_open();
    struct snapshot snapshot;
    cache_snapshot(s->cache, taken, s->now_ms, arena, &snapshot);
    const struct json *metadata = json_get(taken->object, "metadata");
    auto_str struct str text;
    str_init(&text, 1 << 14);
    str_add(&text, json_as_text(json_get(metadata, "resourceVersion")));
    for (int slot = 0; slot < SERVER_SLOTS; slot++) {
        char name[64];
        watch_server_child_name(slot, name, sizeof name);
        for (size_t i = 0; i < snapshot.pod_count; i++)
            if (strcmp(snapshot.pods[i].name, name) == 0)
                str_printf(&text, " %s %s %s;", name, snapshot.pods[i].uid,
                           object_phase(snapshot.pods[i].phase));
        for (size_t i = 0; i < snapshot.service_count; i++)
            if (strcmp(snapshot.services[i].name, name) == 0)
                str_printf(&text, " %s %s;", name, snapshot.services[i].uid);
    }
    cache_release_job(taken);
    return xstrdup(str_text(&text));
}

static void look(struct simulation *s)
{
    for (int i = 0; i < SERVER_JOBS; i++) {
        if (!s->told[i])
            continue;
        s->told[i] = false;
        free(s->known[i]);
        s->known[i] = seen_world(s, i);
    }
}

/* ---- one run ---- */

static void open_simulation(struct simulation *s, uint64_t seed)
{
    *s = (struct simulation){.seed = seed, .now_ms = 1, .server = watch_server_make(seed)};
    s->cache = cache_open(&(struct cache_options){
        .default_backoff_limit = 6, .changed = on_changed, .warn = on_warn, .context = s});
    for (int kind = 0; kind < SERVER_KINDS; kind++) {
        struct feed *feed = &s->feeds[kind];
        *feed = (struct feed){.simulation = s, .kind = (enum cache_kind)kind};
        feed->watch =
            watch_open(&(struct watch_options){.path = "/objects",
                                               .selector = "app=x",
                                               .page = 1 + watch_server_below(&s->server, 5),
                                               .timeout_s = 290,
                                               .backoff_first_ms = 100,
                                               .backoff_max_ms = 3000,
                                               .seed = seed,
                                               .begin_list = on_begin,
                                               .put = on_put,
                                               .remove = on_remove,
                                               .end_list = on_end,
                                               .warn = on_warn,
                                               .context = feed});
    }
    for (int i = 0; i < SERVER_JOBS; i++)
        s->known[i] = xstrdup("none");
}

static void close_simulation(struct simulation *s)
{
    for (int kind = 0; kind < SERVER_KINDS; kind++)
        watch_close(s->feeds[kind].watch);
    for (int i = 0; i < SERVER_JOBS; i++)
        free(s->known[i]);
    cache_close(s->cache);
}

static bool is_in_step(const struct simulation *s)
{
    for (int kind = 0; kind < SERVER_KINDS; kind++)
        if (s->feeds[kind].in_flight != WATCH_ACTION_STREAM ||
            !watch_server_sent_all(&s->server, (enum cache_kind)kind, s->feeds[kind].position))
            return false;
    return true;
}

static void check_feed(struct simulation *s, struct feed *feed)
{
    const struct error *err;
    size_t count = cache_count(s->cache, feed->kind);
    size_t expected = watch_server_count(&s->server, feed->kind);
    auto_free char *bookmark = watch_server_bookmark(&s->server, &feed->position);
    check(s, count == expected, "%zu objects of kind %d, expected %zu", count, feed->kind,
          expected);
    check(s, watch_is_synced(feed->watch), "not synced");
    check(s, send_line(feed, bookmark), "a bookmark ended the stream");
    check(s, watch_failing_since(feed->watch, &err) == 0, "failing: %s", err->msg);
}

static void check_job(struct simulation *s, int job)
{
    auto_free char *truth = watch_server_state(&s->server, job);
    auto_free char *seen = seen_world(s, job);
    check(s, strcmp(seen, truth) == 0, "the cache has\n  %s\nthe server\n  %s", seen, truth);
    check(s, strcmp(s->known[job], truth) == 0, "the observer knows\n  %s\nbut there is\n  %s",
          s->known[job], truth);
}

static void come_to_rest(struct simulation *s)
{
    s->server.calm = true;
    for (int round = 0; !is_in_step(s); round++) {
        check(s, round < MAX_ROUNDS, "not in step after %d rounds", MAX_ROUNDS);
        for (int kind = 0; kind < SERVER_KINDS; kind++)
            drive(&s->feeds[kind]);
        s->now_ms += 100;
    }
    look(s);
    for (int kind = 0; kind < SERVER_KINDS; kind++)
        check_feed(s, &s->feeds[kind]);
    for (int i = 0; i < SERVER_JOBS; i++)
        check_job(s, i);
    s->server.calm = false;
}

static void run(uint64_t seed)
{
    struct simulation *s = xcalloc(1, sizeof *s);
    open_simulation(s, seed);
    int rest = 1 + watch_server_below(&s->server, STEPS);
    for (int i = 1; i <= STEPS; i++) {
        if (watch_server_chance(&s->server, 40))
            watch_server_change(&s->server);
        if (watch_server_chance(&s->server, 2))
            s->server.compacted = s->server.version;
        for (int n = watch_server_below(&s->server, 4); n > 0; n--)
            drive(&s->feeds[watch_server_below(&s->server, SERVER_KINDS)]);
        if (watch_server_chance(&s->server, 20))
            look(s);
        s->now_ms += watch_server_below(&s->server, 200);
        if (i == rest)
            come_to_rest(s);
    }
    come_to_rest(s);
    close_simulation(s);
    free(s);
}

static int64_t only_seed; /* 0: all */

static void the_cache_follows_the_server(void **state)
{
    (void)state;
    if (only_seed) {
        run((uint64_t)only_seed);
        return;
    }
    for (uint64_t i = 1; i <= SEEDS; i++)
        run(i);
}

int main(void)
{
    only_seed = seed_asked();
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_cache_follows_the_server)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
