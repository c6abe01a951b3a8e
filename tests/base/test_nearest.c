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
        {"xxab_learning_rate", "learning_rtae", 6},
        {"abcdefgh", "stuvwxyz", 8},
        {"abcdefghi", "stuvwxyzz", 9},
        {"a", "abcdefghijkl", 11},   /* beyond what is counted */
        {"badcfehg", "abcdefgh", 4}, /* all are swapped */
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        for (int most = -1; most <= NEAREST_MOST + 2; most++) {
            int far = (most < NEAREST_MOST ? most : NEAREST_MOST) + 1;
            int told = rows[i].distance < far ? rows[i].distance : far;
            assert_int_equal(nearest_distance(rows[i].a, rows[i].b, most), told);
            assert_int_equal(nearest_distance(rows[i].b, rows[i].a, most), told);
        }
    }
}

#define OF_64 "0123456789012345678901234567890123456789012345678901234567890123"

static void long_names_are_cut_off(void **state)
{
    (void)state;
    assert_int_equal(nearest_distance("8 more: " OF_64, OF_64, NEAREST_MOST), 8);
    assert_int_equal(nearest_distance("9 of it: " OF_64, OF_64, NEAREST_MOST), 9);
    assert_int_equal(nearest_distance(OF_64, OF_64 " and what does not count", 0), 0);
}

static void short_names_must_be_nearer(void **state)
{
    (void)state;
    assert_int_equal(nearest_limit("lr"), 0);
    assert_int_equal(nearest_limit("spec"), 1);
    assert_int_equal(nearest_limit("container"), 3);
    assert_int_equal(nearest_limit("a_name_of_many_letters"), 3);
}

static void a_slip_is_one_change_of_a_longer_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *known;
        bool is_slip;
    } rows[] = {
        {"epochz", "epochs", true},
        {"epcohs", "epochs", true},
        {"lrr", "lr", false},
        {"gpu", "tpu", false},
        {"num_layers", "num_labels", false},
        {"fooo", "foo", false},
        {"fsdp2", "fsdp", false},
        {"beta1_", "beta1", true},
        {"Num-Layers", "num_layers", true},
        {"adam_beta3", "adam_beta1", false},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_int_equal(nearest_is_slip(rows[i].name, rows[i].known), rows[i].is_slip);
}

static void the_nearest_word_of_a_list_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *name, *words, *separators, *note;
    } rows[] = {
        {"lineer", "constant=fixed linear", " =", " (the nearest is linear)"},
        {"noo", "bf16 'no'", " '", ""},
        {"bf61", "bf16, 'no'", ", '", " (the nearest is bf16)"},
        {"SOME_SHARD", "FULL_SHARD NO_SHARD", " ", ""},
        {"x", "", " ", ""},
        {"", "a b", " ", ""},
        {"nearly_so_many_characters_that_a_word_is_too_long_to_be_looked_at_",
         "nearly_so_many_characters_that_a_word_is_too_long_to_be_looked_at", " ", ""},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        assert_string_equal(nearest_note(rows[i].name, rows[i].words, rows[i].separators).text,
                            rows[i].note);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_count_changes),
        cmocka_unit_test(long_names_are_cut_off),
        cmocka_unit_test(short_names_must_be_nearer),
        cmocka_unit_test(a_slip_is_one_change_of_a_longer_name),
        cmocka_unit_test(the_nearest_word_of_a_list_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
