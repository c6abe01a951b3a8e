/* The language model that the configuration means: config.json, or the kind's defaults, changed
 * field by field. */
#include "agent/trainer/build.h"

#include "agent/checkpoint/pretrained_config.h"
#include "agent/config/config_model.h"
#include "agent/text/tokenizer.h"

int build_architecture(const struct agent_config *c, struct arena *arena,
                       struct architecture *ret_architecture, struct error *err)
{
    struct architecture published;
    const char *directory = c->model.name_or_path;
    if (directory[0] && pretrained_read_config(directory, arena, &published, NULL, err))
        return error_wrap(err, "model.name_or_path");
    return config_architecture(c, directory[0] ? &published : NULL, ret_architecture, err);
}

void build_warn(struct config *config, struct arena *arena)
{
    struct architecture a;
    struct error ignored;
    if (config_is_language(&config->value) &&
        build_architecture(&config->value, arena, &a, &ignored) == 0)
        config_warn_architecture(config, &a, arena);
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
