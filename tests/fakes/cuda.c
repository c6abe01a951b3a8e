/* libcuda.so.1 without a driver, as far as cuDNN wants one while it makes a plan: it compiles its
 * kernel for a GPU that is described to it, and loads what came out here, where all that is asked
 * for is granted and nothing can run. For tests/kernels/test_cudnn_plan.c. */

#include <stdio.h>
#include <string.h>

typedef int result; /* CUresult */
enum { SUCCESS = 0, STUB = 34 /* CUDA_ERROR_STUB_LIBRARY: there is no driver */ };

static long object;
static char kernels[4096]; /* names that were asked for, a line each */

#define EXPORTED __attribute__((visibility("default")))
/* Their first argument is where a handle goes. */
#define HANDLE(name)                                                                               \
    EXPORTED result name(void **handle);                                                           \
    result name(void **handle)                                                                     \
    {                                                                                              \
        *handle = &object;                                                                         \
        return SUCCESS;                                                                            \
    }
#define ANSWER(name, result_)                                                                      \
    EXPORTED result name(void);                                                                    \
    result name(void)                                                                              \
    {                                                                                              \
        return result_;                                                                            \
    }

/* Likewise, with a kernel's name behind the code that has it. */
#define NAMED(name)                                                                                \
    EXPORTED result name(void **handle, void *code, const char *kernel);                           \
    result name(void **handle, void *code, const char *kernel)                                     \
    {                                                                                              \
        (void)code;                                                                                \
        *handle = &object;                                                                         \
        note(kernel);                                                                              \
        return SUCCESS;                                                                            \
    }

static void note(const char *kernel)
{
    size_t used = strlen(kernels);
    snprintf(kernels + used, sizeof kernels - used, "%s\n", kernel);
}

/* For tests: the names of kernels since the last call, each with a line's end behind it. Valid
 * until a kernel is asked for. */
EXPORTED const char *fake_cuda_kernels(void);
const char *fake_cuda_kernels(void)
{
    static char taken[sizeof kernels];
    memcpy(taken, kernels, sizeof taken);
    kernels[0] = '\0';
    return taken;
}

HANDLE(cuLibraryLoadData)
NAMED(cuLibraryGetKernel)
HANDLE(cuKernelGetFunction)
HANDLE(cuModuleLoadData)
NAMED(cuModuleGetFunction)

ANSWER(cuFuncSetAttribute, SUCCESS)
ANSWER(cuKernelSetAttribute, SUCCESS)
ANSWER(cuLibraryUnload, SUCCESS)
ANSWER(cuModuleUnload, SUCCESS)

ANSWER(cuCtxGetCurrent, STUB)
ANSWER(cuCtxGetLimit, STUB)
ANSWER(cuCtxPopCurrent, STUB)
ANSWER(cuCtxPushCurrent, STUB)
ANSWER(cuDeviceGet, STUB)
ANSWER(cuDeviceGetCount, STUB)
ANSWER(cuDriverGetVersion, STUB)
ANSWER(cuGetErrorName, STUB)
ANSWER(cuGetErrorString, STUB)
ANSWER(cuKernelGetAttribute, STUB)
ANSWER(cuLaunchCooperativeKernel, STUB)
ANSWER(cuLaunchKernel, STUB)
ANSWER(cuLaunchKernelEx, STUB)
ANSWER(cuLibraryLoadFromFile, STUB)
ANSWER(cuLinkAddData, STUB)
ANSWER(cuLinkComplete, STUB)
ANSWER(cuLinkCreate, STUB)
ANSWER(cuLinkDestroy, STUB)
ANSWER(cuOccupancyMaxPotentialClusterSize, STUB)
ANSWER(cuStreamGetCtx, STUB)
ANSWER(cuTensorMapEncodeIm2col, STUB)
ANSWER(cuTensorMapEncodeIm2colWide, STUB)
ANSWER(cuTensorMapEncodeTiled, STUB)
