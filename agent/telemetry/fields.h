/* The numbers that go to files: the one table from which CSV, JSONL, TensorBoard and the stream of
 * steps take names and values. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_FIELDS_H
#define SHOAL_AGENT_TELEMETRY_FIELDS_H

#include "agent/telemetry/run_state.h"

/* In whose words. */
enum field_words {
    WORDS_HF,     /* Hugging Face's Trainer: "loss", "eval_loss" */
    WORDS_FABRIC, /* the Fabric scripts': "metric/train_loss", "throughput/tokens_per_sec" */
    WORDS_TAGS,   /* TensorBoard tags of Hugging Face's Trainer: "train/loss", "eval/loss" */
};

/* What has happened. */
enum field_event { FIELD_STEP, FIELD_EVAL, FIELD_SAVE };

enum { FIELDS_MAX = 64 };

int field_count(void);
/* NULL: the field has no place in those words. */
const char *field_name(int field, enum field_words words);
/* Whether the field is told when this happened. */
bool field_is_of(int field, enum field_event event);
bool field_is_whole(int field);                               /* a count: no decimals */
double field_value(int field, const struct run_state *state); /* NaN: not known */
#endif
