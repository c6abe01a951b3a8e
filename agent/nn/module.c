#include "agent/nn/module.h"

#include <assert.h>
#include <string.h>

enum { MODULE_MAX_TEXT = 64 * 1024 }; /* of one printed entry of a list */

struct module *module_new(struct arena *arena, const char *name, const char *class_name,
                          const char *description)
{
    struct module *m = arena_new(arena, struct module);
    m->name = arena_strdup(arena, name);
    m->class_name = arena_strdup(arena, class_name);
    m->path = m->name;
    m->description = arena_strdup(arena, description);
    m->unit = -1;
    return m;
}

static const char *path_join(struct arena *arena, const char *path, const char *name)
{
    return *path ? arena_printf(arena, "%s.%s", path, name) : arena_strdup(arena, name);
}

/* The array doubles at each power of two; the outgrown halves stay in the arena. */
struct module *module_add(struct arena *arena, struct module *parent, struct module *child)
{
    int count = parent->child_count;
    assert(count < MODULE_MAX_CHILDREN);
    if ((count & (count - 1)) == 0) {
        struct module **grown = arena_array(arena, struct module *, count ? 2 * count : 1);
        if (count)
            memcpy(grown, parent->children, (size_t)count * sizeof *grown);
        parent->children = grown;
    }
    parent->children[parent->child_count++] = child;
    child->path = path_join(arena, parent->path, child->name);
    return child;
}

struct param *module_add_param(struct arena *arena, struct module *m, const char *name,
                               uint64_t index, int dims, const int64_t *shape,
                               struct param_init init)
{
    assert(m->param_count < MODULE_MAX_PARAMS);
    assert(dims > 0 && dims <= MODULE_MAX_DIMS);
    struct param *p = arena_new(arena, struct param);
    p->name = path_join(arena, m->path, name);
    p->dims = dims;
    p->count = 1;
    for (int d = 0; d < dims; d++) {
        p->shape[d] = shape[d];
        p->count *= shape[d];
    }
    p->init = init;
    p->index = index;
    m->params[m->param_count++] = p;
    return p;
}

/* Returns how many there are now; list: NULL to only count. */
static int add_params(const struct module *m, struct param **list, int count)
{
    for (int i = 0; i < m->param_count; i++, count++)
        if (list)
            list[count] = m->params[i];
    for (int i = 0; i < m->child_count; i++)
        count = add_params(m->children[i], list, count);
    return count;
}

struct param **module_list_params(struct arena *arena, struct module *root, int *ret_count)
{
    *ret_count = add_params(root, NULL, 0);
    struct param **list = arena_array(arena, struct param *, *ret_count);
    add_params(root, list, 0);
    return list;
}

const char *module_label(const struct module *m)
{
    return m->path[0] ? m->path : m->class_name;
}

int64_t module_param_count(const struct module *m)
{
    int64_t count = 0;
    for (int i = 0; i < m->param_count; i++)
        count += m->params[i]->count;
    for (int i = 0; i < m->child_count; i++)
        count += module_param_count(m->children[i]);
    return count;
}

static void print(const struct module *m, bool with_units, int indent, struct str *out);

/* Whether two entries of a list print alike: PyTorch's ModuleList prints runs of such as one,
 * "(0-31): 32 x LlamaDecoderLayer". */
static bool is_like(const struct module *a, const struct module *b, bool with_units)
{
    auto_str struct str x, y;
    str_init(&x, MODULE_MAX_TEXT);
    str_init(&y, MODULE_MAX_TEXT);
    print(a, with_units, 0, &x);
    print(b, with_units, 0, &y);
    return strcmp(str_text(&x), str_text(&y)) == 0;
}

static void print_children(const struct module *m, bool with_units, int indent, struct str *out)
{
    for (int i = 0; i < m->child_count;) {
        int next = i + 1;
        while (m->is_list && next < m->child_count &&
               is_like(m->children[i], m->children[next], with_units))
            next++;
        if (next - i > 1)
            str_printf(out, "%*s(%d-%d): %d x ", indent, "", i, next - 1, next - i);
        else
            str_printf(out, "%*s(%s): ", indent, "", m->children[i]->name);
        print(m->children[i], with_units, indent, out);
        str_add(out, "\n");
        i = next;
    }
}

static void print(const struct module *m, bool with_units, int indent, struct str *out)
{
    if (with_units && m->unit >= 0) {
        str_printf(out, "FullyShardedDataParallel(\n%*s(_fsdp_wrapped_module): ", indent + 2, "");
        indent += 2;
    }
    if (m->child_count == 0) {
        if (m->description)
            str_add(out, m->description);
        else
            str_printf(out, "%s()", m->class_name);
    } else {
        str_printf(out, "%s(\n", m->class_name);
        print_children(m, with_units, indent + 2, out);
        str_printf(out, "%*s)", indent, "");
    }
    if (with_units && m->unit >= 0)
        str_printf(out, "\n%*s)", indent - 2, "");
}

void module_print(const struct module *root, enum module_wrapped wrapped, struct str *out)
{
    bool copied = wrapped == MODULE_COPIED;
    if (copied)
        str_add(out, "DistributedDataParallel(\n  (module): ");
    print(root, wrapped == MODULE_UNITS, copied ? 2 : 0, out);
    if (copied)
        str_add(out, "\n)");
}
