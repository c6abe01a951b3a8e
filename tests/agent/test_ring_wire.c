/* What the ranks of a ring tell each other, decoded. */
#include "agent/comm/ring_wire.h"

#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

#define TOKEN "0123456789abcdef"
#define NAME  "fedcba9876543210"

static void test_addresses(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int port; /* 0: it is no address */
        const char *host;
    } rows[] = {
        {TOKEN " 4711 10.0.0.7 " NAME, 4711, "10.0.0.7"},
        {TOKEN " 65535 - " NAME, 65535, "-"},
        {TOKEN " 1 fe80::1%eth0 " NAME, 1, "fe80::1%eth0"},
        {"", 0, NULL},
        {TOKEN " 4711 10.0.0.7", 0, NULL},
        {TOKEN " 4711 10.0.0.7 " NAME " more", 0, NULL},
        {TOKEN "0 4711 10.0.0.7 " NAME, 0, NULL},
        {"0123456789abcde 4711 10.0.0.7 " NAME, 0, NULL},
        {"0123456789ABCDEF 4711 10.0.0.7 " NAME, 0, NULL},
        {TOKEN " 4711 10.0.0.7 ../../etc/passwd", 0, NULL},
        {TOKEN " 0 10.0.0.7 " NAME, 0, NULL},
        {TOKEN " -1 10.0.0.7 " NAME, 0, NULL},
        {TOKEN " 65536 10.0.0.7 " NAME, 0, NULL},
        {TOKEN " 99999999999999999999 10.0.0.7 " NAME, 0, NULL},
        {TOKEN " 4711x 10.0.0.7 " NAME, 0, NULL},
        {TOKEN " 4711 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa " NAME, 0,
         NULL}, /* 64 of them */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct ring_address address;
        struct error err;
        char text[STORE_VALUE_MAX];
        int result = ring_address_decode(rows[i].text, &address, &err);
        if (!rows[i].port) {
            assert_fails(result, &err, ERR_INPUT, "instead of an address");
            continue;
        }
        assert_ok(result, &err);
        assert_int_equal(address.port, rows[i].port);
        assert_string_equal(address.host, rows[i].host);
        assert_string_equal(address.token, TOKEN);
        ring_address_encode(&address, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void test_hellos(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        int32_t rank;
        const char *expected; /* NULL: it is the neighbour's */
    } rows[] = {
        {TOKEN, 1, NULL},
        {TOKEN, 2, "rank 2 of the ring connects, not rank 1"},
        {TOKEN, -1, "rank -1 of the ring"},
        {"0123456789abcdee", 1, "without this ring's token"},
        {"0123456789abcde", 1, "without this ring's token"},
        {"", 1, "without this ring's token"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct ring_hello hello = {.rank = rows[i].rank};
        struct error err;
        memcpy(hello.token, rows[i].token, strlen(rows[i].token));
        int result = ring_hello_check(&hello, TOKEN, 1, &err);
        if (rows[i].expected)
            assert_fails(result, &err, ERR_INPUT, rows[i].expected);
        else
            assert_ok(result, &err);
    }
}

static void test_headers(void **state)
{
    (void)state;
    const struct ring_header ours = ring_header_of(3, "all_reduce", 4096);
    struct ring_header theirs = ring_header_of(3, "all_reduce", 4096);
    struct error err;
    assert_ok(ring_header_check(&theirs, &ours, 5, &err), &err);
    theirs = ring_header_of(4, "all_gather", 64);
    assert_fails(ring_header_check(&theirs, &ours, 5, &err), &err, ERR_INPUT,
                 "rank 5 runs all_gather 4 of 64 bytes, this one all_reduce 3 of 4096 bytes");
    memcpy(theirs.name, "\033[2J\nxxxxxxxxxxxxxxxx", sizeof theirs.name); /* and it does not end */
    assert_fails(ring_header_check(&theirs, &ours, 5, &err), &err, ERR_INPUT,
                 "rank 5 runs ??2J?xxxxxxxxxxxxxx 4 of 64 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_hellos),
        cmocka_unit_test(test_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
