/* Objects and arrays of many items, which have an index, and what happens when memory runs out. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/support_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 128000 };

static size_t comparisons, most_comparisons = SIZE_MAX;

/* How many comparisons of names there may be from now on: what walks would take minutes to end. */
static void allow_comparisons(size_t most)
{
    comparisons = 0;
    most_comparisons = most;
}

/* This program's own comes before that of the C library. */
int strcmp(const char *a, const char *b)
{
    if (++comparisons > most_comparisons) {
        allow_comparisons(SIZE_MAX);
        fail_msg("too many names are compared");
    }
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static char *numbered(int number, char key[32])
{
    snprintf(key, 32, "key %d", number);
    return key;
}

/* {"key 0":0,"key 1":1,...} */
static struct json *parse_many(void)
{
    auto_str struct str text;
    str_init(&text, 16 << 20);
    for (int i = 0; i < MANY; i++)
        str_printf(&text, "%c\"key %d\":%d", i ? ',' : '{', i, i);
    str_add(&text, "}");
    return json_parse_text(str_text(&text), JSON_STRICT, NULL);
}

/* At most half of the index is in use, so that a look-up meets less than two names on average. A
 * walk would meet 64,000. */
static void a_look_up_compares_few_names(void **state)
{
    (void)state;
    enum { FEW = 2 };
    char key[32];
    allow_comparisons((size_t)2 * FEW * MANY); /* each name again when the index grows */
    struct json *value = parse_many();
    allow_comparisons((size_t)FEW * MANY);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(json_as_integer(json_get(value, numbered(i, key))), i);
    assert_true(comparisons >= MANY); /* they are counted */
    allow_comparisons((size_t)FEW * MANY);
    for (int i = 0; i < MANY; i++)
        assert_null(json_get(value, numbered(MANY + i, key)));
    allow_comparisons(SIZE_MAX);
    assert_int_equal(json_object_count(value), MANY);
    assert_null(json_get(value, "Key 1"));
    json_free(value);
}

static void a_large_object_grows_and_shrinks(void **state)
{
    (void)state;
    enum { FEW = 8 }; /* to find, to set and to close the gap */
    char key[32];
    struct json *value = json_new_object();
    allow_comparisons((size_t)FEW * MANY);
    for (int i = 0; i < MANY; i++)
        json_set_integer(value, numbered(i, key), i);
    for (int i = 0; i < MANY; i++) {
        json_set_integer(value, numbered(i, key), i + 1);
        if (i % 2)
            json_remove(value, key);
    }
    allow_comparisons(SIZE_MAX);
    assert_int_equal(json_object_count(value), MANY / 2);
    assert_int_equal(json_as_integer(json_get(value, "key 64000")), 64001);
    assert_null(json_get(value, "key 64001"));
    json_free(value);
}

/* Sets and removes at random among few names, beside a plain table of what must be there. */
static void objects_stay_right_while_they_change(void **state)
{
    (void)state;
    enum { NAMES = 60, STEPS = 20000 };
    int64_t expected[NAMES] = {0};
    unsigned random = 7;
    struct json *object = json_new_object();
    for (int64_t step = 1; step <= STEPS; step++) {
        random = random * 1664525 + 1013904223;
        size_t name = (random >> 16) % NAMES, count = 0;
        bool set = (random >> 8) % 16 < (step / 1000 % 2 ? 12 : 4); /* grows and shrinks */
        char key[8];
        snprintf(key, sizeof key, "k%zu", name);
        if (set)
            json_set_integer(object, key, step);
        else
            json_remove(object, key);
        expected[name] = set ? step : 0;
        for (size_t i = 0; i < NAMES; i++) {
            snprintf(key, sizeof key, "k%zu", i);
            assert_true(json_as_integer(json_get(object, key)) == expected[i]);
            count += expected[i] != 0;
        }
        assert_int_equal(json_object_count(object), count);
    }
    json_free(object);
}

static void items_are_taken_from_large_arrays(void **state)
{
    (void)state;
    struct json *array = json_new_array();
    for (int i = 0; i < 100; i++)
        json_append(array, json_new_integer(i));
    for (size_t left = 100; left > 0; left--) {
        size_t at = 7919 % left;
        struct json *next = json_at(array, at + 1), *item = json_take_at(array, at);
        assert_non_null(item);
        assert_ptr_equal(json_at(array, at), next);
        assert_int_equal(json_array_count(array), left - 1);
        json_free(item);
    }
    json_free(array);
}

static void large_objects_have_no_duplicates(void **state)
{
    (void)state;
    auto_str struct str text;
    str_init(&text, 1 << 20);
    str_add(&text, "[[{\"x\":0}],{");
    for (int i = 0; i < 1000; i++)
        str_printf(&text, "\"%d\":{\"a\":1},\n", i);
    str_add(&text, "\"500\":1}]");
    struct error err = {0};
    assert_null(json_parse_text(str_text(&text), JSON_STRICT, &err));
    assert_string_equal(err.msg, "line 1001, column 1: duplicate object key near '\"500\"'");
    struct json *value = json_parse_text(str_text(&text), JSON_ALLOW_DUPLICATES, &err);
    assert_int_equal(json_object_count(json_at(value, 1)), 1000);
    assert_int_equal(json_as_integer(json_get(json_at(value, 1), "500")), 1);
    json_free(value);
}

static void parse(const void *text)
{
    json_free(json_parse_text(text, JSON_STRICT, NULL));
}

static void running_out_of_memory_ends_the_program(void **state)
{
    (void)state;
    support_assert_needs_memory(parse, "[\"a\"]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_up_compares_few_names),
        cmocka_unit_test(a_large_object_grows_and_shrinks),
        cmocka_unit_test(objects_stay_right_while_they_change),
        cmocka_unit_test(items_are_taken_from_large_arrays),
        cmocka_unit_test(large_objects_have_no_duplicates),
        cmocka_unit_test(running_out_of_memory_ends_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
