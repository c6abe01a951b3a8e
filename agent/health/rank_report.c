#include "agent/health/rank_report.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *rank_phase_name(enum rank_phase phase)
{
    static const char *const names[RANK_PHASES] = {
        "start", "first step", "step", "data", "evaluation", "save", "snapshot", "trace", "end"};
    return names[phase];
}

void rank_report_add_collective(const struct rank_report *r, struct str *out)
{
    if (r->entered == 0) {
        str_add(out, "none");
        return;
    }
    str_printf(out, "%" PRIu64 ", %s", r->entered, r->op);
    if (r->unit[0])
        str_printf(out, " of %s", r->unit);
}

void rank_report_describe(const struct rank_report *r, struct str *out)
{
    str_printf(out,
               "phase %s at step %" PRId64 "; its last collective: ", rank_phase_name(r->phase),
               r->step);
    rank_report_add_collective(r, out);
}

void rank_report_write(const struct rank_report *r, char *text, int bytes)
{
    /* The unit is last: its name may have blanks. */
    snprintf(text, (size_t)bytes,
             "%" PRId64 " %d %x %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %d %d %s %s",
             r->step, (int)r->phase, r->passed, r->entered, r->ended, r->compute_us, r->steps,
             r->node, r->pid, r->op[0] ? r->op : "-", r->unit);
}

int rank_report_read(const char *text, struct rank_report *ret, struct error *err)
{
    struct rank_report r = {0};
    int phase = -1, end = 0;
    int fields = sscanf(
        text, "%" SCNd64 " %d %x %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 " %d %d %23s%n",
        &r.step, &phase, &r.passed, &r.entered, &r.ended, &r.compute_us, &r.steps, &r.node, &r.pid,
        r.op, &end);
    if (fields != 10 || phase < 0 || phase >= RANK_PHASES || r.step < 0 || r.steps < 0 ||
        r.compute_us < 0 || r.node < 0)
        return error_set(err, ERR_INPUT, "a rank's report that is none: %.60s", text);
    r.phase = (enum rank_phase)phase;
    if (strcmp(r.op, "-") == 0)
        r.op[0] = '\0';
    if (text[end] == ' ')
        snprintf(r.unit, sizeof r.unit, "%.*s", RANK_UNIT_BYTES - 1, text + end + 1);
    *ret = r;
    return 0;
}
