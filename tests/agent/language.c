#include "tests/agent/language.h"

#include "base/mem.h"
#include "tests/agent/world.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { TOKEN_STREAM = 102, IGNORE_STREAM = 103 };

static double unit(int64_t index, uint32_t stream)
{
    return world_hash((uint32_t)index, stream) / 2147483648.0 - 1.0;
}

float language_weight(const struct param *p, int64_t i)
{
    double value = unit(i, (uint32_t)p->index);
    const char *end = strrchr(p->name, '.');
    if (p->dims > 1)
        return (float)(value * 0.3);
    return (float)(strcmp(end, ".bias") == 0 ? value * 0.1 : 1.0 + value * 0.25);
}

void language_sample(int64_t V, int64_t T, int64_t sample, int32_t *ret_tokens, int32_t *ret_target)
{
    for (int64_t t = 0; t < T; t++) {
        uint32_t index = (uint32_t)(sample * (T + 1) + t);
        ret_tokens[t] = (int32_t)(world_hash(index, TOKEN_STREAM) % (uint32_t)V);
        ret_target[t] = (int32_t)(world_hash(index + 1, TOKEN_STREAM) % (uint32_t)V);
        if (world_hash(index + 1, IGNORE_STREAM) % 7 == 0)
            ret_target[t] = -100;
    }
}

static int count_params(const struct module *m)
{
    int count = m->param_count;
    for (int i = 0; i < m->child_count; i++)
        count += count_params(m->children[i]);
    return count;
}

static void list_params(struct language *l, struct module *m)
{
    for (int i = 0; i < m->param_count; i++)
        l->params[m->params[i]->index] = m->params[i];
    for (int i = 0; i < m->child_count; i++)
        list_params(l, m->children[i]);
}

static void bind(struct language *l, enum dtype dtype)
{
    l->param_count = count_params(l->model->root);
    l->params = arena_array(l->arena, struct param *, l->param_count);
    l->gradients = arena_array(l->arena, float *, l->param_count);
    list_params(l, l->model->root);
    for (int i = 0; i < l->param_count; i++) {
        struct param *p = l->params[i];
        char *value = arena_alloc(l->arena, (size_t)p->count * dtype_bytes(dtype));
        for (int64_t k = 0; k < p->count; k++) {
            float x = language_weight(p, k);
            if (dtype == DTYPE_F32)
                memcpy(value + k * (int64_t)sizeof x, &x, sizeof x);
            else
                ((bf16 *)(void *)value)[k] = bf16_from_float(x);
        }
        p->value = value;
        p->gradient = l->gradients[i] = arena_array(l->arena, float, p->count);
    }
}

struct language *language_open(const struct architecture *architecture, enum dtype dtype, int64_t T)
{
    struct language *l = xcalloc(1, sizeof *l);
    struct error err;
    l->arena = arena_open();
    l->T = T;
    assert_ok(architecture_check(architecture, &err), &err);
    l->model = architecture_build(l->arena, architecture);
    bind(l, dtype);
    assert_ok(device_open("cpu", 1, &l->device, &err), &err);
    assert_ok(stream_open(l->device, "compute", &l->stream, &err), &err);
    assert_ok(tape_open(l->stream, dtype, NULL, &l->tape, &err), &err);
    l->tokens = arena_array(l->arena, int32_t, LANGUAGE_ROWS * T);
    l->target = arena_array(l->arena, int32_t, LANGUAGE_ROWS * T);
    l->sums = arena_array(l->arena, double, 3);
    for (int64_t r = 0; r < LANGUAGE_ROWS; r++)
        language_sample(l->model->language.V, T, r, l->tokens + r * T, l->target + r * T);
    return l;
}

void language_close(struct language *l)
{
    struct memory_use use;
    tape_close(l->tape);
    stream_close(l->stream);
    device_memory_use(l->device, &use);
    assert_int_equal(use.current_total_bytes, 0);
    device_close(l->device);
    if (l->host) {
        device_memory_use(l->host, &use);
        assert_int_equal(use.current_total_bytes, 0);
    }
    device_close(l->host);
    arena_close(l->arena);
    free(l);
}

void language_spare_memory(struct language *l, enum tape_keeps keeps, bool offload)
{
    struct error err;
    if (offload)
        assert_ok(device_open("cpu", 1, &l->host, &err), &err);
    assert_ok(tape_spare_memory(l->tape, keeps, l->host, 1, &err), &err);
}

static int64_t targets(const struct language *l)
{
    int64_t count = 0;
    for (int64_t i = 0; i < LANGUAGE_ROWS * l->T; i++)
        count += l->target[i] >= 0;
    return count;
}

static void run(struct language *l, bool training, float *logits)
{
    struct error err;
    struct memory_use use;
    const struct batch batch = {.rows = LANGUAGE_ROWS,
                                .tokens = l->tokens,
                                .target = l->target,
                                .T = l->T,
                                .logits = logits};
    device_memory_reset_peak(l->device);
    memset(l->sums, 0, 3 * sizeof *l->sums);
    for (int i = 0; i < l->param_count; i++)
        l->params[i]->gradient_written = false;
    tape_begin(l->tape, &(struct tape_pass){.training = training, .seed = 7, .row_stride = 1});
    l->model->forward(l->model, l->tape, &batch, 1 / (float)targets(l), l->sums);
    assert_ok(training ? tape_backward(l->tape, &err) : tape_finish(l->tape, &err), &err);
    assert_ok(stream_sync(l->stream, &err), &err);
    device_memory_use(l->device, &use);
    l->peak_bytes = use.peak_total_bytes;
}

double language_run(struct language *l, bool training)
{
    run(l, training, NULL);
    assert_true(l->sums[2] == (double)targets(l));
    for (int i = 0; training && i < l->param_count; i++)
        assert_true(l->params[i]->gradient_written);
    return l->sums[0] / l->sums[2];
}

void language_logits(struct language *l, float *ret_logits)
{
    run(l, false, ret_logits);
}
