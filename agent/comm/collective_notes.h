/* The last collectives of a rank, as a ring: what is told when one of them does not end. Pure. */
#ifndef SHOAL_AGENT_COLLECTIVE_NOTES_H
#define SHOAL_AGENT_COLLECTIVE_NOTES_H

#include "base/str.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { COLLECTIVE_ID_BYTES = 48 };

struct collective_note {
    const char *op;
    char id[COLLECTIVE_ID_BYTES]; /* of the communicator */
    uint64_t number;              /* of the collective in it */
    int64_t bytes;                /* of this rank's part */
    int64_t queued_ms;
    int64_t ended_ms; /* -1: it has not */
};

struct collective_notes;

struct collective_notes *collective_notes_open(int size);    /* >= 1 */
void collective_notes_close(struct collective_notes *notes); /* NULL-safe */

/* Takes the oldest one's place if there is no room. op outlives the notes. */
void collective_notes_add(struct collective_notes *notes, const char *op, const char *id,
                          uint64_t number, int64_t bytes, int64_t now_ms);
/* Nothing happens if it is not there any more. */
void collective_notes_end(struct collective_notes *notes, const char *id, uint64_t number,
                          int64_t now_ms);
/* NULL if it is not there any more. */
const struct collective_note *collective_notes_find(const struct collective_notes *notes,
                                                    const char *id, uint64_t number);

/* A line for each of the last `most`, oldest first: "all_gather 12 of world, 4096 bytes: ended
 * after 3 ms"; or "runs for 90000 ms", the first of a communicator that has not ended; or "waits".
 */
void collective_notes_print(const struct collective_notes *notes, int most, int64_t now_ms,
                            struct str *out);

#ifdef __cplusplus
}
#endif
#endif
