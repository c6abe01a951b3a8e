/* Communicators over NCCL: every collective, libraries that are too old, and what NCCL's errors
 * become. */
#include "tests/agent/comm_cases.h"
#include "tests/agent/nccl_ranks.h"

#include "base/mem.h"

static int cases(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    (void)r;
    return comm_cases_run(c, s, err);
}

static void test_every_collective(void **state)
{
    (void)state;
    for (int size = 2; size <= 3; size++) {
        struct rank ranks[3] = {0};
        nccl_ranks_run(ranks, size, "", &(struct nccl_wish){.body = cases});
        for (int i = 0; i < size; i++)
            assert_ok(ranks[i].result, &ranks[i].err);
    }
}

static void test_old_libraries_are_refused(void **state)
{
    (void)state;
    struct nccl_api api;
    struct error err;
    setenv("FAKE_NCCL", "version=20803", 1);
    assert_fails(nccl_api_open(&api, &err), &err, ERR_UNSUPPORTED, "NCCL 2.8.3 is too old");
    setenv("FAKE_NCCL", "version=22703", 1);
    assert_ok(nccl_api_open(&api, &err), &err);
    assert_int_equal(api.version, 22703);
}

static const char *text_of(int result)
{
    (void)result;
    return "it failed";
}

static const char *last_of(nccl_comm comm)
{
    (void)comm;
    return NULL;
}

static void test_an_error_of_nccls_tells_whose_it_is(void **state)
{
    (void)state;
    static const struct {
        int result;
        enum error_code code;
    } rows[] = {{NCCL_UNHANDLED_CUDA_ERROR, ERR_DEVICE}, /* this rank's GPU */
                {NCCL_INVALID_ARGUMENT, ERR_CONFIG},
                {NCCL_INVALID_USAGE, ERR_CONFIG},
                {2, ERR_PEER},  /* ncclSystemError */
                {6, ERR_PEER}}; /* ncclRemoteError */
    const struct nccl_api api = {.error_text = text_of, .last_error = last_of};
    for (size_t i = 0; i < array_length(rows); i++) {
        struct error err;
        assert_fails(nccl_api_fail(&api, NULL, rows[i].result, "meet", &err), &err, rows[i].code,
                     "meet: NCCL: it failed");
    }
}

static const char *no_room(nccl_comm comm)
{
    (void)comm;
    return "Error while creating shared memory segment /dev/shm/nccl-a1b2c3 (size 9637888), error: "
           "No space left on device (28)";
}

static void test_a_full_shm_is_told_with_what_to_do(void **state)
{
    (void)state;
    const struct nccl_api api = {.error_text = text_of, .last_error = no_room};
    struct error err;
    assert_fails(nccl_api_fail(&api, NULL, 2, "meet", &err), &err, ERR_PEER,
                 "No space left on device (28); /dev/shm may be full: give the pod an emptyDir "
                 "with medium: Memory there, or the container --shm-size");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_collective),
        cmocka_unit_test(test_old_libraries_are_refused),
        cmocka_unit_test(test_an_error_of_nccls_tells_whose_it_is),
        cmocka_unit_test(test_a_full_shm_is_told_with_what_to_do),
    };
    return cmocka_run_group_tests(tests, nccl_find_library, NULL);
}
