#include "agent/comm/meeting_wire.h"

#include "agent/comm/net.h"
#include "base/clock.h"
#include "base/contract.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC 0x53484f4c /* "SHOL" */

enum { PROTOCOL = 2 };

_Static_assert(sizeof(struct meeting_header) == 32, "it is the same in all versions");
_Static_assert(sizeof SHOAL_VERSION <= MEETING_VERSION_BYTES, "it has room");

int meeting_send(const struct meeting_link *link, struct meeting_message *message,
                 struct error *err)
{
    message->header = (struct meeting_header){.magic = MAGIC, .protocol = PROTOCOL};
    snprintf(message->header.version, sizeof message->header.version, "%s", SHOAL_VERSION);
    return net_send(link->fd, message, sizeof *message, clock_monotonic_ms() + MEETING_SEND_MS,
                    err);
}

static bool is_text(const char *text, size_t bytes)
{
    size_t length = strnlen(text, bytes);
    for (size_t i = 0; i < length; i++)
        if (!isprint((unsigned char)text[i]))
            return false;
    return length > 0 && length < bytes;
}

static int check_header(const struct meeting_header *h, struct error *err)
{
    if (h->magic != MAGIC || !is_text(h->version, sizeof h->version))
        return error_set(err, ERR_INPUT, "what answers there is no launcher");
    if (h->protocol != PROTOCOL || strcmp(h->version, SHOAL_VERSION) != 0)
        return error_set(err, ERR_UNSUPPORTED,
                         "the other launcher is shoal-agent %s (protocol %u), this one is %s "
                         "(protocol %d): all nodes of a run need one version",
                         h->version, h->protocol, SHOAL_VERSION, PROTOCOL);
    return 0;
}

int meeting_check(const struct meeting_message *m, struct error *err)
{
    if (check_header(&m->header, err))
        return -1;
    if (m->type < 0 || m->type >= MEETING_TYPES)
        return error_set(err, ERR_INPUT, "an unknown message of type %d", m->type);
    if (!memchr(m->text, '\0', sizeof m->text) || !memchr(m->name, '\0', sizeof m->name) ||
        !memchr(m->proof, '\0', sizeof m->proof))
        return error_set(err, ERR_INPUT, "a message of type %d whose text does not end", m->type);
    return 0;
}

int meeting_receive(struct meeting_link *link, int64_t now_ms, struct error *err)
{
    ssize_t n =
        recv(link->fd, (char *)&link->in + link->in_bytes, sizeof link->in - link->in_bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return error_set(err, ERR_PEER, "%s", n < 0 ? strerror(errno) : "connection closed");
    link->in_bytes += (size_t)n;
    if (link->in_bytes >= sizeof link->in.header && check_header(&link->in.header, err))
        return -1; /* of another version the rest may never come */
    if (link->in_bytes < sizeof link->in)
        return 0;
    link->in_bytes = 0;
    link->heard_ms = now_ms;
    return meeting_check(&link->in, err) ? -1 : 1;
}

void meeting_hang_up(struct meeting_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    link->in_bytes = 0;
}
