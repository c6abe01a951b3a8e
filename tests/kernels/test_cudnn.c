/* Attention that cuDNN does on a GPU: the rows of attention_rows.c, and which plans it runs for
 * them. On the emulated GPU, whose cuDNN computes what the graph's descriptors say, and on a real
 * one. */
#include "kernels/attention_choice.h"
#include "tests/kernels/cudnn_world.h"

#include <math.h>
#include <string.h>

static bool is_for_cudnn(const struct attention_row *row)
{
    const struct attention_choice cudnns = attention_choice_here(ATTENTION_CUDNN, 90);
    return !row->bias && !row->key_counts[0] && row->shape.B > 0 &&
           attention_choose(&cudnns, ATTENTION_FORWARD, DTYPE_BF16, &row->shape) != ATTENTION_BY_US;
}

/* On a GPU all of them are cuDNN's. */
static void test_rows(void **state)
{
    (void)state;
    const bool on_gpu = strcmp(support_device(), "cuda") == 0;
    struct world *world = cudnn_world_open("cudnn", NULL);
    int checked = 0;
    for (size_t i = 0; i < attention_row_count; i++)
        if (is_for_cudnn(&attention_rows[i]) && ++checked)
            cudnn_world_check(world, &attention_rows[i], on_gpu);
    assert_true(checked >= 3);
    for (size_t i = 0; i < array_length(cudnn_world_rows); i++)
        cudnn_world_check(world, &cudnn_world_rows[i], on_gpu);
    cudnn_world_close(world);
}

/* The same rows with a backward that adds up in any order: within the tolerance of the other, since
 * fp32 sums in another order differ by less than bf16's rounding. */
static void test_nondeterministic_rows(void **state)
{
    (void)state;
    struct world *world = cudnn_world_open("cudnn", NULL);
    for (size_t i = 0; i < attention_row_count; i++) {
        struct attention_row row = attention_rows[i];
        row.shape.nondeterministic = true;
        if (is_for_cudnn(&row))
            cudnn_world_check(world, &row, true);
    }
    for (size_t i = 0; i < array_length(cudnn_world_rows); i++) {
        struct attention_row row = cudnn_world_rows[i];
        row.shape.nondeterministic = true;
        cudnn_world_check(world, &row, true);
    }
    cudnn_world_close(world);
}

enum { ORDER_T = 200, ORDER_HEADS = 4, ORDER_HD = 64, ORDER_WIDTH = 3 * ORDER_HEADS * ORDER_HD };

/* A backward of [1, ORDER_T] tokens with packed tensors: all three gradients. */
static const float *gradients(struct world *world, const float *qkv, const float *dy, bool differ)
{
    const int64_t count = (int64_t)ORDER_T * ORDER_WIDTH, y_count = count / 3;
    const struct attention_shape shape = {PACKED(1, ORDER_T, ORDER_HEADS, ORDER_HEADS, ORDER_HD),
                                          .causal = true, .nondeterministic = differ};
    bf16 *x = to_device_as(world, DTYPE_BF16, qkv, count);
    bf16 *dx = to_device_as(world, DTYPE_BF16, qkv, count);
    bf16 *g = to_device_as(world, DTYPE_BF16, dy, y_count);
    bf16 *y = to_device_as(world, DTYPE_BF16, dy, y_count);
    float *lse = to_device(world, dy, (int64_t)ORDER_HEADS * ORDER_T);
    const int64_t k = (int64_t)ORDER_HEADS * ORDER_HD, v = 2 * k;
    world->ops->attention_forward(world->stream, DTYPE_BF16, y, lse, x, x + k, x + v, &shape);
    world->ops->attention_backward(world->stream, DTYPE_BF16, dx, dx + k, dx + v, NULL, g, y, lse,
                                   x, x + k, x + v, &shape);
    from_device_as(world, DTYPE_BF16, x, count);
    from_device_as(world, DTYPE_BF16, g, y_count);
    from_device_as(world, DTYPE_BF16, y, y_count);
    from_device(world, lse, (int64_t)ORDER_HEADS * ORDER_T);
    return from_device_as(world, DTYPE_BF16, dx, count);
}

/* Elements that differ; of q's gradient, and of the others. */
static void count_differences(const float *a, const float *b, int64_t *ret_of_q, int64_t *ret_other)
{
    *ret_of_q = *ret_other = 0;
    for (int64_t i = 0; i < (int64_t)ORDER_T * ORDER_WIDTH; i++)
        if (a[i] != b[i])
            ++*(i % ORDER_WIDTH < ORDER_WIDTH / 3 ? ret_of_q : ret_other);
}

