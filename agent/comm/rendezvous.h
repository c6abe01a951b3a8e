/* Where the processes of a job meet, at MASTER_ADDR:MASTER_PORT as torchrun's do: rank 0 listens
 * there, the others connect, and when all have joined they share a store. The connection stays
 * open: it is how every process learns that another one died, by rank, as soon as the kernel knows;
 * a process that was stopped or cut off is noticed by its silence. Knows no collectives. */
#ifndef SHOAL_AGENT_RENDEZVOUS_H
#define SHOAL_AGENT_RENDEZVOUS_H

#include "agent/comm/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RENDEZVOUS_BEAT_MS    1000
#define RENDEZVOUS_SILENCE_MS 15000

struct rendezvous_options {
    const char *host;    /* MASTER_ADDR; rank 0 listens on all addresses unless it is a loopback: a
                            host's own name may resolve to its loopback */
    int port;            /* MASTER_PORT */
    int rank, size;      /* of this process, and all */
    const char *job_id;  /* "" if there is none; only processes with the same meet */
    const char *secret;  /* of the run, which all its processes know; "" if there is none */
    int join_timeout_ms; /* how long to wait for all the others */
    int beat_ms;         /* how often to give a sign of life */
    int silence_ms;      /* a process that gives none for so long is lost; several beats */
};

struct rendezvous;

/* Blocks until all ranks have joined. Names that do not resolve yet and refused connections are
 * normal while pods start: it tries again until the time is up. Errors: ERR_TIMEOUT tells which
 * ranks are missing, or what the last attempt met; ERR_CONFIG if ranks contradict each other or the
 * port is in use. */
int rendezvous_open(const struct rendezvous_options *options, struct rendezvous **ret_rendezvous,
                    struct error *err);
/* The store lives as long as the rendezvous. It is lost when a rank is. */
struct store *rendezvous_store(struct rendezvous *r);
/* Tells the others that this process leaves because of a failure of its own, and which: they would
 * wait for it in vain. Closing is still to be done. */
void rendezvous_fail(struct rendezvous *r, const char *why);
/* Says goodbye, so that nobody takes this process for dead; NULL-safe. When rank 0 closes, the
 * store is gone for all. */
void rendezvous_close(struct rendezvous *r);

#ifdef __cplusplus
}
#endif
#endif
