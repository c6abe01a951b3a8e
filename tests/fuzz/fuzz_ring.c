/* What a stranger may say to a rank of a ring: the address in the store, the hello on a connection,
 * the header of a pass. */
#include "tests/fuzz/fuzz.h"

#include "agent/comm/ring_wire.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The first so many bytes; what is missing is 0. */
static void fill(void *out, size_t bytes, const uint8_t *data, size_t size)
{
    memset(out, 0, bytes);
    memcpy(out, data, size < bytes ? size : bytes);
}

static void decode_address(const uint8_t *data, size_t size)
{
    auto_free char *text = xmalloc(size + 1);
    struct ring_address address, again;
    struct error err;
    fill(text, size + 1, data, size);
    if (ring_address_decode(text, &address, &err) < 0) {
        assert(err.code == ERR_INPUT && err.msg[0]);
        return;
    }
    assert(address.port > 0 && address.port <= UINT16_MAX && address.host[0]);
    char encoded[STORE_VALUE_MAX];
    ring_address_encode(&address, encoded);
    assert(ring_address_decode(encoded, &again, &err) == 0);
    assert(strcmp(again.token, address.token) == 0 && again.port == address.port);
    assert(strcmp(again.host, address.host) == 0);
    assert(strcmp(again.socket_name, address.socket_name) == 0);
}

static void check_hello(const uint8_t *data, size_t size)
{
    static const char token[RING_TOKEN_BYTES] = "0123456789abcdef";
    struct ring_hello hello;
    struct error err;
    fill(&hello, sizeof hello, data, size);
    if (ring_hello_check(&hello, token, 1, &err) == 0)
        assert(memcmp(hello.token, token, sizeof token) == 0 && hello.rank == 1);
    else
        assert(err.code == ERR_INPUT && err.msg[0]);
}

static void check_header(const uint8_t *data, size_t size)
{
    const struct ring_header ours = ring_header_of(3, "all_reduce", 4096);
    struct ring_header theirs;
    struct error err;
    fill(&theirs, sizeof theirs, data, size);
    if (ring_header_check(&theirs, &ours, 0, &err) == 0)
        return;
    assert(err.code == ERR_INPUT);
    for (const char *at = err.msg; *at; at++) /* it goes into a log */
        assert(*at >= ' ' && *at < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode_address(data, size);
    check_hello(data, size);
    check_header(data, size);
    return 0;
}
