/* Attention never holds the scores of all queries and keys, forward or backward: what a long
 * sequence adds to the process is far from T x T. */
#include "tests/kernels/ops_fixture.h"

#include "base/file.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HD = 8, SHORT = 128, LONG = 4096 };

/* AddressSanitizer would keep what was freed: a lot of small blocks, of every product. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1";
}

/* The most memory that the process ever had. */
static int64_t peak_bytes(void)
{
    auto_free char *text = NULL;
    size_t bytes;
    struct error err;
    assert_ok(file_read("/proc/self/status", 1 << 16, &text, &bytes, &err), &err);
    const char *line = strstr(text, "VmHWM:");
    assert_non_null(line);
    return 1024 * strtoll(line + strlen("VmHWM:"), NULL, 10);
}

static void attend(struct world *world, enum dtype t, int64_t T)
{
    enum { Q, K, V, Y, DY, DQ, DK, DV, TENSORS };
    const size_t bytes = (size_t)(T * HD) * dtype_bytes(t);
    const struct attention_shape shape = {.B = 1,
                                          .T_q = T,
                                          .T_k = T,
                                          .heads = 1,
                                          .kv_heads = 1,
                                          .hd = HD,
                                          .q_stride = HD,
                                          .k_stride = HD,
                                          .v_stride = HD,
                                          .causal = true,
                                          .scale = 0.5f};
    void *x[TENSORS], *lse;
    struct error err;
    auto_free char *zeros = xcalloc(1, bytes);
    for (int i = 0; i < TENSORS; i++)
        x[i] = to_device_bytes(world, zeros, bytes);
    assert_ok(device_alloc(world->device, MEMORY_ACTIVATION, (size_t)T * sizeof(float), "sums",
                           &lse, &err),
              &err);
    world->ops->attention_forward(world->stream, t, x[Y], lse, x[Q], x[K], x[V], &shape);
    world->ops->attention_backward(world->stream, t, x[DQ], x[DK], x[DV], NULL, x[DY], x[Y], lse,
                                   x[Q], x[K], x[V], &shape);
    float last;
    stream_copy(world->stream, &last, (float *)lse + T - 1, sizeof last);
    assert_ok(stream_sync(world->stream, &err), &err);
    assert_true(fabs((double)last - log((double)T)) < 1e-3); /* of T scores of 0 */
    device_free(world->device, lse);
    for (int i = 0; i < TENSORS; i++)
        from_device_bytes(world, zeros, x[i], bytes);
}

static void no_scores_of_a_whole_sequence_are_alive(void **state)
{
    struct world *world = *state;
    static const enum dtype dtypes[] = {DTYPE_F32, DTYPE_BF16};
    for (size_t i = 0; i < array_length(dtypes); i++) {
        attend(world, dtypes[i], SHORT); /* what any length needs */
        int64_t before = peak_bytes();
        attend(world, dtypes[i], LONG);
        int64_t more = peak_bytes() - before, scores = (int64_t)LONG * LONG * 4;
        if (more > scores / 2)
            fail_msg("%lld bytes more; all scores are %lld", (long long)more, (long long)scores);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_scores_of_a_whole_sequence_are_alive, world_setup,
                                        world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
