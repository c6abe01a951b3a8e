#include "operator/local/local_events.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static void set_text(char *to, size_t bytes, const char *text)
{
    snprintf(to, bytes, "%s", text);
    utf8_make_printable(to, strlen(to)); /* it may be cut amid a character */
}

static void remove_at(struct local_events *events, size_t index)
{
    events->count--;
    memmove(&events->items[index], &events->items[index + 1],
            (events->count - index) * sizeof events->items[0]);
}

void local_events_add(struct local_events *events, int64_t now_ms, enum event_type type,
                      const char *reason, const char *message)
{
    struct local_event fresh = {.time_ms = now_ms, .count = 1, .type = type};
    set_text(fresh.reason, sizeof fresh.reason, reason);
    set_text(fresh.message, sizeof fresh.message, message);
    for (size_t i = 0; i < events->count; i++) {
        const struct local_event *old = &events->items[i];
        if (strcmp(old->reason, fresh.reason) == 0 && strcmp(old->message, fresh.message) == 0) {
            fresh.count += old->count;
            remove_at(events, i);
            break;
        }
    }
    if (events->count == LOCAL_EVENTS_MAX)
        remove_at(events, 0);
    events->items[events->count++] = fresh;
}
