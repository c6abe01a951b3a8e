#include "tests/support.h"

#include "base/mem.h"
#include "base/nearest.h"

static void distances_count_changes(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        int distance;
    } rows[] = {
        {"", "", 0},
        {"abc", "", 3},
        {"", "abc", 3},
        {"restartPolcy", "restartPolicy", 1},
        {"pytorchjob", "PyTorchJob", 0},
        {"batch-size", "batch_size", 0},
        {"kitten", "sitting", 3},
        {"valeu", "value", 1}, /* two neighbours swapped are one change */
        {"nmae", "name", 1},
        {"Nmae-a", "name_a", 1},
        {"ab", "ba", 1},
        {"abcd", "badc", 2},
        {"abc", "ca", 3}, /* what was swapped is not changed again */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        assert_int_equal(nearest_distance(rows[i].a, rows[i].b), rows[i].distance);
        assert_int_equal(nearest_distance(rows[i].b, rows[i].a), rows[i].distance);
    }
}

static void short_names_must_be_nearer(void **state)
{
    (void)state;
    assert_int_equal(nearest_limit("lr"), 0);
    assert_int_equal(nearest_limit("spec"), 1);
    assert_int_equal(nearest_limit("container"), 3);
    assert_int_equal(nearest_limit("a_name_of_many_letters"), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_count_changes),
        cmocka_unit_test(short_names_must_be_nearer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
