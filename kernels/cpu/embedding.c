/* Rows of a table, and their gradient. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/strip.h"
#include "kernels/data_error.h"

#include <string.h>

struct embedding_args {
    struct stream *s;
    enum dtype t;
    void *y;
    float *dw;
    const void *w, *dy;
    const int32_t *ids;
    int64_t rows, V, D;
    bool accumulate;
};

/* Fails the stream if it is none. */
static bool is_id(const struct embedding_args *a, int64_t row)
{
    struct error err;
    if (a->ids[row] >= 0 && a->ids[row] < a->V)
        return true;
    data_error(&err, DATA_ID, row, a->ids[row], a->V);
    cpu_fail(a->s, &err);
    return false;
}

static void forward_chunk(const void *args, int64_t first, int64_t last)
{
    const struct embedding_args *a = args;
    size_t row_bytes = (size_t)a->D * dtype_bytes(a->t);
    for (int64_t r = first; r < last; r++) {
        if (!is_id(a, r))
            return;
        memcpy((char *)a->y + (size_t)r * row_bytes,
               (const char *)a->w + (size_t)a->ids[r] * row_bytes, row_bytes);
    }
}

void cpu_embedding_forward(struct stream *s, enum dtype t, void *y, const void *w,
                           const int32_t *ids, int64_t rows, int64_t V, int64_t D)
{
    assert(D >= 1);
    cpu_call_chunks(s, forward_chunk, rows, 1 + CPU_GRAIN / D, struct embedding_args, .s = s,
                    .t = t, .y = y, .w = w, .ids = ids, .V = V, .D = D);
}

/* Columns of all rows: rows with the same id add up in order, whoever has the other columns. */
CPU_HOT static void add_columns(const struct embedding_args *a, int64_t first, int64_t count)
{
    float buffer[STRIP];
    for (int64_t r = 0; r < a->rows; r++) {
        if (!is_id(a, r))
            return;
        const float *dy = strip_read(a->t, a->dy, r * a->D + first, count, buffer);
        float *dw = a->dw + a->ids[r] * a->D + first;
        for (int64_t c = 0; c < count; c++)
            dw[c] += dy[c];
    }
}

/* Threads share the columns and not the rows: two rows may have the same id, and their sums would
 * race or depend on the order. */
static void backward_run(void *args)
{
    enum { COLUMNS = 64 };
    const struct embedding_args *a = args;
    if (!a->accumulate) {
#pragma omp parallel for schedule(static)
        for (int64_t row = 0; row < a->V; row++)
            memset(a->dw + row * a->D, 0, (size_t)a->D * sizeof *a->dw);
    }
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < a->D; first += COLUMNS)
        add_columns(a, first, a->D - first < COLUMNS ? a->D - first : COLUMNS);
}

void cpu_embedding_backward(struct stream *s, enum dtype t, float *dw, const void *dy,
                            const int32_t *ids, int64_t rows, int64_t V, int64_t D, bool accumulate)
{
    cpu_call(s, backward_run, struct embedding_args, .s = s, .t = t, .dw = dw, .dy = dy, .ids = ids,
             .rows = rows, .V = V, .D = D, .accumulate = accumulate);
}
