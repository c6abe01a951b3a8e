/* What the live page shows of a run's inside: who looks makes that it is asked for, and what a pod
 * may answer. */
#include "operator/board/board.h"
#include "operator/board/detail_view.h"

#include "base/contract.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/page.h"
#include "tests/operator/board/board_fixture.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#define RANK "{\"rank\":1,\"pod\":\"llm-worker-0\",\"state\":\"running\",\"compute_ratio\":1.5}"

static void expect_look(struct board *b, const char *key)
{
    auto_free char *looked_at = board_looked_at(b);
    if (key)
        assert_string_equal(looked_at, key);
    else
        assert_null(looked_at);
}

static void tell_detail(struct board *b, const char *key, const char *text)
{
    board_detail(b, key, text, strlen(text));
}

/* Who looks at a job makes that its details are asked for, and sees them while they are new. */
static void details_are_for_who_looks(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS;
    struct board *b = board_open(&board_clocks);
    struct board_heard m = {.count = 0};
    struct board_world w;
    board_make_job(&w, "llm");
    board_tell(b, &w);
    board_send(b, true, board_keep, &m);
    board_heard_forget(&m);
    json_free(board_read(b, PAGE_JOBS_PATH));
    expect_look(b, NULL);
    for (int i = 0; i < 3; i++) { /* the page asks often, and nobody has answered yet */
        struct json *one = board_read(b, PAGE_JOBS_PATH "/ns/llm");
        assert_null(board_at(one, "ranks"));
        json_free(one);
    }
    expect_look(b, "ns/llm");
    expect_look(b, NULL);
    tell_detail(b, "ns/llm",
                "{\"ranks\":[" RANK "],\"ranksHidden\":7,\"phases\":{\"forward\":1.25},"
                "\"memory\":{\"all\":{\"current\":1,\"peak\":2}},\"run\":{\"model\":\"gpt2\"}}");
    board_send(b, true, board_keep, &m); /* whose page shows it asks again */
    board_expect(m.list[0], "jobs.0.name", "\"llm\"");
    assert_null(board_at(m.list[0], "jobs.0.ranks"));
    board_heard_forget(&m);
    struct json *one = board_read(b, PAGE_JOBS_PATH "/ns/llm");
    board_expect(one, "ranks", "[" RANK "]");
    board_expect(one, "ranksHidden", "7");
    board_expect(one, "phases.forward", "1.25");
    board_expect(one, "memory.all.peak", "2");
    board_expect(one, "run.model", "\"gpt2\"");
    json_free(one);
    expect_look(b, NULL);
    board_now_ms += BOARD_DETAIL_EVERY_MS;
    json_free(board_read(b, PAGE_JOBS_PATH "/ns/llm"));
    expect_look(b, "ns/llm");
    board_now_ms += BOARD_DETAIL_KEPT_MS; /* nobody answers any more */
    one = board_read(b, PAGE_JOBS_PATH "/ns/llm");
    assert_null(board_at(one, "ranks"));
    json_free(one);
    expect_look(b, "ns/llm");
    tell_detail(b, "ns/gone", "{\"ranks\":[]}");
    w.status.completion_ms = BOARD_NOW_MS;
    board_tell(b, &w);
    board_now_ms += BOARD_DETAIL_KEPT_MS;
    json_free(board_read(b, PAGE_JOBS_PATH "/ns/llm"));
    expect_look(b, NULL); /* nobody is there to be asked */
    board_close(b);
}

