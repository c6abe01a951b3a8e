/* The file that the kubelet reads when a container ends, and shows as its termination message. It
 * always has the run's last numbers, as a process that is killed has no time to write. So they
 * outlive the pod. Failing to write it is nobody's concern but the reader's. */
#ifndef SHOAL_AGENT_TELEMETRY_TERMINATION_LOG_H
#define SHOAL_AGENT_TELEMETRY_TERMINATION_LOG_H

#include "base/str.h"

#include <stdint.h>

/* Where a container has it unless its manifest says otherwise (terminationMessagePath). */
#define TERMINATION_LOG_PATH "/dev/termination-log"

enum { TERMINATION_LOG_INTERVAL_MS = 5000, TERMINATION_LOG_WHY_BYTES = 1024 };

struct termination_log;

/* NULL: the file is not there, or not ours to write. */
struct termination_log *termination_log_open(const char *path);
void termination_log_close(struct termination_log *log); /* NULL-safe */

/* The file's text becomes what went wrong (NULL: nothing did; cut to one line of
 * TERMINATION_LOG_WHY_BYTES) and the numbers, a line of JSON. */
void termination_log_write(struct termination_log *log, const char *why, const char *numbers);

/* For a launcher, whose ranks have ended. What the file says of the end becomes `why` (cut as
 * above) and below it as many of the last of `lines` as there is room for. The numbers stay. */
void termination_log_explain(const char *path, const char *why, const char *lines);
/* Its text, of TRAINING_MAX_BYTES at most. before: the file's. Pure. */
void termination_log_text(const char *before, const char *why, const char *lines, struct str *out);
#endif
