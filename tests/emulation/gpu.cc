/* The emulated GPU as programs find it: settings, errors, the driver, what kind of GPU it is. */
#include "tests/emulation/emulation.h"

#include <cstdio>
#include <cstdlib>

namespace emulation
{

static thread_local cudaError_t last_error;
static thread_local int device = -1; /* none is chosen */

void must_have_device(const char *call)
{
    if (device >= 0)
        return;
    fprintf(stderr, "emulation: %s by a thread that has chosen no device\n", call);
    abort();
}

int current_device()
{
    return device >= 0 ? device : 0;
}

cudaError_t noted(cudaError_t status)
{
    if (status != cudaSuccess)
        last_error = status;
    return status;
}

std::string option(const char *name, const char *otherwise)
{
    const char *text = getenv("SHOAL_EMULATION");
    std::string all = std::string(",") + (text ? text : "") + ",",
                key = std::string(",") + name + "=";
    size_t at = all.find(key);
    if (at == std::string::npos)
        return otherwise;
    at += key.size();
    return all.substr(at, all.find(',', at) - at);
}

long option_number(const char *name, long otherwise)
{
    return strtol(option(name, std::to_string(otherwise).c_str()).c_str(), nullptr, 10);
}

/* "file:line", from the root of the sources. */
static std::string name_of(site at)
{
    bool dotted = strncmp(at.file, "./", 2) == 0; /* as g++ -I. names headers */
    return std::string(at.file + (dotted ? 2 : 0)) + ":" + std::to_string(at.line);
}

bool is_left_out(site at)
{
    static const std::string skipped = option("skip", "");
    return !skipped.empty() && skipped == name_of(at);
}

/* The high half of a linear congruential sequence (Knuth's MMIX multiplier). */
unsigned random_numbers::below(unsigned limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state >> 33) % limit);
}

cudaError_t has_code()
{
    std::string all("+"), ours("+");
    all.append(option("built_for", "")).append("+");
    ours.append(option("capability", "90")).append("+");
    bool is_there = all == "++" || all.find(ours) != all.npos;
    return is_there ? cudaSuccess : noted(cudaErrorNoKernelImageForDevice);
}

} // namespace emulation

using namespace emulation;

const char *cudaGetErrorString(cudaError_t status)
{
    switch (status) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorInvalidDeviceFunction:
        return "invalid device function";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorNoKernelImageForDevice:
        return "no kernel image is available for execution on the device";
    case cudaErrorECCUncorrectable:
        return "uncorrectable ECC error encountered";
    case cudaErrorNotReady:
        return "device not ready";
    case cudaErrorIllegalAddress:
        return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    case cudaErrorOperatingSystem:
        return "OS call failed or operation not supported on this OS";
    case cudaErrorNotSupported:
        return "operation not supported";
    case cudaErrorStreamCaptureUnsupported:
        return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
        return "operation failed due to a previous error during capture";
    case cudaErrorStreamCaptureUnjoined:
        return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureIsolation:
        return "dependency created on uncaptured work in another stream";
    case cudaErrorCapturedEvent:
        return "operation not permitted on an event last recorded in a capturing stream";
    case cudaErrorGraphExecUpdateFailure:
        return "the graph update was not performed because it included changes which violated "
               "constraints specific to instantiated graph update";
    case cudaErrorSystemNotReady:
        return "system not yet initialized";
    case cudaErrorSystemDriverMismatch:
        return "system has unsupported display driver / cuda driver combination";
    case cudaErrorUnknown:
        return "unknown error";
    }
    return "unrecognized error code";
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t status = last_error;
    last_error = cudaSuccess;
    return status;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = (int)option_number("driver", CUDART_VERSION);
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = (int)option_number("runtime", CUDART_VERSION);
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = (int)option_number("gpus", 1);
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver / 1000 < runtime / 1000) /* minor versions get on with each other */
        return noted(cudaErrorInsufficientDriver);
    int broken = (int)option_number("count_error", cudaSuccess);
    if (broken != cudaSuccess)
        return noted((cudaError_t)broken);
    return *count ? cudaSuccess : noted(cudaErrorNoDevice);
}

static cudaError_t check_index(int index)
{
    return index >= 0 && index < option_number("gpus", 1) ? cudaSuccess
                                                          : noted(cudaErrorInvalidDevice);
}

cudaError_t cudaSetDevice(int index)
{
    cudaError_t status = check_index(index);
    device = status == cudaSuccess ? index : device;
    return status;
}

/* KiB of shared memory that a block may ask for (CUDA C++ programming guide, technical
 * specifications per compute capability). */
static int shared_kib(long capability)
{
    static const struct {
        long capability;
        int kib;
    } rows[] = {{75, 64}, {80, 163}, {86, 99},   {87, 163},
                {89, 99}, {90, 227}, {100, 227}, {103, 227}};
    for (const auto &row : rows)
        if (row.capability == capability)
            return row.kib;
    return 99; /* 12.0; what is not known has the least */
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int index)
{
    long capability = option_number("capability", 90);
    *value = attribute == cudaDevAttrMultiProcessorCount      ? 4
             : attribute == cudaDevAttrComputeCapabilityMajor ? (int)capability / 10
             : attribute == cudaDevAttrComputeCapabilityMinor ? (int)capability % 10
                                                              : shared_kib(capability) * 1024;
    return check_index(index);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int index, int peer)
{
    *can = option_number("peers", 1) != 0;
    return check_index(peer) == cudaSuccess ? check_index(index) : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int index)
{
    snprintf(id, (size_t)bytes, "0000:%02X:00.0", 0xa0 + index);
    return check_index(index);
}

/* The index-th of the names, which are separated by "/"; the last one for those beyond. */
static std::string name_of(int index)
{
    std::string names = option("name", "emulated GPU");
    for (size_t end; index > 0 && (end = names.find('/')) != names.npos; index--)
        names.erase(0, end + 1);
    return names.substr(0, names.find('/'));
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int index)
{
    *properties = {};
    snprintf(properties->name, sizeof properties->name, "%s", name_of(index).c_str());
    properties->totalGlobalMem = (size_t)option_number("memory_mib", 1024) << 20;
    properties->ECCEnabled = 1;
    properties->uuid.bytes[0] = (char)option_number("node", 0);
    properties->uuid.bytes[15] = (char)index;
    cudaDeviceGetAttribute(&properties->major, cudaDevAttrComputeCapabilityMajor, index);
    cudaDeviceGetAttribute(&properties->minor, cudaDevAttrComputeCapabilityMinor, index);
    return cudaDeviceGetAttribute(&properties->multiProcessorCount, cudaDevAttrMultiProcessorCount,
                                  index);
}
