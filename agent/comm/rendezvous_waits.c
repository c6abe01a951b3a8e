#include "agent/comm/rendezvous_waits.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct rendezvous_waits {
    int count, max;
    struct rendezvous_wait *items; /* [max] */
};

struct rendezvous_waits *rendezvous_waits_open(int max)
{
    struct rendezvous_waits *waits = xcalloc(1, sizeof *waits);
    waits->max = max;
    waits->items = xcalloc((size_t)max, sizeof *waits->items);
    return waits;
}

void rendezvous_waits_close(struct rendezvous_waits *waits)
{
    if (!waits)
        return;
    free(waits->items);
    free(waits);
}

bool rendezvous_waits_add(struct rendezvous_waits *waits, const struct rendezvous_wait *wait)
{
    if (waits->count == waits->max)
        return false;
    waits->items[waits->count++] = *wait;
    return true;
}

static struct rendezvous_wait take_out(struct rendezvous_waits *waits, int i)
{
    struct rendezvous_wait wait = waits->items[i];
    waits->items[i] = waits->items[--waits->count];
    return wait;
}

void rendezvous_waits_drop(struct rendezvous_waits *waits, int fd)
{
    /* From behind, as take_out() moves the last one into the gap. */
    for (int i = waits->count - 1; i >= 0; i--)
        if (waits->items[i].fd == fd)
            take_out(waits, i);
}

bool rendezvous_waits_take(struct rendezvous_waits *waits, const char *key,
                           struct rendezvous_wait *ret_wait)
{
    for (int i = 0; i < waits->count; i++) {
        if (strcmp(waits->items[i].key, key) != 0)
            continue;
        *ret_wait = take_out(waits, i);
        return true;
    }
    return false;
}

bool rendezvous_waits_take_due(struct rendezvous_waits *waits, int64_t now_ms,
                               struct rendezvous_wait *ret_wait)
{
    for (int i = 0; i < waits->count; i++) {
        if (waits->items[i].deadline_ms > now_ms)
            continue;
        *ret_wait = take_out(waits, i);
        return true;
    }
    return false;
}

int64_t rendezvous_waits_next_ms(const struct rendezvous_waits *waits)
{
    int64_t next_ms = INT64_MAX;
    for (int i = 0; i < waits->count; i++)
        if (waits->items[i].deadline_ms < next_ms)
            next_ms = waits->items[i].deadline_ms;
    return next_ms;
}
