/* Texts that are packed and come back as they were. */
#include "base/packed.h"

#include "base/mem.h"
#include "tests/support.h"
#include "tests/support_memory.h"

#include <stdlib.h>
#include <string.h>

static void check(struct packed **kept, const char *text)
{
    *kept = packed_keep(*kept, text);
    auto_free char *again = packed_text(*kept);
    assert_string_equal(again, text);
}

/* Of any length and kind, each where the one before was. */
static void texts_come_back(void **state)
{
    (void)state;
    struct packed *kept = NULL;
    check(&kept, "");
    check(&kept, "x");
    for (size_t bytes = 1; bytes < (2 << 20); bytes *= 3) {
        char *text = xmalloc(bytes + 1);
        memset(text, 'a', bytes);
        text[bytes] = '\0';
        check(&kept, text);
        uint32_t random = 1; /* what does not pack: any bytes but an end */
        for (size_t i = 0; i < bytes; i++) {
            random = random * 1664525 + 1013904223;
            text[i] = (char)(1 + (random >> 8) % 255);
        }
        check(&kept, text);
        free(text);
    }
    free(kept);
}

/* ... and takes less room than the text. */
static void json_gets_smaller(void **state)
{
    (void)state;
    static const char text[] =
        "{\"conditions\":[{\"type\":\"Created\",\"status\":\"True\",\"reason\":\"PyTorchJobCreated\","
        "\"message\":\"PyTorchJob many-123 is created.\",\"lastUpdateTime\":\"2026-01-01T00:00:00Z\","
        "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"},{\"type\":\"Running\",\"status\":\"True\","
        "\"reason\":\"PyTorchJobRunning\",\"message\":\"PyTorchJob many-123 is running.\","
        "\"lastUpdateTime\":\"2026-01-01T00:00:00Z\",\"lastTransitionTime\":"
        "\"2026-01-01T00:00:00Z\"}],\"replicaStatuses\":{\"Master\":{\"active\":1}},"
        "\"startTime\":\"2026-01-01T00:00:00Z\"}";
    struct packed *kept = NULL;
    check(&kept, text);
    assert_in_range(kept->bytes, 1, strlen(text) / 2);
    free(kept);
}

static void pack(const void *text)
{
    packed_keep(NULL, text);
}

static void unpack(const void *packed)
{
    packed_text(packed);
}

static void running_out_of_memory_ends_the_program(void **state)
{
    (void)state;
    static struct packed *packed; /* where sanitizers skip the test, nobody frees it */
    packed = packed_keep(NULL, "x");
    support_assert_needs_memory(pack, "x");
    support_assert_needs_memory(unpack, packed);
    free(packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(json_gets_smaller),
        cmocka_unit_test(running_out_of_memory_ends_the_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
