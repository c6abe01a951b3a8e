/* What anybody may send to base/httpd, over a socket: pages, HTTP/1.1 with keep-alive, WebSockets,
 * and the protocols that libwebsockets would speak as well. An input is all that a client says
 * before it closes its side. Whatever the bytes, the server closes the connection too, nobody is
 * given HTTP/2, and another client is still served. */
#include "tests/fuzz/fuzz.h"

#include "base/httpd.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROBE_EVERY 64

enum { PATIENCE_S = 60, KEPT_BYTES = 4096 };

/* One for all inputs: it must survive each of them. */
static int server_port(void)
{
    static struct httpd *httpd;
    struct error err;
    if (!httpd) {
        int result = httpd_open(&httpd, "127.0.0.1", 0, &err);
        assert(result == 0);
        httpd_publish(httpd, "/healthz", 200, "text/plain", "ok\n", 3);
        static char page[100 * 1000];
        memset(page, 'x', sizeof page);
        httpd_publish(httpd, "/metrics", 200, "text/plain", page, sizeof page);
        httpd_local_names_only(httpd);
        httpd_stream(httpd, "/steps");
        httpd_push(httpd, "/steps", "{\"step\":1}", 10);
    }
    return httpd_port(httpd);
}

/* One of many addresses of this machine in turn: a port is another's again only after a minute. */
static struct sockaddr_in own_address(void)
{
    static uint32_t turn;
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + turn++ % 60000)};
}

/* The beginning of what comes back, 0-terminated. */
static void exchange(const void *bytes, size_t size, char answer[KEPT_BYTES])
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)server_port()),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in own = own_address();
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    const int on = 1;
    auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    int result = bind(fd, (const struct sockaddr *)&own, sizeof own);
    assert(result == 0);
    result = connect(fd, (const struct sockaddr *)&address, sizeof address);
    assert(result == 0);
    ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL); /* it may hang up before it has read all */
    (void)sent;
    shutdown(fd, SHUT_WR);
    size_t kept = 0;
    char chunk[KEPT_BYTES];
    for (;;) {
        ssize_t n = recv(fd, chunk, sizeof chunk, 0);
        assert(n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK)); /* it hangs up in the end */
        if (n <= 0)
            break;
        size_t room = KEPT_BYTES - 1 - kept, more = (size_t)n < room ? (size_t)n : room;
        memcpy(answer + kept, chunk, more);
        kept += more;
    }
    answer[kept] = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char probe[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static unsigned inputs;
    char answer[KEPT_BYTES];
    exchange(data, size, answer);
    assert(!strstr(answer, "Upgrade: h2c"));
    if (inputs++ % PROBE_EVERY == 0) {
        exchange(probe, sizeof probe - 1, answer);
        assert(strncmp(answer, "HTTP/1.1 200 ", 13) == 0);
    }
    return 0;
}
