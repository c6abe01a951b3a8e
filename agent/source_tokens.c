/* Windows of token ids: micro-batch by micro-batch from the one global sequence of a token source.
 * Row r of rank k's micro-batch is sample r * W + k of the global one. An epoch's last global batch
 * may not be full: what is missing is rows without targets, which count for nothing. */
#include "agent/source.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct windows {
    struct source head; /* first: the functions get a pointer to it */
    struct stream *stream;
    struct token_source *tokens;
    int rank, size;
    bool drop_last;
    int64_t T, most, fetched;
    int32_t *host_ids, *host_targets; /* [most, batch_rows, T] */
    void *ids, *targets;              /* [batch_rows, T] on the device */
    char *position;                   /* behind what was fetched; NULL: not asked for yet */
};

static struct windows *of(struct source *source)
{
    return (struct windows *)source;
}

static int seek(struct source *source, int64_t epoch, int64_t samples, const char *state,
                struct error *err)
{
    struct windows *s = of(source);
    s->fetched = 0;
    if (state[0]) {
        struct token_position position;
        return token_position_parse("the checkpoint's place in the data", state, strlen(state),
                                    &position, err) ||
               token_source_seek(s->tokens, &position, err);
    }
    int64_t skipped;
    return token_source_set_epoch(s->tokens, epoch, err) ||
           token_source_skip(s->tokens, samples, &skipped, err);
}

static void fill(int32_t *ids, int32_t value, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        ids[i] = value;
}

/* The next global batch: this rank's rows to ids and targets, the others' skipped. *ret_samples: of
 * all ranks. */
static int read_batch(struct windows *s, int32_t *ids, int32_t *targets, int64_t *ret_samples,
                      struct error *err)
{
    *ret_samples = 0;
    bool end = false;
    int64_t rows = 0;
    for (int64_t i = 0; i < s->head.batch_rows * s->size && !end; i++) {
        bool mine = i % s->size == s->rank;
        int64_t at = rows * s->T;
        if (token_source_next(s->tokens, mine ? ids + at : NULL, mine ? targets + at : NULL, &end,
                              err))
            return -1;
        rows += mine && !end;
        *ret_samples += !end;
    }
    int64_t missing = (s->head.batch_rows - rows) * s->T;
    fill(ids + rows * s->T, 0, missing);
    fill(targets + rows * s->T, TOKENS_IGNORED, missing);
    return 0;
}

static int64_t count_targets(const int32_t *targets, int64_t count)
{
    int64_t counted = 0;
    for (int64_t i = 0; i < count; i++)
        counted += targets[i] >= 0;
    return counted;
}

static int fetch(struct source *source, int64_t most, struct source_fetched *ret_fetched,
                 struct error *err)
{
    struct windows *s = of(source);
    assert(most <= s->most);
    int64_t batch = s->head.batch_rows * s->T, samples = 1;
    s->fetched = 0;
    while (s->fetched < most) {
        int32_t *ids = s->host_ids + s->fetched * batch;
        if (read_batch(s, ids, s->host_targets + s->fetched * batch, &samples, err))
            return -1;
        if (samples == 0 || (s->drop_last && samples < s->head.batch_rows * s->size))
            break;
        s->fetched++;
    }
    free(s->position);
    s->position = NULL;
    *ret_fetched = (struct source_fetched){
        .batches = s->fetched,
        .rows = s->fetched * s->head.batch_rows,
        .targets = count_targets(s->host_targets, s->fetched * batch),
        .T = s->T,
    };
    return 0;
}

static struct batch batch(struct source *source, int64_t i)
{
    struct windows *s = of(source);
    assert(i >= 0 && i < s->fetched);
    int64_t count = s->head.batch_rows * s->T;
    size_t bytes = (size_t)count * sizeof(int32_t);
    stream_copy(s->stream, s->ids, s->host_ids + i * count, bytes);
    stream_copy(s->stream, s->targets, s->host_targets + i * count, bytes);
    return (struct batch){
        .rows = s->head.batch_rows, .tokens = s->ids, .target = s->targets, .T = s->T};
}

