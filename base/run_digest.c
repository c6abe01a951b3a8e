#include "base/run_digest.h"

#include "base/mem.h"
#include "base/str.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

void run_digest(const char *run_id, char ret_digest[RUN_DIGEST_BYTES])
{
    unsigned char bytes[EVP_MAX_MD_SIZE];
    auto_free char *said = xasprintf("shoal run\n%s", run_id);
    int is_done = EVP_Digest(said, strlen(said), bytes, NULL, EVP_sha256(), NULL);
    assert(is_done == 1);
    ret_digest[0] = '\0';
    for (size_t i = 0; run_id[0] && i < (RUN_DIGEST_BYTES - 1) / 2; i++)
        snprintf(ret_digest + 2 * i, 3, "%02x", bytes[i]);
}
