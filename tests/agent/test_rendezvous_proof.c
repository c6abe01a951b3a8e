#include "agent/comm/rendezvous_proof.h"

#include "base/mem.h"
#include "tests/support.h"

#include <string.h>

#define NONCE "00112233445566778899aabbccddeeff"

/* By python3: hmac.new(b"key", b"shoal join\n" NONCE b"\n1\n2\njob", "sha256").hexdigest() */
static void a_proof_is_an_hmac(void **state)
{
    (void)state;
    char proof[RENDEZVOUS_PROOF_BYTES];
    rendezvous_prove("key", NONCE, 1, 2, "job", proof);
    assert_string_equal(proof, "82fc2cfed50465cf5ff7c182d86341840b29327cad875bb4b1bb5732b9c4a10b");
}

static void all_that_is_said_counts(void **state)
{
    (void)state;
    static const struct {
        const char *secret, *nonce;
        int rank, size;
        const char *job_id;
        bool is;
    } rows[] = {
        {"key", NONCE, 1, 2, "job", true},
        {"Key", NONCE, 1, 2, "job", false},
        {"", NONCE, 1, 2, "job", false},
        {"key", "10112233445566778899aabbccddeeff", 1, 2, "job", false},
        {"key", NONCE, 0, 2, "job", false},
        {"key", NONCE, 1, 3, "job", false},
        {"key", NONCE, 1, 2, "", false},
    };
    char expected[RENDEZVOUS_PROOF_BYTES], proof[RENDEZVOUS_PROOF_BYTES];
    rendezvous_prove("key", NONCE, 1, 2, "job", expected);
    for (size_t i = 0; i < array_length(rows); i++) {
        rendezvous_prove(rows[i].secret, rows[i].nonce, rows[i].rank, rows[i].size, rows[i].job_id,
                         proof);
        assert_int_equal(rendezvous_proof_equal(proof, expected), rows[i].is);
    }
    static const char *const others[] = {"", "0", NONCE};
    for (size_t i = 0; i < array_length(others); i++)
        assert_false(rendezvous_proof_equal(others[i], expected));
}

static void no_nonce_comes_twice(void **state)
{
    (void)state;
    char first[RENDEZVOUS_NONCE_BYTES], second[RENDEZVOUS_NONCE_BYTES];
    struct error err;
    assert_ok(rendezvous_nonce(first, &err), &err);
    assert_ok(rendezvous_nonce(second, &err), &err);
    assert_int_equal(strlen(first), RENDEZVOUS_NONCE_BYTES - 1);
    assert_string_not_equal(first, second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_proof_is_an_hmac),
        cmocka_unit_test(all_that_is_said_counts),
        cmocka_unit_test(no_nonce_comes_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
