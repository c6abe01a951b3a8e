/* The flight recorder: a ring buffer of a rank's last collectives, printed when one does not end,
 * as PyTorch's. Pure. */
#ifndef SHOAL_AGENT_COMM_FLIGHT_RECORDER_H
#define SHOAL_AGENT_COMM_FLIGHT_RECORDER_H

#include "base/str.h"

#include <stdint.h>

enum { COLLECTIVE_ID_BYTES = 48 };

struct flight_record {
    const char *op;
    char id[COLLECTIVE_ID_BYTES]; /* of the communicator */
    uint64_t number;              /* of the collective in it */
    int64_t bytes;                /* of this rank's part */
    int64_t queued_ms;
    int64_t ended_ms; /* -1: it has not ended */
};

struct flight_recorder;

struct flight_recorder *flight_recorder_open(int size);       /* >= 1 */
void flight_recorder_close(struct flight_recorder *recorder); /* NULL-safe */

/* Overwrites the oldest record if the buffer is full. op: a string literal. */
void flight_recorder_add(struct flight_recorder *recorder, const char *op, const char *id,
                         uint64_t number, int64_t bytes, int64_t now_ms);
/* Does nothing if the record was overwritten. */
void flight_recorder_end(struct flight_recorder *recorder, const char *id, uint64_t number,
                         int64_t now_ms);
/* NULL if the record was overwritten. */
const struct flight_record *flight_recorder_find(const struct flight_recorder *recorder,
                                                 const char *id, uint64_t number);

/* A line for each of the last `most`, oldest first: "all_gather 12 of world, 4096 bytes: ended
 * after 3 ms"; or "runs for 90000 ms", the first of a communicator that has not
 * ended; or "waits". */
void flight_recorder_print(const struct flight_recorder *recorder, int most, int64_t now_ms,
                           struct str *out);
#endif
