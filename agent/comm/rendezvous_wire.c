#include "agent/comm/rendezvous_wire.h"

#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

enum { SERVER = 1 << WIRE_FROM_SERVER, RANK = 1 << WIRE_FROM_RANK };

/* Who may send a message of the type. */
static const int senders[] = {
    [WIRE_CHALLENGE] = SERVER,
    [WIRE_JOIN] = RANK,
    [WIRE_WELCOME] = SERVER,
    [WIRE_AGAIN] = SERVER,
    [WIRE_REFUSED] = SERVER,
    [WIRE_SET] = RANK,
    [WIRE_GET] = RANK,
    [WIRE_REPLY] = SERVER,
    [WIRE_BEAT] = SERVER | RANK,
    [WIRE_INSPECT] = SERVER,
    [WIRE_LOST] = SERVER,
    [WIRE_FAILED] = RANK,
    [WIRE_GOODBYE] = SERVER | RANK,
};

static bool ends(const char *text, size_t bytes)
{
    return memchr(text, '\0', bytes) != NULL;
}

int wire_check(const struct wire_message *m, enum wire_sender sender, struct error *err)
{
    if (m->magic != WIRE_MAGIC)
        return error_set(err, ERR_INPUT, "what answers there is no shoal-agent of this version");
    if (m->type < 0 || m->type >= (int)array_length(senders) || !(senders[m->type] & 1 << sender))
        return error_set(err, ERR_INPUT, "an unexpected message of type %d", m->type);
    if (!ends(m->key, sizeof m->key) || !ends(m->text, sizeof m->text))
        return error_set(err, ERR_INPUT, "a message of type %d whose text does not end", m->type);
    if (m->type == WIRE_REPLY && (m->size < ERR_NONE || m->size > ERR_DIVERGED))
        return error_set(err, ERR_INPUT, "a reply with the unknown error code %d", m->size);
    return 0;
}
