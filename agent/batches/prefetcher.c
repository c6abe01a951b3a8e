/* Two events to each slot on the device: compute waits until what it takes has come, the copy of
 * the next one but one waits until compute is done with it. That is known when the next one is
 * taken: all that reads this one was queued before. */
#include "agent/batches/prefetcher.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    void *memory;         /* on the device */
    struct event *filled; /* on `copies` */
    struct event *read;   /* on `compute` */
};

struct prefetcher {
    struct stream *compute, *copies;
    size_t bytes;        /* of a micro-batch */
    int64_t max_batches; /* micro-batches of a set */
    void *host;          /* [2 sets, max_batches, bytes] */
    int set;             /* this step's */
    int64_t counts[2];
    int64_t taken; /* of this step's */
    struct slot slots[2];
    int slot;     /* that the next one to be taken is in, or will be */
    bool is_sent; /* is on its way there */
};

static void *host_of(const struct prefetcher *f, int set, int64_t i)
{
    return (char *)f->host + (size_t)(set * f->max_batches + i) * f->bytes;
}

int prefetcher_open(struct stream *compute, size_t bytes, int64_t max_batches, const char *what,
                    struct prefetcher **ret_prefetcher, struct error *err)
{
    struct device *device = stream_device(compute);
    struct prefetcher *f = xcalloc(1, sizeof *f);
    f->compute = compute;
    f->bytes = prefetcher_aligned(bytes);
    f->max_batches = max_batches;
    size_t all = 2 * (size_t)max_batches * f->bytes;
    int result = stream_open(device, "input", &f->copies, err);
    if (result == 0)
        result = device_host_alloc(device, all, what, &f->host, err);
    for (int i = 0; i < 2 && result == 0; i++) {
        struct slot *slot = &f->slots[i];
        result = device_alloc(device, MEMORY_INPUT, f->bytes, what, &slot->memory, err) ||
                         event_open(device, &slot->filled, err) ||
                         event_open(device, &slot->read, err)
                     ? -1
                     : 0;
    }
    if (result) {
        prefetcher_close(f);
        return -1;
    }
    memset(f->host, 0, all);
    *ret_prefetcher = f;
    return 0;
}

void prefetcher_close(struct prefetcher *prefetcher)
{
    if (!prefetcher)
        return;
    struct device *device = stream_device(prefetcher->compute);
    stream_close(prefetcher->copies); /* waits: one may be on its way */
    for (int i = 0; i < 2; i++) {
        event_close(prefetcher->slots[i].filled);
        event_close(prefetcher->slots[i].read);
        device_free(device, prefetcher->slots[i].memory);
    }
    device_host_free(device, prefetcher->host);
    free(prefetcher);
}

/* On its way to where the next one is taken from. */
static void send(struct prefetcher *f, const void *host)
{
    struct slot *slot = &f->slots[f->slot];
    stream_wait(f->copies, slot->read);
    stream_copy(f->copies, slot->memory, host, f->bytes);
    event_record(slot->filled, f->copies);
    f->is_sent = true;
}

int prefetcher_next_set(const struct prefetcher *prefetcher)
{
    return !prefetcher->set;
}

void *prefetcher_next(const struct prefetcher *prefetcher, int64_t i)
{
    assert(i >= 0 && i < prefetcher->max_batches);
    return host_of(prefetcher, !prefetcher->set, i);
}

void prefetcher_filled(struct prefetcher *prefetcher, int64_t count)
{
    struct prefetcher *f = prefetcher;
    assert(count >= 0 && count <= f->max_batches);
    f->counts[!f->set] = count;
    if (count > 0 && f->taken == f->counts[f->set])
        send(f, host_of(f, !f->set, 0));
}

void prefetcher_swap(struct prefetcher *prefetcher)
{
    assert(!prefetcher->is_sent ||
           prefetcher->taken == prefetcher->counts[prefetcher->set]); /* else it is this step's */
    prefetcher->set = !prefetcher->set;
    prefetcher->taken = 0;
}

int prefetcher_set(const struct prefetcher *prefetcher)
{
    return prefetcher->set;
}

void *prefetcher_take(struct prefetcher *prefetcher, int64_t i)
{
    struct prefetcher *f = prefetcher;
    struct slot *slot = &f->slots[f->slot];
    assert(i == f->taken && i < f->counts[f->set]);
    if (!f->is_sent)
        send(f, host_of(f, f->set, i));
    event_record(f->slots[!f->slot].read, f->compute);
    stream_wait(f->compute, slot->filled);
    f->taken++;
    f->slot = !f->slot;
    f->is_sent = false;
    if (f->taken < f->counts[f->set])
        send(f, host_of(f, f->set, f->taken));
    return slot->memory;
}

void prefetcher_reset(struct prefetcher *prefetcher)
{
    struct error ignored; /* a failed copy fails what takes from its slot */
    (void)stream_sync(prefetcher->copies, &ignored);
    prefetcher->counts[0] = prefetcher->counts[1] = 0;
    prefetcher->taken = 0;
    prefetcher->is_sent = false;
}
