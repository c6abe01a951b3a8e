/* The whole model in one safetensors file. */
#include "agent/export.h"
#include "agent/trainer_parts.h"

#include <string.h>

struct listing {
    struct trainer *trainer;
    const struct param **params;
    struct export_tensor *tensors;
    int count;
};

static int count_params(const struct module *m)
{
    int count = m->param_count;
    for (int i = 0; i < m->child_count; i++)
        count += count_params(m->children[i]);
    return count;
}

static void list_params(const struct module *m, struct listing *list)
{
    for (int i = 0; i < m->param_count; i++) {
        const struct param *param = m->params[i];
        struct export_tensor *tensor = &list->tensors[list->count];
        *tensor = (struct export_tensor){.name = param->name, .dims = param->dims};
        memcpy(tensor->shape, param->shape, (size_t)param->dims * sizeof param->shape[0]);
        list->params[list->count++] = param;
    }
    for (int i = 0; i < m->child_count; i++)
        list_params(m->children[i], list);
}

static int gather(void *ctx, int i, float *values, struct error *err)
{
    const struct listing *list = ctx;
    return shard_gather_param(list->trainer->shard, list->params[i], values, err);
}

int trainer_save_model(struct trainer *t, const char *path, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    int count = count_params(t->model->root);
    struct listing list = {
        .trainer = t,
        .params = arena_array(arena, const struct param *, count),
        .tensors = arena_array(arena, struct export_tensor, count),
    };
    list_params(t->model->root, &list);
    const struct export_model what = {
        .files = &file_ops_system,
        .path = path,
        .tensors = list.tensors,
        .count = list.count,
        .gather = gather,
        .ctx = &list,
        .comm = t->place.world,
        .stream = t->compute,
    };
    return export_model(&what, err) ? error_wrap(err, "save model") : 0;
}
