/* The status of pods as an API server sends it, and what is left of it. */
#include "tests/support.h"

#include "base/json.h"
#include "base/json_lenient.h"
#include "base/lines.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/operator/cache/objects.h"
#include "tests/operator/decode/decode_fixture.h"

#include <string.h>

#define ENDED(code, at) "state: {terminated: {exitCode: " code ", finishedAt: '" at "'}}"
#define LAST_END(code, reason, at)                                                                 \
    "lastState: {terminated: {exitCode: " code ", reason: " reason ", finishedAt: '" at "'}}"
#define NOON    "1970-01-01T12:00:00Z"
#define NOON_10 "1970-01-01T12:00:10Z"
#define DELETED "deletionTimestamp: '1970-01-01T12:00:30Z', deletionGracePeriodSeconds: 30"

struct row {
    const char *metadata; /* more of it */
    const char *status;
    /* phase, restarts, [created@SECONDS], [last CONTAINER CODE REASON], [exit CODE@SECONDS],
     * [deleted@SECONDS+GRACE], [disrupted [in vain]], [lost@SECONDS], [waits: REASON (MESSAGE)] */
    const char *expected;
};

static const struct row rows[] = {
    {"", "{}", "Pending 0"},
    {"", "null", "Pending 0"},
    {"", "{phase: Pending}", "Pending 0"},
    {"",
     "{phase: Running, containerStatuses: [{name: pytorch, restartCount: 2, state: {running: {}}}]}",
     "Running 2"},
    /* all containers restart, init containers too */
    {"",
     "{phase: Running, initContainerStatuses: [{name: mine, restartCount: 1, " ENDED(
         "0", NOON) "}], containerStatuses: [{name: side, restartCount: 4}, {name: pytorch, "
                    "restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: "
                    "{terminated: {exitCode: 1}}}]}",
     "Running 8 last pytorch 1 waits: CrashLoopBackOff ()"},
    /* container pytorch decides */
    {"",
     "{phase: Running, containerStatuses: [{name: side, " ENDED("3", NOON) "}, {name: pytorch}]}",
     "Running 1 last side 3"},
    {"",
     "{phase: Running, containerStatuses: [{name: side}, {name: pytorch, " ENDED("3", NOON) "}]}",
     "Running 1 last pytorch 3 exit 3@43200"},
    {"", "{phase: Succeeded, containerStatuses: [{name: pytorch, " ENDED("0", NOON_10) "}]}",
     "Succeeded 0 exit 0@43210"},
    {"", "{phase: Failed, containerStatuses: [{name: pytorch, " ENDED("137", NOON) "}]}",
     "Failed 0 last pytorch 137 exit 137@43200"},
    {"", "{phase: Unknown}", "Unknown 0"},
    {"creationTimestamp: '" NOON "'", "{}", "Pending 0 created@43200"},
    /* deletion was asked for a grace period before its timestamp */
    {DELETED, "{phase: Running}", "Running 0 deleted@43200+30"},
    {"deletionTimestamp: '" NOON "'", "{phase: Running}", "Running 0 deleted@43200+0"},
    /* nobody saw this end: then it was the deletion's */
    {DELETED,
     "{phase: Failed, containerStatuses: [{name: pytorch, state: {terminated: {exitCode: "
     "137, reason: ContainerStatusUnknown, startedAt: null, finishedAt: null}}}]}",
     "Failed 0 last pytorch 137 ContainerStatusUnknown exit 137@43200 deleted@43200+30"},
    {"",
     "{phase: Failed, reason: Evicted, message: no memory, containerStatuses: [{name: pytorch, state: "
     "{terminated: {exitCode: 137, reason: ContainerStatusUnknown, startedAt: null, finishedAt: null}}}]}",
     "Failed 0 last pytorch 137 ContainerStatusUnknown exit 137@0 disrupted waits: Evicted (no memory)"},
    /* ended by the system */
    {"", "{phase: Failed, reason: Evicted, message: no memory}",
     "Failed 0 disrupted waits: Evicted (no memory)"},
    {"",
     "{phase: Failed, reason: Evicted, containerStatuses: [{name: pytorch, " ENDED("137",
                                                                                   NOON) "}]}",
     "Failed 0 last pytorch 137 exit 137@43200 disrupted waits: Evicted ()"},
    {"", "{phase: Failed, reason: Preempting}", "Failed 0 disrupted waits: Preempting ()"},
    {"", "{phase: Running, reason: NodeLost}", "Running 0 disrupted"},
    {"",
     "{phase: Failed, reason: Terminated, containerStatuses: [{name: pytorch, " ENDED("143",
                                                                                      NOON) "}]}",
     "Failed 0 last pytorch 143 exit 143@43200 disrupted waits: Terminated ()"},
    {"", "{phase: Failed, reason: OutOfcpu}", "Failed 0 disrupted waits: OutOfcpu ()"},
    {"",
     "{phase: Failed, conditions: [{type: Ready, status: 'False'}, {type: DisruptionTarget, status: "
     "'True'}], containerStatuses: [{name: pytorch, " ENDED("143", NOON) "}]}",
     "Failed 0 last pytorch 143 exit 143@43200 disrupted"},
    /* the condition tells why where the status does not */
    {"",
     "{phase: Failed, conditions: [{type: DisruptionTarget, status: 'True', reason: "
     "DeletionByPodGC, message: 'PodGC: node no longer exists'}]}",
     "Failed 0 disrupted waits: DeletionByPodGC (PodGC: node no longer exists)"},
    {"",
     "{phase: Failed, reason: Evicted, message: no memory, conditions: [{type: DisruptionTarget, "
     "status: 'True', reason: TerminationByKubelet, message: low on memory}]}",
     "Failed 0 disrupted waits: Evicted (no memory)"},
    {"",
     "{phase: Running, conditions: [{type: DisruptionTarget, status: 'True', reason: "
     "EvictionByEvictionAPI}]}",
     "Running 0 disrupted"},
    {"",
     "{phase: Failed, conditions: [{type: DisruptionTarget, status: 'False'}], containerStatuses: "
     "[{name: pytorch, " ENDED("1", NOON) "}]}",
     "Failed 0 last pytorch 1 exit 1@43200"},
    {"", "{phase: Failed, containerStatuses: [{name: pytorch, state: {waiting: {}}}]}",
     "Failed 0 disrupted"},
    /* the node controller's doing, told from the kubelet's */
    {"",
     "{phase: Running, conditions: [{type: Ready, status: 'False', lastTransitionTime: '" NOON
     "'}, {type: ContainersReady, status: 'True'}]}",
     "Running 0 lost@43200"},
    {"",
     "{phase: Running, conditions: [{type: Ready, status: 'False', reason: ReadinessGatesNotReady, "
     "lastTransitionTime: '" NOON "'}, {type: ContainersReady, status: 'True'}]}",
     "Running 0"},
    {"",
     "{phase: Running, conditions: [{type: Ready, status: 'False', reason: ContainersNotReady, "
     "lastTransitionTime: '" NOON "'}, {type: ContainersReady, status: 'False'}]}",
     "Running 0"},
    {DELETED, "{phase: Running, reason: NodeLost}",
     "Running 0 deleted@43200+30 disrupted lost@43200"},
    /* what it waits for */
    {"",
     "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, "
     "message: 0/3 nodes}], containerStatuses: [{name: pytorch, state: {waiting: {reason: x}}}]}",
     "Pending 0 waits: Unschedulable (0/3 nodes)"},
    {"",
     "{phase: Pending, conditions: [{type: PodScheduled, status: 'True'}], initContainerStatuses: "
     "[{name: i, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}], "
     "containerStatuses: [{name: pytorch, state: {waiting: {reason: PodInitializing}}}]}",
     "Pending 0 waits: ImagePullBackOff (no such image)"},
    {"",
     "{phase: Pending, containerStatuses: [{name: side, state: {waiting: {reason: "
     "ContainerCreating}}}, {name: pytorch, state: {waiting: {reason: CreateContainerConfigError}}}]}",
     "Pending 0 waits: CreateContainerConfigError ()"},
    {"",
     "{phase: Pending, containerStatuses: [{name: pytorch, state: {waiting: {reason: "
     "ContainerCreating}}}]}",
     "Pending 0"},
    {"",
     "{phase: Failed, reason: Evicted, containerStatuses: [{name: pytorch, state: {waiting: "
     "{reason: ImagePullBackOff}}}]}",
     "Failed 0 disrupted waits: Evicted ()"},
    /* its own doing */
    {"", "{phase: Failed, reason: DeadlineExceeded}", "Failed 0"},
    {"",
     "{phase: Failed, initContainerStatuses: [{name: mine, restartCount: 0, " ENDED(
         "1", NOON) "}], containerStatuses: [{name: pytorch, state: {waiting: {}}}]}",
     "Failed 0 last mine 1"},
    /* how, and of several the last */
    {"",
     "{phase: Running, containerStatuses: [{name: side, restartCount: 1, " LAST_END(
         "3", "Error", NOON_10) "}, {name: pytorch, restartCount: 2, " LAST_END("137", "OOMKilled",
                                                                                NOON) "}]}",
     "Running 3 last side 3"},
    {"",
     "{phase: Running, containerStatuses: [{name: side, restartCount: 1, " LAST_END(
         "3", "Error", NOON) "}, {name: pytorch, restartCount: 2, " LAST_END("137", "OOMKilled",
                                                                             NOON) "}]}",
     "Running 3 last pytorch 137 OOMKilled"},
    /* the operator's: its container waits for the master, again and again */
    {"", "{phase: Pending, initContainerStatuses: [{name: init-pytorch, restartCount: 9}]}",
     "Pending 0"},
    {"",
     "{phase: Pending, initContainerStatuses: [{name: mine, restartCount: 2, " ENDED(
         "0",
         NOON) "}, "
               "{name: init-pytorch, restartCount: 9, state: {waiting: {reason: CrashLoopBackOff}}, "
               "lastState: {terminated: {exitCode: 1}}}]}",
     "Pending 2 waits: CrashLoopBackOff ()"},
    {"", "{phase: Running, initContainerStatuses: [{name: init-pytorch, restartCount: 9}]}",
     "Running 0"},
    {"",
     "{phase: Failed, initContainerStatuses: [{name: mine, restartCount: 0, " ENDED(
         "0",
         NOON) "}, {name: init-pytorch, restartCount: 0, " ENDED("1",
                                                                 NOON_10) "}], "
                                                                          "containerStatuses: [{name: pytorch, state: {waiting: {}}}]}",
     "Failed 0 disrupted in vain waits: MasterNotFound (its init container gave up waiting for the "
     "master)"},
    {"",
     "{phase: Failed, reason: Evicted, initContainerStatuses: [{name: init-pytorch, restartCount: 0, "
     "" ENDED("137", NOON) "}]}",
     "Failed 0 disrupted in vain waits: Evicted ()"},
    /* by the names that the pod tells */
    {"annotations: {shoal.dev/init-containers: 'look,wait', other: 'mine'}",
     "{phase: Pending, initContainerStatuses: [{name: wait, restartCount: 1}, {name: look, "
     "restartCount: 2}, {name: init-pytorch, restartCount: 4}, {name: loo, restartCount: 8}, {name: "
     "ait, restartCount: 16}]}",
     "Pending 28"},
    /* a master has none */
    {"labels: {training.kubeflow.org/replica-type: master, training.kubeflow.org/replica-index: '0'}",
     "{phase: Pending, initContainerStatuses: [{name: init-pytorch, restartCount: 3}]}",
     "Pending 3"},
};

