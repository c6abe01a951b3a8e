/* A process of processes.h that meets the others at rank 0's rendezvous. */
#ifndef SHOAL_TESTS_AGENT_RENDEZVOUS_RANK_H
#define SHOAL_TESTS_AGENT_RENDEZVOUS_RANK_H

#include "agent/comm/rendezvous.h"
#include "tests/agent/processes.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static inline struct rendezvous_options rendezvous_rank_options(const struct process *p)
{
    struct rendezvous_options options;
    memset(&options, 0, sizeof options);
    options.host = "127.0.0.1";
    options.port = p->port;
    options.rank = p->rank;
    options.size = p->size;
    options.job_id = "";
    options.secret = "of this run";
    options.join_timeout_ms = SUPPORT_PATIENCE_MS;
    options.beat_ms = 50;
    options.silence_ms = SUPPORT_PATIENCE_MS;
    return options;
}

static inline int rendezvous_rank_open(const struct process *p, struct rendezvous **ret,
                                       struct error *err)
{
    struct rendezvous_options options = rendezvous_rank_options(p);
    return rendezvous_open(&options, ret, err);
}

/* Sets a key of this rank's own and waits until it has read those of all. */
static inline int rendezvous_rank_share(struct rendezvous *r, const struct process *p,
                                        struct error *err)
{
    struct store *s = rendezvous_store(r);
    char key[32], expected[32], value[STORE_VALUE_MAX];
    snprintf(key, sizeof key, "key/%d", p->rank);
    snprintf(expected, sizeof expected, "value of %d", p->rank);
    if (s->fn->set(s, key, expected, err) < 0)
        return -1;
    for (int i = 0; i < p->size; i++) {
        snprintf(key, sizeof key, "key/%d", i);
        snprintf(expected, sizeof expected, "value of %d", i);
        if (s->fn->get(s, key, SUPPORT_PATIENCE_MS, value, err) < 0)
            return -1;
        if (strcmp(value, expected) != 0)
            return error_set(err, ERR_INPUT, "%s is %s", key, value);
    }
    return 0;
}

/* Waits for a whole message on a non-blocking socket. Errors: ERR_TIMEOUT; ERR_PEER. */
static inline int rendezvous_rank_receive(int fd, void *data, size_t bytes, struct error *err)
{
    int64_t deadline_ms = clock_monotonic_ms() + SUPPORT_PATIENCE_MS;
    struct pollfd p = {fd, POLLIN, 0};
    for (size_t got = 0; got < bytes;) {
        ssize_t n = recv(fd, (char *)data + got, bytes - got, 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
            return error_set(err, ERR_PEER, "connection closed");
        if (n < 0 && poll(&p, 1, (int)(deadline_ms - clock_monotonic_ms())) == 0)
            return error_set(err, ERR_TIMEOUT, "the other side sends nothing");
        got += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

#endif
