/* A world in which a job's whole life takes place, small enough to try everything that may happen
 * in it: an API server with one job, its pods and services; what people, kubelets and networks do;
 * and the operator's own cache, queue, executor and pass, as they ship. One thing happens at a
 * time, and the caller chooses which. */
#ifndef SHOAL_TESTS_OPERATOR_HISTORIES_WORLD_H
#define SHOAL_TESTS_OPERATOR_HISTORIES_WORLD_H

#include "operator/apply/executor.h"
#include "operator/cache/cache.h"
#include "operator/cache/queue.h"
#include "tests/operator/reconcile/simulation.h"

enum { WORLD_KINDS = 3, WORLD_MAX_OBJECTS = 12, WORLD_MAX_WAITING = 64, WORLD_MAX_CHOICES = 64 };
#define WORLD_KEY "ns/j"

/* How often each may still happen. */
struct world_bounds {
    int failures;  /* of pods */
    int deletions; /* of pods by people, or evictions */
    int edits;     /* of the job */
    int crashes;   /* of the operator */
    int troubles;  /* with a request: refused, not sent, or its answer lost */
    int delays;    /* of what is in flight, until the operator waits no more */
};

enum world_edit { EDIT_SUSPEND, EDIT_RESUME, EDIT_GROW, EDIT_SHRINK, EDIT_LIMIT, EDIT_SPOIL };

/* A job and what may happen to it. */
struct world_setting {
    const char *name;
    int masters, workers;
    const char *restart_policy;
    const char *run_policy; /* the inside of a flow mapping, without `suspend` */
    bool suspended;
    int exit_codes[2]; /* of failures; 0: only one */
    enum world_edit edits[3];
    int edit_count;
    struct world_bounds bounds;
};

/* An object that a watch is about to show. Watches keep the order of what happens to one object.
 * Between objects they may be in any, as passes see them between any two; and of several changes
 * only the last is shown, as after a new list. */
struct world_event {
    enum cache_kind kind;
    bool gone;
    char *text; /* of the object, as JSON, of version 0 */
    int version;
    uint64_t name, content; /* hashes, the version left out */
};

struct kube_request;

/* What the operator's cache was last shown under a name. */
struct world_shown {
    uint64_t name, content;
};

/* A pod that a request has made, or deleted. */
struct world_awaited {
    uint64_t name, uid; /* hashes; uid 0: the answer was lost, and only the name is known */
    bool gone;
};

struct kube; /* the API server, in the client's place */

struct world {
    struct simulation s; /* its truth, what the operator saw, the oracle's tables */
    const struct world_setting *setting;
    struct world_bounds left;
    int job_version, version;
    int pod_versions[REPLICA_TYPES][SIMULATION_MAX_REPLICAS];
    int made[REPLICA_TYPES]
            [SIMULATION_MAX_REPLICAS];            /* pods under a name so far: part of the UID */
    int failed_pods;                              /* that anybody could count */
    struct world_event events[WORLD_MAX_WAITING]; /* in order */
    size_t event_count;
    uint64_t moved;       /* ranks: of the object to which something happened just now, 0: none; */
    uint64_t shown_up_to; /* of what was shown since the last plan, 0: nothing */
    struct kube_request *sent[WORLD_MAX_WAITING]; /* that wait for their answers, in order */
    size_t sent_count;
    uint64_t ranks[WORLD_MAX_OBJECTS]; /* of all pods that the job may have */
    int name_count;
    bool answered; /* a request was, just now */
    bool is_whole; /* nothing is left out: the operator may die at any time, and states differ by
                      all that they allow */
    const bool *compares; /* by enum allowed: what of the allowance is no part of the state */
    /* the operator */
    struct cache *cache;
    struct queue *queue;
    struct executor *executor;
    struct cached_job *active;  /* whose plan is under way; NULL: none */
    struct arena *seen_arena;   /* of s.seen */
    struct arena *status_arena; /* of s.truth->status */
    int failures_in_row;        /* of plans: the queue waits longer each time */
    bool changed_meanwhile;     /* while a plan is under way */
    struct world_shown shown[WORLD_KINDS][WORLD_MAX_OBJECTS];
    size_t shown_count[WORLD_KINDS];
    bool expects; /* the last plan's changes are not all shown */
    /* What the last plan did to pods, in order: what passes have seen of it from the first one on,
     * the executor does not expect any more, though it may be undone before all is seen. */
    struct world_awaited awaited[WORLD_MAX_WAITING];
    size_t awaited_count, awaited_first;
    uint64_t looked;        /* hash of what passes saw that came too early, if a delete met another
                               version: that may be seen in any order */
    bool conflicted;        /* one did */
    bool held;              /* a status waits to be written */
    uint64_t unwritten;     /* hash of the replicas that it completes, until one was written */
    uint64_t seen, answers; /* hashes: what the last plan was made of, and the answers since */
    uint64_t unconfirmed;   /* of plans that failed since a status was written */
};

