#include "tests/agent/taped.h"

#include "tests/support.h"

#include <stdlib.h>

void taped_open(struct taped *t)
{
    struct error err;
    t->arena = arena_open();
    assert_ok(device_open("cpu", 1, &t->device, &err), &err);
    assert_ok(stream_open(t->device, "compute", &t->stream, &err), &err);
    assert_ok(tape_open(t->stream, DTYPE_F32, NULL, &t->tape, &err), &err);
}

void taped_close(struct taped *t)
{
    struct memory_use use;
    device_memory_use(t->device, &use);
    assert_int_equal(use.current_total_bytes, 0);
    tape_close(t->tape);
    stream_close(t->stream);
    device_close(t->device);
    arena_close(t->arena);
}

int taped_setup(void **state)
{
    struct taped *t = xcalloc(1, sizeof *t);
    taped_open(t);
    *state = t;
    return 0;
}

int taped_teardown(void **state)
{
    taped_close(*state);
    free(*state);
    return 0;
}
