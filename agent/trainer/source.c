#include "agent/trainer/source.h"

int source_open(const struct agent_config *config, enum source_split split,
                const struct model *model, const struct source_place *place,
                struct source **ret_source, struct error *err)
{
    switch (model->task) {
    case MODEL_IMAGES:
        return source_images_open(config, split, model, place, ret_source, err);
    case MODEL_NEXT_TOKEN:
        return source_tokens_open(config, split, model, place, ret_source, err);
    default:
        return source_examples_open(config, split, model, place, ret_source, err);
    }
}

void source_close(struct source *source)
{
    if (source)
        source->fn->close(source);
}
