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

int library_open(const char *const *names, void **ret_library, struct error *err)
{
    const char *settings = getenv("SHOAL_EMULATION");
    bool has_cupti = !settings || !strstr(settings, "cupti=none");
    const struct emulated_function *library =
        strncmp(names[0], "libcublasLt.so.", 15) == 0                     ? cublaslt
        : has_cupti && strncmp(names[0], "libcupti.so.", 12) == 0         ? cupti
        : strcmp(names[0], "libcudnn.so.9") == 0 && emulation_has_cudnn() ? emulated_cudnn
                                                                          : NULL;
    if (!library)
        return error_set(err, ERR_UNSUPPORTED, "%s is not emulated", names[0]);
    *ret_library = (void *)library;
    return 0;
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
