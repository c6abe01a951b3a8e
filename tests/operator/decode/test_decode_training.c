/* What a pod says of its training, which may be anything. */
#include "operator/decode/decode_training.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/operator/decode/decode_fixture.h"
#include "tests/support.h"

#include <string.h>

#define OURS "\"worldSize\":2,\"lastProgressTime\":\"2026-01-01T00:00:00Z\""

/* An agent's, whatever else they hold; `known`: of a few fields, those that are. */
static const struct {
    const char *text, *known;
} agents[] = {
    {"{" OURS "}", ""},
    {"{" OURS ",\"step\":3,\"loss\":2.5,\"steps\":10}\n", "step steps loss "},
    {"{" OURS ",\"step\":-3,\"loss\":null,\"steps\":1.5}", ""},
    {"{" OURS ",\"step\":\"3\",\"loss\":\"NaN\",\"steps\":true}", ""},
    {"{" OURS ",\"step\":9223372036854775808,\"loss\":1e300,\"steps\":{}}", ""},
    {"{" OURS ",\"step\":3e0,\"loss\":1e31,\"steps\":[1]}", ""},
    {"{" OURS ",\"loss\":-1,\"more\":{\"step\":7}}", "loss "},
};

static const char *const strangers[] = {
    "",
    "{}",
    "[]",
    "{" OURS ",\"loss\":1e999}",
    "null",
    "7",
    "\"\"",
    "<html>",
    "{\"worldSize\":2}",
    "ok\n",
    "{\"worldSize\":0,\"lastProgressTime\":\"2026-01-01T00:00:00Z\"}",
    "{\"worldSize\":2,\"lastProgressTime\":\"yesterday\"}",
    "{\"worldSize\":2,\"lastProgressTime\":\"1970-01-01T00:00:00Z\"}",
    "{\"worldSize\":2,\"lastProgressTime\":1}",
    "{" OURS,
    "{" OURS "}}",
    "{" OURS ",\"x\":\"\xff\"}",
    "{" OURS ",\"worldSize\":3}",
};

/* Words that an event could not have are left out, as are numbers that are none. */
static void the_last_hang_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *hang;
        int64_t rank, collective;
        const char *pod, *phase, *unit;
    } rows[] = {
        {"{\"rank\":3,\"step\":7,\"time\":\"2026-01-01T00:00:09Z\",\"phase\":\"first step\","
         "\"pod\":\"j-worker-1\",\"collective\":9,\"op\":\"all_gather\",\"unit\":\"layers.3\"}",
         3, 9, "j-worker-1", "first step", "layers.3"},
        {"{\"rank\":-3,\"time\":7,\"phase\":{},\"pod\":\"a\\nb\",\"collective\":\"9\","
         "\"unit\":\"<script>\"}",
         -1, -1, "", "", ""},
        {"[]", -1, -1, "", "", ""},
        {"{\"rank\":0,\"pod\":\"a-name-that-is-longer-than-what-there-is-room-for-in-a-word-of-"
         "this-kind\"}",
         0, -1, "", "", ""},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct training t;
        struct error err;
        auto_free char *text = xasprintf("{" OURS ",\"lastHang\":%s}", rows[i].hang);
        assert_ok(decode_training_told(text, strlen(text), &t, &err), &err);
        assert_int_equal(t.hang_rank, rows[i].rank);
        assert_int_equal(t.hang_collective, rows[i].collective);
        assert_int_equal(t.hang_ms != 0, i == 0);
        assert_string_equal(t.hang.pod, rows[i].pod);
        assert_string_equal(t.hang.phase, rows[i].phase);
        assert_string_equal(t.hang.unit, rows[i].unit);
    }
}

static void numbers_are_read_and_nothing_else(void **state)
{
    (void)state;
    static const char *const names[] = {"step", "steps", "loss"};
    for (size_t i = 0; i < array_length(agents); i++) {
        struct training t;
        struct error err;
        char known[64] = "";
        assert_ok(decode_training_told(agents[i].text, strlen(agents[i].text), &t, &err), &err);
        for (size_t k = 0; k < array_length(names); k++)
            for (const struct training_field *field = training_fields; field->name; field++)
                if (strcmp(field->name, names[k]) == 0 && training_has(&t, field))
                    strcat(strcat(known, names[k]), " ");
        assert_string_equal(known, agents[i].known);
        assert_int_equal(t.world_size, 2);
    }
}

/* At an address that pods on the node's network share. */
static void another_runs_answer_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_ours;
    } rows[] = {
        /* printf 'shoal run\nu' | sha256sum */
        {"{\"runDigest\":\"2c8e8176674a75826a2ceb48d16fb2ae\"," OURS "}", true},
        {"{" OURS "}", true}, /* an older agent */
        {"{\"runDigest\":\"u\"," OURS "}", false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct training t;
        struct error err;
        int result = decode_training_answer(rows[i].text, strlen(rows[i].text), "u", &t, &err);
        if (rows[i].is_ours)
            assert_ok(result, &err);
        else
            assert_fails(result, &err, ERR_CONFLICT, "another run's");
    }
}

