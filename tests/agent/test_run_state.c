#include "tests/agent/run_fixture.h"
#include "tests/support.h"

#include "agent/telemetry/flops.h"

#include <math.h>

/* Llama-3.2-1B: 16 layers, 32 heads of 64, its embedding is the head's matrix too. */
static const struct flops_shape llama_1b = {
    .parameters = 1235814400, .layers = 16, .attention_width = 2048, .sequence_tokens = 8192};

/* One sequence is 73.9 TFLOP, or 87.1 with the scores in full; that is the sum of its matrix
 * products, counted one by one (2 m n k), forward and twice that backward. */
static void flops_are_the_sum_of_the_products(void **state)
{
    (void)state;
    const double t = 8192, d = 2048, kv = 512, f = 8192, vocabulary = 128256, layers = 16;
    double products = 2 * t * d * (d + 2 * kv) + 2 * t * d * d + 3 * 2 * t * d * f;
    double scores = 2 * 2 * t * t * d;
    double norms = 6 * t * (2 * layers + 1) * d; /* counted with the parameters, as if products */
    double full = 3 * (layers * (products + scores) + 2 * t * d * vocabulary) + norms;
    double causal = full - 3 * layers * scores / 2;
    assert_true(fabs(t * flops_per_token(&llama_1b, FLOPS_FULL) / full - 1) < 1e-12);
    assert_true(fabs(t * flops_per_token(&llama_1b, FLOPS_CAUSAL) / causal - 1) < 1e-12);
    assert_true(fabs(causal / 1e12 - 73.9) < 0.05);
    assert_true(fabs(full / 1e12 - 87.1) < 0.05);
}

static void a_table_that_is_only_looked_up_does_not_count(void **state)
{
    (void)state;
    struct flops_shape untied = llama_1b;
    untied.lookup_parameters = 128256 * 2048;
    untied.parameters += untied.lookup_parameters;
    assert_true(flops_per_token(&untied, FLOPS_FULL) == flops_per_token(&llama_1b, FLOPS_FULL));
}

