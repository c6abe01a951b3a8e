/* Angles of rotary position embeddings, in the forms of Hugging Face's config.json. Pure. */
#ifndef SHOAL_AGENT_MODELS_ROPE_H
#define SHOAL_AGENT_MODELS_ROPE_H

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>

enum rope_type {
    ROPE_DEFAULT,
    ROPE_LINEAR,  /* positions are divided by factor */
    ROPE_DYNAMIC, /* the base grows with sequences longer than max_positions */
    ROPE_LLAMA3,  /* long wavelengths are stretched by factor, short ones are not */
    ROPE_TYPES,
};
const char *rope_type_name(enum rope_type type); /* as in config.json: "llama3" */

struct rope {
    enum rope_type type;
    double theta;           /* the base, 10000 */
    double factor;          /* all but default; >= 1 */
    double low_freq_factor; /* llama3: wavelengths above original / low are stretched, those below
                               original / high are not, those between partly */
    double high_freq_factor;
    int64_t original_max_positions; /* llama3 */
};

/* inv_freq[i], i < hd / 2: the angle of pair i at position 1. T: tokens of the sequence;
 * max_positions: of the model. */
void rope_inv_freq(const struct rope *rope, int64_t hd, int64_t T, int64_t max_positions,
                   float *ret_inv_freq);

/* Whether the angles depend on T: a table for long sequences then does not serve for short ones. */
bool rope_depends_on_length(const struct rope *rope, int64_t T, int64_t max_positions);

/* cos and sin of every position's angles: [T, hd / 2] each. */
void rope_table(const struct rope *rope, int64_t hd, int64_t T, int64_t max_positions,
                float *ret_cos, float *ret_sin);

/* The tables a model has made so far; all zero at first. */
enum { ROPE_MAX_TABLES = 16 };
struct rope_tables {
    struct rope_pair {
        int64_t T;  /* rows */
        bool exact; /* serves sequences of T tokens only; false: shorter ones too */
        float *cos, *sin;
    } pairs[ROPE_MAX_TABLES];
    int count;
};

/* Tables of at least T rows. The first call makes them; they stay at one address, for
 * tape_constant(). All memory from `arena`. NULL if ROPE_MAX_TABLES exist: sequences have too many
 * lengths that need a table of their own. */
const struct rope_pair *rope_tables_get(struct rope_tables *tables, struct arena *arena,
                                        const struct rope *rope, int64_t hd, int64_t T,
                                        int64_t max_positions);
#endif
