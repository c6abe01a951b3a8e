/* Units that are gathered in fp8 (shard_payload.h says what that carries). All of it runs on the
 * transfer stream, before compute may use the unit. A slice is cast into its place of the gathered
 * unit each time: that takes no memory, and reads no more than the slice. */
#include "agent/shard/shard_internal.h"

#include <stdio.h>

_Static_assert((int)LAYOUT_ALIGN_FP8 == (int)FP8_ALIGN, "codes are operands where they lie");

static int alloc(struct shard *shard, const struct unit *u, size_t bytes, const char *of,
                 void **ret_memory, struct error *err)
{
    char what[128];
    snprintf(what, sizeof what, "%s of unit \"%s\"", of, u->view.module->path);
    return device_alloc(stream_device(shard->compute), MEMORY_UNIT, bytes, what, ret_memory, err);
}

bool shard_gathers_fp8(const struct shard *shard, const struct layout_unit *unit)
{
    return shard->config.gathers_fp8 && shard->config.param_dtype == DTYPE_BF16 &&
           shard_payload_saves(unit->flat_count, layout_fp8_count(unit), shard->group_size);
}

int shard_open_fp8(struct shard *shard, struct unit *u, struct error *err)
{
    bool joins = !device_is_host(stream_device(shard->compute));
    void *scales = NULL, *rest = NULL;
    if (!shard_gathers_fp8(shard, u->layout))
        return 0;
    shard_payload_make(shard->arena, &shard->layout, u->layout, joins, &u->payload);
    const struct shard_payload *p = &u->payload;
    int result =
        alloc(shard, u, (size_t)p->matrix_count * sizeof *u->scales, "scales", &scales, err);
    if (result == 0 && p->rest_count > 0)
        result = alloc(shard, u, (size_t)p->rest_count * sizeof *u->rest, "rest", &rest, err);
    u->scales = scales;
    u->rest = rest;
    return result;
}

void shard_close_fp8(struct shard *shard, struct unit *u)
{
    device_free(stream_device(shard->compute), u->scales);
    device_free(stream_device(shard->compute), u->rest);
}

int shard_open_messages(struct shard *shard, struct error *err)
{
    int64_t message = 0, slice = 0;
    void *messages = NULL, *staged = NULL;
    struct device *device = stream_device(shard->compute);
    for (int i = 0; i < shard->unit_count; i++) {
        const struct unit *u = &shard->units[i];
        if (!u->payload.is_fp8)
            continue;
        message = u->payload.message_count > message ? u->payload.message_count : message;
        slice = u->layout->shard_count > slice ? u->layout->shard_count : slice;
    }
    if (message == 0)
        return 0;
    int result = device_alloc(device, MEMORY_UNIT,
                              (size_t)(message * shard->group_size) * sizeof *shard->messages,
                              "messages of a unit", &messages, err);
    if (result == 0 && shard->offload)
        result = device_alloc(device, MEMORY_UNIT, (size_t)slice * sizeof *shard->staged,
                              "a slice to be cast", &staged, err);
    shard->messages = messages;
    shard->staged = staged;
    return result;
}

/* The slice in bf16, on compute's device. */
static const bf16 *slice_there(struct shard *shard, const struct unit *u)
{
    if (!shard->offload)
        return u->compute_shard;
    stream_copy(shard->transfer, shard->staged, u->compute_shard,
                (size_t)u->layout->shard_count * sizeof(bf16));
    return shard->staged;
}

static struct shard_payload_span own_part(const struct shard *shard, const struct unit *u,
                                          int matrix)
{
    return shard_payload_in_slice(&u->payload.matrices[matrix], u->layout->shard_count,
                                  shard->group_rank);
}

static void write_message(struct shard *shard, const struct unit *u, const bf16 *slice,
                          bf16 *message)
{
    const struct shard_payload *p = &u->payload;
    const struct ops *ops = compute_ops(shard);
    int64_t floats =
        p->matrix_count * SHARD_PAYLOAD_LARGEST * (int64_t)(sizeof(bf16)) / (int64_t)sizeof(float);
    ops->fill(shard->transfer, (float *)(void *)message, 0, floats);
    for (int i = 0; i < p->matrix_count; i++) {
        const struct shard_payload_span part = own_part(shard, u, i);
        if (part.count > 0)
            ops->fp8_largest(shard->transfer, message + i * SHARD_PAYLOAD_LARGEST,
                             slice + part.offset, part.count);
    }
    for (int i = 0; i < p->piece_count; i++)
        if (p->pieces[i].rank == shard->group_rank)
            stream_copy(shard->transfer, message + p->pieces[i].message_offset,
                        slice + p->pieces[i].slice_offset,
                        (size_t)p->pieces[i].count * sizeof(bf16));
}

/* The ranks' largest magnitudes are numbers of one more tensor, whose scale is the matrix's. */
static void read_messages(struct shard *shard, struct unit *u)
{
    const struct shard_payload *p = &u->payload;
    for (int i = 0; i < p->matrix_count; i++)
        compute_ops(shard)->fp8_scale(shard->transfer, FP8_E4M3, u->scales + i,
                                      shard->messages + i * SHARD_PAYLOAD_LARGEST,
                                      shard->group_size, SHARD_PAYLOAD_LARGEST, p->message_count);
    for (int i = 0; i < p->piece_count; i++) {
        const struct shard_payload_piece *piece = &p->pieces[i];
        stream_copy(shard->transfer, u->rest + piece->rest_offset,
                    shard->messages + piece->rank * p->message_count + piece->message_offset,
                    (size_t)piece->count * sizeof(bf16));
    }
}

static void exchange(struct shard *shard, struct unit *u, const bf16 *slice)
{
    const int64_t count = u->payload.message_count;
    bf16 *own = shard->messages + shard->group_rank * count;
    write_message(shard, u, slice, own);
    shard->group->fn->all_gather(shard->group, shard->transfer, DTYPE_BF16, shard->messages, own,
                                 count);
    read_messages(shard, u);
    u->has_rest = true;
}

void shard_gather_fp8(struct shard *shard, struct unit *u)
{
    const int64_t count = u->layout->shard_count;
    const bf16 *slice = slice_there(shard, u);
    uint8_t *own = (uint8_t *)u->unsharded + shard->group_rank * count;
    if (!u->has_rest)
        exchange(shard, u, slice);
    for (int i = 0; i < u->payload.matrix_count; i++) {
        const struct shard_payload_span part = own_part(shard, u, i);
        if (part.count > 0)
            compute_ops(shard)->fp8_cast(shard->transfer, FP8_E4M3, own + part.offset, NULL,
                                         u->scales + i, slice + part.offset, part.count / FP8_ALIGN,
                                         FP8_ALIGN, FP8_ALIGN);
    }
    shard->group->fn->all_gather(shard->group, shard->transfer, DTYPE_E4M3, u->unsharded, own,
                                 count);
}

void shard_bind_fp8(const struct unit *u)
{
    for (int i = 0; i < u->layout->param_count; i++) {
        const struct layout_param *l = &u->layout->params[i];
        const struct shard_payload_place *place = &u->payload.places[i];
        bool is_code = place->matrix >= 0;
        l->param->value = is_code ? (const void *)((const uint8_t *)u->unsharded + l->offset)
                                  : u->rest + place->rest_offset;
        l->param->scale = is_code ? u->scales + place->matrix : NULL;
    }
}
