/* Agreement between ranks: each reports the result of its own work, and all succeed or fail for the
 * same reason. The messages are small and the caller waits for them: between steps only. */
#ifndef SHOAL_AGENT_COMM_AGREE_H
#define SHOAL_AGENT_COMM_AGREE_H

#include "agent/comm/comm.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* A result and its error, in a form that processes of one build can send to each other. */
struct outcome {
    int32_t failed;
    int32_t code; /* enum error_code */
    char msg[376];
};

/* result and *err as a function returned them. */
void outcome_set(struct outcome *outcome, int result, const struct error *err);
/* 0, or -1 and the error with "rank N: " before it; err->shared is set. */
int outcome_get(const struct outcome *outcome, int rank, struct error *err);

/* data[bytes] on every rank = rank 0's. Collective. */
int agree_broadcast(struct comm *comm, struct stream *stream, void *data, size_t bytes,
                    struct error *err);
/* recv[r * bytes ..] on every rank = rank r's send[bytes]; bytes is a multiple of 4. Collective. */
int agree_gather(struct comm *comm, struct stream *stream, const void *send, void *recv,
                 size_t bytes, struct error *err);

/* result, *err: of this rank's own work. Returns 0 if all ranks succeeded, else the error of the
 * lowest rank that failed, on every rank; ERR_PEER only if none has another. Collective. */
int agree_all(struct comm *comm, struct stream *stream, int result, struct error *err);
#endif
