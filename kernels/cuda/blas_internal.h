/* What blas.c finds and blas_tune.c measures: cuBLASLt's functions, and the plan of a product. */
#ifndef SHOAL_KERNELS_CUDA_BLAS_INTERNAL_H
#define SHOAL_KERNELS_CUDA_BLAS_INTERNAL_H

#include "kernels/cuda/blas.h"

#include <cublasLt.h>

enum {
    BLAS_PLANS = 128, /* a model has about twenty products; the one used longest ago makes room */
    BLAS_CANDIDATES = 8, /* algorithms that are asked for where they are timed */
};

struct blas_functions {
    size_t (*version)(void);
    cublasStatus_t (*create)(cublasLtHandle_t *);
    cublasStatus_t (*destroy)(cublasLtHandle_t);
    const char *(*status_name)(cublasStatus_t);
    cublasStatus_t (*desc_create)(cublasLtMatmulDesc_t *, cublasComputeType_t, cudaDataType_t);
    cublasStatus_t (*desc_destroy)(cublasLtMatmulDesc_t);
    cublasStatus_t (*desc_set)(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void *,
                               size_t);
    cublasStatus_t (*layout_create)(cublasLtMatrixLayout_t *, cudaDataType, uint64_t, uint64_t,
                                    int64_t);
    cublasStatus_t (*layout_destroy)(cublasLtMatrixLayout_t);
    cublasStatus_t (*preference_create)(cublasLtMatmulPreference_t *);
    cublasStatus_t (*preference_destroy)(cublasLtMatmulPreference_t);
    cublasStatus_t (*preference_set)(cublasLtMatmulPreference_t,
                                     cublasLtMatmulPreferenceAttributes_t, const void *, size_t);
    cublasStatus_t (*heuristic)(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                                cublasLtMatmulHeuristicResult_t[], int *);
    cublasStatus_t (*matmul)(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *,
                             cublasLtMatrixLayout_t, const void *, cublasLtMatrixLayout_t,
                             const void *, const void *, cublasLtMatrixLayout_t, void *,
                             cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t *, void *, size_t,
                             cudaStream_t);
};

/* cuBLASLt's matrices are column-major: our c is its transpose, so that its A is our b and its B
 * our a, and a row stride is a leading dimension. */
struct blas_plan {
    struct matmul matmul; /* what it is for */
    enum dtype t;
    bool fp8; /* its inputs are of these formats, and not of t */
    enum fp8 a_format, b_format;
    enum blas_epilogue epilogue;
    int64_t aux_stride; /* 0: without aux */
    uint32_t alignment; /* of all operands, bytes */
    uint64_t used_at;   /* 0: free */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t algorithm;
    bool impossible; /* there is no algorithm */
    bool has_run;    /* its kernels are loaded */
    bool is_tuned;   /* the algorithm was measured */
};

/* Whether both are of the same product. */
static inline bool blas_plan_is_for(const struct blas_plan *plan, const struct blas_plan *want)
{
    return plan->t == want->t && plan->fp8 == want->fp8 && plan->a_format == want->a_format &&
           plan->b_format == want->b_format && plan->epilogue == want->epilogue &&
           plan->aux_stride == want->aux_stride && plan->alignment == want->alignment &&
           matmul_equal(&plan->matmul, &want->matmul);
}

/* For people: of what numbers. */
static inline const char *blas_input_name(const struct blas_plan *plan)
{
    return plan->fp8 ? "fp8" : dtype_name(plan->t);
}

struct blas {
    struct blas_functions lt;
    cublasLtHandle_t handle;
    uint64_t uses;
    struct blas_plan plans[BLAS_PLANS];
};

/* What a product reads and writes. */
struct blas_operands {
    const void *a, *b, *bias, *aux;
    void *c;
    const float *a_inverse, *b_inverse; /* what undoes the scales of fp8; else NULL */
};

/* Queues the plan's product by `algorithm`. */
cublasStatus_t blas_start(const struct blas *blas, const struct blas_plan *plan,
                          const cublasLtMatmulHeuristicResult_t *algorithm,
                          const struct blas_operands *o, void *workspace, cudaStream_t handle);

/* The one of found[n] (n >= 1) that the plan shall take. Each runs on the operands, with the bias
 * and aux that are set in the descriptor, and writes what the product writes in any case. The
 * fastest is taken (candidates.h). A product that adds to its result cannot run twice: it takes
 * what was measured for the one that overwrites, else the first. Waits for the stream, which
 * captures nothing meanwhile. Counts in the device's `tuning`; a line at level debug. A failure of
 * CUDA fails the stream. */
cublasLtMatmulHeuristicResult_t blas_tune(struct stream *s, struct blas_plan *plan,
                                          const cublasLtMatmulHeuristicResult_t *found, int n,
                                          const struct blas_operands *o);
#endif
