#include "operator/job/training.h"

#include "base/contract.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Times of another century are a clock's that is not set. */
#define TIME_MIN_MS INT64_C(946684800000)  /* 2000 */
#define TIME_MAX_MS INT64_C(4102444800000) /* 2100 */

/* clang-format off */
#define FIELD(key, member, what) .name = key, .kind = what, .offset = offsetof(struct training, member)

const struct training_field training_fields[] = {
    {FIELD(TRAINING_STEP, step, TRAINING_COUNT)},
    {FIELD(TRAINING_STEPS, steps, TRAINING_COUNT)},
    {FIELD(TRAINING_EPOCH, epoch, TRAINING_REAL), .digits = 4},
    {FIELD(TRAINING_LOSS, loss, TRAINING_REAL), .digits = 5, .of_step = true},
    {FIELD(TRAINING_EVAL_LOSS, eval_loss, TRAINING_REAL), .digits = 5},
    {FIELD(TRAINING_TOKENS_PER_S, tokens_per_s, TRAINING_REAL), .digits = 4, .passes = true},
    {FIELD(TRAINING_SAMPLES_PER_S, samples_per_s, TRAINING_REAL), .digits = 4, .passes = true},
    {FIELD(TRAINING_MFU, mfu, TRAINING_REAL), .digits = 3, .passes = true},
    {FIELD(TRAINING_SECONDS_LEFT, seconds_left, TRAINING_COUNT), .passes = true},
    {FIELD(TRAINING_WORLD_SIZE, world_size, TRAINING_COUNT)},
    {FIELD(TRAINING_RESTARTS, restarts, TRAINING_COUNT)},
    {FIELD(TRAINING_CHECKPOINT_STEP, checkpoint_step, TRAINING_COUNT)},
    {FIELD(TRAINING_CHECKPOINT_TIME, checkpoint_ms, TRAINING_TIME)},
    {FIELD(TRAINING_LAST_PROGRESS, progress_ms, TRAINING_TIME)},
    {FIELD(TRAINING_HUNG_RANK, hung_rank, TRAINING_COUNT), .passes = true},
    {FIELD(TRAINING_HUNG_NODE, hung_node, TRAINING_COUNT), .passes = true},
    {FIELD(TRAINING_LAST_HANG_RANK, hang_rank, TRAINING_COUNT)},
    {FIELD(TRAINING_LAST_HANG_STEP, hang_step, TRAINING_COUNT)},
    {FIELD(TRAINING_LAST_HANG_COLLECTIVE, hang_collective, TRAINING_COUNT)},
    {FIELD(TRAINING_LAST_HANG_TIME, hang_ms, TRAINING_TIME)},
    {FIELD(TRAINING_PROCESS_START, process_ms, TRAINING_TIME), .digits = 6},
    {FIELD(TRAINING_RESUMED_STEP, resumed_step, TRAINING_COUNT)},
    {.name = NULL},
};
/* clang-format on */

const char *training_spent_name(int kind)
{
    static const char *const names[TRAINING_SPENT_KINDS] = {
        TIME_NAME_INITIALIZATION, TIME_NAME_PEER_WAIT, TIME_NAME_RESTORE,
        TIME_NAME_DATA,           TIME_NAME_STEP,      TIME_NAME_LOST_WORK,
        TIME_NAME_EVALUATION,     TIME_NAME_SAVE,      TIME_NAME_OTHER};
    return names[kind];
}

static void *at(struct training *t, const struct training_field *field)
{
    return (char *)t + field->offset;
}

static const void *value_at(const struct training *t, const struct training_field *field)
{
    return (const char *)t + field->offset;
}

#define AT(training, field, type)    ((type *)at(training, field))
#define VALUE(training, field, type) (*(const type *)value_at(training, field))

static void forget(struct training *t, const struct training_field *field)
{
    switch (field->kind) {
    case TRAINING_COUNT:
        *AT(t, field, int64_t) = -1;
        break;
    case TRAINING_REAL:
        *AT(t, field, double) = (double)NAN;
        break;
    case TRAINING_TIME:
        *AT(t, field, int64_t) = 0;
        break;
    }
}

struct training training_open(void)
{
    struct training t = {.known = true};
    for (const struct training_field *field = training_fields; field->name; field++)
        forget(&t, field);
    return t;
}

bool training_set_count(struct training *t, const struct training_field *field, int64_t value)
{
    if (value < 0 || value > TRAINING_COUNT_MAX)
        return false;
    *AT(t, field, int64_t) = value;
    return true;
}

bool training_set_real(struct training *t, const struct training_field *field, double value)
{
    char text[40];
    if (!isfinite(value) || fabs(value) > TRAINING_REAL_MAX)
        return false;
    /* As it will be read back from the status: a number that was written is no news. */
    snprintf(text, sizeof text, "%.*g", field->digits, value);
    *AT(t, field, double) = strtod(text, NULL);
    return true;
}

bool training_set_time(struct training *t, const struct training_field *field, int64_t wall_ms)
{
    if (wall_ms < TIME_MIN_MS || wall_ms > TIME_MAX_MS)
        return false;
    *AT(t, field, int64_t) = field->digits ? wall_ms : wall_ms / 1000 * 1000;
    return true;
}

bool training_set_spent(struct training *t, int kind, double seconds)
{
    if (!(seconds >= 0 && seconds <= TRAINING_SPENT_MAX_S))
        return false;
    t->spent_ms[kind] = llround(seconds * 1000);
    return true;
}

