/* Text from a trained language model: token by token, each drawn from what the model expects. For a
 * look at what a training made, not for serving: every token computes the whole sequence anew. */
#ifndef SHOAL_AGENT_GENERATE_GENERATE_H
#define SHOAL_AGENT_GENERATE_GENERATE_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct generator;

/* dir: a Hugging Face directory with config.json and weights; tokenizer: where its tokenizer is,
 * NULL: in dir too. threads: of the CPU. allow_nonfinite: NaN and infinity among the weights are
 * no error. Errors: those of what is read, naming the file. */
int generator_open(const char *dir, const char *tokenizer, int threads, bool allow_nonfinite,
                   struct generator **ret_generator, struct error *err);
void generator_close(struct generator *generator); /* NULL-safe */

struct generate_options {
    int64_t max_tokens; /* new ones at the most; it also ends at an eos token */
    double temperature; /* > 0: the logits are divided by it; 0: always the most likely token */
    uint64_t seed;      /* the same numbers, the same text */
};

/* Adds the prompt and what follows it to `out`; of a model with an encoder (T5), which reads the
 * prompt as it reads a text in training (source_prefix included), only what it writes. When the
 * model's positions are used up, it goes on from the last half of them. Errors: ERR_INPUT for a
 * prompt without tokens, bos included, and those of the device. */
int generator_text(struct generator *generator, const char *prompt,
                   const struct generate_options *options, struct str *out, struct error *err);

/* Which token: pure. logits: [V]; number: random, in [0, 1). temperature as above. */
int32_t generate_choose(const float *logits, int64_t V, double temperature, double number);
#endif