/* A pod may answer anything: what is shown has an end, and texts stay texts. */
static void details_are_what_the_page_knows(void **state)
{
    (void)state;
    static const struct {
        const char *told, *shown; /* of `shown` the members; NULL: nothing */
    } rows[] = {
        {"", NULL},
        {"<html>", NULL},
        {"[]", NULL},
        {"{}", NULL},
        {"{\"name\":\"other\",\"message\":\"evil\",\"pods\":[]}", NULL},
        {"{\"ranks\":7,\"phases\":[],\"memory\":\"\",\"run\":null}", NULL},
        {"{\"ranks\":[]}", "{\"ranks\":[]}"},
        {"{\"ranks\":[7,{\"rank\":\"0\",\"env\":\"TOKEN\",\"pod\":\"<b>\"}],\"ranksHidden\":-1}",
         "{\"ranks\":[{},{\"pod\":\"<b>\"}]}"},
        {"{\"phases\":{\"forward\":\"1\",\"backward\":2,"
         "\"a-name-that-is-longer-than-any-of-an-agent\":1}}",
         "{\"phases\":{\"backward\":2.0}}"},
        {"{\"memory\":{\"all\":1,\"shard\":{\"peak\":3,\"current\":\"x\",\"more\":1}}}",
         "{\"memory\":{\"shard\":{\"peak\":3}}}"},
        {"{\"run\":{\"model\":\"m\",\"parameters\":5,\"env\":\"TOKEN\"}}",
         "{\"run\":{\"model\":\"m\",\"parameters\":5}}"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct json *view = detail_view(rows[i].told, strlen(rows[i].told));
        auto_free char *text = view ? json_print(view, JSON_COMPACT) : NULL;
        if (!text != !rows[i].shown || (text && strcmp(text, rows[i].shown) != 0))
            fail_msg("row %zu: %s", i, text ? text : "nothing");
        json_free(view);
    }
    auto_str struct str huge;
    str_init(&huge, TRAINING_DETAIL_MAX_BYTES);
    str_add(&huge, "{\"ranks\":[{}");
    for (int i = 1; i < 100; i++)
        str_add(&huge, ",{}");
    str_add(&huge, "],\"ranksHidden\":5,\"phases\":{\"p\":1");
    for (int i = 1; i < 100; i++)
        str_printf(&huge, ",\"p%d\":1", i);
    str_add(&huge, "},\"run\":{\"model\":\"");
    for (int i = 0; i < 1000; i++)
        str_add(&huge, "m");
    str_add(&huge, "\"}}");
    struct json *view = detail_view(str_text(&huge), huge.length);
    assert_int_equal(json_array_count(board_at(view, "ranks")), PAGE_RANKS_MAX);
    board_expect(view, "ranksHidden", "41");
    assert_int_equal(json_object_count(board_at(view, "phases")), DETAIL_VIEW_NAMES_MAX);
    assert_int_equal(strlen(json_as_text(board_at(view, "run.model"))), DETAIL_VIEW_TEXT_BYTES);
    json_free(view);
}

/* Whoever looks at many jobs sees the details of the last ones, and no more are kept. */
static void details_of_a_few_jobs_are_kept(void **state)
{
    (void)state;
    board_now_ms = BOARD_NOW_MS;
    struct board *b = board_open(&board_clocks);
    int shown = 0, looks = 0;
    for (int i = 0; i < 3 * BOARD_DETAILS_MAX; i++) {
        struct board_world w;
        auto_free char *name = xasprintf("job-%d", i), *key = xasprintf("ns/job-%d", i),
                       *path = xasprintf(PAGE_JOBS_PATH "/ns/job-%d", i);
        board_make_job(&w, name);
        board_tell(b, &w);
        json_free(board_read(b, path));
        board_now_ms++;
        tell_detail(b, key, "{\"ranks\":[]}");
    }
    for (char *key; (key = board_looked_at(b)); free(key))
        looks++;
    assert_int_equal(looks, BOARD_DETAILS_MAX);
    for (int i = 0; i < 3 * BOARD_DETAILS_MAX; i++) {
        auto_free char *path = xasprintf(PAGE_JOBS_PATH "/ns/job-%d", i);
        struct json *one = board_read(b, path);
        shown += board_at(one, "ranks") != NULL;
        assert_true(i < 2 * BOARD_DETAILS_MAX || board_at(one, "ranks"));
        json_free(one);
    }
    assert_int_equal(shown, BOARD_DETAILS_MAX);
    board_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(details_are_for_who_looks),
        cmocka_unit_test(details_are_what_the_page_knows),
        cmocka_unit_test(details_of_a_few_jobs_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