enum choice_kind {
    CHOICE_ANSWER,        /* the first request is carried out and answered */
    CHOICE_LOSE_ANSWER,   /* ... its answer is lost, and it is tried again */
    CHOICE_LOSE_FOR_GOOD, /* ... its answer is lost, and the server gone for a while */
    CHOICE_BREAK,         /* it does not reach the server */
    CHOICE_REFUSE,        /* it is refused: by a quota, or for want of a right */
    CHOICE_SHOW,          /* event `index` is shown */
    CHOICE_PASS,          /* the operator passes over the job */
    CHOICE_WAIT,          /* until the operator wants to pass */
    CHOICE_DELAY,         /* the operator waits for what it has changed, in vain */
    CHOICE_CRASH,         /* the operator dies, and another one starts */
    CHOICE_RUN,           /* of pod `index`, as in all that follow */
    CHOICE_SUCCEED,
    CHOICE_FAIL, /* with the setting's exit code `way` */
    CHOICE_GO,   /* the kubelet has ended what was deleted */
    CHOICE_DELETE,
    CHOICE_EVICT,
    CHOICE_EDIT, /* `index` of the setting's edits */
};

struct choice {
    enum choice_kind kind;
    int index, way;
};

extern struct world *world; /* the one there is */

void world_open(const struct world_setting *setting); /* the operator has not looked yet */
void world_close(void);

/* What may happen now; the number of choices. */
size_t world_choices(struct choice *ret_choices);
/* Whether less may happen then than before. */
bool world_spends(struct choice choice);
/* What happens next if nothing goes wrong any more. False: the world is at rest. */
bool world_calm_choice(struct choice *ret_choice);
void world_perform(struct choice choice);
/* A last pass must want nothing, and all must be as the job says. */
void world_check_rest(void);

/* Equal for two worlds that have the same future, if they allow the same. */
uint64_t world_hash(void);
/* Of a rest: of what is there, and of what is known of it. */
uint64_t world_hash_rest(void);
/* By enum allowed (allowance.h): at the beginning at most, and here. */
void world_most_allowed(int ret_most[]);
void world_allowance(int ret_left[]);
/* Whether a rest must show each failure that there was: nothing else has happened. */
bool world_failures_show(void);

/* ---- its parts ---- */

/* Of an object, in the one order in which several are shown before a pass (world_choices.c). */
uint64_t world_rank(enum cache_kind kind, const char *name);
uint64_t world_rank_of_event(size_t event);
bool world_wants_pass(void);

uint64_t hash_add(uint64_t hash, uint64_t value);
/* NULL: none. Times in it do not count: nothing that happens here depends on how long something
 * took, only on what was first. */
uint64_t hash_text(uint64_t hash, const char *text);
uint64_t world_hash_shown(void);

/* The server (world_objects.c, world_server.c). */

extern const struct executor_transport world_transport;
void server_publish_job(void);
void server_publish_service(const struct service *service, bool gone);
void server_publish_pod(const struct pod *pod, bool gone);
/* An array of what there is of this name: one object, or none. */
struct json *server_objects(enum cache_kind kind, const char *name);
void server_carry_out(enum choice_kind how); /* the first request, and its answer */
void server_take_events(void);
/* The first request: whether it changes something; whether it is about the object of this name. */
bool server_writes(void);
bool server_awaits(const char *name);
uint64_t server_hash_sent(void);
void server_list(void); /* all there is, to an empty cache */
/* Whether none before it is of the same object. */
bool server_may_show(size_t event);
void server_show(size_t event);

/* The operator (world_operator.c). */
void operator_start(void);
void operator_stop(void);
void operator_pass(void);
bool operator_waits(void);
/* A request of its plan about this pod went well; uid NULL: the answer does not say of which. */
void operator_expects(const char *name, const char *uid, bool gone);
uint64_t operator_hash(void);
#endif
