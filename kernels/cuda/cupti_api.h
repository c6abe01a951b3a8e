/* The part of CUPTI's activity interface that is used here, declared anew so that no build needs
 * its headers, and found at run time. Records are as far as they are read: their beginnings have
 * been the same from CUDA 11 to 13 (cupti_activity.h: CUpti_ActivityKernel4 to 10, Memcpy4 to 6,
 * Memset3 and 4). */
#ifndef SHOAL_KERNELS_CUDA_CUPTI_API_H
#define SHOAL_KERNELS_CUDA_CUPTI_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CUPTI_SUCCESS = 0, CUPTI_NOT_INITIALIZED = 15, CUPTI_INSUFFICIENT_PRIVILEGES = 35 };
enum { CUPTI_FIRST_OF_13_0 = 130000 }; /* as cuptiGetVersion() gives it; Update 1's is 130001 */
enum cupti_kind { CUPTI_MEMCPY = 1, CUPTI_MEMSET = 2, CUPTI_KERNEL = 10 };
enum { CUPTI_FLUSH_FORCED = 1 };
enum cupti_copy { CUPTI_TO_DEVICE = 1, CUPTI_TO_HOST = 2, CUPTI_ON_DEVICE = 8 };

/* Times: nanoseconds of cuptiGetTimestamp's clock; 0: not known. */
struct cupti_kernel {
    int32_t kind;
    uint32_t registers, caches[2];
    uint64_t start, end, completed;
    uint32_t device, context, stream;
    int32_t grid[3], block[3], static_shared, dynamic_shared;
    uint32_t local_per_thread, local_total, correlation;
    int64_t grid_id;
    const char *name; /* as the linker has it; CUPTI's */
};
struct cupti_move {
    int32_t kind;
    uint8_t copy, from, to, flags; /* of MEMSET: the value */
    uint64_t bytes, start, end;
    uint32_t device, context, stream, correlation;
};
#ifndef __cplusplus
_Static_assert(offsetof(struct cupti_kernel, start) == 16, "as CUPTI has it");
_Static_assert(offsetof(struct cupti_kernel, stream) == 48, "as CUPTI has it");
_Static_assert(offsetof(struct cupti_kernel, name) == 104, "as CUPTI has it");
_Static_assert(offsetof(struct cupti_move, stream) == 40, "as CUPTI has it");
#endif

/* CUPTI asks for a buffer, 8-byte aligned (*ret_most: records in it; 0: as fit), and gives it back
 * with valid_bytes of records. On any thread. */
typedef void cupti_request(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_most);
typedef void cupti_complete(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
                            size_t valid_bytes);

struct cupti_api {
    int (*version)(uint32_t *version);
    int (*get_timestamp)(uint64_t *ns);
    int (*result_text)(int result, const char **ret_text);
    int (*stream_id)(void *context, void *stream, uint8_t per_thread, uint32_t *ret_id);
    int (*register_callbacks)(cupti_request *request, cupti_complete *complete);
    int (*enable)(int kind);
    int (*disable)(int kind);
    int (*flush_all)(uint32_t flag);
    /* *record: NULL for the first. Not CUPTI_SUCCESS: there is none any more. */
    int (*next_record)(uint8_t *buffer, size_t valid_bytes, int32_t **record);
};

#ifdef __cplusplus
}
#endif
#endif
