#include "agent/plan/time_plan.h"

#include "base/gigabytes.h"
#include "base/json_text.h"
#include "base/mem.h"

#include <math.h>

static const struct {
    const char *text, *key;
} kinds[] = {
#define TIME_KIND(kind, text, key) {text, key},
    TIME_KINDS(TIME_KIND)
#undef TIME_KIND
};

static const double ms = 1e3, giga = 1e9, percent = 100;

/* Of a rank, tokens or, of images, samples per second. */
static double rate(const struct time_plan *p, enum time_band band)
{
    const struct time_step *s = &p->steps[band];
    return (s->tokens > 0 ? s->tokens : s->samples) / s->total_s;
}

static const char *unit(const struct time_plan *p)
{
    return p->steps[TIME_MIDDLE].tokens > 0 ? "tokens" : "images";
}

static double cost_per_billion(const struct time_plan *p, enum time_band band)
{
    enum { SECONDS_PER_HOUR = 3600 };
    return p->question.price_per_hour / SECONDS_PER_HOUR / rate(p, band) * giga;
}

static void print_memory(const struct time_plan *p, struct str *out)
{
    if (!p->fits)
        str_printf(out, "It does not fit: the plan takes %.3f GB of a GPU, which has %.1f GB\n",
                   gigabytes(p->device_bytes), gigabytes(p->question.device->memory_bytes));
}

static void print_rates(const struct time_plan *p, struct str *out)
{
    str_printf(out, "%.0f %s/s per GPU (%.0f to %.0f)", rate(p, TIME_MIDDLE), unit(p),
               rate(p, TIME_LOW), rate(p, TIME_HIGH));
    if (p->world_size > 1)
        str_printf(out, ", %.0f in all", rate(p, TIME_MIDDLE) * p->world_size);
    if (p->utilization[FLOPS_CAUSAL] > 0)
        str_printf(out, "; MFU %.1f %% (causal), %.1f %% (full attention)",
                   percent * p->utilization[FLOPS_CAUSAL], percent * p->utilization[FLOPS_FULL]);
    str_add(out, "\n");
    if (p->ring_rate > 0)
        str_printf(out, "Collectives: %.1f ms per step at %.1f GB/s per rank %s, %.1f ms exposed\n",
                   ms * p->steps[TIME_MIDDLE].sent_s, p->ring_rate / giga,
                   p->over_network ? "between nodes" : "within a node",
                   ms * p->steps[TIME_MIDDLE].s[TIME_COMMUNICATION]);
    if (p->question.price_per_hour > 0)
        str_printf(out, "At %g per GPU and hour: %.2f per billion %s (%.2f to %.2f)\n",
                   p->question.price_per_hour, cost_per_billion(p, TIME_MIDDLE), unit(p),
                   cost_per_billion(p, TIME_HIGH), cost_per_billion(p, TIME_LOW));
}

static void print_attention(const struct time_plan *p, struct str *out)
{
    if (p->attention_count < 2) /* there is no choice */
        return;
    str_add(out, "Attention forward and backward, by SHOAL_ATTENTION:");
    for (int i = 0; i < p->attention_count; i++) {
        const struct time_by_attention *a = &p->attention[i];
        str_printf(out, "%s %s %.2f and %.2f ms", i ? "," : "", a->choice, ms * a->forward_s,
                   ms * a->backward_s);
        if (a->doer == TIME_BY_HOPPER)
            str_printf(out, " (%s)", time_hopper_note);
        if (a->backward_is_ours)
            str_printf(out, " (%s)", time_backward_note);
    }
    str_add(out, "\n");
}

