/* Which job is to be looked at, and when: a delay queue of keys. A key is in it at most once, with
 * its earliest time; while it is being worked on it is held back, and what is added meanwhile
 * counts afterwards. Failures back off per key. Pure: time is an argument. Holds as many keys as
 * its user names (the operator: those of jobs and children that the cache takes, so at most
 * CACHE_MAX_OBJECTS of each kind); one is dropped once nothing is known of it any more.
 *
 * Keys wait in one of two lanes, each popped on its own, so that the user can give each a share of
 * the work: an urgent key need not wait for a thousand patient ones, nor they for ever. */
#ifndef SHOAL_OPERATOR_CACHE_QUEUE_H
#define SHOAL_OPERATOR_CACHE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct queue;

enum queue_lane { QUEUE_URGENT, QUEUE_PATIENT };
#define QUEUE_LANES 2

/* The backoff after the first failure of a key, doubled with each one after it up to the most. */
struct queue *queue_open(int64_t backoff_first_ms, int64_t backoff_max_ms);
void queue_close(struct queue *queue); /* NULL-safe */

/* The lane is the key's from now on, whatever it was. */
void queue_add(struct queue *queue, const char *key, enum queue_lane lane, int64_t at_ms);
/* The earliest due key of this lane that is not worked on, of equal ones the one that was added
 * first; NULL: none. It is then worked on until queue_done; the text lives until then. */
const char *queue_pop(struct queue *queue, enum queue_lane lane, int64_t now_ms);
/* The work is over (the key was popped), neither well nor badly: the backoff stays as it is. */
void queue_done(struct queue *queue, const char *key);
/* The work failed: done, and added again after this key's next backoff, or earlier if it was added
 * meanwhile. Returns that time. */
int64_t queue_failed(struct queue *queue, const char *key, int64_t now_ms);
void queue_succeeded(struct queue *queue, const char *key); /* done, and the backoff is forgotten */
/* The job is gone: it waits no more and its backoff is forgotten. If it is worked on, queue_done is
 * still to come. */
void queue_forget(struct queue *queue, const char *key);

/* When the next key of this lane is due; INT64_MAX: nothing waits in it. */
int64_t queue_due(const struct queue *queue, enum queue_lane lane);
/* Keys of both lanes that are due and not worked on; one that waits for its time, be it a backoff
 * or a deadline, is no backlog. */
size_t queue_length(const struct queue *queue, int64_t now_ms);

#ifdef __cplusplus
}
#endif
#endif
