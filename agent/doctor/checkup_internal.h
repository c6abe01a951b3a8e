/* What the files that judge share. Private to agent/doctor/checkup*.c. */
#ifndef SHOAL_AGENT_DOCTOR_CHECKUP_INTERNAL_H
#define SHOAL_AGENT_DOCTOR_CHECKUP_INTERNAL_H

#include "agent/doctor/checkup.h"

/* Adds a row; valid until checkup_make() is called again. */
struct check_row *checkup_add(struct checkup *c, enum check_status status, const char *what,
                              const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Adds to what was found. */
void checkup_more(struct check_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Gives it what it means and the mend. */
void checkup_explain(struct check_row *row, const char *means, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum { CHECK_REASON_BYTES = 512 };
/* Why a library cannot be used, without where it could come from, which the mend says better.
 * Returns out. */
const char *checkup_reason(const struct library_facts *library, char out[CHECK_REASON_BYTES]);

/* Rows of the driver, the backend and the GPUs. Returns whether training would use GPUs. */
bool checkup_gpus(const struct doctor_facts *facts, struct checkup *c);
/* Rows of the libraries, and of NCCL's rules. What is missing is fatal only with c->uses_gpus. */
void checkup_libraries(const struct doctor_facts *facts, struct checkup *c);
#endif
