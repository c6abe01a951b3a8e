/* The whole model at the end: one safetensors file, or for a language model a Hugging Face
 * directory. */
#include "agent/checkpoint/export_checkpoint.h"
#include "agent/comm/agree.h"
#include "agent/models/config_json.h"
#include "agent/trainer/build.h"
#include "agent/trainer/trainer_parts.h"

#include <string.h>

enum { CONFIG, GENERATION, TOKENIZER, TEXTS = TOKENIZER + EXPORT_TOKENIZER_FILES };

/* What is to be exported. */
struct listing {
    struct trainer *trainer;
    struct arena *arena;
    struct param **params;
    struct export_tensor *tensors;
    int count;
    struct export_text texts[TEXTS];
    struct export_directory what;
};

static int gather(void *ctx, int i, float *values, struct error *err)
{
    const struct listing *list = ctx;
    return shard_gather_param(list->trainer->shard, list->params[i], values, err);
}

static void list_model(struct trainer *t, struct arena *arena, const char *path,
                       struct listing *list)
{
    *list = (struct listing){.trainer = t, .arena = arena};
    list->params = module_list_params(arena, t->model->root, &list->count);
    list->tensors = arena_array(arena, struct export_tensor, list->count);
    for (int i = 0; i < list->count; i++) {
        const struct param *param = list->params[i];
        list->tensors[i] = (struct export_tensor){.name = param->name, .dims = param->dims};
        memcpy(list->tensors[i].shape, param->shape, (size_t)param->dims * sizeof param->shape[0]);
    }
    list->what = (struct export_directory){
        .model = {.files = &file_ops_system,
                  .path = path,
                  .tensors = list->tensors,
                  .count = list->count,
                  .gather = gather,
                  .ctx = list,
                  .comm = t->world,
                  .stream = t->compute,
                  .dtype = shard_dtype(t->shard) == DTYPE_BF16 ? EXPORT_BF16 : EXPORT_F32},
        .texts = list->texts,
        .max_file_bytes = t->config->checkpoint.max_shard_bytes,
    };
}

/* ---- the small files ---- */

static void add_text(struct listing *list, const char *name, const char *data, size_t bytes)
{
    list->texts[list->what.text_count++] = (struct export_text){name, data, bytes};
}

int trainer_model_config(const struct agent_config *c, struct arena *arena, const char **ret_text,
                         struct error *err)
{
    struct architecture architecture;
    auto_str struct str text;
    str_init(&text, CONFIG_JSON_MAX_BYTES);
    if (build_architecture(c, arena, &architecture, err))
        return -1;
    config_json_write(&architecture, "float32", &text);
    *ret_text = arena_strdup(arena, str_text(&text));
    return 0;
}

static int add_configs(struct listing *list, struct error *err)
{
    struct architecture architecture;
    if (build_architecture(list->trainer->config, list->arena, &architecture, err))
        return -1;
    auto_str struct str config, generation;
    str_init(&config, CONFIG_JSON_MAX_BYTES);
    str_init(&generation, CONFIG_JSON_MAX_BYTES);
    bool is_bf16 = list->what.model.dtype == EXPORT_BF16;
    config_json_write(&architecture, is_bf16 ? "bfloat16" : "float32", &config);
    config_json_write_generation(&architecture, &generation);
    add_text(list, "config.json", arena_strdup(list->arena, str_text(&config)), config.length);
    add_text(list, "generation_config.json", arena_strdup(list->arena, str_text(&generation)),
             generation.length);
    return 0;
}

static int add_texts(struct listing *list, struct error *err)
{
    const struct agent_config *c = list->trainer->config;
    const char *dir = c->data.tokenizer[0] ? c->data.tokenizer : c->model.name_or_path;
    return add_configs(list, err) ||
                   export_add_tokenizer(list->arena, dir, list->texts, &list->what.text_count, err)
               ? -1
               : 0;
}

/* ---- the doors ---- */

int trainer_try_save_model(struct trainer *t, struct error *err)
{
    const char *path = t->config->checkpoint.save_model;
    if (!trainer_is_language(t))
        return export_try(&file_ops_system, path, err);
    auto_arena struct arena *arena = arena_open();
    struct listing list = {.trainer = t, .arena = arena};
    list.what = (struct export_directory){.model = {.files = &file_ops_system, .path = path},
                                          .texts = list.texts};
    return add_texts(&list, err) ? -1 : export_try_directory(&list.what, err);
}

/* Only rank 0 needs the texts: what it cannot read, all ranks fail by. */
static int save_directory(struct trainer *t, struct listing *list, struct error *err)
{
    int result = t->world->rank == 0 ? add_texts(list, err) : 0;
    return agree_all(t->world, t->compute, result, err) || export_directory(&list->what, err) ? -1
                                                                                              : 0;
}

int trainer_save_model(struct trainer *t, const char *path, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    struct listing *list = arena_new(arena, struct listing);
    list_model(t, arena, path, list);
    int result = trainer_is_language(t) ? save_directory(t, list, err)
                                        : export_model(&list->what.model, err);
    return result ? error_wrap(err, "save model") : 0;
}
