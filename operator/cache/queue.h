/* A rate-limited delaying work queue of job keys, as client-go's workqueue. A key is in it once at
 * most, with its earliest time. While a worker has the key it is not handed out again: what is
 * added meanwhile waits for queue_done. Failures back off exponentially per key. Pure: time is an
 * argument. The queue drops a key once it has no time, no worker and no failures. So it holds no
 * more keys than its caller knows (the operator: CACHE_MAX_OBJECTS of each kind).
 *
 * Each key waits in one of two lanes, which the caller pops separately to give each a share of the
 * workers: a thousand patient keys do not delay an urgent one, and urgent keys do not
 * starve them. */
#ifndef SHOAL_OPERATOR_CACHE_QUEUE_H
#define SHOAL_OPERATOR_CACHE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;

enum queue_lane { QUEUE_URGENT, QUEUE_PATIENT };
#define QUEUE_LANES 2

/* The backoff after a key's first failure; it doubles with each further one up to the maximum. */
struct queue *queue_open(int64_t backoff_first_ms, int64_t backoff_max_ms);
void queue_close(struct queue *queue); /* NULL-safe */

/* Adds a key, or moves it to this lane and to the earlier of both times. */
void queue_add(struct queue *queue, const char *key, enum queue_lane lane, int64_t at_ms);
/* The earliest due key of this lane that no worker has (of equal ones the first added), or NULL.
 * The caller is its worker until queue_done; the text lives until then. */
const char *queue_pop(struct queue *queue, enum queue_lane lane, int64_t now_ms);
/* The worker is done with a popped key, without success or failure: its backoff stays. */
void queue_done(struct queue *queue, const char *key);
/* The worker failed: done, and added again after the key's next backoff, or earlier if it was added
 * meanwhile. Returns that time. */
int64_t queue_failed(struct queue *queue, const char *key, int64_t now_ms);
void queue_succeeded(struct queue *queue, const char *key); /* done, and the backoff is reset */
/* The job was deleted: drops the key and its backoff. If a worker has it, queue_done
 * must follow. */
void queue_forget(struct queue *queue, const char *key);

/* When the next key of this lane is due; INT64_MAX: the lane is empty. */
int64_t queue_due(const struct queue *queue, enum queue_lane lane);
/* Keys of both lanes that are due and have no worker. Keys in backoff or with a later deadline do
 * not count. */
size_t queue_length(const struct queue *queue, int64_t now_ms);
#endif
