#include "kernels/cuda/cudnn.h"

#include "base/contract.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLANS = 16,                /* a model has two or four; the one used longest ago makes room */
    WORKSPACE_MAX = 256 << 20, /* bytes: what NVIDIA's own front end grants such a backward */
    WORKSPACE_ALIGNMENT = 256,
    DIRECTIONS = ATTENTION_BACKWARD_NONDETERMINISTIC + 1,
};
static const char *const direction_names[DIRECTIONS] = {"forward", "backward",
                                                        "nondeterministic backward"};

/* What a plan is for. */
struct shape_key {
    int64_t B, T_q, T_k, heads, kv_heads, hd, q_stride, k_stride, v_stride, causal, backward;
    int64_t nondeterministic; /* of backward */
};

struct plan {
    struct shape_key key;
    uint64_t used_at; /* 0: free */
    struct cudnn_attention attention;
    int64_t sequences; /* that it does at a time, a divisor of the batch */
    bool is_compared;  /* with our kernels' result */
};

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
    uint64_t uses;
    struct plan *plans[PLANS]; /* NULL: not made yet */
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
    for (int i = 0; i < PLANS && c->plans[i]; i++) {
        cudnn_graph_close(&c->plans[i]->attention.graph);
        free(c->plans[i]);
    }
    if (c->was_opened)
        cudnn_graph_close(&c->properties);
    if (c->handle)
        c->api.destroy(c->handle);
    free(c);
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

static struct shape_key key_of(const struct attention_shape *z, bool backward)
{
    return (struct shape_key){z->B,        z->T_q,    z->T_k,      z->heads,
                              z->kv_heads, z->hd,     z->q_stride, z->k_stride,
                              z->v_stride, z->causal, backward,    backward && z->nondeterministic};
}

/* As many sequences of a batch as a workspace, which grows with them, is enough for: a divisor of
 * B; 0: there is none. Each part's lse begins at a multiple of 16 bytes. */
static int64_t sequences_within(const struct attention_shape *z, int64_t workspace)
{
    int64_t each = workspace / z->B;
    for (int64_t b = z->B; b > 0; b--)
        if (z->B % b == 0 && each * b <= WORKSPACE_MAX &&
            b * z->heads * z->T_q % (CUDNN_ALIGNMENT / (int64_t)sizeof(float)) == 0)
            return b;
    return 0;
}

/* Of the whole batch, or of as many sequences as there is a plan for. */
static void open_plan(struct cudnn *c, struct plan *plan, const struct attention_shape *shape,
                      bool backward)
{
    struct cudnn_attention *a = &plan->attention;
    struct attention_shape part = *shape;
    plan->sequences = shape->B;
    cudnn_attention_open(a, &c->api, c->device, &part, backward, WORKSPACE_MAX);
    if (a->plan || a->workspace <= WORKSPACE_MAX)
        return;
    part.B = sequences_within(shape, a->workspace);
    if (part.B == 0 || part.B == shape->B)
        return;
    plan->sequences = part.B;
    cudnn_graph_close(&a->graph);
    cudnn_attention_open(a, &c->api, c->device, &part, backward, WORKSPACE_MAX);
}

static struct plan *find_plan(struct cudnn *c, const struct shape_key *key)
{
    for (int i = 0; i < PLANS && c->plans[i]; i++)
        if (memcmp(&c->plans[i]->key, key, sizeof *key) == 0)
            return c->plans[i];
    return NULL;
}

/* Where the next plan goes: a free place, or that of the one used longest ago. */
static int place_of_next(const struct cudnn *c)
{
    int oldest = 0;
    for (int i = 0; i < PLANS; i++) {
        if (!c->plans[i])
            return i;
        oldest = c->plans[i]->used_at < c->plans[oldest]->used_at ? i : oldest;
    }
    return oldest;
}

/* A new plan is made outside of captures: that compiles and loads its kernels. */
static struct plan *take_plan(struct stream *s, const struct attention_shape *shape, bool backward)
{
    struct cudnn *c = cuda_cudnn(s);
    const struct shape_key key = key_of(shape, backward);
    struct plan *plan = find_plan(c, &key);
    c->uses++;
    if (plan) {
        plan->used_at = c->uses;
        return plan;
    }
    const int place = place_of_next(c);
    cudaStream_t handle = cuda_uncaptured(s);
    plan = c->plans[place];
    if (plan) { /* its kernel may be queued yet */
        cuda_check(s, cudaStreamSynchronize(handle), "forget a plan of cuDNN's");
        cudnn_graph_close(&plan->attention.graph);
    } else {
        plan = c->plans[place] = xcalloc(1, sizeof *plan);
    }
    plan->key = key;
    plan->used_at = c->uses;
    plan->is_compared = false;
    open_plan(c, plan, shape, backward);
    return plan;
}

/* pointers: of each tensor by its name; NULL: the graph has none of it. Parts a graph of ops: an
 * engine may queue what cannot be given new arguments. */
