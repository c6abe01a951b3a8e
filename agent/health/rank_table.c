#include "agent/health/rank_table.h"

#include "base/contract.h"
#include "base/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void rank_location_write(const char *host, const char *pod, char *text, int bytes)
{
    enum { MOST = RANK_LOCATION_BYTES - 2 };
    snprintf(text, (size_t)bytes, "%.*s/%.*s", MOST, host, MOST, pod);
}

void rank_location_read(const char *text, struct rank_location *ret)
{
    int host = (int)strcspn(text, "/");
    const char *pod = text[host] ? text + host + 1 : "";
    snprintf(ret->host, sizeof ret->host, "%.*s", host < RANK_LOCATION_BYTES ? host : 0, text);
    snprintf(ret->pod, sizeof ret->pod, "%.*s", RANK_LOCATION_BYTES - 1, pod);
}

void rank_location_describe(const struct rank_location *at, int rank, int pid, struct str *out)
{
    str_printf(out, "rank %d (", rank);
    if (at->pod[0])
        str_printf(out, "pod %s, ", at->pod);
    if (at->host[0])
        str_printf(out, "host %s, ", at->host);
    str_printf(out, "process %d)", pid);
}

static void add_text(const char *name, const char *text, struct str *out)
{
    str_printf(out, ",\"%s\":", name);
    json_text(text, out);
}

static void add_row(const struct rank_row *row, int rank, struct str *out)
{
    static const char *const states[] = {"running", PROGRESS_RANK_STRAGGLING, PROGRESS_RANK_HUNG};
    const struct rank_report *r = row->report;
    str_printf(out, "{\"" PROGRESS_RANK "\":%d", rank);
    add_text("host", row->location.host, out);
    add_text("pod", row->location.pod, out);
    add_text(PROGRESS_RANK_STATE, states[row->state], out);
    add_text(PROGRESS_RANK_PHASE, rank_phase_name(r->phase), out);
    str_printf(out, ",\"step\":%" PRId64 ",\"collective\":%" PRIu64, r->step, r->entered);
    add_text("op", r->op, out);
    add_text("unit", r->unit, out);
    str_printf(out, ",\"" PROGRESS_RANK_WAITS "\":%s,\"still_seconds\":%.1f",
               rank_report_is_in_collective(r) ? "true" : "false", row->still_s);
    if (row->compute_ratio > 0)
        str_printf(out, ",\"" PROGRESS_RANK_COMPUTE "\":%.2f", row->compute_ratio);
    str_add(out, "}");
}

void rank_table_hang_json(const struct rank_location *at, const struct rank_report *r, int rank,
                          const char *time, struct str *out)
{
    str_printf(out, "{\"" PROGRESS_RANK "\":%d,\"" LAST_HANG_STEP "\":%" PRId64, rank, r->step);
    add_text(LAST_HANG_TIME, time, out);
    add_text(PROGRESS_RANK_PHASE, rank_phase_name(r->phase), out);
    add_text(LAST_HANG_HOST, at->host, out);
    add_text(LAST_HANG_POD, at->pod, out);
    if (r->entered > 0) {
        str_printf(out, ",\"" LAST_HANG_COLLECTIVE "\":%" PRIu64, r->entered);
        add_text(LAST_HANG_OP, r->op, out);
        add_text(LAST_HANG_UNIT, r->unit, out);
    }
    str_add(out, "}");
}

/* -1: none is known to be slower than others. */
static int slowest_of(const struct rank_row rows[], int count)
{
    int slowest = -1;
    for (int i = 0; i < count; i++)
        if (rows[i].report &&
            rows[i].compute_ratio > (slowest < 0 ? 0 : rows[slowest].compute_ratio))
            slowest = i;
    return slowest;
}

void rank_table_json(const struct rank_row rows[], int count, struct str *out)
{
    bool is_first = true;
    int more = RANK_TABLE_MORE, slowest = slowest_of(rows, count);
    str_add(out, "[");
    for (int i = 0; i < count; i++) {
        bool is_beyond = i >= RANK_TABLE_ROWS;
        bool matters = i == slowest || rows[i].state != RANK_IS_WELL;
        if (!rows[i].report || (is_beyond && !(matters && (more > 0 || i == slowest))))
            continue;
        more -= is_beyond;
        if (!is_first)
            str_add(out, ",");
        is_first = false;
        add_row(&rows[i], i, out);
    }
    str_add(out, "]");
}
