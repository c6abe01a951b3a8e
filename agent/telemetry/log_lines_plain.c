#include "agent/telemetry/log_lines.h"

#include <math.h>

static const double gib = 1024.0 * 1024 * 1024;

static void add_step(const struct run_state *s, struct str *out)
{
    const struct run_numbers *n = &s->last;
    str_printf(out, "Epoch %.2f | Step %lld", n->epoch, (long long)n->step);
    if (s->facts.steps > 0)
        str_printf(out, "/%lld", (long long)s->facts.steps);
    str_printf(out, " | Loss: %.4f", n->loss);
    if (!isnan(n->grad_norm))
        str_printf(out, " | norm: %.4f", n->grad_norm);
    str_printf(out, " | lr: %.6g | %.0f ms", n->lr, 1000 * n->step_s);
    if (s->tokens_per_s > 0)
        str_printf(out, " | %.0f tokens/s", s->tokens_per_s);
    else
        str_printf(out, " | %.0f samples/s", s->samples_per_s);
    if (!isnan(s->utilization[FLOPS_CAUSAL]))
        str_printf(out, " | MFU: %.1f%% causal, %.1f%% full", 100 * s->utilization[FLOPS_CAUSAL],
                   100 * s->utilization[FLOPS_FULL]);
    str_printf(out, " | memory: %.2f GiB\n", (double)n->memory.peak_total_bytes / gib);
}

static void add_eval(const struct run_eval *e, struct str *out)
{
    str_printf(out, "Evaluation at step %lld | Loss: %.4f", (long long)e->step, e->loss);
    if (!isnan(e->perplexity))
        str_printf(out, " | perplexity: %.4f", e->perplexity);
    if (!isnan(e->accuracy))
        str_printf(out, " | accuracy: %.2f%%", 100 * e->accuracy);
    str_printf(out, " | %.2f s\n", e->seconds);
}

static void add_end(const struct run_state *s, struct str *out)
{
    str_printf(out, "Training: %lld steps, %.2f s", (long long)s->steps, s->train_s);
    for (int p = 0; p < RUN_PHASES; p++)
        if (s->phase_s[p] > 0)
            str_printf(out, ", %s %.2f s", run_phase_name((enum run_phase)p), s->phase_s[p]);
    str_add(out, "\n");
}

void log_lines_plain(const struct run_moment *m, const struct run_state *s, struct str *out)
{
    switch (m->event) {
    case RUN_MODEL_DONE:
        str_printf(out, "Model: %s, %lld parameters, built in %.2f s\n", s->facts.model,
                   (long long)s->facts.parameters, m->seconds);
        break;
    case RUN_LOAD_DONE:
        str_printf(out, "Resumed from %s\n", m->path);
        break;
    case RUN_STEP:
        add_step(s, out);
        break;
    case RUN_EVAL:
        add_eval(&s->eval, out);
        break;
    case RUN_SAVE_DONE:
        str_printf(out, "Checkpoint saved: %s\n", m->path);
        break;
    case RUN_END:
        add_end(s, out);
        break;
    default:
        break;
    }
}
