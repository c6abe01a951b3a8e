/* `shoal get` against a played API server: what it asks, what it tells, and what it says when that
 * is not to be had. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "cli/get.h"
#include "tests/cli/command.h"

#include <stdlib.h>
#include <string.h>

#define JOBS "/apis/kubeflow.org/v1/namespaces/team/pytorchjobs"
#define JOB                                                                                        \
    "{\"kind\":\"PyTorchJob\",\"metadata\":{\"name\":\"llama-7b\",\"namespace\":\"team\",\"uid\":" \
    "\"u-1\","                                                                                     \
    "\"resourceVersion\":\"7\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"                   \
    "\"spec\":{\"runPolicy\":{\"backoffLimit\":6},\"pytorchReplicaSpecs\":{\"Worker\":"            \
    "{\"replicas\":2,\"template\":{\"spec\":{\"containers\":[{\"name\":\"pytorch\","               \
    "\"image\":\"i\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":8}}}]}}}}},"                    \
    "\"status\":{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\",\"reason\":\"C\","      \
    "\"message\":\"created\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"},"                    \
    "{\"type\":\"Running\",\"status\":\"True\",\"reason\":\"R\",\"message\":\"it "                 \
    "runs\\u001b[31m \\u0085\","                                                                   \
    "\"lastTransitionTime\":\"2026-01-01T00:01:00Z\"}],\"replicaStatuses\":{\"Worker\":"           \
    "{\"active\":1}},\"history\":{\"failures\":1,\"restarts\":1},\"training\":{\"step\":1200,"     \
    "\"steps\":5000,\"loss\":2.25,\"worldSize\":16,\"seconds\":{\"step\":60,\"pending\":20}}}}"
#define PODS                                                                                        \
    "{\"kind\":\"PodList\",\"items\":[{\"metadata\":{\"name\":\"llama-7b-worker-1\",\"namespace\":" \
    "\"team\",\"uid\":\"p1\",\"resourceVersion\":\"1\",\"labels\":"                                 \
    "{\"training.kubeflow.org/replica-type\":\"worker\","                                           \
    "\"training.kubeflow.org/replica-index\":\"1\"}},\"status\":{\"phase\":\"Pending\","            \
    "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"                   \
    "\"Unschedulable\",\"message\":\"no node has 8 GPUs\"}]}},{\"metadata\":{\"name\":"             \
    "\"llama-7b-worker-0\",\"namespace\":\"team\",\"uid\":\"p0\",\"resourceVersion\":\"1\","        \
    "\"labels\":{\"training.kubeflow.org/replica-type\":\"worker\","                                \
    "\"training.kubeflow.org/replica-index\":\"0\"}},\"spec\":{\"nodeName\":\"gpu-7\"},"            \
    "\"status\":{\"phase\":\"Running\"}}]}"
#define EVENTS                                                                                     \
    "{\"kind\":\"EventList\",\"items\":[{\"reason\":\"TrainingStarted\",\"message\":"              \
    "\"trains on 16 ranks\",\"type\":\"Normal\",\"count\":2,"                                      \
    "\"lastTimestamp\":\"2026-01-01T00:02:00Z\"}]}"
#define FORBIDDEN_EVENTS                                                                           \
    {                                                                                              \
        .bytes = API_TEXT("403 Forbidden", "",                                                     \
                          "{\"reason\":\"Forbidden\",\"message\":\"events is forbidden\"}"),       \
        .then = FAKE_CLOSE, .to = "GET /api/v1/namespaces/team/events"                             \
    }

static const struct fake_answer good[] = {
    COMMAND_ANSWER("GET " JOBS "/llama-7b ", JOB),
    COMMAND_ANSWER("GET /api/v1/namespaces/team/pods", PODS),
    COMMAND_ANSWER("GET /api/v1/namespaces/team/events", EVENTS),
};

#define ARGUMENTS(...)                                                                             \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no \"%s\" in: %s", part, text);
}

static void it_tells_the_story(void **state)
{
    struct fake_server *server = fake_server_open(good, array_length(good), NULL);
    command_use_server(*state, fake_server_port(server));
    struct command_result result = command_run_with(get_command, ARGUMENTS("llama-7b"));
    assert_string_equal(result.err, "");
    assert_int_equal(result.code, 0);
    static const char *const parts[] = {
        "llama-7b in namespace team: Running for ",
        "\n  it runs [31m ??\n",
        "step 1200/5000, loss 2.25, 16 ranks\n",
        "  24%\n",
        "2 Worker, 1 active, 16 GPUs\n",
        "1 of 6 that backoffLimit allows\n",
        "\nllama-7b-worker-0  Running  gpu-7         0  ",
        "\nllama-7b-worker-1  Pending  -             0  ",
        "\n    Unschedulable: no node has 8 GPUs\n",
        "goodput 75.0%\n  step                  1m0s  75.0%\n  pending                20s  25.0%\n",
        " ago  R: it runs [31m ??\n",
        " ago  TrainingStarted (2 times): trains on 16 ranks\n",
        "\nNext: kubectl describe pod -n team llama-7b-worker-1\n",
    };
    for (size_t i = 0; i < array_length(parts); i++)
        contains(result.out, parts[i]);
    for (const char *c = result.out; *c; c++)
        assert_true(*c == '\n' || (unsigned char)*c >= ' ');
    command_forget(&result);

    auto_free char *first = fake_server_request(server, 0);
    contains(first, "GET " JOBS "/llama-7b HTTP/1.1\r\n");
    contains(first, "\r\nAuthorization: Bearer mine\r\n");
    auto_free char *pods = fake_server_request(server, 1);
    contains(pods, "?labelSelector=training.kubeflow.org%2Fjob-name%3Dllama-7b&limit=500 ");
    auto_free char *events = fake_server_request(server, 2);
    contains(events, "involvedObject.uid%3Du-1&limit=500 ");
    fake_server_close(server);
}

static void it_is_json_for_programs(void **state)
{
    struct fake_server *server = fake_server_open(good, array_length(good), NULL);
    command_use_server(*state, fake_server_port(server));
    struct command_result result = command_run_with(get_command, ARGUMENTS("--json", "llama-7b"));
    assert_int_equal(result.code, 0);
    struct error err;
    struct json *value = json_parse_text(result.out, JSON_STRICT, &err);
    assert_non_null(value);
    const struct json *job = json_get(value, "job");
    assert_string_equal(json_as_text(json_get(job, "state")), "Running");
    assert_int_equal(json_as_integer(json_get(job, "gpus")), 16);
    assert_int_equal(json_as_integer(json_get(json_get(job, "training"), "step")), 1200);
    assert_true(
        json_as_number(json_get(json_get(json_get(job, "training"), "seconds"), "pending")) > 19.9);
    assert_string_equal(json_as_text(json_get(json_at(json_get(value, "replicas"), 1), "reason")),
                        "Unschedulable");
    assert_int_equal(json_as_integer(json_get(json_at(json_get(value, "events"), 0), "count")), 2);
    json_free(value);
    command_forget(&result);
    fake_server_close(server);
}

static void what_may_not_be_read_is_said(void **state)
{
    const struct fake_answer answers[] = {good[0], good[1], FORBIDDEN_EVENTS};
    struct fake_server *server = fake_server_open(answers, array_length(answers), NULL);
    command_use_server(*state, fake_server_port(server));
    struct command_result result = command_run_with(get_command, ARGUMENTS("llama-7b"));
    assert_int_equal(result.code, 0);
    contains(result.out, "Its events are not shown: GET /api/v1/namespaces/team/events: events is "
                         "forbidden (403 Forbidden)\n");
    contains(result.out, "llama-7b-worker-0");
    command_forget(&result);
    fake_server_close(server);
}

/* ---- what goes wrong ---- */

