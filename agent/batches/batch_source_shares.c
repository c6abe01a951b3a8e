/* The shares of several ranks as one source, for a rank that holds several reduction slots: a
 * source for each, which knows nothing of the others. */
#include "agent/batches/batch_source.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

struct shares {
    struct batch_source head; /* first: the functions get a pointer to it */
    struct batch_source **sources;
    int count;
    int64_t batches; /* of each share in this step */
    bool begins;     /* no micro-batch of this step was taken yet */
};

static struct shares *of(struct batch_source *source)
{
    return (struct shares *)source;
}

static int seek(struct batch_source *source, int64_t epoch, int64_t samples, const char *state,
                struct error *err)
{
    struct shares *s = of(source);
    for (int i = 0; i < s->count; i++)
        if (batch_source_seek(s->sources[i], epoch, samples, state, err))
            return -1;
    return 0;
}

static int fetch(struct batch_source *source, int64_t max_batches, struct step_batches *ret_fetched,
                 struct error *err)
{
    struct shares *s = of(source);
    s->begins = true;
    for (int i = 0; i < s->count; i++) {
        struct batch_source *share = s->sources[i];
        batch_source_fetch_ahead(share, max_batches);
        const struct step_batches *ahead = batch_source_ahead(share);
        if (!ahead) {
            *err = share->ahead_error;
            return -1;
        }
        if (i == 0) {
            *ret_fetched = *ahead;
            continue;
        }
        assert(ahead->batches == ret_fetched->batches);
        ret_fetched->targets += ahead->targets;
        ret_fetched->labels += ahead->labels;
        ret_fetched->notice = ret_fetched->notice ? ret_fetched->notice : ahead->notice;
    }
    return 0;
}

/* The shares' step begins with the first micro-batch that is taken: until then they may have only
 * fetched it. */
static void begin(struct shares *s)
{
    s->begins = false;
    for (int i = 0; i < s->count; i++) {
        struct step_batches fetched = {0};
        struct error never;
        (void)batch_source_next(s->sources[i], 0, &fetched, &never); /* it was fetched ahead */
        s->batches = fetched.batches;
    }
}

static struct batch batch(struct batch_source *source, int64_t i)
{
    struct shares *s = of(source);
    if (s->begins)
        begin(s);
    return batch_source_batch(s->sources[i / s->batches], i % s->batches);
}

static const char *state(struct batch_source *source)
{
    return batch_source_state(of(source)->sources[0]); /* of one sequence for all */
}

static void close_shares(struct batch_source *source)
{
    struct shares *s = of(source);
    for (int i = 0; i < s->count; i++)
        batch_source_close(s->sources[i]);
    free(s->sources);
    free(s);
}

int batch_source_shares_open(const struct agent_config *config, enum data_split split,
                             const struct model *model, const struct batch_source_env *env,
                             int count, int stride, struct batch_source **ret_source,
                             struct error *err)
{
    static const struct batch_source_functions functions = {seek, fetch, batch, state,
                                                            close_shares};
    if (count == 1)
        return batch_source_open(config, split, model, env, ret_source, err);
    struct shares *s = xcalloc(1, sizeof *s);
    s->sources = xcalloc((size_t)count, sizeof *s->sources);
    for (; s->count < count; s->count++) {
        struct batch_source_env share = *env;
        share.rank = env->rank + s->count * stride;
        if (batch_source_open(config, split, model, &share, &s->sources[s->count], err)) {
            close_shares(&s->head);
            return -1;
        }
    }
    s->head = *s->sources[0];
    s->head.fn = &functions;
    s->head.prefetcher = NULL; /* each share has its own */
    *ret_source = &s->head;
    return 0;
}
