#include "agent/checkpoint/checkpoint_state.h"

#include "base/json.h"
#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum field_type {
    FIELD_COUNT,
    FIELD_LATER_COUNT,
    FIELD_BITS,
    FIELD_REAL,
    FIELD_TEXT,
    FIELD_LONG_TEXT
};

static const struct field {
    const char *name;
    enum field_type type; /* count: >= 0; later count: 0 if an older version saved; bits: all 64 of
                             them, as a signed number */
    size_t offset;
} fields[] = {
    {"epoch", FIELD_COUNT, offsetof(struct checkpoint_state, epoch)},
    {"epoch_samples", FIELD_COUNT, offsetof(struct checkpoint_state, epoch_samples)},
    {"step", FIELD_COUNT, offsetof(struct checkpoint_state, step)},
    {"micro_batches", FIELD_COUNT, offsetof(struct checkpoint_state, micro_batches)},
    {"optimizer_steps", FIELD_COUNT, offsetof(struct checkpoint_state, optimizer_steps)},
    {"seed", FIELD_BITS, offsetof(struct checkpoint_state, seed)},
    {"epoch_loss_sum", FIELD_REAL, offsetof(struct checkpoint_state, epoch_loss_sum)},
    {"epoch_correct", FIELD_REAL, offsetof(struct checkpoint_state, epoch_correct)},
    {"epoch_rows", FIELD_REAL, offsetof(struct checkpoint_state, epoch_rows)},
    {"learning_rate", FIELD_REAL, offsetof(struct checkpoint_state, learning_rate)},
    {"world_size", FIELD_COUNT, offsetof(struct checkpoint_state, world_size)},
    {"reduction_slots", FIELD_LATER_COUNT, offsetof(struct checkpoint_state, reduction_slots)},
    {"nondeterministic", FIELD_LATER_COUNT, offsetof(struct checkpoint_state, nondeterministic)},
    {"evaluation_owed", FIELD_LATER_COUNT, offsetof(struct checkpoint_state, evaluation_owed)},
    {"train_rows", FIELD_COUNT, offsetof(struct checkpoint_state, train_rows)},
    {"batch_rows", FIELD_COUNT, offsetof(struct checkpoint_state, batch_rows)},
    {"strategy", FIELD_TEXT, offsetof(struct checkpoint_state, strategy)},
    {"schedule_type", FIELD_TEXT, offsetof(struct checkpoint_state, schedule_type)},
    {"peak_lr", FIELD_REAL, offsetof(struct checkpoint_state, peak_lr)},
    {"min_lr", FIELD_REAL, offsetof(struct checkpoint_state, min_lr)},
    {"warmup_ratio", FIELD_REAL, offsetof(struct checkpoint_state, warmup_ratio)},
    {"warmup_steps", FIELD_COUNT, offsetof(struct checkpoint_state, warmup_steps)},
    {"decay_steps", FIELD_COUNT, offsetof(struct checkpoint_state, decay_steps)},
    {"optimizer", FIELD_LONG_TEXT, offsetof(struct checkpoint_state, optimizer)},
    {"run", FIELD_LONG_TEXT, offsetof(struct checkpoint_state, run)},
    {"data", FIELD_LONG_TEXT, offsetof(struct checkpoint_state, data)},
};

static struct json *encode(const struct field *f, const void *value)
{
    double real;
    int64_t number;
    const char *text;
    switch (f->type) {
    case FIELD_LONG_TEXT:
        memcpy(&text, value, sizeof text);
        return json_new_text(text);
    case FIELD_TEXT:
        return json_new_text(value);
    case FIELD_REAL:
        memcpy(&real, value, sizeof real);
        /* A run that diverged: JSON has no such numbers, so "nan", "inf" or "-inf". */
        return isfinite(real) ? json_new_real(real, 17) : json_new_textf("%f", real);
    case FIELD_COUNT:
    case FIELD_LATER_COUNT:
    case FIELD_BITS:
        memcpy(&number, value, sizeof number);
        return json_new_integer(number);
    }
    return NULL;
}

static bool decode_real(const struct json *json, double *ret_real)
{
    if (json_is_string(json)) {
        char *end;
        *ret_real = strtod(json_as_text(json), &end);
        return end != json_as_text(json) && *end == '\0' && !isfinite(*ret_real);
    }
    *ret_real = json_as_number(json);
    return json_is_number(json);
}

static const char *decode(struct arena *arena, const struct field *f, const struct json *json,
                          void *value)
{
    if (f->type == FIELD_LONG_TEXT) { /* may be missing: then it is empty */
        if (json && !json_is_string(json))
            return "is not a text";
        const char *text = json ? arena_strdup(arena, json_as_text(json)) : "";
        memcpy(value, &text, sizeof text);
    } else if (!json && f->type == FIELD_LATER_COUNT) {
        memset(value, 0, sizeof(int64_t));
    } else if (!json) {
        return "is missing";
    } else if (f->type == FIELD_TEXT) {
        if (!json_is_string(json) || strlen(json_as_text(json)) >= CHECKPOINT_NAME_BYTES)
            return "is not a short text";
        memcpy(value, json_as_text(json), strlen(json_as_text(json)) + 1);
    } else if (f->type == FIELD_REAL) {
        double real;
        if (!decode_real(json, &real))
            return "is not a number";
        memcpy(value, &real, sizeof real);
    } else {
        int64_t number = json_as_integer(json);
        if (!json_is_integer(json) || (f->type != FIELD_BITS && number < 0))
            return "is not a whole number that it can be";
        memcpy(value, &number, sizeof number);
    }
    return NULL;
}

char *checkpoint_state_print(const struct checkpoint_state *state)
{
    struct json *root = json_new_object();
    for (size_t i = 0; i < array_length(fields); i++)
        json_set(root, fields[i].name, encode(&fields[i], (const char *)state + fields[i].offset));
    char *text = json_print(root, JSON_INDENTED);
    /* Two rows of the same name would lose one of them. */
    assert(text && json_object_count(root) == array_length(fields));
    json_free(root);
    return text;
}

int checkpoint_state_parse(struct arena *arena, const char *name, const char *text, size_t bytes,
                           struct checkpoint_state *ret_state, struct error *err)
{
    struct json *root = json_parse(text, bytes, JSON_STRICT, err);
    if (!root)
        return error_wrap(err, "%s", name);
    struct checkpoint_state state = {0};
    const char *wrong = NULL, *where = NULL;
    for (size_t i = 0; i < array_length(fields) && !wrong; i++) {
        where = fields[i].name;
        wrong = decode(arena, &fields[i], json_get(root, where), (char *)&state + fields[i].offset);
    }
    json_free(root);
    if (wrong)
        return error_set(err, ERR_INPUT, "%s: %s %s", name, where, wrong);
    *ret_state = state;
    return 0;
}
