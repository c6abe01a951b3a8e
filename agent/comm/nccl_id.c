#include "agent/comm/nccl_id.h"

#include <stdio.h>
#include <string.h>

enum { PART_BYTES = sizeof(struct nccl_id) / NCCL_ID_PARTS };

_Static_assert(2 * PART_BYTES < STORE_VALUE_MAX, "a part fits into a value of the store");

void nccl_id_encode(const struct nccl_id *id, int part, char ret_text[STORE_VALUE_MAX])
{
    for (int i = 0; i < PART_BYTES; i++)
        snprintf(ret_text + 2 * i, 3, "%02x", (unsigned char)id->bytes[part * PART_BYTES + i]);
}

static int digit(char c)
{
    const char *digits = "0123456789abcdef", *at = memchr(digits, c, 16);
    return at ? (int)(at - digits) : -1;
}

int nccl_id_decode(const char *text, int part, struct nccl_id *ret_id, struct error *err)
{
    if (strlen(text) != 2 * PART_BYTES)
        return error_set(err, ERR_INPUT, "an NCCL id of %zu digits instead of %d", strlen(text),
                         2 * PART_BYTES);
    for (int i = 0; i < PART_BYTES; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return error_set(err, ERR_INPUT, "an NCCL id with other characters than 0-9a-f");
        ret_id->bytes[part * PART_BYTES + i] = (char)(16 * high + low);
    }
    return 0;
}
