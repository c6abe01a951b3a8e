/* Rows of texts, tokenized once: for T5 and BERT. An epoch's last rows are filled up with its first
 * ones, as DistributedSampler does, so all ranks have equally many. */
#include "agent/batches/batch_source.h"
#include "agent/dataset/example_batch.h"
#include "agent/dataset/sampler.h"
#include "agent/models/language.h"
#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATE_BYTES = 64 };

struct rows {
    struct batch_source head; /* first: the functions get a pointer to it */
    const struct model *model;
    struct examples *examples;
    struct example_batcher batcher;
    struct sampler sampler;
    bool shuffle, drop_last, evaluates;
    uint64_t seed, epoch;
    int64_t *order;             /* [examples->count], of `epoch`; NULL: not shuffled */
    int64_t *samples;           /* [batch_rows], scratch */
    int64_t next;               /* batch to be fetched, counted from sampler.first on */
    int64_t max_batches;        /* batches at once */
    struct example_batch *host; /* [2, max_batches], in the prefetcher's sets */
    char state[STATE_BYTES];    /* of the data: what a checkpoint must find again */
};

static struct rows *of(struct batch_source *source)
{
    return (struct rows *)source;
}

static int seek(struct batch_source *source, int64_t epoch, int64_t samples, const char *state,
                struct error *err)
{
    struct rows *s = of(source);
    if (state[0] && strcmp(state, s->state) != 0)
        return error_set(err, ERR_INPUT,
                         "%s: not the data that the checkpoint is in the middle of (%s there, %s "
                         "here): give the same data, tokenizer and data.* settings",
                         s->head.what, state, s->state);
    if (s->order && s->epoch != (uint64_t)epoch)
        sampler_permute(s->examples->count, s->seed, (uint64_t)epoch, s->order);
    s->epoch = (uint64_t)epoch;
    s->sampler.first = samples < s->examples->count ? samples : s->examples->count;
    s->next = 0;
    return 0;
}

static int64_t batches_left(const struct rows *s)
{
    int64_t rows = sampler_count(&s->sampler), B = s->head.batch_rows;
    return (s->drop_last ? rows / B : (rows + B - 1) / B) - s->next;
}

/* A row that is there twice, so that all ranks have as many, does not count a second time. */
static void ignore_row(const struct rows *s, int64_t row, struct example_batch *batch)
{
    enum model_task task = s->model->task;
    for (int64_t i = row * batch->T; task != MODEL_CLASSES && i < (row + 1) * batch->T; i++) {
        batch->targets -= batch->target[i] >= 0;
        batch->target[i] = TOKENS_IGNORED;
    }
    if (task == MODEL_CLASSES || task == MODEL_PRETRAINING)
        batch->labels[row] = TOKENS_IGNORED;
}

static void fill(struct rows *s, int32_t *memory, struct example_batch *batch)
{
    example_batch_layout(batch, &s->batcher, s->head.batch_rows, memory);
    int64_t first = s->next++ * s->head.batch_rows, rows = sampler_count(&s->sampler) - first;
    if (rows > s->head.batch_rows)
        rows = s->head.batch_rows;
    for (int64_t i = 0; i < rows; i++)
        s->samples[i] = sampler_index(&s->sampler, s->order, first + i);
    example_batch_fill(&s->batcher, s->epoch, s->samples, rows, batch);
    if (s->model->task == MODEL_TRANSLATION)
        model_shift_right(batch->tokens, batch->target, rows, batch->T, s->model->language.start_id,
                          s->model->language.pad_id);
    for (int64_t i = 0; s->evaluates && i < rows; i++)
        if (sampler_repeats(&s->sampler, first + i))
            ignore_row(s, i, batch);
}

