/* Attention: every row of attention_rows.c. */
#include "tests/kernels/attention_rows.h"

static void test_attention(void **state)
{
    for (size_t i = 0; i < attention_row_count; i++)
        check_attention(*state, &attention_rows[i]);
}

/* Threads are the CPU's. */
static void test_two_threads(void **state)
{
    const struct world *world = *state;
    if (device_is_host(world->device))
        test_attention(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_attention, world_setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_two_threads, world_setup_two_threads, world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
