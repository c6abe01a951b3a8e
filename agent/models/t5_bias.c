#include "agent/models/t5_bias.h"

#include "agent/models/t5.h"

#include <math.h>

/* In single precision as transformers does, whose rounding decides at the buckets' borders. */
int32_t t5_bucket(int64_t distance, bool bidirectional, int64_t buckets, int64_t max_distance)
{
    int64_t first = 0;
    if (bidirectional) {
        buckets /= 2;
        first = distance > 0 ? buckets : 0;
        distance = distance > 0 ? -distance : distance;
    }
    int64_t back = distance < 0 ? -distance : 0, exact = buckets / 2;
    if (back < exact)
        return (int32_t)(first + back);
    float scale = (float)log((double)max_distance / (double)exact);
    float coarse = logf((float)back / (float)exact) / scale * (float)(buckets - exact);
    int64_t bucket = exact + (int64_t)coarse;
    return (int32_t)(first + (bucket < buckets ? bucket : buckets - 1));
}

/* Four copies, each of which begins one element later, so that one of them has any element at an
 * aligned place. */
enum { COPIES = 4, FIRST_REACH = 511 };

static int64_t copy_length(int64_t reach)
{
    return (2 * reach + 1 + COPIES) / COPIES * COPIES;
}

static void make_table(struct t5_buckets *b, int64_t reach)
{
    int64_t length = copy_length(reach);
    b->reach = reach;
    b->table = arena_array(b->arena, int32_t, COPIES * length);
    for (int64_t copy = 0; copy < COPIES; copy++)
        for (int64_t i = 0; i < length; i++)
            b->table[copy * length + i] =
                t5_bucket(i + copy - reach, b->bidirectional, b->buckets, b->max_distance);
}

const int32_t *t5_buckets_get(struct t5_buckets *b, struct tape *tape, int64_t T)
{
    int64_t reach = b->table ? b->reach : FIRST_REACH;
    while (reach < T - 1)
        reach = 2 * reach + 1;
    if (!b->table || reach > b->reach)
        make_table(b, reach);
    int64_t length = copy_length(b->reach), first = b->reach - (T - 1), copy = first % COPIES;
    const int32_t *table = tape_constant(
        tape, b->table, (size_t)(COPIES * length) * sizeof *b->table, "relative position buckets");
    return table ? table + copy * length + first - copy : NULL;
}
