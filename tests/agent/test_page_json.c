/* What the live page is told of a run. */
#include "tests/support.h"

#include "agent/telemetry/page_json.h"
#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/page.h"
#include "tests/agent/run_fixture.h"

#include <math.h>
#include <string.h>

enum { TEXT_MAX_BYTES = 1 << 16 };

/* A run of so many steps. */
struct fixture {
    struct run_state state;
    struct time_account account;
    struct page_past past;
    struct page_view view;
};

static void open_fixture_after(struct fixture *f, const char *note, int steps)
{
    const struct run_facts facts = run_fixture_facts();
    *f = (struct fixture){.account = time_account_open(0)};
    run_state_init(&f->state, &facts, 1767225600 * INT64_C(1000000));
    page_past_begin(&f->past, note, f->state.start_wall_us / 1000);
    time_account_add(&f->account, TIME_INITIALIZATION, 1000000);
    for (int i = 1; i <= steps; i++) {
        struct run_numbers numbers = run_fixture_numbers(i);
        run_state_step(&f->state, &numbers, f->state.start_wall_us + i * INT64_C(1000000));
        page_past_step(&f->past, &f->state);
        time_account_add(&f->account, TIME_STEP, (1 + i) * INT64_C(1000000));
    }
    f->state.account = &f->account;
    f->state.process_wall_us = f->state.start_wall_us;
    page_past_look(&f->past, &f->account);
    f->view = (struct page_view){
        .state = &f->state, .past = &f->past, .ranks = "", .hung_rank = -1, .version = 7};
}

static void open_fixture(struct fixture *f, int steps)
{
    open_fixture_after(f, "", steps);
}

/* The answer at the path, or the message if it is NULL; NULL: none. */
static struct json *told(struct fixture *f, const char *path)
{
    auto_str struct str text;
    str_init(&text, TEXT_MAX_BYTES);
    if (path ? !page_json_answer(&f->view, path, &text) : (page_json_message(&f->view, &text), 0))
        return NULL;
    struct json *value = json_parse_text(str_text(&text), JSON_STRICT, NULL);
    assert_non_null(value);
    return value;
}

static const char *text_at(const struct json *object, const char *key)
{
    return json_as_text(json_get(object, key));
}

#define JOB_PATH PAGE_JOBS_PATH "/local/llama"

static void a_list_has_the_run(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 3);
    struct json *list = told(&f, PAGE_JOBS_PATH), *row = json_take_at(json_get(list, "jobs"), 0);
    assert_string_equal(text_at(list, "server"), "agent");
    assert_int_equal(json_as_integer(json_get(list, "version")), 7);
    assert_string_equal(text_at(row, "namespace"), "local");
    assert_string_equal(text_at(row, "name"), "llama");
    assert_string_equal(text_at(row, "state"), "Running");
    assert_string_equal(text_at(row, "creationTimestamp"), "2026-01-01T00:00:00Z");
    assert_null(json_get(row, "waiting"));
    assert_int_equal(json_array_count(json_get(row, "losses")), 3);
    const struct json *training = json_get(row, "training");
    assert_int_equal(json_as_integer(json_get(training, "step")), 3);
    assert_float_equal(json_as_number(json_get(training, "goodput")), 0.75, 1e-9);
    assert_null(json_get(row, "series")); /* of the job's own page */
    json_free(row);
    json_free(list);
    page_past_free(&f.past);
}

static void a_job_has_more(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 3);
    f.view.ranks = "[{\"rank\":0}]";
    struct json *job = told(&f, JOB_PATH);
    const struct json *series = json_get(job, "series");
    assert_string_equal(text_at(series, "unit"), "tokensPerSecond");
    assert_int_equal(json_array_count(json_get(series, "step")), 3);
    assert_int_equal(json_array_count(json_get(job, "ranks")), 1);
    assert_true(json_as_number(json_get(json_get(job, "phases"), "forward")) > 0);
    assert_true(json_as_integer(json_get(json_get(json_get(job, "memory"), "all"), "peak")) > 0);
    assert_string_equal(text_at(json_get(job, "run"), "strategy"), "FULL_SHARD");
    auto_free char *timeline = json_print(json_get(job, "timeline"), JSON_COMPACT);
    assert_string_equal(timeline,
                        "[{\"kind\":\"initialization\",\"from\":1767225600,\"to\":1767225601},"
                        "{\"kind\":\"step\",\"from\":1767225601,\"to\":1767225604}]");
    json_free(job);
    assert_null(told(&f, PAGE_JOBS_PATH "/local/other"));
    assert_null(told(&f, PAGE_JOBS_PATH "/local"));
    page_past_free(&f.past);
}

/* A table of so many ranks, of which these two are not like the others. */
static void add_ranks(int count, int hung, int slowest, struct str *out)
{
    str_add(out, "[");
    for (int i = 0; i < count; i++)
        str_printf(out, "%s{\"rank\":%d,\"state\":\"%s\",\"compute_ratio\":%s}", i ? "," : "", i,
                   i == hung ? "hung" : "running", i == slowest ? "1.5" : "1.00");
    str_add(out, "]");
}

