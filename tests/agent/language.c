#include "tests/agent/language.h"

#include "agent/shard/shard_layout.h"
#include "base/mem.h"
#include "tests/agent/world.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

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

static int64_t aligned(int64_t count)
{
    return (count + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
}

static void *device_memory(struct language *l, size_t bytes)
{
    struct error err;
    void *memory;
    assert_ok(device_alloc(l->device, MEMORY_UNIT, bytes, "a test's", &memory, &err), &err);
    return memory;
}

/* Behind each other, as in a unit: what a GPU multiplies with as one matrix is so here, too. */
static void bind(struct language *l, enum dtype dtype)
{
    int64_t total = 0, first = 0;
    l->param_count = count_params(l->model->root);
    l->params = arena_array(l->arena, struct param *, l->param_count);
    l->gradients = arena_array(l->arena, float *, l->param_count);
    list_params(l, l->model->root);
    for (int i = 0; i < l->param_count; i++)
        total += aligned(l->params[i]->count);
    l->values = device_memory(l, (size_t)total * dtype_bytes(dtype));
    l->device_gradients = device_memory(l, (size_t)total * sizeof(float));
    for (int i = 0; i < l->param_count; i++) {
        struct param *p = l->params[i];
        size_t bytes = (size_t)p->count * dtype_bytes(dtype);
        char *value = arena_alloc(l->arena, bytes);
        for (int64_t k = 0; k < p->count; k++) {
            float x = language_weight(p, k);
            if (dtype == DTYPE_F32)
                memcpy(value + k * (int64_t)sizeof x, &x, sizeof x);
            else
                ((bf16 *)(void *)value)[k] = bf16_from_float(x);
        }
        void *on_device = (char *)l->values + (size_t)first * dtype_bytes(dtype);
        stream_copy(l->stream, on_device, value, bytes);
        p->value = on_device;
        p->gradient = l->device_gradients + first;
        first += aligned(p->count);
        l->gradients[i] = arena_array(l->arena, float, p->count);
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
    assert_ok(device_open(support_device(), 1, &l->device, &err), &err);
    assert_ok(stream_open(l->device, "compute", &l->stream, &err), &err);
    bind(l, dtype);
    assert_ok(tape_open(l->stream, dtype, NULL, &l->tape, &err), &err);
    l->device_sums = device_memory(l, sizeof l->sums);
    l->batch = language_batch_make(l->arena, l->model, T, 0, 1, LANGUAGE_ROWS);
    assert_ok(device_batch_open(&l->on_device, l->stream, &l->batch.batch, 0, &err), &err);
    return l;
}

void language_close(struct language *l)
{
    struct memory_use use;
    tape_close(l->tape);
    device_batch_close(&l->on_device);
    device_free(l->device, l->values);
    device_free(l->device, l->device_gradients);
    device_free(l->device, l->device_sums);
    stream_close(l->stream);
    device_memory_use(l->device, &use);
    assert_int_equal(use.current_total_bytes, 0);
    if (l->host) {
        device_memory_use(l->host, &use);
        assert_int_equal(use.current_total_bytes, 0);
    }
    device_close(l->host);
    device_close(l->device);
    arena_close(l->arena);
    free(l);
}

void language_spare_memory(struct language *l, enum tape_checkpointing checkpointing, bool offload)
{
    struct error err;
    if (offload)
        assert_ok(device_open_host(l->device, 1, &l->host, &err), &err);
    assert_ok(tape_save_memory(l->tape, checkpointing, l->host, 1, &err), &err);
}

/* logits, label_logits: the device's. */
static void run(struct language *l, bool training, float *logits, float *label_logits)
{
    struct error err;
    struct memory_use use;
    struct batch batch = l->on_device.batch;
    batch.logits = logits;
    batch.label_logits = label_logits;
    if (l->batch.labels)
        batch.label_scale = 1 / (float)l->batch.labels;
    device_memory_reset_peak(l->device);
    memset(l->sums, 0, sizeof l->sums);
    stream_copy(l->stream, l->device_sums, l->sums, sizeof l->sums);
    assert_ok(stream_sync(l->stream, &err), &err); /* they are written again below */
    for (int i = 0; i < l->param_count; i++)
        l->params[i]->gradient_written = false;
    tape_begin(l->tape, &(struct tape_pass){.training = training, .seed = 7, .row_stride = 1});
    l->model->forward(l->model, l->tape, &batch, 1 / (float)l->batch.targets, l->device_sums);
    assert_ok(training ? tape_backward(l->tape, &err) : tape_finish(l->tape, &err), &err);
    stream_copy(l->stream, l->sums, l->device_sums, sizeof l->sums);
    for (int i = 0; training && i < l->param_count; i++)
        stream_copy(l->stream, l->gradients[i], l->params[i]->gradient,
                    (size_t)l->params[i]->count * sizeof(float));
    assert_ok(stream_sync(l->stream, &err), &err);
    device_memory_use(l->device, &use);
    l->peak_bytes = use.peak_total_bytes;
}

double language_run(struct language *l, bool training)
{
    run(l, training, NULL, NULL);
    assert_true(l->sums[2] == (double)l->batch.targets);
    assert_true(l->sums[5] == (double)l->batch.labels);
    for (int i = 0; training && i < l->param_count; i++)
        assert_true(l->params[i]->gradient_written);
    return language_loss(l->model, l->sums);
}

void language_logits(struct language *l, float *ret_logits, float *ret_label_logits)
{
    struct error err;
    bool classes = l->model->task == MODEL_CLASSES;
    size_t bytes =
        (size_t)(LANGUAGE_ROWS * (classes ? l->model->classes : l->T * l->model->language.V)) *
        sizeof(float);
    size_t label_bytes = LANGUAGE_ROWS * 2 * sizeof(float);
    float *logits = device_memory(l, bytes);
    float *label_logits = ret_label_logits ? device_memory(l, label_bytes) : NULL;
    run(l, false, logits, label_logits);
    stream_copy(l->stream, ret_logits, logits, bytes);
    if (label_logits)
        stream_copy(l->stream, ret_label_logits, label_logits, label_bytes);
    assert_ok(stream_sync(l->stream, &err), &err);
    device_free(l->device, logits);
    device_free(l->device, label_logits);
}
