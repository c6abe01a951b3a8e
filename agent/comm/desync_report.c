#include "agent/comm/desync_report.h"

#include "base/clock.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct desync_report desync_report_make(const char *id, int rank, int size, const int *world_ranks,
                                        uint64_t queued)
{
    struct desync_report report = {.rank = rank, .size = size, .queued = queued};
    snprintf(report.id, sizeof report.id, "%s", id);
    report.world_ranks = xcalloc((size_t)size, sizeof *report.world_ranks);
    memcpy(report.world_ranks, world_ranks, (size_t)size * sizeof *report.world_ranks);
    return report;
}

void desync_report_free(struct desync_report *report)
{
    free(report->world_ranks);
}

void desync_report_exchange(const struct desync_report *report, struct store *store, int wait_ms,
                            struct str *out)
{
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
    struct error ignored;
    int64_t queued, deadline_ms = clock_monotonic_ms() + wait_ms;
    int missing = 0;
    snprintf(key, sizeof key, "late/%s/%d", report->id, report->rank);
    snprintf(value, sizeof value, "%" PRIu64, report->queued);
    store->fn->set(store, key, value, &ignored);
    for (int r = 0; r < report->size; r++) {
        int64_t left_ms = deadline_ms - clock_monotonic_ms();
        if (r == report->rank)
            continue;
        snprintf(key, sizeof key, "late/%s/%d", report->id, r);
        if (store->fn->get(store, key, left_ms > 0 ? (int)left_ms : 0, value, &ignored) == 0 &&
            str_to_i64(value, 0, INT64_MAX, &queued) && (uint64_t)queued >= report->queued)
            continue;
        str_printf(out, "%s%d", missing++ ? ", " : ": it was not reached by rank ",
                   report->world_ranks[r]);
    }
}
