/* What every rank tells rank 0 each second: where in the run it is. One line of text, which travels
 * in a heartbeat. Pure. */
#ifndef SHOAL_AGENT_HEALTH_RANK_REPORT_H
#define SHOAL_AGENT_HEALTH_RANK_REPORT_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* What a rank does, as its host sees it. */
enum rank_phase {
    RANK_START,      /* opens device, model and data; loads a checkpoint */
    RANK_FIRST_STEP, /* the first step of this process: libraries are loaded, memory is touched */
    RANK_STEP,
    RANK_DATA, /* waits for the next batch */
    RANK_EVALUATION,
    RANK_SAVE,
    RANK_SNAPSHOT, /* a checkpoint in memory */
    RANK_TRACE,    /* writes what the profiler recorded */
    RANK_END,      /* trains no more: writes the model, closes */
    RANK_PHASES,
};
const char *rank_phase_name(enum rank_phase phase); /* "start", "first step", ... */

enum { RANK_OP_BYTES = 24, RANK_UNIT_BYTES = 48 };

struct rank_report {
    int64_t step; /* optimizer steps done in the whole run */
    enum rank_phase phase;
    unsigned passed;            /* bit p: this process has been in phase p and has left it */
    uint64_t entered, ended;    /* collectives of this process; entered > ended: it is in one */
    int64_t compute_us;         /* spent in forward and backward so far, waits left out */
    int64_t steps;              /* of this process */
    int node, pid;              /* node: the pod's number; pid: in that pod */
    char op[RANK_OP_BYTES];     /* of the last collective entered; "": none yet */
    char unit[RANK_UNIT_BYTES]; /* whose tensors that moves; "": of none */
};

static inline bool rank_report_is_in_collective(const struct rank_report *report)
{
    return report->entered > report->ended;
}

/* Adds "17, all_gather of layers.3", or "none". */
void rank_report_add_collective(const struct rank_report *report, struct str *out);
/* Adds "phase data at step 12; its last collective: 17, all_gather of layers.3". */
void rank_report_describe(const struct rank_report *report, struct str *out);

void rank_report_write(const struct rank_report *report, char *text, int bytes);
/* Errors: ERR_INPUT if the text is no report. */
int rank_report_read(const char *text, struct rank_report *ret_report, struct error *err);
#endif
