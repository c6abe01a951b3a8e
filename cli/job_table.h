/* Many jobs as a table: which of them, in which order, and what it looks like. Pure. */
#ifndef SHOAL_CLI_JOB_TABLE_H
#define SHOAL_CLI_JOB_TABLE_H

#include "base/str.h"
#include "cli/job_facts.h"

enum job_sort {
    JOB_SORT_NAME,     /* by namespace and name */
    JOB_SORT_AGE,      /* the youngest first */
    JOB_SORT_STEP,     /* the one that has come furthest first */
    JOB_SORT_ETA,      /* the one that ends first */
    JOB_SORT_GOODPUT,  /* the worst first */
    JOB_SORT_GPUS,     /* the most first */
    JOB_SORT_RESTARTS, /* the most first */
    JOB_SORTS,
};
extern const char *const job_sort_names[]; /* NULL ends them */

struct job_table {
    const struct job_facts *jobs;
    size_t count;
    int sort; /* enum job_sort; of equals by name */
    bool reverse;
    const char *filter; /* only jobs with it in name, namespace or state; NULL: all */
    bool with_namespace;
};

/* Those of the table in its order; jobs of which the key is not known are last, reversed or not.
 * *ret_jobs has room for table->count. Returns how many. */
size_t job_table_select(const struct job_table *table, const struct job_facts **ret_jobs);

/* A title and a row for each job. Columns give way where there is little room. */
void job_table_render(const struct job_facts *const *jobs, size_t count, bool with_namespace,
                      int columns, int64_t now_ms, struct str *out);

/* "3 jobs: 2 Running, 1 Failed; 24 GPUs", the GPUs of those that are not over. */
void job_table_count(const struct job_facts *const *jobs, size_t count, struct str *out);
#endif
