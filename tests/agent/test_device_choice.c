#include "agent/launch/device_choice.h"

#include "base/mem.h"

#include "tests/support.h"

#include <string.h>

static const char no_driver[] = "no CUDA driver", old_driver[] = "the driver is too old";

static void test_what_is_asked_for_and_there_is_taken(void **state)
{
    (void)state;
    static const struct {
        struct device_request wish;
        const char *name, *notice; /* name: or the error's text */
        enum error_code code;
        bool may_share;
    } rows[] = {
        {{"cpu", false, 0, 4, NULL, false}, "cpu", "", ERR_NONE, false},
        {{"auto", false, 0, 0, no_driver, false}, "cpu", "no CUDA driver", ERR_NONE, false},
        {{"auto", false, 0, 0, old_driver, true},
         "runtime.device=auto: the driver is too old; --device cpu trains without it",
         "",
         ERR_UNSUPPORTED,
         false},
        {{"cpu", false, 0, 0, old_driver, true}, "cpu", "", ERR_NONE, false},
        {{"auto", false, 3, 4, NULL, false}, "cuda:3", "", ERR_NONE, false},
        {{"auto", false, 3, 1, NULL, false}, "cuda:0", "", ERR_NONE, false},
        {{"cuda", false, 0, 8, NULL, false}, "cuda:0", "", ERR_NONE, false},
        {{"cuda", true, 3, 2, NULL, false}, "cuda:1", "", ERR_NONE, true},
        {{"cuda", false, 3, 2, NULL, false}, "cuda:1", "", ERR_NONE, false},
        {{"cuda:1", false, 0, 2, NULL, false}, "cuda:1", "", ERR_NONE, true},
        {{"cuda:2", false, 0, 2, NULL, false},
         "2 GPUs, numbered from 0",
         "",
         ERR_UNSUPPORTED,
         false},
        {{"cuda", false, 0, 0, no_driver, false},
         "runtime.device=cuda: no CUDA driver",
         "",
         ERR_UNSUPPORTED,
         false},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct device_choice choice;
        struct error err = {0};
        int result = device_choose(&rows[i].wish, &choice, &err);
        if (rows[i].code) {
            assert_fails(result, &err, rows[i].code, rows[i].name);
            continue;
        }
        assert_ok(result, &err);
        assert_string_equal(choice.name, rows[i].name);
        assert_int_equal(choice.may_share, rows[i].may_share);
        assert_non_null(strstr(choice.notice, rows[i].notice));
        assert_int_equal(choice.notice[0] != 0, rows[i].notice[0] != 0);
    }
}

static void test_only_devices_that_exist_have_names(void **state)
{
    (void)state;
    static const char *const valid[] = {"auto", "cpu", "cuda", "cuda:0", "cuda:15"};
    static const char *const invalid[] = {"", "gpu", "cuda:", "cuda:-1", "cuda:x", "tpu", "CPU"};
    for (size_t i = 0; i < array_length(valid); i++)
        assert_true(device_choice_is_valid(valid[i]));
    for (size_t i = 0; i < array_length(invalid); i++)
        assert_false(device_choice_is_valid(invalid[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_asked_for_and_there_is_taken),
        cmocka_unit_test(test_only_devices_that_exist_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
