#include "agent/comm/collective_news.h"

#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct collective_news collective_news_make(const char *id, int rank, int size,
                                            const int *world_ranks, uint64_t queued)
{
    struct collective_news news = {.rank = rank, .size = size, .queued = queued};
    snprintf(news.id, sizeof news.id, "%s", id);
    news.world_ranks = xcalloc((size_t)size, sizeof *news.world_ranks);
    memcpy(news.world_ranks, world_ranks, (size_t)size * sizeof *news.world_ranks);
    return news;
}

void collective_news_free(struct collective_news *news)
{
    free(news->world_ranks);
}

void collective_news_exchange(const struct collective_news *news, struct store *store, int wait_ms,
                              struct str *out)
{
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
    struct error ignored;
    int64_t queued, deadline_ms = clock_monotonic_ms() + wait_ms;
    int missing = 0;
    snprintf(key, sizeof key, "late/%s/%d", news->id, news->rank);
    snprintf(value, sizeof value, "%" PRIu64, news->queued);
    store->fn->set(store, key, value, &ignored);
    for (int r = 0; r < news->size; r++) {
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        if (r == news->rank)
            continue;
        snprintf(key, sizeof key, "late/%s/%d", news->id, r);
        if (store->fn->get(store, key, left_ms > 0 ? (int)left_ms : 0, value, &ignored) == 0 &&
            str_to_i64(value, 0, INT64_MAX, &queued) && (uint64_t)queued >= news->queued)
            continue;
        str_printf(out, "%s%d", missing++ ? ", " : ": it was not reached by rank ",
                   news->world_ranks[r]);
    }
}
