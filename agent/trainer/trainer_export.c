/* The whole model at the end: one safetensors file, or for a language model a Hugging Face
 * directory. */
#include "agent/checkpoint/export_texts.h"
#include "agent/comm/agree.h"
#include "agent/models/config_json.h"
#include "agent/plan/trainer_settings.h"
#include "agent/trainer/build.h"
#include "agent/trainer/trainer_internal.h"

#include <string.h>

/* What is to be exported. */
struct listing {
    struct trainer *trainer;
    struct arena *arena;
    struct param **params;
    int count;
    struct export_texts texts;
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
    list->what = (struct export_directory){
        .model = {.files = &file_ops_system,
                  .path = path,
                  .tensors = export_tensors_of(arena, list->params, list->count),
                  .count = list->count,
                  .gather = gather,
                  .ctx = list,
                  .comm = t->world,
                  .stream = t->compute,
                  .dtype = shard_dtype(t->shard),
                  .allow_nonfinite = t->config->checkpoint.allow_nonfinite},
        .texts = list->texts.items,
        .max_file_bytes = t->config->checkpoint.max_shard_bytes,
    };
}

/* ---- the small files ---- */

/* Sizes alone say none, and transformers then takes the family's own, which are other tokens of
 * this tokenizer, and generates without an end. */
static void take_tokenizers_ends(const struct trainer *t, struct architecture *a)
{
    if (t->config->model.name_or_path[0] || !t->tokenizer || t->model->task != MODEL_NEXT_TOKEN)
        return;
    const struct tokenizer_special special = tokenizer_special(t->tokenizer);
    if (a->bos_token_id < 0)
        a->bos_token_id = special.bos;
    if (a->eos_count == 0 && special.eos >= 0)
        a->eos_token_ids[a->eos_count++] = special.eos;
}

static int make_architecture(const struct trainer *t, struct arena *arena,
                             struct architecture *ret_architecture, struct error *err)
{
    if (build_architecture(t->config, arena, ret_architecture, err))
        return -1;
    take_tokenizers_ends(t, ret_architecture);
    return 0;
}

int trainer_model_config(const struct trainer *t, struct arena *arena, const char **ret_text,
                         struct error *err)
{
    struct architecture architecture;
    auto_str struct str text;
    str_init(&text, CONFIG_JSON_MAX_BYTES);
    if (make_architecture(t, arena, &architecture, err))
        return -1;
    config_json_write(&architecture, export_dtype_name(trainer_slice_dtype(t->config)), &text);
    *ret_text = arena_strdup(arena, str_text(&text));
    return 0;
}

static int add_texts(struct listing *list, struct error *err)
{
    const struct agent_config *c = list->trainer->config;
    const char *tokenizer = c->data.tokenizer[0] ? c->data.tokenizer : c->model.name_or_path;
    struct architecture architecture;
    if (make_architecture(list->trainer, list->arena, &architecture, err))
        return -1;
    export_texts_add_model(&list->texts, list->arena, &architecture, list->what.model.dtype);
    if (export_texts_add_tokenizer(&list->texts, list->arena, tokenizer, err))
        return -1;
    list->what.text_count = list->texts.count;
    return 0;
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
                                          .texts = list.texts.items};
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
    return result ? error_wrap(err, "save model at step %lld", (long long)t->cursor.position.step)
                  : 0;
}
