#include "kernels/data_error.h"

int data_error(struct error *err, enum data_number what, int64_t at, int64_t value, int64_t limit)
{
    return error_set(err, ERR_INPUT,
                     "%s %lld is %lld, not within 0 .. %lld: the batch is damaged, or was made for "
                     "another model",
                     what == DATA_ID ? "embedding: id" : "loss: label", (long long)at,
                     (long long)value, (long long)limit - 1);
}
