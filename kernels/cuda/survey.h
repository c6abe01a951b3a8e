/* What CUDA says of the GPUs that this process may see, and which libraries the backend opens. */
#ifndef SHOAL_KERNELS_CUDA_SURVEY_H
#define SHOAL_KERNELS_CUDA_SURVEY_H

#include "kernels/gpu_survey.h"

/* The part of backend->survey() that is below its count of GPUs. */
void cuda_survey(int count, struct gpu_survey *ret);
#endif