struct refusal {
    struct fake_answer answers[2]; /* to the job; to the list */
    int code;
    const char *parts[3];
};

#define TO_JOB(status, body)                                                                       \
    {                                                                                              \
        .bytes = API_TEXT(status, "", body), .then = FAKE_CLOSE, .to = "GET " JOBS "/lama-7b "     \
    }
#define TO_LIST(status, body)                                                                      \
    {                                                                                              \
        .bytes = API_TEXT(status, "", body), .then = FAKE_CLOSE, .to = "GET " JOBS "?"             \
    }
#define NOT_FOUND "{\"reason\":\"NotFound\",\"message\":\"not there\"}"

static const struct refusal refusals[] = {
    {{TO_JOB("401 Unauthorized", "{\"reason\":\"Unauthorized\",\"message\":\"Unauthorized\"}")},
     2,
     {"shoal get: GET " JOBS "/lama-7b: Unauthorized (401 Unauthorized)\n",
      "shoal get: the API server does not take this login: log in again"}},
    {{TO_JOB("403 Forbidden", "{\"reason\":\"Forbidden\",\"message\":\"you cannot get "
                              "resource\"}")},
     2,
     {"you cannot get resource (403 Forbidden)\n",
      "ask for the role shoal-view or view in namespace team",
      "can-i list pytorchjobs.kubeflow.org -n team`"}},
    {{TO_JOB("404 Not Found", NOT_FOUND), TO_LIST("404 Not Found", NOT_FOUND)},
     2,
     {"not there (404 NotFound)\n", " serves no PyTorchJobs: install Shoal there"}},
    {{TO_JOB("404 Not Found", NOT_FOUND), TO_LIST("200 OK", "{\"items\":[" JOB "]}")},
     2,
     {"shoal get: no PyTorchJob lama-7b (the nearest is llama-7b) in namespace team, which has 1; `shoal "
      "top` lists all, -n names another namespace\n"}},
    {{TO_JOB("200 OK", "<html>")}, 2, {"the answer is no JSON object: <html> (line 1, column 1: "}},
    {{TO_JOB("500 Internal Server Error", "{\"message\":\"etcd is away\"}")},
     1,
     {"etcd is away (500); gave up after ", "no usable answer from http://127.0.0.1:"}},
};

