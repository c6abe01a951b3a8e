#include "tests/support.h"

#include "agent/models/language.h"
#include "agent/telemetry/flops.h"
#include "base/mem.h"
#include "tests/agent/time_shapes.h"

#include <math.h>
#include <stdio.h>

/* ---- what is true of any step ---- */

static struct time_ways ours(const struct time_device *device, const struct time_shape *shape)
{
    struct time_ways ways = time_ways_ours(device, TIME_BY_OURS, TIME_BY_OURS);
    ways.chunk_rows = language_chunk_rows(0, shape->V, DTYPE_BF16, false);
    return ways;
}

/* Small units wait for a ring's steps; groups of a node do so less. */
static void test_many_nodes(void **state)
{
    (void)state;
    struct time_device d = time_device_of("h100");
    struct time_shape s = llama_1b;
    s.rows = 1;
    s.T = 2048;
    const struct time_ways w = ours(&d, &s);
    double rate[3];
    const int worlds[] = {8, 64, 1024};
    for (int i = 0; i < 3; i++) {
        const struct time_ranks r = time_ranks_of(&s, FULL_SHARD, worlds[i]);
        rate[i] = time_tokens_per_s(&d, &s, &w, &r);
    }
    assert_true(rate[2] < 0.8 * rate[1]);
    const struct time_ranks hybrid = time_ranks_of(&s, HYBRID_SHARD, 1024);
    assert_true(time_tokens_per_s(&d, &s, &w, &hybrid) > rate[2]);
}

/* A step of ours on 16 ranks of two nodes, and what may be changed. */
struct step_of {
    struct time_device d;
    struct time_shape s;
    struct time_ways w;
    struct time_ranks r;
};

static struct step_of step_of(const char *device, const struct time_shape *shape,
                              enum shard_strategy strategy)
{
    struct step_of a = {.d = time_device_of(device), .s = *shape};
    a.s.rows = 2;
    a.s.T = 1024;
    a.w = ours(&a.d, &a.s);
    a.r = time_ranks_of(&a.s, strategy, 16);
    return a;
}

/* Seconds of passes that gathers in fp8 save: of each weight a scan and a cast, which a cast of the
 * rank's slice before each of two gathers, and one scan of it, stand against; and of the gradient
 * of the values a transposition in place of a cast. */
static double fewer_casts_s(const struct step_of *a)
{
    enum { LINEARS = 7, LAUNCHES = 3, SCAN = 2, CAST = 3, TRANSPOSE = 2 };
    const double launch_s = 2e-6, bytes_per_s = a->d.memory * 0.9;
    const struct time_shape *s = &a->s;
    int64_t q = s->heads * s->hd, kv = s->kv_heads * s->hd;
    double weights = (double)(s->D * (2 * q + 2 * kv + 3 * s->I));
    double slices = (double)(s->L * a->r.block) / a->r.group;
    double bytes =
        (double)s->L * weights * (SCAN + CAST + CAST - TRANSPOSE) - slices * (SCAN + 2 * CAST);
    double launches = (double)(s->L * LINEARS * LAUNCHES - (2 * a->r.units - 1));
    return bytes / bytes_per_s + launches * launch_s;
}

/* Codes are a byte for each element of a block, twice a step; and weights are not cast again. What
 * their scales are made of is gathered once. */
static void test_fp8_gathers(void **state)
{
    (void)state;
    struct step_of a = step_of("h100", &llama_8b, FULL_SHARD);
    struct time_step values, codes;
    a.w.fp8_casts = true;
    time_step_make(&a.d, &a.s, &a.w, &a.r, &values);
    a.w.fp8_gathers = true;
    time_step_make(&a.d, &a.s, &a.w, &a.r, &codes);
    double elements = 2.0 * (double)(a.s.L * a.r.block) * 15 / 16;
    double saved = elements / time_ring_rate(&a.d, 16, 8, 0) -
                   (double)a.s.L * time_collective_start(&a.d, 16, 8, false);
    assert_int_equal(codes.collectives - values.collectives, a.s.L);
    assert_true(fabs((values.sent_s - codes.sent_s) / saved - 1) < 1e-9);
    assert_true(codes.s[TIME_COMMUNICATION] < values.s[TIME_COMMUNICATION]);
    double passes = values.s[TIME_PASSES] - codes.s[TIME_PASSES];
    assert_true(fabs(passes / fewer_casts_s(&a) - 1) < 1e-9);
}

