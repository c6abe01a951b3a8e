#include "agent/launch/repeated_end.h"

#include <stdio.h>
#include <string.h>

void repeated_end_add(struct repeated_end *ends, const char *where)
{
    bool is_same = strcmp(ends->where, where) == 0;
    ends->times = is_same ? ends->times + 1 : 1;
    snprintf(ends->where, sizeof ends->where, "%s", where);
}

void repeated_end_describe(const struct repeated_end *ends, struct str *out)
{
    if (ends->where[0] && ends->times > 1)
        str_printf(out, RANK_NOTE_ENDS, ends->times, ends->where);
}
