/* The numbers of a run: the one table from which CSV, JSONL, TensorBoard, the stream of steps and
 * /metrics take names and values. Pure. */
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

/* A field on /metrics, in Prometheus' words. */
enum field_scope { OF_JOB, OF_RANK }; /* who gives it: rank 0, or each rank its own */
struct field_metric {
    const char *name, *help;
    const char *type; /* "gauge", "counter" */
    enum field_scope scope;
    bool keeps_nan; /* NaN is a value once a step was done; else a NaN is left out, as not known */
};

int field_count(void);
/* NULL: the field has no place in those words. */
const char *field_name(int field, enum field_words words);
/* NULL: it is not on /metrics. */
const struct field_metric *field_metric(int field);
/* Whether the field is written when this happened. */
bool field_is_of(int field, enum field_event event);
bool field_is_whole(int field);                               /* a count: no decimals */
double field_value(int field, const struct run_state *state); /* NaN: not known */
#endif
