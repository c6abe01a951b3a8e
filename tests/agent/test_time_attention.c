/* The predicted speed of attention_hopper*.cu: that its instructions are the compiler's, that the
 * method gives what FlashAttention-3 takes, and that docs/gpu.md has what comes of it. */
#include "agent/plan/time_attention.h"
#include "base/file.h"
#include "base/mem.h"
#include "tests/agent/time_shapes.h"
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double tera = 1e12;

static char *read_text(const char *path)
{
    char *text;
    size_t size;
    struct error err;
    assert_ok(file_read(path, 1 << 20, &text, &size, &err), &err);
    return text;
}

/* The columns of tests/sass/budget.txt behind a file's name. */
enum { LOOP_ALL = 12, LOOP_MUFU = 15, LOOP_HGMMA = 16, COLUMNS = 19 };

static void read_budget(const char *text, const char *kernel, int ret_columns[COLUMNS])
{
    auto_str struct str end;
    str_init(&end, 256);
    str_printf(&end, " %s\n", kernel);
    const char *at = strstr(text, str_text(&end));
    int used = 0;
    assert_non_null(at);
    while (at[-1] != '\n')
        at--;
    assert_int_equal(sscanf(at, "90a %*s%n", &used), 0);
    at += used;
    for (int i = 0; i < COLUMNS; i++, at += used)
        assert_int_equal(sscanf(at, "%d%n", &ret_columns[i], &used), 1);
}

/* Who changes a kernel records its instructions anew (make sass-budget), and meets this: its speed
 * is another one then. */
static void test_the_compilers_instructions(void **state)
{
    (void)state;
    auto_free char *text = read_text("tests/sass/budget.txt");
    for (const struct time_hopper_loop *l = time_hopper_loops; l->kernel; l++) {
        int is[COLUMNS];
        read_budget(text, l->kernel, is);
        if (is[LOOP_ALL] != l->instructions || is[LOOP_HGMMA] != l->HGMMA ||
            is[LOOP_MUFU] != l->MUFU)
            fail_msg("%s: recorded are %d instructions, %d HGMMA, %d MUFU; planned with %d, %d, %d",
                     l->kernel, is[LOOP_ALL], is[LOOP_HGMMA], is[LOOP_MUFU], l->instructions,
                     l->HGMMA, l->MUFU);
        assert_true(l->masks > 0 && l->masks < l->instructions / 3);
    }
}

/* FlashAttention-3 (commit 0251105a) as nvcc 13.0.88 compiles it for 9.0a, causal, the loop without
 * masks, and its speed at 8192 tokens on an H100 (Shah et al. 2024). */
static const struct {
    struct time_hopper_loop loop;
    double published, within; /* TFLOP/s; a part of that */
} flash_attention_3[] = {
    {{"forward 64", 64, false, 128, 2, 431, 0, 12, 66}, 460, 0.03},
    {{"forward 128", 128, false, 128, 2, 469, 0, 16, 66}, 602, 0.03},
};

static void test_flash_attention_3(void **state)
{
    (void)state;
    const struct time_device h100 = time_device_of("h100");
    int wrong = 0;
    for (size_t i = 0; i < array_length(flash_attention_3); i++) {
        const struct time_hopper_loop loops[] = {flash_attention_3[i].loop, {.kernel = NULL}};
        double published = flash_attention_3[i].published;
        double got = time_hopper_rate(loops, &h100, loops->hd, loops->backward) / tera;
        print_message("%-14s %.0f TFLOP/s published, %.0f predicted\n", loops->kernel, published,
                      got);
        wrong += fabs(got / published - 1) > flash_attention_3[i].within;
    }
    assert_int_equal(wrong, 0);
}

/* At 1024 tokens it has so much of its speed at 8192: forward causal, backward without a mask. */
static void test_few_tokens(void **state)
{
    (void)state;
    static const struct {
        bool backward;
        double part; /* as published of FlashAttention-3 */
    } rows[] = {{false, 0.58}, {true, 0.77}};
    const struct time_device d = time_device_of("h100");
    const struct time_attention rates = time_attention_hopper(&d);
    for (size_t i = 0; i < array_length(rows); i++) {
        double per_s[2];
        for (int n = 0; n < 2; n++) {
            const int64_t tokens = n ? TIME_ATTENTION_TOKENS : 1024;
            const struct time_attention_call call = {.rows = 1,
                                                     .heads = 16,
                                                     .hd = 128,
                                                     .queries = tokens,
                                                     .keys = tokens,
                                                     .causal = !rows[i].backward,
                                                     .backward = rows[i].backward};
            per_s[n] = time_attention_flops(&call) / time_of_attention(&d, &rates, &call);
        }
        assert_true(fabs(per_s[0] / per_s[1] - rows[i].part) < 0.005);
    }
}

/* A prediction's brackets are of it, too. */
static void test_brackets(void **state)
{
    (void)state;
    const struct time_device h100 = time_device_of("h100");
    double forward[TIME_BANDS];
    for (int band = 0; band < TIME_BANDS; band++) {
        const struct time_device d = time_device_in_band(&h100, (enum time_band)band);
        forward[band] = time_attention_hopper(&d).forward[1];
    }
    assert_true(forward[TIME_LOW] < forward[TIME_MIDDLE]);
    assert_true(forward[TIME_MIDDLE] < forward[TIME_HIGH]);
}

static void test_other_devices_have_none(void **state)
{
    (void)state;
    for (const struct time_device *d = time_devices; d->name; d++) {
        const struct time_attention hopper = time_attention_hopper(d);
        assert_int_equal(hopper.forward[0] > 0, d->compute_capability == 90);
        const struct time_attention by = time_attention_of(d, TIME_BY_HOPPER);
        assert_true(d->compute_capability == 90 || by.backward[1] == d->ours.backward[1]);
    }
}

/* The page's table: what these kernels are to reach, and whether the model says that they do. */
static void test_the_page(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int width;
        bool backward;
        double asked;
    } rows[] = {
        {"forward, heads 64 wide", 0, false, 420},
        {"forward, 128", 1, false, 520},
        {"backward, 64", 0, true, 330},
        {"backward, 128", 1, true, 400},
    };
    const struct time_device d = time_device_of("h100");
    auto_free char *page = read_text("docs/gpu.md");
    int missing = 0;
    for (size_t i = 0; i < array_length(rows); i++) {
        double by[TIME_ATTENTION_DOERS];
        char row[160];
        for (int doer = 0; doer < TIME_ATTENTION_DOERS; doer++) {
            const struct time_attention a = time_attention_of(&d, (enum time_attention_doer)doer);
            by[doer] = (rows[i].backward ? a.backward : a.forward)[rows[i].width] / tera;
        }
        snprintf(row, sizeof row, "| %s | %.0f | %.0f | %.0f | %.0f | %s |", rows[i].what,
                 by[TIME_BY_HOPPER], by[TIME_BY_OURS], by[TIME_BY_CUDNN], rows[i].asked,
                 by[TIME_BY_HOPPER] >= rows[i].asked ? "yes" : "no");
        if (strstr(page, row))
            continue;
        print_error("docs/gpu.md lacks: %s\n", row);
        missing++;
    }
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_compilers_instructions),
        cmocka_unit_test(test_flash_attention_3),
        cmocka_unit_test(test_few_tokens),
        cmocka_unit_test(test_brackets),
        cmocka_unit_test(test_other_devices_have_none),
        cmocka_unit_test(test_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
