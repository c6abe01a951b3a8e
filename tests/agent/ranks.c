#include "tests/agent/ranks.h"

#include <assert.h>
#include <pthread.h>

static void *rank_main(void *arg)
{
    struct rank *r = arg;
    struct device *device = NULL;
    struct stream *stream = NULL;
    struct comm *comm = NULL;
    const struct comm_ring_options options = {.join_timeout_ms = RANKS_TIMEOUT_MS,
                                              .timeout_ms = r->timeout_ms};
    r->result = device_open("cpu", 1, &device, &r->err);
    if (r->result == 0)
        r->result = stream_open(device, "rank", &stream, &r->err);
    if (r->result == 0)
        r->result =
            comm_ring_open(comm_local_store(r->group), r->rank, r->size, &options, &comm, &r->err);
    if (r->result == 0)
        r->result = r->body(r, comm, stream, &r->err);
    stream_close(stream);
    comm_close(comm);
    device_close(device);
    return NULL;
}

void ranks_run(struct rank *ranks, int size, int timeout_ms,
               int (*body)(struct rank *, struct comm *, struct stream *, struct error *))
{
    assert(size <= RANKS_MAX);
    struct comm_local *group = comm_local_open();
    pthread_t threads[RANKS_MAX];
    for (int i = 0; i < size; i++) {
        ranks[i].group = group;
        ranks[i].rank = i;
        ranks[i].size = size;
        ranks[i].timeout_ms = timeout_ms;
        ranks[i].body = body;
        pthread_create(&threads[i], NULL, rank_main, &ranks[i]);
    }
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
    comm_local_close(group);
}
