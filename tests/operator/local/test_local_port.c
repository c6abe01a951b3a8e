/* Free ports: really free, never twice, and back once they are closed. */
#include "operator/local/local_port.h"
#include "tests/support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Binds a socket as a server would; -1 if the port is taken. */
static int serve(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static void test_taken_ports_are_free_and_different(void **state)
{
    (void)state;
    struct local_ports ours = {.count = 0}, theirs = {.count = 0}; /* two runs */
    struct error err;
    int32_t ports[20];
    for (int i = 0; i < 20; i++) {
        assert_ok(local_ports_take(i % 2 ? &ours : &theirs, &ports[i], &err), &err);
        for (int k = 0; k < i; k++)
            assert_int_not_equal(ports[i], ports[k]);
        assert_true(ports[i] >= 20000 && ports[i] < 32768);
        int fd = serve(ports[i]);
        assert_true(fd >= 0);
        close(fd);
    }
    local_ports_close(&ours);
    local_ports_close(&theirs);
    assert_int_equal(ours.count, 0);
}

static void test_a_port_in_use(void **state)
{
    (void)state;
    struct local_ports ours = {.count = 0}, theirs = {.count = 0};
    struct error err;
    int32_t port;
    assert_ok(local_ports_take(&ours, &port, &err), &err);
    assert_fails(local_ports_take_fixed(&theirs, port, &err), &err, ERR_EXISTS, "is in use");
    local_ports_close(&ours);
    int fd = serve(port);
    assert_true(fd >= 0);
    assert_fails(local_ports_take_fixed(&theirs, port, &err), &err, ERR_EXISTS, "is in use");
    close(fd);
    assert_ok(local_ports_take_fixed(&theirs, port, &err), &err);
    local_ports_close(&theirs);
}

static void test_too_many_files(void **state)
{
    (void)state;
    struct rlimit limit, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct local_ports ours = {.count = 0};
    struct error err;
    int32_t port;
    int result = local_ports_take(&ours, &port, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_fails(result, &err, ERR_LIMIT, "too many open files; raise the limit (ulimit -n)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_taken_ports_are_free_and_different),
        cmocka_unit_test(test_a_port_in_use),
        cmocka_unit_test(test_too_many_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
