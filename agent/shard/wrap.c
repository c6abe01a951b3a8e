#include "agent/shard/wrap.h"

#include "base/str.h"

#include <string.h>

enum { NO_UNIT = -1, CHOSEN = 0 }; /* module.unit until the units are numbered */

static void clear(struct module *m)
{
    m->unit = NO_UNIT;
    for (int i = 0; i < m->child_count; i++)
        clear(m->children[i]);
}

static int number(struct module *m, int next)
{
    if (m->unit == CHOSEN)
        m->unit = next++;
    for (int i = 0; i < m->child_count; i++)
        next = number(m->children[i], next);
    return next;
}

/* Numbers what was chosen; returns how many units there are. */
static int finish(struct module *root)
{
    root->unit = CHOSEN;
    return number(root, 0);
}

void wrap_none(struct module *root)
{
    clear(root);
    finish(root);
}

/* PyTorch's _recursive_wrap. Returns how many elements below `m` are in units now. */
static int64_t choose_by_size(struct module *m, int64_t min_num_params)
{
    int64_t count = module_param_count(m);
    /* PyTorch's size_based_auto_wrap_policy has ModuleList, ModuleDict and MultiheadAttention as
     * exceptions: the latter reads its children's weights itself. */
    if (count < min_num_params || strcmp(m->class_name, "MultiheadAttention") == 0)
        return 0;
    int64_t wrapped = 0;
    for (int i = 0; i < m->child_count; i++)
        wrapped += choose_by_size(m->children[i], min_num_params);
    /* What is left after the children got units of their own must be large enough. A ModuleList has
     * no forward, and a shared module is used at several places: neither may be a unit. */
    if (count - wrapped < min_num_params || m->is_list || m->is_shared)
        return wrapped;
    m->unit = CHOSEN;
    return count;
}

void wrap_by_size(struct module *root, int64_t min_num_params)
{
    clear(root);
    choose_by_size(root, min_num_params);
    finish(root);
}

static bool is_one_of(const struct module *m, const char *const *classes, int class_count)
{
    if (class_count == 0)
        return m->is_block;
    for (int i = 0; i < class_count; i++)
        if (strcmp(m->class_name, classes[i]) == 0)
            return true;
    return false;
}

static void choose_by_class(struct module *m, const char *const *classes, int class_count)
{
    if (is_one_of(m, classes, class_count) && !m->is_shared)
        m->unit = CHOSEN;
    for (int i = 0; i < m->child_count; i++)
        choose_by_class(m->children[i], classes, class_count);
}

/* What lies beside the blocks. In the root it would stay gathered, and its gradient whole, through
 * all of backward; and the first and the last collective of a step would have nothing beside. */
static void choose_large(struct module *m)
{
    if (m->unit == CHOSEN)
        return;
    if (m->child_count == 0 && !m->is_shared && module_param_count(m) >= WRAP_SMALL_UNIT)
        m->unit = CHOSEN;
    for (int i = 0; i < m->child_count; i++)
        choose_large(m->children[i]);
}

static int count_chosen(const struct module *m)
{
    int count = m->unit == CHOSEN;
    for (int i = 0; i < m->child_count; i++)
        count += count_chosen(m->children[i]);
    return count;
}

/* Adds the class names below `m`, each once. */
static void list_classes(const struct module *m, struct str *list)
{
    for (int i = 0; i < m->child_count; i++) {
        const char *name = m->children[i]->class_name;
        if (!strstr(str_text(list), name))
            str_printf(list, "%s%s", list->length ? ", " : "", name);
        list_classes(m->children[i], list);
    }
}

static bool has_class(const struct module *m, const char *name)
{
    if (strcmp(m->class_name, name) == 0)
        return true;
    for (int i = 0; i < m->child_count; i++)
        if (has_class(m->children[i], name))
            return true;
    return false;
}

int wrap_by_class(struct module *root, const char *const *classes, int class_count,
                  struct error *err)
{
    auto_str struct str list;
    str_init(&list, 256);
    list_classes(root, &list);
    for (int i = 0; i < class_count; i++)
        if (!has_class(root, classes[i])) /* accelerate's words */
            return error_set(
                err, ERR_CONFIG,
                "Could not find the transformer layer class %s in the model. %s has %s", classes[i],
                root->class_name, str_text(&list));
    clear(root);
    choose_by_class(root, classes, class_count);
    root->unit = NO_UNIT;
    if (count_chosen(root) > 0) {
        if (class_count == 0)
            choose_large(root);
        finish(root);
        return 0;
    }
    root->unit = CHOSEN;
    if (class_count == 0)
        return error_set(err, ERR_CONFIG,
                         "%s has no transformer blocks to wrap: name its classes (%s) or choose "
                         "another wrap policy",
                         root->class_name, str_text(&list));
    return error_set(err, ERR_CONFIG, "no module of %s but the whole is a %s%s: it has %s",
                     root->class_name, classes[0],
                     class_count > 1 ? " (or another one listed)" : "", str_text(&list));
}
