#include "tests/agent/fixture.h"

#include "agent/checkpoint/safetensors.h"
#include "base/mem.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct fixture_file {
    struct arena *arena;
    struct safetensors *file;
};

struct fixture_file *fixture_open(const char *name)
{
    struct fixture_file *f = xcalloc(1, sizeof *f);
    struct error err;
    f->arena = arena_open();
    const char *path = arena_printf(f->arena, "tests/data/parity/%s", name);
    assert_ok(safetensors_open(path, &f->file, &err), &err);
    return f;
}

void fixture_close(struct fixture_file *f)
{
    safetensors_close(f->file);
    arena_close(f->arena);
    free(f);
}

const float *fixture_get(struct fixture_file *f, int64_t *ret_count, const char *format, ...)
{
    char name[128];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    struct error err;
    const struct safetensors_tensor *t = safetensors_find(safetensors_header(f->file), name);
    if (!t)
        fail_msg("no tensor %s", name);
    float *values = arena_array(f->arena, float, t->count);
    if (t->dtype == SAFETENSORS_F32) {
        assert_ok(safetensors_read(f->file, t, 0, t->count, values, &err), &err);
    } else {
        assert_int_equal(t->dtype, SAFETENSORS_I64);
        int64_t *whole = arena_array(f->arena, int64_t, t->count);
        assert_ok(safetensors_read(f->file, t, 0, t->count, whole, &err), &err);
        for (int64_t i = 0; i < t->count; i++)
            values[i] = (float)whole[i];
    }
    *ret_count = t->count;
    return values;
}

const char *fixture_note(struct fixture_file *f, const char *key)
{
    const char *note = safetensors_get_metadata(safetensors_header(f->file), key);
    if (!note)
        fail_msg("no note %s", key);
    return note;
}

double fixture_distance(const float *got, const float *expected, int64_t count)
{
    double difference = 0, size = 0;
    for (int64_t i = 0; i < count; i++) {
        double d = (double)got[i] - (double)expected[i];
        difference += d * d;
        size += (double)expected[i] * (double)expected[i];
    }
    return sqrt(difference) / (size > 0 ? sqrt(size) : 1);
}

void fixture_compare(const char *what, const float *got, const float *expected, int64_t count,
                     double absolute, double relative)
{
    for (int64_t i = 0; i < count; i++) {
        double allowed = absolute + relative * fabs((double)expected[i]);
        double difference = fabs((double)got[i] - (double)expected[i]);
        if (!(difference <= allowed)) /* so that NaN fails */
            fail_msg("%s[%lld] is %.9g, not %.9g", what, (long long)i, (double)got[i],
                     (double)expected[i]);
    }
}
