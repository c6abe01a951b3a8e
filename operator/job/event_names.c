#include "operator/job/event_names.h"

#include "base/mem.h"

#include <assert.h>

void event_names_add(struct event_names *names, const char *name, struct arena *arena)
{
    if (names->count++ < EVENT_NAMES_MAX)
        names->text = names->text ? arena_printf(arena, "%s, %s", names->text, name) : name;
}

const char *event_names_text(const struct event_names *names, struct arena *arena)
{
    assert(names->text);
    if (names->count <= EVENT_NAMES_MAX)
        return names->text;
    return arena_printf(arena, "%s and %zu more", names->text, names->count - EVENT_NAMES_MAX);
}
