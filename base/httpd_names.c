#include "base/httpd_names.h"

#include <arpa/inet.h>
#include <libwebsockets.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

enum { NAME_BYTES = 256 }; /* as long as a name may be */

static bool is_address(int family, const char *text)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(family, text, address) == 1;
}

/* RFC 6761, 6.3: nobody can own a name below it. */
static bool is_localhost(const char *name)
{
    static const char localhost[] = "localhost";
    size_t length = strlen(name), end = sizeof localhost - 1;
    return length >= end && strcasecmp(name + length - end, localhost) == 0 &&
           (length == end || name[length - end - 1] == '.');
}

/* Against DNS rebinding: a web page's own name may be pointed at 127.0.0.1, and its script would
 * read what we serve. But it then sends its own name as Host. */
bool httpd_names_local(const char *host)
{
    char name[NAME_BYTES];
    bool bracketed = host[0] == '[';
    size_t length = bracketed ? strcspn(++host, "]") : strcspn(host, ":");
    if (length >= sizeof name || (bracketed && !host[length]))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)length, host);
    return bracketed ? is_address(AF_INET6, name) : is_address(AF_INET, name) || is_localhost(name);
}

bool httpd_names_same(const char *origin, const char *host)
{
    static const char scheme[] = "http://";
    size_t length = sizeof scheme - 1;
    return strncasecmp(origin, scheme, length) == 0 && strcasecmp(origin + length, host) == 0;
}

/* ---- of a connection ---- */

/* Empty if there is none. Returns whether it fits. */
static bool header(struct lws *wsi, enum lws_token_indexes token, char text[NAME_BYTES])
{
    text[0] = '\0';
    return lws_hdr_copy(wsi, text, NAME_BYTES, token) >= 0;
}

static bool is_over_loopback(struct lws *wsi)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } own = {0};
    socklen_t bytes = sizeof own;
    if (getsockname(lws_get_socket_fd(wsi), &own.any, &bytes) < 0)
        return true;
    if (own.any.sa_family == AF_INET)
        return ntohl(own.v4.sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    const struct in6_addr *v6 = &own.v6.sin6_addr;
    /* A dual-stack socket shows an IPv4 client as ::ffff:127.0.0.1. */
    return IN6_IS_ADDR_V4MAPPED(v6) ? v6->s6_addr[12] == IN_LOOPBACKNET : IN6_IS_ADDR_LOOPBACK(v6);
}

bool httpd_names_is_websocket_upgrade(struct lws *wsi)
{
    char upgrade[NAME_BYTES];
    return header(wsi, WSI_TOKEN_UPGRADE, upgrade) && strcasecmp(upgrade, "websocket") == 0;
}

bool httpd_names_host_is_local(struct lws *wsi)
{
    char host[NAME_BYTES];
    return !is_over_loopback(wsi) ||
           (header(wsi, WSI_TOKEN_HOST, host) && (!host[0] || httpd_names_local(host)));
}

bool httpd_names_origin_is_own(struct lws *wsi)
{
    char host[NAME_BYTES], origin[NAME_BYTES];
    return header(wsi, WSI_TOKEN_HOST, host) && header(wsi, WSI_TOKEN_ORIGIN, origin) &&
           (!origin[0] || httpd_names_same(origin, host));
}
