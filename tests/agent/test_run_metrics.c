#include "tests/agent/run_fixture.h"
#include "tests/exposition_check.h"
#include "tests/support.h"

#include "agent/telemetry/run_metrics.h"
#include "agent/telemetry/status_json.h"
#include "base/json.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 1 << 20 };

static void print(const struct run_state *s, struct str *page)
{
    str_init(page, PAGE_BYTES);
    run_metrics_print(s, 1 << 20, page);
    exposition_check(str_text(page));
}

static void assert_sample(const struct str *page, const char *sample, double value)
{
    double found = exposition_check_value(str_text(page), sample);
    if (found != value)
        fail_msg("%s %.17g, not %.17g", sample, found, value);
}

#define JOB  "job_name=\"llama\""
#define RANK JOB ",rank=\"0\",local_rank=\"0\",gpu=\"0\",node=\"llama-master-0\""

static void rank_0_tells_of_the_job_and_of_itself(void **state)
{
    (void)state;
    struct run_state s;
    run_fixture_state(&s);
    auto_str struct str page;
    print(&s, &page);
    static const struct {
        const char *sample;
        double value;
    } rows[] = {
        {"fsdp_run_info{model=\"llama3.2-1b\",strategy=\"FULL_SHARD\",precision=\"bf16\","
         "world_size=\"2\",preset=\"hyperpod\"}",
         1},
        {"fsdp_train_step{" JOB "}", 3},
        {"fsdp_train_loss{" JOB "}", 2.5},
        {"fsdp_train_steps_total{" JOB "}", 3}, /* in no file */
        {"fsdp_eval_perplexity{" JOB "}", 9.5},
        {"fsdp_train_tokens_total{" JOB "}", 3 * 4096},
        {"fsdp_tokens_per_second{" JOB "}", 8192},
        {"fsdp_model_flops_utilization_ratio{convention=\"causal\"," JOB "}", 0.5},
        {"fsdp_model_flops_utilization_ratio{convention=\"full\"," JOB "}", 0.6},
        {"fsdp_elapsed_seconds{" JOB "}", 5},
        {"fsdp_checkpoint_last_step{" JOB "}", 3},
        {"fsdp_checkpoint_last_success_timestamp_seconds{" JOB "}", 1750177497.123},
        {"fsdp_checkpoint_save_duration_seconds_bucket{le=\"1\"," JOB "}", 0},
        {"fsdp_checkpoint_save_duration_seconds_bucket{le=\"2\"," JOB "}", 1},
        {"fsdp_step_duration_seconds_bucket{le=\"0.3\"," RANK "}", 0},
        {"fsdp_step_duration_seconds_bucket{le=\"+Inf\"," RANK "}", 3},
        {"fsdp_step_duration_seconds_sum{" RANK "}", 1.5},
        {"fsdp_phase_seconds_total{phase=\"eval\"," RANK "}", 0.75},
        {"fsdp_collective_operations_total{op=\"all_gather\"," RANK "}", 102},
        {"fsdp_collective_bytes_total{" RANK "}", 3000},
        {"fsdp_memory_peak_bytes{kind=\"unit\"," RANK "}", 1 << 20},
        {"fsdp_memory_all_kinds_peak_bytes{" RANK "}", 5LL << 30},
        {"process_resident_memory_bytes{" RANK "}", 1 << 20},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_sample(&page, rows[i].sample, rows[i].value);
}

static void other_ranks_tell_of_themselves_only(void **state)
{
    (void)state;
    struct run_state s;
    run_fixture_state(&s);
    s.facts.rank = 8;
    auto_str struct str page;
    print(&s, &page);
    static const char *const absent[] = {"fsdp_train_", "fsdp_eval_", "fsdp_tokens_per_second",
                                         "fsdp_checkpoint_", "fsdp_model_"};
    for (size_t i = 0; i < array_length(absent); i++)
        if (strstr(str_text(&page), absent[i]))
            fail_msg("%s is there", absent[i]);
    assert_sample(&page,
                  "fsdp_step_duration_seconds_count{" JOB
                  ",rank=\"8\",local_rank=\"0\",gpu=\"0\",node=\"llama-master-0\"}",
                  3);
}

static void what_is_not_known_is_not_there(void **state)
{
    (void)state;
    struct run_state s;
    struct run_facts facts = run_fixture_facts();
    facts.job = "";
    facts.peak_flops_per_s = 0;
    run_state_init(&s, &facts, RUN_FIXTURE_WALL_US);
    auto_str struct str page, later;
    print(&s, &page);
    static const char *const absent[] = {"fsdp_train_loss", "fsdp_eval_loss", "fsdp_model_flops",
                                         "fsdp_checkpoint_last_success"};
    for (size_t i = 0; i < array_length(absent); i++)
        if (strstr(str_text(&page), absent[i]))
            fail_msg("%s is there", absent[i]);
    assert_sample(&page, "fsdp_train_step", 0);
    /* but a loss that is no number is told */
    struct run_numbers lost = run_fixture_numbers(1);
    lost.loss = (double)NAN;
    run_state_step(&s, &lost, RUN_FIXTURE_WALL_US);
    print(&s, &later);
    assert_true(isnan(exposition_check_value(str_text(&later), "fsdp_train_loss")));
}

static void odd_names_are_escaped(void **state)
{
    (void)state;
    struct run_state s;
    run_fixture_state(&s);
    s.facts.model = "a \"b\" \\ c\nd";
    auto_str struct str page;
    print(&s, &page);
    assert_non_null(strstr(str_text(&page), "{model=\"a \\\"b\\\" \\\\ c\\nd\","));
}

/* The real thing, where it is installed. */
static void promtool_finds_nothing_wrong(void **state)
{
    (void)state;
    if (system("command -v promtool >/dev/null") != 0)
        skip();
    struct run_state s;
    run_fixture_state(&s);
    auto_str struct str page;
    print(&s, &page);
    FILE *promtool = popen("promtool check metrics 2>&1", "w");
    assert_non_null(promtool);
    fputs(str_text(&page), promtool);
    assert_int_equal(pclose(promtool), 0);
}

static void the_status_is_json(void **state)
{
    (void)state;
    struct run_state s;
    run_fixture_state(&s);
    auto_str struct str text;
    str_init(&text, PAGE_BYTES);
    status_json(&s, &text);
    struct json *status = json_parse_text(str_text(&text), JSON_STRICT, NULL);
    assert_non_null(status);
    assert_string_equal(json_as_text(json_get(status, "model")), "llama3.2-1b");
    assert_string_equal(json_as_text(json_get(status, "started")), "2025-06-17T16:24:52Z");
    const struct json *step = json_get(status, "last_step");
    assert_true(json_as_number(json_get(step, "loss")) == 2.5);
    const struct json *eval = json_get(status, "last_eval");
    assert_true(json_as_number(json_get(eval, "eval_loss")) == 2.25);
    const struct json *unit = json_get(json_get(status, "memory_bytes"), "unit");
    assert_int_equal(json_as_integer(json_get(unit, "peak")), 1 << 20);
    const struct json *collectives = json_get(status, "collectives");
    for (int i = 0; i < COMM_COLLECTIVE_KINDS; i++) {
        const char *name = comm_collective_name((enum comm_collective)i);
        assert_int_equal(json_as_integer(json_get(collectives, name)), s.last.traffic.calls[i]);
    }
    assert_int_equal(json_as_integer(json_get(collectives, "all_gather")), 102);
    const struct json *checkpoint = json_get(status, "checkpoint");
    assert_int_equal(json_as_integer(json_get(checkpoint, "last_step")), 3);
    json_free(status);

    const struct run_facts facts = run_fixture_facts();
    run_state_init(&s, &facts, RUN_FIXTURE_WALL_US);
    str_clear(&text);
    status_json(&s, &text);
    status = json_parse_text(str_text(&text), JSON_STRICT, NULL);
    assert_non_null(status);
    assert_null(json_get(status, "last_step"));
    json_free(status);
}

/* The words that the operator reads: tests/operator/decode/test_decode_training.c. */
static void the_operator_is_told_what_is_known(void **state)
{
    (void)state;
    struct run_state s;
    const struct run_facts facts = run_fixture_facts();
    auto_str struct str text;
    str_init(&text, PAGE_BYTES);
    run_state_init(&s, &facts, RUN_FIXTURE_WALL_US);
    s.facts.run_id = "the-id"; /* ranks join by it: it is told to nobody */
    status_json_training(&s, &text);
    assert_non_null(strstr(str_text(&text), "{\"runDigest\":\""));
    assert_null(strstr(str_text(&text), "the-id"));
    s.facts.run_id = "";
    s.facts.restarts = 3;
    str_clear(&text);
    status_json_training(&s, &text);
    assert_string_equal(str_text(&text), "{\"steps\":100,\"worldSize\":2,\"restarts\":3,"
                                         "\"lastProgressTime\":\"2025-06-17T16:24:52Z\"}\n");
    run_fixture_state(&s);
    str_clear(&text);
    status_json_training(&s, &text);
    assert_string_equal(
        str_text(&text),
        "{\"steps\":100,\"step\":3,\"epoch\":0.03,\"loss\":2.5,\"tokensPerSecond\":8192,"
        "\"samplesPerSecond\":16,\"mfu\":0.6,\"secondsLeft\":48,\"evalLoss\":2.25,\"worldSize\":2,"
        "\"restarts\":0,\"lastCheckpointStep\":3,\"lastCheckpointTime\":\"2025-06-17T16:24:57Z\","
        "\"lastProgressTime\":\"2025-06-17T16:24:57Z\"}\n");
    struct time_account account = time_account_open(0);
    time_account_add(&account, TIME_INITIALIZATION, 1500000);
    time_account_step(&account, 0.25, false, 2500400);
    s.account = &account;
    s.process_wall_us = RUN_FIXTURE_WALL_US - 1500000;
    str_clear(&text);
    status_json_training(&s, &text);
    assert_non_null(strstr(
        str_text(&text),
        ",\"processStartTime\":\"2025-06-17T16:24:50.623000Z\",\"resumedStep\":0,\"seconds\":{"
        "\"initialization\":1.500,\"dataLoading\":0.250,\"step\":0.750}}\n"));
    auto_str struct str page;
    print(&s, &page);
    assert_true(exposition_check_value(str_text(&page),
                                       "fsdp_time_seconds_total{kind=\"initialization\"," RANK
                                       "}") == 1.5);
    /* not when the metrics began, which is after its initialization */
    assert_true(exposition_check_value(str_text(&page), "process_start_time_seconds{" RANK "}") ==
                (double)s.process_wall_us / 1e6);
    s.last.loss = (double)INFINITY; /* JSON has no such number */
    str_clear(&text);
    status_json_training(&s, &text);
    assert_null(strstr(str_text(&text), "\"loss\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rank_0_tells_of_the_job_and_of_itself),
        cmocka_unit_test(other_ranks_tell_of_themselves_only),
        cmocka_unit_test(what_is_not_known_is_not_there),
        cmocka_unit_test(odd_names_are_escaped),
        cmocka_unit_test(promtool_finds_nothing_wrong),
        cmocka_unit_test(the_status_is_json),
        cmocka_unit_test(the_operator_is_told_what_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