bool training_set_word(char word[TRAINING_WORD_BYTES], const char *text)
{
    size_t length = strlen(text);
    if (length >= TRAINING_WORD_BYTES ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._-") !=
            length)
        return false;
    memcpy(word, text, length + 1);
    return true;
}

bool training_has(const struct training *t, const struct training_field *field)
{
    switch (field->kind) {
    case TRAINING_COUNT:
        return VALUE(t, field, int64_t) >= 0;
    case TRAINING_REAL:
        return !isnan(VALUE(t, field, double));
    case TRAINING_TIME:
        break;
    }
    return VALUE(t, field, int64_t) != 0;
}

int64_t training_whole(const struct training *t, const struct training_field *field)
{
    return VALUE(t, field, int64_t);
}

double training_real(const struct training *t, const struct training_field *field)
{
    return VALUE(t, field, double);
}

static bool is_equal(const struct training *a, const struct training *b,
                     const struct training_field *field)
{
    if (!training_has(a, field) || !training_has(b, field))
        return training_has(a, field) == training_has(b, field);
    if (field->kind == TRAINING_REAL)
        return !(training_real(a, field) < training_real(b, field)) &&
               !(training_real(a, field) > training_real(b, field));
    return training_whole(a, field) == training_whole(b, field);
}

bool training_equal(const struct training *a, const struct training *b)
{
    if (!a->known || !b->known)
        return a->known == b->known;
    for (const struct training_field *field = training_fields; field->name; field++)
        if (!is_equal(a, b, field))
            return false;
    return memcmp(a->spent_ms, b->spent_ms, sizeof a->spent_ms) == 0;
}

uint64_t training_digest(const struct training *t)
{
    uint64_t digest = XXH3_64bits(t->spent_ms, sizeof t->spent_ms);
    for (const struct training_field *field = training_fields; field->name; field++) {
        struct {
            int64_t is_known, whole;
            double real;
        } value = {.is_known = training_has(t, field)};
        if (value.is_known && field->kind == TRAINING_REAL)
            value.real = training_real(t, field) + 0.0; /* which makes 0 of -0 */
        else if (value.is_known)
            value.whole = training_whole(t, field);
        digest = XXH3_64bits_withSeed(&value, sizeof value, digest);
    }
    return digest;
}

static void take_over(struct training *t, const struct training *told,
                      const struct training_field *field)
{
    if (field->kind == TRAINING_REAL)
        *AT(t, field, double) = VALUE(told, field, double);
    else
        *AT(t, field, int64_t) = VALUE(told, field, int64_t);
}

void training_merge(struct training *t, const struct training *told)
{
    if (!told->known)
        return;
    if (!t->known)
        *t = training_open();
    bool is_new_step = told->step > t->step;
    for (const struct training_field *field = training_fields; field->name; field++)
        if (field->passes || (field->of_step && is_new_step) || training_has(told, field))
            take_over(t, told, field);
    if (told->hang_ms) /* there may have been no collective before that hang */
        t->hang_collective = told->hang_collective;
    if (told->process_ms)
        memcpy(t->spent_ms, told->spent_ms, sizeof t->spent_ms);
}

void training_rest(struct training *t)
{
    for (const struct training_field *field = training_fields; t->known && field->name; field++)
        if (field->passes)
            forget(t, field);
}

void training_forget_process(struct training *t)
{
    t->process_ms = 0;
    if (t->restarts > 0) /* those of the pods that are gone */
        t->restarts = 0;
    memset(t->spent_ms, 0, sizeof t->spent_ms);
}

void training_progress_text(const struct training *t, char out[TRAINING_TEXT_BYTES])
{
    out[0] = '\0';
    if (t->known && t->step >= 0 && t->steps > 0)
        snprintf(out, TRAINING_TEXT_BYTES, "%" PRId64 "/%" PRId64, t->step, t->steps);
    else if (t->known && t->step >= 0)
        snprintf(out, TRAINING_TEXT_BYTES, "%" PRId64, t->step);
}

void training_duration_text(int64_t s, char out[TRAINING_TEXT_BYTES])
{
    if (s >= 86400)
        snprintf(out, TRAINING_TEXT_BYTES, "%" PRId64 "d%" PRId64 "h", s / 86400, s / 3600 % 24);
    else if (s >= 3600)
        snprintf(out, TRAINING_TEXT_BYTES, "%" PRId64 "h%" PRId64 "m", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(out, TRAINING_TEXT_BYTES, "%" PRId64 "m%" PRId64 "s", s / 60, s % 60);
    else
        snprintf(out, TRAINING_TEXT_BYTES, "%" PRId64 "s", s > 0 ? s : 0);
}

int64_t training_end_ms(const struct training *t)
{
    bool is_known = t->known && t->seconds_left >= 0 && t->progress_ms;
    int64_t most_s = (TIME_MAX_MS - t->progress_ms) / 1000;
    /* the API server takes no time whose year has five digits, and the status with it */
    return is_known && t->seconds_left <= most_s ? t->progress_ms + t->seconds_left * 1000 : 0;
}

void training_left_text(const struct training *t, char out[TRAINING_TEXT_BYTES])
{
    out[0] = '\0';
    if (t->known && t->seconds_left >= 0)
        training_duration_text(t->seconds_left, out);
}
