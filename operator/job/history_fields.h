/* The fields of struct history and of struct replica_history, a row each. Copying, comparing and
 * printing a history follow from the rows. So do manifest_status, which writes it, and
 * decode_status, which reads it. So does manifest_lost_history, which says what of it an older
 * CustomResourceDefinition dropped. Whoever adds a field adds its row here and its property to the
 * CustomResourceDefinition. */
#ifndef SHOAL_OPERATOR_JOB_HISTORY_FIELDS_H
#define SHOAL_OPERATOR_JOB_HISTORY_FIELDS_H

#include "operator/job/types.h"

struct str;

enum history_kind {
    HISTORY_PRESENCE, /* bool: whether there is a history at all */
    HISTORY_FLAG,     /* bool */
    HISTORY_COUNT,    /* int32_t, not negative */
    HISTORY_TIME,     /* int64_t, wall clock in ms; 0: none. Written as RFC 3339 */
    HISTORY_TEXT,     /* const char *, not NULL */
    HISTORY_TYPE,     /* enum replica_type */
    HISTORY_COUNTS,   /* int32_t[REPLICA_TYPES]: an object by replica type */
    HISTORY_INDICES,  /* completed: an object by replica type, of texts like "0-2,5" */
    HISTORY_RECORDS,  /* replicas: an array of objects, by replica_history_fields */
    HISTORY_NODES,    /* avoided: an object of times, by name of the node */
};

struct history_field {
    const char *member; /* the C field */
    const char *count;  /* the C field that counts its elements; NULL: there is none */
    const char *name;   /* in the status; NULL: not written */
    enum history_kind kind;
    size_t offset;             /* in its struct */
    const char *print;         /* printed before the value; NULL: not printed */
    bool compares_to_failures; /* printed if it differs from history.failures, else if it is not
                                  zero */
    bool always;               /* written even if it is zero */
};

/* In the order in which they are printed; they end with a row without `member`. */
extern const struct history_field history_fields[], replica_history_fields[];
#define HISTORY_FIELDS_MAX 16 /* rows of one table, the end included */

/* The history as plan_print shows it: " failures=1 worker-0:UID:1+0 ...". */
void history_print(const struct history *history, struct str *out);
#endif
