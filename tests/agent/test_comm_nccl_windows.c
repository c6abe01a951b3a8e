/* Symmetric windows: collectives in them, and ranks that cannot have them. */
#include "tests/agent/comm_cases.h"
#include "tests/agent/nccl_ranks.h"
#include "tests/agent/nccl_window.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static int gather(struct comm *c, struct stream *s, const struct comm_window *w, struct error *err)
{
    auto_free float *expected = comm_floats((int64_t)COUNT * c->size);
    float *own = at(w, SLICE);
    for (int64_t i = 0; i < COUNT; i++)
        own[i] = comm_value(c->rank, i);
    for (int64_t i = 0; i < (int64_t)COUNT * c->size; i++)
        expected[i] = comm_value((int)(i / COUNT), i % COUNT);
    c->fn->all_gather(c, s, DTYPE_F32, at(w, WHOLE), own, COUNT);
    return stream_sync(s, err) ? -1
                               : comm_expect(at(w, WHOLE), expected, (int64_t)COUNT * c->size,
                                             "all_gather in a window", err);
}

static int scatter(struct comm *c, struct stream *s, const struct comm_window *w,
                   enum comm_reduce how, struct error *err)
{
    auto_free float *expected = comm_floats(COUNT);
    float *all = at(w, WHOLE);
    for (int64_t i = 0; i < (int64_t)COUNT * c->size; i++)
        all[i] = comm_value(c->rank, i);
    for (int64_t i = 0; i < COUNT; i++)
        expected[i] = comm_reduced(c->size, c->rank * COUNT + i, how);
    c->fn->reduce_scatter(c, s, DTYPE_F32, at(w, SLICE), all, COUNT, how);
    return stream_sync(s, err)
               ? -1
               : comm_expect(at(w, SLICE), expected, COUNT, "reduce_scatter in a window", err);
}

static int scatter_bf16(struct comm *c, struct stream *s, const struct comm_window *w,
                        struct error *err)
{
    bf16 *all = at(w, WHOLE);
    for (int64_t i = 0; i < (int64_t)COUNT * c->size; i++)
        all[i] = comm_bf16(c->rank, i);
    c->fn->reduce_scatter(c, s, DTYPE_BF16, at(w, SLICE), all, COUNT, COMM_MEAN);
    return stream_sync(s, err) ? -1
                               : comm_expect_bf16(at(w, SLICE), (int64_t)c->rank * COUNT, COUNT,
                                                  c->size, 0, "reduce_scatter in a window", err);
}

/* Two windows of one communicator, and one of each half's. */
static int use_windows(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window first, second;
    struct comm *half;
    (void)r;
    if (!c->has_windows || open_window(c, s, &first, err) || open_window(c, s, &second, err) ||
        gather(c, s, &first, err) || gather(c, s, &second, err) ||
        scatter(c, s, &second, COMM_SUM, err) || scatter(c, s, &first, COMM_MEAN, err) ||
        scatter_bf16(c, s, &first, err))
        return -1;
    if (c->fn->split(c, c->rank % 2, &half, err))
        return -1;
    int result = half->size == 1 ? 0 : open_window(half, s, &second, err);
    if (result == 0 && half->size > 1)
        result = gather(half, s, &second, err);
    comm_close(half);
    return result;
}

static void test_collectives_in_windows(void **state)
{
    (void)state;
    for (int row = 0; row < 4; row++) {
        struct rank ranks[4] = {0};
        int size = row < 2 ? 2 : 4; /* sums divided by these are exact */
        nccl_ranks_run(
            ranks, size, "",
            &(struct nccl_wish){.body = use_windows, .has_windows = true, .registers = row % 2});
        for (int i = 0; i < size; i++)
            assert_ok(ranks[i].result, &ranks[i].err);
    }
}

/* ---- ranks that have none ---- */

static const struct without_row {
    const char *settings, *named; /* the lowest rank that has not what is asked for */
} * without;

static int go_without(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    if (comm_open_window(c, s, WINDOW_BYTES, &w, err))
        return -1;
    if (w.memory || !strstr(w.why, without->named))
        return error_set(err, ERR_INPUT, "rank %d: %s", r->rank, w.memory ? "has one" : w.why);
    return comm_case_gather(c, s, COUNT, true, err);
}

static void test_all_go_without_what_one_has_not(void **state)
{
    (void)state;
    static const struct without_row rows[] = {
        {"lends_not=1", "rank 1"}, {"lends=0", "rank 0"}, {"no_windows=1", "rank 1"}};
    for (size_t n = 0; n < array_length(rows); n++) {
        struct rank ranks[3] = {0};
        without = &rows[n];
        nccl_ranks_run(ranks, 3, without->settings,
                       &(struct nccl_wish){.body = go_without, .has_windows = true});
        for (int i = 0; i < 3; i++)
            assert_ok(ranks[i].result, &ranks[i].err);
    }
}

/* Whoever has not asked for them gets none. */
static int has_none(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    (void)r;
    int result = comm_open_window(c, s, WINDOW_BYTES, &w, err);
    return result == 0 && w.memory ? error_set(err, ERR_INPUT, "nobody asked for it") : result;
}

