#include "kernels/cuda/survey.h"

#include "base/mem.h"
#include "kernels/cuda/blas.h"
#include "kernels/cuda/cudnn_api.h"
#include "kernels/cuda/cupti.h"

#include <stdio.h>

static void read_peers(struct gpu_survey *ret, int index)
{
    for (int other = 0; other < ret->gpus; other++) {
        int can = 0;
        if (other != index && cudaDeviceCanAccessPeer(&can, index, other) == cudaSuccess && can)
            ret->gpu[index].peers |= UINT64_C(1) << other;
    }
}

static void read_gpu(struct gpu_facts *ret, int index)
{
    struct cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess)
        return;
    snprintf(ret->name, sizeof ret->name, "%.100s", properties.name);
    ret->compute_capability = 10 * properties.major + properties.minor;
    ret->memory_bytes = (int64_t)properties.totalGlobalMem;
    ret->has_ecc = properties.ECCEnabled;
}

void cuda_survey(int count, struct gpu_survey *ret)
{
    cudaDriverGetVersion(&ret->driver_cuda);
    cudaRuntimeGetVersion(&ret->backend_cuda);
    ret->gpus = count < GPU_SURVEY_GPUS ? count : GPU_SURVEY_GPUS;
    for (int i = 0; i < ret->gpus; i++) {
        read_gpu(&ret->gpu[i], i);
        read_peers(ret, i);
    }
    cudaGetLastError(); /* a GPU that does not answer is told when it is opened */
    blas_describe(&ret->library[0]);
    cupti_describe(&ret->library[1]);
    ret->libraries = cudnn_api_describe(&ret->library[2], &ret->library[3]) ? 4 : 3;
}
