/* base/library.h for the emulated backend: NVIDIA's libraries are those of tests/emulation, which
 * are part of it. */
#include "base/library.h"

#include <cublasLt.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* cupti.cc */
void cuptiGetTimestamp(void), cuptiGetResultString(void), cuptiGetStreamIdEx(void),
    cuptiActivityRegisterCallbacks(void), cuptiActivityEnable(void), cuptiActivityDisable(void),
    cuptiActivityFlushAll(void), cuptiActivityGetNextRecord(void);

struct function {
    const char *name;
    void (*address)(void);
};

#define FUNCTION(name)                                                                             \
    {                                                                                              \
#name, (void (*)(void))(name)                                                              \
    }
static const struct function functions[] = {
    FUNCTION(cublasLtCreate),
    FUNCTION(cublasLtDestroy),
    FUNCTION(cublasLtGetStatusName),
    FUNCTION(cublasLtMatmulDescCreate),
    FUNCTION(cublasLtMatmulDescDestroy),
    FUNCTION(cublasLtMatmulDescSetAttribute),
    FUNCTION(cublasLtMatrixLayoutCreate),
    FUNCTION(cublasLtMatrixLayoutDestroy),
    FUNCTION(cublasLtMatmulPreferenceCreate),
    FUNCTION(cublasLtMatmulPreferenceDestroy),
    FUNCTION(cublasLtMatmulPreferenceSetAttribute),
    FUNCTION(cublasLtMatmulAlgoGetHeuristic),
    FUNCTION(cublasLtMatmul),
    FUNCTION(cuptiGetTimestamp),
    FUNCTION(cuptiGetResultString),
    FUNCTION(cuptiGetStreamIdEx),
    FUNCTION(cuptiActivityRegisterCallbacks),
    FUNCTION(cuptiActivityEnable),
    FUNCTION(cuptiActivityDisable),
    FUNCTION(cuptiActivityFlushAll),
    FUNCTION(cuptiActivityGetNextRecord),
};

int library_open(const char *const *names, void **ret_library, struct error *err)
{
    const char *settings = getenv("SHOAL_EMULATION");
    bool has_cupti = !settings || !strstr(settings, "cupti=none");
    if (strncmp(names[0], "libcublasLt.so.", 15) != 0 &&
        !(has_cupti && strncmp(names[0], "libcupti.so.", 12) == 0))
        return error_set(err, ERR_UNSUPPORTED, "%s is not emulated", names[0]);
    *ret_library = (void *)functions;
    return 0;
}

int library_symbols(void *library, const struct library_symbol *symbols, void *targets,
                    struct error *err)
{
    const struct function *known = library;
    for (const struct library_symbol *symbol = symbols; symbol->name; symbol++) {
        size_t i = 0;
        while (i < sizeof functions / sizeof *functions && strcmp(known[i].name, symbol->name) != 0)
            i++;
        if (i == sizeof functions / sizeof *functions)
            return error_set(err, ERR_UNSUPPORTED, "%s is not emulated", symbol->name);
        memcpy((char *)targets + symbol->offset, &known[i].address, sizeof known[i].address);
    }
    return 0;
}
