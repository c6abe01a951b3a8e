/* Where a rank's batches come from: the door between data sets and the trainer. A source gives one
 * sequence of samples per epoch, the same for every world size; each rank takes its share of it. It
 * fetches the micro-batches of an optimizer step into host memory, ahead of the step if the caller
 * asks for that. Then it puts them on the device one by one. Knows data sets and the device; not
 * models or the loop. */
#ifndef SHOAL_AGENT_BATCHES_BATCH_SOURCE_H
#define SHOAL_AGENT_BATCHES_BATCH_SOURCE_H

#include "agent/batches/prefetcher.h"
#include "agent/config/config.h"
#include "agent/dataset/token_source.h"
#include "agent/models/model.h"
#include "base/error.h"
#include "kernels/device.h"
#include "kernels/dtype.h"

#include <stdbool.h>
#include <stdint.h>

enum data_split { SPLIT_TRAIN, SPLIT_EVAL };

/* What one optimizer step works on. */
struct step_batches {
    int64_t batches;    /* micro-batches; 0 at the end of the epoch */
    int64_t rows;       /* of this rank, in all of them */
    int64_t tokens;     /* of this rank, padding included; 0: images */
    int64_t targets;    /* of this rank that count for the loss (MODEL_CLASSES: labels) */
    int64_t labels;     /* MODEL_PRETRAINING: labels of this rank that count, beside the targets */
    bool same;          /* rows, targets and labels are the same on every rank */
    const char *notice; /* something that people should know of, or NULL; until the next fetch */
};

struct batch_source;

/* What a kind of source does; whoever uses it calls batch_source_seek() and those below it. */
struct batch_source_functions {
    int (*seek)(struct batch_source *source, int64_t epoch, int64_t samples, const char *state,
                struct error *err);
    /* Puts the micro-batches into the prefetcher's next set. */
    int (*fetch)(struct batch_source *source, int64_t max_batches, struct step_batches *ret_fetched,
                 struct error *err);
    struct batch (*batch)(struct batch_source *source, int64_t i);
    const char *(*state)(struct batch_source *source);
    void (*close)(struct batch_source *source);
};

/* The common head of every source. */
struct batch_source {
    const struct batch_source_functions *fn;
    int64_t samples; /* of an epoch, all ranks, each counted once; -1: not known before its end */
    int64_t batches; /* micro-batches of this rank in an epoch; -1 likewise */
    int64_t T;       /* tokens of a sample, at the most; MODEL_TRANSLATION: of source and target
                        together; 0: images */
    int64_t batch_rows; /* rows of a micro-batch; an epoch's last one may have fewer */
    const char *what;   /* for errors: the data's directory */
    const char *files;  /* for people: the split's files; NULL: images */
    const char *format; /* they are read as: "jsonl"; NULL: images */

    struct prefetcher *prefetcher; /* NULL: it fetches by sources of its own */
    bool is_ahead;                 /* the next step was fetched: */
    struct step_batches ahead;
    int ahead_result; /* below 0: it failed, with */
    struct error ahead_error;
};

/* What a source needs to know of its rank. */
struct batch_source_env {
    struct stream *stream;
    enum dtype dtype; /* of what images become */
    int rank, size;
    int64_t max_batches;          /* micro-batches that will be fetched at once at the most */
    struct token_encoder encoder; /* for text; encode NULL: there is no tokenizer */
};

/* Opens the split that the configuration names, for the model. Errors: what is wrong with the data,
 * and data that does not fit the model. */
int batch_source_open(const struct agent_config *config, enum data_split split,
                      const struct model *model, const struct batch_source_env *env,
                      struct batch_source **ret_source, struct error *err);
void batch_source_close(struct batch_source *source); /* NULL-safe; the stream has been synced */
/* batch_source_shares.c: the same as the shares of the `count` ranks env->rank, env->rank + stride,
 * ... of env->size. Its micro-batches are those of the first share, then of the second, ...: a step
 * has so many times step_batches.batches. Each share's are taken in order. Of what was fetched,
 * targets and labels are the sums over the shares, all else is the first's. */
int batch_source_shares_open(const struct agent_config *config, enum data_split split,
                             const struct model *model, const struct batch_source_env *env,
                             int count, int stride, struct batch_source **ret_source,
                             struct error *err);

/* Goes to an epoch, behind its first `samples` of all ranks. state: what batch_source_state() gave
 * there, or "" at the beginning of an epoch. The stream has been synced. */
int batch_source_seek(struct batch_source *source, int64_t epoch, int64_t samples,
                      const char *state, struct error *err);
/* The next step begins: fetches its micro-batches, `max_batches` or as many as the epoch still has,
 * unless batch_source_fetch_ahead() did. The stream has been synced since the step before began. */
int batch_source_next(struct batch_source *source, int64_t max_batches,
                      struct step_batches *ret_fetched, struct error *err);
/* Fetches what the next call of batch_source_next() will report, failures and notices too. For
 * when all of this step is queued: the device works on it meanwhile. */
void batch_source_fetch_ahead(struct batch_source *source, int64_t max_batches);
/* What it fetched, until batch_source_next() or batch_source_seek(); NULL: nothing fetched. */
const struct step_batches *batch_source_ahead(const struct batch_source *source);
/* Queues the step's micro-batch i, each once and in order; valid until the next call. */
struct batch batch_source_batch(struct batch_source *source, int64_t i);
/* What batch_source_seek() needs beside epoch and samples to go on behind this step: "" for what
 * can be indexed. Valid until the next call, and the same while the next step is only fetched
 * ahead. */
const char *batch_source_state(struct batch_source *source);

/* batch_source_images.c: MNIST's and its like; batch_source_tokens.c: what predicts the next token;
 * batch_source_examples.c: rows, for the other language models. */
int batch_source_images_open(const struct agent_config *config, enum data_split split,
                             const struct model *model, const struct batch_source_env *env,
                             struct batch_source **ret_source, struct error *err);
int batch_source_tokens_open(const struct agent_config *config, enum data_split split,
                             const struct model *model, const struct batch_source_env *env,
                             struct batch_source **ret_source, struct error *err);

int batch_source_examples_open(const struct agent_config *config, enum data_split split,
                               const struct model *model, const struct batch_source_env *env,
                               struct batch_source **ret_source, struct error *err);
/* For these: the data set that a split is read from, and what the configuration says of its texts
 * or ids; all but the window. */
struct token_dataset batch_source_dataset(const struct agent_config *c, enum data_split split);
struct token_options batch_source_token_options(const struct agent_config *c, enum data_split split,
                                                const struct model *model,
                                                const struct token_encoder *encoder);
#endif
