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

/* What attention needs of its parts. libcudnn.so.9 opens them itself, and ends the process if the
 * first is not there. Each is bound to the others here and now: those of another version fail. */
static const char *const parts[] = {"libcudnn_graph.so.9", "libcudnn_engines_precompiled.so.9",
                                    "libcudnn_engines_runtime_compiled.so.9",
                                    "libcudnn_heuristic.so.9"};

static int open_library(struct cudnn_api *api, void **ret_library, struct error *err)
{
    static const char *const names[] = {"libcudnn.so.9", NULL};
    *ret_library = NULL;
    if (library_open(names, ret_library, err) < 0 ||
        library_symbols(*ret_library, symbols, api, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (library_open_part(*ret_library, parts[i], err) < 0)
            return -1;
    size_t version = api->version();
    if (version < CUDNN_OLDEST)
        return error_set(err, ERR_UNSUPPORTED, "cuDNN %zu.%zu is too old: %d.%d is needed",
                         version / 10000, version % 10000 / 100, CUDNN_OLDEST / 10000,
                         CUDNN_OLDEST % 10000 / 100);
    return 0;
}

/* The compiler of those of cuDNN's kernels that it makes for a shape. It looks for its builtins
 * only where the loader does, so that a wheel's compiles nothing unless they are loaded here. */
static int open_compiler(const struct cudnn_api *api, struct library_facts *ret)
{
    struct {
        int (*version)(int *major, int *minor);
    } functions;
    static const struct library_symbol needed[] = {{"nvrtcVersion", 0, false}, {NULL, 0, false}};
    char name[48];
    const char *const names[] = {name, NULL};
    void *library;
    int major = 0, minor = 0;
    *ret = (struct library_facts){.name = "NVRTC"};
    snprintf(name, sizeof name, "libnvrtc.so.%zu", api->cuda_version() / 1000);
    if (library_open(names, &library, &ret->why) < 0)
        return -1;
    snprintf(ret->file, sizeof ret->file, "%s", library_file(library));
    if (library_symbols(library, needed, &functions, &ret->why) < 0)
        return -1;
    functions.version(&major, &minor);
    snprintf(ret->version, sizeof ret->version, "%d.%d", major, minor);
    snprintf(name, sizeof name, "libnvrtc-builtins.so.%d.%d", major, minor);
    return library_open_part(library, name, &ret->why);
}

int cudnn_api_open(struct cudnn_api *ret_api, struct error *err)
{
    void *library;
    struct library_facts
        compiler; /* without it most kernels are there: they are compiled already */
    if (open_library(ret_api, &library, err) < 0)
        return -1;
    open_compiler(ret_api, &compiler);
    return 0;
}

bool cudnn_api_describe(struct library_facts *ret, struct library_facts *ret_compiler)
{
    struct cudnn_api api;
    void *library;
    *ret = (struct library_facts){.name = "cuDNN"};
    bool is_usable = open_library(&api, &library, &ret->why) == 0;
    if (library)
        snprintf(ret->file, sizeof ret->file, "%s", library_file(library));
    if (!is_usable)
        return false;
    size_t version = api.version();
    snprintf(ret->version, sizeof ret->version, "%zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
    open_compiler(&api, ret_compiler);
    return true;
}