static void of_many_ranks_those_that_matter_are_told(void **state)
{
    (void)state;
    static const struct {
        int count, hung, slowest, shown, hidden, first, last;
    } rows[] = {
        {2, 0, 1, 2, 0, 0, 1},        {64, -1, 63, 64, 0, 0, 63},        {65, -1, 64, 64, 1, 0, 64},
        {100, 70, 99, 64, 36, 0, 99}, {1024, 1023, 5, 64, 960, 0, 1023},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct fixture f;
        open_fixture(&f, 1);
        auto_str struct str ranks, text;
        str_init(&ranks, 1 << 20);
        str_init(&text, TRAINING_DETAIL_MAX_BYTES);
        add_ranks(rows[i].count, rows[i].hung, rows[i].slowest, &ranks);
        f.view.ranks = str_text(&ranks);
        page_json_detail(&f.view, &text);
        assert_false(text.truncated);
        struct json *detail = json_parse_text(str_text(&text), JSON_STRICT, NULL);
        const struct json *list = json_get(detail, "ranks");
        bool has_hung = rows[i].hung < 0, has_slowest = false;
        int before = -1;
        assert_int_equal(json_array_count(list), rows[i].shown);
        for (size_t at = 0; at < json_array_count(list); at++) {
            int rank = (int)json_as_integer(json_get(json_at(list, at), "rank"));
            assert_true(rank > before);
            before = rank;
            has_hung = has_hung || rank == rows[i].hung;
            has_slowest = has_slowest || rank == rows[i].slowest;
        }
        assert_true(has_hung && has_slowest);
        assert_int_equal(json_as_integer(json_get(json_at(list, 0), "rank")), rows[i].first);
        assert_int_equal(before, rows[i].last);
        const struct json *hidden = json_get(detail, "ranksHidden");
        assert_int_equal(hidden ? json_as_integer(hidden) : 0, rows[i].hidden);
        assert_non_null(json_get(json_get(detail, "memory"), "all"));
        assert_true(json_as_number(json_get(json_get(detail, "phases"), "forward")) > 0);
        json_free(detail);
        page_past_free(&f.past);
    }
}

/* The first began 100 s before, and had told of 90 s of them. */
static void a_rank_that_starts_again_shows_the_whole_job(void **state)
{
    (void)state;
    struct fixture f;
    auto_str struct str note;
    str_init(&note, PAGE_NOTE_BYTES);
    struct page_past first = {.begin_ms = 0};
    struct time_account account = time_account_open(0);
    time_account_add(&account, TIME_INITIALIZATION, 10000000);
    time_account_add(&account, TIME_STEP, 90000000);
    page_past_begin(&first, "", (INT64_C(1767225600) - 100) * 1000);
    page_past_look(&first, &account);
    page_past_note(&first, &note);
    page_past_free(&first);
    open_fixture_after(&f, str_text(&note), 3);
    struct json *job = told(&f, JOB_PATH);
    assert_string_equal(text_at(job, "creationTimestamp"), "2025-12-31T23:58:20Z");
    assert_string_equal(text_at(job, "startTime"), "2025-12-31T23:58:20Z");
    const struct json *training = json_get(job, "training");
    auto_free char *seconds = json_print(json_get(training, "seconds"), JSON_COMPACT),
                   *timeline = json_print(json_get(job, "timeline"), JSON_COMPACT);
    assert_string_equal(seconds, "{\"initialization\":11.0,\"step\":83.0,\"recovery\":10.0}");
    assert_float_equal(json_as_number(json_get(training, "goodput")), 0.7981, 1e-9); /* 83 / 104 */
    assert_string_equal(timeline,
                        "[{\"kind\":\"initialization\",\"from\":1767225500,\"to\":1767225510},"
                        "{\"kind\":\"step\",\"from\":1767225510,\"to\":1767225590},"
                        "{\"kind\":\"recovery\",\"from\":1767225590,\"to\":1767225600},"
                        "{\"kind\":\"initialization\",\"from\":1767225600,\"to\":1767225601},"
                        "{\"kind\":\"step\",\"from\":1767225601,\"to\":1767225604}]");
    json_free(job);
    page_past_free(&f.past);
}

static void before_the_first_step_little_is_known(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0);
    f.state.facts.job = "";
    f.state.facts.model = "gpt2";
    f.state.facts.pod_namespace = "team";
    struct json *job = told(&f, PAGE_JOBS_PATH "/team/gpt2");
    assert_null(json_get(job, "losses"));
    assert_null(json_get(job, "series"));
    assert_null(json_get(job, "ranks"));
    assert_null(json_get(json_get(job, "training"), "step"));
    json_free(job);
    page_past_free(&f.past);
}

static void who_hangs_stands_in_the_way(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 1);
    f.view.hung_rank = 5;
    struct json *message = told(&f, NULL), *row = json_take_at(json_get(message, "jobs"), 0);
    assert_int_equal(json_as_integer(json_get(message, "version")), 7);
    assert_int_equal(json_as_integer(json_get(message, "after")), 6);
    assert_string_equal(text_at(json_get(row, "waiting"), "reason"), "RankHung");
    assert_non_null(strstr(text_at(json_get(row, "waiting"), "message"), "rank 5 "));
    json_free(row);
    json_free(message);
    page_past_free(&f.past);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_has_the_run),
        cmocka_unit_test(a_job_has_more),
        cmocka_unit_test(of_many_ranks_those_that_matter_are_told),
        cmocka_unit_test(a_rank_that_starts_again_shows_the_whole_job),
        cmocka_unit_test(before_the_first_step_little_is_known),
        cmocka_unit_test(who_hangs_stands_in_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
