/* A cluster in which anything happens: pods start, end, are restarted, evicted and deleted, nodes
 * die, have bad hardware or refuse pods, clocks jump, users edit and delete; and an operator that
 * sees it late and in part, loses races and dies between any two actions. Everything follows from a
 * seed, and all of it is written down. */
#ifndef SHOAL_TESTS_OPERATOR_RECONCILE_SIMULATION_H
#define SHOAL_TESTS_OPERATOR_RECONCILE_SIMULATION_H

#include "base/str.h"
#include "tests/operator/cluster.h"

#define SIMULATION_MAX_UIDS     1024
#define SIMULATION_MAX_REPLICAS 8
#define SIMULATION_NODES        4
#define SIMULATION_MAX_FOREIGN  4

extern const char *const simulation_nodes[SIMULATION_NODES];

/* Something that made replicas leave, and which of them left for it. */
struct oracle_incident {
    bool of[REPLICA_TYPES][SIMULATION_MAX_REPLICAS];
    bool without_cause; /* only ends that a lost peer explains were seen */
};

/* The pod of a place that had ended before it ran, and was left the longest. */
struct oracle_keep {
    int64_t start_ms; /* the job's then */
    int64_t created_ms;
    int64_t kept_ms; /* for so long at least */
};

/* What was counted and is complete, by independent rules: tables of every pod and every incident
 * that ever was. */
struct oracle {
    bool left[SIMULATION_MAX_UIDS]; /* went by nobody's failure */
    struct oracle_incident incidents[SIMULATION_MAX_UIDS];
    size_t incident_count;
    int64_t incident_ms; /* of the last; 0: those that there are concern nobody any more */
    const char *uids[SIMULATION_MAX_UIDS];
    int32_t counted[SIMULATION_MAX_UIDS];
    size_t count;
    int32_t failures;
    bool completed[REPLICA_TYPES][SIMULATION_MAX_REPLICAS];
    /* what passes saw complete whose status was not written, as it waited for more */
    bool unwritten[REPLICA_TYPES][SIMULATION_MAX_REPLICAS];
    int64_t avoided_ms[SIMULATION_NODES]; /* since when; 0: it is not */
    int32_t hardware_leaves;
    int64_t hardware_ms; /* of the last leave that was counted */
    int64_t start_ms;    /* of the last time that the job began; 0: it has not */
    int64_t finished_ms; /* when it ended; 0: it has not */
    struct oracle_keep keeps[REPLICA_TYPES][SIMULATION_MAX_REPLICAS];
    int32_t preempted; /* the worker that went for worker 0 since that was seen to run; 0: none */
};

struct simulation {
    uint64_t random;
    uint64_t seed;
    struct cluster *truth;
    /* What the operator's caches hold: of each object some earlier state. Its job is the one that
     * was seen last. */
    struct cluster seen;
    struct oracle oracle;
    /* Pods of others under names that the job wants. They are in the operator's view alone, if it
     * has seen them, and in none of the tables. */
    struct pod foreign[SIMULATION_MAX_FOREIGN];
    bool foreign_seen[SIMULATION_MAX_FOREIGN];
    size_t foreign_count;
    bool refuses_status; /* the API server does, for now */
    bool stale_status;   /* the status seen is not the one that is stored */
    bool was_finished;
    bool is_pinned;     /* each pod can run on one node only */
    bool is_crowded;    /* pods wait long for a node */
    bool is_marked;     /* others mark nodes as bad */
    bool is_cursed;     /* bad hardware comes with the job, to each node */
    bool is_limited;    /* it may have a deadline and a TTL, which are drawn and edited */
    bool is_unwelcome;  /* kubelets refuse most of its pods before they run */
    int64_t pace_ms;    /* between two things that happen, at most twice this */
    int64_t skew_ms;    /* the clock that dates pods goes ahead of the operator's by this */
    bool again;         /* what was refused is no more: another pass is to tell */
    struct str history; /* what has happened, for people */
    /* For who tries too many histories to write each one down: */
    bool is_told;                             /* this one is */
    void (*tell_again)(struct simulation *s); /* called before a failure is told; NULL: not */
};

struct simulation *simulation_open(uint64_t seed); /* a job drawn from the seed */
void simulation_close(struct simulation *s);

int simulation_below(struct simulation *s, int bound);
bool simulation_chance(struct simulation *s, int percent);

/* One thing or two happen. */
void simulation_move(struct simulation *s);
/* The part of people in it; and what they have made under the job's names goes. */
void simulation_move_people(struct simulation *s);
void simulation_remove_foreign(struct simulation *s);
/* The one of others that has this name; NULL: none. */
const struct pod *simulation_foreign_pod(const struct simulation *s, const char *name);
/* Puts those that are seen behind the pods of the view; the number of the latter. */
size_t simulation_show_foreign(struct simulation *s);
/* What time does to the job; and its limits of time, if it is to have any: users change them. */
void simulation_draw_clocks(struct simulation *s);
void simulation_draw_limits(struct simulation *s);
void simulation_move_clock(struct simulation *s);
/* Its node may refuse a pod that has not run; whether it does. */
bool simulation_reject_pod(struct simulation *s, struct pod *pod);
/* How long nodes are avoided, and how pods come to them. */
void simulation_draw_nodes(struct simulation *s);
void simulation_move_signs(struct simulation *s);
/* With which code a container ends; and how: with EXIT_HARDWARE its agent may tell why. */
int simulation_exit_code(struct simulation *s);
struct pod_end simulation_pod_end(struct simulation *s, const char *container, int code);
/* What waits for a node and may go to one comes there. */
void simulation_schedule(struct simulation *s);
/* The scheduler looks at a pod that waits: it comes to a node, or is told why not. */
void simulation_move_waiting(struct simulation *s, struct pod *pod);
/* A pod was made by this action of a plan that leads to `history`: it is dated, and says which
 * nodes it avoids. */
