/* A cluster in which anything happens: pods start, end, are restarted, evicted and deleted, nodes
 * die, clocks jump, users edit; and an operator that sees it late and in part, loses races and dies
 * between any two actions. Everything follows from a seed, and all of it is written down. */
#ifndef SHOAL_TESTS_OPERATOR_RECONCILE_SIMULATION_H
#define SHOAL_TESTS_OPERATOR_RECONCILE_SIMULATION_H

#include "base/str.h"
#include "tests/operator/cluster.h"

#define SIMULATION_MAX_UIDS     1024
#define SIMULATION_MAX_REPLICAS 8

/* Something that made replicas leave, and which of them left for it. */
struct oracle_incident {
    bool of[REPLICA_TYPES][SIMULATION_MAX_REPLICAS];
    bool without_cause; /* only ends that a lost peer explains were seen */
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
};

struct simulation {
    uint64_t random;
    uint64_t seed;
    struct cluster *truth;
    struct cluster seen; /* what the operator's caches hold: of each object some earlier state */
    struct oracle oracle;
    bool stale_status; /* the status seen is not the one that is stored */
    bool was_finished;
    struct str history; /* what has happened, for people */
};

struct simulation *simulation_open(uint64_t seed); /* a job drawn from the seed */
void simulation_close(struct simulation *s);

int simulation_below(struct simulation *s, int bound);
bool simulation_chance(struct simulation *s, int percent);

/* One thing or two happen. */
void simulation_move(struct simulation *s);
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
/* Whether nobody is left to end the pod, by the operator's options. */
bool simulation_is_lost(const struct cluster *cluster, const struct pod *pod);

/* Ends the test if something is not as it must be, with the seed and all that has happened. */
void simulation_check_plan(struct simulation *s);
void simulation_check_world(struct simulation *s);
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
