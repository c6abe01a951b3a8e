/* Marks of what has ended: counted while more come than there is room for. */
#include "agent/comm/stream_marks.h"

#include "tests/support.h"

#include <semaphore.h>

enum { FIRST_ROOM = 64 }; /* that of stream_marks.c, which grows past it */

static int wait_for(void *args, struct error *err)
{
    (void)err;
    return sem_wait(*(sem_t **)args);
}

static void add(struct stream_marks *marks, struct stream *stream, int count)
{
    struct error err;
    for (int i = 0; i < count; i++)
        assert_ok(stream_marks_add(marks, stream, &err), &err);
}

/* `before` have ended when the others come, so that the ring has turned when it grows. */
static void test_more_than_there_is_room_for(void **state)
{
    (void)state;
    static const struct {
        int before, queued;
    } rows[] = {{0, FIRST_ROOM},          {0, FIRST_ROOM + 1}, {40, FIRST_ROOM + 1},
                {63, 4 * FIRST_ROOM + 1}, {64, FIRST_ROOM},    {100, 3 * FIRST_ROOM}};
    struct device *device;
    struct stream *stream;
    struct error err;
    sem_t gate, *at = &gate;
    assert_ok(device_open("cpu", 1, &device, &err), &err);
    assert_ok(stream_open(device, "marked", &stream, &err), &err);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct stream_marks *marks = stream_marks_open(device);
        uint64_t before = (uint64_t)rows[i].before, queued = (uint64_t)rows[i].queued;
        sem_init(&gate, 0, 0);
        add(marks, stream, rows[i].before);
        assert_ok(stream_sync(stream, &err), &err);
        assert_int_equal(stream_marks_count(marks), before);
        stream_call(stream, wait_for, &at, sizeof at);
        add(marks, stream, rows[i].queued);
        assert_int_equal(stream_marks_count(marks), before);
        sem_post(&gate);
        assert_ok(stream_sync(stream, &err), &err);
        assert_int_equal(stream_marks_count(marks), before + queued);
        add(marks, stream, 1); /* and it goes on */
        assert_ok(stream_sync(stream, &err), &err);
        assert_int_equal(stream_marks_count(marks), before + queued + 1);
        stream_marks_close(marks);
        sem_destroy(&gate);
    }
    stream_close(stream);
    device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_more_than_there_is_room_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
