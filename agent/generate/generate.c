#include "agent/generate/generate.h"

#include "agent/checkpoint/pretrained.h"
#include "agent/checkpoint/pretrained_config.h"
#include "agent/comm/comm.h"
#include "agent/models/families.h"
#include "agent/shard/shard.h"
#include "agent/shard/wrap.h"
#include "agent/text/tokenizer.h"
#include "base/mem.h"
#include "kernels/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct generator {
    struct arena *arena;
    struct architecture architecture;
    struct model *model;
    struct tokenizer *tokenizer;
    struct device *device;
    struct stream *stream;
    struct comm *self;
    struct shard *shard;
    struct tape *tape;
};

/* ---- opening ---- */

static int open_model(struct generator *g, const char *dir, struct error *err)
{
    if (pretrained_read_config(dir, g->arena, &g->architecture, NULL, err) ||
        architecture_check(&g->architecture, err))
        return -1;
    g->model = architecture_build(g->arena, &g->architecture);
    unsigned writers = 1u << MODEL_NEXT_TOKEN | 1u << MODEL_TRANSLATION;
    if (!(writers & 1u << g->model->task)) {
        auto_str struct str names;
        str_init(&names, 256);
        model_family_names(writers, ", ", &names);
        return error_set(err, ERR_UNSUPPORTED,
                         "%s: a %s: only models that predict the next token can write (%s)", dir,
                         g->model->type, str_text(&names));
    }
    wrap_none(g->model->root);
    return 0;
}

static int open_engine(struct generator *g, int threads, struct error *err)
{
    const struct shard_config config = {.strategy = NO_SHARD};
    if (device_open("cpu", threads, &g->device, err) ||
        stream_open(g->device, "generate", &g->stream, err) || comm_self_open(&g->self, err) ||
        shard_open(&config, g->stream, g->device, g->self, g->model->root, &g->shard, err))
        return -1;
    shard_init_values(g->shard, 0);
    struct tape_hooks hooks = shard_hooks(g->shard);
    return tape_open(g->stream, DTYPE_F32, &hooks, &g->tape, err);
}

static int load_weights(struct generator *g, const char *dir, bool allow_nonfinite,
                        struct error *err)
{
    struct pretrained *weights = NULL;
    if (pretrained_open(dir, &weights, err))
        return -1;
    int result = pretrained_load(weights, g->model, g->shard, allow_nonfinite, err);
    pretrained_close(weights);
    return result;
}

int generator_open(const char *dir, const char *tokenizer, int threads, bool allow_nonfinite,
                   struct generator **ret_generator, struct error *err)
{
    struct arena *arena = arena_open();
    struct generator *g = arena_new(arena, struct generator);
    g->arena = arena;
    if (open_model(g, dir, err) ||
        tokenizer_open(tokenizer ? tokenizer : dir, &g->tokenizer, err) ||
        tokenizer_check_fits(g->tokenizer, g->model->language.V, err) ||
        open_engine(g, threads, err) || load_weights(g, dir, allow_nonfinite, err)) {
        generator_close(g);
        return -1;
    }
    *ret_generator = g;
    return 0;
}

void generator_close(struct generator *g)
{
    if (!g)
        return;
    tape_close(g->tape);
    shard_close(g->shard);
    comm_close(g->self);
    stream_close(g->stream);
    device_close(g->device);
    tokenizer_close(g->tokenizer);
    arena_close(g->arena);
}

/* ---- one token ---- */

int32_t generate_choose(const float *logits, int64_t V, double temperature, double number)
{
    int64_t best = 0;
    for (int64_t i = 1; i < V; i++)
        if (logits[i] > logits[best])
            best = i;
    if (temperature <= 0)
        return (int32_t)best;
    /* exp() of the largest logit is 1, of no other more: it cannot overflow. */
    double sum = 0;
    for (int64_t i = 0; i < V; i++)
        sum += exp(((double)logits[i] - logits[best]) / temperature);
    double left = number * sum;
    for (int64_t i = 0; i < V; i++) {
        left -= exp(((double)logits[i] - logits[best]) / temperature);
        if (left < 0)
            return (int32_t)i;
    }
    return (int32_t)best; /* rounding left a little of the last one */
}

/* Device memory for one pass over `count` tokens. */
struct pass_memory {
    void *tokens, *source, *logits, *sums; /* source: NULL without one */
};

static int alloc_pass(struct generator *g, int64_t count, size_t source, struct pass_memory *m,
                      struct error *err)
{
    size_t logits = (size_t)(count * g->model->language.V) * sizeof(float);
    if (source > 0 && device_alloc(g->device, MEMORY_INPUT, source * sizeof(int32_t),
                                   "tokens of the source", &m->source, err))
        return -1;
    return device_alloc(g->device, MEMORY_INPUT, (size_t)count * sizeof(int32_t), "tokens",
                        &m->tokens, err) ||
           device_alloc(g->device, MEMORY_ACTIVATION, logits, "logits", &m->logits, err) ||
           device_alloc(g->device, MEMORY_INPUT, 3 * sizeof(double), "loss sums", &m->sums, err);
}

/* The logits behind the last of the tokens, to the host. T: tokens of the pass, at least count;
 * nothing looks at those behind. source: what an encoder reads; none where there is no encoder. */
