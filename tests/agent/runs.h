/* Whole training runs, with ranks as threads of the test. */
#ifndef SHOAL_TESTS_AGENT_RUNS_H
#define SHOAL_TESTS_AGENT_RUNS_H

#include "agent/trainer/trainer.h"
#include "base/mem.h"
#include "tests/agent/doom.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    RUNS_MAX_RANKS = 8,
    RUNS_MAX_STEPS = 64,
    RUNS_TRAIN_ROWS = 48,
    RUNS_TEST_ROWS = 12,
    RUNS_WINDOWS = 40
};

/* Of a table of many whole runs, builds with a sanitizer do each fourth: sanitizers look at threads
 * and memory, not at numbers, and take minutes for what else takes seconds. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { RUNS_EACH = 4 };
#else
enum { RUNS_EACH = 1 };
#endif

/* What one rank saw. Only rank 0's is looked at, but each has its own. */
struct seen {
    double loss[RUNS_MAX_STEPS];          /* of this rank's rows, by step - 1 */
    double norm[RUNS_MAX_STEPS];          /* of the gradient; NaN: not measured */
    int64_t fresh_blocks[RUNS_MAX_STEPS]; /* asked of the system by then */
    int64_t all_reduces[RUNS_MAX_STEPS];  /* so far, by then */
    long memory_calls[RUNS_MAX_STEPS];    /* of the emulated GPU by then, by all ranks; else 0 */
    double epoch;                         /* as the last step told it */
    double epoch_loss, test_loss, test_samples;
    double score[RUNS_MAX_STEPS]; /* the loss as an evaluation told it behind that step */
    int steps, tests, resumed_step, last_step; /* tests: evaluations */
    int64_t nonfinite_steps, skipped_steps;
    char skipped[1024]; /* what was passed over, if that may be */
    char differs[256], save_failed[512];
    char notice[1024], info[1024]; /* the last ones */
    char slots[256];               /* the notice of reduction slots that nobody asked for */
    char fatal[256]; /* the one of a step in which the run has ended again and again */
    int saves, began_anew;
    bool from_memory; /* where it resumed from */
    int steps_lost;
    unsigned events; /* bits of enum run_event */
    unsigned phases; /* those that it has left: bits of enum rank_phase */
    bool has_died;   /* of its doom */
    struct trainer_facts facts;
    /* NULL, or called on the rank's thread when a checkpoint is there. */
    void (*after_save)(struct seen *seen, int64_t step);
    const char *data; /* for after_save */
    bool may_skip;
    int die_after_step; /* so that the next one fails on all ranks; 0: never */
    int stop_at_step;   /* stop_requested says yes from this step on; 0: never */
    bool stops_in_evaluation, is_asked_to_stop; /* likewise, from the first evaluation on */
    struct memory_use memory;
};

struct run {
    const struct agent_config *config;
    int size;
    int local_sizes[RUNS_MAX_RANKS];   /* ranks of each rank's node; 0: all */
    const char *nodes[RUNS_MAX_RANKS]; /* name of each rank's node; NULL: nobody has told */
    int memory_fds[RUNS_MAX_RANKS];    /* that outlives each rank; 0: none */
    /* What each rank is told that is left; all 0: what really is. */
    struct memory_bound memory_left[RUNS_MAX_RANKS][MEMORY_BOUNDS];
    int64_t step_us; /* that a step takes, and all else 1 us; 0: what it really takes */
    struct doom dooms[RUNS_MAX_RANKS]; /* all 0: each rank lives to the end */
    _Atomic int
        doomed; /* that live: the last one's end is told to the others, as a job's would be */
    bool restarted;
    bool over_nccl;   /* each rank has a GPU of its own, and the store by which NCCL's ranks meet */
    int min_ranks;    /* of an elastic run; 0: it is none */
    int slots;        /* likewise, that its launchers have agreed on; 0: none */
    const char *name; /* the run's id; NULL: none is known */
    struct comm_local *group;
    struct seen seen[RUNS_MAX_RANKS];
    int result[RUNS_MAX_RANKS];
    struct error err[RUNS_MAX_RANKS];
};

/* cmocka's setup and teardown of a group: *state is a directory with a small image data set. */
int runs_make_images(void **state);
/* The same with train.bin, RUNS_WINDOWS windows of 16 ids, and eval.bin, 7 of them. */
int runs_make_tokens(void **state);
/* The same with rows/train.jsonl, 5 rows of text and summary, of different lengths. */
int runs_make_rows(void **state);
int runs_remove(void **state);

/* The configuration of all image tests, then `flags`. The same global batch of 12 samples at any
 * world size. */
void runs_configure(struct config *config, struct arena *arena, const char *data, int size,
                    const char *flags);
/* A small Llama; windows of 16 tokens, of which 12 are a global batch: an epoch is 4 steps, the
 * last with 4 windows. */
void runs_configure_language(struct config *config, struct arena *arena, const char *data, int size,
                             const char *flags);
/* Runs run->config on run->size ranks; results and errors are in `run`. */
void runs_start(struct run *run);
/* Both, and fails the test if a rank fails. */
void runs_do(struct run *run, struct arena *arena, const char *data, int size, const char *flags);
/* The loss of a step, counted from 0, over all ranks' rows, which are equally many. */
double runs_step_loss(const struct run *run, int step);
void runs_do_language(struct run *run, struct arena *arena, const char *data, int size,
                      const char *flags);

/* A run as one of a table. */
struct runs_case {
    const char *name;
    int (*make_data)(void **state); /* one of the above */
    void (*train)(struct run *run, struct arena *arena, const char *data, int size,
                  const char *flags); /* likewise */
    int size;
    const char *rows; /* a data set below `data`, instead of the usual one; NULL: none */
    const char *flags;
};
/* Does it on the device of the tests, with `more` flags. */
void runs_do_case(const struct runs_case *c, struct run *run, struct arena *arena, const char *data,
                  const char *more);

#endif
