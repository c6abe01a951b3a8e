#include "kernels/cuda_library.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct backend *loaded;

/* The program's folder; "." if the system does not say. */
static const char *program_folder(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n <= 0)
        return ".";
    path[n] = '\0';
    return dirname(path);
}

static int load(const char *path, struct error *err)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return error_set(err, ERR_UNSUPPORTED, "the GPU backend cannot be loaded: %s", dlerror());
    const struct backend *backend = dlsym(library, CUDA_BACKEND_SYMBOL);
    /* Another build's tables may be laid out differently: their sizes are compared before anything
     * in them is called. */
    if (!backend || backend->table_bytes != sizeof *backend ||
        backend->ops_bytes != sizeof(struct ops) ||
        backend->device_bytes != sizeof(struct device)) {
        dlclose(library);
        return error_set(err, ERR_UNSUPPORTED,
                         "%s is of another build than this program: build both together", path);
    }
    loaded = backend;
    return 0;
}

static int find(struct error *err)
{
    char path[PATH_MAX];
    const char *named = getenv("SHOAL_CUDA_LIBRARY");
    if (named && *named)
        return load(named, err);
    const char *folder = program_folder(path);
    auto_free char *beside = xasprintf("%s/" CUDA_LIBRARY_NAME, folder);
    auto_free char *installed = xasprintf("%s/../lib/shoal/" CUDA_LIBRARY_NAME, folder);
    if (access(beside, F_OK) == 0)
        return load(beside, err);
    if (access(installed, F_OK) == 0)
        return load(installed, err);
    return error_set(err, ERR_UNSUPPORTED,
                     "no GPU support in this build: " CUDA_LIBRARY_NAME
                     " is neither in %s nor in its ../lib/shoal (it is built where nvcc is)",
                     folder);
}

int cuda_library(const struct backend **ret_backend, struct error *err)
{
    pthread_mutex_lock(&lock);
    int result = loaded ? 0 : find(err);
    *ret_backend = loaded;
    pthread_mutex_unlock(&lock);
    return result;
}
