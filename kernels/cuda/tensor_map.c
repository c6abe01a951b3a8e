#include "kernels/cuda/tensor_map.h"

/* cuTensorMapEncodeTiled of the driver, and the numbers of its enumerations (cuda.h). The driver's
 * results have the runtime's numbers. */
typedef cudaError_t encode_tiled(struct tensor_map *map, int type, uint32_t rank, void *memory,
                                 const uint64_t *sizes, const uint64_t *strides,
                                 const uint32_t *box, const uint32_t *steps, int interleave,
                                 int swizzle, int l2_promotion, int out_of_bounds);
enum {
    TYPE_BFLOAT16 = 9,
    INTERLEAVE_NONE = 0,
    SWIZZLE_128B = 3,
    L2_PROMOTION_128B = 2,
    OUT_OF_BOUNDS_ZEROS = 0,
};

static cudaError_t find_encode(encode_tiled **ret_encode)
{
    void *function = NULL;
    enum cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    cudaError_t status =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, 0, &found);
#else
    cudaError_t status = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, 0, &found);
#endif
    *ret_encode = (encode_tiled *)function;
    return status == cudaSuccess && !function ? cudaErrorNotSupported : status;
}

cudaError_t tensor_map_of_heads(struct tensor_map *ret_map, const void *x, int64_t B, int64_t T,
                                int64_t heads, int64_t hd, int64_t stride, int rows)
{
    enum { RANK = 4, COLUMNS = 64, BYTES = 2 };
    encode_tiled *encode;
    cudaError_t status = find_encode(&encode);
    if (status != cudaSuccess)
        return status;
    /* The fastest first; of the first dimension there is no stride. */
    const uint64_t sizes[RANK] = {(uint64_t)hd, (uint64_t)heads, (uint64_t)T, (uint64_t)B};
    const uint64_t strides[RANK - 1] = {(uint64_t)hd * BYTES, (uint64_t)stride * BYTES,
                                        (uint64_t)(T * stride) * BYTES};
    const uint32_t box[RANK] = {COLUMNS, 1, (uint32_t)rows, 1}, steps[RANK] = {1, 1, 1, 1};
    return encode(ret_map, TYPE_BFLOAT16, RANK, (void *)(uintptr_t)x, sizes, strides, box, steps,
                  INTERLEAVE_NONE, SWIZZLE_128B, L2_PROMOTION_128B, OUT_OF_BOUNDS_ZEROS);
}
