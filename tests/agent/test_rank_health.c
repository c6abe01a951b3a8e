/* What ranks tell of themselves, and what rank 0 makes of it: texts, the table, slow ranks. */
#include "agent/comm/collective_progress.h"
#include "agent/health/activity.h"
#include "agent/health/rank_health.h"
#include "agent/health/rank_table.h"
#include "agent/health/straggler.h"
#include "agent/launch/last_words.h"
#include "agent/launch/rank_note.h"
#include "tests/support.h"

#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_a_report_arrives_as_it_was_sent(void **state)
{
    (void)state;
    const struct rank_report reports[] = {
        {.phase = RANK_START},
        {.step = 7000000000,
         .phase = RANK_EVALUATION,
         .passed = 0x1f,
         .entered = 12,
         .ended = 11,
         .compute_us = 5000000000,
         .steps = 3,
         .node = 2,
         .pid = 4194304,
         .op = "reduce_scatter",
         .unit = "a unit of two words"},
        {.step = 1, .phase = RANK_END, .op = "barrier"},
    };
    for (size_t i = 0; i < array_length(reports); i++) {
        char text[192], again[192];
        struct rank_report back;
        struct error err;
        rank_report_write(&reports[i], text, sizeof text);
        assert_ok(rank_report_read(text, &back, &err), &err);
        rank_report_write(&back, again, sizeof again);
        assert_string_equal(text, again);
        assert_int_equal(back.step, reports[i].step);
        assert_int_equal(back.phase, reports[i].phase);
        assert_string_equal(back.op, reports[i].op);
        assert_string_equal(back.unit, reports[i].unit);
    }
}

static void test_what_is_no_report_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "hello",
        "1 2 3",
        "1 9 0 1 1 0 1 0 5 -",  /* there is no phase 9 */
        "-1 2 0 1 1 0 1 0 5 -", /* nor a step before the first */
        "1 2 0 1 1 0 1 -7 5 -", /* nor such a pod */
    };
    for (size_t i = 0; i < array_length(texts); i++) {
        struct rank_report report;
        struct error err;
        assert_fails(rank_report_read(texts[i], &report, &err), &err, ERR_INPUT, "a rank's report");
    }
}