static void print_advised(const struct time_plan *p, const struct time_advice *a, struct str *out)
{
    str_printf(out, "  %-38s %+6.1f %% %s/s, %.3f GB", a->setting, percent * a->gain, unit(p),
               gigabytes(a->device_bytes));
    if (a->saved_s > 0)
        str_printf(out, ", %.2f ms less", ms * a->saved_s);
    if (a->kind_saved_s > 0)
        str_printf(out, " (%s %.2f)", kinds[a->kind].text, ms * a->kind_saved_s);
    str_printf(out, "%s%s\n", a->note ? "; " : "", a->note ? a->note : "");
}

/* What of a setting that is not advised says why. */
static void print_why_not(const struct time_advice *a, struct str *out)
{
    str_printf(out, " %s (", a->setting);
    if (a->verdict == TIME_NOT_HERE)
        str_add(out, a->not_here);
    else if (a->verdict == TIME_TOO_LARGE)
        str_printf(out, "%.3f GB", gigabytes(a->device_bytes));
    else if (fabs(percent * a->gain) < 0.05) /* which would be printed as 0.0, or -0.0 */
        str_add(out, "no difference");
    else
        str_printf(out, "%+.1f %%", percent * a->gain);
    str_add(out, ")");
}

static void print_advice(const struct time_plan *p, struct str *out)
{
    static const char *const texts[] = {[TIME_NO_FASTER] = "Gains less than 1 %",
                                        [TIME_TOO_LARGE] = "Does not fit",
                                        [TIME_NOT_HERE] = "Not to be had here"};
    bool is_any = p->advice_count > 0 && p->advice[0].verdict == TIME_ADVISED;
    enum time_verdict last = TIME_ADVISED;
    str_add(out, p->fits ? "Faster" : "What fits");
    str_add(out, ", by the same model");
    str_add(out, is_any ? ":\n" : ": no setting that it knows\n");
    for (int i = 0; i < p->advice_count; i++) {
        const struct time_advice *a = &p->advice[i];
        if (a->verdict == TIME_ADVISED) {
            print_advised(p, a, out);
            continue;
        }
        if (a->verdict == last)
            str_add(out, ",");
        else
            str_printf(out, "%s%s:", last == TIME_ADVISED ? "" : "\n", texts[a->verdict]);
        print_why_not(a, out);
        last = a->verdict;
    }
    str_add(out, last == TIME_ADVISED ? "" : "\n");
}

void time_plan_print(const struct time_plan *p, struct str *out)
{
    const struct time_step *step = &p->steps[TIME_MIDDLE];
    str_printf(out,
               "Predicted for %d x %s by a model of its kernels (docs/gpu.md); not measured:\n",
               p->world_size, p->question.device->driver_name);
    for (int kind = 0; kind < TIME_KIND_COUNT; kind++)
        if (step->s[kind] > 0)
            str_printf(out, "  %-22s %10.2f ms %5.1f %%\n", kinds[kind].text, ms * step->s[kind],
                       percent * step->s[kind] / step->total_s);
    str_printf(out, "  %-22s %10.2f ms (%.2f to %.2f)\n", "a step", ms * step->total_s,
               ms * p->steps[TIME_HIGH].total_s, ms * p->steps[TIME_LOW].total_s);
    print_rates(p, out);
    print_attention(p, out);
    print_memory(p, out);
    print_advice(p, out);
}

void time_plan_print_short(const struct time_plan *p, struct str *out)
{
    str_printf(out, "Predicted for %s, not measured: %.2f ms per step, ",
               p->question.device->driver_name, ms * p->steps[TIME_MIDDLE].total_s);
    str_printf(out, "%.0f %s/s per GPU (%.0f to %.0f); shoal plan --device %s prints more\n",
               rate(p, TIME_MIDDLE), unit(p), rate(p, TIME_LOW), rate(p, TIME_HIGH),
               p->question.device->name);
    print_memory(p, out);
}

/* ---- JSON ---- */

static void add_number(const char *key, double value, struct str *out)
{
    str_printf(out, ",\"%s\":", key);
    json_number(value, out);
}

