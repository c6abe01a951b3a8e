#include "tests/operator/decode/decode_fixture.h"

#include "base/mem.h"
#include "base/yaml.h"
#include "tests/support.h"

#include <string.h>

void open_reading(struct reading *reading, const char *text)
{
    *reading = (struct reading){.arena = arena_open()};
    struct error err;
    assert_ok(yaml_parse(text, strlen(text), "test", &reading->documents, &err), &err);
    reading->object = json_at(reading->documents, 0);
    lines_init(&reading->problems, reading->arena);
    reading->result = decode_identity(reading->object, reading->arena, &reading->problems,
                                      &reading->identity, &reading->err);
}

void close_reading(struct reading *reading)
{
    json_free(reading->documents);
    arena_close(reading->arena);
}
