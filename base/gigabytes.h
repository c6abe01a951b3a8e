/* Bytes as people read them: in GB of 10^9. */
#ifndef SHOAL_BASE_GIGABYTES_H
#define SHOAL_BASE_GIGABYTES_H

#include <stdint.h>

static inline double gigabytes(int64_t bytes)
{
    return (double)bytes / 1e9;
}
#endif
