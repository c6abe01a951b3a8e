#include "kernels/cuda/cudnn_api.h"

#include "base/library.h"

#include <stdio.h>

#define SYMBOL(member, symbol) LIBRARY_SYMBOL(struct cudnn_api, member, symbol)
static const struct library_symbol symbols[] = {
    SYMBOL(version, "cudnnGetVersion"),
    SYMBOL(cuda_version, "cudnnGetCudartVersion"),
    SYMBOL(status_text, "cudnnGetErrorString"),
    SYMBOL(last_error, "cudnnGetLastErrorString"),
    SYMBOL(create, "cudnnCreate"),
    SYMBOL(destroy, "cudnnDestroy"),
    SYMBOL(set_stream, "cudnnSetStream"),
    SYMBOL(descriptor_create, "cudnnBackendCreateDescriptor"),
    SYMBOL(descriptor_destroy, "cudnnBackendDestroyDescriptor"),
    SYMBOL(set, "cudnnBackendSetAttribute"),
    SYMBOL(get, "cudnnBackendGetAttribute"),
    SYMBOL(finalize, "cudnnBackendFinalize"),
    SYMBOL(execute, "cudnnBackendExecute"),
    {NULL, 0, false},
};

/* Not having it is no error: most of cuDNN's kernels are compiled already. */
static void open_compiler(const struct cudnn_api *api)
{
    char name[32];
    const char *const names[] = {name, NULL};
    struct error ignored;
    void *library;
    snprintf(name, sizeof name, "libnvrtc.so.%zu", api->cuda_version() / 1000);
    library_open(names, &library, &ignored);
}

int cudnn_api_open(struct cudnn_api *ret_api, struct error *err)
{
    static const char *const names[] = {"libcudnn.so.9", NULL};
    void *library;
    if (library_open(names, &library, err) < 0 ||
        library_symbols(library, symbols, ret_api, err) < 0)
        return -1;
    size_t version = ret_api->version();
    if (version < CUDNN_OLDEST)
        return error_set(err, ERR_UNSUPPORTED, "cuDNN %zu.%zu is too old: %d.%d is needed",
                         version / 10000, version % 10000 / 100, CUDNN_OLDEST / 10000,
                         CUDNN_OLDEST % 10000 / 100);
    open_compiler(ret_api);
    return 0;
}
