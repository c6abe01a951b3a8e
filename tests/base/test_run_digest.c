/* The digest of a run's id, beside what sha256sum says of the same bytes. */
#include "base/run_digest.h"

#include "tests/support.h"

static void it_is_sha256s(void **state)
{
    (void)state;
    static const struct {
        const char *id, *digest;
    } rows[] = {
        {"", ""},
        {"u", "2c8e8176674a75826a2ceb48d16fb2ae"},
        {"3c4c1d7e-1111-2222-3333-444455556666", "12d507e182491f8e65ca54f2fa618ba4"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char digest[RUN_DIGEST_BYTES];
        run_digest(rows[i].id, digest);
        assert_string_equal(digest, rows[i].digest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_sha256s)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
