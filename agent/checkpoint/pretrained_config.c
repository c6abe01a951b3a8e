#include "agent/checkpoint/pretrained_config.h"

#include "agent/checkpoint/pretrained.h"
#include "agent/models/config_json.h"
#include "base/file.h"

#include <sys/stat.h>

/* Files of other versions say what they mean. Weights that cannot be opened are told of by who
 * loads them. */
static int settle_t5(const char *dir, struct t5_config *t5, struct error *err)
{
    struct pretrained *weights = NULL;
    struct error ignored;
    bool differ = false;
    if (!t5->tie_word_embeddings || t5->scaling == T5_SCALES_IF_TIED ||
        pretrained_open(dir, &weights, &ignored) < 0)
        return 0;
    int result = pretrained_differ(weights, "shared.weight", "lm_head.weight", &differ, err);
    pretrained_close(weights);
    t5->tie_word_embeddings = !differ;
    return result;
}

int pretrained_read_config(const char *dir, struct arena *arena,
                           struct architecture *ret_architecture, struct lines *notes,
                           struct error *err)
{
    struct stat st;
    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
        return error_set(err, ERR_CONFIG,
                         "%s is a file: name the directory with config.json and the weights", dir);
    const char *path = arena_printf(arena, "%s/config.json", dir);
    auto_free char *text = NULL;
    size_t bytes;
    if (file_read(path, CONFIG_JSON_MAX_BYTES, &text, &bytes, err) < 0 ||
        config_json_read(arena, path, text, bytes, ret_architecture, notes, err) < 0)
        return -1;
    return ret_architecture->kind == ARCHITECTURE_T5 ? settle_t5(dir, &ret_architecture->t5, err)
                                                     : 0;
}
