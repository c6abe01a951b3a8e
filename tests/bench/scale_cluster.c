#include "tests/bench/scale_cluster.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/bench/scale_objects.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS       INT64_C(1000000) /* nanoseconds */
#define BEGIN_MS INT64_C(1767225600000)

/* Milliseconds, drawn evenly: etcd's fsync makes most of an answer, a watch is sooner; a kubelet
 * takes up to a second to start what it has the image of. */
enum {
    ANSWER_LEAST = 2,
    ANSWER_MOST = 8,
    WATCH_LEAST = 1,
    WATCH_MOST = 5,
    RUN_LEAST = 100,
    RUN_MOST = 1000,
};

/* A status, whose history has a record of each pod that has failed. */
enum { STATUS_BYTES = 4096, STATUS_BYTES_A_POD = 160 };

enum what { ANSWER, SHOW_JOB, SHOW_POD, SHOW_SERVICE, RUN_POD };

struct thing {
    int64_t at_ns;
    uint64_t serial; /* orders those of the same time */
    enum what what;
    int job, pod;
    struct kube_request *request;
};

struct scale_pod {
    enum scale_state state;
    int made; /* under this name so far: part of the UID */
    bool service;
    int64_t failed_ns; /* 0: it has not, or was replaced */
};

struct scale_job {
    int64_t version;
    char *status; /* JSON */
};

struct kube {
    int jobs, pods_per_job;
    size_t status_bytes;
    char *statuses; /* [jobs][status_bytes] */
    struct scale_job *of_jobs;
    struct scale_pod *of_pods;
    struct cache *cache;
    struct thing *heap;
    size_t count, size;
    uint64_t serial, seed;
    int64_t now_ns, version, began_ns;
    int64_t requests, status_writes;
    int32_t *replaced_ms;
    int replaced;
};

struct kube_request {
    const char *method;
    enum { OF_JOB, OF_POD, OF_SERVICE, OF_EVENT } kind;
    int job, pod;
    struct json *status;
    void (*done)(void *context, const struct json *answer, const struct error *err);
    void *context;
};

static struct kube *open_kube; /* whose time it is */

/* ---- time ---- */

static int64_t now_ms(void)
{
    return BEGIN_MS + open_kube->now_ns / MS;
}

const struct clocks scale_clocks = {now_ms, now_ms};

static int64_t processor_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000 * MS + t.tv_nsec;
}

void scale_work_begin(struct kube *kube)
{
    kube->began_ns = processor_ns();
}

int64_t scale_work_end(struct kube *kube)
{
    int64_t ns = processor_ns() - kube->began_ns;
    kube->now_ns += ns;
    return ns;
}

static int64_t draw_ns(struct kube *kube, int least_ms, int most_ms)
{
    kube->seed ^= kube->seed << 13;
    kube->seed ^= kube->seed >> 7;
    kube->seed ^= kube->seed << 17;
    return least_ms * MS + (int64_t)(kube->seed % (uint64_t)((most_ms - least_ms) * MS));
}

/* ---- what is to happen: a binary heap ---- */

static bool is_before(const struct thing *a, const struct thing *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->serial < b->serial;
}

static void add(struct kube *kube, enum what what, int job, int pod, struct kube_request *request,
                int64_t in_ns)
{
    assert(kube->count < kube->size);
    struct thing thing = {kube->now_ns + in_ns, kube->serial++, what, job, pod, request};
    size_t i = kube->count++;
    for (; i > 0 && is_before(&thing, &kube->heap[(i - 1) / 2]); i = (i - 1) / 2)
        kube->heap[i] = kube->heap[(i - 1) / 2];
    kube->heap[i] = thing;
}

static struct thing take_first(struct kube *kube)
{
    struct thing first = kube->heap[0], last = kube->heap[--kube->count];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < kube->count; i = child) {
        if (child + 1 < kube->count && is_before(&kube->heap[child + 1], &kube->heap[child]))
            child++;
        if (!is_before(&kube->heap[child], &last))
            break;
        kube->heap[i] = kube->heap[child];
    }
    kube->heap[i] = last;
    return first;
}

int64_t scale_due_ms(const struct kube *kube)
{
    return kube->count ? BEGIN_MS + (kube->heap[0].at_ns + MS - 1) / MS : INT64_MAX;
}

void scale_wait_until(struct kube *kube, int64_t at_ms)
{
    int64_t at_ns = (at_ms - BEGIN_MS) * MS;
    kube->now_ns = at_ns > kube->now_ns ? at_ns : kube->now_ns;
}

static struct scale_pod *pod_of(struct kube *kube, int job, int pod)
{
    return &kube->of_pods[(size_t)job * (size_t)kube->pods_per_job + (size_t)pod];
}

/* ---- watches ---- */

