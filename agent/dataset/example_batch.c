/* Rows are first written as wide as they can be, then brought together to the batch's width. */
#include "agent/dataset/example_batch.h"

#include <string.h>

enum { PAIR_ATTEMPTS = 10 };

int64_t example_batch_size(const struct example_batcher *batcher, int64_t rows)
{
    return rows * (3 * batcher->max_tokens + batcher->max_source + 3);
}

void example_batch_layout(struct example_batch *batch, const struct example_batcher *batcher,
                          int64_t rows, int32_t *memory)
{
    int64_t ids = rows * batcher->max_tokens;
    *batch = (struct example_batch){.tokens = memory};
    batch->target = batch->tokens + ids;
    batch->token_types = batch->target + ids;
    batch->source = batch->token_types + ids;
    batch->token_counts = batch->source + rows * batcher->max_source;
    batch->source_counts = batch->token_counts + rows;
    batch->labels = batch->source_counts + rows;
}

/* ---- rows of [rows, most] to [rows, T] ---- */

static int64_t width_of(const struct example_batcher *b, const int32_t *counts, int64_t rows,
                        int64_t most)
{
    int64_t longest = 1;
    for (int64_t i = 0; i < rows; i++)
        if (counts[i] > longest)
            longest = counts[i];
    int64_t width = (longest + b->multiple - 1) / b->multiple * b->multiple;
    return b->pad_to_max || width > most ? most : width;
}

/* Upwards row by row, in place: a row's new place is never behind its old one. */
static void narrow(int32_t *ids, const int32_t *counts, int64_t rows, int64_t most, int64_t T,
                   int32_t pad)
{
    for (int64_t i = 0; i < rows; i++) {
        memmove(ids + i * T, ids + i * most, (size_t)counts[i] * sizeof *ids);
        for (int64_t t = counts[i]; t < T; t++)
            ids[i * T + t] = pad;
    }
}

/* ---- sequence to sequence ---- */

static void fill_translation(const struct example_batcher *b, const int64_t *samples,
                             struct example_batch *batch)
{
    const struct examples *x = b->examples;
    int64_t rows = batch->rows;
    int32_t *counts = batch->token_counts;
    for (int64_t i = 0; i < rows; i++) {
        const struct example *item = &x->items[samples[i]];
        const int32_t *ids = x->ids + item->begin;
        size_t source = (size_t)item->counts[0], target = (size_t)item->counts[1];
        memcpy(batch->source + i * b->max_source, ids, source * sizeof *ids);
        memcpy(batch->target + i * b->max_tokens, ids + source, target * sizeof *ids);
        batch->source_counts[i] = item->counts[0];
        counts[i] = item->counts[1];
        batch->targets += item->counts[1];
    }
    batch->T_source = width_of(b, batch->source_counts, rows, b->max_source);
    batch->T = width_of(b, counts, rows, b->max_tokens);
    narrow(batch->source, batch->source_counts, rows, b->max_source, batch->T_source, b->pad);
    narrow(batch->target, counts, rows, b->max_tokens, batch->T, b->label_pad);
    /* Padding that counts, as T5's scripts have it where the label is not set to -100: then each
     * place is a target. */
    if (b->label_pad >= 0)
        batch->targets = rows * batch->T;
}

/* ---- pairs of sentences ---- */

/* The second sentence of a sample: the next, or one of another document. */
static int64_t second_of(const struct example_batcher *b, uint64_t epoch, int64_t sample,
                         int64_t first, int32_t *ret_label)
{
    const struct examples *x = b->examples;
    uint64_t seed = b->masking.seed;
    *ret_label = 0;
    if (!masking_next_is_random(seed, epoch, sample))
        return first + 1;
    for (int attempt = 0; attempt < PAIR_ATTEMPTS; attempt++) {
        int64_t other = masking_random_next(seed, epoch, sample, attempt, x->item_count);
        if (x->items[other].label == x->items[first].label)
            continue;
        *ret_label = 1;
        return other;
    }
    return first + 1; /* nearly all sentences are of one document */
}

/* Writes bos first eos second eos. */
static void fill_pair(const struct example_batcher *b, uint64_t epoch, int64_t sample, int64_t row,
                      struct example_batch *batch)
{
    const struct examples *x = b->examples;
    int64_t first = x->firsts[sample];
    const struct example *one = &x->items[first];
    const struct example *two = &x->items[second_of(b, epoch, sample, first, &batch->labels[row])];
    int64_t ones = one->counts[0], twos = two->counts[0];
    examples_cut_pair(b->max_tokens - 3, &ones, &twos);
    int32_t *ids = batch->tokens + row * b->max_tokens;
    int32_t *types = batch->token_types + row * b->max_tokens;
    *ids++ = b->bos;
    memcpy(ids, x->ids + one->begin, (size_t)ones * sizeof *ids);
    ids[ones] = b->eos;
    ids += ones + 1;
    memcpy(ids, x->ids + two->begin, (size_t)twos * sizeof *ids);
    ids[twos] = b->eos;
    for (int64_t t = 0; t < ones + twos + 3; t++)
        /* BERT's segments (token_type_ids): 0 for [CLS] first [SEP], 1 for second [SEP]. */
        types[t] = t >= ones + 2;
    batch->token_counts[row] = (int32_t)(ones + twos + 3);
}

/* ---- rows of one sequence ---- */

static void fill_sequence(const struct example_batcher *b, int64_t sample, int64_t row,
                          struct example_batch *batch)
{
    const struct examples *x = b->examples;
    const struct example *item = &x->items[sample];
    int64_t count = item->counts[0] + item->counts[1];
    memcpy(batch->tokens + row * b->max_tokens, x->ids + item->begin,
           (size_t)count * sizeof *x->ids);
    for (int64_t t = 0; t < count; t++)
        batch->token_types[row * b->max_tokens + t] = t >= item->counts[0];
    batch->token_counts[row] = (int32_t)count;
    if (b->kind == EXAMPLES_CLASSES)
        batch->labels[row] = item->label;
}

static void fill_sequences(const struct example_batcher *b, uint64_t epoch, const int64_t *samples,
                           struct example_batch *batch)
{
    int64_t rows = batch->rows;
    for (int64_t i = 0; i < rows; i++) {
        if (b->kind == EXAMPLES_PRETRAINING)
            fill_pair(b, epoch, samples[i], i, batch);
        else
            fill_sequence(b, samples[i], i, batch);
        int64_t at = i * b->max_tokens;
        if (b->kind != EXAMPLES_CLASSES)
            batch->targets +=
                masking_apply(&b->masking, epoch, samples[i], batch->tokens + at,
                              batch->token_counts[i], batch->target + at, TOKENS_IGNORED);
    }
    const int32_t *counts = batch->token_counts;
    batch->T = width_of(b, counts, rows, b->max_tokens);
    narrow(batch->tokens, counts, rows, b->max_tokens, batch->T, b->pad);
    narrow(batch->token_types, counts, rows, b->max_tokens, batch->T, 0);
    narrow(batch->target, counts, rows, b->max_tokens, batch->T, TOKENS_IGNORED);
}

void example_batch_fill(const struct example_batcher *batcher, uint64_t epoch,
                        const int64_t *samples, int64_t rows, struct example_batch *batch)
{
    batch->rows = rows;
    batch->T_source = batch->targets = 0;
    if (batcher->kind == EXAMPLES_TRANSLATION)
        fill_translation(batcher, samples, batch);
    else
        fill_sequences(batcher, epoch, samples, batch);
}
