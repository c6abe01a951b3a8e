/* Checkpoints of what is no number: a tensor and its optimizer state, cut among ranks, one element
 * of which is poisoned on the rank that has it. */
#include "agent/checkpoint/checkpoint.h"
#include "base/mem.h"
#include "tests/agent/ranks.h"
#include "tests/support.h"
#include "tests/support_files.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, ROWS = 4, COLUMNS = 6, ELEMENTS = ROWS * COLUMNS, SLICE = ELEMENTS / RANKS };

static const char *const names[CHECKPOINT_PARTS] = {"fc.weight", "fc.weight.exp_avg"};
static const enum dtype dtypes[CHECKPOINT_PARTS] = {DTYPE_F32, DTYPE_BF16};

struct poison {
    int part;
    int64_t element;
    float value;
};

/* What a rank saves. */
struct saving {
    const char *dir;
    const struct poison *poison; /* NULL: all are numbers */
    bool allow_nonfinite;
};

static struct tensor_range range_of(int part, enum dtype dtype, int64_t first, int64_t count,
                                    float *data)
{
    return (struct tensor_range){names[part], 2, {ROWS, COLUMNS}, first, count, dtype, data};
}

static int save_rank(struct rank *rank, struct comm *comm, struct stream *stream, struct error *err)
{
    const struct saving *s = rank->arg;
    const struct checkpoint_state state = {.step = 7,
                                           .world_size = RANKS,
                                           .strategy = "FULL_SHARD",
                                           .optimizer = "adamw",
                                           .run = "",
                                           .data = ""};
    struct checkpoint_save save = {.files = &file_ops_system,
                                   .dir = s->dir,
                                   .name = "net-7steps",
                                   .state = &state,
                                   .allow_nonfinite = s->allow_nonfinite,
                                   .comm = comm,
                                   .stream = stream};
    float data[CHECKPOINT_PARTS][SLICE];
    struct tensor_range ranges[CHECKPOINT_PARTS];
    int64_t first = comm->rank * SLICE, bytes;
    for (int part = 0; part < CHECKPOINT_PARTS; part++) {
        for (int i = 0; i < SLICE; i++) {
            bool is_poisoned =
                s->poison && s->poison->part == part && s->poison->element == first + i;
            data[part][i] = is_poisoned ? s->poison->value : (float)(first + i);
        }
        dtype_narrow(dtypes[part], data[part], SLICE);
        ranges[part] = range_of(part, dtypes[part], first, SLICE, data[part]);
        save.parts[part] = (struct tensor_ranges){&ranges[part], 1};
    }
    return checkpoint_save(&save, &bytes, err);
}

/* All ranks must agree on how it ended. */
static int save(const char *dir, const struct poison *poison, bool allow_nonfinite,
                struct error *ret_err)
{
    struct saving saving = {dir, poison, allow_nonfinite};
    struct rank ranks[RANKS] = {0};
    for (int r = 0; r < RANKS; r++)
        ranks[r].arg = &saving;
    ranks_run(ranks, RANKS, RANKS_TIMEOUT_MS, save_rank);
    for (int r = 1; r < RANKS; r++) {
        assert_int_equal(ranks[r].result, ranks[0].result);
        if (ranks[r].result < 0)
            assert_string_equal(ranks[r].err.msg, ranks[0].err.msg);
    }
    *ret_err = ranks[0].err;
    return ranks[0].result;
}

/* Elements first .. first + count - 1, which are the right ones but for the poisoned. */
static int load(const char *dir, int part, enum dtype dtype, int64_t first, int64_t count,
                bool allow_nonfinite, float *ret_values, struct error *err)
{
    auto_free char *path = xasprintf("%s/net-7steps", dir);
    struct checkpoint *checkpoint;
    assert_ok(checkpoint_open(path, &checkpoint, err), err);
    struct tensor_range range = range_of(part, dtype, first, count, ret_values);
    const struct tensor_ranges ranges = {&range, 1};
    int result =
        checkpoint_load(checkpoint, (enum checkpoint_part)part, &ranges, allow_nonfinite, err);
    checkpoint_close(checkpoint);
    return result;
}