static void show(struct kube *kube, const struct thing *thing)
{
    const struct scale_pod *p =
        thing->what == SHOW_JOB ? NULL : pod_of(kube, thing->job, thing->pod);
    bool gone = thing->what == SHOW_POD && p->state == SCALE_NONE;
    enum cache_kind kind = thing->what == SHOW_JOB   ? CACHE_JOBS
                           : thing->what == SHOW_POD ? CACHE_PODS
                                                     : CACHE_SERVICES;
    char *text = kind == CACHE_JOBS
                     ? scale_job_text(thing->job, kube->of_jobs[thing->job].version,
                                      kube->pods_per_job, kube->of_jobs[thing->job].status)
                 : kind == CACHE_PODS
                     ? scale_pod_text(thing->job, thing->pod, p->made, kube->version, p->state)
                     : scale_service_text(thing->job, thing->pod, kube->version);
    scale_work_begin(kube); /* it parses, too */
    struct json *object = json_parse_text(text, JSON_STRICT, NULL);
    assert(object);
    free(text);
    if (gone)
        cache_delete(kube->cache, kind, object);
    else
        cache_put(kube->cache, kind, object);
    json_free(object);
    scale_work_end(kube);
}

static void tell(struct kube *kube, enum what what, int job, int pod)
{
    kube->version++;
    if (what == SHOW_JOB)
        kube->of_jobs[job].version = kube->version;
    add(kube, what, job, pod, NULL, draw_ns(kube, WATCH_LEAST, WATCH_MOST));
}

void scale_list(struct kube *kube, struct cache *cache)
{
    kube->cache = cache;
    for (int job = 0; job < kube->jobs; job++)
        tell(kube, SHOW_JOB, job, 0);
}

/* ---- requests ---- */

static struct kube_request *on_send(struct kube *kube, const struct kube_call *call,
                                    int64_t wall_ms)
{
    (void)wall_ms;
    struct kube_request *request = xcalloc(1, sizeof *request);
    free(json_print(call->body, JSON_COMPACT)); /* as the client does */
    const char *made = json_as_text(json_get(json_get(call->body, "metadata"), "name"));
    *request =
        (struct kube_request){.method = call->method, .done = call->done, .context = call->context};
    request->kind = call->once                            ? OF_EVENT
                    : strstr(call->path, "/pytorchjobs/") ? OF_JOB
                    : strstr(call->path, "/services")     ? OF_SERVICE
                                                          : OF_POD;
    if (request->kind != OF_EVENT)
        sscanf(made ? made : str_after_last(call->path, '/'), "j%d-worker-%d", &request->job,
               &request->pod);
    if (request->kind == OF_JOB)
        request->status = json_clone(json_get(call->body, "status"));
    kube->requests += request->kind != OF_EVENT;
    add(kube, ANSWER, 0, 0, request, draw_ns(kube, ANSWER_LEAST, ANSWER_MOST));
    return request;
}

static void free_request(struct kube_request *request)
{
    json_free(request->status);
    free(request);
}

static void on_cancel(struct kube *kube, struct kube_request *request)
{
    for (size_t i = 0; i < kube->count; i++)
        if (kube->heap[i].request == request)
            kube->heap[i].request = NULL;
    free_request(request);
}

static size_t body_bytes(const struct kube *kube)
{
    (void)kube;
    return 0;
}

const struct executor_transport scale_transport = {on_send, on_cancel, body_bytes};

static void put_status(struct kube *kube, const struct kube_request *request)
{
    auto_free char *text = json_print(request->status, JSON_COMPACT);
    struct scale_job *job = &kube->of_jobs[request->job];
    assert(strlen(text) < kube->status_bytes);
    strcpy(job->status, text);
    kube->status_writes++;
    tell(kube, SHOW_JOB, request->job, 0);
}

static void make_pod(struct kube *kube, const struct kube_request *request)
{
    struct scale_pod *pod = pod_of(kube, request->job, request->pod);
    assert(pod->state == SCALE_NONE);
    pod->state = SCALE_PENDING;
    pod->made++;
    if (pod->failed_ns)
        kube->replaced_ms[kube->replaced++] = (int32_t)((kube->now_ns - pod->failed_ns) / MS);
    pod->failed_ns = 0;
    tell(kube, SHOW_POD, request->job, request->pod);
    add(kube, RUN_POD, request->job, request->pod, NULL, draw_ns(kube, RUN_LEAST, RUN_MOST));
}

static void carry_out(struct kube *kube, const struct kube_request *request)
{
    if (request->kind == OF_JOB) {
        put_status(kube, request);
    } else if (request->kind == OF_SERVICE) {
        pod_of(kube, request->job, request->pod)->service = true;
        tell(kube, SHOW_SERVICE, request->job, request->pod);
    } else if (request->kind == OF_POD && strcmp(request->method, "POST") == 0) {
        make_pod(kube, request);
    } else if (request->kind == OF_POD) { /* deleted; its container is over */
        pod_of(kube, request->job, request->pod)->state = SCALE_NONE;
        tell(kube, SHOW_POD, request->job, request->pod);
    }
}

