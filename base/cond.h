/* Condition variables with deadlines on the monotonic clock, which never jumps. */
#ifndef SHOAL_BASE_COND_H
#define SHOAL_BASE_COND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void cond_init(pthread_cond_t *cond);

/* Waits with the mutex held, as pthread_cond_wait: also wakes for no reason. Returns false once
 * clock_monotonic_ms() has reached the deadline. */
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_ms);
#endif
