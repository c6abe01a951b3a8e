/* Which of several ways to do one thing is the fastest, by what was measured. Pure: knows neither
 * what the ways are nor who measured. */
#ifndef SHOAL_KERNELS_CUDA_CANDIDATES_H
#define SHOAL_KERNELS_CUDA_CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

struct candidate {
    bool ran;   /* false: it failed */
    int64_t ns; /* the least that a run of it took; >= 0 */
};

/* What is not at least this much faster than the first is within the noise of a measurement. */
enum { CANDIDATE_MARGIN_PERCENT = 2 };

/* The number of the fastest among those that ran; of equal ones the earliest. The first, which was
 * expected to be the fastest, stays unless another one saves more than the margin. -1: none ran. */
int candidate_fastest(const struct candidate *all, int count);
#endif