static void devices_are_known_by_their_drivers_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double flops_per_s;
    } rows[] = {
        {"NVIDIA H100 80GB HBM3", 989e12},
        {"NVIDIA H100 NVL", 835e12},
        {"NVIDIA H100 PCIe", 756e12},
        {"NVIDIA H200", 989e12},
        {"NVIDIA H200 NVL", 989e12},
        {"NVIDIA H20", 148e12},
        {"NVIDIA GH200 480GB", 989e12},
        {"NVIDIA A100-SXM4-40GB", 312e12},
        {"NVIDIA A100 80GB PCIe", 312e12},
        {"NVIDIA B200", 2.25e15},
        {"NVIDIA GB200", 2.5e15},
        {"NVIDIA L40S", 362e12},
        {"NVIDIA RTX A6000", 154.85e12},
        {"Tesla T4", 8.1e12},
        {"NVIDIA RTX 6000 Ada Generation", 0},
        {"NVIDIA L4", 0},
        {"NVIDIA A1000", 0},
        {"cpu", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (flops_peak_per_s(rows[i].name) != rows[i].flops_per_s)
            fail_msg("%s: %g", rows[i].name, flops_peak_per_s(rows[i].name));
}

static void utilization_is_per_device(void **state)
{
    (void)state;
    assert_true(flops_utilization(1000, 4e9, 8, 1e12) == 0.5);
    assert_true(flops_utilization(0, 4e9, 8, 1e12) == 0);
    assert_true(flops_utilization(1000, 0, 8, 1e12) == 0);
    assert_true(flops_utilization(1000, 4e9, 8, 0) == 0);
}

static void rates_are_of_the_last_steps(void **state)
{
    (void)state;
    struct run_state s;
    const struct run_facts facts = run_fixture_facts();
    run_state_init(&s, &facts, 0);
    assert_true(s.tokens_per_s == 0 && isnan(s.utilization[FLOPS_FULL]));
    struct run_numbers slow = run_fixture_numbers(1);
    slow.step_s = 60; /* the first one is cold */
    run_state_step(&s, &slow, 1);
    assert_true(s.tokens_per_s == 4096.0 / 60);
    for (int i = 0; i < RATE_STEPS; i++) {
        const struct run_numbers n = run_fixture_numbers(i + 2);
        run_state_step(&s, &n, 2 + i);
    }
    assert_true(s.tokens_per_s == 8192);
    assert_true(s.samples_per_s == 16);
    assert_true(s.device_tokens_per_s == 4096);
    assert_true(s.flops_per_s[FLOPS_CAUSAL] == 8192e3);
    assert_true(s.utilization[FLOPS_CAUSAL] == 0.5);
    assert_true(s.utilization[FLOPS_FULL] == 0.6);
    assert_int_equal(s.tokens, 4096 * (RATE_STEPS + 1));
}

static void what_is_no_language_model_has_no_tokens(void **state)
{
    (void)state;
    struct run_state s;
    struct run_facts facts = run_fixture_facts();
    facts.predicts_tokens = false;
    run_state_init(&s, &facts, 0);
    struct run_numbers n = run_fixture_numbers(1);
    n.tokens = 0;
    run_state_step(&s, &n, 1);
    assert_true(s.samples_per_s == 16);
    assert_true(s.tokens_per_s == 0);
    assert_true(isnan(s.utilization[FLOPS_FULL]) && isnan(s.flops_per_s[FLOPS_FULL]));
    assert_true(isnan(s.perplexity));
}

static void time_goes_to_its_phase_and_saves_are_counted(void **state)
{
    (void)state;
    struct run_state s;
    run_fixture_state(&s);
    assert_true(s.phase_s[PHASE_FORWARD] == 0.75);
    assert_true(s.phase_s[PHASE_EVAL] == 0.75);
    assert_true(s.phase_s[PHASE_CHECKPOINT] == 0.5);
    assert_true(s.train_s == 1.5 && s.elapsed_s == 5);
    assert_true(s.checkpoint_age_s == 0 && s.saved_step == 3);
    const struct run_save failed = {.step = 4, .failed = true, .stall_s = 1};
    run_state_save(&s, &failed, s.saved_wall_us + 7000000);
    assert_int_equal(s.saves, 1);
    assert_int_equal(s.failed_saves, 1);
    assert_int_equal(s.failed_in_a_row, 1);
    assert_int_equal(s.saved_step, 3);
    assert_true(s.checkpoint_age_s == 7);
    assert_true(s.phase_s[PHASE_CHECKPOINT] == 1.5);
    assert_int_equal(s.save_durations.count, 1);
    const struct run_save good = {.step = 5};
    run_state_save(&s, &good, s.saved_wall_us + 8000000);
    assert_int_equal(s.failed_in_a_row, 0);
    assert_int_equal(s.failed_saves, 1);
    assert_true(s.checkpoint_age_s == 0);
}

static void a_duration_is_counted_at_its_bound(void **state)
{
    (void)state;
    struct histogram h = {0};
    histogram_add(&h, 0);
    histogram_add(&h, 0.001);
    histogram_add(&h, 0.0011);
    histogram_add(&h, 600);
    histogram_add(&h, 601);
    assert_int_equal(h.counts[0], 2);
    assert_int_equal(h.counts[1], 1);
    assert_int_equal(h.counts[HISTOGRAM_BOUNDS - 1], 1);
    assert_int_equal(h.counts[HISTOGRAM_BOUNDS], 1);
    assert_int_equal(h.count, 5);
    for (int i = 1; i < HISTOGRAM_BOUNDS; i++)
        assert_true(histogram_bounds_s[i] > histogram_bounds_s[i - 1]);
}

/* t5-small, 512 tokens to 128, by its matrices: 6 layers each, width 512, middle 2048, 8 heads
 * of 64. */
static void an_encoder_decoders_weights_meet_their_own_tokens(void **state)
{
    (void)state;
    const double D = 512, I = 2048, V = 32128, S = 512, T = 128, L = 6;
    const double source = L * (4 * D * D + 2 * D * I) + L * 2 * D * D;
    const double target = L * (6 * D * D + 2 * D * I) + V * D;
    const struct flops_shape t5 = {
        .parameters = (int64_t)(source + target),
        .layers = 6,
        .attention_width = 512,
        .sequence_tokens = 512,
        .target_parameters = (int64_t)target,
        .target_layers = 6,
        .target_tokens = 128,
    };
    double products = 6 * (source * S + target * T), width = 12 * D * L;
    double full = (products + width * (S * S + T * T + T * S)) / (S + T);
    double causal = (products + width * (S * S + T * T / 2 + T * S)) / (S + T);
    assert_true(fabs(flops_per_token(&t5, FLOPS_FULL) / full - 1) < 1e-12);
    assert_true(fabs(flops_per_token(&t5, FLOPS_CAUSAL) / causal - 1) < 1e-12);
    struct flops_shape bert = llama_1b;
    bert.sees_all = true;
    assert_true(flops_per_token(&bert, FLOPS_CAUSAL) == flops_per_token(&llama_1b, FLOPS_FULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flops_are_the_sum_of_the_products),
        cmocka_unit_test(an_encoder_decoders_weights_meet_their_own_tokens),
        cmocka_unit_test(a_table_that_is_only_looked_up_does_not_count),
        cmocka_unit_test(devices_are_known_by_their_drivers_names),
        cmocka_unit_test(utilization_is_per_device),
        cmocka_unit_test(rates_are_of_the_last_steps),
        cmocka_unit_test(what_is_no_language_model_has_no_tokens),
        cmocka_unit_test(time_goes_to_its_phase_and_saves_are_counted),
        cmocka_unit_test(a_duration_is_counted_at_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
