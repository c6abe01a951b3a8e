#include "agent/shard/shard_payload.h"

#include "kernels/dtype.h"

#include <assert.h>

bool shard_payload_saves(int64_t flat_count, int64_t fp8_count, int group_size)
{
    int64_t most = shard_payload_most(flat_count - fp8_count, flat_count / group_size);
    return group_size > 1 && flat_count + most * group_size * (int64_t)sizeof(bf16) <
                                 flat_count * (int64_t)sizeof(bf16);
}

struct shard_payload_span shard_payload_in_slice(const struct shard_payload_span *span,
                                                 int64_t shard_count, int rank)
{
    int64_t slice = rank * shard_count, end = span->offset + span->count;
    int64_t from = span->offset > slice ? span->offset : slice;
    int64_t to = end < slice + shard_count ? end : slice + shard_count;
    return (struct shard_payload_span){from - slice, to > from ? to - from : 0};
}

/* How many parameters from number i on are one matrix. */
static int joined(const struct layout_unit *unit, int i, bool joins)
{
    const struct layout_param *first = &unit->params[i];
    int count = first->param->beside_count;
    if (!joins || count == 0 || first->param->beside_place != 0 || i + count > unit->param_count)
        return 1;
    for (int k = 1; k < count; k++) {
        const struct layout_param *p = &first[k];
        if (!p->param->fp8 || p->param->beside_place != k)
            return 1;
    }
    return count;
}

/* Parts the unit into matrices and runs of the rest between them. Returns how many runs. */
static int part(const struct layout_unit *unit, bool joins, struct shard_payload *p,
                struct shard_payload_span *runs)
{
    int run_count = 0, in_matrix = 0;
    int64_t end = 0; /* of the last matrix */
    for (int i = 0; i < unit->param_count; i++) {
        const struct layout_param *l = &unit->params[i];
        if (!l->param->fp8) {
            p->places[i] = (struct shard_payload_place){-1, p->rest_count + l->offset - end};
            continue;
        }
        if (l->offset > end) {
            runs[run_count++] = (struct shard_payload_span){end, l->offset - end};
            p->rest_count += l->offset - end;
        }
        if (in_matrix == 0) {
            in_matrix = joined(unit, i, joins);
            p->matrices[p->matrix_count++] = (struct shard_payload_span){l->offset, 0};
        }
        p->places[i] = (struct shard_payload_place){p->matrix_count - 1, 0};
        p->matrices[p->matrix_count - 1].count += l->param->count;
        end = l->offset + l->param->count;
        in_matrix--;
    }
    if (unit->flat_count > end) {
        runs[run_count++] = (struct shard_payload_span){end, unit->flat_count - end};
        p->rest_count += unit->flat_count - end;
    }
    return run_count;
}

/* Which rank's message has what of the runs. */
static void share_out(const struct layout_unit *unit, int group_size,
                      const struct shard_payload_span *runs, int run_count, struct shard_payload *p)
{
    for (int rank = 0; rank < group_size; rank++) {
        int64_t message = (int64_t)p->matrix_count * SHARD_PAYLOAD_LARGEST, rest = 0;
        for (int i = 0; i < run_count; rest += runs[i++].count) {
            const struct shard_payload_span in =
                shard_payload_in_slice(&runs[i], unit->shard_count, rank);
            if (in.count == 0)
                continue;
            int64_t offset = rank * unit->shard_count + in.offset - runs[i].offset;
            p->pieces[p->piece_count++] =
                (struct shard_payload_piece){rank, in.offset, message, rest + offset, in.count};
            message += in.count;
        }
        p->message_count = message > p->message_count ? message : p->message_count;
    }
    p->message_count =
        (p->message_count + LAYOUT_ALIGN_FP8 - 1) / LAYOUT_ALIGN_FP8 * LAYOUT_ALIGN_FP8;
}

void shard_payload_make(struct arena *arena, const struct shard_layout *layout,
                        const struct layout_unit *unit, bool joins,
                        struct shard_payload *ret_payload)
{
    struct shard_payload p = {0};
    int count = unit->param_count, ranks = layout->group_size;
    p.is_fp8 = layout->align == LAYOUT_ALIGN_FP8 &&
               shard_payload_saves(unit->flat_count, layout_fp8_count(unit), layout->group_size);
    if (p.is_fp8) {
        struct shard_payload_span *runs = arena_array(arena, struct shard_payload_span, count + 1);
        p.matrices = arena_array(arena, struct shard_payload_span, count);
        p.places = arena_array(arena, struct shard_payload_place, count);
        /* a run has a piece for each rank whose slice it reaches into */
        p.pieces = arena_array(arena, struct shard_payload_piece, count + 1 + ranks);
        int run_count = part(unit, joins, &p, runs);
        share_out(unit, ranks, runs, run_count, &p);
        assert(p.piece_count <= count + 1 + ranks);
    }
    *ret_payload = p;
}