static void test_locations(void **state)
{
    (void)state;
    static const struct {
        const char *host, *pod, *host_back, *pod_back;
    } rows[] = {
        {"node-7", "llama-worker-0", "node-7", "llama-worker-0"},
        {"", "", "", ""},
        {"a", "", "a", ""},
        {"a-name-that-is-longer-than-what-there-is-room-for-here", "pod",
         "a-name-that-is-longer-than-what-there-is-room", "pod"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        char text[96];
        struct rank_location location;
        rank_location_write(rows[i].host, rows[i].pod, text, sizeof text);
        rank_location_read(text, &location);
        assert_int_equal(strncmp(location.host, rows[i].host_back, strlen(rows[i].host_back)), 0);
        assert_string_equal(location.pod, rows[i].pod_back);
    }
}

static void test_the_table_is_json(void **state)
{
    (void)state;
    const struct rank_report one = {.step = 5, .phase = RANK_DATA, .entered = 9, .ended = 9};
    const struct rank_row rows[] = {
        {.location = {"node \"a\"", "pod-0"}, .report = &one, .still_s = 31, .state = RANK_IS_HUNG},
        {.report = NULL}, /* not heard yet */
        {.report = &one, .compute_ratio = 1.5, .state = RANK_IS_STRAGGLING},
    };
    auto_str struct str text;
    str_init(&text, RANK_TABLE_BYTES);
    rank_table_json(rows, (int)array_length(rows), &text);
    assert_string_equal(
        str_text(&text),
        "[{\"rank\":0,\"host\":\"node \\\"a\\\"\",\"pod\":\"pod-0\",\"state\":\"hung\",\"phase\":\"data\","
        "\"step\":5,\"collective\":9,\"op\":\"\",\"unit\":\"\",\"waits\":false,\"still_seconds\":31.0},"
        "{\"rank\":2,\"host\":\"\",\"pod\":\"\",\"state\":\"straggling\",\"phase\":\"data\",\"step\":5,"
        "\"collective\":9,\"op\":\"\",\"unit\":\"\",\"waits\":false,\"still_seconds\":0.0,"
        "\"compute_ratio\":1.50}]");
}

/* A table of any size has an end, and whoever holds up the others is in it. */
static void test_the_table_has_an_end(void **state)
{
    (void)state;
    enum { RANKS = 10000, SLOWEST = 9000, HUNG = 1024 };
    const struct rank_report one = {.step = 5};
    struct rank_row *rows = xcalloc(RANKS, sizeof *rows);
    for (int slow = 0; slow < 2; slow++) {
        auto_str struct str text;
        int count = 0;
        str_init(&text, RANK_TABLE_BYTES);
        for (int i = 0; i < RANKS; i++)
            rows[i] = (struct rank_row){.report = &one,
                                        .compute_ratio = i == SLOWEST ? 1.2 : 1,
                                        .state = i == HUNG          ? RANK_IS_HUNG
                                                 : slow && i > HUNG ? RANK_IS_STRAGGLING
                                                                    : RANK_IS_WELL};
        rank_table_json(rows, RANKS, &text);
        assert_false(text.truncated);
        for (const char *at = str_text(&text); (at = strstr(at, "{\"rank\":")); at++)
            count++;
        assert_int_equal(count, slow ? RANK_TABLE_ROWS + RANK_TABLE_MORE + 1 : RANK_TABLE_ROWS + 2);
        assert_non_null(strstr(str_text(&text), "\"rank\":9000,"));
        assert_non_null(strstr(str_text(&text), "\"rank\":1024,"));
    }
    free(rows);
}

static void test_phases_of_a_rank(void **state)
{
    (void)state;
    struct activity a;
    struct rank_report r;
    activity_init(&a);
    assert_int_equal(activity_enter(&a, RANK_STEP), RANK_START);
    activity_read(&a, &r);
    assert_int_equal(r.phase, RANK_FIRST_STEP);
    activity_step(&a, 101, 0.5);
    assert_int_equal(activity_enter(&a, RANK_SAVE), RANK_FIRST_STEP);
    assert_int_equal(activity_enter(&a, RANK_STEP), RANK_SAVE);
    activity_step(&a, 102, 0.25);
    activity_read(&a, &r);
    assert_int_equal(r.phase, RANK_STEP);
    assert_int_equal(r.passed, 1 << RANK_START | 1 << RANK_FIRST_STEP | 1 << RANK_SAVE);
    assert_int_equal(r.step, 102);
    assert_int_equal(r.steps, 2);
    assert_int_equal(r.compute_us, 750000);
    activity_destroy(&a);
    activity_enter(NULL, RANK_DATA); /* nobody reads it */
    activity_step(NULL, 1, 1);
}

static void test_collectives_of_a_rank(void **state)
{
    (void)state;
    struct collective_progress p;
    collective_progress_init(&p);
    collective_progress_enter(&p, "all_gather", "layers.3");
    collective_progress_end(&p, 1);
    collective_progress_enter(&p, "all_reduce", NULL);
    struct collective_state at = collective_progress_read(&p);
    assert_int_equal(at.entered, 2);
    assert_int_equal(at.ended, 1);
    assert_string_equal(at.op, "all_reduce");
    assert_string_equal(at.unit, "");
    collective_progress_destroy(&p);
    collective_progress_enter(NULL, "all_gather", NULL);
    collective_progress_end(NULL, 1);
}

/* ---- stragglers ---- */

enum { RANKS = 4 };

/* Windows of one pace each: milliseconds of a step's compute on each rank. */
struct pace_row {
    const char *label;
    int step_ms[RANKS];
    int windows;
    int slow; /* -1: none */
    double ratio;
};

static void test_slow_ranks(void **state)
{
    (void)state;
    static const struct pace_row rows[] = {
        {"all alike", {100, 101, 99, 100}, 8, -1, 0},
        {"one is slow", {100, 100, 150, 100}, 5, 2, 1.5},
        {"... but not for long enough", {100, 100, 150, 100}, 4, -1, 0},
        {"... or not by enough", {100, 100, 129, 100}, 8, -1, 0},
        {"a fast one makes the others none", {50, 100, 100, 100}, 8, -1, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct stragglers *s = stragglers_open(RANKS);
        struct rank_report reports[RANKS] = {0};
        const struct rank_report *heard[RANKS];
        int news = 0;
        for (int w = 0; w <= rows[i].windows; w++) {
            for (int r = 0; r < RANKS; r++) {
                heard[r] = &reports[r];
                reports[r].steps += w > 0 ? 50 : 0;
                reports[r].compute_us += w > 0 ? 50 * 1000 * rows[i].step_ms[r] : 0;
            }
            bool is_over = stragglers_tick(s, heard, w * STRAGGLER_WINDOW_MS);
            for (int r = 0; r < RANKS && is_over; r++)
                news += straggler_is_news(s, r);
        }
        for (int r = 0; r < RANKS; r++)
            if (straggler_is_slow(s, r) != (r == rows[i].slow))
                fail_msg("%s: rank %d", rows[i].label, r);
        assert_int_equal(news, rows[i].slow >= 0);
        if (rows[i].slow >= 0)
            assert_float_equal(straggler_ratio(s, rows[i].slow), rows[i].ratio, 1e-9);
        stragglers_close(s);
    }
}

static void test_a_window_needs_all_ranks_and_steps(void **state)
{
    (void)state;
    struct stragglers *s = stragglers_open(2);
    struct rank_report reports[2] = {{.pid = 1}, {.pid = 2}};
    const struct rank_report *both[] = {&reports[0], &reports[1]};
    const struct rank_report *one[] = {&reports[0], NULL};
    const int64_t later_ms = 2 * STRAGGLER_WINDOW_MS;
    assert_false(stragglers_tick(s, one, 0));
    assert_false(stragglers_tick(s, both, 0));
    reports[0].steps = reports[1].steps = STRAGGLER_WINDOW_STEPS - 1;
    assert_false(stragglers_tick(s, both, later_ms)); /* long enough, but too few steps */
    reports[0].steps = reports[1].steps = STRAGGLER_WINDOW_STEPS;
    assert_false(stragglers_tick(s, one, later_ms)); /* a window with a gap is none */
    assert_false(stragglers_tick(s, both, later_ms));
    reports[0].steps = reports[1].steps = 2 * STRAGGLER_WINDOW_STEPS;
    assert_false(stragglers_tick(s, both, later_ms + STRAGGLER_WINDOW_MS - 1));
    assert_true(stragglers_tick(s, both, later_ms + STRAGGLER_WINDOW_MS));
    reports[1].pid = 3; /* a new process */
    assert_false(stragglers_tick(s, both, later_ms + 2 * STRAGGLER_WINDOW_MS));
    stragglers_close(s);
}

/* ---- the end of a rank that hangs on ---- */

static int64_t clock_ms;

static int64_t now(void)
{
    return clock_ms;
}

static int note; /* that ranks 0 hand on; 0: none */

struct watch {
    struct rank_health *health;
    struct rendezvous_health functions;
    int named_s, ended_s; /* -1: not yet */
};

static void open_watch(struct watch *w, enum hang_action action, int64_t patience_ms)
{
    const struct rank_health_setting setting = {.ranks = 2,
                                                .host = "",
                                                .pod = "",
                                                .hang_action = action,
                                                .hang_patience_ms = patience_ms,
                                                .beat_ms = 1000,
                                                .steady_ms = now,
                                                .wall_ms = now,
                                                .note_fd = note};
    *w = (struct watch){.health = rank_health_open(&setting), .named_s = -1, .ended_s = -1};
    w->functions = rank_health_rendezvous(w->health);
}

static void hear(struct watch *w, int rank, const struct rank_report *report)
{
    char text[STORE_VALUE_MAX];
    rank_report_write(report, text, sizeof text);
    w->functions.hear(w->functions.ctx, rank, "", text);
}

/* For so many seconds rank 1 waits for rank 0, which tells `report` all the while, or nothing. */
static void stand_still(struct watch *w, const struct rank_report *report, int seconds)
{
    const struct rank_report other = {.step = 9, .entered = 10, .ended = 9, .phase = RANK_STEP};
    for (int s = 0; s < seconds; s++) {
        struct rendezvous_inspection inspection;
        if (report)
            hear(w, 0, report);
        hear(w, 1, &other);
        clock_ms += 1000;
        if (!w->functions.tick(w->functions.ctx, &inspection))
            continue;
        assert_int_equal(inspection.rank, 0);
        if (inspection.ends) {
            assert_int_equal(w->ended_s, -1); /* once */
            w->ended_s = s;
        } else {
            w->named_s = s;
        }
    }
}

static void test_a_rank_is_killed_long_after_it_was_named(void **state)
{
    (void)state;
    static const struct {
        enum rank_phase phase;
        int named_s, patience_s;
    } rows[] = {
        {RANK_START, 1205, 60},   {RANK_FIRST_STEP, 605, 60}, {RANK_STEP, 5, 120},
        {RANK_DATA, 35, 300},     {RANK_EVALUATION, 35, 300}, {RANK_SAVE, 65, 300},
        {RANK_SNAPSHOT, 65, 300}, {RANK_TRACE, 65, 300},      {RANK_END, -1, 0},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct rank_report slow = {
            .step = 9, .phase = rows[i].phase, .passed = ~0u, .entered = 9, .ended = 9};
        struct watch w;
        open_watch(&w, HANG_RESTART, 0);
        stand_still(&w, &slow, 2000);
        assert_int_equal(w.named_s, rows[i].named_s);
        assert_int_equal(w.ended_s, rows[i].named_s < 0 ? -1 : w.named_s + rows[i].patience_s);
        rank_health_close(w.health);
        open_watch(&w, HANG_REPORT, 0);
        stand_still(&w, &slow, 2000);
        assert_int_equal(w.named_s, rows[i].named_s);
        assert_int_equal(w.ended_s, -1);
        rank_health_close(w.health);
    }
}

static void test_a_silent_rank_is_killed_soon_unless_it_is_heard_again(void **state)
{
    (void)state;
    const struct rank_report saves = {
        .step = 9, .phase = RANK_SAVE, .passed = ~0u, .entered = 9, .ended = 9};
    struct watch w;
    open_watch(&w, HANG_RESTART, 0);
    stand_still(&w, &saves, 50);
    stand_still(&w, NULL, 20);
    assert_int_equal(w.named_s, 8);
    assert_int_equal(w.ended_s, 12);
    rank_health_close(w.health);
    open_watch(&w, HANG_RESTART, 0);
    stand_still(&w, &saves, 50);
    stand_still(&w, NULL, 11);
    assert_int_equal(w.named_s, 8);
    stand_still(&w, &saves, 14); /* it saves on, and that may take its time */
    assert_int_equal(w.ended_s, -1);
    rank_health_close(w.health);
}

static void copy_last_hang(void *text, const struct rank_health_view *view)
{
    snprintf(text, RANK_HANG_BYTES, "%s", view->last_hang);
}

/* Whoever asks after a hang, or after rank 0 has been killed and started again, still hears of
 * it. */
static void test_the_last_hang_is_told_on(void **state)
{
    (void)state;
    const struct rank_report slow = {.step = 9,
                                     .phase = RANK_DATA,
                                     .passed = ~0u,
                                     .entered = 9,
                                     .ended = 9,
                                     .op = "all_gather",
                                     .unit = "layers.3"},
                             well = {.step = 10, .entered = 10, .ended = 9, .phase = RANK_STEP};
    const char *const told =
        "{\"rank\":0,\"step\":9,\"time\":\"1970-01-01T00:00:37Z\",\"phase\":\"data\",\"host\":\"\","
        "\"pod\":\"\",\"collective\":9,\"op\":\"all_gather\",\"unit\":\"layers.3\"}";
    char text[RANK_HANG_BYTES];
    struct watch w;
    clock_ms = 0;
    note = rank_note_open(0);
    assert_true(note > 0);
    for (int i = 0; i < 2; i++) {
        open_watch(&w, HANG_REPORT, 0);
        rank_health_show_to(w.health, copy_last_hang, text);
        stand_still(&w, &well, 1);
        assert_string_equal(text, i == 0 ? "" : told);
        if (i == 0)
            stand_still(&w, &slow, 100);
        stand_still(&w, &well, 5);
        assert_string_equal(text, told);
        rank_health_close(w.health);
    }
    close(note);
    note = 0;
}

static void test_patience_can_be_told(void **state)
{
    (void)state;
    static const struct {
        int64_t patience_ms;
        bool is_silent;
        int after_s; /* it was named */
    } rows[] = {{2000, false, 2}, {2000, true, 2}, {600000, false, 600}, {600000, true, 4}};
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct rank_report saves = {
            .step = 9, .phase = RANK_SAVE, .passed = ~0u, .entered = 9, .ended = 9};
        struct watch w;
        open_watch(&w, HANG_RESTART, rows[i].patience_ms);
        stand_still(&w, &saves, 2);
        stand_still(&w, rows[i].is_silent ? NULL : &saves, 800);
        assert_int_equal(w.ended_s - w.named_s, rows[i].after_s);
        rank_health_close(w.health);
    }
}

static void test_a_rank_is_killed_only_where_it_is_started_again(void **state)
{
    (void)state;
    static const struct {
        enum hang_action asked;
        const char *attempt, *most;
        enum hang_action now;
    } rows[] = {
        {HANG_RESTART, "0", "3", HANG_RESTART},  {HANG_RESTART, "2", "3", HANG_RESTART},
        {HANG_RESTART, "3", "3", HANG_REPORT},   {HANG_RESTART, "0", "0", HANG_REPORT},
        {HANG_RESTART, NULL, NULL, HANG_REPORT}, {HANG_RESTART, "0", "many", HANG_REPORT},
        {HANG_REPORT, "0", "3", HANG_REPORT},    {HANG_IGNORE, NULL, NULL, HANG_IGNORE},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_int_equal(hang_action_now(rows[i].asked, rows[i].attempt, rows[i].most),
                         rows[i].now);
}

/* ---- the kill itself ---- */

enum { WITNESS = 1, HUNG = 2 };

/* A process that knows no more of itself than its number as a rank. */
static pid_t start_rank(const char *variable)
{
    pid_t pid = fork();
    if (pid == 0) {
        char *const environment[] = {(char *)variable, NULL};
        execle("/bin/sleep", "sleep", "1000", NULL, environment);
        _exit(127);
    }
    return pid;
}

static void start_and_wait(const char *variable, pid_t *ret_pid)
{
    char path[32], text[64] = "";
    *ret_pid = start_rank(variable);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)*ret_pid);
    while (strcmp(text, variable) != 0) {
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        memset(text, 0, sizeof text);
        if (fread(text, 1, sizeof text - 1, file) == 0)
            text[0] = '\0';
        fclose(file);
    }
}

