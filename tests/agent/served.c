#include "tests/agent/served.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/support.h"

#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

int served_dial(int port, const char *request)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    return fd;
}

void served_exchange(int port, const char *path, struct str *all)
{
    auto_free char *request = xasprintf("GET %s HTTP/1.0\r\n\r\n", path);
    auto_close int fd = served_dial(port, request);
    char chunk[4096];
    ssize_t n;
    str_init(all, 1 << 20);
    while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0)
        str_add_bytes(all, chunk, (size_t)n);
}

char *served_get(int port, const char *path)
{
    auto_str struct str all;
    served_exchange(port, path, &all);
    const char *body = strstr(str_text(&all), "\r\n\r\n");
    if (!body || strncmp(all.text, "HTTP/1.0 200 ", 13) != 0)
        fail_msg("%s: %s", path, str_text(&all));
    return xstrdup(body + 4);
}

static uint8_t read_byte(int fd)
{
    uint8_t byte;
    assert_int_equal(recv(fd, &byte, 1, MSG_WAITALL), 1);
    return byte;
}

struct json *served_frame(int fd)
{
    assert_int_equal(read_byte(fd), 0x81);
    size_t bytes = read_byte(fd);
    if (bytes == 126) {
        bytes = (size_t)read_byte(fd) << 8;
        bytes |= read_byte(fd);
    }
    auto_free char *text = xcalloc(1, bytes + 1);
    assert_int_equal(recv(fd, text, bytes, MSG_WAITALL), bytes);
    struct json *object = json_parse_text(text, JSON_STRICT, NULL);
    assert_non_null(object);
    return object;
}

int served_listen(int port, const char *path)
{
    auto_free char *request = xasprintf(
        "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        path);
    int fd = served_dial(port, request);
    for (const char *end = "\r\n\r\n"; *end;)
        end = (char)read_byte(fd) == *end ? end + 1 : "\r\n\r\n";
    return fd;
}
