#include "tests/operator/page.h"

#include "base/mem.h"
#include "base/str.h"
#include "tests/support.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

char *page_ask(int port, const char *method, const char *path, const char *host,
               const char *headers)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    auto_free char *request =
        xasprintf("%s %s HTTP/1.1\r\nHost: %s\r\n%s%s\r\n", method, path, host, headers,
                  strstr(headers, "Upgrade") ? "" : "Connection: close\r\n");
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    auto_str struct str all;
    char chunk[4096];
    ssize_t count;
    str_init(&all, 1 << 20);
    while ((count = recv(fd, chunk, sizeof chunk, 0)) > 0)
        str_add_bytes(&all, chunk, (size_t)count);
    return xstrdup(str_text(&all));
}

char *page_get(int port, const char *path)
{
    return page_ask(port, "GET", path, "x", "");
}