/* Opens it as it is read from the API server. */
static void open_pod(struct reading *reading, const char *text)
{
    struct error err;
    open_reading(reading, text);
    auto_free char *whole = json_print(reading->documents, JSON_COMPACT);
    json_free(reading->documents);
    reading->documents = json_parse_lenient(whole, strlen(whole), decode_pod_unread, &err);
    assert_non_null(reading->documents);
    reading->object = json_at(reading->documents, 0);
}

static const char *show(const struct pod *pod, struct arena *arena)
{
    const char *exit = "", *deleted = "";
    if (pod->exited)
        exit = arena_printf(arena, " exit %d@%d", pod->exit_code, (int)(pod->exited_ms / 1000));
    if (pod->deleted_ms)
        deleted = arena_printf(arena, " deleted@%d+%d", (int)(pod->deleted_ms / 1000),
                               (int)(pod->grace_ms / 1000));
    const char *lost = "", *waits = "", *before = "", *created = "";
    if (pod->created_ms)
        created = arena_printf(arena, " created@%d", (int)(pod->created_ms / 1000));
    const struct pod_end *end = &pod->end;
    if (end->container)
        before = arena_printf(arena, " last %s %d%s%s", end->container, end->code,
                              end->reason ? " " : "", end->reason ? end->reason : "");
    if (pod->node_lost_ms)
        lost = arena_printf(arena, " lost@%d", (int)(pod->node_lost_ms / 1000));
    if (pod->waiting_reason)
        waits = arena_printf(arena, " waits: %s (%s)", pod->waiting_reason,
                             pod->waiting_message ? pod->waiting_message : "");
    return arena_printf(arena, "%s %d%s%s%s%s%s%s%s", object_phase(pod->phase), pod->restart_count,
                        created, before, exit, deleted,
                        pod->master_not_found ? " disrupted in vain"
                        : pod->disrupted      ? " disrupted"
                                              : "",
                        lost, waits);
}

