/* What a run reports of its time: also of one that fails. */
#include "agent/report/report.h"
#include "base/file.h"
#include "base/mem.h"
#include "tests/agent/config_line.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static int64_t now_us;

static int64_t steady_us(void)
{
    return now_us;
}

enum stage { BEGAN, LOADS, LOADED, LOOP, STEP, EVALUATES, EVALUATED, SAVES, LAST_STEP };

/* A second before each stage, up to `last`. */
static void go_to_stage(struct report *r, enum stage last)
{
    const struct trainer_listener l = report_listener(r);
    const struct trainer_facts facts = {
        .model = "mnist", .strategy = "NO_SHARD", .device = "cpu", .device_model = "", .steps = 2};
    const struct trainer_score score = {.epoch = 1, .step = 1, .samples = 1};
    const struct trainer_save save = {.path = "", .step = 1};
    struct run_numbers step = {.steps = 2, .samples = 1};
    struct error err;
    for (int stage = BEGAN; stage <= (int)last; stage++) {
        now_us += 1000000;
        step.step = stage == LAST_STEP ? 2 : 1;
        if (stage == BEGAN)
            assert_ok(l.began(l.ctx, &facts, &err), &err);
        if (stage == LOADS || stage == LOADED)
            l.event(l.ctx, stage == LOADS ? RUN_LOAD_BEGIN : RUN_LOAD_DONE, NULL, 0);
        if (stage == LOOP)
            report_begin(r);
        if (stage == STEP || stage == LAST_STEP)
            l.step(l.ctx, &step);
        if (stage == EVALUATES)
            l.test_begins(l.ctx);
        if (stage == EVALUATED)
            l.test(l.ctx, &score);
        if (stage == SAVES)
            l.save_begins(l.ctx, &save);
        if (stage == SAVES && last > SAVES)
            l.saved(l.ctx, &save);
    }
}

/* What failed takes three seconds. */
static void a_failure_ends_what_was_going_on(void **state)
{
    (void)state;
    static const struct {
        enum stage stage;
        const char *seconds;
    } rows[] = {
        {BEGAN, "\"initialization\":4.000"},
        {LOADS, "\"checkpointRestore\":3.000"},
        {LOADED, "\"initialization\":5.000,\"checkpointRestore\":1.000"},
        {LOOP, "\"lostWork\":3.000"},
        {STEP, "\"step\":1.000,\"lostWork\":3.000"},
        {EVALUATES, "\"evaluation\":4.000"},
        {EVALUATED, "\"lostWork\":3.000"},
        {SAVES, "\"checkpointSave\":4.000"},
        {LAST_STEP, "\"other\":3.000"},
    };
    char *dir = support_temp_dir();
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        struct config config;
        struct error err;
        size_t bytes;
        char *text;
        const char *path = arena_printf(arena, "%s/termination-log", dir);
        fclose(fopen(path, "we"));
        assert_ok(config_line_parse(arena, "--prometheus_port=0", "", &config, &err), &err);
        const struct report_setting setting = {.config = &config,
                                               .world_size = 1,
                                               .job = "",
                                               .node = "",
                                               .pod_namespace = "",
                                               .pod = "",
                                               .termination_log = path,
                                               .wall_us = steady_us,
                                               .steady_us = steady_us};
        now_us = 0;
        struct report *r = report_open(&setting);
        go_to_stage(r, rows[i].stage);
        now_us += 3000000;
        report_failed(r, 1, "it failed");
        assert_ok(file_read(path, 1 << 16, &text, &bytes, &err), &err);
        if (!strstr(text, rows[i].seconds))
            fail_msg("row %zu: no %s in %s", i, rows[i].seconds, text);
        free(text);
        report_close(r);
    }
    support_remove_tree(dir);
    free(dir);
}

/* Whoever started the run hears what the operator would, and of the ranks. */
static void a_listener_hears_of_time_and_ranks(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    auto_free char *dir = support_temp_dir();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/s", dir);
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    struct config config;
    struct error err;
    assert_ok(config_line_parse(arena, "--prometheus_port=0", "", &config, &err), &err);
    const struct report_setting setting = {.config = &config,
                                           .world_size = 2,
                                           .job = "",
                                           .node = "",
                                           .pod_namespace = "",
                                           .pod = "",
                                           .progress_socket = address.sun_path,
                                           .wall_us = steady_us,
                                           .steady_us = steady_us};
    now_us = 0;
    struct report *r = report_open(&setting);
    go_to_stage(r, LAST_STEP);
    report_health(r, &(struct telemetry_health){.ranks_json = "[{\"rank\":1}]", .last_hang = ""});
    report_close(r);
    char text[4096];
    int accounts = 0, ranks = 0;
    bool last_is_account = false;
    for (ssize_t count; (count = recv(fd, text, sizeof text - 1, 0)) >= 0;) {
        text[count] = '\0';
        last_is_account = strstr(text, "\"seconds\":{") != NULL;
        accounts += last_is_account;
        ranks += strcmp(text, "{\"ranks\":[{\"rank\":1}]}") == 0;
    }
    assert_true(accounts >= 2 && last_is_account); /* at the beginning and, whole, at the end */
    assert_non_null(strstr(text, "\"step\":"));
    assert_int_equal(ranks, 1);
    support_remove_tree(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_ends_what_was_going_on),
        cmocka_unit_test(a_listener_hears_of_time_and_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