static const struct {
    struct poison poison;
    const char *rank, *tensor;
} rows[] = {
    {{CHECKPOINT_MODEL, 0, NAN}, "rank 0: ", "tensor fc.weight[0, 0] is NaN"},
    {{CHECKPOINT_MODEL, 13, INFINITY}, "rank 1: ", "tensor fc.weight[2, 1] is inf"},
    {{CHECKPOINT_OPTIMIZER, 23, -INFINITY}, "rank 2: ", "tensor fc.weight.exp_avg[3, 5] is -inf"},
    {{CHECKPOINT_OPTIMIZER, 8, NAN}, "rank 1: ", "tensor fc.weight.exp_avg[1, 2] is NaN"},
};

/* One rank has it, all refuse; what was there stays as it was. */
static void no_rank_saves_what_one_may_not(void **state)
{
    const char *dir = *state;
    struct error err;
    float values[ELEMENTS];
    assert_ok(save(dir, NULL, false, &err), &err);
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *why = xasprintf("%s%s", rows[i].rank, rows[i].tensor);
        assert_fails(save(dir, &rows[i].poison, false, &err), &err, ERR_DIVERGED, why);
        assert_true(err.shared);
        assert_int_equal(support_count_entries(dir), 1); /* nothing temporary */
        assert_ok(load(dir, CHECKPOINT_MODEL, DTYPE_F32, 0, ELEMENTS, false, values, &err), &err);
        for (int k = 0; k < ELEMENTS; k++)
            assert_true(values[k] == (float)k);
    }
}

/* With the right checksums, as somebody insisted or an older version wrote it. */
static void no_rank_loads_it_but_who_insists(void **state)
{
    const char *dir = *state;
    struct error err;
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct poison *p = &rows[i].poison;
        float values[ELEMENTS];
        assert_ok(save(dir, p, true, &err), &err);
        for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
            assert_fails(load(dir, p->part, (enum dtype)dtype, 0, ELEMENTS, false, values, &err),
                         &err, ERR_INPUT, rows[i].tensor);
            auto_free char *file = xasprintf("net-7steps/%s/shard-%05d",
                                             p->part == CHECKPOINT_MODEL ? "model" : "optimizer",
                                             (int)(p->element / SLICE) + 1);
            assert_non_null(strstr(err.msg, file));
        }
        /* What does not have it. */
        assert_ok(load(dir, 1 - p->part, DTYPE_F32, 0, ELEMENTS, false, values, &err), &err);
        int64_t after = p->element + 1;
        if (after < ELEMENTS)
            assert_ok(load(dir, p->part, DTYPE_F32, after, ELEMENTS - after, false, values, &err),
                      &err);
        assert_ok(load(dir, p->part, DTYPE_F32, 0, ELEMENTS, true, values, &err), &err);
        for (int k = 0; k < ELEMENTS; k++)
            if (k != p->element)
                assert_true(values[k] == (float)k);
        assert_int_equal(isnan(values[p->element]), isnan(p->value));
        assert_true(isnan(p->value) || values[p->element] == p->value);
    }
}

/* bf16 has no room for the largest fp32: they are rounded up to infinity. */
static void a_number_that_the_run_cannot_hold_is_named_too(void **state)
{
    static const struct poison large = {CHECKPOINT_MODEL, 10, 3.4e38F};
    const char *dir = *state;
    struct error err;
    float values[ELEMENTS];
    assert_ok(save(dir, &large, false, &err), &err);
    assert_ok(load(dir, large.part, DTYPE_F32, 0, ELEMENTS, false, values, &err), &err);
    assert_fails(load(dir, large.part, DTYPE_BF16, 0, ELEMENTS, false, values, &err), &err,
                 ERR_INPUT, "tensor fc.weight[1, 4] is inf");
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(no_rank_saves_what_one_may_not),
        IN_DIR(no_rank_loads_it_but_who_insists),
        IN_DIR(a_number_that_the_run_cannot_hold_is_named_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
