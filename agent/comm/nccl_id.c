#include "agent/comm/nccl_id.h"

#include <stdio.h>

enum { HALF = sizeof(struct nccl_id) / 2 }; /* as goes into a value of the store, in hexadecimal */

int nccl_id_send(struct store *store, const char *group, const struct nccl_id *id,
                 struct error *err)
{
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
    for (int half = 0; half < 2; half++) {
        snprintf(key, sizeof key, "%s/id/%d", group, half);
        for (int i = 0; i < HALF; i++)
            snprintf(value + 2 * i, 3, "%02x", (unsigned char)id->bytes[half * HALF + i]);
        if (store->fn->set(store, key, value, err))
            return -1;
    }
    return 0;
}

int nccl_id_receive(struct store *store, const char *group, int timeout_ms, struct nccl_id *ret_id,
                    struct error *err)
{
    char key[STORE_KEY_MAX], value[STORE_VALUE_MAX];
    for (int half = 0; half < 2; half++) {
        snprintf(key, sizeof key, "%s/id/%d", group, half);
        if (store->fn->get(store, key, timeout_ms, value, err))
            return -1;
        for (int i = 0; i < HALF; i++) {
            unsigned byte;
            if (sscanf(value + 2 * i, "%2x", &byte) != 1)
                return error_set(err, ERR_INPUT, "%s is no id of NCCL's", key);
            ret_id->bytes[half * HALF + i] = (char)byte;
        }
    }
    return 0;
}
