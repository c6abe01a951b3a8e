#include "base/listen.h"

#include "base/mem.h"
#include "tests/support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

/* Another address of the loopback's, 127.0.0.2 say, is reached where all are listened to. */
static bool answers(const char *host, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
    return connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
}

static void an_address_is_the_only_one(void **state)
{
    (void)state;
    static const struct {
        const char *host;
        bool first, second; /* of the loopback's addresses: answers */
    } rows[] = {
        {"127.0.0.1", true, false}, {"127.0.0.2", false, true}, {"localhost", true, false},
        {"", true, true},           {"0.0.0.0", true, true},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_close int fd = -1;
        struct error err;
        assert_ok(listen_tcp(rows[i].host, 0, &fd, &err), &err);
        assert_int_equal(answers("127.0.0.1", listen_port(fd)), rows[i].first);
        assert_int_equal(answers("127.0.0.2", listen_port(fd)), rows[i].second);
    }
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const hosts[] = {"localhost:80", "nosuch.example", "127.1", "fe80::1%lo"};
    for (size_t i = 0; i < array_length(hosts); i++) {
        int fd;
        struct error err;
        assert_fails(listen_tcp(hosts[i], 0, &fd, &err), &err, ERR_CONFIG,
                     "this is no IPv4 or IPv6 address");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_the_only_one),
        cmocka_unit_test(what_is_no_address_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
