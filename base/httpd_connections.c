#include "base/httpd_connections.h"

#include "base/mem.h"

#include <assert.h>
#include <libwebsockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

/* Of a quiet connection: a client that is gone keeps no WebSocket for long. */
enum { PROBE_AFTER_S = 60, PROBE_EVERY_S = 10, PROBES = 3 };

void httpd_connections_forget(struct httpd_connections *c, const struct lws *wsi)
{
    int i = 0;
    while (i < c->count && c->list[i] != wsi)
        i++;
    if (i == c->count)
        return;
    c->count--;
    memmove(c->list + i, c->list + i + 1, (size_t)(c->count - i) * sizeof c->list[0]);
}

/* A connection may not be closed from another one's callback: lws does it when it comes by the next
 * time. */
static void ask_to_close(struct httpd_connections *c, struct lws *wsi)
{
    lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
    httpd_connections_forget(c, wsi);
}

bool httpd_connections_make_room(struct httpd_connections *c, bool (*may_go)(struct lws *wsi))
{
    for (int i = 0; i < c->count && c->count == HTTPD_CONNECTIONS_MAX; i++)
        if (may_go(c->list[i]))
            ask_to_close(c, c->list[i]);
    return c->count < HTTPD_CONNECTIONS_MAX;
}

void httpd_connections_shed(struct httpd_connections *c, struct lws *own,
                            const struct httpd_page *(*page_of)(struct lws *wsi),
                            void (*let_go)(struct lws *wsi))
{
    const struct httpd_page *counted[HTTPD_CONNECTIONS_MAX + 1] = {page_of(own)};
    size_t held = 0;
    int count = 1;
    for (int i = c->count - 1; i >= 0; i--) { /* the newest first */
        struct lws *wsi = c->list[i];
        const struct httpd_page *page = wsi == own ? NULL : page_of(wsi);
        int at = 0;
        while (at < count && counted[at] != page)
            at++;
        if (!page || at < count) /* what several are sent is there once */
            continue;
        if (held + page->bytes > HTTPD_HELD_BYTES_MAX) {
            let_go(wsi);
            ask_to_close(c, wsi);
            continue;
        }
        held += page->bytes;
        counted[count++] = page;
    }
}

void httpd_connections_add(struct httpd_connections *c, struct lws *wsi)
{
    assert(c->count < HTTPD_CONNECTIONS_MAX);
    c->list[c->count++] = wsi;
}

void httpd_connections_tune(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        /* head and body are two writes: the second must not wait for the client's late ACK */
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, PROBE_AFTER_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, PROBE_EVERY_S},
        {IPPROTO_TCP, TCP_KEEPCNT, PROBES},
    };
    for (size_t i = 0; i < array_length(options); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof options[i].value);
}
