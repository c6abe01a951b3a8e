#include "base/certificate.h"

#include "base/clock.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>
#include <time.h>

enum { MAX_AUTHORITIES = 1000 };

static void free_bio(BIO **bio)
{
    BIO_free(*bio);
}
static void free_x509(X509 **certificate)
{
    X509_free(*certificate);
}
static void free_key(EVP_PKEY **key)
{
    EVP_PKEY_free(*key);
}
#define auto_bio  __attribute__((cleanup(free_bio)))
#define auto_x509 __attribute__((cleanup(free_x509)))
#define auto_key  __attribute__((cleanup(free_key)))

static BIO *open_text(const char *pem)
{
    return BIO_new_mem_buf(pem, (int)strlen(pem));
}

/* Else libcrypto asks on the terminal. */
static int no_password(char *out, int size, int writing, void *context)
{
    (void)out, (void)size, (void)writing, (void)context;
    return -1;
}

/* The next certificate, NULL if there is none (or it cannot be read). */
static X509 *read_certificate(BIO *bio)
{
    X509 *certificate = PEM_read_bio_X509(bio, NULL, no_password, NULL);
    ERR_clear_error();
    return certificate;
}

static int64_t ms_of(const ASN1_TIME *time)
{
    struct tm parts;
    if (!ASN1_TIME_to_tm(time, &parts))
        return 0;
    return (int64_t)timegm(&parts) * 1000;
}

static int check_dates(const X509 *certificate, const char *what, int64_t now_ms, struct error *err)
{
    int64_t from_ms = ms_of(X509_get0_notBefore(certificate));
    int64_t until_ms = ms_of(X509_get0_notAfter(certificate));
    char date[32];
    if (now_ms > until_ms) {
        clock_format_rfc3339(until_ms, date, sizeof date);
        return error_set(err, ERR_CONFIG, "%s: the certificate expired at %s: renew it", what,
                         date);
    }
    if (now_ms < from_ms) {
        clock_format_rfc3339(from_ms, date, sizeof date);
        return error_set(err, ERR_CONFIG,
                         "%s: the certificate is not valid before %s: is the clock right?", what,
                         date);
    }
    return 0;
}

static int no_certificate(const char *what, struct error *err)
{
    return error_set(err, ERR_INPUT, "%s: no certificate in PEM form (-----BEGIN CERTIFICATE-----)",
                     what);
}

int certificate_check(const char *pem, const char *what, int64_t now_ms, struct error *err)
{
    auto_bio BIO *bio = open_text(pem);
    auto_x509 X509 *certificate = read_certificate(bio);
    if (!certificate)
        return no_certificate(what, err);
    return check_dates(certificate, what, now_ms, err);
}

int certificate_check_authorities(const char *pem, const char *what, int64_t now_ms,
                                  struct error *err)
{
    auto_bio BIO *bio = open_text(pem);
    struct error first = {0};
    /* One authority of a bundle that is valid suffices: clusters keep the old one beside the new
     * one while they rotate. */
    for (int i = 0; i < MAX_AUTHORITIES; i++) {
        auto_x509 X509 *certificate = read_certificate(bio);
        if (!certificate)
            break;
        struct error why;
        if (check_dates(certificate, what, now_ms, &why) == 0)
            return 0;
        if (i == 0)
            first = why;
    }
    if (first.code == ERR_NONE)
        return no_certificate(what, err);
    *err = first;
    return -1;
}

int certificate_check_key(const char *certificate_pem, const char *key_pem, const char *what,
                          struct error *err)
{
    auto_bio BIO *bio = open_text(certificate_pem);
    auto_bio BIO *key_bio = open_text(key_pem);
    auto_x509 X509 *certificate = read_certificate(bio);
    auto_key EVP_PKEY *key = PEM_read_bio_PrivateKey(key_bio, NULL, no_password, NULL);
    int fits = certificate && key && X509_check_private_key(certificate, key) == 1;
    ERR_clear_error();
    if (!key)
        return error_set(err, ERR_INPUT, "%s: no unencrypted private key in PEM form", what);
    if (!fits)
        return error_set(err, ERR_CONFIG, "%s: is not the key of the certificate", what);
    return 0;
}
