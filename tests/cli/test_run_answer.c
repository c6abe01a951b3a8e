/* What a `shoal run` answers and what is read of it: the same, and nothing that moves a cursor. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "cli/inbox.h"
#include "cli/run_answer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NOW_MS INT64_C(1767225600000)

static const struct job job = {
    .name = "tiny",
    .namespace_ = "default",
    .uid = "u",
    .created_ms = NOW_MS - 60000,
    .replicas = {{.present = true, .replicas = {true, 1}},
                 {.present = true, .replicas = {true, 2}}},
};
static const struct job_status status;

static const struct pod_facts pods[] = {
    {.name = "tiny-worker-1",
     .node = "here",
     .state = "Running",
     .type = REPLICA_WORKER,
     .index = 1,
     .reason = "CrashLoopBackOff",
     .message = "starts again after exit code 3",
     .restarts = 2,
     .created_ms = NOW_MS - 3000,
     .is_stuck = true,
     .has_failed = true,
     .has_run = true,
     .log = "/tmp/a b.log"},
    {.name = "tiny-master-0",
     .node = "here",
     .state = "Pending",
     .type = REPLICA_MASTER,
     .reason = "",
     .message = ""},
};

static struct json *an_answer(const struct pod_facts *list, size_t count, const char *page)
{
    auto_free struct local_events *events = xcalloc(1, sizeof *events);
    local_events_add(events, NOW_MS - 2000, EVENT_WARNING, "ExitedWithCode", "code 3");
    local_events_add(events, NOW_MS - 1000, EVENT_WARNING, "ExitedWithCode", "code 3");
    const struct run_answer answer = {.job = &job,
                                      .status = &status,
                                      .pods = list,
                                      .pod_count = count,
                                      .events = events,
                                      .page = page};
    return run_answer_make(&answer);
}

static void what_is_told_is_read(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct json *answer = an_answer(pods, array_length(pods), "http://127.0.0.1:9401/");
    struct job_facts facts;
    struct story story;
    assert_int_equal(run_answer_began_ms(answer), NOW_MS - 60000);
    run_answer_read(answer, NOW_MS, arena, &facts, &story);
    json_free(answer);
    assert_ptr_equal(story.job, &facts);
    assert_string_equal(facts.name, "tiny");
    assert_int_equal(facts.replicas[REPLICA_WORKER], 2);
    assert_true(story.is_local);
    assert_string_equal(story.page, "http://127.0.0.1:9401/");
    assert_null(story.pods_missing);
    assert_int_equal(story.pod_count, 2); /* in the order of their ranks */
    const struct pod_facts *master = &story.pods[0], *worker = &story.pods[1];
    assert_string_equal(master->name, "tiny-master-0");
    assert_true(!master->is_stuck && !master->has_failed && !master->has_run && !master->log);
    assert_string_equal(worker->name, pods[0].name);
    assert_string_equal(worker->node, pods[0].node);
    assert_string_equal(worker->state, pods[0].state);
    assert_int_equal(worker->type, REPLICA_WORKER);
    assert_int_equal(worker->index, 1);
    assert_string_equal(worker->reason, pods[0].reason);
    assert_string_equal(worker->message, pods[0].message);
    assert_int_equal(worker->restarts, 2);
    assert_int_equal(worker->created_ms, NOW_MS - 3000);
    assert_true(worker->is_stuck && worker->has_failed && worker->has_run);
    assert_string_equal(worker->log, "/tmp/a b.log");
    assert_int_equal(story.event_count, 1);
    assert_string_equal(story.events[0].type, "Warning");
    assert_string_equal(story.events[0].reason, "ExitedWithCode");
    assert_int_equal(story.events[0].count, 2);
    assert_int_equal(story.events[0].time_ms, NOW_MS - 1000);
}

static void odd_answers_move_no_cursor(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    struct error err;
    struct json *answer = json_parse_text(
        "{\"job\":{\"metadata\":{\"name\":\"a\\u001b[2J\"}},\"page\":\"\\u001b]0;x\",\"events\":7,"
        "\"pods\":[{\"name\":\"p\\n\",\"state\":\"\\u202e\",\"log\":\"\\u001b[A\",\"index\":-5,"
        "\"type\":9,\"restarts\":\"x\"},7]}",
        JSON_STRICT, &err);
    struct job_facts facts;
    struct story story;
    run_answer_read(answer, NOW_MS, arena, &facts, &story);
    json_free(answer);
    assert_string_equal(facts.name, "a [2J");
    assert_string_equal(story.page, " ]0;x");
    assert_int_equal(story.event_count, 0);
    assert_int_equal(story.pod_count, 2);
    for (size_t i = 0; i < story.pod_count; i++) {
        assert_true(story.pods[i].index == 0 && story.pods[i].type == REPLICA_MASTER);
        assert_null(strpbrk(story.pods[i].name, "\n\033"));
        assert_null(strpbrk(story.pods[i].state, "\xe2\n"));
    }
}

/* ---- on the way: an answer has an end ---- */

enum { MANY = 4000 };

static void too_many_replicas_are_left_out(void **state)
{
    (void)state;
    auto_arena struct arena *arena = arena_open();
    setenv("XDG_RUNTIME_DIR", *state, 1);
    struct inbox inbox;
    struct error err;
    assert_ok(inbox_open(&inbox, &err), &err);
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un any = {.sun_family = AF_UNIX}, address = {.sun_family = AF_UNIX};
    assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof any.sun_family), 0);
    memcpy(address.sun_path, inbox.path, sizeof inbox.path);
    struct pod_facts *many = arena_array(arena, struct pod_facts, MANY);
    for (int i = 0; i < MANY; i++)
        many[i] = pods[0];
    auto_free char *text = xcalloc(1, INBOX_ANSWER_MAX_BYTES + 1);
    struct reports reports = {0};
    static const size_t counts[] = {2, MANY};
    for (size_t i = 0; i < array_length(counts); i++) {
        static const char question[] = "{\"" INBOX_ASK "\":\"0123456789abcdef\"}";
        assert_true(sendto(fd, question, sizeof question - 1, 0, (struct sockaddr *)&address,
                           sizeof address) > 0);
        inbox_read(&inbox, &reports);
        inbox_answer(&inbox, an_answer(many, counts[i], ""));
        ssize_t count = recv(fd, text, INBOX_ANSWER_MAX_BYTES, MSG_DONTWAIT);
        assert_true(count > 0);
        struct json *answer = json_parse(text, (size_t)count, JSON_STRICT, &err);
        struct job_facts facts;
        struct story story;
        run_answer_read(answer, NOW_MS, arena, &facts, &story);
        assert_string_equal(json_as_text(json_get(answer, INBOX_ASK)), "0123456789abcdef");
        json_free(answer);
        assert_int_equal(story.pod_count, i == 0 ? 2 : 0);
        assert_true((story.pods_missing != NULL) == (i == 1));
        assert_null(story.page);
    }
    inbox_close(&inbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_read),
        cmocka_unit_test(odd_answers_move_no_cursor),
        cmocka_unit_test_setup_teardown(too_many_replicas_are_left_out, support_enter_dir,
                                        support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
