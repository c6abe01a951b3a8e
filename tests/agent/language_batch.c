#include "tests/agent/language_batch.h"

#include "tests/agent/world.h"

enum {
    TOKEN_STREAM = 102,
    IGNORE_STREAM,
    SOURCE_STREAM,
    COUNT_STREAM,
    LENGTH_STREAM,
    TYPE_STREAM,
    TARGET_STREAM,
    LABEL_STREAM,
};

/* Where a row's parts go. */
struct row {
    int64_t sample, T;
    int32_t *tokens, *target;
};

static int32_t draw(int64_t index, uint32_t stream, int64_t most)
{
    return (int32_t)(world_hash((uint32_t)index, stream) % (uint32_t)most);
}

static bool is_ignored(int64_t index, uint32_t one_in)
{
    return world_hash((uint32_t)index, IGNORE_STREAM) % one_in == 0;
}

static void fill_next_token(const struct model *model, const struct row *r)
{
    for (int64_t t = 0; t < r->T; t++) {
        int64_t index = r->sample * (r->T + 1) + t;
        r->tokens[t] = draw(index, TOKEN_STREAM, model->language.V);
        r->target[t] =
            is_ignored(index + 1, 7) ? -100 : draw(index + 1, TOKEN_STREAM, model->language.V);
    }
}

static void fill_translation(const struct model *model, const struct row *r, int32_t *source,
                             int32_t *source_count)
{
    const struct language_shape *l = &model->language;
    int64_t length = 1 + draw(r->sample, LENGTH_STREAM, r->T);
    *source_count = 1 + draw(r->sample, COUNT_STREAM, LANGUAGE_SOURCE_TOKENS);
    for (int64_t t = 0; t < LANGUAGE_SOURCE_TOKENS; t++)
        source[t] = t < *source_count
                        ? draw(r->sample * LANGUAGE_SOURCE_TOKENS + t, SOURCE_STREAM, l->V)
                        : 0;
    for (int64_t t = 0; t < r->T; t++) {
        int64_t index = r->sample * r->T + t;
        bool counts = t < length && !is_ignored(index, 7);
        r->target[t] = counts ? draw(index, TOKEN_STREAM, l->V) : -100;
    }
    r->target[0] = (int32_t)(r->sample * r->T % l->V);
    model_shift_right(r->tokens, r->target, 1, r->T, l->start_id, l->pad_id);
}

static void fill_bert(const struct model *model, const struct row *r, int32_t *count,
                      int32_t *types, int32_t *label)
{
    const struct language_shape *l = &model->language;
    *count = 1 + draw(r->sample, COUNT_STREAM, r->T);
    *label = draw(r->sample, LABEL_STREAM, model->classes ? model->classes : 2);
    for (int64_t t = 0; t < r->T; t++) {
        int64_t index = r->sample * r->T + t;
        bool asked = t < *count && (t == 0 || is_ignored(index, 3));
        r->tokens[t] = t < *count ? draw(index, TOKEN_STREAM, l->V) : 0;
        types[t] = draw(index, TYPE_STREAM, l->token_types);
        r->target[t] = asked ? draw(index, TARGET_STREAM, l->V) : -100;
    }
}

struct language_batch language_batch_make(struct arena *arena, const struct model *model, int64_t T,
                                          int64_t first, int64_t stride, int64_t rows)
{
    int32_t *tokens = arena_array(arena, int32_t, rows * T);
    int32_t *target = arena_array(arena, int32_t, rows * T);
    int32_t *source = arena_array(arena, int32_t, rows * LANGUAGE_SOURCE_TOKENS);
    int32_t *types = arena_array(arena, int32_t, rows * T);
    int32_t *counts = arena_array(arena, int32_t, rows),
            *labels = arena_array(arena, int32_t, rows);
    struct language_batch made = {
        .batch = {.rows = rows, .T = T, .tokens = tokens, .target = target}};
    struct batch *b = &made.batch;
    bool is_bert = model->task != MODEL_NEXT_TOKEN && model->task != MODEL_TRANSLATION;
    for (int64_t i = 0; i < rows; i++) {
        struct row r = {first + i * stride, T, tokens + i * T, target + i * T};
        if (model->task == MODEL_NEXT_TOKEN)
            fill_next_token(model, &r);
        else if (model->task == MODEL_TRANSLATION)
            fill_translation(model, &r, source + i * LANGUAGE_SOURCE_TOKENS, &counts[i]);
        else
            fill_bert(model, &r, &counts[i], types + i * T, &labels[i]);
    }
    if (model->task == MODEL_TRANSLATION) {
        b->source = source;
        b->T_source = LANGUAGE_SOURCE_TOKENS;
        b->source_counts = counts;
    } else if (is_bert) {
        b->token_counts = counts;
        b->token_types = types;
        b->labels = labels;
    }
    for (int64_t i = 0; i < rows * T; i++)
        made.targets += target[i] >= 0;
    if (model->task == MODEL_CLASSES)
        made.targets = rows;
    made.labels = model->task == MODEL_PRETRAINING ? rows : 0;
    return made;
}

double language_loss(const struct model *model, const double *sums)
{
    double loss = sums[0] / sums[2];
    return model->task == MODEL_PRETRAINING ? loss + sums[3] / sums[5] : loss;
}