static void answer(struct kube *kube, struct kube_request *request)
{
    if (!request)
        return; /* cancelled */
    carry_out(kube, request);
    const struct error err = {.code = ERR_NONE};
    auto_free char *version = xasprintf("%" PRId64, kube->version);
    const struct scale_pod *pod = pod_of(kube, request->job, request->pod);
    auto_free char *uid = request->kind == OF_JOB
                              ? xasprintf(SCALE_JOB_UID, request->job)
                              : xasprintf("%d.%d.%d", request->job, request->pod,
                                          request->kind == OF_POD ? pod->made : 0);
    scale_work_begin(kube);
    struct json *object = json_object_of(
        "metadata", json_texts_of("uid", uid, "resourceVersion", version, NULL), NULL);
    if (request->status)
        json_set(object, "status", json_clone(request->status));
    request->done(request->context, object, &err);
    json_free(object);
    scale_work_end(kube);
    free_request(request);
}

/* ---- what happens ---- */

static void run_pod(struct kube *kube, int job, int pod)
{
    pod_of(kube, job, pod)->state = SCALE_RUNNING;
    tell(kube, SHOW_POD, job, pod);
}

void scale_happen(struct kube *kube)
{
    int64_t until_ns = kube->now_ns; /* what is due meanwhile comes after the passes */
    while (kube->count && kube->heap[0].at_ns <= until_ns) {
        const struct thing thing = take_first(kube);
        if (thing.what == ANSWER)
            answer(kube, thing.request);
        else if (thing.what == RUN_POD)
            run_pod(kube, thing.job, thing.pod);
        else
            show(kube, &thing);
    }
}

void scale_fail(struct kube *kube, int pods)
{
    kube->replaced = 0;
    for (int i = 0; i < pods; i++) {
        int job = i % kube->jobs, index = i / kube->jobs;
        struct scale_pod *pod = pod_of(kube, job, index);
        assert(index < kube->pods_per_job && pod->state == SCALE_RUNNING);
        pod->state = SCALE_FAILED;
        pod->failed_ns = kube->now_ns;
        tell(kube, SHOW_POD, job, index);
    }
}

static int by_size(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

int scale_replaced(const struct kube *kube, const int32_t **ret_ms)
{
    qsort(kube->replaced_ms, (size_t)kube->replaced, sizeof *kube->replaced_ms, by_size);
    *ret_ms = kube->replaced_ms;
    return kube->replaced;
}

int scale_pods(const struct kube *kube)
{
    int count = 0;
    for (int i = 0; i < kube->jobs * kube->pods_per_job; i++)
        count += kube->of_pods[i].state == SCALE_RUNNING;
    return count;
}

int64_t scale_requests(const struct kube *kube)
{
    return kube->requests;
}

int64_t scale_status_writes(const struct kube *kube)
{
    return kube->status_writes;
}

/* ---- life cycle ---- */

struct kube *scale_open(int jobs, int pods_per_job, uint64_t seed)
{
    size_t pods = (size_t)jobs * (size_t)pods_per_job;
    struct kube *kube = xcalloc(1, sizeof *kube);
    kube->jobs = jobs;
    kube->pods_per_job = pods_per_job;
    kube->of_jobs = xcalloc((size_t)jobs, sizeof *kube->of_jobs);
    kube->of_pods = xcalloc(pods, sizeof *kube->of_pods);
    kube->replaced_ms = xcalloc(pods, sizeof *kube->replaced_ms);
    /* each pod: told of, to run, its service told of; and what is asked of each job */
    kube->size = 4 * pods + (size_t)jobs * 4 + 65536;
    kube->heap = xcalloc(kube->size, sizeof *kube->heap);
    kube->seed = seed;
    kube->status_bytes = STATUS_BYTES + STATUS_BYTES_A_POD * (size_t)pods_per_job;
    kube->statuses = xcalloc((size_t)jobs, kube->status_bytes);
    for (int job = 0; job < jobs; job++) {
        kube->of_jobs[job].status = kube->statuses + (size_t)job * kube->status_bytes;
        strcpy(kube->of_jobs[job].status, "{}");
    }
    open_kube = kube;
    return kube;
}

void scale_close(struct kube *kube)
{
    while (kube->count) {
        struct thing thing = take_first(kube);
        if (thing.request)
            free_request(thing.request);
    }
    free(kube->statuses);
    free(kube->of_jobs);
    free(kube->of_pods);
    free(kube->replaced_ms);
    free(kube->heap);
    free(kube);
}
