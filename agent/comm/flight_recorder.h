/* The last collectives of a rank, as a ring: what is told when one of them does not end. Pure. */
#ifndef SHOAL_AGENT_COMM_FLIGHT_RECORDER_H
#define SHOAL_AGENT_COMM_FLIGHT_RECORDER_H

#include "base/str.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { COLLECTIVE_ID_BYTES = 48 };

struct flight_record {
    const char *op;
    char id[COLLECTIVE_ID_BYTES]; /* of the communicator */
    uint64_t number;              /* of the collective in it */
    int64_t bytes;                /* of this rank's part */
    int64_t queued_ms;
    int64_t ended_ms; /* -1: it has not */
};

struct flight_recorder;

struct flight_recorder *flight_recorder_open(int size);       /* >= 1 */
void flight_recorder_close(struct flight_recorder *recorder); /* NULL-safe */

/* Takes the oldest one's place if there is no room. op outlives the recorder. */
void flight_recorder_add(struct flight_recorder *recorder, const char *op, const char *id,
                         uint64_t number, int64_t bytes, int64_t now_ms);
/* Nothing happens if it is not there any more. */
void flight_recorder_end(struct flight_recorder *recorder, const char *id, uint64_t number,
                         int64_t now_ms);
/* NULL if it is not there any more. */
const struct flight_record *flight_recorder_find(const struct flight_recorder *recorder,
                                                 const char *id, uint64_t number);

/* A line for each of the last `most`, oldest first: "all_gather 12 of world, 4096 bytes: ended
 * after 3 ms"; or "runs for 90000 ms", the first of a communicator that has not ended; or "waits".
 */
void flight_recorder_print(const struct flight_recorder *recorder, int most, int64_t now_ms,
                           struct str *out);

#ifdef __cplusplus
}
#endif
#endif
