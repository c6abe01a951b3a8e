#include "agent/checkpoint/export_texts.h"

#include "agent/models/config_json.h"
#include "base/file.h"
#include "base/str.h"

#include <assert.h>
#include <string.h>

struct export_tensor *export_tensors_of(struct arena *arena, struct param *const *params, int count)
{
    struct export_tensor *tensors = arena_array(arena, struct export_tensor, count);
    for (int i = 0; i < count; i++) {
        const struct param *p = params[i];
        tensors[i] = (struct export_tensor){.name = p->name, .dims = p->dims};
        memcpy(tensors[i].shape, p->shape, (size_t)p->dims * sizeof p->shape[0]);
    }
    return tensors;
}

static void add_text(struct export_texts *texts, const char *name, const void *data, size_t bytes)
{
    assert(texts->count < EXPORT_TEXTS_MAX);
    texts->items[texts->count++] = (struct export_text){name, data, bytes};
}

static int add_file(struct export_texts *texts, struct arena *arena, const char *path,
                    const char *name, struct error *err)
{
    auto_free char *data = NULL;
    size_t bytes;
    if (file_read(path, TOKENIZER_MAX_FILE_BYTES, &data, &bytes, err) < 0)
        return -1;
    char *kept = arena_alloc(arena, bytes + 1);
    memcpy(kept, data, bytes);
    add_text(texts, name, kept, bytes);
    return 0;
}

int export_texts_add_tokenizer(struct export_texts *texts, struct arena *arena, const char *path,
                               struct error *err)
{
    struct tokenizer_file files[TOKENIZER_FILES_MAX];
    int count = path[0] ? tokenizer_list_files(path, arena, files) : 0;
    for (int i = 0; i < count; i++)
        if (add_file(texts, arena, files[i].path, files[i].name, err) < 0)
            return -1;
    return 0;
}

const char *export_dtype_name(enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? "bfloat16" : "float32";
}

void export_texts_add_model(struct export_texts *texts, struct arena *arena,
                            const struct architecture *architecture, enum dtype dtype)
{
    auto_str struct str config, generation;
    str_init(&config, CONFIG_JSON_MAX_BYTES);
    str_init(&generation, CONFIG_JSON_MAX_BYTES);
    config_json_write(architecture, export_dtype_name(dtype), &config);
    config_json_write_generation(architecture, &generation);
    add_text(texts, "config.json", arena_strdup(arena, str_text(&config)), config.length);
    add_text(texts, "generation_config.json", arena_strdup(arena, str_text(&generation)),
             generation.length);
}