static void a_status_is_read(void **state)
{
    (void)state;
    int failed = 0;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct reading reading;
        auto_free char *text =
            xasprintf("{metadata: {" KNOWN "%s%s}, status: %s}", *rows[i].metadata ? ", " : "",
                      rows[i].metadata, rows[i].status);
        open_pod(&reading, text);
        struct pod pod =
            decode_pod(reading.object, &reading.identity, reading.arena, &reading.problems);
        const char *got = show(&pod, reading.arena);
        if (strcmp(got, rows[i].expected) != 0 || reading.problems.count) {
            print_error("%s:\n  %s (%s)\n  expected %s\n", text, got, lines_join(&reading.problems),
                        rows[i].expected);
            failed++;
        }
        close_reading(&reading);
    }
    assert_int_equal(failed, 0);
}

static void of_a_spoilt_pod_only_its_being_there_is_known(void **state)
{
    (void)state;
    static const struct {
        const char *status, *problem;
    } spoilt[] = {
        {"[]", "status: must be a mapping, not a list"},
        {"{phase: Dancing}", "status.phase: Unsupported value: \"Dancing\": supported values: "
                             "\"Pending\", \"Running\", \"Succeeded\", \"Failed\", \"Unknown\""},
        {"{phase: Failed, containerStatuses: {}}",
         "status.containerStatuses: must be a list, not a mapping"},
        {"{phase: Failed, containerStatuses: [{name: pytorch, restartCount: -1}]}",
         "status.containerStatuses[0].restartCount: must be within 0 and 1000000, not -1"},
        {"{phase: Failed, containerStatuses: [{name: pytorch, state: {terminated: {exitCode: "
         "many}}}]}",
         "status.containerStatuses[0].state.terminated.exitCode: must be a whole number, not the "
         "text \"many\""},
        {"{phase: Failed, containerStatuses: [{name: pytorch, " ENDED("1", "noon") "}]}",
         "status.containerStatuses[0].state.terminated.finishedAt: must be a time such as "
         "2026-01-31T12:00:00Z, not \"noon\""},
    };
    for (size_t i = 0; i < array_length(spoilt); i++) {
        struct reading reading;
        auto_free char *text =
            xasprintf("{metadata: {" KNOWN ", labels: {training.kubeflow.org/replica-type: worker, "
                      "training.kubeflow.org/replica-index: '3'}}, status: %s}",
                      spoilt[i].status);
        open_pod(&reading, text);
        struct pod pod =
            decode_pod(reading.object, &reading.identity, reading.arena, &reading.problems);
        assert_string_equal(lines_join(&reading.problems), spoilt[i].problem);
        assert_string_equal(show(&pod, reading.arena), "Unknown 0");
        assert_string_equal(pod.name, "j-worker-3");
        assert_int_equal(pod.index, 3);
        close_reading(&reading);
    }
}

