#include "agent/checkpoint/pretrained_config.h"

#include "agent/checkpoint/pretrained.h"
#include "agent/models/config_json.h"
#include "agent/models/families.h"
#include "base/file.h"

#include <sys/stat.h>

/* Where config.json leaves open whether the head is the embedding, the weights decide. Who loads
 * the weights reports why they cannot be opened. */
static int settle_tie(const char *dir, struct architecture *a, struct error *err)
{
    const struct model_family *family = a->family;
    struct pretrained *weights = NULL;
    struct error ignored;
    bool differ = false, *tied = family->undetermined_tie ? family->undetermined_tie(a) : NULL;
    if (!tied || pretrained_open(dir, &weights, &ignored) < 0)
        return 0;
    int result = pretrained_tensors_differ(weights, family->embedding, family->head, &differ, err);
    pretrained_close(weights);
    *tied = !differ;
    return result;
}

int pretrained_read_config(const char *dir, struct arena *arena,
                           struct architecture *ret_architecture, struct lines *warnings,
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
        config_json_read(arena, path, text, bytes, ret_architecture, warnings, err) < 0)
        return -1;
    return settle_tie(dir, ret_architecture, err);
}
