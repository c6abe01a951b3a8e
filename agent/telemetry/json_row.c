#include "agent/telemetry/json_row.h"

#include "base/json_text.h"

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
