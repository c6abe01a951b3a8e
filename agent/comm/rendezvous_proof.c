#include "agent/comm/rendezvous_proof.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

static void to_hex(const uint8_t *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

int rendezvous_nonce(char out[RENDEZVOUS_NONCE_BYTES], struct error *err)
{
    uint8_t bytes[RENDEZVOUS_NONCE_BYTES / 2];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return error_errno(err, errno, "getrandom");
    to_hex(bytes, sizeof bytes, out);
    return 0;
}

/* Challenge and response: the secret itself is never sent, and an answer that was overheard fits no
 * other nonce. */
void rendezvous_prove(const char *secret, const char *nonce, int rank, int size, const char *job_id,
                      char out[RENDEZVOUS_PROOF_BYTES])
{
    char said[512];
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned bytes = 0;
    int length = snprintf(said, sizeof said, "shoal join\n%.*s\n%d\n%d\n%s",
                          RENDEZVOUS_NONCE_BYTES - 1, nonce, rank, size, job_id);
    if (length >= (int)sizeof said)
        length = (int)sizeof said - 1;
    HMAC(EVP_sha256(), secret, (int)strlen(secret), (const uint8_t *)said, (size_t)length, digest,
         &bytes);
    to_hex(digest, RENDEZVOUS_PROOF_BYTES / 2, out);
}

bool rendezvous_proof_equal(const char *proof, const char expected[RENDEZVOUS_PROOF_BYTES])
{
    return strlen(proof) == RENDEZVOUS_PROOF_BYTES - 1 &&
           CRYPTO_memcmp(proof, expected, RENDEZVOUS_PROOF_BYTES - 1) == 0;
}
