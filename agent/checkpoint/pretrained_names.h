/* How files of weights, old ones too, name what a model has. Pure. */
#ifndef SHOAL_AGENT_CHECKPOINT_PRETRAINED_NAMES_H
#define SHOAL_AGENT_CHECKPOINT_PRETRAINED_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* A name without its first part: how the inner model's own files have it. Points into `name`. */
const char *pretrained_inner_name(const char *name);
/* As TensorFlow's norms call it, in `text`; NULL: no norm's. What BERT's first files have. */
const char *pretrained_old_name(const char *name, char *text, size_t size);
/* GPT-2's causal masks, Llama's frequencies, BERT's positions and a table that T5 does not use,
 * which old files carry along. */
bool pretrained_is_buffer(const char *name);
#endif
