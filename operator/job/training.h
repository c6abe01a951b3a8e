/* What a job's training says of itself: the numbers of status.training. Its agent tells them
 * (contract.h), and the operator keeps the last ones. Numbers only: no text of a pod gets into a
 * status this way, and into an event only words of few characters. Pure. */
#ifndef SHOAL_OPERATOR_JOB_TRAINING_H
#define SHOAL_OPERATOR_JOB_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the time of a process goes (contract.h), in the order of their names there. */
enum training_spent {
    TRAINING_SPENT_INITIALIZATION,
    TRAINING_SPENT_PEER_WAIT,
    TRAINING_SPENT_RESTORE,
    TRAINING_SPENT_DATA,
    TRAINING_SPENT_STEP,
    TRAINING_SPENT_LOST_WORK,
    TRAINING_SPENT_EVALUATION,
    TRAINING_SPENT_SAVE,
    TRAINING_SPENT_OTHER,
    TRAINING_SPENT_KINDS,
};
const char *training_spent_name(int kind);

/* In words, what an agent tells of the last hang: for an event, and not kept in a status. Each is
 * short and has letters, digits, blanks and ".-_" alone, or it is "". */
enum { TRAINING_WORD_BYTES = 64 };
struct training_hang {
    char pod[TRAINING_WORD_BYTES], phase[TRAINING_WORD_BYTES];
    char op[TRAINING_WORD_BYTES], unit[TRAINING_WORD_BYTES];
};

/* A row of training_fields each, but for hang and spent_ms. A count that is not known is -1, a real
 * number NaN, a time 0. All zero: nothing is known. */
struct training {
    bool known; /* anything of the below */
    int64_t step, steps;
    double epoch, loss, eval_loss;
    double tokens_per_s, samples_per_s, mfu;
    int64_t seconds_left;
    int64_t world_size;
    int64_t restarts;
    int64_t checkpoint_step, checkpoint_ms;
    int64_t hung_rank, hung_node; /* who makes no progress while others wait, and its node rank */
    /* Of the last rank that hung, also when it does so no more; hang_ms: when it was named. */
    int64_t hang_rank, hang_step, hang_collective, hang_ms;
    int64_t progress_ms;  /* when a step, evaluation or save ended last, by the pod's clock */
    int64_t process_ms;   /* when the process that tells began */
    int64_t resumed_step; /* steps that were done then */
    int64_t spent_ms[TRAINING_SPENT_KINDS]; /* since then; they add up */
    struct training_hang hang; /* the last: who keeps many keeps no words of those without a hang */
};

enum training_kind {
    TRAINING_COUNT, /* int64_t, not negative */
    TRAINING_REAL,  /* double */
    TRAINING_TIME,  /* int64_t, wall clock in ms, whole seconds unless it has digits */
};

struct training_field {
    const char *name; /* in the status and in what the agent tells */
    enum training_kind kind;
    size_t offset; /* in struct training */
    /* Of a real number: so many are significant, and no more are kept. Of a time: it has a fraction
     * of a second, of which the milliseconds are kept. */
    int digits;
    bool passes;  /* it says how the training goes now: not known while nothing trains */
    bool of_step; /* it is of the last step: not known of one that is told without it */
};

/* They end with a row without a name. */
extern const struct training_field training_fields[];

#define TRAINING_COUNT_MAX INT64_C(1000000000000000)
#define TRAINING_REAL_MAX  1e30

/* Nothing known yet, but that there is something to know. */
struct training training_open(void);

/* Sets a field, rounded as it is kept; false and nothing changed if the value is none that such a
 * field may have. */
bool training_set_count(struct training *training, const struct training_field *field,
                        int64_t value);
bool training_set_real(struct training *training, const struct training_field *field, double value);
bool training_set_time(struct training *training, const struct training_field *field,
                       int64_t wall_ms);

/* The same of the time that went to a kind. */
#define TRAINING_SPENT_MAX_S 1e9
bool training_set_spent(struct training *training, int kind, double seconds);

/* The same of a word of struct training_hang. */
bool training_set_word(char word[TRAINING_WORD_BYTES], const char *text);

/* Whether the field is known, and its value. */
bool training_has(const struct training *training, const struct training_field *field);
int64_t training_whole(const struct training *training, const struct training_field *field);
double training_real(const struct training *training, const struct training_field *field);

bool training_equal(const struct training *a, const struct training *b);
/* The same number of equal ones that are known, and of others another, but for one in 2^64. */
uint64_t training_digest(const struct training *training);

/* `told` came after what is in `training`: what it says counts. What it does not say stays, but for
 * how the training goes, and for the loss of a step before: that of this one may be NaN. */
void training_merge(struct training *training, const struct training *told);

/* Nothing trains: forgets how the training goes. */
void training_rest(struct training *training);
/* What tells next is the first process of a job that begins anew. */
void training_forget_process(struct training *training);

/* When the steps left will be done, by the pod's clock; 0: not known, or not in this century. */
int64_t training_end_ms(const struct training *training);

/* For people: "1200/5000", "1200" where the end is not known, "" without a step; "1h20m", "" if it
 * is not known. */
#define TRAINING_TEXT_BYTES 48
void training_progress_text(const struct training *training, char out[TRAINING_TEXT_BYTES]);
void training_left_text(const struct training *training, char out[TRAINING_TEXT_BYTES]);
/* "45s", "3m20s", "1h20m", "2d3h". */
void training_duration_text(int64_t seconds, char out[TRAINING_TEXT_BYTES]);
#endif