static const char *state(struct source *source)
{
    struct windows *s = of(source);
    struct token_position position;
    if (!s->position) {
        token_source_tell(s->tokens, &position);
        s->position = token_position_print(&position);
    }
    return s->position;
}

static void close_windows(struct source *source)
{
    struct windows *s = of(source);
    struct device *device = stream_device(s->stream);
    device_free(device, s->ids);
    device_free(device, s->targets);
    free(s->host_ids);
    free(s->host_targets);
    free(s->position);
    token_source_close(s->tokens);
    free(s);
}

static int open_buffers(struct windows *s, struct error *err)
{
    struct device *device = stream_device(s->stream);
    size_t bytes = (size_t)(s->head.batch_rows * s->T) * sizeof(int32_t);
    s->host_ids = xmalloc((size_t)s->most * bytes);
    s->host_targets = xmalloc((size_t)s->most * bytes);
    if (device_alloc(device, MEMORY_INPUT, bytes, "batch tokens", &s->ids, err))
        return -1;
    return device_alloc(device, MEMORY_INPUT, bytes, "batch targets", &s->targets, err);
}

static struct token_options options_of(const struct agent_config *c, enum source_split split,
                                       const struct model *model, int64_t T,
                                       struct token_encoder encoder)
{
    bool train = split == SOURCE_TRAIN;
    return (struct token_options){
        .dataset = c->data.dataset,
        .config = c->data.dataset_config_name,
        .root = c->data.root,
        .split = train ? c->data.train_split : c->data.eval_split,
        .max_rows = train ? c->data.train_size : c->data.eval_size,
        .format = (enum token_format)c->data.format,
        .window = T,
        .packing = (enum token_packing)c->data.packing,
        .add_bos = (enum token_affix)c->data.add_bos,
        .add_eos = (enum token_affix)c->data.add_eos,
        .text_column = c->data.text_column,
        .shuffle = train && c->data.shuffle,
        .shuffle_buffer = c->data.shuffle_buffer,
        .seed = (uint64_t)c->runtime.seed,
        .strict = c->runtime.strict,
        .vocab_size = model->language.V,
        .threads = (int)c->data.num_workers,
        .encoder = encoder,
    };
}

/* Tokens of a sample: what was asked for, else all that the model takes. */
static int window_of(const struct agent_config *c, const struct model *model, int64_t *ret_T,
                     struct error *err)
{
    int64_t most = model->language.max_tokens, asked = c->data.max_seq_length;
    if (asked > most)
        return error_set(err, ERR_CONFIG,
                         "data.max_seq_length: %lld tokens, but the model has only %lld positions",
                         (long long)asked, (long long)most);
    *ret_T = asked > 0 ? asked : most;
    return 0;
}

int source_tokens_open(const struct agent_config *config, enum source_split split,
                       const struct model *model, const struct source_place *place,
                       struct source **ret_source, struct error *err)
{
    static const struct source_functions functions = {seek, fetch, batch, state, close_windows};
    bool train = split == SOURCE_TRAIN;
    struct windows *s = xcalloc(1, sizeof *s);
    s->head.fn = &functions;
    s->head.what = config->data.dataset;
    s->head.batch_rows = train ? config->data.train_batch_size : config->data.eval_batch_size;
    s->stream = place->stream;
    s->rank = place->rank;
    s->size = place->size;
    s->most = place->most;
    s->drop_last = train && config->data.drop_last;
    if (window_of(config, model, &s->T, err))
        goto fail;
    struct token_options options = options_of(config, split, model, s->T, place->encoder);
    if (token_source_open(&options, &s->tokens, err))
        goto fail;
    int64_t global = s->head.batch_rows * s->size;
    s->head.samples = token_source_samples(s->tokens);
    s->head.batches =
        s->head.samples < 0 ? -1 : (s->head.samples + (s->drop_last ? 0 : global - 1)) / global;
    if (open_buffers(s, err))
        goto fail;
    *ret_source = &s->head;
    return 0;
fail:
    close_windows(&s->head);
    return -1;
}
