/* Which job is to be looked at, and when: a delay queue of keys. A key is in it at most once, with
 * its earliest time; while it is being worked on it is held back, and what is added meanwhile
 * counts afterwards. Failures back off per key. Pure: time is an argument. */
#ifndef SHOAL_OPERATOR_QUEUE_H
#define SHOAL_OPERATOR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct queue;

struct queue *queue_open(int64_t backoff_first_ms, int64_t backoff_max_ms);
void queue_close(struct queue *queue);

void queue_add(struct queue *queue, const char *key, int64_t at_ms);
/* The earliest due key that is not worked on; NULL: none. It is then worked on until queue_done;
 * the text lives until then. */
const char *queue_pop(struct queue *queue, int64_t now_ms);
void queue_done(struct queue *queue, const char *key);
/* The work failed: done, and added again after this key's next backoff. Returns that time. */
int64_t queue_failed(struct queue *queue, const char *key, int64_t now_ms);
void queue_succeeded(struct queue *queue, const char *key); /* done, and the backoff is forgotten */
void queue_forget(struct queue *queue, const char *key);    /* the job is gone */

int64_t queue_due(const struct queue *queue); /* INT64_MAX: nothing waits */
size_t queue_length(const struct queue *queue);

#ifdef __cplusplus
}
#endif
#endif
