/* `shoal top`'s tables: which jobs, in which order, at several widths. */
#include "tests/support.h"

#include "base/mem.h"
#include "cli/layout.h"
#include "cli/top_screen.h"

#include <string.h>

#define NOW_MS  INT64_C(1767225600000)
#define HOUR_MS INT64_C(3600000)

enum { JOBS = 4 };

static const struct condition done = {.type = CONDITION_SUCCEEDED, .status = true};

/* Four jobs; of the last nothing is known but that it is there. */
static void make_jobs(struct job_facts jobs[JOBS])
{
    static const char *const names[JOBS] = {"llama-70b", "mnist", "bert", "zephyr"};
    static const char *const namespaces[JOBS] = {"ml", "ml", "vision", "ml"};
    static const char *const states[JOBS] = {"Running", "Running", "Succeeded", "New"};
    for (int i = 0; i < JOBS; i++)
        jobs[i] = (struct job_facts){.name = names[i],
                                     .namespace_ = namespaces[i],
                                     .state = states[i],
                                     .created_ms = NOW_MS - (i + 1) * HOUR_MS,
                                     .gpus = 8 * (4 - i),
                                     .restarts = i == 1 ? 12 : 0,
                                     .training = training_open()};
    jobs[0].training.step = 1200;
    jobs[0].training.steps = 5000;
    jobs[0].training.loss = 2.3125;
    jobs[0].training.tokens_per_s = 51200;
    jobs[0].training.seconds_left = 4800;
    jobs[0].goodput.known = true;
    jobs[0].goodput.ms[TRAINING_SPENT_STEP] = 931;
    jobs[0].goodput.ms[GOODPUT_PENDING] = 69;
    jobs[1].training.step = 30;
    jobs[1].training.samples_per_s = 812.4;
    jobs[1].training.seconds_left = 60;
    jobs[1].goodput.known = true;
    jobs[1].goodput.ms[TRAINING_SPENT_STEP] = 1;
    jobs[1].goodput.ms[GOODPUT_RECOVERY] = 1;
    jobs[2].training.step = jobs[2].training.steps = 90000;
    jobs[2].conditions = &done;
    jobs[2].condition_count = 1;
    jobs[3].training.known = false;
}

static void orders_and_filters(void **state)
{
    (void)state;
    static const struct {
        int sort;
        bool reverse;
        const char *filter, *expected;
    } rows[] = {
        {JOB_SORT_NAME, false, NULL, "llama-70b mnist zephyr bert"},
        {JOB_SORT_NAME, true, NULL, "bert zephyr mnist llama-70b"},
        {JOB_SORT_AGE, false, NULL, "llama-70b mnist bert zephyr"},
        {JOB_SORT_STEP, false, NULL, "bert llama-70b mnist zephyr"},
        {JOB_SORT_STEP, true, NULL, "mnist llama-70b bert zephyr"},
        {JOB_SORT_ETA, false, NULL, "mnist llama-70b zephyr bert"},
        {JOB_SORT_GOODPUT, false, NULL, "mnist llama-70b zephyr bert"},
        {JOB_SORT_GPUS, false, NULL, "llama-70b mnist bert zephyr"},
        {JOB_SORT_RESTARTS, false, NULL, "mnist llama-70b zephyr bert"},
        {JOB_SORT_NAME, false, "runn", "llama-70b mnist"},
        {JOB_SORT_NAME, false, "VISION", "bert"},
        {JOB_SORT_NAME, false, "70", "llama-70b"},
        {JOB_SORT_NAME, false, "nothing", ""},
    };
    struct job_facts jobs[JOBS];
    make_jobs(jobs);
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct job_table table = {.jobs = jobs,
                                        .count = JOBS,
                                        .sort = rows[i].sort,
                                        .reverse = rows[i].reverse,
                                        .filter = rows[i].filter};
        const struct job_facts *selected[JOBS];
        size_t count = job_table_select(&table, selected);
        auto_str struct str names;
        str_init(&names, 4096);
        for (size_t k = 0; k < count; k++)
            str_printf(&names, "%s%s", k ? " " : "", selected[k]->name);
        assert_string_equal(str_text(&names), rows[i].expected);
    }
}

static void expect_table(size_t count, bool with_namespace, int columns, const char *expected)
{
    struct job_facts jobs[JOBS];
    const struct job_facts *all[JOBS];
    make_jobs(jobs);
    for (int i = 0; i < JOBS; i++)
        all[i] = &jobs[i];
    auto_str struct str out;
    str_init(&out, 16 * 1024);
    job_table_render(all, count, with_namespace, columns, NOW_MS, &out);
    assert_string_equal(str_text(&out), expected);
}

