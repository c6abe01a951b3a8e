#include "agent/telemetry/csv.h"

#include <math.h>
#include <string.h>

/* The first field that has the column's name: "step" is a field of every event. */
static bool begins_column(int field, enum field_words words)
{
    const char *name = field_name(field, words);
    for (int i = 0; name && i < field; i++)
        if (field_name(i, words) && strcmp(field_name(i, words), name) == 0)
            return false;
    return name;
}

void csv_header(enum field_words words, struct str *out)
{
    const char *between = "";
    for (int i = 0; i < field_count(); i++) {
        if (!begins_column(i, words))
            continue;
        str_printf(out, "%s%s", between, field_name(i, words));
        between = ",";
    }
    str_add(out, "\n");
}

static void add_value(int field, const struct run_state *state, struct str *out)
{
    double value = field_value(field, state);
    if (field_is_whole(field))
        str_printf(out, "%.0f", value);
    else if (!isnan(value))
        str_printf(out, "%.10g", value);
}

void csv_row(enum field_event event, enum field_words words, const struct run_state *state,
             struct str *out)
{
    const char *between = "";
    for (int i = 0; i < field_count(); i++) {
        if (!begins_column(i, words))
            continue;
        str_add(out, between);
        between = ",";
        /* One column may have several fields, of which each is another event's: the step, say. */
        for (int k = i; k < field_count(); k++)
            if (field_is_of(k, event) && field_name(k, words) &&
                strcmp(field_name(k, words), field_name(i, words)) == 0)
                add_value(k, state, out);
    }
    str_add(out, "\n");
}
