#include "agent/models/families.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

static const struct model_family *const families[] = {&family_mnist_cnn,
#define FAMILY_ROW(name, spellings, block) &family_##name
#define COMMA                              ,
                                                      LANGUAGE_FAMILIES(FAMILY_ROW, COMMA)
#undef COMMA
#undef FAMILY_ROW
};

const struct model_family *model_family(int64_t index)
{
    return index >= 0 && index < (int64_t)array_length(families) ? families[index] : NULL;
}

int64_t model_family_index(const struct model_family *family)
{
    int64_t index = 0;
    while (families[index] != family)
        index++;
    return index;
}

/* The head with the class; the first if none is named; -1: it has none. */
static int find_head(const struct model_family *family, const char *class_name)
{
    for (int h = 0; class_name && h < family->head_count; h++)
        for (const char *const *c = family->heads[h].classes; *c; c++)
            if (strcmp(*c, class_name) == 0)
                return h;
    return class_name ? -1 : 0;
}

const struct model_family *model_family_find(const char *model_type, const char *class_name,
                                             int *ret_head)
{
    for (size_t i = 0; (model_type || class_name) && i < array_length(families); i++) {
        const struct model_family *family = families[i];
        int head = family->fields ? find_head(family, class_name) : -1;
        if (head >= 0 && (!model_type || strcmp(family->name, model_type) == 0)) {
            *ret_head = head;
            return family;
        }
    }
    return NULL;
}

bool model_family_learns(const struct model_family *family, enum model_task task, int *ret_head)
{
    for (int h = 0; h < family->head_count; h++)
        if (family->heads[h].task == task) {
            *ret_head = h;
            return true;
        }
    return false;
}

static bool learns_any(const struct model_family *family, unsigned tasks)
{
    for (int h = 0; h < family->head_count; h++)
        if (tasks & 1u << family->heads[h].task)
            return true;
    return false;
}

void model_family_names(unsigned tasks, const char *last, struct str *out)
{
    int left = 0, count = 0;
    for (size_t i = 0; i < array_length(families); i++)
        left += learns_any(families[i], tasks);
    for (size_t i = 0; i < array_length(families); i++)
        if (learns_any(families[i], tasks)) {
            const char *comma = --left == 0 ? last : ", ";
            str_printf(out, "%s%s", count++ == 0 ? "" : comma, families[i]->name);
        }
}
