/* What a rank does before it has a ring: where it listens, and what it tells of that. The store is
 * the test's, and looks at the moment when a rank has told all and waits. */
#include "agent/comm/ring_bootstrap.h"

#include "agent/comm/net.h"
#include "agent/comm/ring_wire.h"
#include "base/clock.h"
#include "base/listen.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    assert_fails(ring_bootstrap(&options, &out, &in, &err), &err, ERR_TIMEOUT, "meet rank 1");
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

static void keeps_its_token_to_itself(const char *told)
{
    char token[32], line[512];
    assert_int_equal(sscanf(told, "%31s", token), 1);
    FILE *names = fopen("/proc/net/unix", "re"); /* for every user of the machine */
    assert_non_null(names);
    while (fgets(line, sizeof line, names))
        assert_null(strstr(line, token));
    fclose(names);
}

static void test_a_socket_has_not_the_name_of_the_token(void **state)
{
    (void)state;
    meet("127.0.0.1", "", "", keeps_its_token_to_itself);
}

/* The test is rank 1: its listener is the address in the store, and before its own hello many come
 * who say nothing. */
enum { STRANGERS = 12, LONGEST_MS = 40000 };

static struct {
    int listener, strangers[STRANGERS], previous;
} rank_1;

static void send_strangers(const char *told)
{
    struct ring_hello hello = {.rank = 1};
    struct error err;
    int64_t deadline_ms = clock_monotonic_ms() + LONGEST_MS;
    struct ring_address address;
    assert_ok(ring_address_decode(told, &address, &err), &err);
    memcpy(hello.token, address.token, sizeof hello.token);
    for (int i = 0; i < STRANGERS; i++)
        assert_ok(net_connect("127.0.0.1", address.port, deadline_ms, &rank_1.strangers[i], &err),
                  &err);
    assert_ok(net_connect("127.0.0.1", address.port, deadline_ms, &rank_1.previous, &err), &err);
    assert_ok(net_send(rank_1.previous, &hello, sizeof hello, deadline_ms, &err), &err);
}

static int tell_rank_1(struct store *s, const char *key, int timeout_ms, char *ret_value,
                       struct error *err)
{
    (void)s;
    (void)key;
    (void)timeout_ms;
    (void)err;
    snprintf(ret_value, STORE_VALUE_MAX, "0123456789abcdef %d 127.0.0.1 fedcba9876543210",
             listen_port(rank_1.listener));
    return 0;
}

static void test_strangers_do_not_hold_up_the_neighbour(void **state)
{
    (void)state;
    static const struct store_functions two = {.set = look_at, .get = tell_rank_1};
    struct looking_store s = {.look = send_strangers};
    struct error err;
    int out, in;
    assert_ok(listen_tcp("127.0.0.1", 0, &rank_1.listener, &err), &err);
    store_init(&s.head, &two);
    const struct ring_options options = {.store = &s.head,
                                         .id = "world",
                                         .size = 2,
                                         .world_ranks = (const int[]){0, 1},
                                         .join_timeout_ms = LONGEST_MS};
    assert_ok(ring_bootstrap(&options, &out, &in, &err), &err);
    store_destroy(&s.head);
    for (int i = 0; i < STRANGERS; i++)
        close(rank_1.strangers[i]);
    close(rank_1.previous);
    close(rank_1.listener);
    close(out);
    close(in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rank_listens_no_wider_than_it_is_reached),
        cmocka_unit_test(test_a_socket_has_not_the_name_of_the_token),
        cmocka_unit_test(test_strangers_do_not_hold_up_the_neighbour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
