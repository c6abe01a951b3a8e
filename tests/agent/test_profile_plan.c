/* When which ranks are traced, and into which files. */
#include "agent/config/profile_plan.h"
#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

/* Steps from 1: '.' off, 'w' warm-up, 'A' traced, 'L' traced and the last of its window. */
static void windows(void **state)
{
    (void)state;
    static const struct {
        struct profile_plan plan;
        const char *steps;
    } rows[] = {
        {{0, 3, 1, 0}, "wwwL........"},   {{0, 0, 1, 0}, "L..........."},
        {{2, 1, 2, 0}, "..wAL......."},   {{0, 3, 1, 4}, "wwwLwwwLwwwL"},
        {{0, 1, 2, 5}, "wAL..wAL..wA"},   {{3, 0, 1, 4}, "...L...L...L"},
        {{0, 0, 2, 2}, "ALALALALALAL"},   {{11, 0, 3, 0}, "...........A"},
        {{100, 3, 1, 9}, "............"},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        for (int64_t step = 1; rows[i].steps[step - 1]; step++) {
            bool is_last;
            enum profile_part part = profile_plan_part(&rows[i].plan, step, &is_last);
            char got = ".wA"[part];
            if (part == PROFILE_ACTIVE && is_last)
                got = 'L';
            if (got != rows[i].steps[step - 1])
                fail_msg("row %zu, step %d: %c, not %c", i, (int)step, got,
                         rows[i].steps[step - 1]);
        }
}

static void ranks(void **state)
{
    (void)state;
    static const struct {
        const char *ranks;
        int highest; /* -2: refused */
        bool several;
        const char *have; /* which of ranks 0 to 5 */
    } rows[] = {
        {"0", 0, false, "100000"},  {"all", -1, true, "111111"},
        {"1,4", 4, true, "010010"}, {"4,1", 4, true, "010010"},
        {"", -2, false, ""},        {",", -2, false, ""},
        {"0,", -2, false, ""},      {"-1", -2, false, ""},
        {"0 1", -2, false, ""},     {"some", -2, false, ""},
        {"1000001", -2, false, ""}, {"12345678901234567", -2, false, ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        int highest;
        bool several;
        struct error err;
        int result = profile_ranks_check(rows[i].ranks, &highest, &several, &err);
        if (rows[i].highest == -2) {
            assert_fails(result, &err, ERR_CONFIG, "profiler.ranks: '");
            continue;
        }
        assert_ok(result, &err);
        assert_int_equal(highest, rows[i].highest);
        assert_int_equal(several, rows[i].several);
        for (int rank = 0; rank < 6; rank++)
            assert_int_equal(profile_ranks_have(rows[i].ranks, rank), rows[i].have[rank] == '1');
    }
}

static void paths(void **state)
{
    (void)state;
    static const struct {
        const char *dir, *file;
        bool gzip;
        const char *path, *fixed;
    } rows[] = {
        {"profiling", "trace.json", false, "profiling/trace.json", "profiling"},
        {"/a/b", "t{rank}.json", true, "/a/b/t3.json.gz", "/a/b"},
        {"profiling/traces/iteration_{step}", "rank{rank}_trace.json.gz", false,
         "profiling/traces/iteration_12/rank3_trace.json.gz", "profiling/traces"},
        {"r{rank}", "s{step:04d}.json.gz", true, "r3/s0012.json.gz", "."},
        {"/{rank}/x", "t", false, "/3/x/t", "/"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char path[256], fixed[256];
        struct error err;
        assert_ok(profile_path_check(rows[i].dir, rows[i].file, false, false, &err), &err);
        profile_path(rows[i].dir, rows[i].file, rows[i].gzip, 3, 12, path, sizeof path);
        profile_fixed_dir(rows[i].dir, fixed, sizeof fixed);
        assert_string_equal(path, rows[i].path);
        assert_string_equal(fixed, rows[i].fixed);
        assert_int_equal(profile_is_gzip(rows[i].file, rows[i].gzip),
                         strstr(rows[i].path, ".gz") != NULL);
    }
}

static void several_traces_need_several_names(void **state)
{
    (void)state;
    static const struct {
        const char *dir, *file;
        bool ranks, windows;
        const char *message; /* NULL: it will do */
    } rows[] = {
        {"d", "t", true, false, "has no {rank}"},
        {"d", "t", false, true, "has no {step}"},
        {"d{rank}", "t{step}", true, true, NULL},
        {"d", "t{rank:03d}", true, false, NULL},
        {"", "t", false, false, "profiler.dir: '' must be a name"},
        {"d", "", false, false, "profiler.file: '' must be a name"},
        {"d", "a/t", false, false, "without '/'"},
        {"d", "t{epoch}", false, false, "there is no field {epoch}"},
        {"d{", "t", false, false, "profiler.dir"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error err;
        int result =
            profile_path_check(rows[i].dir, rows[i].file, rows[i].ranks, rows[i].windows, &err);
        if (rows[i].message)
            assert_fails(result, &err, ERR_CONFIG, rows[i].message);
        else
            assert_ok(result, &err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),
        cmocka_unit_test(ranks),
        cmocka_unit_test(paths),
        cmocka_unit_test(several_traces_need_several_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
