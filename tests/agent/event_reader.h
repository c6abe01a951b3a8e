/* Reads TensorBoard's event files, written from the formats' descriptions alone: nothing of it is
 * shared with agent/telemetry. Fails the test at the first byte that is wrong. */
#ifndef SHOAL_TESTS_AGENT_EVENT_READER_H
#define SHOAL_TESTS_AGENT_EVENT_READER_H

#include <stddef.h>
#include <stdint.h>

enum { READ_EVENTS_MAX = 64, READ_SCALARS_MAX = 64, READ_TAG_BYTES = 64 };

struct read_scalar {
    char tag[READ_TAG_BYTES];
    float value;
};

struct read_event {
    double wall_s;
    int64_t step;
    char file_version[READ_TAG_BYTES]; /* "" if it has none */
    struct read_scalar scalars[READ_SCALARS_MAX];
    int scalar_count;
};

struct read_events {
    struct read_event items[READ_EVENTS_MAX];
    int count;
};

void event_reader_read(const void *bytes, size_t count, struct read_events *ret_events);

/* The value of a tag, which must be there. */
float event_reader_value(const struct read_event *event, const char *tag);
/* Whether the tag is there. */
int event_reader_has(const struct read_event *event, const char *tag);
#endif
