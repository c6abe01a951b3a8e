#include "agent/comm/ring_wire.h"

#include "base/str.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void ring_address_encode(const struct ring_address *address, char ret_text[STORE_VALUE_MAX])
{
    snprintf(ret_text, STORE_VALUE_MAX, "%s %d %s %s", address->token, address->port, address->host,
             address->socket_name);
}

static bool is_token(const char *text)
{
    return strlen(text) == RING_TOKEN_BYTES - 1 &&
           strspn(text, "0123456789abcdef") == RING_TOKEN_BYTES - 1;
}

/* Each word is read one byte longer than it may be, so that a longer one is not cut but refused. */
int ring_address_decode(const char *text, struct ring_address *ret_address, struct error *err)
{
    char token[RING_TOKEN_BYTES + 1], name[RING_TOKEN_BYTES + 1], port[8], host[STORE_HOST_MAX + 1],
        more;
    int64_t number = 0;
    bool is_whole = sscanf(text, "%17s %7s %64s %17s %c", token, port, host, name, &more) == 4 &&
                    is_token(token) && is_token(name) && strlen(host) < STORE_HOST_MAX &&
                    str_to_i64(port, 1, UINT16_MAX, &number);
    if (!is_whole)
        return error_set(err, ERR_INPUT, "the store holds \"%.64s\" instead of an address", text);
    *ret_address = (struct ring_address){.port = (int)number};
    memcpy(ret_address->token, token, RING_TOKEN_BYTES);
    memcpy(ret_address->socket_name, name, RING_TOKEN_BYTES);
    memcpy(ret_address->host, host, STORE_HOST_MAX);
    return 0;
}

int ring_hello_check(const struct ring_hello *hello, const char token[RING_TOKEN_BYTES], int rank,
                     struct error *err)
{
    if (CRYPTO_memcmp(hello->token, token, RING_TOKEN_BYTES) != 0)
        return error_set(err, ERR_INPUT, "a connection without this ring's token");
    if (hello->rank != rank)
        return error_set(err, ERR_INPUT, "rank %d of the ring connects, not rank %d", hello->rank,
                         rank);
    return 0;
}

struct ring_header ring_header_of(uint32_t sequence, const char *name, int64_t total_bytes)
{
    struct ring_header header; /* compared as bytes: the padding must be 0, too */
    memset(&header, 0, sizeof header);
    header.sequence = sequence;
    header.total_bytes = total_bytes;
    snprintf(header.name, sizeof header.name, "%s", name);
    return header;
}

/* The name goes into an error message and a log: only what may stand in an identifier is shown. */
static void printable(const char name[sizeof((struct ring_header *)NULL)->name], char *out)
{
    size_t at = 0;
    for (; at + 1 < sizeof((struct ring_header *)NULL)->name && name[at]; at++)
        out[at] = isalnum((unsigned char)name[at]) || name[at] == '_' ? name[at] : '?';
    out[at] = '\0';
}

int ring_header_check(const struct ring_header *theirs, const struct ring_header *ours, int from,
                      struct error *err)
{
    char name[sizeof theirs->name];
    if (memcmp(theirs, ours, sizeof *theirs) == 0)
        return 0;
    printable(theirs->name, name);
    return error_set(err, ERR_INPUT,
                     "the ranks disagree: rank %d runs %s %u of %lld bytes, this one %s %u of "
                     "%lld bytes",
                     from, name, theirs->sequence, (long long)theirs->total_bytes, ours->name,
                     ours->sequence, (long long)ours->total_bytes);
}
