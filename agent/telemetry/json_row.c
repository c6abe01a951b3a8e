#include "agent/telemetry/json_row.h"

#include <math.h>

void json_number(double value, struct str *out)
{
    if (isfinite(value))
        str_printf(out, "%.10g", value);
    else
        str_add(out, "null");
}

void json_text(const char *text, struct str *out)
{
    str_add(out, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            str_printf(out, "\\%c", *c);
        else if ((unsigned char)*c < ' ')
            str_printf(out, "\\u%04x", (unsigned)*c);
        else
            str_add_bytes(out, c, 1);
    }
    str_add(out, "\"");
}

void json_row(enum field_event event, enum field_words words, const struct run_state *state,
              struct str *out)
{
    const char *between = "{";
    for (int i = 0; i < field_count(); i++) {
        if (!field_is_of(i, event) || !field_name(i, words))
            continue;
        str_printf(out, "%s\"%s\":", between, field_name(i, words));
        between = ",";
        if (field_is_whole(i))
            str_printf(out, "%.0f", field_value(i, state));
        else
            json_number(field_value(i, state), out);
    }
    str_add(out, "}");
}
