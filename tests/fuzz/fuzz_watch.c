/* What an API server may send, into a watch and the cache behind it. An input's first byte says of
 * what (j: jobs, p: pods, s: services, g: PodGroups, a: autoscalers, n: nodes, w: Workloads, f:
 * flavors, c, d: priority classes); then come lines, each an answer to a list or an event of a
 * stream, whichever is in flight; "!" is a stream that breaks, "." one that ends. Whatever the
 * bytes, something is wanted next, the cache can be looked at, and a list that holds nothing
 * empties it. */
#include "tests/fuzz/fuzz.h"

#include "base/json.h"
#include "base/json_lenient.h"
#include "base/mem.h"
#include "operator/cache/cache.h"
#include "operator/kube/watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BACKOFF_MAX_MS 1000

struct fixture {
    struct watch *watch;
    struct cache *cache;
    enum cache_kind kind;
    int64_t now_ms;
};

static void begin_list(void *context)
{
    struct fixture *f = context;
    cache_begin_list(f->cache, f->kind);
}

static void put(void *context, const struct json *object)
{
    struct fixture *f = context;
    cache_put(f->cache, f->kind, object);
}

static void gone(void *context, const struct json *object)
{
    struct fixture *f = context;
    cache_delete(f->cache, f->kind, object);
}

static void end_list(void *context)
{
    struct fixture *f = context;
    cache_end_list(f->cache, f->kind);
}

static void warn(void *context, const char *message)
{
    (void)context;
    assert(*message);
}

static void look(struct fixture *f, const char *key)
{
    struct cached_job *job = cache_acquire_job(f->cache, key);
    if (!job)
        return;
    auto_arena struct arena *arena = arena_open();
    struct snapshot snapshot;
    cache_snapshot(f->cache, job, f->now_ms, arena, &snapshot);
    for (size_t i = 0; i < snapshot.pod_count; i++)
        assert(snapshot.pods[i].name && snapshot.pods[i].uid && snapshot.pods[i].owner_uid);
    for (size_t i = 0; i < snapshot.service_count; i++)
        assert(snapshot.services[i].name && snapshot.services[i].uid &&
               snapshot.services[i].owner_uid);
    cache_release_job(job);
}

static void changed(void *context, const char *key, bool finished)
{
    (void)context, (void)finished;
    assert(strchr(key, '/'));
}

/* Returns whether the next page is in flight already. */
static bool feed_list(struct fixture *f, const char *line, size_t bytes)
{
    struct error err = {0};
    struct json *answer = json_parse_lenient(line, bytes, json_managed_fields, &err);
    if (!answer && bytes % 2)
        error_set(&err, ERR_GONE, "no JSON");
    bool ahead = answer && watch_feed_head(f->watch, answer);
    bool stays = watch_feed_list(f->watch, answer, &err, 0, f->now_ms);
    assert(ahead || !stays);
    json_free(answer);
    return stays;
}

/* Returns whether the stream goes on. */
static bool feed_stream(struct fixture *f, const char *line, size_t bytes)
{
    struct error err = {0};
    if (bytes != 1 || (*line != '!' && *line != '.'))
        return watch_feed_line(f->watch, line, bytes, f->now_ms);
    if (*line == '!')
        error_set(&err, ERR_IO, "broken");
    watch_feed_end(f->watch, &err, 0, f->now_ms);
    return false;
}

/* What is wanted once any backoff is over. */
static enum watch_action ask(struct fixture *f)
{
    const char *path;
    assert(watch_due(f->watch) <= f->now_ms + BACKOFF_MAX_MS);
    f->now_ms += BACKOFF_MAX_MS;
    enum watch_action want = watch_next(f->watch, f->now_ms, &path);
    assert(want != WATCH_ACTION_NOTHING && watch_due(f->watch) == INT64_MAX);
    return want;
}

static void feed_lines(struct fixture *f, const char *text, size_t size)
{
    enum watch_action want = ask(f);
    while (size > 0) {
        const char *end = memchr(text, '\n', size);
        size_t bytes = end ? (size_t)(end - text) : size;
        bool goes_on = false;
        if (want == WATCH_ACTION_LIST)
            goes_on = feed_list(f, text, bytes);
        else
            goes_on = feed_stream(f, text, bytes);
        if (!goes_on)
            want = ask(f);
        look(f, "ns/j");
        text += end ? bytes + 1 : bytes;
        size -= end ? bytes + 1 : bytes;
    }
}

/* The job that `look` looks at, with a pod; known before anything is heard. */
static void put_known(struct fixture *f)
{
    static const char job[] =
        "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"o\",\"resourceVersion\":\"1\","
        "\"labels\":{\"kueue.x-k8s.io/queue-name\":\"q\"}},"
        "\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":2,\"template\":{\"spec\":{"
        "\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"}]}}}}}}";
    static const char pod[] =
        "{\"metadata\":{\"name\":\"j-worker-0\",\"namespace\":\"ns\",\"uid\":\"p\","
        "\"resourceVersion\":\"2\"}}";
    struct json *object = json_parse_text(job, JSON_STRICT, NULL);
    cache_put(f->cache, CACHE_JOBS, object);
    json_free(object);
    object = json_parse_text(pod, JSON_STRICT, NULL);
    cache_put(f->cache, CACHE_PODS, object);
    json_free(object);
}

static enum cache_kind kind_of(uint8_t byte)
{
    static const char letters[] = "jpsganwfcd";
    const char *letter = byte ? strchr(letters, byte) : NULL;
    return letter ? (enum cache_kind)(letter - letters) : CACHE_PODS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct fixture f = {.kind = kind_of(*data)};
    f.cache = cache_open(&(struct cache_options){
        .default_backoff_limit = 6, .changed = changed, .warn = warn, .context = &f});
    f.watch = watch_open(&(struct watch_options){.path = "/objects",
                                                 .selector = "",
                                                 .page = 10,
                                                 .timeout_s = 290,
                                                 .whole_events = true,
                                                 .backoff_first_ms = 1,
                                                 .backoff_max_ms = BACKOFF_MAX_MS,
                                                 .begin_list = begin_list,
                                                 .put = put,
                                                 .remove = gone,
                                                 .end_list = end_list,
                                                 .warn = warn,
                                                 .context = &f});
    put_known(&f);
    feed_lines(&f, (const char *)data + 1, size - 1);
    begin_list(&f);
    end_list(&f);
    assert(cache_count(f.cache, f.kind) == 0);
    watch_close(f.watch);
    cache_close(f.cache);
    return 0;
}
