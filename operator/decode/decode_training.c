#include "operator/decode/decode_training.h"

#include "base/clock.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/run_digest.h"

#include <math.h>
#include <string.h>

static void read_field(const struct json *value, const struct training_field *field,
                       struct training *training)
{
    int64_t wall_ms;
    switch (field->kind) {
    case TRAINING_COUNT:
        if (json_is_integer(value))
            training_set_count(training, field, json_as_integer(value));
        break;
    case TRAINING_REAL:
        if (json_is_number(value))
            training_set_real(training, field, json_as_number(value));
        break;
    case TRAINING_TIME:
        if (json_is_string(value) && clock_parse_micro(json_as_text(value), &wall_ms))
            training_set_time(training, field, wall_ms);
        break;
    }
}

static void read_spent(const struct json *object, struct training *training)
{
    for (int k = 0; k < TRAINING_SPENT_KINDS; k++) {
        const struct json *value = json_get(object, training_spent_name(k));
        if (json_is_number(value))
            training_set_spent(training, k, json_as_number(value));
    }
}

/* What an agent tells of the last hang. */
static void read_hang(const struct json *object, struct training *t)
{
    static const char *const numbers[][2] = {
        {TRAINING_LAST_HANG_RANK, PROGRESS_RANK},
        {TRAINING_LAST_HANG_STEP, LAST_HANG_STEP},
        {TRAINING_LAST_HANG_COLLECTIVE, LAST_HANG_COLLECTIVE},
        {TRAINING_LAST_HANG_TIME, LAST_HANG_TIME},
    };
    const struct {
        const char *name;
        char *word;
    } words[] = {{LAST_HANG_POD, t->hang.pod},
                 {PROGRESS_RANK_PHASE, t->hang.phase},
                 {LAST_HANG_OP, t->hang.op},
                 {LAST_HANG_UNIT, t->hang.unit}};
    for (const struct training_field *field = training_fields; field->name; field++)
        for (size_t i = 0; i < array_length(numbers); i++)
            if (strcmp(field->name, numbers[i][0]) == 0)
                read_field(json_get(object, numbers[i][1]), field, t);
    for (size_t i = 0; i < array_length(words); i++) {
        const struct json *value = json_get(object, words[i].name);
        if (json_is_string(value))
            training_set_word(words[i].word, json_as_text(value));
    }
}

static struct training read_training(const struct json *value, bool is_status)
{
    if (!json_is_object(value))
        return (struct training){.known = false};
    struct training training = training_open();
    bool has_any = false;
    for (const struct training_field *field = training_fields; field->name; field++) {
        read_field(json_get(value, field->name), field, &training);
        has_any |= training_has(&training, field);
    }
    if (is_status && !has_any) /* the operator's own account alone */
        return (struct training){.known = false};
    if (!is_status)
        read_hang(json_get(value, TRAINING_LAST_HANG), &training);
    read_spent(json_get(value, is_status ? GOODPUT_OF_PROCESS : TRAINING_SECONDS), &training);
    return training;
}

struct training decode_training(const struct json *value)
{
    return read_training(value, true);
}

struct goodput decode_goodput(const struct json *value)
{
    struct goodput goodput = {.known = false};
    const struct json *seconds = json_get(value, TRAINING_SECONDS),
                      *step = json_get(value, GOODPUT_FURTHEST_STEP);
    if (!json_is_object(seconds))
        return goodput;
    goodput.known = true;
    const char *now = json_as_text(json_get(value, GOODPUT_NOW));
    for (int k = 0; k < GOODPUT_KINDS; k++)
        if (now && strcmp(now, goodput_kind_name(k)) == 0)
            goodput.now = k;
    for (int k = 0; k < GOODPUT_KINDS; k++) {
        double s = json_as_number(json_get(seconds, goodput_kind_name(k)));
        goodput.ms[k] = s >= 0 && s <= TRAINING_SPENT_MAX_S ? llround(s * 1000) : 0;
    }
    if (json_is_integer(step) && json_as_integer(step) > 0)
        goodput.furthest_step = json_as_integer(step);
    return goodput;
}

int decode_training_answer(const char *text, size_t bytes, const char *run,
                           struct training *ret_training, struct error *err)
{
    if (bytes > TRAINING_MAX_BYTES)
        return error_set(err, ERR_INPUT, "more than %d bytes", TRAINING_MAX_BYTES);
    struct json *value = json_parse(text, bytes, JSON_STRICT, err);
    if (!value)
        return -1;
    *ret_training = read_training(value, false);
    const char *told = json_as_text(json_get(value, TRAINING_RUN)); /* not of an older agent */
    char digest[RUN_DIGEST_BYTES];
    run_digest(run, digest);
    bool is_other = run[0] && told && strcmp(digest, told) != 0;
    json_free(value);
    if (is_other)
        return error_set(err, ERR_CONFLICT, "another run's");
    if (!ret_training->known || ret_training->world_size < 1 || !ret_training->progress_ms)
        return error_set(err, ERR_INPUT, "no %s or no %s", TRAINING_WORLD_SIZE,
                         TRAINING_LAST_PROGRESS);
    return 0;
}

int decode_training_told(const char *text, size_t bytes, struct training *ret_training,
                         struct error *err)
{
    return decode_training_answer(text, bytes, "", ret_training, err);
}
