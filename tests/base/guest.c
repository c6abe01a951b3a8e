#include "tests/base/guest.h"
#include "tests/base/client.h"
#include "tests/support.h"

#include "base/mem.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct httpd *guest_server(const char *host)
{
    struct httpd *httpd;
    struct error err;
    assert_ok(httpd_open(&httpd, host, 0, &err), &err);
    return httpd;
}

void guest_publish(struct httpd *httpd, const char *path, int status, const char *text)
{
    httpd_publish(httpd, path, status, "text/plain; charset=utf-8", text, strlen(text));
}

int guest_dial(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

char *guest_exchange(int port, const char *bytes)
{
    auto_close int fd = guest_dial(port);
    auto_str struct str all;
    char chunk[4096];
    ssize_t n;
    str_init(&all, 1 << 20);
    assert_int_equal(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL), strlen(bytes));
    while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0)
        str_add_bytes(&all, chunk, (size_t)n);
    return xstrdup(str_text(&all));
}

void guest_assert_page(int port, const char *path, long status, const char *body)
{
    struct http *http = client_http();
    struct client client = {0};
    client_get(&client, http, port, path);
    client_wait(&client);
    assert_ok(client.answer.err.code, &client.answer.err);
    assert_int_equal(client.answer.status, status);
    assert_string_equal(str_text(&client.body), body);
    client_free(&client);
    http_close(http);
}
