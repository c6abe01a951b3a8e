/* The lines of the Fabric scripts. They show their steps by a progress bar, which a log cannot: in
 * its place stands our own step line. */
#include "agent/telemetry/log_lines.h"

#include "base/gigabytes.h"

#include <math.h>
#include <string.h>

/* The name alone, and how far the epoch is (counted from 1). */
static void add_save(const struct run_moment *m, const struct run_state *s, struct str *out)
{
    double fraction = s->last.epoch - floor(s->last.epoch);
    str_printf(out, "Saving checkpoint to '%s'", str_after_last(m->path, '/'));
    if (m->at_epoch_end)
        str_add(out, " (end of epoch)\n");
    else if (fraction > 0)
        str_printf(out, " (%.1f%% of epoch %lld)\n", 100 * fraction, (long long)m->epoch + 1);
    else
        str_printf(out, " (step %lld in epoch %lld)\n", (long long)s->last.step,
                   (long long)m->epoch + 1);
}

void log_lines_fabric(const struct run_moment *m, const struct run_state *s, struct str *out)
{
    switch (m->event) {
    case RUN_MODEL_DONE:
        str_printf(out, "Time to instantiate model: %.2f seconds.\n", m->seconds);
        break;
    case RUN_LOAD_BEGIN:
        str_printf(out, "Resuming training from '%s'\n", m->path);
        break;
    case RUN_STEP:
        log_lines_plain(m, s, out);
        break;
    case RUN_EVAL:
        str_printf(out, "step %lld: val loss %.4f, val time: %.2fms\n", (long long)s->eval.step,
                   s->eval.loss, 1000 * s->eval.seconds);
        break;
    case RUN_SAVE_BEGIN:
        add_save(m, s, out);
        break;
    case RUN_END:
        str_printf(out, "Training time: %.2fs\nMemory used: %.2f GB\n", s->elapsed_s,
                   gigabytes(s->last.memory.peak_total_bytes));
        break;
    default:
        break;
    }
}
