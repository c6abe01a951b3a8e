#include "agent/shard/optim_kind.h"

#include "base/mem.h"
#include "base/str.h"

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

/* "adam or adamw": those that have it. */
static void add_names(const bool has[array_length(kinds)], struct str *out)
{
    int left = 0;
    for (size_t i = 0; i < array_length(kinds); i++)
        left += has[i];
    for (size_t i = 0; i < array_length(kinds); i++)
        if (has[i]) {
            left--;
            str_printf(out, "%s%s", kinds[i]->name, left == 0 ? "" : left == 1 ? " or " : ", ");
        }
}

void optim_users(enum optim_use use, struct str *out)
{
    bool has[array_length(kinds)];
    for (size_t i = 0; i < array_length(kinds); i++)
        has[i] = kinds[i]->uses & use;
    add_names(has, out);
}

void optim_describe_weight_decay(struct str *out)
{
    bool has[array_length(kinds)];
    for (size_t i = 0; i < array_length(kinds); i++)
        has[i] = kinds[i]->decoupled;
    str_add(out, "decoupled with ");
    add_names(has, out);
    str_add(out, "; below 0: ");
    for (size_t i = 0; i < array_length(kinds); i++)
        if (kinds[i]->weight_decay > 0)
            str_printf(out, "%g with %s, ", kinds[i]->weight_decay, kinds[i]->name);
    str_add(out, "else 0");
}
