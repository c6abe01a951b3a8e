/* Windows of token ids for language models, as a token loader makes them ready. What is missing of
 * an epoch's last batch is rows without targets, which count for nothing. */
#include "agent/batches/batch_source.h"
#include "agent/dataset/token_loader.h"
#include "agent/models/language.h"
#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct windows {
    struct batch_source head; /* first: the functions get a pointer to it */
    struct token_loader *loader;
    int64_t max_batches;             /* micro-batches of a step */
    struct token_position behind[2]; /* what is in the prefetcher's sets */
    char *position;                  /* of `behind`, as reported last */
    struct token_bad_lines bad;      /* as last looked at */
    int reported_bad;                /* of bad.why */
    bool reported_total;
    char *notice; /* NULL: none */
};

static struct windows *of(struct batch_source *source)
{
    return (struct windows *)source;
}

static size_t batch_bytes(const struct windows *s)
{
    return (size_t)(s->head.batch_rows * s->head.T) * sizeof(int32_t);
}

/* In a micro-batch, which begins with the ids. */
static void *targets_of(const struct windows *s, void *ids)
{
    return (char *)ids + prefetcher_aligned(batch_bytes(s));
}

static int start(struct windows *s, int64_t epoch, int64_t samples, const char *state,
                 struct error *err)
{
    struct token_position position;
    if (!state[0])
        return token_loader_start(s->loader, epoch, samples, err);
    if (token_position_parse("the checkpoint's place in the data", state, strlen(state), &position,
                             err))
        return -1;
    return token_loader_resume(s->loader, &position, err);
}

static int seek(struct batch_source *source, int64_t epoch, int64_t samples, const char *state,
                struct error *err)
{
    struct windows *s = of(source);
    if (start(s, epoch, samples, state, err))
        return -1;
    token_loader_tell(s->loader, &s->behind[prefetcher_set(s->head.prefetcher)]);
    return 0;
}

/* Names the first lines that were left out, and reports how many there were once an epoch is over:
 * the next one has the same. */
static const char *look_for_bad_lines(struct windows *s, bool epoch_ended)
{
    struct str text;
    free(s->notice);
    s->notice = NULL;
    token_source_bad_lines(token_loader_source(s->loader), &s->bad);
    bool tells_total = epoch_ended && !s->reported_total && s->bad.bad > 0;
    if (s->reported_bad == s->bad.kept && !tells_total)
        return NULL;
    str_init(&text, sizeof s->bad);
    for (; s->reported_bad < s->bad.kept; s->reported_bad++)
        str_printf(&text, "%s; ", s->bad.why[s->reported_bad]);
    str_printf(&text, "%lld of %lld lines of the data were left out%s", (long long)s->bad.bad,
               (long long)s->bad.lines, tells_total ? "" : " so far");
    if (!tells_total && s->reported_bad == TOKENS_BAD_LINES_KEPT)
        str_add(&text, "; from here on they are only counted");
    s->reported_total |= tells_total;
    s->notice = xstrdup(str_text(&text));
    str_free(&text);
    return s->notice;
}

static int fetch(struct batch_source *source, int64_t max_batches, struct step_batches *ret_fetched,
                 struct error *err)
{
    struct windows *s = of(source);
    assert(max_batches <= s->max_batches);
    token_loader_release(s->loader);
    *ret_fetched = (struct step_batches){0};
    bool end = false;
    int64_t i = 0;
    for (; i < max_batches; i++) {
        struct token_batch next;
        if (token_loader_next(s->loader, &next, &end, err))
            return -1;
        if (end)
            break;
        void *ids = prefetcher_next(s->head.prefetcher, i);
        memcpy(ids, next.ids, batch_bytes(s));
        memcpy(targets_of(s, ids), next.targets, batch_bytes(s));
        ret_fetched->targets += next.counted;
        ret_fetched->rows += s->head.batch_rows;
        ret_fetched->tokens += s->head.batch_rows * s->head.T;
    }
    token_loader_tell(s->loader, &s->behind[prefetcher_next_set(s->head.prefetcher)]);
    ret_fetched->batches = i;
    ret_fetched->notice = look_for_bad_lines(s, end);
    return 0;
}

static struct batch batch(struct batch_source *source, int64_t i)
{
    struct windows *s = of(source);
    void *ids = prefetcher_take(s->head.prefetcher, i);
    return (struct batch){
        .rows = s->head.batch_rows, .tokens = ids, .target = targets_of(s, ids), .T = s->head.T};
}

static const char *state(struct batch_source *source)
{
    struct windows *s = of(source);
    free(s->position);
    s->position = token_position_print(&s->behind[prefetcher_set(s->head.prefetcher)]);
    return s->position;
}

static void close_windows(struct batch_source *source)
{
    struct windows *s = of(source);
    prefetcher_close(s->head.prefetcher);
    free(s->position);
    free(s->notice);
    token_loader_close(s->loader);
    free(s);
}

static int open_prefetcher(struct windows *s, struct stream *stream, struct error *err)
{
    size_t bytes = prefetcher_aligned(batch_bytes(s)) + batch_bytes(s);
    return prefetcher_open(stream, bytes, s->max_batches, "batch tokens", &s->head.prefetcher, err);
}

static int open_loader(struct windows *s, const struct agent_config *c, enum data_split split,
                       const struct model *model, const struct batch_source_env *env,
                       struct error *err)
{
    bool train = split == SPLIT_TRAIN;
    struct token_options options = batch_source_token_options(c, split, model, &env->encoder);
    options.window = s->head.T;
    struct token_source *tokens = NULL;
    if (token_source_open(&options, &tokens, err))
        return -1;
    int64_t global = s->head.batch_rows * env->size, workers = c->data.num_workers;
    bool drop_last = train && c->data.drop_last;
    s->head.samples = token_source_samples(tokens);
    s->head.files = token_source_name(tokens);
    s->head.format = token_format_name(token_source_format(tokens));
    if (s->head.samples >= 0)
        s->head.batches = (s->head.samples + (drop_last ? 0 : global - 1)) / global;
    const struct token_loader_options how = {
        .rank = env->rank,
        .world_size = env->size,
        .batch_rows = s->head.batch_rows,
        .window = s->head.T,
        .held = s->max_batches,
        .ahead = c->data.prefetch_factor * (workers > 0 ? workers : 1),
        .timeout_s = c->data.loader_timeout_s,
        .drop_last = drop_last,
        .may_be_small = !train,
    };
    return token_loader_open(tokens, &how, &s->loader, err);
}

int batch_source_tokens_open(const struct agent_config *config, enum data_split split,
                             const struct model *model, const struct batch_source_env *env,
                             struct batch_source **ret_source, struct error *err)
{
    static const struct batch_source_functions functions = {seek, fetch, batch, state,
                                                            close_windows};
    struct windows *s = xcalloc(1, sizeof *s);
    s->head.fn = &functions;
    s->head.what = batch_source_dataset(config, split).dataset;
    s->head.batch_rows =
        split == SPLIT_TRAIN ? config->data.train_batch_size : config->data.eval_batch_size;
    s->head.batches = -1;
    s->max_batches = env->max_batches;
    if (language_sample_tokens(model, config->data.max_seq_length, &s->head.T, err) ||
        open_loader(s, config, split, model, env, err) || open_prefetcher(s, env->stream, err)) {
        close_windows(&s->head);
        return -1;
    }
    *ret_source = &s->head;
    return 0;
}
