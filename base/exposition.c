#include "base/exposition.h"

#include <math.h>

void exposition_head(const char *name, const char *help, const char *type, struct str *out)
{
    str_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void exposition_label(const char *name, const char *value, struct str *out)
{
    if (out->length > 0 && out->text[out->length - 1] != '{')
        str_add(out, ",");
    str_printf(out, "%s=\"", name);
    for (const char *c = value; *c; c++) {
        if (*c == '\n')
            str_add(out, "\\n");
        else if (*c == '"' || *c == '\\')
            str_printf(out, "\\%c", *c);
        else
            str_add_bytes(out, c, 1);
    }
    str_add(out, "\"");
}

void exposition_value(double value, struct str *out)
{
    if (isnan(value))
        str_add(out, " NaN\n");
    else if (isinf(value))
        str_add(out, value > 0 ? " +Inf\n" : " -Inf\n");
    else
        str_printf(out, " %.15g\n", value);
}
