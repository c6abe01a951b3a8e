#include "tests/pki.h"

#include "tests/support.h"

#include "base/backoff.h"
#include "base/mem.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

static void add_extension(X509 *certificate, X509 *issuer, int id, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, id, value);
    assert_non_null(extension);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
}

static X509 *read_certificate(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(certificate);
    return certificate;
}

static EVP_PKEY *read_key(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(key);
    return key;
}

static char *text_of(BIO *bio)
{
    char *bytes;
    long length = BIO_get_mem_data(bio, &bytes);
    char *text = xcalloc(1, (size_t)length + 1);
    memcpy(text, bytes, (size_t)length);
    BIO_free(bio);
    return text;
}

static X509 *unsigned_certificate(const char *name, EVP_PKEY *key, int64_t from_ms,
                                  int64_t until_ms)
{
    static uint64_t serials = 1;
    X509 *certificate = X509_new();
    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), backoff_random(&serials) >> 1);
    ASN1_TIME_set(X509_getm_notBefore(certificate), (time_t)(from_ms / 1000));
    ASN1_TIME_set(X509_getm_notAfter(certificate), (time_t)(until_ms / 1000));
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_pubkey(certificate, key);
    return certificate;
}

void pki_make(const char *name, const struct pki_pair *issuer, int64_t from_ms, int64_t until_ms,
              struct pki_pair *ret_pair)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = unsigned_certificate(name, key, from_ms, until_ms);
    X509 *signer = issuer ? read_certificate(issuer->certificate) : certificate;
    EVP_PKEY *signer_key = issuer ? read_key(issuer->key) : key;
    X509_set_issuer_name(certificate, X509_get_subject_name(signer));
    auto_free char *names = xasprintf("DNS:localhost,DNS:%s,IP:127.0.0.1", name);
    add_extension(certificate, signer, NID_basic_constraints,
                  issuer ? "CA:FALSE" : "critical,CA:TRUE");
    add_extension(certificate, signer, NID_subject_alt_name, names);
    assert_true(X509_sign(certificate, signer_key, EVP_sha256()) > 0);

    BIO *out = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(out, certificate);
    ret_pair->certificate = text_of(out);
    out = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL);
    ret_pair->key = text_of(out);
    if (issuer) {
        X509_free(signer);
        EVP_PKEY_free(signer_key);
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
}

void pki_free(struct pki_pair *pair)
{
    free(pair->certificate);
    free(pair->key);
}
