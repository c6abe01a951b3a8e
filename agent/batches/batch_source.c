#include "agent/batches/batch_source.h"

#include <assert.h>

int batch_source_open(const struct agent_config *config, enum data_split split,
                      const struct model *model, const struct batch_source_env *env,
                      struct batch_source **ret_source, struct error *err)
{
    switch (model->task) {
    case MODEL_IMAGES:
        return batch_source_images_open(config, split, model, env, ret_source, err);
    case MODEL_NEXT_TOKEN:
        return batch_source_tokens_open(config, split, model, env, ret_source, err);
    default:
        return batch_source_examples_open(config, split, model, env, ret_source, err);
    }
}

struct token_dataset batch_source_dataset(const struct agent_config *c, enum data_split split)
{
    struct token_dataset dataset = c->data.source;
    if (split == SPLIT_TRAIN || !c->data.eval_dataset[0])
        return dataset;
    dataset.dataset = c->data.eval_dataset;
    dataset.dataset_config_name = ""; /* a subdirectory of the other one */
    dataset.any_split = true;
    return dataset;
}

struct token_options batch_source_token_options(const struct agent_config *c, enum data_split split,
                                                const struct model *model,
                                                const struct token_encoder *encoder)
{
    bool train = split == SPLIT_TRAIN;
    return (struct token_options){
        .source = batch_source_dataset(c, split),
        .split = train ? c->data.train_split : c->data.eval_split,
        .max_rows = train ? c->data.train_size : c->data.eval_size,
        .shuffle = train && c->data.shuffle,
        .seed = (uint64_t)c->runtime.seed,
        .strict = c->runtime.strict,
        .vocab_size = model->language.V,
        .threads = (int)c->data.num_workers,
        .encoder = *encoder,
    };
}

void batch_source_close(struct batch_source *source)
{
    if (source)
        source->fn->close(source);
}

int batch_source_seek(struct batch_source *source, int64_t epoch, int64_t samples,
                      const char *state, struct error *err)
{
    if (source->prefetcher)
        prefetcher_reset(source->prefetcher);
    source->is_ahead = false;
    return source->fn->seek(source, epoch, samples, state, err);
}

void batch_source_fetch_ahead(struct batch_source *source, int64_t max_batches)
{
    struct batch_source *s = source;
    assert(!s->is_ahead);
    s->is_ahead = true;
    s->ahead_result = s->fn->fetch(s, max_batches, &s->ahead, &s->ahead_error);
    if (s->ahead_result == 0 && s->prefetcher)
        prefetcher_filled(s->prefetcher, s->ahead.batches);
}

const struct step_batches *batch_source_ahead(const struct batch_source *source)
{
    return source->is_ahead && source->ahead_result == 0 ? &source->ahead : NULL;
}

int batch_source_next(struct batch_source *source, int64_t max_batches,
                      struct step_batches *ret_fetched, struct error *err)
{
    if (!source->is_ahead)
        batch_source_fetch_ahead(source, max_batches);
    source->is_ahead = false;
    if (source->ahead_result) {
        *err = source->ahead_error;
        return -1;
    }
    if (source->prefetcher)
        prefetcher_swap(source->prefetcher);
    *ret_fetched = source->ahead;
    return 0;
}

struct batch batch_source_batch(struct batch_source *source, int64_t i)
{
    return source->fn->batch(source, i);
}

const char *batch_source_state(struct batch_source *source)
{
    return source->fn->state(source);
}
