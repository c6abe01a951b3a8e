#include "kernels/cuda/attention_choice.h"

#include "base/contract.h"
#include "base/mem.h"

#include <string.h>

int attention_mode_read(const char *text, enum attention_mode *ret_mode, struct error *err)
{
    static const char *const names[] = {
        [ATTENTION_AUTO] = "auto", [ATTENTION_OURS] = "ours", [ATTENTION_CUDNN] = "cudnn"};
    *ret_mode = ATTENTION_AUTO;
    if (!text || !*text)
        return 0;
    for (size_t i = 0; i < array_length(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *ret_mode = (enum attention_mode)i;
            return 0;
        }
    return error_set(err, ERR_CONFIG, ENV_ATTENTION " is \"%s\": auto, ours or cudnn is meant",
                     text);
}

static bool is_possible(enum dtype t, const struct attention_shape *z)
{
    return t == DTYPE_BF16 && (z->hd == 64 || z->hd == 128) && !z->bias && z->dropout <= 0 &&
           !z->key_counts && (z->q_stride | z->k_stride | z->v_stride) % 8 == 0;
}

bool attention_asks_cudnn(enum attention_mode mode, enum dtype t, const struct attention_shape *z)
{
    return mode == ATTENTION_CUDNN && is_possible(t, z);
}