static void what_is_none_is_refused(void **state)
{
    (void)state;
    struct training t;
    struct error err;
    for (size_t i = 0; i < array_length(strangers); i++) {
        if (decode_training_told(strangers[i], strlen(strangers[i]), &t, &err) == 0)
            fail_msg("taken: %s", strangers[i]);
        assert_int_equal(err.code, ERR_INPUT);
    }
    auto_str struct str huge;
    str_init(&huge, 1 << 20);
    str_add(&huge, "{" OURS ",\"x\":\"");
    while (huge.length <= TRAINING_MAX_BYTES)
        str_add(&huge, "xxxxxxxxxxxxxxxx");
    str_add(&huge, "\"}");
    assert_int_equal(decode_training_told(str_text(&huge), huge.length, &t, &err), -1);
    str_clear(&huge);
    for (int i = 0; i < 1000; i++)
        str_add(&huge, "[[");
    assert_int_equal(decode_training_told(str_text(&huge), huge.length, &t, &err), -1);
}

/* How replicas 0 are asked, and what they left behind. */
static void what_tells_of_the_training_is_kept(void **state)
{
    (void)state;
#define ENDS(message)                                                                              \
    "containerStatuses: [{name: side, state: {terminated: {exitCode: 0, message: its}}}, "         \
    "{name: pytorch, " message "}]"
#define SPACES_32  "                                "
#define SPACES_256 SPACES_32 SPACES_32 SPACES_32 SPACES_32 SPACES_32 SPACES_32 SPACES_32 SPACES_32
#define SPACES     SPACES_256 SPACES_256 SPACES_256 SPACES_256
#define NUMBERS(step)                                                                              \
    "{\"worldSize\":1,\"lastProgressTime\":\"2026-01-01T00:00:00Z\",\"step\":" step "}"
    static const struct {
        const char *name, *spec, *status, *address;
        int32_t port;
        const char *last_line;
    } training_rows[] = {
        {"j-worker-0", "", "podIP: 10.0.0.7", "10.0.0.7", 9401, NULL},
        {"j-worker-0", "", "podIP: ''", NULL, 9401, NULL},
        {"j-worker-1", "",
         "podIP: 10.0.0.7, " ENDS("state: {terminated: {exitCode: 0, message: x}}"), NULL, 0, NULL},
        {"j-worker-0",
         "{name: side, ports: [{name: metrics, containerPort: 1}]}, {name: pytorch, ports: [{name: "
         "http, containerPort: 2}, {name: metrics, containerPort: 3}]}",
         "podIP: 'fd00::7'", "fd00::7", 3, NULL},
        {"j-worker-0", "{name: pytorch, ports: [{name: metrics, containerPort: 70000}]}",
         "podIP: 10.0.0.7", NULL, 0, NULL}, /* malformed: nothing is known of it */
        {"j-worker-0", "",
         ENDS("state: {terminated: {exitCode: 0, message: 'a\n\n" NUMBERS("1") "\n\n'}}"), NULL,
         9401, NUMBERS("1")},
        {"j-worker-0", "",
         ENDS("lastState: {terminated: {exitCode: 1, message: '" NUMBERS("1") "'}}"), NULL, 9401,
         NUMBERS("1")},
        {"j-worker-0", "",
         ENDS("state: {terminated: {exitCode: 1, message: '" NUMBERS(
             "2") "'}}, lastState: "
                  "{terminated: {exitCode: 1, message: '" NUMBERS("1") "'}}"),
         NULL, 9401, NUMBERS("2")},
        {"j-worker-0", "", ENDS("state: {terminated: {exitCode: 0, message: \"\n\"}}"), NULL, 9401,
         NULL},
        /* of any other program */
        {"j-worker-0", "", ENDS("state: {terminated: {exitCode: 0, message: Error}}"), NULL, 9401,
         NULL},
        {"j-worker-0", "", ENDS("state: {terminated: {exitCode: 0, message: '{}'}}"), NULL, 9401,
         NULL},
        {"j-worker-0", "",
         ENDS("state: {terminated: {exitCode: 0, message: '" NUMBERS(SPACES "1") "'}}"), NULL, 9401,
         NULL},
    };
    for (size_t i = 0; i < array_length(training_rows); i++) {
        struct reading r;
        auto_free char *text = xasprintf(
            "{metadata: {name: %s, namespace: ns, uid: u, resourceVersion: '7', labels: "
            "{training.kubeflow.org/replica-type: worker, training.kubeflow.org/replica-index: "
            "'%c'}}, spec: {containers: [%s]}, status: {%s}}",
            training_rows[i].name, training_rows[i].name[9], training_rows[i].spec,
            training_rows[i].status);
        open_reading(&r, text);
        struct pod pod = decode_pod(r.object, &r.identity, r.arena, &r.problems);
        const char *texts[][2] = {{pod.address, training_rows[i].address},
                                  {pod.last_line, training_rows[i].last_line}};
        for (size_t k = 0; k < array_length(texts); k++)
            assert_string_equal(texts[k][0] ? texts[k][0] : "-", texts[k][1] ? texts[k][1] : "-");
        assert_int_equal(pod.training_port, training_rows[i].port);
        close_reading(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_hang_is_read),
        cmocka_unit_test(numbers_are_read_and_nothing_else),
        cmocka_unit_test(another_runs_answer_is_refused),
        cmocka_unit_test(what_is_none_is_refused),
        cmocka_unit_test(what_tells_of_the_training_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