/* One failure of a container from its end to its restart, as a kubelet tells it. */
static void a_failure_in_place_counts_when_it_happens(void **state)
{
    (void)state;
#define DUE(code)  "state: {waiting: {reason: CrashLoopBackOff}}, " LAST(code)
#define LAST(code) "lastState: {terminated: {exitCode: " code ", finishedAt: '" NOON "'}}"
    static const struct {
        const char *metadata, *restart_policy, *status; /* of container pytorch or the whole */
        int32_t restarts;
    } stages[] = {
        {"", "OnFailure", "restartCount: 0, state: {running: {}}", 0},
        {"", "OnFailure", "restartCount: 0, " ENDED("1", NOON), 1},
        {"", "OnFailure", "restartCount: 0, " DUE("1"), 1},
        {"", "OnFailure", "restartCount: 1, state: {running: {}}, " LAST("1"), 1},
        {"", "OnFailure", "restartCount: 1, " ENDED("1", NOON_10) ", " LAST("1"), 2},
        {"", "OnFailure", "restartCount: 1, " ENDED("0", NOON_10) ", " LAST("1"), 1},
        /* it could not be started: the kubelet made another container, and counted */
        {"", "OnFailure",
         "restartCount: 1, state: {waiting: {reason: RunContainerError}}, " LAST("1"), 1},
        {"", "OnFailure", "restartCount: 0, state: {waiting: {reason: CrashLoopBackOff}}", 0},
        /* of a success the kubelet must say that it will be started again */
        {"", "Always", "restartCount: 0, " ENDED("0", NOON), 0},
        {"", "Always", "restartCount: 0, " DUE("0"), 1},
        {"", "Always", "restartCount: 1, state: {running: {}}, " LAST("0"), 1},
        /* nothing follows: its end is its phase's to tell */
        {"", "Never", "restartCount: 0, " ENDED("1", NOON), 0},
        /* nor once the pod is being deleted; what was counted before stays */
        {DELETED, "OnFailure", "restartCount: 0, " ENDED("143", NOON_10), 0},
        {DELETED, "OnFailure", "restartCount: 0, " ENDED("1", "1970-01-01T11:59:59Z"), 1},
    };
    static const char *const forms[] = {
        "phase: Running, containerStatuses: [{name: side}, {name: pytorch, %s}]",
        "phase: Pending, initContainerStatuses: [{name: mine, %s}]",
    };
    for (size_t i = 0; i < array_length(stages) * array_length(forms); i++) {
        size_t row = i / array_length(forms);
        struct reading reading;
        auto_str struct str text;
        str_init(&text, 1 << 16);
        str_printf(&text, "{metadata: {" KNOWN "%s%s}, spec: {restartPolicy: %s}, status: {",
                   *stages[row].metadata ? ", " : "", stages[row].metadata,
                   stages[row].restart_policy);
        str_printf(&text, forms[i % array_length(forms)], stages[row].status);
        str_add(&text, "}}");
        open_pod(&reading, str_text(&text));
        struct pod pod =
            decode_pod(reading.object, &reading.identity, reading.arena, &reading.problems);
        assert_int_equal(reading.problems.count, 0);
        if (pod.restart_count != stages[row].restarts)
            fail_msg("%s: %d restarts, expected %d", str_text(&text), pod.restart_count,
                     stages[row].restarts);
        close_reading(&reading);
    }
}

