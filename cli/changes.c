#include "cli/changes.h"

#include <inttypes.h>

/* A container ended and what that means for the replica. */
static void print_end(const struct local_replica *before, const struct local_replica *after,
                      const struct changes_job *job, struct str *out)
{
    bool failed = after->failures > before->failures;
    str_printf(out, "%s: %s -> %s (exit code %" PRId32 ")", after->name,
               local_state_name(before->state), failed ? "Failed" : "Succeeded",
               failed ? after->failure_code : 0);
    if (!job->finished && failed)
        str_printf(out, ", restart %" PRId32, job->failures);
    if (!job->finished && failed && job->limit >= 0)
        str_printf(out, " of %" PRId64, job->limit);
    if (!job->finished && !failed)
        str_add(out, ", starts again");
    str_add(out, "\n");
}

void changes_print(const struct local_replica *before, const struct local_replica *after,
                   const struct changes_job *job, bool quiet, struct str *out)
{
    enum local_state from = before->state;
    bool failed = after->failures > before->failures;
    if (failed && after->runs_on) {
        str_printf(out, "%s: a container failed (exit code %" PRId32 "), its pod runs on\n",
                   after->name, after->failure_code);
    } else if (failed || after->repeats > before->repeats) {
        print_end(before, after, job, out);
        enum local_state end = failed ? LOCAL_FAILED : LOCAL_SUCCEEDED;
        from = job->finished || after->state == end ? end : LOCAL_RESTARTING;
    }
    if (quiet || from == after->state)
        return;
    str_printf(out, "%s: %s -> %s", after->name, local_state_name(from),
               local_state_name(after->state));
    if (after->restarts > before->restarts)
        str_printf(out, " (restart %" PRId32 ")", after->restarts);
    str_add(out, "\n");
}

void changes_print_ranks(const char *job, int32_t before, int32_t after, struct str *out)
{
    if (after > before)
        str_printf(out, "%s: ranks restarted in place (restart %" PRId32 ")\n", job, after);
}
