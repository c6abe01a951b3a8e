#include "base/series.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/page.h"

_Static_assert(sizeof(struct series_kept) == 20, "a point takes 20 bytes");

enum { FIRST_POINTS = 8, DIGITS = 5, HIGH_STEP_MAX = SERIES_STEP_MAX >> 32 };

static struct series_kept kept_of(const struct series_point *sample)
{
    bool fits = sample->world_size > 0 && sample->world_size <= SERIES_WORLD_MAX;
    return (struct series_kept){.time_s = sample->time_s,
                                .loss = sample->loss,
                                .rate = sample->rate,
                                .low_step = (uint32_t)sample->step,
                                .high_step = (uint32_t)(sample->step >> 32) & HIGH_STEP_MAX,
                                .world_size =
                                    fits ? (uint32_t)sample->world_size & SERIES_WORLD_MAX : 0};
}

static int64_t step_of(const struct series_kept *point)
{
    return (int64_t)point->high_step << 32 | point->low_step;
}

void series_free(struct series *s)
{
    free(s->points);
    *s = (struct series){.count = 0};
}

static void halve(struct series *s)
{
    for (int i = 0; i < s->count / 2; i++) /* the newest stays */
        s->points[i] = s->points[2 * i + 1];
    s->count /= 2;
    s->stride *= 2;
}

static void resize(struct series *s, int size)
{
    s->size = size;
    s->points = xrealloc(s->points, (size_t)size * sizeof *s->points);
}

static void append(struct series *s, const struct series_point *sample)
{
    int most = s->most ? s->most : PAGE_POINTS_MAX;
    while (s->count >= most)
        halve(s);
    if (s->size > most)
        resize(s, most);
    if (s->count == s->size) {
        int doubled = s->size ? 2 * s->size : FIRST_POINTS;
        resize(s, doubled < most ? doubled : most);
    }
    s->points[s->count++] = kept_of(sample);
    s->held = 1;
}

void series_add(struct series *s, const struct series_point *sample)
{
    const struct series_kept *last = s->count > 0 ? &s->points[s->count - 1] : NULL;
    if (!s->stride)
        s->stride = 1;
    if (sample->step < 0 || sample->step > SERIES_STEP_MAX ||
        (last && step_of(last) == sample->step))
        return;
    if (!last || s->held >= s->stride) {
        append(s, sample);
    } else {
        s->points[s->count - 1] = kept_of(sample);
        s->held++;
    }
}

static struct json *number(float value)
{
    return isfinite(value) ? json_new_real((double)value, DIGITS) : json_new_null();
}

struct json *series_losses(const struct series *s, int most)
{
    int count = s->count < most ? s->count : most;
    bool is_known = false;
    struct json *list = json_new_array();
    for (int i = 0; i < count; i++) {
        int at = count > 1 ? (int)((int64_t)i * (s->count - 1) / (count - 1)) : 0;
        is_known = is_known || isfinite(s->points[at].loss);
        json_append(list, number(s->points[at].loss));
    }
    if (is_known)
        return list;
    json_free(list);
    return NULL;
}

struct json *series_json(const struct series *s, const char *unit)
{
    if (s->count == 0)
        return NULL;
    struct json *time = json_new_array(), *step = json_new_array(), *loss = json_new_array(),
                *rate = json_new_array(), *world_size = json_new_array();
    for (int i = 0; i < s->count; i++) {
        const struct series_kept *p = &s->points[i];
        json_append(time, json_new_integer(p->time_s));
        json_append(step, json_new_integer(step_of(p)));
        json_append(loss, number(p->loss));
        json_append(rate, number(p->rate));
        json_append(world_size,
                    p->world_size > 0 ? json_new_integer(p->world_size) : json_new_null());
    }
    return json_object_of("unit", json_new_text(unit), "time", time, "step", step, "loss", loss,
                          "rate", rate, "worldSize", world_size, NULL);
}
