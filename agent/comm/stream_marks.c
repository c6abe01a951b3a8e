#include "agent/comm/stream_marks.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdlib.h>

enum { FIRST_ROOM = 64 };

struct stream_marks {
    struct device *device;
    pthread_mutex_t lock;  /* guards what follows; never held while something is queued, which may
                              wait for the device */
    struct event **events; /* a ring: number n at n % capacity; kept for the next ones */
    uint64_t capacity, added, ended;
};

struct stream_marks *stream_marks_open(struct device *device)
{
    struct stream_marks *m = xcalloc(1, sizeof *m);
    m->device = device;
    m->capacity = FIRST_ROOM;
    m->events = xcalloc(m->capacity, sizeof *m->events);
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void stream_marks_close(struct stream_marks *m)
{
    if (!m)
        return;
    for (uint64_t i = 0; i < m->capacity; i++)
        event_close(m->events[i]);
    free(m->events);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* Twice the capacity; lock held. */
static void grow(struct stream_marks *m)
{
    struct event **events = xcalloc(2 * m->capacity, sizeof *events);
    for (uint64_t n = m->ended; n < m->added; n++)
        events[n % (2 * m->capacity)] = m->events[n % m->capacity];
    free(m->events);
    m->events = events;
    m->capacity *= 2;
}

int stream_marks_add(struct stream_marks *m, struct stream *stream, struct error *err)
{
    pthread_mutex_lock(&m->lock);
    if (m->added - m->ended == m->capacity) /* every event is in use */
        grow(m);
    struct event *event = m->events[m->added % m->capacity];
    pthread_mutex_unlock(&m->lock);
    if (!event && event_open(m->device, &event, err))
        return -1;
    event_record(event, stream);
    pthread_mutex_lock(&m->lock);
    m->events[m->added++ % m->capacity] = event;
    pthread_mutex_unlock(&m->lock);
    return 0;
}

uint64_t stream_marks_count(struct stream_marks *m)
{
    pthread_mutex_lock(&m->lock);
    while (m->ended < m->added && event_query(m->events[m->ended % m->capacity]))
        m->ended++;
    uint64_t ended = m->ended;
    pthread_mutex_unlock(&m->lock);
    return ended;
}
