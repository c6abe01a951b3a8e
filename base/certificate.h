/* Whether certificates can be used, before a handshake fails with less to say: X.509 in PEM, by
 * libcrypto. Pure: texts and times are arguments. `what` names the certificate in errors ("FILE:
 * user "dev": client-certificate"). */
#ifndef SHOAL_BASE_CERTIFICATE_H
#define SHOAL_BASE_CERTIFICATE_H

#include "base/error.h"

#include <stdint.h>

/* The first certificate of the text, the one that is shown to the other side: ERR_INPUT if there is
 * none, ERR_CONFIG with the date if it has expired or is not yet valid at now_ms (wall clock). */
int certificate_check(const char *pem, const char *what, int64_t now_ms, struct error *err);

/* Authorities to trust: one of them that is valid is enough, as bundles keep old ones. */
int certificate_check_authorities(const char *pem, const char *what, int64_t now_ms,
                                  struct error *err);

/* Whether the private key (PEM, not encrypted) is that of the first certificate. */
int certificate_check_key(const char *certificate_pem, const char *key_pem, const char *what,
                          struct error *err);
#endif
