/* Seconds until all ranks of a job have met: the rendezvous and the ring, each rank a thread of
 * this process with sockets of its own. `make bench-recovery` shows it. meeting_bench [RANKS
 * [ROUNDS]]     default 1000 and 3; the rounds follow each other, as restarts */
#include "agent/comm/comm_ring.h"
#include "agent/comm/rendezvous.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/open_files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STACK_BYTES = 512 * 1024, PATIENCE_MS = 120000 };

struct bench {
    int ranks, port;
    pthread_barrier_t joined, done; /* all ranks have joined; all have their ring */
    atomic_int failures;
};

struct rank {
    struct bench *bench;
    pthread_t thread;
    int rank;
};

static int meet(const struct rank *rank, struct rendezvous **ret_rendezvous, struct error *err)
{
    const struct rendezvous_options options = {
        .host = "127.0.0.1",
        .port = rank->bench->port,
        .rank = rank->rank,
        .size = rank->bench->ranks,
        .job_id = "bench",
        .secret = "bench",
        .join_timeout_ms = PATIENCE_MS,
        .beat_ms = RENDEZVOUS_BEAT_MS,
        .silence_ms = RENDEZVOUS_SILENCE_MS,
    };
    return rendezvous_open(&options, ret_rendezvous, err);
}

static void *rank_main(void *arg)
{
    const struct rank *rank = arg;
    struct bench *bench = rank->bench;
    const struct comm_ring_options options = {.join_timeout_ms = PATIENCE_MS,
                                              .timeout_ms = PATIENCE_MS};
    struct rendezvous *rendezvous = NULL;
    struct comm *world = NULL;
    struct error err;
    int result = meet(rank, &rendezvous, &err);
    pthread_barrier_wait(&bench->joined);
    if (result == 0)
        result = comm_ring_open(rendezvous_store(rendezvous), rank->rank, bench->ranks, &options,
                                &world, &err);
    if (result && atomic_fetch_add(&bench->failures, 1) == 0)
        fprintf(stderr, "meeting_bench: rank %d: %s\n", rank->rank, err.msg);
    pthread_barrier_wait(&bench->done);
    comm_close(world);
    rendezvous_close(rendezvous);
    return NULL;
}

static double seconds_since(int64_t us)
{
    return (double)(clock_monotonic_us() - us) / 1e6;
}

static int run_round(struct bench *bench, struct rank *ranks, pthread_attr_t *attributes)
{
    unsigned all = (unsigned)bench->ranks + 1;
    pthread_barrier_init(&bench->joined, NULL, all);
    pthread_barrier_init(&bench->done, NULL, all);
    int64_t start_us = clock_monotonic_us();
    for (int i = 0; i < bench->ranks; i++) {
        ranks[i] = (struct rank){.bench = bench, .rank = i};
        if (pthread_create(&ranks[i].thread, attributes, rank_main, &ranks[i])) {
            fprintf(stderr, "meeting_bench: cannot start thread %d\n", i);
            exit(EXIT_FAILURE);
        }
    }
    pthread_barrier_wait(&bench->joined);
    double joined_s = seconds_since(start_us);
    pthread_barrier_wait(&bench->done);
    double done_s = seconds_since(start_us);
    for (int i = 0; i < bench->ranks; i++)
        pthread_join(ranks[i].thread, NULL);
    printf("%5d %14.2f %14.2f %14.2f\n", bench->ranks, joined_s, done_s, seconds_since(start_us));
    return bench->failures ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct bench bench = {.ranks = argc > 1 ? atoi(argv[1]) : 1000, .port = 23791};
    int rounds = argc > 2 ? atoi(argv[2]) : 3, result = 0;
    pthread_attr_t attributes;
    open_files_raise();
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    auto_free struct rank *ranks = xcalloc((size_t)bench.ranks, sizeof *ranks);
    printf("%5s %14s %14s %14s\n", "ranks", "s: joined", "with rings", "and all left");
    for (int i = 0; i < rounds && result == 0; i++)
        result = run_round(&bench, ranks, &attributes);
    return result ? EXIT_FAILURE : EXIT_SUCCESS;
}