void simulation_made_pod(struct simulation *s, const struct action *action,
                         const struct history *history);
/* Whether it is on a node that it was not made to avoid, and has work there. */
bool simulation_came_untold(const struct pod *pod);
/* What is being deleted goes, if its node is there to end it; without `all` not what
 * hangs there. */
void simulation_end_deleted(struct simulation *s, bool all);

/* The operator's caches catch up: fully, or of each object by chance (events are late, lost,
 * delivered twice). */
void simulation_look(struct simulation *s);
void simulation_glance(struct simulation *s);

/* The operator plans on what it sees and carries the plan out; with `troubles` it may die between
 * two actions. A status that is not written on top of the last one is refused, and
 * ends the pass. */
void simulation_pass(struct simulation *s, bool troubles);

/* A pass was stored over the status `before`. Judges what it counted, completed and began anew. */
void simulation_judge(struct simulation *s, const struct job_status *before,
                      const struct job_status *after);
/* A pass over the status `before` was held back. The operator remembers what it saw complete until
 * a status is stored, or until it dies: then call simulation_forget_held. */
void simulation_judge_held(struct simulation *s, const struct job_status *before);
void simulation_forget_held(struct simulation *s);
/* Whether the pass over the status `before` looked at its pods: it did not if the job was over,
 * wrong, or asleep; and whether it looked only for what is done, and at the deadline: the
 * specification was spoilt under way. */
bool simulation_is_active(const struct simulation *s, const struct job_status *before);
bool simulation_is_spoilt(const struct simulation *s, const struct job_status *before);
/* The part of clocks in it: when the job began, and when it ended. */
void simulation_judge_clocks(struct simulation *s, const struct job_status *before,
                             const struct job_status *after);
/* The part of nodes in it: those whose hardware is bad now, and those that are good again. */
void simulation_judge_nodes(struct simulation *s);
/* The part of room for worker 0 in it; and of a pod that is deleted. */
void simulation_judge_preemption(struct simulation *s, bool resumed);
void simulation_judge_deletion(struct simulation *s, const struct action *action);
/* By the table of that: whether the pod goes for worker 0; and whether none is made. */
bool simulation_makes_room(struct simulation *s, const struct pod *pod,
                           const struct job_status *status);
bool simulation_is_kept_out(const struct simulation *s, enum replica_type type, int32_t index,
                            const struct job_status *status);
/* Of a pod, by the oracle's tables: it goes because of its node; and its end comes from there. */
bool simulation_leaves_node(struct simulation *s, const struct pod *pod);
bool simulation_blames_node(struct simulation *s, const struct pod *pod);
/* How often it has failed by itself; whether its last end tells of a lost peer. */
int32_t simulation_failures_of(const struct pod *pod);
bool simulation_lost_peer(const struct pod *pod);
/* Whether it has a place in the job that is not done with; what was counted of it. */
bool simulation_has_open_place(const struct simulation *s, const struct pod *pod);
int32_t *simulation_counted(struct simulation *s, const struct pod *pod);
/* Whether nobody is left to end the pod, by the operator's options. */
bool simulation_is_lost(const struct cluster *cluster, const struct pod *pod);

/* The status that the last plan leads to; whether a gang scheduler lets the job's pods be made. */
const struct job_status *simulation_planned_status(const struct simulation *s);
/* Whether it has a place where it is, but for that of worker 0; how many a gang scheduler wants. */
bool simulation_is_well(struct simulation *s, const struct pod *pod,
                        const struct job_status *status);
int32_t simulation_gang_of(const struct job *job);
bool simulation_is_admitted(const struct cluster *cluster);

/* Ends the test if something is not as it must be, with the seed and all that has happened. */
void simulation_check_plan(struct simulation *s);
/* Of a plan: what is due by the clock is in it, and nothing before its time. */
void simulation_check_clocks(struct simulation *s);
/* Whether a plan deletes the pod with its grace period. */
bool simulation_deletes(const struct simulation *s, const struct pod *pod);
/* Another pass follows by then, as this is over (INT64_MAX: never). */
void simulation_check_wakes(struct simulation *s, int64_t by_ms, const char *limit);
/* Of a plan: who makes room for worker 0. */
void simulation_check_preemption(struct simulation *s);
void simulation_check_world(struct simulation *s);
void simulation_check_nodes(struct simulation *s);   /* the nodes that it avoids, of the world */
void simulation_check_rest(struct simulation *s);    /* nothing is left to do */
void simulation_check_overdue(struct simulation *s); /* nothing can be done about what hangs */
void simulation_fail(struct simulation *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define simulation_check(s, condition, ...)                                                        \
    do {                                                                                           \
        if (!(condition))                                                                          \
            simulation_fail((s), __VA_ARGS__);                                                     \
    } while (0)
#endif
