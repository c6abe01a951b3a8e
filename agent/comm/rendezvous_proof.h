/* The proof that a process knows the run's secret, without sending it: an HMAC (RFC 2104, with
 * SHA-256) over its rank, the number of ranks, the job's id and a nonce. Rank 0 draws a new nonce
 * for each connection. Pure but for the nonce. */
#ifndef SHOAL_AGENT_COMM_RENDEZVOUS_PROOF_H
#define SHOAL_AGENT_COMM_RENDEZVOUS_PROOF_H

#include "base/error.h"

#include <stdbool.h>

enum {
    RENDEZVOUS_NONCE_BYTES = 33, /* hex digits and the terminator */
    RENDEZVOUS_PROOF_BYTES = 65, /* likewise */
};

/* Errors: ERR_IO if getrandom() fails. */
int rendezvous_nonce(char out[RENDEZVOUS_NONCE_BYTES], struct error *err);

/* secret: "": none; then anybody can compute the proof. */
void rendezvous_prove(const char *secret, const char *nonce, int rank, int size, const char *job_id,
                      char out[RENDEZVOUS_PROOF_BYTES]);

/* Compares in constant time. */
bool rendezvous_proof_equal(const char *proof, const char expected[RENDEZVOUS_PROOF_BYTES]);
#endif
