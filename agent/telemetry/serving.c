#include "agent/telemetry/serving.h"

#include <stdio.h>
#include <string.h>

const char *serving_host(const struct serving_rank *rank, const char *asked)
{
    if (rank->shares_machine ? rank->rank != 0 : rank->local_rank != 0)
        return NULL;
    if (asked[0])
        return asked;
    return rank->shares_machine && !rank->in_pod ? "127.0.0.1" : "";
}

void serving_url(const char *host, int port, char *url, size_t bytes)
{
    bool is_all = !host[0] || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0;
    const char *shown = is_all ? "127.0.0.1" : host; /* which is one of all of them */
    const char *format = strchr(shown, ':') ? "http://[%s]:%d/" : "http://%s:%d/";
    snprintf(url, bytes, format, shown, port);
}
