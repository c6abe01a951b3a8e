/* What a rank does before it has a ring: where it listens, and what it tells of that. The store is
 * the test's, and looks at the moment when a rank has told all and waits. */
#include "agent/comm/ring_meet.h"

#include "agent/comm/net.h"
#include "base/clock.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

struct looking_store {
    struct store head;
    void (*look)(const char *told);
};

static int look_at(struct store *s, const char *key, const char *value, struct error *err)
{
    (void)err;
    assert_string_equal(key, "world/at/0");
    ((struct looking_store *)s)->look(value);
    return 0;
}

static int nobody_came(struct store *s, const char *key, int timeout_ms, char *ret_value,
                       struct error *err)
{
    (void)s;
    (void)timeout_ms;
    (void)ret_value;
    return error_set(err, ERR_TIMEOUT, "%s is not there", key);
}

static const struct store_functions functions = {.set = look_at, .get = nobody_came};

/* listen_host, self_host: of the store. */
static void meet(const char *listen_host, const char *self_host, const char *interface,
                 void (*look)(const char *told))
{
    struct looking_store s = {.look = look};
    struct error err;
    int out, in;
    store_init(&s.head, &functions);
    snprintf(s.head.listen_host, STORE_HOST_MAX, "%s", listen_host);
    snprintf(s.head.self_host, STORE_HOST_MAX, "%s", self_host);
    struct ring_options options = {.store = &s.head,
                                   .id = "world",
                                   .size = 2,
                                   .world_ranks = (const int[]){0, 1},
                                   .join_timeout_ms = 100,
                                   .timeout_ms = 100};
    snprintf(options.interface, sizeof options.interface, "%s", interface);
    assert_fails(ring_meet(&options, &out, &in, &err), &err, ERR_TIMEOUT, "meet rank 1");
    store_destroy(&s.head);
}

static bool answers(const char *host, const char *told)
{
    int port;
    auto_close int fd = -1;
    struct error err;
    assert_int_equal(sscanf(told, "%*s %d", &port), 1);
    return net_connect(host, port, clock_monotonic_ms() + 10000, &fd, &err) == 0;
}

static void answers_at_the_loopback_alone(const char *told)
{
    assert_true(answers("127.0.0.1", told));
    assert_false(answers("127.0.0.2", told));
}

static void answers_at_all(const char *told)
{
    assert_true(answers("127.0.0.1", told));
    assert_true(answers("127.0.0.2", told));
}

static void answers_where_others_reach_it(const char *told)
{
    assert_non_null(strstr(told, " 127.0.0.2"));
    assert_false(answers("127.0.0.1", told));
    assert_true(answers("127.0.0.2", told));
}

static void test_a_rank_listens_no_wider_than_it_is_reached(void **state)
{
    (void)state;
    meet("127.0.0.1", "", "", answers_at_the_loopback_alone);
    meet("127.0.0.2", "127.0.0.2", "", answers_where_others_reach_it);
    meet("127.0.0.2", "127.0.0.2", "lo", answers_at_the_loopback_alone);
    meet("", "", "", answers_at_all); /* rank 0: under whatever address its machine has */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rank_listens_no_wider_than_it_is_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
