/* Ranks telling each other how something went that they did not do together, so that all of them
 * succeed or fail, and for the same reason. Small messages, waited for; between steps only. */
#ifndef SHOAL_AGENT_AGREE_H
#define SHOAL_AGENT_AGREE_H

#include "agent/comm/comm.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a rank's work ended, in a form that can be sent between processes of one build. */
struct outcome {
    int32_t failed;
    int32_t code; /* enum error_code */
    char msg[376];
};

/* result and *err as a function returned them. */
void outcome_set(struct outcome *outcome, int result, const struct error *err);
/* 0, or -1 and the failure with "rank N: " before it, as one that all ranks share. */
int outcome_get(const struct outcome *outcome, int rank, struct error *err);

/* data[bytes] on every rank = rank 0's. Collective. */
int agree_broadcast(struct comm *comm, struct stream *stream, void *data, size_t bytes,
                    struct error *err);
/* recv[r * bytes ..] on every rank = rank r's send[bytes]; bytes is a multiple of 4. Collective. */
int agree_gather(struct comm *comm, struct stream *stream, const void *send, void *recv,
                 size_t bytes, struct error *err);

/* Every rank's result of work that each did for itself: 0 if it is on all, else the failure of the
 * first rank that failed, on all. Collective. */
int agree_all(struct comm *comm, struct stream *stream, int result, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