static void test_windows_are_asked_for(void **state)
{
    (void)state;
    struct rank ranks[2] = {0};
    nccl_ranks_run(ranks, 2, "", &(struct nccl_wish){.body = has_none, .registers = true});
    for (int i = 0; i < 2; i++)
        assert_ok(ranks[i].result, &ranks[i].err);
}

static int other_plan(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    return comm_open_window(c, s, ((size_t)r->rank + 1) << 22, &w, err);
}

static void test_other_plans_are_an_error(void **state)
{
    (void)state;
    struct rank ranks[2] = {0};
    nccl_ranks_run(ranks, 2, "", &(struct nccl_wish){.body = other_plan, .has_windows = true});
    for (int i = 0; i < 2; i++)
        assert_fails(ranks[i].result, &ranks[i].err, ERR_CONFIG,
                     "rank 1 plans 8388608 bytes, rank 0 4194304");
}

static int only_open(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    (void)r;
    return open_window(c, s, &w, err);
}

/* What one rank's NCCL refuses the others would wait for without end. */
static bool a_refusal_ends_all(int timeout_ms)
{
    struct rank ranks[2] = {0};
    nccl_ranks_run(ranks, 2, "window_refused=1",
                   &(struct nccl_wish){.body = only_open,
                                       .has_windows = true,
                                       .watchdog = {.timeout_ms = timeout_ms}});
    return support_is_error(ranks[1].result, &ranks[1].err, ERR_CONFIG,
                            "runtime.register_buffers=true goes without") &&
           support_is_error(ranks[0].result, &ranks[0].err, ERR_TIMEOUT,
                            "window_register 0 of nccl (2097152 bytes) did not end within");
}

static void test_a_refused_registration_ends_all_ranks(void **state)
{
    (void)state;
    int timeout_ms = 1000;
    while (!a_refusal_ends_all(timeout_ms))
        timeout_ms = (int)support_longer_ms(timeout_ms);
}

/* The fake ends the test where a window is deregistered after an abort, or its memory is freed
 * before. */
static int hang_in_window(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    struct comm_window w;
    (void)r;
    return open_window(c, s, &w, err) || gather(c, s, &w, err) ? -1 : 0;
}

static bool an_abort_drops_windows(int timeout_ms)
{
    bool is = true;
    struct rank ranks[2] = {0};
    nccl_ranks_run(ranks, 2, "hang=1:0",
                   &(struct nccl_wish){.body = hang_in_window,
                                       .has_windows = true,
                                       .watchdog = {.timeout_ms = timeout_ms}});
    for (int i = 0; i < 2; i++)
        is = support_is_error(ranks[i].result, &ranks[i].err, ERR_TIMEOUT,
                              "all_gather 1 of nccl (4000 bytes) did not end within") &&
             is;
    return is;
}

static void test_an_abort_drops_windows(void **state)
{
    (void)state;
    int timeout_ms = 1000;
    while (!an_abort_drops_windows(timeout_ms))
        timeout_ms = (int)support_longer_ms(timeout_ms);
}

static void test_who_has_windows(void **state)
{
    (void)state;
    static const struct {
        const char *settings, *variable, *why;
    } rows[] = {
        {"", NULL, NULL},
        {"version=22703", NULL, NULL},
        {"version=22605", NULL, "NCCL 2.26.5 has none (2.27 or newer)"},
        {"", "NCCL_WIN_ENABLE", "NCCL_WIN_ENABLE=0 forbids them"},
        {"", "NCCL_CUMEM_ENABLE", "NCCL_CUMEM_ENABLE=0 forbids them"},
        {"", "NCCL_LOCAL_REGISTER", "NCCL_LOCAL_REGISTER=0 forbids them"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char why[NCCL_WHY_BYTES];
        struct nccl_api api;
        struct error err;
        setenv("FAKE_NCCL", rows[i].settings, 1);
        if (rows[i].variable)
            setenv(rows[i].variable, "0", 1);
        assert_ok(nccl_api_open(&api, &err), &err);
        assert_true(nccl_api_has_windows(&api, why) == !rows[i].why);
        assert_string_equal(why, rows[i].why ? rows[i].why : "");
        if (rows[i].variable)
            unsetenv(rows[i].variable);
    }
}

/* Of all tests before it: of windows that are used, refused and aborted. */
static void test_their_memory_came_back(void **state)
{
    (void)state;
    struct nccl_api api;
    struct error err;
    int (*loans)(void);
    assert_ok(nccl_api_open(&api, &err), &err);
    void *symbol = dlsym(api.library, "fake_nccl_loans");
    assert_non_null(symbol);
    memcpy(&loans, &symbol, sizeof loans);
    assert_int_equal(loans(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collectives_in_windows),
        cmocka_unit_test(test_all_go_without_what_one_has_not),
        cmocka_unit_test(test_windows_are_asked_for),
        cmocka_unit_test(test_other_plans_are_an_error),
        cmocka_unit_test(test_a_refused_registration_ends_all_ranks),
        cmocka_unit_test(test_an_abort_drops_windows),
        cmocka_unit_test(test_who_has_windows),
        cmocka_unit_test(test_their_memory_came_back),
    };
    return cmocka_run_group_tests(tests, nccl_find_library, NULL);
}
