/* A rank that hangs: when it is named, when it is killed, and what is told of it. */
#include "agent/health/rank_health.h"
#include "agent/health/rank_table.h"
#include "agent/launch/last_words.h"
#include "agent/launch/rank_note.h"
#include "tests/agent/comm_local.h"
#include "tests/support.h"

#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* Rank 0 had heard nothing of it, and tells it as one that it has named itself. */
static void test_a_hang_that_a_launcher_saw_is_told(void **state)
{
    (void)state;
    const struct rank_report well = {.step = 10, .entered = 10, .ended = 9, .phase = RANK_STEP};
    struct comm_local *group = comm_local_open();
    char text[RANK_HANG_BYTES];
    struct watch w;
    note = rank_note_open(0);
    assert_true(note > 0);
    rank_note_write(note, RANK_NOTE_STOPPED,
                    "1 2026-11-28T12:37:18Z 12 3 1ff 17 16 0 12 1 812 all_gather layers.3");
    open_watch(&w, HANG_RESTART, 0);
    rank_health_show_to(w.health, copy_last_hang, text);
    rank_health_tell_stopped(w.health, comm_local_store(group));
    rank_health_hear_stopped(w.health, comm_local_store(group));
    stand_still(&w, &well, 2);
    assert_string_equal(text, "{\"rank\":1,\"step\":12,\"time\":\"2026-11-28T12:37:18Z\",\"phase\":"
                              "\"data\",\"host\":\"\",\"pod\":\"\",\"collective\":17,\"op\":"
                              "\"all_gather\",\"unit\":\"layers.3\"}");
    rank_health_close(w.health);
    comm_local_close(group);
    close(note);
    note = 0;
}

static int asked; /* how often */

static int count_get(struct store *s, const char *key, int timeout_ms, char *ret_value,
                     struct error *err)
{
    (void)s, (void)timeout_ms;
    asked++;
    ret_value[0] = '\0';
    return error_set(err, ERR_TIMEOUT, "%s", key);
}

/* Each question goes to rank 0, and a job may have thousands of ranks. */
static void test_who_names_nobody_does_not_ask_what_a_launcher_saw(void **state)
{
    (void)state;
    static const struct {
        int rank;
        enum hang_action action;
        int asked;
    } rows[] = {{0, HANG_REPORT, 1}, {0, HANG_IGNORE, 0}, {1, HANG_REPORT, 0}};
    static const struct store_functions functions = {.get = count_get};
    struct store store = {.fn = &functions};
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct rank_health_setting setting = {
            .rank = rows[i].rank, .ranks = 2, .hang_action = rows[i].action, .beat_ms = 1000};
        struct rank_health *health = rank_health_open(&setting);
        asked = 0;
        rank_health_hear_stopped(health, &store);
        assert_int_equal(asked, rows[i].asked);
        rank_health_close(health);
    }
}

/* So that its launcher can say what it did when it was stopped. */
static void test_a_rank_notes_what_it_tells(void **state)
{
    (void)state;
    char place[STORE_KEY_MAX], report[STORE_VALUE_MAX];
    auto_str struct str noted;
    struct watch w;
    str_init(&noted, RANK_NOTE_BYTES);
    note = rank_note_open(0);
    assert_true(note > 0);
    open_watch(&w, HANG_RESTART, 0);
    w.functions.tell(w.functions.ctx, place, report);
    rank_note_read(note, RANK_NOTE_REPORT, &noted);
    assert_string_equal(str_text(&noted), report);
    rank_health_close(w.health);
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
        cmocka_unit_test(test_a_rank_is_killed_long_after_it_was_named),
        cmocka_unit_test(test_a_silent_rank_is_killed_soon_unless_it_is_heard_again),
        cmocka_unit_test(test_the_last_hang_is_told_on),
        cmocka_unit_test(test_a_hang_that_a_launcher_saw_is_told),
        cmocka_unit_test(test_who_names_nobody_does_not_ask_what_a_launcher_saw),
        cmocka_unit_test(test_a_rank_notes_what_it_tells),
        cmocka_unit_test(test_patience_can_be_told),
        cmocka_unit_test(test_a_rank_is_killed_only_where_it_is_started_again),
        cmocka_unit_test(test_nobody_else_is_killed),
        cmocka_unit_test(test_a_rank_that_kills_itself_tells_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
