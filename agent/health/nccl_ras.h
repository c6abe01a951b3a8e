/* What NCCL says of a job that stands still. Its RAS threads (since 2.24) watch each other in all
 * of the job's processes; a client asks the one that listens on its machine. Source: NCCL's user
 * guide, "RAS", and its own client, src/ras/client.cc. */
#ifndef SHOAL_AGENT_HEALTH_NCCL_RAS_H
#define SHOAL_AGENT_HEALTH_NCCL_RAS_H

#include "base/error.h"
#include "base/str.h"

/* Where it listens if NCCL_RAS_ADDR says nothing else. */
#define NCCL_RAS_ADDRESS "localhost:28028"

enum {
    NCCL_RAS_TEXT_BYTES = 64 * 1024, /* of an answer; the rest is left out */
    NCCL_RAS_WAIT_MS = 6000,         /* NCCL itself waits for 5 s for what is silent */
};

/* Adds what RAS at HOST:PORT tells of all processes, lines of text for a person, to *out. NCCL ends
 * it by closing the connection. Control characters of it become "?". After an error *out has what
 * had come. Blocks for wait_ms at most, and for as long as the name takes to resolve. Errors:
 * ERR_CONFIG: this is no address; ERR_IO, ERR_NOT_FOUND: nobody listens there; ERR_TIMEOUT;
 * ERR_PEER: it hung up; ERR_INPUT: whoever listens there is not RAS. */
int nccl_ras_ask(const char *address, int wait_ms, struct str *out, struct error *err);

/* Asks in a thread of its own, and writes the answer to stderr. */
struct nccl_ras;

/* address outlives it. */
struct nccl_ras *nccl_ras_open(const char *address);
void nccl_ras_close(struct nccl_ras *ras); /* NULL-safe; waits for an answer that is due */
/* Nothing, if the last answer is still due. From one thread, the same as above. */
void nccl_ras_begin(struct nccl_ras *ras);
#endif