static void double_rows(struct step_of *a)
{
    a->s.rows *= 2;
}
static void double_micro_batches(struct step_of *a)
{
    a->r.micro_batches *= 2;
}
static void double_memory(struct step_of *a)
{
    a->d.memory *= 2;
}
static void double_products(struct step_of *a)
{
    a->d.bf16 *= 2;
}
static void double_links(struct step_of *a)
{
    a->d.links *= 2;
}
static void double_network(struct step_of *a)
{
    a->d.network *= 2;
}
static void use_graphs(struct step_of *a)
{
    a->w.graphs = true;
}
static void reduce_in_bf16(struct step_of *a)
{
    a->r.reduce_bytes = 2, a->w.gradient_bytes = 2;
}
static void pack_products(struct step_of *a)
{
    a->w.packed = true;
}
static void pad_vocabulary(struct step_of *a)
{
    a->w.padded_vocabulary = true;
}
static void enlarge_chunks(struct step_of *a)
{
    a->w.chunk_rows *= 2;
}
static void fuse(struct step_of *a)
{
    a->w.fused_clip = a->w.fused_cast = a->w.fused_residual = a->w.fused_rope = true;
    a->w.fused_bias = a->w.fused_activation = a->w.fused_activation_gradient = true;
}
static void stop_clipping(struct step_of *a)
{
    a->w.clips = false;
}
static void drop_no_more(struct step_of *a)
{
    a->s.dropout = false;
}

/* None makes fewer tokens per second. */
static const struct {
    const char *what;
    void (*change)(struct step_of *);
} better[] = {
    {"more rows", double_rows},         {"more micro-batches", double_micro_batches},
    {"faster memory", double_memory},   {"faster products", double_products},
    {"faster links", double_links},     {"a faster network", double_network},
    {"CUDA graphs", use_graphs},        {"bf16 gradients", reduce_in_bf16},
    {"packed products", pack_products}, {"a padded vocabulary", pad_vocabulary},
    {"larger chunks", enlarge_chunks},  {"fused passes", fuse},
    {"no clipping", stop_clipping},     {"no dropout", drop_no_more},
};

static double rate_of(const struct step_of *a)
{
    return time_tokens_per_s(&a->d, &a->s, &a->w, &a->r);
}

static void test_better_is_not_slower(void **state)
{
    (void)state;
    const struct time_shape *shapes[] = {&llama_1b, &llama_8b, &gpt2_124m};
    int wrong = 0;
    for (const struct time_device *d = time_devices; d->name; d++)
        for (size_t i = 0; i < array_length(shapes); i++)
            for (int strategy = FULL_SHARD; strategy <= HYBRID_SHARD; strategy++)
                for (size_t k = 0; k < array_length(better); k++) {
                    if (d->bf16 <= 0) /* the shapes are bf16's */
                        continue;
                    struct step_of a = step_of(d->name, shapes[i], (enum shard_strategy)strategy);
                    a.s.dropout = true;
                    struct step_of b = a;
                    better[k].change(&b);
                    if (rate_of(&b) >= rate_of(&a) * 0.999)
                        continue;
                    print_error("%s, %s, shape %zu: %s makes %.0f of %.0f\n", d->name,
                                shard_strategy_name((enum shard_strategy)strategy), i,
                                better[k].what, rate_of(&b), rate_of(&a));
                    wrong++;
                }
    assert_int_equal(wrong, 0);
}