/* Native sidecars are made to end once the containers are done, one after the other; meanwhile the
 * pod is running, and no restart follows. */
static void sidecars_end_with_what_they_serve(void **state)
{
    (void)state;
    static const struct {
        const char *restart_policy, *main;
        int32_t restarts;
    } ends[] = {
        {"OnFailure", ENDED("0", NOON), 0},       {"OnFailure", ENDED("1", NOON), 2},
        {"OnFailure", "state: {running: {}}", 1}, {"Always", ENDED("0", NOON), 1},
        {"Never", ENDED("0", NOON), 0},
    };
    for (size_t i = 0; i < array_length(ends); i++) {
        struct reading reading;
        auto_free char *text = xasprintf(
            "{metadata: {" KNOWN "}, spec: {restartPolicy: %s}, status: {phase: Running, "
            "initContainerStatuses: [{name: one, " ENDED(
                "143", NOON_10) "}, {name: two, state: "
                                "{running: {}}}], containerStatuses: [{name: pytorch, %s}]}}",
            ends[i].restart_policy, ends[i].main);
        open_pod(&reading, text);
        struct pod pod =
            decode_pod(reading.object, &reading.identity, reading.arena, &reading.problems);
        assert_int_equal(pod.restart_count, ends[i].restarts);
        close_reading(&reading);
    }
}

