#include "kernels/cuda/candidates.h"

int candidate_fastest(const struct candidate *all, int count)
{
    int fastest = -1;
    for (int i = 0; i < count; i++)
        if (all[i].ran && (fastest < 0 || all[i].ns < all[fastest].ns))
            fastest = i;
    const bool is_close =
        fastest > 0 && all[0].ran &&
        (double)all[fastest].ns * 100 >= (double)all[0].ns * (100 - CANDIDATE_MARGIN_PERCENT);
    return is_close ? 0 : fastest;
}
