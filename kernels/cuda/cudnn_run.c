#include "kernels/cuda/cudnn_run.h"

#include "kernels/cuda/stream.h"

#include <math.h>
#include <string.h>

enum { WORKSPACE_ALIGNMENT = 256 };

bool cudnn_run_can_take(const void *const pointers[CUDNN_TENSORS])
{
    for (int i = 0; i < CUDNN_TENSORS; i++)
        if (i != CUDNN_SCALE && i != CUDNN_MASKED && i != CUDNN_ONE &&
            (uintptr_t)pointers[i] % CUDNN_ALIGNMENT != 0)
            return false;
    return true;
}

/* ---- scratch ---- */

/* Where the parts of a call's scratch begin, in bytes; the workspace is first. */
struct room {
    size_t delta, dq_sums, total;
};

static size_t align_up(size_t bytes)
{
    return (bytes + WORKSPACE_ALIGNMENT - 1) / WORKSPACE_ALIGNMENT * WORKSPACE_ALIGNMENT;
}

/* Of one part, which all parts share. */
static struct room room_of(const struct cudnn_plan *plan, const struct attention_shape *z,
                           bool backward)
{
    const size_t rows = backward ? (size_t)(plan->sequences * z->heads * z->T_q) : 0;
    const size_t sums = z->nondeterministic ? rows * (size_t)z->hd : 0;
    struct room room = {.delta = align_up((size_t)plan->attention.workspace)};
    room.dq_sums = align_up(room.delta + rows * sizeof(float));
    room.total = room.dq_sums + sums * sizeof(float);
    return room;
}

size_t cudnn_run_scratch_bytes(const struct cudnn_plan *plan, const struct attention_shape *shape,
                               bool backward)
{
    return room_of(plan, shape, backward).total;
}

static void add_numbers_and_scratch(const struct cudnn_plan *plan,
                                    const struct attention_shape *shape, bool backward,
                                    char *scratch, const void *pointers[CUDNN_TENSORS])
{
    static const float masked = -INFINITY, one = 1;
    const struct room room = room_of(plan, shape, backward);
    pointers[CUDNN_SCALE] = &shape->scale;
    if (shape->causal)
        pointers[CUDNN_MASKED] = &masked;
    if (!backward)
        return;
    pointers[CUDNN_ONE] = &one;
    pointers[CUDNN_DELTA] = scratch + room.delta;
    if (shape->nondeterministic)
        pointers[CUDNN_DQ_SUMS] = scratch + room.dq_sums;
}

/* ---- the parts of a batch ---- */

/* Parts a graph of ops. */
static int execute(const struct cudnn_api *api, cudnn_handle handle, struct stream *s,
                   cudnn_descriptor plan, void *workspace,
                   const void *const pointers[CUDNN_TENSORS])
{
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
        status = api->set_stream(handle, cuda_uncaptured(s));
    if (!status)
        status = api->execute(handle, plan, pack);
    api->descriptor_destroy(pack);
    return status;
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

int cudnn_run(const struct cudnn_api *api, cudnn_handle handle, struct stream *s,
              const struct cudnn_plan *plan, const struct attention_shape *shape, bool backward,
              void *scratch, const void *pointers[CUDNN_TENSORS])
{
    int64_t steps[CUDNN_TENSORS];
    int status = 0;
    add_numbers_and_scratch(plan, shape, backward, scratch, pointers);
    find_steps(shape, steps);
    for (int64_t b = 0; b < shape->B && status == 0; b += plan->sequences) {
        status = execute(api, handle, s, plan->attention.plan, scratch, pointers);
        for (int i = 0; i < CUDNN_TENSORS; i++)
            if (pointers[i])
                pointers[i] = (const char *)pointers[i] + steps[i] * plan->sequences;
    }
    return status;
}
