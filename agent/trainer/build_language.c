/* The language model that the configuration means: config.json, or the kind's defaults, changed
 * field by field. */
#include "agent/trainer/build.h"

#include "agent/config/config_model.h"
#include "agent/models/config_json.h"
#include "agent/text/tokenizer.h"
#include "base/file.h"

static int read_config(const char *directory, struct arena *arena, struct architecture *a,
                       struct error *err)
{
    const char *path = arena_printf(arena, "%s/config.json", directory);
    auto_free char *text = NULL;
    size_t bytes;
    struct lines notes;
    lines_init(&notes, arena);
    if (file_read(path, CONFIG_JSON_MAX_BYTES, &text, &bytes, err) ||
        config_json_read(arena, path, text, bytes, a, &notes, err))
        return error_wrap(err, "model.name_or_path");
    return 0;
}

int build_architecture(const struct agent_config *c, struct arena *arena,
                       struct architecture *ret_architecture, struct error *err)
{
    struct architecture published;
    const char *directory = c->model.name_or_path;
    if (directory[0] && read_config(directory, arena, &published, err))
        return -1;
    return config_architecture(c, directory[0] ? &published : NULL, ret_architecture, err);
}

int build_tokenizer(const struct agent_config *c, const struct model *model,
                    struct tokenizer **ret_tokenizer, struct error *err)
{
    const char *path = c->data.tokenizer[0] ? c->data.tokenizer : c->model.name_or_path;
    struct tokenizer *tokenizer = NULL;
    *ret_tokenizer = NULL;
    if (model->language.V == 0 || !path[0])
        return 0;
    int result = tokenizer_open(path, &tokenizer, err);
    if (result && err->code == ERR_NOT_FOUND && !c->data.tokenizer[0])
        return 0;
    if (result || tokenizer_check_fits(tokenizer, model->language.V, err)) {
        tokenizer_close(tokenizer);
        return error_wrap(err, "data.tokenizer");
    }
    *ret_tokenizer = tokenizer;
    return 0;
}
