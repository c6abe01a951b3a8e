/* What others have measured of attention on GPUs that we have not (attention_choice.h). Their
 * figures are of 8192 tokens; that they hold from 2048 on is a guess. */
#include "kernels/attention_choice.h"

enum { FROM = 2048 };
#define FA3 "FlashAttention 2 and cuDNN 9.1 on an H100 (Shah et al. 2024, FlashAttention-3)"
#define CSV                                                                                        \
    "cuDNN 9.19 on an H200 (cudnn-frontend's benchmarks); FlashAttention 2 on an H100, forward "   \
    "and backward together less the forward (its authors')"

/* TFLOP/s of causal attention. */
#define ROW(direction, hd, ours, cudnn, source)                                                    \
    {                                                                                              \
        {90, ATTENTION_##direction, hd, ATTENTION_CAUSAL, FROM, 1e3 / (ours), 1e3 / (cudnn)},      \
            source                                                                                 \
    }
const struct attention_published attention_published[] = {
    ROW(FORWARD, 64, 295, 379, FA3),
    ROW(FORWARD, 128, 333, 529, FA3),
    ROW(BACKWARD_NONDETERMINISTIC, 64, 265, 300, CSV ", with a window of 1024 tokens"),
    ROW(BACKWARD_NONDETERMINISTIC, 128, 299, 541, CSV),
    {{0}, NULL}, /* the end */
};
