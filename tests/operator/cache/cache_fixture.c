#include "tests/operator/cache/cache_fixture.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/operator/cache/objects.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

static void on_changed(void *context, const char *key, bool finished)
{
    struct fixture *f = context;
    assert_true(str_starts_with(key, "ns/"));
    str_printf(&f->changed, " %s%s", key + 3, finished ? "~" : "");
}

static void on_another_wrote(void *context, const char *key, const char *manager)
{
    struct fixture *f = context;
    str_printf(&f->wrote, " %s:%s", key, manager);
}

static void on_warn(void *context, const char *message)
{
    struct fixture *f = context;
    str_printf(&f->warn, "%s\n", message);
}

int fixture_open(void **state)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    str_init(&f->changed, 1 << 16);
    str_init(&f->warn, 1 << 16);
    str_init(&f->wrote, 1 << 16);
    f->options = (struct cache_options){.max_objects = FIXTURE_MAX_OBJECTS,
                                        .default_backoff_limit = 6,
                                        .changed = on_changed,
                                        .another_wrote = on_another_wrote,
                                        .warn = on_warn,
                                        .context = f};
    f->cache = cache_open(&f->options);
    *state = f;
    return 0;
}

int fixture_close(void **state)
{
    struct fixture *f = *state;
    cache_close(f->cache);
    str_free(&f->changed);
    str_free(&f->warn);
    str_free(&f->wrote);
    free(f);
    return 0;
}

void feed_put(struct fixture *f, enum cache_kind kind, struct json *object)
{
    cache_put(f->cache, kind, object);
    json_free(object);
}

void feed_gone(struct fixture *f, enum cache_kind kind, struct json *object)
{
    cache_delete(f->cache, kind, object);
    json_free(object);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *world_text(struct fixture *f, const struct cached_job *job, struct arena *arena)
{
    struct snapshot snapshot;
    cache_snapshot(f->cache, job, 77, arena, &snapshot);
    assert_ptr_equal(snapshot.job, job->job);
    assert_ptr_equal(snapshot.status, job->status);
    assert_int_equal(snapshot.now_ms, 77);
    size_t count = snapshot.pod_count + snapshot.service_count;
    const char **texts = arena_array(arena, const char *, count), *all = "";
    for (size_t i = 0; i < snapshot.pod_count; i++)
        texts[i] = arena_printf(arena, "%s:%s:%s", snapshot.pods[i].name, snapshot.pods[i].uid,
                                object_phase(snapshot.pods[i].phase));
    for (size_t i = 0; i < snapshot.service_count; i++)
        texts[snapshot.pod_count + i] =
            arena_printf(arena, "%s:%s", snapshot.services[i].name, snapshot.services[i].uid);
    if (snapshot.pod_count)
        qsort(texts, snapshot.pod_count, sizeof *texts, compare_texts);
    if (snapshot.service_count)
        qsort(texts + snapshot.pod_count, snapshot.service_count, sizeof *texts, compare_texts);
    for (size_t i = 0; i < count; i++)
        all = arena_printf(arena, "%s%s%s", all, i ? " " : "", texts[i]);
    return all;
}

void assert_world(struct fixture *f, const char *key, const char *expected)
{
    struct cached_job *job = cache_acquire_job(f->cache, key);
    assert_non_null(job);
    auto_arena struct arena *arena = arena_open();
    assert_string_equal(world_text(f, job, arena), expected);
    cache_release_job(job);
}
