#include "operator/leader/leader.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/job/resources.h"
#include "operator/leader/lease_object.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024 };

struct leader {
    struct kube *kube;
    const struct clocks *clocks;
    char *namespace_, *name;
    int64_t timeout_ms; /* of a request: three fit into the time that a holder has to renew */
    struct lease lease;
    struct json *seen; /* the object as last read or written; NULL: none */
    struct kube_request *request;
    enum lease_action sent; /* the last request */
    bool is_over;
    bool went_well; /* the last request */
    struct error failure;
    struct error reported; /* the failure, when leader_new_failure() was last asked */
};

static enum lease_outcome outcome_of(enum error_code code)
{
    switch (code) {
    case ERR_NONE:
        return LEASE_STORED;
    case ERR_NOT_FOUND:
        return LEASE_ABSENT;
    case ERR_EXISTS:
    case ERR_CONFLICT:
        return LEASE_REFUSED;
    default:
        return LEASE_UNKNOWN;
    }
}

/* A Lease that is not there can be created: only its namespace can be what a POST does not find, or
 * the whole API group, as the server's words say. */
static void explain_absent(struct leader *leader, const struct error *err)
{
    error_set(&leader->failure, err->code,
              "%.250s. The namespace of the Lease must exist: kubectl create namespace %s, or name "
              "another in MY_POD_NAMESPACE",
              err->msg, leader->namespace_);
}

static void on_done(void *context, const struct json *answer, const struct error *err)
{
    struct leader *leader = context;
    struct lease_record stored;
    enum lease_outcome outcome = outcome_of(err->code);
    leader->request = NULL;
    if (outcome == LEASE_UNKNOWN)
        leader->failure = *err;
    if (outcome == LEASE_STORED && lease_object_read(answer, &stored, &leader->failure))
        outcome = LEASE_UNKNOWN;
    bool no_place = outcome == LEASE_ABSENT && leader->sent == LEASE_CREATE;
    if (no_place)
        explain_absent(leader, err);
    leader->went_well = outcome != LEASE_UNKNOWN && !no_place;
    /* Kept whole, as an update sends it back: labels and fields of others survive our PUT. */
    if (outcome == LEASE_STORED || outcome == LEASE_ABSENT) {
        json_free(leader->seen);
        leader->seen = json_clone(answer); /* NULL if absent */
    }
    lease_feed(&leader->lease, outcome, &stored, leader->clocks->steady_ms());
}

static void send(struct leader *leader, enum lease_action want, const struct lease_record *record,
                 int64_t wall_ms)
{
    char path[PATH_BYTES];
    bool fits = kube_path(path, sizeof path, resource_lease.group, resource_lease.version,
                          resource_lease.plural, leader->namespace_,
                          want == LEASE_CREATE ? NULL : leader->name, NULL);
    assert(fits);
    struct json *body = NULL;
    if (want != LEASE_READ)
        body = lease_object_write(want == LEASE_UPDATE ? leader->seen : NULL, leader->namespace_,
                                  leader->name, record);
    static const char *const methods[] = {
        [LEASE_READ] = "GET", [LEASE_CREATE] = "POST", [LEASE_UPDATE] = "PUT"};
    /* One try each: the lease decides itself when to read or write again. Unguarded, as this
     * request is what decides who may write. */
    struct kube_call call = {.method = methods[want],
                             .path = path,
                             .body = body,
                             .once = true,
                             .unguarded = true,
                             .timeout_ms = leader->timeout_ms,
                             .done = on_done,
                             .context = leader};
    leader->sent = want;
    leader->request = kube_send(leader->kube, &call, wall_ms);
    json_free(body);
}

struct leader *leader_open(struct kube *kube, const struct leader_options *options,
                           const struct clocks *clocks)
{
    struct leader *leader = xcalloc(1, sizeof *leader);
    leader->kube = kube;
    leader->clocks = clocks;
    leader->namespace_ = xstrdup(options->namespace_);
    leader->name = xstrdup(options->name);
    leader->timeout_ms = options->lease.renew_deadline_ms / 3;
    lease_init(&leader->lease, &options->lease);
    return leader;
}

void leader_close(struct leader *leader)
{
    if (!leader)
        return;
    kube_cancel(leader->kube, leader->request);
    json_free(leader->seen);
    free(leader->namespace_);
    free(leader->name);
    free(leader);
}

int64_t leader_tick(struct leader *leader)
{
    struct lease_record record;
    int64_t steady_ms = leader->clocks->steady_ms(), wall_ms = leader->clocks->wall_ms();
    enum lease_action want = lease_next(&leader->lease, steady_ms, wall_ms, &record);
    leader->is_over = want == LEASE_OVER;
    if (want == LEASE_READ || want == LEASE_CREATE || want == LEASE_UPDATE)
        send(leader, want, &record, wall_ms);
    else if (!leader->request && leader->went_well) /* not of a read before a write */
        leader->failure = (struct error){0};
    return clock_until_ms(lease_due(&leader->lease, steady_ms), steady_ms);
}

bool leader_is_held(const struct leader *leader)
{
    return lease_is_held(&leader->lease, leader->clocks->steady_ms());
}

void leader_release(struct leader *leader)
{
    lease_release(&leader->lease, leader->clocks->steady_ms());
}

bool leader_is_over(const struct leader *leader)
{
    return leader->is_over;
}

const char *leader_holder(const struct leader *leader)
{
    return leader->lease.record.holder;
}

static bool is_gone(enum error_code code)
{
    return code == ERR_IO || code == ERR_TIMEOUT;
}

/* An error names the request before the first colon. */
static bool is_same_failure(const struct error *a, const struct error *b)
{
    /* A server that is away fails now by timeout and now by a refused connection: that is one
     * trouble. A missing right is one per request (get, create, update). */
    size_t request = strcspn(a->msg, ":") + 1;
    if (is_gone(a->code))
        return is_gone(b->code);
    return a->code == b->code &&
           (a->code != ERR_FORBIDDEN || strncmp(a->msg, b->msg, request) == 0);
}

const char *leader_new_failure(struct leader *leader)
{
    bool is_new = leader->failure.code && !is_same_failure(&leader->failure, &leader->reported);
    leader->reported = leader->failure;
    return is_new ? leader->failure.msg : NULL;
}
