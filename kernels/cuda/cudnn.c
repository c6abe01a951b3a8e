#include "kernels/cuda/cudnn.h"

#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernels/cuda/cudnn_run.h"
#include "kernels/cuda/stream.h"

#include <stdlib.h>

enum { DIRECTIONS = ATTENTION_BACKWARD_NONDETERMINISTIC + 1 };
static const char *const direction_names[DIRECTIONS] = {"forward", "backward",
                                                        "nondeterministic backward"};

struct cudnn {
    int index;
    struct attention_choice choice;
    bool was_opened, is_usable;
    struct error failure;        /* why it is not */
    bool logged[DIRECTIONS];     /* that it is not cuDNN */
    bool is_refused[DIRECTIONS]; /* its results are wrong */
    bool told_published;         /* that it is cuDNN, by what others have published */
    struct cudnn_api api;
    cudnn_handle handle;
    struct cudnn_graph properties; /* holds `device` */
    cudnn_descriptor device;
    struct cudnn_plans plans;
};

struct cudnn *cudnn_open(int index, int compute_capability, enum attention_mode mode)
{
    struct cudnn *c = xcalloc(1, sizeof *c);
    c->index = index;
    c->choice = attention_choice_here(mode, compute_capability);
    if (mode == ATTENTION_AUTO && !attention_is_known(&c->choice))
        log_debug("attention: cuDNN's was not measured on compute capability %d.%d: our own "
                  "kernels do it; " ENV_ATTENTION "=cudnn asks cuDNN",
                  compute_capability / 10, compute_capability % 10);
    return c;
}

void cudnn_close(struct cudnn *c)
{
    if (!c)
        return;
    cudnn_plans_close(&c->plans);
    if (c->was_opened)
        cudnn_graph_close(&c->properties);
    if (c->handle)
        c->api.destroy(c->handle);
    free(c);
}

const struct attention_choice *cuda_attention_choice(struct stream *s)
{
    return &cuda_cudnn(s)->choice;
}

static enum attention_direction direction_of(const struct attention_shape *z, bool backward)
{
    return !backward             ? ATTENTION_FORWARD
           : z->nondeterministic ? ATTENTION_BACKWARD_NONDETERMINISTIC
                                 : ATTENTION_BACKWARD;
}

static void log_fallback(struct cudnn *c, enum attention_direction direction, const char *what,
                         const char *why)
{
    if (c->logged[direction])
        return;
    c->logged[direction] = true;
    log_write(LOG_WARNING, "attention: %s is done by our own kernels, not by cuDNN: %s%s%s",
              direction_names[direction], what, *what && *why ? ": " : "", why);
}

static bool start(struct cudnn *c, struct error *err)
{
    if (cudnn_api_open(&c->api, err) < 0)
        return false;
    int status = c->api.create(&c->handle);
    if (status != 0) {
        c->handle = NULL;
        error_set(err, ERR_UNSUPPORTED, "it does not start: %s", c->api.status_text(status));
        return false;
    }
    const int32_t index = c->index;
    c->properties.api = &c->api;
    c->device = cudnn_make(&c->properties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "the GPU");
    cudnn_set(&c->properties, c->device, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1,
              &index);
    cudnn_finalize(&c->properties, c->device, "the GPU");
    if (!c->properties.failed)
        return true;
    error_set(err, ERR_UNSUPPORTED, "it does not know the GPU: %s", c->properties.reason);
    return false;
}

/* Opens the library if this is the first time, outside of captures. */
static bool is_usable(struct cudnn *c, struct stream *s, enum attention_direction direction)
{
    if (!c->was_opened) {
        cuda_uncaptured(s);
        cudnn_graph_open(&c->properties, &c->api);
        c->was_opened = true;
        c->is_usable = start(c, &c->failure);
    }
    if (!c->is_usable)
        log_fallback(c, direction, "", c->failure.msg);
    return c->is_usable;
}

/* A new plan is made outside of captures. */
static struct cudnn_plan *take_plan(struct cudnn *c, struct stream *s,
                                    const struct attention_shape *shape, bool backward)
{
    struct cudnn_plan *plan = cudnn_plans_take(&c->plans, shape, backward);
    if (plan)
        return plan;
    cudaStream_t handle = cuda_uncaptured(s);
    if (cudnn_plans_are_full(&c->plans))
        cuda_check(s, cudaStreamSynchronize(handle), "forget a plan of cuDNN's");
    return cudnn_plans_make(&c->plans, &c->api, c->device, shape, backward);
}

