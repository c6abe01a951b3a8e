#include "agent/models/architecture.h"

#include "agent/models/families.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

struct architecture architecture_default(const struct model_family *family)
{
    struct architecture a = {.family = family, .bos_token_id = -1, .pad_token_id = -1};
    family->set_defaults(&a);
    return a;
}

static const char *next_sign(const char *text)
{
    while (*text && !isalnum((unsigned char)*text))
        text++;
    return text;
}

/* Whether the name is the table's, whoever published it and however it writes hyphens and capitals:
 * "meta-llama/Meta-Llama-3-8B", "meta-llama/Llama-2-7b-hf". */
static bool is_name(const char *name, const char *row)
{
    name = str_after_last(name, '/');
    if (strncasecmp(name, "meta-", 5) == 0)
        name += 5;
    for (name = next_sign(name), row = next_sign(row); *row;
         name = next_sign(name + 1), row = next_sign(row + 1))
        if (tolower((unsigned char)*name) != tolower((unsigned char)*row))
            return false;
    return !*name || strcasecmp(name, "hf") == 0 || strcasecmp(name, "instruct") == 0;
}

bool architecture_find(const char *name, struct architecture *ret_architecture)
{
    for (int64_t f = 0; model_family(f); f++) {
        const struct model_family *family = model_family(f);
        const char *published;
        for (int i = 0; family->published && (published = family->published(i, NULL)); i++)
            if (is_name(name, published)) {
                *ret_architecture = architecture_default(family);
                family->published(i, ret_architecture);
                return true;
            }
    }
    return false;
}

const char *architecture_name(int i)
{
    for (int64_t f = 0; model_family(f); f++)
        for (int k = 0; model_family(f)->published && model_family(f)->published(k, NULL); k++)
            if (i-- == 0)
                return model_family(f)->published(k, NULL);
    return NULL;
}

int architecture_check(const struct architecture *a, struct error *err)
{
    return a->family->check(a, err);
}

struct model *architecture_build(struct arena *arena, const struct architecture *a)
{
    return a->family->build(arena, a);
}
