#include "tests/support.h"

#include "base/certificate.h"
#include "base/mem.h"
#include "tests/pki.h"

/* 2026-01-01T00:00:00Z */
#define NEW_YEAR_MS INT64_C(1767225600000)
enum { DAY_MS = 24 * 3600 * 1000 };

static struct pki_pair authority, server, other;

static int make_all(void **state)
{
    (void)state;
    pki_make("authority", NULL, NEW_YEAR_MS, NEW_YEAR_MS + 10 * DAY_MS, &authority);
    pki_make("server", &authority, NEW_YEAR_MS + DAY_MS, NEW_YEAR_MS + 2 * DAY_MS, &server);
    pki_make("other", NULL, NEW_YEAR_MS + 5 * DAY_MS, NEW_YEAR_MS + 6 * DAY_MS, &other);
    return 0;
}

static int free_all(void **state)
{
    (void)state;
    pki_free(&authority);
    pki_free(&server);
    pki_free(&other);
    return 0;
}

static void dates_are_named(void **state)
{
    (void)state;
    struct error err;
    assert_ok(certificate_check(server.certificate, "w", NEW_YEAR_MS + DAY_MS, &err), &err);
    assert_ok(certificate_check(server.certificate, "w", NEW_YEAR_MS + 2 * DAY_MS, &err), &err);
    assert_fails(certificate_check(server.certificate, "w", NEW_YEAR_MS + DAY_MS - 1, &err), &err,
                 ERR_CONFIG, "w: the certificate is not valid before 2026-01-02T00:00:00Z");
    assert_fails(certificate_check(server.certificate, "w", NEW_YEAR_MS + 2 * DAY_MS + 1, &err),
                 &err, ERR_CONFIG, "w: the certificate expired at 2026-01-03T00:00:00Z");
}

static void the_first_certificate_is_the_one(void **state)
{
    (void)state;
    struct error err;
    auto_free char *chain = xasprintf("%s%s", server.certificate, authority.certificate);
    assert_fails(certificate_check(chain, "w", NEW_YEAR_MS + 4 * DAY_MS, &err), &err, ERR_CONFIG,
                 "2026-01-03");
}

static void one_valid_authority_is_enough(void **state)
{
    (void)state;
    struct error err;
    auto_free char *bundle = xasprintf("%s%s", server.certificate, other.certificate);
    assert_ok(certificate_check_authorities(bundle, "w", NEW_YEAR_MS + 5 * DAY_MS, &err), &err);
    assert_ok(certificate_check_authorities(bundle, "w", NEW_YEAR_MS + DAY_MS, &err), &err);
    assert_fails(certificate_check_authorities(bundle, "w", NEW_YEAR_MS + 3 * DAY_MS, &err), &err,
                 ERR_CONFIG, "expired at 2026-01-03");
}

static void what_is_no_certificate(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"};
    struct error err;
    for (size_t i = 0; i < array_length(texts); i++) {
        assert_fails(certificate_check(texts[i], "w", 0, &err), &err, ERR_INPUT,
                     "w: no certificate");
        assert_fails(certificate_check_authorities(texts[i], "w", 0, &err), &err, ERR_INPUT,
                     "w: no certificate");
    }
    assert_fails(certificate_check(server.key, "w", 0, &err), &err, ERR_INPUT, "no certificate");
}

static void key_must_fit(void **state)
{
    (void)state;
    struct error err;
    assert_ok(certificate_check_key(server.certificate, server.key, "w", &err), &err);
    assert_fails(certificate_check_key(server.certificate, other.key, "w", &err), &err, ERR_CONFIG,
                 "w: is not the key");
    assert_fails(certificate_check_key(server.certificate, "nonsense", "w", &err), &err, ERR_INPUT,
                 "w: no unencrypted private key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_named),
        cmocka_unit_test(the_first_certificate_is_the_one),
        cmocka_unit_test(one_valid_authority_is_enough),
        cmocka_unit_test(what_is_no_certificate),
        cmocka_unit_test(key_must_fit),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
