/* Two events to each place on the device: compute waits until what it takes has come, the copy of
 * the next one but one waits until compute is done with it. That is known when the next one is
 * taken: all that reads this one was queued before. */
#include "agent/batches/feed.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct place {
    void *memory;         /* on the device */
    struct event *filled; /* on `copies` */
    struct event *read;   /* on `compute` */
};

struct feed {
    struct stream *compute, *copies;
    size_t bytes; /* of a micro-batch */
    int64_t most; /* micro-batches of a set */
    void *host;   /* [2 sets, most, bytes] */
    int set;      /* this step's */
    int64_t counts[2];
    int64_t taken; /* of this step's */
    struct place places[2];
    int place;    /* that the next one to be taken is in, or will be */
    bool is_sent; /* is on its way there */
};

static void *host_of(const struct feed *f, int set, int64_t i)
{
    return (char *)f->host + (size_t)(set * f->most + i) * f->bytes;
}

int feed_open(struct stream *compute, size_t bytes, int64_t most, const char *what,
              struct feed **ret_feed, struct error *err)
{
    struct device *device = stream_device(compute);
    struct feed *f = xcalloc(1, sizeof *f);
    f->compute = compute;
    f->bytes = feed_piece(bytes);
    f->most = most;
    size_t all = 2 * (size_t)most * f->bytes;
    int result = stream_open(device, "input", &f->copies, err);
    if (result == 0)
        result = device_host_alloc(device, all, what, &f->host, err);
    for (int i = 0; i < 2 && result == 0; i++) {
        struct place *place = &f->places[i];
        result = device_alloc(device, MEMORY_INPUT, f->bytes, what, &place->memory, err) ||
                         event_open(device, &place->filled, err) ||
                         event_open(device, &place->read, err)
                     ? -1
                     : 0;
    }
    if (result) {
        feed_close(f);
        return -1;
    }
    memset(f->host, 0, all);
    *ret_feed = f;
    return 0;
}

void feed_close(struct feed *feed)
{
    if (!feed)
        return;
    struct device *device = stream_device(feed->compute);
    stream_close(feed->copies); /* waits: one may be on its way */
    for (int i = 0; i < 2; i++) {
        event_close(feed->places[i].filled);
        event_close(feed->places[i].read);
        device_free(device, feed->places[i].memory);
    }
    device_host_free(device, feed->host);
    free(feed);
}

/* On its way to where the next one is taken from. */
static void send(struct feed *f, const void *host)
{
    struct place *place = &f->places[f->place];
    stream_wait(f->copies, place->read);
    stream_copy(f->copies, place->memory, host, f->bytes);
    event_record(place->filled, f->copies);
    f->is_sent = true;
}

int feed_next_set(const struct feed *feed)
{
    return !feed->set;
}

void *feed_next(const struct feed *feed, int64_t i)
{
    assert(i >= 0 && i < feed->most);
    return host_of(feed, !feed->set, i);
}

void feed_filled(struct feed *feed, int64_t count)
{
    struct feed *f = feed;
    assert(count >= 0 && count <= f->most);
    f->counts[!f->set] = count;
    if (count > 0 && f->taken == f->counts[f->set])
        send(f, host_of(f, !f->set, 0));
}

void feed_turn(struct feed *feed)
{
    assert(!feed->is_sent || feed->taken == feed->counts[feed->set]); /* else it is this step's */
    feed->set = !feed->set;
    feed->taken = 0;
}

int feed_set(const struct feed *feed)
{
    return feed->set;
}

void *feed_take(struct feed *feed, int64_t i)
{
    struct feed *f = feed;
    struct place *place = &f->places[f->place];
    assert(i == f->taken && i < f->counts[f->set]);
    if (!f->is_sent)
        send(f, host_of(f, f->set, i));
    event_record(f->places[!f->place].read, f->compute);
    stream_wait(f->compute, place->filled);
    f->taken++;
    f->place = !f->place;
    f->is_sent = false;
    if (f->taken < f->counts[f->set])
        send(f, host_of(f, f->set, f->taken));
    return place->memory;
}

void feed_reset(struct feed *feed)
{
    struct error ignored; /* a failed copy fails what takes from its place */
    (void)stream_sync(feed->copies, &ignored);
    feed->counts[0] = feed->counts[1] = 0;
    feed->taken = 0;
    feed->is_sent = false;
}
