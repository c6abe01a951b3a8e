/* What language models share. */
#ifndef SHOAL_AGENT_MODELS_LANGUAGE_H
#define SHOAL_AGENT_MODELS_LANGUAGE_H

#include "agent/models/model.h"

/* Sizes beyond which a configuration is a mistake: products of three of them fit 64 bits. */
enum { LANGUAGE_MAX_WIDTH = 1 << 20, LANGUAGE_MAX_TOKENS = 1 << 24 };

/* Fails the tape if the batch's sequences are longer than the model can take. */
void language_check_batch(const struct model *model, struct tape *tape, const struct batch *batch);

/* Tokens of a sample that is one sequence: `asked` (data.max_seq_length), or if that is 0, all that
 * the model takes. Errors: ERR_CONFIG if that is more than it takes. */
int language_sample_tokens(const struct model *model, int64_t asked, int64_t *ret_tokens,
                           struct error *err);

/* How many tokens' logits are alive at once: `asked`; or if that is 0, as many as take about 64 MiB
 * in fp32 (half of that in bf16), but at least 1024. On a GPU as many thousands (1024) as take 1
 * GiB in dtype t, but at least one: each chunk reads and writes the whole gradient of the head. */
int64_t language_chunk_rows(int64_t asked, int64_t V, enum dtype t, bool is_host);

/* The end of a forward pass: the head on x: [B, T, D], with what the batch asks for, the loss or
 * the logits. weight: the head's own or, tied, the embedding's; bias: [V] or NULL. */
void language_head(struct tape *tape, struct module *head, struct param *weight, struct param *bias,
                   struct tensor *x, const struct batch *batch, int64_t chunk_rows,
                   float loss_scale, double *sums);

/* One field of a configuration: `name` must be within [low, high]. Errors: ERR_CONFIG with both
 * names, the value and the range. */
int language_check_field(const char *family, const char *name, int64_t value, int64_t low,
                         int64_t high, struct error *err);
#endif
