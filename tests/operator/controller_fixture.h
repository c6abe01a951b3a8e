/* The operator between two waits, on real sockets: a server with one job in it that knows what it
 * is asked, and whose watches say nothing. The clock is the test's. */
#ifndef SHOAL_TESTS_OPERATOR_CONTROLLER_FIXTURE_H
#define SHOAL_TESTS_OPERATOR_CONTROLLER_FIXTURE_H

#include "operator/controller.h"
#include "tests/operator/api.h"

enum { KINDS = 4 }; /* jobs, pods, services, autoscalers: as many streams stay open */

#define LIST_OF(items)                                                                             \
    API_TEXT("200 OK", "", "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" items "]}")
/* Of which we know nothing: another program reads them in the pod, and must find them so. */
#define NUMBERS "\"numbers\":[9007199254740993,1e3,0.10,18446744073709551616,-0,1E-400]"
#define JOB                                                                                        \
    "{\"metadata\":{\"name\":\"j\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"4\"}," \
    "\"spec\":{\"pytorchReplicaSpecs\":{\"Worker\":{\"replicas\":1,\"template\":{\"spec\":{"       \
    "\"containers\":[{\"name\":\"pytorch\",\"image\":\"i\"," NUMBERS "}]}}}}}}"
#define MADE                                                                                       \
    API_TEXT("201 Created", "", "{\"metadata\":{\"uid\":\"new\",\"resourceVersion\":\"6\"}}")
#define KEPT(request, text)                                                                        \
    {                                                                                              \
        .to = request, .bytes = text, .then = FAKE_CLOSE                                           \
    }
#define SILENT(request)                                                                            \
    {                                                                                              \
        .to = request, .bytes = FAKE_CHUNKED, .then = FAKE_HOLD                                    \
    }

#define JOBS     "/apis/kubeflow.org/v1/pytorchjobs?"
#define PODS     "/api/v1/pods?"
#define MAKE_POD "POST " IN_NS "pods?fieldValidation=Strict "
#define SERVICES "/api/v1/services?"
#define SCALERS  "/apis/autoscaling/v2/horizontalpodautoscalers?"
#define IN_NS    "/api/v1/namespaces/ns/"
#define STATUS   "PUT /apis/kubeflow.org/v1/namespaces/ns/pytorchjobs/j/status?fieldManager="

#define CLUSTER                                                                                    \
    KEPT("GET " JOBS "limit", LIST_OF(JOB)), KEPT("GET " PODS "limit", LIST_OF("")),               \
        KEPT("GET " SERVICES "limit", LIST_OF("")), KEPT("GET " SCALERS "limit", LIST_OF("")),     \
        SILENT("GET " JOBS "watch"), SILENT("GET " PODS "watch"), SILENT("GET " SERVICES "watch"), \
        SILENT("GET " SCALERS "watch"), KEPT("POST " IN_NS, MADE)

/* The job's pod, which runs and is asked at this port. */
#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"j-worker-0\",\"namespace\":\"ns\",\"uid\":\"p\","                   \
    "\"resourceVersion\":\"4\",\"ownerReferences\":[{\"kind\":\"PyTorchJob\",\"name\":\"j\","      \
    "\"uid\":\"u\",\"controller\":true}],\"labels\":{\"training.kubeflow.org/job-name\":\"j\","    \
    "\"training.kubeflow.org/operator-name\":\"pytorchjob-controller\","                           \
    "\"training.kubeflow.org/replica-type\":\"worker\","                                           \
    "\"training.kubeflow.org/replica-index\":\"0\"}},\"spec\":{\"nodeName\":\"a\","                \
    "\"containers\":[{\"name\":"                                                                   \
    "\"pytorch\",\"ports\":[{\"name\":\"metrics\",\"containerPort\":%d}]}]},\"status\":{"          \
    "\"phase\":\"Running\",\"podIP\":\"127.0.0.1\"}}"

extern int64_t controller_now_ms;

struct fixture {
    struct api api;
    struct controller *controller;
    size_t kinds;
    bool leading;
};

/* Where the options do not matter, pods are asked each 15 s how they train, and nodes are not
 * watched. */
void open_fixture(struct fixture *f, const struct fake_answer *answers, size_t count);
/* The limit, whom to ask by and the clock are the fixture's. */
void open_with(struct fixture *f, const struct fake_answer *answers, size_t count,
               struct controller_options options);
void close_fixture(struct fixture *f);

/* Requests that begin so; and have this part. */
size_t asked(struct fixture *f, const char *begin);
size_t count_requests(struct fixture *f, const char *begin, const char *part);

void turn(struct fixture *f);
/* Turns until each list has its stream, nothing else is in flight, and another turn asks for
 * nothing. */
void settle(struct fixture *f);

struct metrics_view view_of(const struct fixture *f);
#endif
