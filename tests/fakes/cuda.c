/* libcuda.so.1 without a driver, as far as cuDNN wants one while it makes a plan: it compiles its
 * kernel for a GPU that is described to it, and loads what came out here, where all that is asked
 * for is granted and nothing can run. For tests/kernels/test_cudnn_plan.c. */

typedef int result; /* CUresult */
enum { SUCCESS = 0, STUB = 34 /* CUDA_ERROR_STUB_LIBRARY: there is no driver */ };

static long object;

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

HANDLE(cuLibraryLoadData)
HANDLE(cuLibraryGetKernel)
HANDLE(cuKernelGetFunction)
HANDLE(cuModuleLoadData)
HANDLE(cuModuleGetFunction)

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
