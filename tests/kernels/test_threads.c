/* Sums have one order whoever makes them: what one thread computes, two and three compute to the
 * bit, but for matrix products, whose order is oneDNN's. (To a GPU the count means nothing.) */
#include "tests/kernels/op_check.h"

#include <string.h>

enum { B = 2, T = 130, H = 4, KV = 2, HD = 16, ROWS = B * T, D = H * HD, V = 700 };
enum { COUNT = ROWS * V }; /* of the largest tensor */

static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};

/* What a run leaves: everything that the ops have written. */
struct outcome {
    float *dx, *dw, *y, *lse, *dlogits;
    double sums[4];
};

static struct world open_world(struct world *like, int threads)
{
    struct world world = *like;
    struct error err;
    assert_ok(device_open(support_device(), threads, &world.device, &err), &err);
    assert_ok(stream_open(world.device, "threads", &world.stream, &err), &err);
    world.ops = device_ops(world.device);
    return world;
}

static void close_world(struct world *world)
{
    stream_close(world->stream);
    device_close(world->device);
}

/* Each op that sums, one after the other on the same tensors. */
static struct outcome run(struct world *w, enum dtype t, const float *host, const int32_t *host_ids)
{
    const struct ops *ops = w->ops;
    struct stream *s = w->stream;
    const struct attention_shape shape = {.B = B,
                                          .T_q = T,
                                          .T_k = T,
                                          .heads = H,
                                          .kv_heads = KV,
                                          .hd = HD,
                                          .q_stride = D,
                                          .k_stride = D,
                                          .v_stride = D,
                                          .causal = true,
                                          .scale = 0.25f,
                                          .dropout = 0.1f,
                                          .key = 7,
                                          .row_stride = 1};
    struct outcome o = {0};
    float zeros[4 * D] = {0};
    void *x = to_device_as(w, t, host, COUNT), *y = to_device_as(w, t, host, ROWS * D);
    void *dx = to_device_as(w, t, host, 3 * ROWS * D), *dlogits = to_device_as(w, t, host, COUNT);
    float *floats = to_device(w, host, COUNT), *dw = to_device(w, host, V * D);
    void *logits = to_device_as(w, t, host, COUNT);
    float *lse = to_device(w, host, ROWS * H), *dnorm = to_device(w, zeros, 4 * D);
    int32_t *ids = to_device_bytes(w, host_ids, ROWS * sizeof *ids);
    double *sums = to_device_bytes(w, o.sums, sizeof o.sums);
    size_t third = (size_t)(ROWS * D) * dtype_bytes(t);
    ops->attention_forward(s, t, y, lse, x, x, x, &shape);
    ops->attention_backward(s, t, dx, (char *)dx + third, (char *)dx + 2 * third, NULL, x, y, lse,
                            x, x, x, &shape);
    ops->embedding_backward(s, t, dw, x, ids, ROWS, V, D, false);
    ops->cross_entropy(s, t, dlogits, sums, logits, ids, 0.5f, ROWS, V, V);
    ops->sum_of_squares(s, sums + 3, floats, COUNT);
    ops->rms_norm_forward(s, t, y, lse, x, NULL, x, ROWS, D, 1e-5f);
    ops->rms_norm_backward(s, t, y, false, dnorm, y, x, x, lse, ROWS, D, true);
    ops->layer_norm_forward(s, t, y, lse, x, NULL, x, x, ROWS, D, 1e-5f);
    ops->layer_norm_backward(s, t, y, false, dnorm, dnorm + D, y, x, x, lse, ROWS, D, true);
    ops->add(s, DTYPE_F32, dw, DTYPE_F32, dnorm, 2 * D);
    from_device_as(w, t, x, COUNT);
    from_device(w, floats, COUNT);
    from_device_as(w, t, logits, COUNT);
    from_device(w, dnorm, 4 * D);
    from_device_bytes(w, arena_array(w->arena, int32_t, ROWS), ids, ROWS * sizeof *ids);
    from_device_bytes(w, o.sums, sums, sizeof o.sums);
    o.y = from_device_as(w, t, y, ROWS * D);
    o.dx = from_device_as(w, t, dx, 3 * ROWS * D);
    o.dlogits = from_device_as(w, t, dlogits, COUNT);
    o.dw = from_device(w, dw, V * D);
    o.lse = from_device(w, lse, ROWS * H);
    return o;
}

static void test_thread_counts(void **state)
{
    struct world *world = *state;
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++)
        ids[i] = i * i % V;
    for (size_t d = 0; d < array_length(dtypes); d++) {
        float *host = round_to(dtypes[d], host_random(world, COUNT, -1, 1), COUNT);
        struct outcome one = run(world, dtypes[d], host, ids);
        for (int threads = 2; threads <= 3; threads++) {
            struct world more = open_world(world, threads);
            struct outcome many = run(&more, dtypes[d], host, ids);
            close_world(&more);
            assert_memory_equal(many.y, one.y, ROWS * D * sizeof *one.y);
            assert_memory_equal(many.dx, one.dx, 3 * ROWS * D * sizeof *one.dx);
            assert_memory_equal(many.dlogits, one.dlogits, COUNT * sizeof *one.dlogits);
            assert_memory_equal(many.dw, one.dw, V * D * sizeof *one.dw);
            assert_memory_equal(many.lse, one.lse, ROWS * H * sizeof *one.lse);
            assert_memory_equal(many.sums, one.sums, sizeof one.sums);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_thread_counts, world_setup, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