static int run_pass(struct generator *g, const struct tokens *source, const int32_t *ids,
                    int64_t count, int64_t T, float *ret_logits, struct error *err)
{
    struct pass_memory m = {0};
    size_t V = (size_t)g->model->language.V;
    auto_free int32_t *tokens = xcalloc((size_t)T, sizeof *tokens);
    memcpy(tokens, ids, (size_t)count * sizeof *ids);
    int result = -1;
    if (alloc_pass(g, T, source->count, &m, err) == 0) {
        const struct tape_pass pass = {.row_stride = 1};
        const struct batch batch = {.rows = 1,
                                    .tokens = m.tokens,
                                    .T = T,
                                    .source = m.source,
                                    .T_source = (int64_t)source->count,
                                    .logits = m.logits};
        if (m.source)
            stream_copy(g->stream, m.source, source->ids, source->count * sizeof *source->ids);
        stream_copy(g->stream, m.tokens, tokens, (size_t)T * sizeof *tokens);
        tape_begin(g->tape, &pass);
        g->model->forward(g->model, g->tape, &batch, 1, m.sums);
        stream_copy(g->stream, ret_logits, (float *)m.logits + (size_t)(count - 1) * V,
                    V * sizeof *ret_logits);
        result = tape_finish(g->tape, err);
        struct error later; /* what is queued has to end whatever the pass did */
        if (stream_sync(g->stream, result < 0 ? &later : err) < 0)
            result = -1;
    }
    device_free(g->device, m.tokens);
    device_free(g->device, m.source);
    device_free(g->device, m.logits);
    device_free(g->device, m.sums);
    return result;
}

/* ---- a text ---- */

static bool is_end(const struct generator *g, int32_t id)
{
    bool end = id == tokenizer_special(g->tokenizer).eos;
    for (int i = 0; i < g->architecture.eos_count; i++)
        end |= id == g->architecture.eos_token_ids[i];
    return end;
}

/* Angles that depend on the length (rope_type dynamic, beyond the model's positions) are those of
 * the longest text that there will be: all passes have one length and one table. */
static int64_t pass_length(const struct generator *g, int64_t count, int64_t longest)
{
    const struct model_family *family = g->architecture.family;
    bool depends = family->depends_on_length && family->depends_on_length(&g->architecture, count);
    return depends ? longest : count;
}

/* A vocabulary may be larger than the tokenizer's, and an id without a piece is no text: such
 * logits say never. */
static void rule_out(const struct generator *g, float *logits)
{
    size_t bytes;
    for (int32_t id = 0; id < (int32_t)g->model->language.V; id++)
        if (!tokenizer_piece(g->tokenizer, id, &bytes) && !is_end(g, id))
            logits[id] = -INFINITY;
}

static int add_tokens(struct generator *g, const struct generate_options *o,
                      const struct tokens *source, struct tokens *ids, struct error *err)
{
    int64_t V = g->model->language.V, most = g->model->language.max_tokens;
    auto_free float *logits = xmalloc((size_t)V * sizeof *logits);
    int64_t first = 0; /* of the tokens that the model sees */
    int64_t longest = (int64_t)ids->count + o->max_tokens;
    longest = longest < most ? longest : most;
    uint64_t key = random_key(o->seed, 0, 0, 0);
    for (int64_t i = 0; i < o->max_tokens; i++) {
        if ((int64_t)ids->count - first > most)
            first = (int64_t)ids->count - (most + 1) / 2;
        int64_t count = (int64_t)ids->count - first;
        if (run_pass(g, source, ids->ids + first, count, pass_length(g, count, longest), logits,
                     err))
            return -1;
        rule_out(g, logits);
        double number = (double)random_uniform(key, (uint64_t)i);
        int32_t id = generate_choose(logits, V, o->temperature, number);
        if (is_end(g, id))
            return 0;
        tokens_add(ids, id);
    }
    return 0;
}

/* An encoder reads the prompt, to its eos, which not every tokenizer puts there; the decoder writes
 * from its start on. */
static int write_answer(struct generator *g, struct tokens *source,
                        const struct generate_options *options, struct str *out, struct error *err)
{
    auto_tokens struct tokens ids = {0};
    int32_t eos = tokenizer_special(g->tokenizer).eos;
    tokens_add(&ids, g->model->language.start_id);
    if (eos >= 0 && (source->count == 0 || source->ids[source->count - 1] != eos))
        tokens_add(source, eos);
    if (source->count == 0)
        return error_set(err, ERR_INPUT, "the prompt has no tokens");
    if (add_tokens(g, options, source, &ids, err))
        return -1;
    return tokenizer_decode(g->tokenizer, ids.ids + 1, ids.count - 1, true, out, err);
}

int generator_text(struct generator *g, const char *prompt, const struct generate_options *options,
                   struct str *out, struct error *err)
{
    auto_tokens struct tokens ids = {0};
    int32_t bos = tokenizer_special(g->tokenizer).bos;
    if (tokenizer_encode(g->tokenizer, prompt, strlen(prompt), true, &ids, err))
        return -1;
    if (g->model->task == MODEL_TRANSLATION)
        return write_answer(g, &ids, options, out, err);
    if (ids.count > 0 && ids.ids[ids.count - 1] == tokenizer_special(g->tokenizer).eos)
        ids.count--; /* the text goes on */
    if (ids.count == 0 && bos >= 0)
        tokens_add(&ids, bos);
    if (ids.count == 0)
        return error_set(err, ERR_INPUT,
                         "the prompt has no tokens, and the tokenizer no bos to begin with");
    if (add_tokens(g, options, &(struct tokens){0}, &ids, err))
        return -1;
    return tokenizer_decode(g->tokenizer, ids.ids, ids.count, true, out, err);
}
