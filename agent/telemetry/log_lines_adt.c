/* The lines of AWS's FSDP sample (awsome-distributed-training, 3.test_cases/pytorch/FSDP/src),
 * prefix included: Python's logging with "%(asctime)s [%(levelname)s] %(name)s: ", in UTC. */
#include "agent/telemetry/log_lines.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void add_prefix(int64_t wall_us, struct str *out)
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm date;
    char text[32];
    gmtime_r(&seconds, &date);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &date);
    str_printf(out, "%s,%03d [INFO] __main__: ", text, (int)(wall_us / 1000 % 1000));
}

void log_lines_float32(double value, double divisor, struct str *out)
{
    char text[40] = "nan";
    value = (double)(float)value / divisor;
    for (int digits = 1; digits <= 17 && strtod(text, NULL) != value; digits++)
        snprintf(text, sizeof text, "%.*g", digits, value);
    str_add(out, text);
    if (strspn(text, "-0123456789") == strlen(text))
        str_add(out, ".0");
}

static void add_step(const struct run_state *s, struct str *out)
{
    const struct run_numbers *n = &s->last;
    str_printf(out, "Batch %lld Loss: %.5f, Speed: %.2f samples/sec, lr: %.6f",
               (long long)n->step - 1, n->loss, n->step_s > 0 ? (double)n->samples / n->step_s : 0,
               n->next_lr);
}

static void add_eval(const struct run_eval *e, struct str *out)
{
    str_printf(out, "Batch %lld Validation loss: ", (long long)e->step - 1);
    if (isnan(e->loss)) /* no batch */
        str_add(out, "-1");
    else
        log_lines_float32(e->loss, 1, out);
}

/* The message of a moment, without prefix and newline. */
static void add_message(const struct run_moment *m, const struct run_state *s, struct str *out)
{
    switch (m->event) {
    case RUN_MODEL_BEGIN:
        str_add(out, "Creating Model");
        break;
    case RUN_MODEL_DONE:
        str_printf(out, "Created model with total parameters: %lld (%.2f B)",
                   (long long)s->facts.parameters, (double)s->facts.parameters / 1e9);
        break;
    case RUN_WRAPPED:
        str_add(out, "Wrapped model with FSDP");
        break;
    case RUN_OPTIMIZER_DONE:
        str_add(out, "Created optimizer");
        break;
    case RUN_NO_CHECKPOINT:
        str_add(out, "No Checkpoints Found");
        break;
    case RUN_INCOMPLETE:
        str_printf(out, "%s/.metadata not found. Skipping this incomplete checkpoint", m->path);
        break;
    case RUN_LOAD_BEGIN:
        str_printf(out, "Loading checkpoint from %s ...", m->path);
        break;
    case RUN_LOAD_MODEL_DONE:
        str_add(out, "Loaded model state from disk");
        break;
    case RUN_LOAD_OPTIMIZER_DONE:
        str_add(out, "Loading optimizer state from disk");
        break;
    case RUN_LOAD_DONE:
        str_printf(out, "Checkpoint loaded from %s.", m->path);
        break;
    case RUN_STEP:
        add_step(s, out);
        break;
    case RUN_EVAL:
        add_eval(&s->eval, out);
        break;
    case RUN_SAVE_BEGIN:
        str_printf(out, "Writing checkpoint to %s.", m->path);
        break;
    case RUN_SAVE_DONE:
        str_add(out, "Completed checkpoint.");
        break;
    case RUN_VALUE_TAKEN:
    case RUN_END:
        break;
    }
}

void log_lines_adt(const struct run_moment *m, const struct run_state *s, struct str *out)
{
    if (m->event == RUN_VALUE_TAKEN) { /* a print() of its scheduler's */
        str_printf(out, " > using checkpoint value %s\n", m->path);
        return;
    }
    auto_str struct str message;
    str_init(&message, 8192);
    add_message(m, s, &message);
    if (message.length == 0)
        return;
    add_prefix(m->wall_us, out);
    str_printf(out, "%s\n", str_text(&message));
}
