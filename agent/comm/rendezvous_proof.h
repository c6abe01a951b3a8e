/* How a process shows that it knows the run's secret, without telling it: an HMAC (RFC 2104, with
 * SHA-256) over what it says of itself and a number of rank 0's choosing, another one for each
 * connection. Pure but for that number. */
#ifndef SHOAL_AGENT_RENDEZVOUS_PROOF_H
#define SHOAL_AGENT_RENDEZVOUS_PROOF_H

#include "base/error.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RENDEZVOUS_NONCE_BYTES = 33, /* hex digits and the terminator */
    RENDEZVOUS_PROOF_BYTES = 65, /* likewise */
};

/* Errors: the system has no random numbers. */
int rendezvous_nonce(char out[RENDEZVOUS_NONCE_BYTES], struct error *err);

/* secret: "" if there is none; then anybody can show that. */
void rendezvous_prove(const char *secret, const char *nonce, int rank, int size, const char *job_id,
                      char out[RENDEZVOUS_PROOF_BYTES]);

/* Takes the same time whatever the difference. */
bool rendezvous_proof_is(const char *proof, const char expected[RENDEZVOUS_PROOF_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
