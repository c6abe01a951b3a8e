/* What our attention and cuDNN's took on the GPUs of a few architectures (attention_choice.h).
 * `make attention-table` writes the rows, those of the machine's GPU in place of older ones of its
 * architecture; nobody else does. */
#include "kernels/attention_choice.h"

const struct attention_measured attention_table[] = {
    /* clang-format off */
    {0}, /* the end */
    /* clang-format on */
};
