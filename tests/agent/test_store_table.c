/* A store's table: each key once, and as many as all pairs of a thousand ranks need. */
#include "agent/comm/store_table.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

static void a_key_is_written_once(void **state)
{
    (void)state;
    struct store_table *t = store_table_open();
    struct error err;
    assert_null(store_table_get(t, "rank"));
    assert_int_equal(store_table_set(t, "rank", "0", &err), 0);
    assert_fails(store_table_set(t, "rank", "1", &err), &err, ERR_EXISTS, "rank is there already");
    assert_string_equal(store_table_get(t, "rank"), "0");
    store_table_close(t);
}

static void long_texts_are_refused(void **state)
{
    (void)state;
    struct store_table *t = store_table_open();
    struct error err;
    char text[STORE_VALUE_MAX + 1];
    memset(text, 'x', sizeof text);
    text[STORE_KEY_MAX] = '\0';
    assert_fails(store_table_set(t, text, "", &err), &err, ERR_INPUT, "too long");
    text[STORE_KEY_MAX - 1] = '\0';
    assert_int_equal(store_table_set(t, text, "", &err), 0);
    text[STORE_KEY_MAX - 1] = 'x', text[STORE_KEY_MAX] = 'x', text[STORE_VALUE_MAX] = '\0';
    assert_fails(store_table_set(t, "key", text, &err), &err, ERR_INPUT, "too long");
    text[STORE_VALUE_MAX - 1] = '\0';
    assert_int_equal(store_table_set(t, "key", text, &err), 0);
    assert_string_equal(store_table_get(t, "key"), text);
    store_table_close(t);
}

static void it_holds_very_many(void **state)
{
    (void)state;
    struct store_table *t = store_table_open();
    struct error err;
    char key[STORE_KEY_MAX];
    for (int i = 0; i < STORE_KEYS_MAX; i++) {
        snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(store_table_set(t, key, key, &err), 0);
    }
    assert_fails(store_table_set(t, "one more", "", &err), &err, ERR_INPUT,
                 "more than 1048576 keys");
    for (int i = 0; i < STORE_KEYS_MAX; i += 997) {
        snprintf(key, sizeof key, "key %d", i);
        assert_string_equal(store_table_get(t, key), key);
    }
    assert_null(store_table_get(t, "one more"));
    store_table_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_written_once),
        cmocka_unit_test(long_texts_are_refused),
        cmocka_unit_test(it_holds_very_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