/* Recomputing, offloading and waiting for a slow network cost time; and the parts are the whole. */
static void test_costs(void **state)
{
    (void)state;
    struct step_of a = step_of("h100", &llama_1b, FULL_SHARD), b = a, c = a, e = a;
    struct time_step step, slow;
    b.w.checkpointing = TAPE_CHECKPOINTING_SELECTIVE;
    c.w.checkpointing = TAPE_CHECKPOINTING_FULL;
    assert_true(rate_of(&a) > rate_of(&b) && rate_of(&b) > rate_of(&c));
    e.r.cpu_offload = true;
    assert_true(rate_of(&e) < rate_of(&a));
    e = a;
    e.r.offloaded_activations = INT64_C(100) << 30;
    assert_true(rate_of(&e) < rate_of(&a));
    time_step_make(&a.d, &a.s, &a.w, &a.r, &step);
    a.r.network = 1e9;
    time_step_make(&a.d, &a.s, &a.w, &a.r, &slow);
    assert_true(slow.s[TIME_COMMUNICATION] > 5 * step.s[TIME_COMMUNICATION]);
    assert_true(slow.s[TIME_COMMUNICATION] <= slow.sent_s * 1.001);
    double sum = 0;
    for (int kind = 0; kind < TIME_KIND_COUNT; kind++)
        sum += step.s[kind];
    assert_true(fabs(sum / step.total_s - 1) < 1e-9);
}

/* A whole node's network is the limit of a ring over nodes; within a node it is none. */
static void test_rings(void **state)
{
    (void)state;
    struct time_device d = time_device_of("h100");
    static const struct {
        int ranks, node;
        double network, want;
    } rows[] = {
        {8, 8, 1e9, 340e9}, {16, 8, 0, 340e9},      {16, 8, 10e9, 72.8e9},
        {2, 1, 0, 45.5e9},  {64, 4, 0, 4 * 45.5e9},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        double got = time_ring_rate(&d, rows[i].ranks, rows[i].node, rows[i].network);
        assert_true(fabs(got / rows[i].want - 1) < 1e-9);
    }
    /* NCCL's own sums: 8.4 + 7 x 3.4 us; 8.4 + 56 x 3.4 + 7 x 14; of an all-reduce of 2 nodes twice
     * one step, of 8 and 128 up and down a tree */
    assert_true(fabs(time_collective_start(&d, 8, 8, false) - 32.2e-6) < 1e-9);
    assert_true(fabs(time_collective_start(&d, 64, 8, false) - 296.8e-6) < 1e-9);
    assert_true(fabs(time_collective_start(&d, 2, 1, true) - 36.4e-6) < 1e-9);
    assert_true(fabs(time_collective_start(&d, 8, 1, true) - 92.4e-6) < 1e-9);
    assert_true(fabs(time_collective_start(&d, 128, 1, true) - 204.4e-6) < 1e-9);
}

static void test_names(void **state)
{
    (void)state;
    const struct time_device *d;
    struct error err;
    assert_int_equal(time_device_find("H200", &d, &err), 0);
    assert_string_equal(d->name, "h200");
    assert_int_equal(time_device_find("NVIDIA L40S", &d, &err), 0);
    assert_string_equal(d->name, "l40s");
    assert_string_equal(time_device_of_driver("NVIDIA A100-SXM4-80GB")->name, "a100");
    assert_null(time_device_of_driver("NVIDIA A100-SXM4-40GB"));
    assert_null(time_device_of_driver("NVIDIA H100 PCIe"));
    assert_int_equal(time_device_find("h1000", &d, &err), -1);
    assert_int_equal(err.code, ERR_CONFIG);
    assert_string_equal(err.msg, "'h1000' (the nearest is h100) is not one of: h100 h200 "
                                 "a100 b200 l40s t4");
}

/* The peak that MFU is of must be known by the row's name. */
static void test_peaks(void **state)
{
    (void)state;
    for (const struct time_device *d = time_devices; d->name; d++) {
        double peak = flops_peak_per_s(d->driver_name);
        double rate = d->bf16 > 0 ? d->bf16 : d->fp32;
        if (rate > 0.9 * peak || rate < 0.6 * peak)
            fail_msg("%s: %g of %g FLOP/s", d->driver_name, rate, peak);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_better_is_not_slower),
                                       cmocka_unit_test(test_fp8_gathers),
                                       cmocka_unit_test(test_costs),
                                       cmocka_unit_test(test_rings),
                                       cmocka_unit_test(test_many_nodes),
                                       cmocka_unit_test(test_names),
                                       cmocka_unit_test(test_peaks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