/* What becomes of a rank's process that is asked to end the one with this number. */
static int ask(int rank, pid_t whom)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        const struct rank_health_setting setting = {
            .rank = rank, .ranks = 3, .host = "", .pod = ""};
        struct rank_health *h = rank_health_open(&setting);
        const struct rendezvous_health functions = rank_health_rendezvous(h);
        const struct rendezvous_inspection inspection = {
            .rank = HUNG, .pid = (int)whom, .ends = true, .why = "hangs in phase step"};
        functions.inspect(functions.ctx, &inspection);
        rank_health_close(h);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_nobody_else_is_killed(void **state)
{
    (void)state;
    static const struct {
        const char *variable;
        bool is_killed;
    } rows[] = {{"RANK=1", false}, {"RANK=22", false}, {"LOCAL_RANK=2", false}, {"RANK=2", true}};
    for (size_t i = 0; i < array_length(rows); i++) {
        int status;
        pid_t pid;
        start_and_wait(rows[i].variable, &pid);
        assert_int_equal(ask(WITNESS, pid), 0);
        if (!rows[i].is_killed) {
            assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
            kill(pid, SIGTERM);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WTERMSIG(status), rows[i].is_killed ? SIGKILL : SIGTERM);
    }
}

static void test_a_rank_that_kills_itself_tells_why(void **state)
{
    (void)state;
    int fd, inherited;
    struct error err;
    struct last_words words;
    assert_ok(last_words_open(&fd, &inherited, &err), &err);
    last_words_set_inheritable(inherited);
    last_words_inherit();
    int status = ask(HUNG, getpid());
    close(inherited);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    last_words_take(fd, &words);
    assert_int_equal(words.code, ERR_TIMEOUT);
    assert_string_equal(words.text, "it hangs in phase step");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_report_arrives_as_it_was_sent),
        cmocka_unit_test(test_what_is_no_report_is_refused),
        cmocka_unit_test(test_locations),
        cmocka_unit_test(test_the_table_is_json),
        cmocka_unit_test(test_the_table_has_an_end),
        cmocka_unit_test(test_phases_of_a_rank),
        cmocka_unit_test(test_collectives_of_a_rank),
        cmocka_unit_test(test_slow_ranks),
        cmocka_unit_test(test_a_window_needs_all_ranks_and_steps),
        cmocka_unit_test(test_a_rank_is_killed_long_after_it_was_named),
        cmocka_unit_test(test_a_silent_rank_is_killed_soon_unless_it_is_heard_again),
        cmocka_unit_test(test_the_last_hang_is_told_on),
        cmocka_unit_test(test_patience_can_be_told),
        cmocka_unit_test(test_a_rank_is_killed_only_where_it_is_started_again),
        cmocka_unit_test(test_nobody_else_is_killed),
        cmocka_unit_test(test_a_rank_that_kills_itself_tells_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
