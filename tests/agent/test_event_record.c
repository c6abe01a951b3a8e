#include "tests/agent/event_reader.h"
#include "tests/support.h"

#include "agent/telemetry/crc32c.h"
#include "agent/telemetry/event_record.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static void crcs_are_the_known_ones(void **state)
{
    (void)state;
    uint8_t bytes[32];
    assert_int_equal(crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(crc32c("", 0), 0);
    memset(bytes, 0, sizeof bytes); /* RFC 3720, appendix B.4 */
    assert_int_equal(crc32c(bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c(bytes, sizeof bytes), 0x62a8ab43);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)i;
    assert_int_equal(crc32c(bytes, sizeof bytes), 0x46dd794e);
}

static void records_are_the_known_bytes(void **state)
{
    (void)state;
    auto_str struct str version, scalar;
    str_init(&version, EVENT_MAX_BYTES);
    str_init(&scalar, EVENT_MAX_BYTES);
    event_version_record(1, &version);
    assert_hex(version.text, version.length,
               "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a"
               "3286bf577a");
    event_scalars_record(2, 3, &(struct event_scalar){"loss", 0.5f}, 1, &scalar);
    assert_hex(scalar.text, scalar.length,
               "1a00000000000000129bd82d09000000000000004010032a0d0a0b0a046c6f7373150000"
               "003fbac36b94");
}

/* Long messages and large steps need varints of several bytes. */
static void what_is_written_is_read_back(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    struct event_scalar scalars[COUNT];
    char tags[COUNT][READ_TAG_BYTES];
    auto_str struct str file;
    str_init(&file, EVENT_MAX_BYTES);
    for (int i = 0; i < COUNT; i++) {
        snprintf(tags[i], sizeof tags[i], "memory/of_the_%dth_kind_that_there_is", i);
        scalars[i] = (struct event_scalar){tags[i], (float)i * -0.25f};
    }
    event_version_record(1750177492.125, &file);
    event_scalars_record(1750177493.5, INT64_C(1) << 40, scalars, COUNT, &file);
    event_scalars_record(1750177494, 0, scalars, 1, &file);
    assert_false(file.truncated);

    auto_free struct read_events *events = xmalloc(sizeof *events);
    event_reader_read(file.text, file.length, events);
    assert_int_equal(events->count, 3);
    assert_string_equal(events->items[0].file_version, "brain.Event:2");
    assert_true(events->items[0].wall_s == 1750177492.125);
    assert_int_equal(events->items[1].step, INT64_C(1) << 40);
    assert_int_equal(events->items[1].scalar_count, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_true(event_reader_value(&events->items[1], tags[i]) == (float)i * -0.25f);
    assert_int_equal(events->items[2].step, 0);
    assert_int_equal(events->items[2].scalar_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crcs_are_the_known_ones),
        cmocka_unit_test(records_are_the_known_bytes),
        cmocka_unit_test(what_is_written_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