static void each_refusal_says_what_to_do(void **state)
{
    for (size_t i = 0; i < array_length(refusals); i++) {
        size_t count = refusals[i].answers[1].bytes ? 2 : 1;
        struct fake_server *server = fake_server_open(refusals[i].answers, count, NULL);
        command_use_server(*state, fake_server_port(server));
        struct command_result result = command_run_with(get_command, ARGUMENTS("lama-7b"));
        assert_int_equal(result.code, refusals[i].code);
        assert_string_equal(result.out, "");
        for (size_t k = 0; k < array_length(refusals[i].parts) && refusals[i].parts[k]; k++)
            contains(result.err, refusals[i].parts[k]);
        command_forget(&result);
        fake_server_close(server);
    }
}

static void no_way_to_a_cluster(void **state)
{
    struct fake_server *server = fake_server_open(good, array_length(good), NULL);
    int port = fake_server_port(server);
    fake_server_close(server);

    struct command_result result = command_run_with(get_command, ARGUMENTS("llama-7b"));
    assert_int_equal(result.code, 2);
    contains(result.err, "shoal get: no way to a cluster: KUBECONFIG is not set");
    contains(result.err,
             "\nshoal get: name a kubeconfig with --kubeconfig FILE or KUBECONFIG, or look "
             "at the jobs of this machine with --local\n");
    command_forget(&result);

    command_use_server(*state, port); /* where nobody listens any more */
    result = command_run_with(get_command, ARGUMENTS("llama-7b"));
    assert_int_equal(result.code, 1);
    contains(result.err, "; gave up after ");
    contains(result.err, "is that the cluster, and is it up?");
    command_forget(&result);

    result = command_run_with(get_command, ARGUMENTS("llama-7b", "--context", "y"));
    assert_int_equal(result.code, 2);
    contains(result.err, "/config: no context \"y\" in it\nshoal get: `kubectl config "
                         "get-contexts` lists what --context can name\n");
    command_forget(&result);

    command_write(*state, "config", "contexts: [\n");
    result = command_run_with(get_command, ARGUMENTS("llama-7b"));
    assert_int_equal(result.code, 2);
    contains(result.err, "/config:2:1: ");
    command_forget(&result);
}

static void a_command_line_is_checked_first(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[4], *said;
    } rows[] = {
        {{NULL}, "shoal get: no job: name one job; `shoal top` lists all\n"},
        {{"a", "b"}, "shoal get: several jobs: name one job; `shoal top` lists all\n"},
        {{""}, "shoal get: the job's name must not be empty\n"},
        {{"ns/a"}, "shoal get: ns/a: name the job alone, as a; -n names its namespace\n"},
        {{"llm/"}, "shoal get: llm/: name the job alone; -n names its namespace\n"},
        {{"pytorchjob/a", "--local"}, "shoal get: pytorchjob/a: name the job alone, as a\n"},
        {{"a", "-n", ""}, "shoal get: --namespace: must not be empty\n"},
        {{"--local"}, "shoal get: no job: name one job; `shoal top --local` lists all\n"},
        {{"--local", "a", "--context=c"},
         "shoal get: --local is of no cluster: drop --context and --kubeconfig\n"},
        {{"a", "--frob"}, "shoal get: unknown option --frob; there are --namespace"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct command_result result = command_run_with(get_command, rows[i].arguments);
        assert_int_equal(result.code, 2);
        assert_string_equal(result.out, "");
        contains(result.err, rows[i].said);
        command_forget(&result);
    }
    struct command_result help = command_run_with(get_command, ARGUMENTS("--help"));
    assert_int_equal(help.code, 0);
    contains(help.out, "Usage: shoal get JOB [OPTION...]\n");
    command_forget(&help);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, command_enter, command_leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(it_tells_the_story),           IN_DIRECTORY(it_is_json_for_programs),
        IN_DIRECTORY(what_may_not_be_read_is_said), IN_DIRECTORY(each_refusal_says_what_to_do),
        IN_DIRECTORY(no_way_to_a_cluster),          IN_DIRECTORY(a_command_line_is_checked_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
