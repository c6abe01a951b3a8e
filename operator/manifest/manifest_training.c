/* Of a job's status, how its training goes: `training`. */
#include "operator/manifest/manifest_internal.h"

#include "base/clock.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "operator/job/goodput.h"
#include "operator/job/training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void set_micro_time(struct json *object, const char *key, int64_t wall_ms)
{
    char text[40];
    clock_format_micro(wall_ms, text, sizeof text);
    json_set(object, key, json_new_text(text));
}

static void set_text(struct json *object, const char *key, const char *text)
{
    if (*text)
        json_set(object, key, json_new_text(text));
}

/* Of what is not 0. */
static struct json *seconds_of(const int64_t ms[], int kinds, const char *(*name_of)(int kind))
{
    struct json *object = json_new_object();
    for (int k = 0; k < kinds; k++)
        if (ms[k])
            json_set(object, name_of(k), json_new_real((double)ms[k] / 1000, 15));
    return object;
}

static void set_goodput(struct json *object, const struct job_status *status)
{
    const struct goodput *goodput = &status->goodput;
    if (!goodput->known)
        return;
    double ratio = goodput_ratio(goodput);
    if (!isnan(ratio)) {
        char percent[16];
        snprintf(percent, sizeof percent, "%.1f%%", ratio * 100);
        json_set(object, TRAINING_GOODPUT, json_new_real(ratio, 3));
        set_text(object, GOODPUT_PERCENT, percent);
    }
    json_set(object, TRAINING_SECONDS, seconds_of(goodput->ms, GOODPUT_KINDS, goodput_kind_name));
    if (goodput->now != GOODPUT_INSIDE)
        json_set(object, GOODPUT_NOW, json_new_text(goodput_kind_name(goodput->now)));
    if (!status->training.known)
        return;
    json_set(object, GOODPUT_OF_PROCESS,
             seconds_of(status->training.spent_ms, TRAINING_SPENT_KINDS, training_spent_name));
    json_set_integer(object, GOODPUT_FURTHEST_STEP, goodput->furthest_step);
}

/* By the rows of training.h, and beside them what a column of kubectl shows as it is. */
static void set_training(struct json *object, const struct training *training)
{
    char progress[TRAINING_TEXT_BYTES], left[TRAINING_TEXT_BYTES];
    training_progress_text(training, progress);
    training_left_text(training, left);
    set_text(object, "progress", progress);
    for (const struct training_field *field = training_fields; field->name; field++) {
        if (!training_has(training, field))
            continue;
        if (field->kind == TRAINING_COUNT)
            json_set_integer(object, field->name, training_whole(training, field));
        else if (field->kind == TRAINING_TIME && field->digits)
            set_micro_time(object, field->name, training_whole(training, field));
        else if (field->kind == TRAINING_TIME)
            json_set(object, field->name, json_new_time(training_whole(training, field)));
        else
            json_set(object, field->name,
                     json_new_real(training_real(training, field), field->digits));
    }
    set_text(object, "timeLeft", left);
    json_set(object, "estimatedCompletionTime", json_new_time(training_end_ms(training)));
}

struct json *manifest_training(const struct job_status *status)
{
    if (!status->training.known && !status->goodput.known)
        return NULL;
    struct json *object = json_new_object();
    if (status->training.known)
        set_training(object, &status->training);
    set_goodput(object, status);
    return object;
}

const char *manifest_lost_training(const struct job_status *status, const struct json *answer,
                                   struct arena *arena)
{
    struct json *written = manifest_training(status);
    const char *lost = NULL;
    const struct json *member;
    json_each_member(member, written) {
        if (!lost && !json_is_null(member) &&
            !manifest_is_whole(member, json_get(answer, json_key(member))))
            lost = arena_strdup(arena, json_key(member));
    }
    json_free(written);
    return answer ? lost : "training";
}

bool manifest_has_training(const struct job_status *status, const char *name)
{
    struct json *written = manifest_training(status);
    bool has = strcmp(name, "training") == 0 || json_get(written, name);
    json_free(written);
    return has;
}
