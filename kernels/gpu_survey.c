#include "kernels/gpu_survey.h"

#include "kernels/backend.h"
#include "kernels/cuda_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int gpu_survey(struct gpu_survey *ret, struct error *err)
{
    const struct backend *backend;
    Dl_info place;
    memset(ret, 0, sizeof *ret);
    if (cuda_library(&backend, err) < 0)
        return -1;
    if (dladdr(backend, &place) && place.dli_fname)
        snprintf(ret->backend_file, sizeof ret->backend_file, "%s", place.dli_fname);
    backend->survey(ret);
    return 0;
}
