#include "agent/comm/meeting_wire.h"

#include "agent/comm/net.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAGIC 0x53484d31 /* "SHM1"; changes with the protocol */

int meeting_send(const struct meeting_link *link, struct meeting_message *message,
                 struct error *err)
{
    message->magic = MAGIC;
    return net_send(link->fd, message, sizeof *message, clock_monotonic_ms() + MEETING_SEND_MS,
                    err);
}

int meeting_check(const struct meeting_message *m, struct error *err)
{
    if (m->magic != MAGIC)
        return error_set(err, ERR_INPUT, "what answers there is no launcher of this version");
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