/* Who asks for it gets runs that differ, in q's gradient; nobody else does. */
static void test_order(void **state)
{
    (void)state;
    struct world *world = cudnn_world_open("cudnn", NULL);
    const int64_t count = (int64_t)ORDER_T * ORDER_WIDTH;
    const float *qkv = host_random(world, count, -1, 1);
    const float *dy = host_random(world, count / 3, -1, 1);
    int64_t of_q, others;
    count_differences(gradients(world, qkv, dy, false), gradients(world, qkv, dy, false), &of_q,
                      &others);
    assert_int_equal(of_q + others, 0);
    count_differences(gradients(world, qkv, dy, true), gradients(world, qkv, dy, true), &of_q,
                      &others);
    assert_true(of_q > 0);
    assert_int_equal(others, 0);
    cudnn_world_close(world);
}

/* A backward whose workspace for the whole batch is too large is done in parts. */
static void test_parts(void **state)
{
    (void)state;
    struct world *world = cudnn_world_open("cudnn", "cudnn=greedy");
    for (int differ = 0; differ < 2; differ++) {
        struct attention_row row =
            cudnn_world_rows[1]; /* of two sequences, each of 68 bytes of lse */
        row.shape.nondeterministic = differ;
        row.shape.T_q = row.shape.T_k = 16;
        int64_t before = cudnn_world_runs();
        check_attention(world, &row);
        assert_int_equal(cudnn_world_runs() - before, 2 + 2 * 2);
    }
    char text[2048];
    support_stderr_begin();
    int64_t before = cudnn_world_runs();
    check_attention(world, &cudnn_world_rows[1]); /* its second lse is not aligned */
    assert_int_equal(cudnn_world_runs() - before, 2);
    support_stderr_end(text, sizeof text);
    assert_non_null(strstr(text, "a plan: 260 MiB of workspace are needed, at most 256 are given"));
    cudnn_world_close(world);
}

/* More shapes than plans are kept, all queued at once: one that is forgotten has run before. In a
 * graph of ops, which each call parts. */
static void test_many_shapes(void **state)
{
    (void)state;
    enum { SHAPES = 40, MOST = 20, KEYS = 3, HD = 64 };
    struct world *world = cudnn_world_open("cudnn", NULL);
    const float *zeros = host_zeros(world, MOST * HD);
    void *q = to_device_as(world, DTYPE_BF16, zeros, MOST * HD);
    void *y = to_device_as(world, DTYPE_BF16, zeros, MOST * HD);
    float *lse = to_device(world, zeros, MOST);
    int64_t before = cudnn_world_runs();
    struct graph *graph;
    struct error err;
    assert_ok(graph_open(world->stream, &graph, &err), &err);
    for (int i = 0; i < SHAPES; i++) {
        struct attention_shape shape = {PACKED(1, 1 + i % MOST, 1, 1, HD)};
        if (i % MOST == 0)
            graph_begin(graph);
        world->ops->fill(world->stream, lse, -1, MOST);
        shape.T_k = KEYS;
        shape.q_stride = shape.k_stride = shape.v_stride = HD;
        world->ops->attention_forward(world->stream, DTYPE_BF16, y, lse, q, q, q, &shape);
        if (i % MOST == MOST - 1)
            graph_end(graph);
    }
    struct graph_use use;
    graph_get_use(graph, &use);
    assert_int_equal(use.launched, MOST); /* the fills of the second round */
    graph_close(graph);
    const float *host = from_device(world, lse, MOST);
    for (int i = 0; i < MOST; i++)
        assert_true(fabsf(host[i] - logf(KEYS)) < 1e-5f);
    from_device_as(world, DTYPE_BF16, q, MOST * HD);
    from_device_as(world, DTYPE_BF16, y, MOST * HD);
    if (before >= 0)
        assert_int_equal(cudnn_world_runs() - before, SHAPES);
    cudnn_world_close(world);
}

int main(void)
{
    const struct CMUnitTest anywhere[] = {cmocka_unit_test(test_rows)};
    const struct CMUnitTest gpu[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_nondeterministic_rows),
        cmocka_unit_test(test_many_shapes),
    };
    const struct CMUnitTest emulated_gpu[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_nondeterministic_rows),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_parts),
    };
    if (support_is_emulated())
        return cmocka_run_group_tests(emulated_gpu, NULL, NULL);
    if (strcmp(support_device(), "cuda") == 0)
        return cmocka_run_group_tests(gpu, NULL, NULL);
    return cmocka_run_group_tests(anywhere, NULL, NULL);
}