static int fetch(struct batch_source *source, int64_t max_batches, struct step_batches *ret_fetched,
                 struct error *err)
{
    (void)err;
    struct rows *s = of(source);
    int64_t left = batches_left(s);
    assert(max_batches <= s->max_batches);
    bool classes = s->model->task == MODEL_CLASSES;
    *ret_fetched =
        (struct step_batches){.batches = left < max_batches ? left : max_batches, .same = classes};
    for (int64_t i = 0; i < ret_fetched->batches; i++) {
        struct example_batch *batch =
            &s->host[prefetcher_next_set(s->head.prefetcher) * s->max_batches + i];
        fill(s, prefetcher_next(s->head.prefetcher, i), batch);
        ret_fetched->rows += batch->rows;
        ret_fetched->tokens += batch->rows * (batch->T + batch->T_source);
        ret_fetched->targets += classes ? batch->rows : batch->targets;
        ret_fetched->labels += s->model->task == MODEL_PRETRAINING ? batch->rows : 0;
    }
    return 0;
}

static struct batch batch(struct batch_source *source, int64_t i)
{
    struct rows *s = of(source);
    const struct example_batch *host =
        &s->host[prefetcher_set(s->head.prefetcher) * s->max_batches + i];
    struct example_batch device;
    example_batch_layout(&device, &s->batcher, s->head.batch_rows,
                         prefetcher_take(s->head.prefetcher, i));
    enum model_task task = s->model->task;
    bool translation = task == MODEL_TRANSLATION, classes = task == MODEL_CLASSES;
    return (struct batch){
        .rows = host->rows,
        .tokens = device.tokens,
        .T = host->T,
        .target = classes ? NULL : device.target,
        .token_counts = translation ? NULL : device.token_counts,
        .token_types = translation ? NULL : device.token_types,
        .source = translation ? device.source : NULL,
        .T_source = host->T_source,
        .source_counts = translation ? device.source_counts : NULL,
        .labels = classes || task == MODEL_PRETRAINING ? device.labels : NULL,
    };
}

static const char *state(struct batch_source *source)
{
    return of(source)->state;
}

static void close_rows(struct batch_source *source)
{
    struct rows *s = of(source);
    prefetcher_close(s->head.prefetcher);
    examples_close(s->examples);
    free(s->host);
    free(s->samples);
    free(s->order);
    free(s);
}

/* ---- opening ---- */

static enum examples_kind kind_of(enum model_task task)
{
    switch (task) {
    case MODEL_TRANSLATION:
        return EXAMPLES_TRANSLATION;
    case MODEL_CLASSES:
        return EXAMPLES_CLASSES;
    case MODEL_PRETRAINING:
        return EXAMPLES_PRETRAINING;
    default:
        return EXAMPLES_MASKED;
    }
}

/* Tokens of a row that is one sequence. */
static int longest_of(const struct agent_config *c, const struct model *model,
                      int64_t *ret_max_tokens, struct error *err)
{
    enum { LEAST = 8 }; /* bos, two eos, and a little text */
    if (language_sample_tokens(model, c->data.max_seq_length, ret_max_tokens, err) < 0)
        return -1;
    if (*ret_max_tokens < LEAST)
        return error_set(err, ERR_CONFIG,
                         "data.max_seq_length: %lld tokens are too few: at least %d",
                         (long long)*ret_max_tokens, LEAST);
    return 0;
}

static struct examples_options options_of(const struct agent_config *c, enum data_split split,
                                          const struct model *model,
                                          const struct token_encoder *encoder)
{
    return (struct examples_options){
        .kind = kind_of(model->task),
        .data = batch_source_token_options(c, split, model, encoder),
        .model_names = model->label_names,
        .classes = model->classes,
        .max_source = c->data.max_source_length,
        .max_target = c->data.max_target_length,
        .may_cut = c->data.max_seq_length > 0,
    };
}

