#include "kernels/cuda/data_fault.h"

bool data_fault_read(const struct data_fault *fault, struct error *err)
{
    uint64_t word = fault ? __atomic_load_n(&fault->word, __ATOMIC_ACQUIRE) : 0;
    if (!word)
        return false;
    data_error(err, (enum data_number)(word >> 62), (int64_t)(word >> 32 & 0x3fffffff),
               (int32_t)word, (int64_t)fault->limit);
    return true;
}
