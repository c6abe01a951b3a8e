#include "agent/trainer/build.h"

#include "agent/models/mnist.h"
#include "agent/nn/nn_fp8.h"
#include "agent/plan/run_plan.h"
#include "agent/shard/shard_layout.h"
#include "agent/shard/wrap.h"

#include <string.h>

enum { MAX_WRAP_CLASSES = 16 };

static int wrap_by_names(struct module *root, const char *names, struct arena *arena,
                         struct error *err)
{
    const char *classes[MAX_WRAP_CLASSES];
    int count = 0;
    char *rest = NULL;
    for (char *name = strtok_r(arena_strdup(arena, names), ", ", &rest); name;
         name = strtok_r(NULL, ", ", &rest)) {
        if (count == MAX_WRAP_CLASSES)
            return error_set(err, ERR_CONFIG,
                             "parallel.transformer_layer_cls_to_wrap: more than %d classes",
                             MAX_WRAP_CLASSES);
        classes[count++] = name;
    }
    return wrap_by_class(root, classes, count, err);
}

static int choose_units(const struct agent_config *config, struct module *root, struct arena *arena,
                        struct error *err)
{
    switch ((enum config_wrap)config->parallel.wrap_policy) {
    case WRAP_NONE:
        wrap_none(root);
        return 0;
    case WRAP_SIZE:
        wrap_by_size(root, config->parallel.min_num_params);
        return 0;
    case WRAP_TRANSFORMER:
    case WRAP_AUTO: /* config_parse has replaced it */
        return wrap_by_names(root, config->parallel.wrap_classes, arena, err);
    }
    return 0;
}

static struct model *build_mnist(const struct agent_config *config, struct arena *arena)
{
    struct mnist_shape shape = mnist_default_shape;
    if (config->model.dropout >= 0)
        shape.dropout1 = shape.dropout2 = (float)config->model.dropout;
    return model_mnist_new(arena, &shape);
}

int build_model(const struct agent_config *config, struct arena *arena, struct model **ret_model,
                struct error *err)
{
    struct architecture architecture;
    if (!config_is_language(config)) {
        *ret_model = build_mnist(config, arena);
    } else {
        if (build_architecture(config, arena, &architecture, err))
            return -1;
        *ret_model = architecture_build(arena, &architecture);
        if (config->precision.fp8 && nn_fp8_begin((*ret_model)->root, err) < 0)
            return -1;
    }
    return choose_units(config, (*ret_model)->root, arena, err);
}

enum shard_strategy build_strategy(const struct agent_config *config, const struct model *model)
{
    if (config->parallel.strategy != STRATEGY_AUTO)
        return (enum shard_strategy)config->parallel.strategy;
    return run_plan_advise(module_param_count(model->root)).strategy;
}

void build_describe(const struct config *config, const struct model *model, struct str *out)
{
    config_yaml(config, out);
    str_add(out, "\n");
    module_print(model->root, MODULE_UNITS, out);
    str_add(out, "\n");
    auto_arena struct arena *arena = arena_open();
    struct shard_layout layout;
    shard_layout_make(arena, model->root, 1, 1, &layout);
    for (int u = 0; u < layout.unit_count; u++)
        str_printf(out, "unit %d: %s, %lld parameters\n", u,
                   layout.units[u].module->path[0] ? layout.units[u].module->path : "root",
                   (long long)layout.units[u].count);
    str_printf(out, "%lld parameters in %d unit%s, %s\n",
               (long long)module_param_count(model->root), layout.unit_count,
               layout.unit_count == 1 ? "" : "s",
               shard_strategy_name(build_strategy(&config->value, model)));
}
