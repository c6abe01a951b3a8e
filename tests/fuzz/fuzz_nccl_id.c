/* The texts of an NCCL id in the store: what decodes is just what would be encoded. */
#include "tests/fuzz/fuzz.h"

#include "agent/comm/nccl_id.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_free char *text = xmalloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    for (int part = 0; part < NCCL_ID_PARTS; part++) {
        struct nccl_id id = {.bytes = {0}};
        struct error err;
        char encoded[STORE_VALUE_MAX];
        if (nccl_id_decode(text, part, &id, &err) < 0) {
            assert(err.code == ERR_INPUT && err.msg[0]);
            continue;
        }
        nccl_id_encode(&id, part, encoded);
        assert(strcmp(encoded, text) == 0);
    }
    return 0;
}
