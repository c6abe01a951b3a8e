/* Progress reports: where the run is, sent as a JSON datagram to whoever started this process
 * (contract.h). Nobody listening is normal; a report that does not fit into the socket's queue is
 * dropped, never waited for. */
#ifndef SHOAL_AGENT_REPORT_PROGRESS_H
#define SHOAL_AGENT_REPORT_PROGRESS_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct progress_report {
    int64_t epoch, epochs; /* 1-based; epoch 0: before any step, of the others the last two count */
    int64_t step, steps;   /* optimizer steps done, of the whole run */
    double loss;           /* mean per sample */
    double samples_per_s;  /* all ranks */
    double seconds_left;
    int world_size;
    const char *url; /* where the run is served; NULL or "": nowhere */
};

struct progress;

/* path: of a Unix datagram socket, or NULL: then every send does nothing. Never fails: a socket
 * that is not there is nobody listening. */
struct progress *progress_open(const char *path);
void progress_close(struct progress *progress); /* NULL-safe */
void progress_send(struct progress *progress, const struct progress_report *report);
void progress_send_text(struct progress *progress, const char *text);
bool progress_is_heard(const struct progress *progress); /* somebody listens */

/* The datagram's text. Pure. */
void progress_format(const struct progress_report *report, struct str *out);
#endif