/* An end with 144 is hardware's only where the agent's message says so: other images may use it. */
static void an_agent_s_word_on_hardware_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *container, *message;
        int code;
        bool in_place, says_so;
    } ends[] = {
        {"pytorch", "bad hardware: GPU 3 reports Xid 79", 144, false, true},
        {"pytorch", "bad hardware: GPU 3 reports Xid 79", 144, true, true},
        {"pytorch", "bad hardware: GPU 3 reports Xid 79", 138, false, false},
        {"pytorch", "it is bad hardware: so it seems", 144, false, false},
        {"pytorch", "", 144, false, false},
        {"side", "bad hardware: GPU 3 reports Xid 79", 144, false, false},
    };
    for (size_t i = 0; i < array_length(ends); i++) {
        struct reading reading;
        auto_free char *text = xasprintf(
            "{metadata: {" KNOWN ", annotations: {shoal.dev/avoided-nodes: 'a,b'}}, spec: "
            "{nodeName: gpu-7}, status: {phase: %s, containerStatuses: [{name: %s, %s: "
            "{terminated: {exitCode: %d, message: '%s'}}}]}}",
            ends[i].in_place ? "Running" : "Failed", ends[i].container,
            ends[i].in_place ? "restartCount: 1, lastState" : "state", ends[i].code,
            ends[i].message);
        open_pod(&reading, text);
        struct pod pod =
            decode_pod(reading.object, &reading.identity, reading.arena, &reading.problems);
        assert_string_equal(pod.end.hardware ? pod.end.hardware : "",
                            ends[i].says_so ? ends[i].message : "");
        assert_string_equal(pod.node, "gpu-7");
        assert_string_equal(pod.avoids, "a,b");
        close_reading(&reading);
    }
}

/* In whole characters. */
static void a_long_message_is_cut(void **state)
{
    (void)state;
    char message[1024] = "";
    for (int i = 0; i < 150; i++)
        strcat(message, i ? "\u2192" : "xx"); /* three bytes each, two before them */
    struct reading reading;
    auto_free char *text =
        xasprintf("{metadata: {" KNOWN "}, status: {phase: Pending, containerStatuses: "
                  "[{name: pytorch, state: {waiting: {reason: r, message: '%s'}}}]}}",
                  message);
    open_pod(&reading, text);
    struct pod pod =
        decode_pod(reading.object, &reading.identity, reading.arena, &reading.problems);
    message[2 + 3 * 132] = '\0';
    assert_string_equal(pod.waiting_message, message);
    close_reading(&reading);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_read),
        cmocka_unit_test(a_failure_in_place_counts_when_it_happens),
        cmocka_unit_test(of_a_spoilt_pod_only_its_being_there_is_known),
        cmocka_unit_test(sidecars_end_with_what_they_serve),
        cmocka_unit_test(an_agent_s_word_on_hardware_is_read),
        cmocka_unit_test(a_long_message_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
