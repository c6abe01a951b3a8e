/* A run's progress for Kubeflow Trainer, which shows it in TrainJob.status.trainerStatus. The pods
 * of a TrainJob are given an HTTPS address, the file of its CA and that of a token
 * (KUBEFLOW_TRAINER_SERVER_URL, _CA_CERT, _TOKEN; the controller's feature gate TrainJobStatus). A
 * thread of its own posts what it was given last, every few seconds at most, and the last of all at
 * the end; both files are read for each request, as they are renewed. What cannot be posted is
 * logged once: training goes on. Protocol: kubeflow/trainer, proposal 2779. */
#ifndef SHOAL_AGENT_TELEMETRY_TRAINJOB_STATUS_H
#define SHOAL_AGENT_TELEMETRY_TRAINJOB_STATUS_H

#include "agent/telemetry/run_state.h"
#include "base/error.h"
#include "base/str.h"

enum { TRAINJOB_STATUS_INTERVAL_MS = 5000 };

/* Texts are used until close. */
struct trainjob_status_setting {
    const char *url; /* NULL or "": nobody asks */
    const char *ca_file, *token_file;
    int interval_ms; /* between two requests */
};

struct trainjob_status;

/* Errors: a file that is not named; no thread. */
int trainjob_status_open(struct trainjob_status **ret_status,
                         const struct trainjob_status_setting *setting, struct error *err);
/* Posts the last body if it was not, which takes a few seconds at most. NULL-safe. */
void trainjob_status_close(struct trainjob_status *status);

/* To be posted in the place of what waits. Copies. */
void trainjob_status_publish(struct trainjob_status *status, const char *body);

/* The body: progress in percent (100 only if the run is done), seconds that remain, and the last
 * numbers; what is not known is left out. Pure. */
void trainjob_status_format(const struct run_state *state, bool is_done, struct str *out);
#endif