static struct example_batcher batcher_of(const struct agent_config *c, const struct rows *s,
                                         const struct examples_options *options)
{
    const struct token_encoder *encoder = &options->data.encoder;
    bool translation = options->kind == EXAMPLES_TRANSLATION;
    return (struct example_batcher){
        .kind = options->kind,
        .max_tokens = translation ? options->max_target : options->max_tokens,
        .max_source = translation ? options->max_source : 0,
        .pad_to_max = c->data.padding == PADDING_MAX_LENGTH,
        .multiple = c->data.pad_to_multiple_of,
        .pad = encoder->pad >= 0 ? encoder->pad : s->model->language.pad_id,
        .label_pad = (int32_t)c->data.label_pad_token_id,
        .bos = encoder->bos,
        .eos = encoder->eos,
        .masking = {.probability = c->data.mlm_probability,
                    .mask = encoder->mask,
                    .vocabulary = encoder->vocabulary,
                    .kept = {encoder->bos, encoder->eos, encoder->pad, encoder->unk, encoder->mask},
                    .seed = s->seed},
    };
}

static int open_examples(struct rows *s, const struct agent_config *c, enum data_split split,
                         const struct token_encoder *encoder, struct error *err)
{
    struct examples_options options = options_of(c, split, s->model, encoder);
    bool masks = options.kind == EXAMPLES_MASKED || options.kind == EXAMPLES_PRETRAINING;
    if (options.kind != EXAMPLES_TRANSLATION && longest_of(c, s->model, &options.max_tokens, err))
        return -1;
    if (c->data.label_pad_token_id >= s->model->language.V)
        return error_set(
            err, ERR_CONFIG, "data.label_pad_token_id: the model has no token %lld, only 0 .. %lld",
            (long long)c->data.label_pad_token_id, (long long)s->model->language.V - 1);
    if (masks && encoder->encode && encoder->mask < 0)
        return error_set(err, ERR_CONFIG,
                         "data.tokenizer: it has no mask token ([MASK]), which hides words");
    s->batcher = batcher_of(c, s, &options);
    s->head.T = s->batcher.max_tokens + s->batcher.max_source;
    if (examples_open(&options, &s->examples, err))
        return -1;
    s->batcher.examples = s->examples;
    s->head.files = s->examples->name;
    s->head.format = s->examples->format;
    return 0;
}

static int open_buffers(struct rows *s, struct stream *stream, struct error *err)
{
    int64_t size = example_batch_size(&s->batcher, s->head.batch_rows);
    s->host = xcalloc(2 * (size_t)s->max_batches, sizeof *s->host);
    s->samples = xcalloc((size_t)s->head.batch_rows, sizeof *s->samples);
    return prefetcher_open(stream, (size_t)size * sizeof(int32_t), s->max_batches, "batch rows",
                           &s->head.prefetcher, err);
}

static void begin(struct rows *s, const struct batch_source_env *env)
{
    int64_t count = s->examples->count;
    s->sampler = (struct sampler){.items = count, .rank = env->rank, .world_size = env->size};
    s->head.samples = count;
    s->head.batches = batches_left(s);
    snprintf(s->state, sizeof s->state, "samples=%lld data=%016llx", (long long)count,
             (unsigned long long)s->examples->fingerprint);
    if (!s->shuffle)
        return;
    s->order = xmalloc((size_t)count * sizeof *s->order);
    sampler_permute(count, s->seed, s->epoch, s->order);
}

int batch_source_examples_open(const struct agent_config *config, enum data_split split,
                               const struct model *model, const struct batch_source_env *env,
                               struct batch_source **ret_source, struct error *err)
{
    static const struct batch_source_functions functions = {seek, fetch, batch, state, close_rows};
    bool train = split == SPLIT_TRAIN;
    struct rows *s = xcalloc(1, sizeof *s);
    s->head.fn = &functions;
    s->head.what = batch_source_dataset(config, split).dataset;
    s->head.batch_rows = train ? config->data.train_batch_size : config->data.eval_batch_size;
    s->model = model;
    s->max_batches = env->max_batches;
    s->seed = (uint64_t)config->runtime.seed;
    s->shuffle = train && config->data.shuffle;
    s->drop_last = train && config->data.drop_last;
    s->evaluates = !train;
    if (open_examples(s, config, split, &env->encoder, err) || open_buffers(s, env->stream, err)) {
        close_rows(&s->head);
        return -1;
    }
    begin(s, env);
    *ret_source = &s->head;
    return 0;
}