/* pointers: all but those of numbers and scratch. */
static enum cudnn_result attend(struct stream *s, bool backward,
                                const struct attention_shape *shape,
                                const void *pointers[CUDNN_TENSORS])
{
    const enum attention_direction direction = direction_of(shape, backward);
    struct cudnn *c = cuda_cudnn(s);
    cuda_use((const struct cuda_device *)s->device);
    if (!cudnn_run_can_take(pointers)) {
        log_fallback(c, direction, "a tensor does not begin at a multiple of 16 bytes", "");
        return CUDNN_LEFT;
    }
    if (c->is_refused[direction] || !is_usable(c, s, direction))
        return CUDNN_LEFT;
    if (backward && shape->T_k % CUDNN_KEYS_BLOCK != 0 &&
        c->api.version() < CUDNN_BACKWARD_OF_ANY_LENGTH) {
        log_fallback(c, direction, "before 9.16 it needs a multiple of 128 keys", "");
        return CUDNN_LEFT;
    }
    struct cudnn_plan *plan = take_plan(c, s, shape, backward);
    struct cudnn_attention *a = &plan->attention;
    if (!a->plan) {
        log_fallback(c, direction, a->graph.failed, a->graph.reason);
        return CUDNN_LEFT;
    }
    void *scratch = cuda_scratch(s, cudnn_run_scratch_bytes(plan, shape, backward));
    if (!scratch)
        return CUDNN_QUEUED; /* the stream has failed */
    int status = cudnn_run(&c->api, c->handle, s, plan, shape, backward, scratch, pointers);
    if (status == 0)
        return plan->is_compared ? CUDNN_QUEUED : CUDNN_FIRST;
    a->plan = NULL; /* never again */
    a->graph.failed = "its plan does not run";
    log_fallback(c, direction, a->graph.failed, c->api.status_text(status));
    return CUDNN_LEFT;
}

/* The call, if it is for cuDNN. That others' figures have decided so is told once it is done. */
static enum cudnn_result try_call(struct stream *s, bool backward, enum dtype t,
                                  const struct attention_shape *shape,
                                  const void *pointers[CUDNN_TENSORS])
{
    struct cudnn *c = cuda_cudnn(s);
    const int capability = c->choice.compute_capability;
    enum attention_doer doer =
        attention_choose(&c->choice, backward ? ATTENTION_BACKWARD : ATTENTION_FORWARD, t, shape);
    if (!attention_is_cudnns(doer))
        return CUDNN_LEFT;
    enum cudnn_result result = attend(s, backward, shape, pointers);
    if (result == CUDNN_QUEUED)
        s->device->library_attentions++;
    if (doer == ATTENTION_CUDNN_PUBLISHED && result != CUDNN_LEFT && !c->told_published) {
        c->told_published = true;
        log_info("attention: cuDNN does it on compute capability %d.%d, by published figures, not "
                 "measured here; " ENV_ATTENTION "=ours keeps our own kernels",
                 capability / 10, capability % 10);
    }
    return result;
}

enum cudnn_result cudnn_attention_forward(struct stream *s, enum dtype t, void *y, float *lse,
                                          const void *q, const void *k, const void *v,
                                          const struct attention_shape *shape)
{
    const void *pointers[CUDNN_TENSORS] = {
        [CUDNN_Q] = q, [CUDNN_K] = k, [CUDNN_V] = v, [CUDNN_Y] = y, [CUDNN_LSE] = lse};
    return try_call(s, false, t, shape, pointers);
}

enum cudnn_result cudnn_attention_backward(struct stream *s, enum dtype t, void *dq, void *dk,
                                           void *dv, const void *dy, const void *y,
                                           const float *lse, const void *q, const void *k,
                                           const void *v, const struct attention_shape *shape)
{
    const void *pointers[CUDNN_TENSORS] = {
        [CUDNN_Q] = q,     [CUDNN_K] = k,   [CUDNN_V] = v,   [CUDNN_Y] = y,  [CUDNN_DY] = dy,
        [CUDNN_LSE] = lse, [CUDNN_DQ] = dq, [CUDNN_DK] = dk, [CUDNN_DV] = dv};
    return try_call(s, true, t, shape, pointers);
}

void cudnn_attention_compared(struct stream *s, bool backward, const struct attention_shape *shape)
{
    struct cudnn_plan *plan = cudnn_plans_find(&cuda_cudnn(s)->plans, shape, backward);
    s->device->library_attentions++;
    if (plan)
        plan->is_compared = true;
}

void cudnn_attention_refuse(struct stream *s, bool backward, const struct attention_shape *shape,
                            const char *what)
{
    const enum attention_direction direction = direction_of(shape, backward);
    struct cudnn *c = cuda_cudnn(s);
    c->is_refused[direction] = true;
    c->logged[direction] = false; /* whatever was told of other shapes */
    log_fallback(c, direction, "its result is far from theirs", what);
}
