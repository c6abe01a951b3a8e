#include "cli/goodput_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct spent {
    int kind;
    int64_t ms;
};

static int compare_spent(const void *a, const void *b)
{
    const struct spent *x = a, *y = b;
    if (x->ms != y->ms)
        return x->ms < y->ms ? 1 : -1;
    return x->kind - y->kind;
}

void goodput_time_text(int64_t ms, char out[TRAINING_TEXT_BYTES])
{
    if (ms < GOODPUT_SHORT_MS)
        snprintf(out, TRAINING_TEXT_BYTES, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms / 100 % 10);
    else
        training_duration_text(ms / 1000, out);
}

/* A program that is no agent starts in less on one machine: that it ran says nothing. */
enum { TOLD_MIN_MS = 1000 };

void goodput_table(const struct goodput *g, struct str *out)
{
    struct spent spent[GOODPUT_KINDS];
    int64_t sum_ms = goodput_sum_ms(g);
    double ratio = goodput_ratio(g);
    char text[TRAINING_TEXT_BYTES];
    bool is_agent = !isnan(ratio);
    if (!g->known || sum_ms <= 0 || (!is_agent && sum_ms - g->ms[GOODPUT_UNTOLD] < TOLD_MIN_MS))
        return;
    for (int kind = 0; kind < GOODPUT_KINDS; kind++)
        spent[kind] = (struct spent){kind, g->ms[kind]};
    qsort(spent, GOODPUT_KINDS, sizeof *spent, compare_spent);
    goodput_time_text(sum_ms, text);
    str_printf(out, "Where %s went:", text);
    if (is_agent)
        str_printf(out, " goodput %.1f%%", ratio * 100);
    str_add(out, "\n");
    for (int i = 0; i < GOODPUT_KINDS && spent[i].ms > 0; i++) {
        goodput_time_text(spent[i].ms, text);
        str_printf(out, "  %-17s %8s %5.1f%%\n", goodput_kind_name(spent[i].kind), text,
                   100 * (double)spent[i].ms / (double)sum_ms);
    }
}
