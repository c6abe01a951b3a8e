#include "base/httpd_head.h"

#include "base/mem.h"

#include <libwebsockets.h>
#include <stdio.h>
#include <string.h>

enum { HEAD_BYTES = 1024 }; /* of our headers */

/* For browsers. What is served holds names and messages of others: should one ever get into a page
 * as more than text, it cannot run, nor tell anybody. */
static int add_guards(struct lws *wsi, unsigned char **at, unsigned char *end)
{
    static const struct {
        const char *name, *value;
    } guards[] = {
        {"content-security-policy:",
         "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
         "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
        {"x-content-type-options:", "nosniff"},
        {"referrer-policy:", "no-referrer"},
        {"cross-origin-resource-policy:", "same-origin"},
    };
    for (size_t i = 0; i < array_length(guards); i++)
        if (lws_add_http_header_by_name(wsi, (const unsigned char *)guards[i].name,
                                        (const unsigned char *)guards[i].value,
                                        (int)strlen(guards[i].value), at, end))
            return -1;
    return 0;
}

int httpd_head_send(struct lws *wsi, int status, const char *content_type, size_t bytes)
{
    unsigned char head[LWS_PRE + HEAD_BYTES], *at = head + LWS_PRE, *end = head + sizeof head;
    static const char allow[] = "GET, HEAD", cache[] = "no-store", upgrade[] = "websocket",
                      option[] = "Upgrade";
    if (lws_add_http_common_headers(wsi, (unsigned)status, content_type, bytes, &at, end) ||
        lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_CACHE_CONTROL,
                                     (const unsigned char *)cache, sizeof cache - 1, &at, end) ||
        add_guards(wsi, &at, end))
        return -1;
    if (status == HTTP_STATUS_METHOD_NOT_ALLOWED &&
        lws_add_http_header_by_token(wsi, WSI_TOKEN_HTTP_ALLOW, (const unsigned char *)allow,
                                     sizeof allow - 1, &at, end))
        return -1;
    if (status == HTTPD_UPGRADE_REQUIRED && /* RFC 9110, 7.8: with the option of that name */
        (lws_add_http_header_by_token(wsi, WSI_TOKEN_UPGRADE, (const unsigned char *)upgrade,
                                      sizeof upgrade - 1, &at, end) ||
         lws_add_http_header_by_token(wsi, WSI_TOKEN_CONNECTION, (const unsigned char *)option,
                                      sizeof option - 1, &at, end)))
        return -1;
    return lws_finalize_write_http_header(wsi, head + LWS_PRE, &at, end);
}

int httpd_head_send_line(struct lws *wsi, int status, const char *text, bool head_only)
{
    unsigned char body[LWS_PRE + 64];
    int bytes = snprintf((char *)body + LWS_PRE, sizeof body - LWS_PRE, "%d %s\n", status, text);
    if (httpd_head_send(wsi, status, "text/plain", (size_t)bytes))
        return -1;
    if (!head_only && lws_write(wsi, body + LWS_PRE, (size_t)bytes, LWS_WRITE_HTTP_FINAL) != bytes)
        return -1;
    return 0;
}
