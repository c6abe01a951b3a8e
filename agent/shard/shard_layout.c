/* A unit with a weight w of 20 elements and a bias b of 3, over two ranks ("." is padding):
 *
 *   offset         0               16      24      32
 *   flat buffer    wwwwwwwwwwwwwwwwwwww....bbb.....
 *   slices         [   rank 0     ][   rank 1     ]
 *   ranges         w[0, 16)        w[16, 20) and b[0, 3)
 *
 * Each parameter starts on LAYOUT_ALIGN elements, so that kernels may load 16 bytes at a time from
 * the gathered buffer: the buffer is the weights, without a copy. In fp8, a byte for each
 * element, that takes LAYOUT_ALIGN_FP8. Slices are equal, as all_gather and reduce_scatter need it,
 * so the end is padded to a multiple of that times S. A slice may cut a parameter anywhere: a
 * rank's range is the intersection of the two intervals.
 *
 * Padding stays 0: it is filled with 0 once, its gradient is cleared, and every optimizer keeps a
 * value of 0 whose gradient is 0. So norms and optimizer steps may run over it. */
#include "agent/shard/shard_layout.h"

#include <assert.h>
#include <stdlib.h>

static int64_t round_up(int64_t n, int64_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static int count_units(const struct module *m)
{
    int count = m->unit >= 0;
    for (int i = 0; i < m->child_count; i++)
        count += count_units(m->children[i]);
    return count;
}

static int count_params(const struct module *m)
{
    int count = m->param_count;
    for (int i = 0; i < m->child_count; i++)
        count += count_params(m->children[i]);
    return count;
}

static bool has_fp8(const struct module *m)
{
    bool has = false;
    for (int i = 0; i < m->param_count; i++)
        has = has || m->params[i]->fp8;
    for (int i = 0; i < m->child_count; i++)
        has = has || has_fp8(m->children[i]);
    return has;
}

static void lay_out(struct arena *arena, struct shard_layout *layout, struct module *m, int unit)
{
    if (m->unit >= 0) {
        assert(m->unit < layout->unit_count && !layout->units[m->unit].module);
        unit = m->unit;
        layout->units[unit].module = m;
        layout->units[unit].params = arena_array(arena, struct layout_param, count_params(m));
    }
    struct layout_unit *u = &layout->units[unit];
    for (int i = 0; i < m->param_count; i++) {
        u->params[u->param_count++] = (struct layout_param){m->params[i], u->flat_count};
        u->count += m->params[i]->count;
        u->flat_count = round_up(u->flat_count + m->params[i]->count, layout->align);
    }
    for (int i = 0; i < m->child_count; i++)
        lay_out(arena, layout, m->children[i], unit);
}

void shard_layout_make(struct arena *arena, struct module *root, int group_size, int parts,
                       struct shard_layout *ret_layout)
{
    assert(root->unit == 0 && group_size >= 1 && parts % group_size == 0);
    struct shard_layout layout = {.unit_count = count_units(root),
                                  .group_size = group_size,
                                  .align = has_fp8(root) ? LAYOUT_ALIGN_FP8 : LAYOUT_ALIGN};
    layout.units = arena_array(arena, struct layout_unit, layout.unit_count);
    lay_out(arena, &layout, root, 0);
    for (int i = 0; i < layout.unit_count; i++) {
        struct layout_unit *u = &layout.units[i];
        u->flat_count = round_up(u->flat_count, (int64_t)layout.align * parts);
        u->shard_count = u->flat_count / group_size;
    }
    *ret_layout = layout;
}

int64_t layout_fp8_count(const struct layout_unit *unit)
{
    int64_t count = 0;
    for (int i = 0; i < unit->param_count; i++)
        count += unit->params[i].param->fp8 ? unit->params[i].param->count : 0;
    return count;
}

static int by_declaration(const void *a, const void *b)
{
    uint64_t x = ((const struct param_range *)a)->param->index;
    uint64_t y = ((const struct param_range *)b)->param->index;
    return (x > y) - (x < y);
}

struct param_range *shard_layout_ranges(struct arena *arena, const struct shard_layout *layout,
                                        int group_rank, int *ret_count)
{
    assert(group_rank >= 0 && group_rank < layout->group_size);
    int most = 0, count = 0;
    for (int i = 0; i < layout->unit_count; i++)
        most += layout->units[i].param_count;
    struct param_range *ranges = arena_array(arena, struct param_range, most);
    for (int i = 0; i < layout->unit_count; i++) {
        const struct layout_unit *u = &layout->units[i];
        int64_t slice_begin = group_rank * u->shard_count, slice_end = slice_begin + u->shard_count;
        for (int k = 0; k < u->param_count; k++) {
            int64_t begin = u->params[k].offset, end = begin + u->params[k].param->count;
            int64_t from = begin > slice_begin ? begin : slice_begin;
            int64_t to = end < slice_end ? end : slice_end;
            /* A slice may begin or end within a parameter: each rank has at most one range of
             * each. */
            if (from >= to)
                continue;
            ranges[count] = (struct param_range){.param = u->params[k].param,
                                                 .unit = i,
                                                 .shard_offset = from - slice_begin,
                                                 .param_offset = from - begin,
                                                 .count = to - from};
            count++;
        }
    }
    qsort(ranges, (size_t)count, sizeof *ranges, by_declaration);
    *ret_count = count;
    return ranges;
}
