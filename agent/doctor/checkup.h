/* What `shoal-agent doctor` says of what it found: for each thing whether it will do, what it means
 * for training if it will not, and the mend. Pure: doctor_facts.h's findings in, rows out. */
#ifndef SHOAL_AGENT_DOCTOR_CHECKUP_H
#define SHOAL_AGENT_DOCTOR_CHECKUP_H

#include "agent/doctor/doctor_facts.h"

enum check_status {
    CHECK_OK,
    CHECK_WARNING, /* it works: slower, or not for all that there is */
    CHECK_MISSING,
    CHECK_TOO_OLD,
    CHECK_BROKEN,
};
const char *check_status_name(enum check_status status); /* "ok", "too old" */

struct check_row {
    enum check_status status;
    bool is_fatal;   /* training cannot start */
    char what[24];   /* "driver", "GPU 0", "cuBLASLt" */
    char found[600]; /* one line */
    char means[200]; /* for training; "": nothing */
    char mend[300];  /* "": nothing is to be done */
};

enum { CHECKUP_ROWS = GPU_SURVEY_GPUS + 32 };

struct checkup {
    struct check_row rows[CHECKUP_ROWS];
    int count;
    bool uses_gpus; /* training would */
    bool can_train;
};

/* Judges the findings. GPUs that the machine has and training would not use are fatal unless they
 * are hidden or the CPU was asked for: `--device auto` would train on the CPU, which nobody means
 * there. */
void checkup_make(const struct doctor_facts *facts, struct checkup *ret);
#endif
