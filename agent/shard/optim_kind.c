#include "agent/shard/optim_kind.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static const struct optim_kind *const kinds[] = {
#define OPTIM_ROW(name, spellings) &optim_##name
#define COMMA                      ,
    OPTIM_KINDS(OPTIM_ROW, COMMA)
#undef COMMA
#undef OPTIM_ROW
};

const struct optim_kind *optim_kind(int64_t index)
{
    return index >= 0 && index < (int64_t)array_length(kinds) ? kinds[index] : NULL;
}

void optim_users(enum optim_use use, char *out, size_t out_bytes)
{
    int left = 0;
    for (size_t i = 0; i < array_length(kinds); i++)
        left += (kinds[i]->uses & use) != 0;
    out[0] = 0;
    for (size_t i = 0; i < array_length(kinds); i++)
        if (kinds[i]->uses & use) {
            size_t length = strlen(out);
            left--;
            snprintf(out + length, out_bytes - length, "%s%s", kinds[i]->name,
                     left == 0   ? ""
                     : left == 1 ? " or "
                                 : ", ");
        }
}
