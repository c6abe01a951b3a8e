#include "agent/batches/source.h"

#include <assert.h>

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

int source_seek(struct source *source, int64_t epoch, int64_t samples, const char *state,
                struct error *err)
{
    feed_reset(source->feed);
    source->is_ahead = false;
    return source->fn->seek(source, epoch, samples, state, err);
}

void source_fetch_ahead(struct source *source, int64_t most)
{
    struct source *s = source;
    assert(!s->is_ahead);
    s->is_ahead = true;
    s->ahead_result = s->fn->fetch(s, most, &s->ahead, &s->ahead_error);
    if (s->ahead_result == 0)
        feed_filled(s->feed, s->ahead.batches);
}

const struct source_fetched *source_ahead(const struct source *source)
{
    return source->is_ahead && source->ahead_result == 0 ? &source->ahead : NULL;
}

int source_next(struct source *source, int64_t most, struct source_fetched *ret_fetched,
                struct error *err)
{
    if (!source->is_ahead)
        source_fetch_ahead(source, most);
    source->is_ahead = false;
    if (source->ahead_result) {
        *err = source->ahead_error;
        return -1;
    }
    feed_turn(source->feed);
    *ret_fetched = source->ahead;
    return 0;
}

struct batch source_batch(struct source *source, int64_t i)
{
    return source->fn->batch(source, i);
}

const char *source_state(struct source *source)
{
    return source->fn->state(source);
}
