/* A cache and what it reported, for tests. Jobs are in namespace "ns". */
#ifndef SHOAL_TESTS_OPERATOR_CACHE_CACHE_FIXTURE_H
#define SHOAL_TESTS_OPERATOR_CACHE_CACHE_FIXTURE_H

#include "base/str.h"
#include "operator/cache/cache.h"
#include "tests/operator/cache/objects.h"

#define FIXTURE_MAX_OBJECTS 20

struct fixture {
    struct cache *cache;          /* takes so many of each kind */
    struct cache_options options; /* that it was opened with */
    struct str changed;           /* keys without "ns/", each after a space; ended jobs' with "~" */
    struct str warn;              /* a line each */
    struct str wrote;             /* " KEY:MANAGER" of each write of another operator */
};

/* For cmocka_unit_test_setup_teardown: *state is a struct fixture. */
int fixture_open(void **state);
int fixture_close(void **state);
#define test(function) cmocka_unit_test_setup_teardown(function, fixture_open, fixture_close)

/* Feed an object and let go of it, as a watch does. */
void feed_put(struct fixture *f, enum cache_kind kind, struct json *object);
void feed_gone(struct fixture *f, enum cache_kind kind, struct json *object);

#define put_job(f, ...)     feed_put((f), CACHE_JOBS, object_job(__VA_ARGS__))
#define put_pod(f, ...)     feed_put((f), CACHE_PODS, object_pod(__VA_ARGS__))
#define put_service(f, ...) feed_put((f), CACHE_SERVICES, object_service(__VA_ARGS__))

/* What was told since the last look. */
#define assert_told(text, expected)                                                                \
    do {                                                                                           \
        assert_string_equal(str_text(&(text)), (expected));                                        \
        str_clear(&(text));                                                                        \
    } while (0)

/* "NAME:UID:PHASE" of each pod, then "NAME:UID" of each service, in order of name. */
const char *world_text(struct fixture *f, const struct cached_job *job, struct arena *arena);
void assert_world(struct fixture *f, const char *key, const char *expected);
#endif
