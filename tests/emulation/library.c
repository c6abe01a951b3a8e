/* base/library.h for the emulated backend: NVIDIA's libraries are those of tests/emulation, which
 * are part of it. */
#include "base/library.h"
#include "tests/emulation/library.h"

#include <cublasLt.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* cupti.cc */
void cuptiGetVersion(void), cuptiGetTimestamp(void), cuptiGetResultString(void),
    cuptiGetStreamIdEx(void), cuptiActivityRegisterCallbacks(void), cuptiActivityEnable(void),
    cuptiActivityDisable(void), cuptiActivityFlushAll(void), cuptiActivityGetNextRecord(void);

static const struct emulated_function cublaslt[] = {
    EMULATED(cublasLtGetVersion),
    EMULATED(cublasLtCreate),
    EMULATED(cublasLtDestroy),
    EMULATED(cublasLtGetStatusName),
    EMULATED(cublasLtMatmulDescCreate),
    EMULATED(cublasLtMatmulDescDestroy),
    EMULATED(cublasLtMatmulDescSetAttribute),
    EMULATED(cublasLtMatrixLayoutCreate),
    EMULATED(cublasLtMatrixLayoutDestroy),
    EMULATED(cublasLtMatmulPreferenceCreate),
    EMULATED(cublasLtMatmulPreferenceDestroy),
    EMULATED(cublasLtMatmulPreferenceSetAttribute),
    EMULATED(cublasLtMatmulAlgoGetHeuristic),
    EMULATED(cublasLtMatmul),
    {NULL, NULL},
};

static const struct emulated_function cupti[] = {
    EMULATED(cuptiGetVersion),
    EMULATED(cuptiGetTimestamp),
    EMULATED(cuptiGetResultString),
    EMULATED(cuptiGetStreamIdEx),
    EMULATED(cuptiActivityRegisterCallbacks),
    EMULATED(cuptiActivityEnable),
    EMULATED(cuptiActivityDisable),
    EMULATED(cuptiActivityFlushAll),
    EMULATED(cuptiActivityGetNextRecord),
    {NULL, NULL},
};

/* Its only function that is called; what compiles is emulated with cuDNN. */
static int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}

static bool has_compiler, has_builtins;

bool emulation_compiler_is_whole(void)
{
    return !has_compiler || has_builtins;
}

static const struct emulated_function nvrtc[] = {
    EMULATED(nvrtcVersion),
    {NULL, NULL},
};

/* Whether the setting "missing" names it. */
static bool is_missing(const char *name)
{
    const char *settings = getenv("SHOAL_EMULATION");
    const char *missing = settings ? strstr(settings, "missing=") : NULL;
    for (size_t length; missing && *missing && *missing != ','; missing += length) {
        missing += strcspn(missing, "=+") + 1;
        length = strcspn(missing, "+,");
        if (strncmp(name, missing, length) == 0)
            return true;
    }
    return false;
}

int library_open(const char *const *names, void **ret_library, struct error *err)
{
    const char *settings = getenv("SHOAL_EMULATION");
    bool has_cupti = !settings || !strstr(settings, "cupti=none");
    const struct emulated_function *library =
        is_missing(names[0])                                              ? NULL
        : strncmp(names[0], "libcublasLt.so.", 15) == 0                   ? cublaslt
        : has_cupti && strncmp(names[0], "libcupti.so.", 12) == 0         ? cupti
        : strcmp(names[0], "libcudnn.so.9") == 0 && emulation_has_cudnn() ? emulated_cudnn
        : strncmp(names[0], "libnvrtc.so.", 12) == 0                      ? nvrtc
                                                                          : NULL;
    if (!library)
        return error_set(err, ERR_NOT_FOUND, "%s is not emulated", names[0]);
    has_compiler |= library == nvrtc;
    *ret_library = (void *)library;
    return 0;
}

const char *library_file(void *library)
{
    (void)library;
    return "";
}

int library_open_part(void *library, const char *name, struct error *err)
{
    if (library == nvrtc)
        has_builtins = strcmp(name, "libnvrtc-builtins.so.13.0") == 0;
    bool is_whole = library != emulated_cudnn || !emulation_cudnn_is_half();
    return is_whole ? 0 : error_set(err, ERR_INPUT, "installed by half: %s is not emulated", name);
}

int library_symbols(void *library, const struct library_symbol *symbols, void *targets,
                    struct error *err)
{
    for (const struct library_symbol *symbol = symbols; symbol->name; symbol++) {
        const struct emulated_function *known = library;
        while (known->name && strcmp(known->name, symbol->name) != 0)
            known++;
        if (!known->name)
            return error_set(err, ERR_UNSUPPORTED, "%s is not emulated", symbol->name);
        memcpy((char *)targets + symbol->offset, &known->address, sizeof known->address);
    }
    return 0;
}
