#include "base/httpd_connections.h"

#include <assert.h>
#include <libwebsockets.h>
#include <string.h>

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

bool httpd_connections_make_room(struct httpd_connections *c, bool (*may_go)(struct lws *wsi))
{
    for (int i = 0; i < c->count && c->count == HTTPD_CONNECTIONS_MAX; i++) {
        struct lws *wsi = c->list[i];
        if (!may_go(wsi))
            continue;
        lws_set_timeout(wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
        httpd_connections_forget(c, wsi);
    }
    return c->count < HTTPD_CONNECTIONS_MAX;
}

void httpd_connections_add(struct httpd_connections *c, struct lws *wsi)
{
    assert(c->count < HTTPD_CONNECTIONS_MAX);
    c->list[c->count++] = wsi;
}
