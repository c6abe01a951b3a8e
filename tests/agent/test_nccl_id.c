/* NCCL's ids as texts. */
#include "agent/comm/nccl_id.h"

#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

static void test_both_parts_come_back(void **state)
{
    (void)state;
    struct nccl_id id, decoded = {.bytes = {0}};
    struct error err;
    for (size_t i = 0; i < sizeof id.bytes; i++)
        id.bytes[i] = (char)(i * 37 + 200);
    for (int part = 0; part < NCCL_ID_PARTS; part++) {
        char text[STORE_VALUE_MAX];
        nccl_id_encode(&id, part, text);
        assert_int_equal(strlen(text), sizeof id.bytes);
        assert_ok(nccl_id_decode(text, part, &decoded, &err), &err);
    }
    assert_memory_equal(&id, &decoded, sizeof id);
}

/* In the text of 128 zeros this comes at some place. */
static void test_other_texts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *put;
        int at, length;
    } rows[] = {
        {"", 0, 0},     {"", 0, 127},   {"", 0, 129},    {" 1", 0, 128},
        {"+1", 0, 128}, {"0x", 2, 128}, {"g", 127, 128}, {"A", 64, 128},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        struct nccl_id id;
        struct error err;
        char text[STORE_VALUE_MAX] = "";
        memset(text, '0', (size_t)rows[i].length);
        memcpy(text + rows[i].at, rows[i].put, strlen(rows[i].put));
        assert_fails(nccl_id_decode(text, 0, &id, &err), &err, ERR_INPUT, "an NCCL id");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_parts_come_back),
        cmocka_unit_test(test_other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
