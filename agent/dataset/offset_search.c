#include "agent/dataset/offset_search.h"

#include <string.h>

int64_t offset_search(const int64_t *before, size_t stride, int64_t count, int64_t at)
{
    int64_t low = 0, high = count, number;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        memcpy(&number, (const char *)before + (size_t)middle * stride, sizeof number);
        if (number <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}