static void columns_give_way(void **state)
{
    (void)state;
    static const char *const all =
        "NAME       NAMESPACE  STATE      PROGRESS             STEP    LOSS          SPEED    ETA  GPUS  GOODPUT  RESTARTS   AGE\n"
        "llama-70b  ml         Running    [##--------]    1200/5000  2.3125    51200 tok/s  1h20m    32    93.1%         0  1h0m\n"
        "mnist      ml         Running    -                      30       -  812 samples/s   1m0s    24    50.0%        12  2h0m\n"
        "bert       vision     Succeeded  [##########]  90000/90000       -              -      -    16        -         0  3h0m\n"
        "zephyr     ml         New        -                       -       -              -      -     8        -         0  4h0m\n";
    expect_table(4, true, 200, all);
    expect_table(4, true, LAYOUT_UNLIMITED, all);
    expect_table(4, true, 80,
                 "NAME       NAMESPACE  STATE             STEP    ETA  GPUS  GOODPUT\n"
                 "llama-70b  ml         Running      1200/5000  1h20m    32    93.1%\n"
                 "mnist      ml         Running             30   1m0s    24    50.0%\n"
                 "bert       vision     Succeeded  90000/90000      -    16        -\n"
                 "zephyr     ml         New                  -      -     8        -\n");
    expect_table(4, true, 40,
                 "NAME       STATE             STEP\n"
                 "llama-70b  Running      1200/5000\n"
                 "mnist      Running             30\n"
                 "bert       Succeeded  90000/90000\n"
                 "zephyr     New                  -\n");
    expect_table(2, false, 14, /* then names are cut to their ends, with a sign */
                 "NAME  STATE\n"
                 "..b   Running\n"
                 "..st  Running\n");
    expect_table(2, false, 18,
                 "NAME      STATE\n"
                 "..ma-70b  Running\n"
                 "mnist     Running\n");
}

static void expect_screen(const struct top_screen *screen, int columns, int rows,
                          const char *expected)
{
    auto_str struct str out;
    str_init(&out, 16 * 1024);
    top_screen_render(screen, columns, rows, NOW_MS, &out);
    assert_string_equal(str_text(&out), expected);
}

static void a_screen(void **state)
{
    (void)state;
    struct job_facts jobs[JOBS];
    make_jobs(jobs);
    struct top_screen screen = {
        .source = "https://api:6443", .table = {.jobs = jobs, .count = JOBS}, .read_ms = NOW_MS};
    expect_screen(&screen, 60, 24,
                  "4 jobs: 2 Running, 1 New, 1 Succeeded; 64 GPUs\n" /* not half of an address */
                  "by name  q: quit, s: next order, r: reverse\n"
                  "NAME       STATE             STEP    ETA  GPUS  GOODPUT\n"
                  "llama-70b  Running      1200/5000  1h20m    32    93.1%\n"
                  "mnist      Running             30   1m0s    24    50.0%\n"
                  "zephyr     New                  -      -     8        -\n"
                  "bert       Succeeded  90000/90000      -    16        -\n");
    screen.table.filter = "Running";
    screen.table.sort = JOB_SORT_GOODPUT;
    screen.table.reverse = true;
    screen.trouble = "GET /apis: etcd is away (500)";
    screen.read_ms = NOW_MS - 12345;
    expect_screen(&screen, 40, 24,
                  "2 jobs: 2 Running; 56 GPUs\n"
                  "no news for 12 s: GET /apis: etcd is\n"
                  "NAME       STATE         STEP    ETA\n"
                  "llama-70b  Running  1200/5000  1h20m\n"
                  "mnist      Running         30   1m0s\n");
    screen.trouble = NULL;
    expect_screen(&screen, 80, 6, /* too low for both: the last row is the cursor's */
                  "2 jobs: 2 Running; 56 GPUs  https://api:6443\n"
                  "by goodput, reversed, only Running  q: quit, s: next order, r: reverse\n"
                  "NAME       STATE         STEP        SPEED    ETA  GPUS  GOODPUT   AGE\n"
                  "llama-70b  Running  1200/5000  51200 tok/s  1h20m    32    93.1%  1h0m\n"
                  "... and 1 more\n");
    screen.table.count = 0;
    expect_screen(&screen, 30, 24, "0 jobs  https://api:6443\nby goodput, reversed, only\n");
    expect_screen(&screen, 20, 24, "0 jobs\nby goodput\n");
    expect_screen(&screen, 12, 24, "0 jobs\nby goodput\n");
    expect_screen(&screen, 2, 24, "0\nb\n"); /* a word that has no room */
    expect_screen(&screen, 1, 24, "\n\n");
    screen.read_ms = 0;
    screen.trouble = "no answer";
    expect_screen(&screen, 80, 3, "https://api:6443\nno answer\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_and_filters),
        cmocka_unit_test(columns_give_way),
        cmocka_unit_test(a_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