/* Of a setting; verdict: also what came of it. */
static void add_advice(const struct time_advice *a, bool verdict, struct str *out)
{
    static const char *const names[] = {[TIME_NO_FASTER] = "no_faster",
                                        [TIME_TOO_LARGE] = "does_not_fit",
                                        [TIME_NOT_HERE] = "not_here"};
    str_printf(out, "{\"setting\":\"%s\"", a->setting);
    if (verdict)
        str_printf(out, ",\"why\":\"%s\"", names[a->verdict]);
    if (a->not_here)
        str_printf(out, ",\"because\":\"%s\"}", a->not_here);
    if (a->not_here)
        return;
    if (a->note)
        str_printf(out, ",\"note\":\"%s\"", a->note);
    if (a->kind_saved_s > 0)
        str_printf(out, ",\"lowers\":\"%s\"", kinds[a->kind].key);
    add_number("gain", a->gain, out);
    add_number("saved_ms", ms * a->saved_s, out);
    add_number("lowers_ms", ms * a->kind_saved_s, out);
    add_number("device_bytes", (double)a->device_bytes, out);
    str_add(out, "}");
}

/* Those that are advised, or the others. */
static void add_advices(const struct time_plan *p, bool advised, struct str *out)
{
    int count = 0;
    for (int i = 0; i < p->advice_count; i++) {
        if ((p->advice[i].verdict == TIME_ADVISED) != advised)
            continue;
        str_add(out, count++ ? "," : "");
        add_advice(&p->advice[i], !advised, out);
    }
}

static void add_attention(const struct time_plan *p, struct str *out)
{
    for (int i = 0; i < p->attention_count; i++) {
        const struct time_by_attention *a = &p->attention[i];
        str_printf(out, "%s\"%s\":{\"forward_ms\":", i ? "," : "", a->choice);
        json_number(ms * a->forward_s, out);
        if (!a->backward_is_ours)
            add_number("backward_ms", ms * a->backward_s, out);
        str_add(out, "}");
    }
}

void time_plan_json(const struct time_plan *p, struct str *out)
{
    const struct time_step *step = &p->steps[TIME_MIDDLE];
    const struct {
        const char *key;
        double value;
    } rows[] = {
        {"step_ms", ms * step->total_s},
        {"step_ms_low", ms * p->steps[TIME_HIGH].total_s},
        {"step_ms_high", ms * p->steps[TIME_LOW].total_s},
        {"samples_per_second", step->samples / step->total_s * p->world_size},
        {"tokens_per_second", step->tokens / step->total_s * p->world_size},
        {"tokens_per_second_per_gpu", step->tokens / step->total_s},
        {"mfu_causal", p->utilization[FLOPS_CAUSAL]},
        {"mfu_full", p->utilization[FLOPS_FULL]},
        {"launches", (double)step->launches},
        {"collectives_ms", ms * step->sent_s},
        {"ring_bytes_per_second", p->ring_rate},
        {"device_memory_bytes", (double)p->question.device->memory_bytes},
    };
    str_printf(out, "{\"device\":\"%s\",\"measured\":false,\"fits\":%s", p->question.device->name,
               p->fits ? "true" : "false");
    for (size_t i = 0; i < array_length(rows); i++)
        add_number(rows[i].key, rows[i].value, out);
    if (p->question.price_per_hour > 0)
        add_number(step->tokens > 0 ? "cost_per_billion_tokens" : "cost_per_billion_images",
                   cost_per_billion(p, TIME_MIDDLE), out);
    for (int kind = 0; kind < TIME_KIND_COUNT; kind++) {
        str_printf(out, "%s\"%s\":", kind ? "," : ",\"ms\":{", kinds[kind].key);
        json_number(ms * step->s[kind], out);
    }
    str_add(out, "},\"attention\":{");
    add_attention(p, out);
    str_add(out, "},\"faster\":[");
    add_advices(p, true, out);
    str_add(out, "],\"not_advised\":[");
    add_advices(p, false, out);
    str_add(out, "]}");
}
