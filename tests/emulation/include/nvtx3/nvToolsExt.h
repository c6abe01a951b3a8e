/* NVTX's ranges as tests emulate them: as if a tool looked on that writes down what it gets. */
#ifndef SHOAL_TESTS_EMULATION_INCLUDE_NVTX3_NVTOOLSEXT_H
#define SHOAL_TESTS_EMULATION_INCLUDE_NVTX3_NVTOOLSEXT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NVTX_VERSION                  3
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))
enum { NVTX_MESSAGE_TYPE_ASCII = 1 };

typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t;
typedef struct nvtxEventAttributes_v2 {
    uint16_t version, size;
    int32_t messageType;
    union {
        const char *ascii;
    } message;
} nvtxEventAttributes_t;

nvtxDomainHandle_t nvtxDomainCreateA(const char *name);
int nvtxDomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes);
int nvtxDomainRangePop(nvtxDomainHandle_t domain);

/* For tests: the ranges of the calling thread so far, as "shoal: step {shoal: copy {} } ", and
 * begins anew. Valid until the thread's next call. */
__attribute__((visibility("default"))) const char *emulation_ranges(void);

#ifdef __cplusplus
}
#endif
#endif
