/* Certificates for tests, made on the spot: EC keys, in PEM, with any dates. */
#ifndef SHOAL_TESTS_PKI_H
#define SHOAL_TESTS_PKI_H

#include <stdint.h>

struct pki_pair {
    char *certificate, *key; /* PEM; owned */
};

/* A certificate for `name` (common name; also the host names localhost and NAME and the address
 * 127.0.0.1), valid within [from_ms, until_ms], signed by issuer, or by itself as an authority
 * (NULL). */
void pki_make(const char *name, const struct pki_pair *issuer, int64_t from_ms, int64_t until_ms,
              struct pki_pair *ret_pair);
void pki_free(struct pki_pair *pair);
#endif