static int execute(struct cudnn *c, struct stream *s, cudnn_descriptor plan, void *workspace,
                   const void *const pointers[CUDNN_TENSORS])
{
    const struct cudnn_api *api = &c->api;
    cudnn_descriptor pack;
    int64_t names[CUDNN_TENSORS], count = 0;
    const void *places[CUDNN_TENSORS];
    for (int64_t name = 1; name < CUDNN_TENSORS; name++)
        if (pointers[name]) {
            names[count] = name;
            places[count++] = pointers[name];
        }
    int status = api->descriptor_create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status != 0)
        return status;
    status = api->set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, names);
    if (!status)
        status = api->set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                          places);
    if (!status)
        status =
            api->set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    if (!status)
        status = api->finalize(pack);
    if (!status)
        status = api->set_stream(c->handle, cuda_uncaptured(s));
    if (!status)
        status = api->execute(c->handle, plan, pack);
    api->descriptor_destroy(pack);
    return status;
}

static bool are_aligned(const void *const pointers[CUDNN_TENSORS])
{
    for (int i = 0; i < CUDNN_TENSORS; i++)
        if (i != CUDNN_SCALE && i != CUDNN_MASKED && i != CUDNN_ONE &&
            (uintptr_t)pointers[i] % CUDNN_ALIGNMENT != 0)
            return false;
    return true;
}

/* Where the parts of a call's scratch begin, in bytes; the workspace is first. */
struct room {
    size_t delta, dq_sums, total;
};

static size_t align_up(size_t bytes)
{
    return (bytes + WORKSPACE_ALIGNMENT - 1) / WORKSPACE_ALIGNMENT * WORKSPACE_ALIGNMENT;
}

static struct room room_of(const struct attention_shape *z, bool backward, int64_t workspace)
{
    const size_t rows = backward ? (size_t)(z->B * z->heads * z->T_q) : 0;
    const size_t sums = z->nondeterministic ? rows * (size_t)z->hd : 0;
    struct room room = {.delta = align_up((size_t)workspace)};
    room.dq_sums = align_up(room.delta + rows * sizeof(float));
    room.total = room.dq_sums + sums * sizeof(float);
    return room;
}

/* Bytes from a tensor's place in one sequence to that in the next; 0: it is not the batch's. */
static void find_steps(const struct attention_shape *z, int64_t ret_steps[CUDNN_TENSORS])
{
    const int64_t q = z->T_q * z->q_stride, k = z->T_k * z->k_stride, v = z->T_k * z->v_stride;
    const int64_t y = z->T_q * z->heads * z->hd, two = sizeof(bf16);
    const int64_t steps[CUDNN_TENSORS] = {
        [CUDNN_Q] = two * q,
        [CUDNN_DQ] = two * q,
        [CUDNN_K] = two * k,
        [CUDNN_DK] = two * k,
        [CUDNN_V] = two * v,
        [CUDNN_DV] = two * v,
        [CUDNN_Y] = two * y,
        [CUDNN_DY] = two * y,
        [CUDNN_LSE] = z->heads * z->T_q * (int64_t)sizeof(float),
    };
    memcpy(ret_steps, steps, sizeof steps);
}

/* Queues the plan for each part of the batch. pointers: all of the first part's. */
static int execute_parts(struct cudnn *c, struct stream *s, const struct plan *plan,
                         const struct attention_shape *shape, void *workspace,
                         const void *pointers[CUDNN_TENSORS])
{
    int64_t steps[CUDNN_TENSORS];
    int status = 0;
    find_steps(shape, steps);
    for (int64_t b = 0; b < shape->B && status == 0; b += plan->sequences) {
        status = execute(c, s, plan->attention.plan, workspace, pointers);
        for (int i = 0; i < CUDNN_TENSORS; i++)
            if (pointers[i])
                pointers[i] = (const char *)pointers[i] + steps[i] * plan->sequences;
    }
    return status;
}

/* pointers: all but those of numbers and scratch. */
static enum cudnn_result attend(struct stream *s, bool backward,
                                const struct attention_shape *shape,
                                const void *pointers[CUDNN_TENSORS])
{
    static const float masked = -INFINITY, one = 1;
    const enum attention_direction direction = direction_of(shape, backward);
    struct cudnn *c = cuda_cudnn(s);
    cuda_use((const struct cuda_device *)s->device);
    if (!are_aligned(pointers)) {
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
    struct plan *plan = take_plan(s, shape, backward);
    struct cudnn_attention *a = &plan->attention;
    if (!a->plan) {
        log_fallback(c, direction, a->graph.failed, a->graph.reason);
        return CUDNN_LEFT;
    }
    struct attention_shape part = *shape;
    part.B = plan->sequences;
    const struct room room = room_of(&part, backward, a->workspace);
    char *scratch = cuda_scratch(s, room.total);
    if (!scratch)
        return CUDNN_QUEUED; /* the stream has failed */
    pointers[CUDNN_SCALE] = &shape->scale;
    if (shape->causal)
        pointers[CUDNN_MASKED] = &masked;
    if (backward) {
        pointers[CUDNN_ONE] = &one;
        pointers[CUDNN_DELTA] = scratch + room.delta;
        if (shape->nondeterministic)
            pointers[CUDNN_DQ_SUMS] = scratch + room.dq_sums;
    }
    int status = execute_parts(c, s, plan, shape, scratch, pointers);
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
    if (doer == ATTENTION_BY_US)
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
    const struct shape_key key = key_of(shape, backward);
    struct plan *plan = find_plan(cuda_cudnn(s), &key);
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
