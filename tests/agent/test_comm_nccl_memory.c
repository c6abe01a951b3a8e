/* Memory that is registered with NCCL: while it is there, and as long as it is used. */
#include "tests/agent/nccl_ranks.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Memory that goes back to the system is not registered any more, whatever comes to lie there. */
static int move_in_fresh_memory(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    enum { COUNT = 1000 };
    struct device *device = stream_device(s);
    for (int i = 0; i < 100; i++) {
        void *all, *other, *rest;
        size_t bytes = (size_t)(i + 1) * COUNT * 2 * 4;
        if (device_alloc(device, MEMORY_UNIT, bytes, "all", &all, err) ||
            device_alloc(device, MEMORY_UNIT, bytes, "other", &other, err))
            return -1;
        memset(all, 0, bytes);
        c->fn->all_gather(c, s, DTYPE_F32, all, (float *)all + r->rank * (i + 1) * COUNT,
                          (i + 1) * COUNT);
        c->fn->all_to_all(c, s, DTYPE_F32, other, all, (i + 1) * COUNT, (i + 1) * COUNT, NULL);
        int result = stream_sync(s, err);
        device_free(device, all);
        device_free(device, other);
        if (result)
            return -1;
        /* beyond what there is: what is cached is given back */
        struct error ignored;
        if (device_alloc(device, MEMORY_UNIT, (size_t)1 << 60, "too much", &rest, &ignored) == 0)
            return error_set(err, ERR_INPUT, "memory without end");
    }
    return 0;
}

static void test_memory_is_registered_while_it_is_there(void **state)
{
    (void)state;
    struct rank ranks[2] = {0};
    nccl_ranks_run(ranks, 2, "registered=1",
                   &(struct nccl_wish){.body = move_in_fresh_memory, .registers = true});
    for (int i = 0; i < 2; i++)
        assert_ok(ranks[i].result, &ranks[i].err);
}

/* The reserve is NCCL's memory, registered as a whole while it is there: the fake ends the test
 * where it is freed before. */
static int move_within_reserve(struct rank *r, struct comm *c, struct stream *s, struct error *err)
{
    enum { COUNT = 1000 };
    struct device *device = stream_device(s);
    struct memory_use use;
    void *all;
    if (device_reserve(device, NCCL_MEMORY_GRANULE, err) ||
        device_alloc(device, MEMORY_UNIT, 2 * COUNT * sizeof(float), "all", &all, err))
        return -1;
    memset(all, 0, 2 * COUNT * sizeof(float));
    c->fn->all_gather(c, s, DTYPE_F32, all, (float *)all + r->rank * COUNT, COUNT);
    int result = stream_sync(s, err);
    device_free(device, all);
    device_memory_use(device, &use);
    if (result == 0 && use.reserve_is_lent != (strstr(getenv("FAKE_NCCL"), "lends=0") == NULL &&
                                               strstr(getenv("FAKE_NCCL"), "22600") == NULL))
        return error_set(err, ERR_INPUT, "whose memory the reserve is: %d", use.reserve_is_lent);
    return result;
}

static void test_the_reserve_is_nccls(void **state)
{
    static const char *const settings[] = {"registered=1", "registered=1,lends=0",
                                           "registered=1,version=22600"};
    (void)state;
    for (size_t n = 0; n < array_length(settings); n++) {
        struct rank ranks[2] = {0};
        nccl_ranks_run(ranks, 2, settings[n],
                       &(struct nccl_wish){.body = move_within_reserve, .registers = true});
        for (int i = 0; i < 2; i++)
            assert_ok(ranks[i].result, &ranks[i].err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_registered_while_it_is_there),
        cmocka_unit_test(test_the_reserve_is_nccls),
    };
    return cmocka_run_group_tests(tests, nccl_find_library, NULL);
}
