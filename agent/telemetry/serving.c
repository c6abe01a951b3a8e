#include "agent/telemetry/serving.h"

#include <stddef.h>

const char *serving_host(const struct serving_rank *rank, const char *asked)
{
    if (rank->shares_machine ? rank->rank != 0 : rank->local_rank != 0)
        return NULL;
    if (asked[0])
        return asked;
    return rank->shares_machine && !rank->in_pod ? "127.0.0.1" : "";
}
