/* A language model on one rank: weights and batches by the formulas of tests/data/parity/README.md,
 * a step of training or an evaluation at a time. Whatever is wrong fails the test. */
#ifndef SHOAL_TESTS_AGENT_LANGUAGE_H
#define SHOAL_TESTS_AGENT_LANGUAGE_H

#include "agent/models/architecture.h"
#include "tests/agent/device_batch.h"
#include "tests/agent/language_batch.h"

enum { LANGUAGE_ROWS = 2 }; /* sequences of a batch */

/* The parameters are the test's own memory on the device under test, of the dtype the model
 * computes in. */
struct language {
    struct arena *arena;
    struct device *device;
    struct stream *stream;
    struct tape *tape;
    struct model *model;
    struct param **params; /* in declaration order */
    int param_count;
    int64_t T;
    struct language_batch batch; /* LANGUAGE_ROWS samples: the first step's */
    struct device_batch on_device;
    double sums[MODEL_MAX_SUMS], *device_sums;
    struct device *host; /* NULL: values stay on the device */
    int64_t peak_bytes;  /* of the device, in the last pass */
    float **gradients;   /* of each parameter, on the host; written by language_run() in training */
    void *values;        /* of all parameters, on the device */
    float *device_gradients; /* likewise */
};

/* architecture: copied. */
struct language *language_open(const struct architecture *architecture, enum dtype dtype,
                               int64_t T);
void language_close(struct language *language); /* also checks that nothing leaked */

/* As tape_save_memory(); offload: to a device of its own. */
void language_spare_memory(struct language *language, enum tape_checkpointing checkpointing,
                           bool offload);

/* One pass over the batch: its loss; in training also the gradients of that
 * mean. */
double language_run(struct language *language, bool training);
/* The logits of the batch: [LANGUAGE_ROWS * T * V], of MODEL_CLASSES [LANGUAGE_ROWS * classes]; of
 * MODEL_PRETRAINING's labels, too, unless NULL. */
void language_logits(struct language *language, float *ret_logits, float *ret_label_logits);

/* Element i of a parameter's initial value, by its name and place. */
float language_weight(const struct param *p, int64_t i);
#endif
