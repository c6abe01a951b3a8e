#include "cli/changes.h"

#include <inttypes.h>

void changes_tell(const struct local_replica *before, const struct local_replica *after,
                  const struct changes_job *job, bool quiet, struct str *out)
{
    enum local_state from = before->state;
    if (after->failures > before->failures) {
        str_printf(out, "%s: %s -> Failed (exit code %" PRId32 ")", after->name,
                   local_state_name(from), after->failure_code);
        if (!job->finished)
            str_printf(out, ", restart %" PRId32, job->failures);
        if (!job->finished && job->limit >= 0)
            str_printf(out, " of %" PRId64, job->limit);
        str_add(out, "\n");
        from = after->state == LOCAL_FAILED ? LOCAL_FAILED : LOCAL_RESTARTING;
    }
    if (quiet || from == after->state)
        return;
    str_printf(out, "%s: %s -> %s", after->name, local_state_name(from),
               local_state_name(after->state));
    if (after->restarts > before->restarts)
        str_printf(out, " (restart %" PRId32 ")", after->restarts);
    str_add(out, "\n");
}
