#include "kernels/cuda/blas_internal.h"

#include "base/library.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernels/cuda/slow_path.h"
#include "kernels/cuda/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ALIGNMENT = 16, /* bytes: what ops.h promises. More is not asked, or else the algorithm,
                            and the last bits, would change with the place in memory */
    WORKSPACE_MAX = 32 << 20, /* bytes: what NVIDIA recommends for Hopper */
};

#define SYMBOL(member, symbol) LIBRARY_SYMBOL(struct blas_functions, member, symbol)
static const struct library_symbol symbols[] = {
    SYMBOL(version, "cublasLtGetVersion"),
    SYMBOL(create, "cublasLtCreate"),
    SYMBOL(destroy, "cublasLtDestroy"),
    SYMBOL(status_name, "cublasLtGetStatusName"),
    SYMBOL(desc_create, "cublasLtMatmulDescCreate"),
    SYMBOL(desc_destroy, "cublasLtMatmulDescDestroy"),
    SYMBOL(desc_set, "cublasLtMatmulDescSetAttribute"),
    SYMBOL(layout_create, "cublasLtMatrixLayoutCreate"),
    SYMBOL(layout_destroy, "cublasLtMatrixLayoutDestroy"),
    SYMBOL(preference_create, "cublasLtMatmulPreferenceCreate"),
    SYMBOL(preference_destroy, "cublasLtMatmulPreferenceDestroy"),
    SYMBOL(preference_set, "cublasLtMatmulPreferenceSetAttribute"),
    SYMBOL(heuristic, "cublasLtMatmulAlgoGetHeuristic"),
    SYMBOL(matmul, "cublasLtMatmul"),
    {NULL, 0, false},
};

/* *ret_library: NULL if none was found. */
static int open_library(struct blas_functions *lt, void **ret_library, struct error *err)
{
#if CUBLAS_VER_MAJOR >= 13
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
#else
    static const char *const names[] = {"libcublasLt.so.12", "libcublasLt.so.13", NULL};
#endif
    *ret_library = NULL;
    return library_open(names, ret_library, err) < 0
               ? -1
               : library_symbols(*ret_library, symbols, lt, err);
}

void blas_describe(struct library_facts *ret)
{
    struct blas_functions lt;
    void *library;
    *ret = (struct library_facts){.name = "cuBLASLt"};
    if (open_library(&lt, &library, &ret->why) == 0) {
        size_t version = lt.version();
        snprintf(ret->version, sizeof ret->version, "%zu.%zu.%zu", version / 10000,
                 version / 100 % 100, version % 100);
    }
    if (library)
        snprintf(ret->file, sizeof ret->file, "%s", library_file(library));
}

int blas_open(struct blas **ret_blas, struct error *err)
{
    struct blas *blas = xcalloc(1, sizeof *blas);
    void *library;
    if (open_library(&blas->lt, &library, err) < 0) {
        free(blas);
        return error_wrap(err, "matrix products on a GPU need cuBLASLt");
    }
    cublasStatus_t status = blas->lt.create(&blas->handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
        error_set(err, ERR_UNSUPPORTED, "cuBLASLt does not start: %s",
                  blas->lt.status_name(status));
        free(blas);
        return -1;
    }
    *ret_blas = blas;
    return 0;
}

static void plan_clear(const struct blas_functions *lt, struct blas_plan *plan)
{
    const cublasLtMatrixLayout_t layouts[] = {plan->a, plan->b, plan->c};
    for (size_t i = 0; i < array_length(layouts); i++)
        if (layouts[i])
            lt->layout_destroy(layouts[i]);
    if (plan->desc)
        lt->desc_destroy(plan->desc);
    memset(plan, 0, sizeof *plan);
}

void blas_close(struct blas *blas)
{
    if (!blas)
        return;
    for (int i = 0; i < BLAS_PLANS; i++)
        plan_clear(&blas->lt, &blas->plans[i]);
    blas->lt.destroy(blas->handle);
    free(blas);
}

enum { REFUSAL_BYTES = 256 };

static void name_refusal(const struct blas_functions *lt, cublasStatus_t status, const char *what,
                         const struct blas_plan *plan, char text[REFUSAL_BYTES])
{
    const struct matmul *p = &plan->matmul;
    snprintf(text, REFUSAL_BYTES,
             "%s of a %s product (m %lld, n %lld, k %lld, strides %lld %lld %lld): %s", what,
             blas_input_name(plan), (long long)p->m, (long long)p->n, (long long)p->k,
             (long long)p->a_stride, (long long)p->b_stride, (long long)p->c_stride,
             lt->status_name(status));
}

/* Fails the stream if it is an error. */
static bool succeeded(struct stream *s, const struct blas_functions *lt, cublasStatus_t status,
                      const char *what, const struct blas_plan *plan)
{
    char text[REFUSAL_BYTES];
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    name_refusal(lt, status, what, plan, text);
    cuda_check(s, cudaErrorUnknown, text);
    return false;
}

/* Whether a product without that epilogue is as fast, but for a pass over what it writes. */
static bool may_end_in_steps(const struct blas_plan *plan)
{
    return plan->epilogue != BLAS_PLAIN && plan->epilogue != BLAS_BIAS;
}

/* Whatever the library says of an epilogue that can be done without, before the first product with
 * it has run: there is another way. If the GPU itself has failed, that way tells. */
static bool goes_in_steps(const struct blas_functions *lt, cublasStatus_t status, const char *what,
                          struct blas_plan *plan)
{
    char text[REFUSAL_BYTES];
    if (status == CUBLAS_STATUS_SUCCESS || plan->has_run || !may_end_in_steps(plan))
        return false;
    name_refusal(lt, status, what, plan, text);
    log_warning("cuBLASLt: %s: done without its epilogue %d", text, (int)plan->epilogue);
    plan->impossible = true;
    return true;
}

static cudaDataType data_type(enum dtype t)
{
    return t == DTYPE_F32 ? CUDA_R_32F : CUDA_R_16BF;
}

static cudaDataType input_type(const struct blas_plan *plan, enum fp8 f)
{
    if (!plan->fp8)
        return data_type(plan->t);
    return f == FP8_E4M3 ? CUDA_R_8F_E4M3 : CUDA_R_8F_E5M2;
}

/* A row-major [rows, cols] is a column-major [cols, rows]. */
static cublasStatus_t describe(const struct blas_functions *lt, cublasLtMatrixLayout_t *ret_layout,
                               cudaDataType type, int64_t rows, int64_t cols, int64_t stride)
{
    return lt->layout_create(ret_layout, type, (uint64_t)cols, (uint64_t)rows, stride);
}

/* The pointers that a descriptor holds; its A is our b. The heuristic looks at the alignment of
 * bias and aux, and a plan serves all of that alignment. */
static cublasStatus_t set_pointers(const struct blas_functions *lt, const struct blas_plan *plan,
                                   const struct blas_operands *o)
{
    const struct {
        cublasLtMatmulDescAttributes_t attribute;
        const void *pointer;
    } rows[] = {{CUBLASLT_MATMUL_DESC_BIAS_POINTER, o->bias},
                {CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, o->aux},
                {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, o->b_inverse},
                {CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, o->a_inverse}};
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    for (size_t i = 0; !status && i < array_length(rows); i++)
        if (rows[i].pointer)
            status = lt->desc_set(plan->desc, rows[i].attribute, &rows[i].pointer,
                                  sizeof rows[i].pointer);
    return status;
}

/* cuBLASLt's A is our b. */
static const cublasLtEpilogue_t epilogues[] = {
    [BLAS_PLAIN] = CUBLASLT_EPILOGUE_DEFAULT,
    [BLAS_BIAS] = CUBLASLT_EPILOGUE_BIAS,
    [BLAS_BIAS_GELU] = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
    [BLAS_GELU_GRADIENT] = CUBLASLT_EPILOGUE_DGELU,
    [BLAS_SUMS_OF_A] = CUBLASLT_EPILOGUE_BGRADB,
    [BLAS_SUMS_OF_B] = CUBLASLT_EPILOGUE_BGRADA,
};

static cublasStatus_t make_desc(const struct blas_functions *lt, struct blas_plan *plan,
                                const struct blas_operands *o)
{
    const struct matmul *p = &plan->matmul;
    cublasOperation_t transpose = CUBLAS_OP_T;
    cublasLtEpilogue_t epilogue = epilogues[plan->epilogue];
    cublasStatus_t status = lt->desc_create(&plan->desc, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (!status && p->trans_b)
        status =
            lt->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose);
    if (!status && p->trans_a)
        status =
            lt->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_TRANSB, &transpose, sizeof transpose);
    if (!status && plan->epilogue != BLAS_PLAIN)
        status =
            lt->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (!status && plan->aux_stride)
        status = lt->desc_set(plan->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &plan->aux_stride,
                              sizeof plan->aux_stride);
    return status ? status : set_pointers(lt, plan, o);
}

static cublasStatus_t make_layouts(const struct blas_functions *lt, struct blas_plan *plan)
{
    const struct matmul *p = &plan->matmul;
    cublasStatus_t status =
        describe(lt, &plan->a, input_type(plan, plan->b_format), p->trans_b ? p->n : p->k,
                 p->trans_b ? p->k : p->n, p->b_stride);
    if (!status)
        status = describe(lt, &plan->b, input_type(plan, plan->a_format), p->trans_a ? p->k : p->m,
                          p->trans_a ? p->m : p->k, p->a_stride);
    if (!status)
        status = describe(lt, &plan->c, data_type(p->t_c), p->m, p->n, p->c_stride);
    return status;
}

/* The first of the heuristic's algorithms, at most `most`, among those that add in a fixed order;
 * *ret_count of them are good for the plan's product. */
static cublasStatus_t ask(const struct blas *blas, const struct blas_plan *plan,
                          cublasLtMatmulHeuristicResult_t *ret, int most, int *ret_count)
{
    const struct blas_functions *lt = &blas->lt;
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreference_t preference;
    uint64_t workspace = WORKSPACE_MAX;
    /* split sums are added up from the workspace, in fp32, in order */
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasStatus_t status = lt->preference_create(&preference);
    if (status)
        return status;
    status = lt->preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                sizeof workspace);
    if (!status)
        status = lt->preference_set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                    &schemes, sizeof schemes);
    for (size_t i = 0; !status && i < array_length(alignments); i++)
        status =
            lt->preference_set(preference, alignments[i], &plan->alignment, sizeof plan->alignment);
    int found = 0;
    if (!status)
        status = lt->heuristic(blas->handle, plan->desc, plan->a, plan->b, plan->c, plan->c,
                               preference, most, ret, &found);
    lt->preference_destroy(preference);
    *ret_count = 0;
    for (int i = 0; !status && i < found; i++)
        if (ret[i].state == CUBLAS_STATUS_SUCCESS)
            ret[(*ret_count)++] = ret[i];
    return status == CUBLAS_STATUS_NOT_SUPPORTED ? CUBLAS_STATUS_SUCCESS : status;
}

/* The algorithm that the heuristic puts first, or the fastest one. */
static cublasStatus_t choose(struct stream *s, struct blas_plan *plan,
                             const struct blas_operands *o)
{
    cublasLtMatmulHeuristicResult_t found[BLAS_CANDIDATES];
    const bool tunes = s->device->tunes_products;
    int count;
    cublasStatus_t status =
        ask(cuda_blas(s), plan, found, tunes ? (int)array_length(found) : 1, &count);
    plan->impossible = !status && count == 0;
    if (!status && count > 0)
        plan->algorithm = tunes ? blas_tune(s, plan, found, count, o) : found[0];
    return status;
}

/* fp8 has no slow way: it is aligned, or fails. */
static void tell_slow_path(const struct blas_plan *plan)
{
    if (plan->fp8 || (plan->impossible && may_end_in_steps(plan)))
        return;
    if (plan->impossible)
        slow_path_no_algorithm(plan->t, &plan->matmul);
    else
        slow_path_product(plan->t, &plan->matmul, plan->alignment);
}

/* NULL: the stream has failed. A new plan is made, and run first, outside of captures: the library
 * loads its kernels then. */
static struct blas_plan *plan_find(struct stream *s, const struct blas_plan *want,
                                   const struct blas_operands *o)
{
    struct blas *blas = cuda_blas(s);
    struct blas_plan *oldest = &blas->plans[0];
    blas->uses++;
    for (int i = 0; i < BLAS_PLANS; i++) {
        struct blas_plan *plan = &blas->plans[i];
        if (plan->used_at && blas_plan_is_for(plan, want)) {
            plan->used_at = blas->uses;
            return plan;
        }
        oldest = plan->used_at < oldest->used_at ? plan : oldest;
    }
    cuda_uncaptured(s);
    plan_clear(&blas->lt, oldest);
    *oldest = *want;
    oldest->used_at = blas->uses;
    cublasStatus_t status = make_desc(&blas->lt, oldest, o);
    if (!status)
        status = make_layouts(&blas->lt, oldest);
    if (!status)
        status = choose(s, oldest, o);
    if (goes_in_steps(&blas->lt, status, "plan", oldest))
        return oldest;
    if (succeeded(s, &blas->lt, status, "plan", oldest)) {
        tell_slow_path(oldest);
        return oldest;
    }
    plan_clear(&blas->lt, oldest);
    return NULL;
}

/* Bytes that all of the pointers are multiples of, at most MOST_ALIGNMENT. */
static uint32_t alignment_of(const struct blas_operands *o)
{
    uintptr_t bits = (uintptr_t)o->a | (uintptr_t)o->b | (uintptr_t)o->bias | (uintptr_t)o->aux |
                     (uintptr_t)o->c | MOST_ALIGNMENT;
    return (uint32_t)(bits & -bits);
}

cublasStatus_t blas_start(const struct blas *blas, const struct blas_plan *plan,
                          const cublasLtMatmulHeuristicResult_t *algorithm,
                          const struct blas_operands *o, void *workspace, cudaStream_t handle)
{
    float one = 1, beta = plan->matmul.accumulate ? 1 : 0;
    return blas->lt.matmul(blas->handle, plan->desc, &one, o->b, plan->a, o->a, plan->b, &beta,
                           o->c, plan->c, o->c, plan->c, &algorithm->algo, workspace,
                           algorithm->workspaceSize, handle);
}

/* Queues the product that `want` describes; false if there is no algorithm. */
static bool run(struct stream *s, const struct blas_plan *want,
                const struct blas_operands *operands)
{
    const struct blas *blas = cuda_blas(s);
    struct blas_plan *plan = plan_find(s, want, operands);
    if (!plan)
        return true;
    if (plan->impossible)
        return false;
    size_t bytes = plan->algorithm.workspaceSize;
    void *workspace = bytes > 0 ? cuda_scratch(s, bytes) : NULL;
    if (bytes > 0 && !workspace)
        return true;
    /* The plan serves every bias and scale: which one it is, is set for each call. */
    if (!succeeded(s, &blas->lt, set_pointers(&blas->lt, plan, operands), "pointers", plan))
        return true;
    cudaStream_t handle = plan->has_run ? cuda_captured(s) : cuda_uncaptured(s);
    cublasStatus_t status = blas_start(blas, plan, &plan->algorithm, operands, workspace, handle);
    if (goes_in_steps(&blas->lt, status, "start", plan))
        return false;
    plan->has_run = true;
    succeeded(s, &blas->lt, status, "start", plan);
    return true;
}

bool blas_matmul_finished(struct stream *s, enum dtype t, const struct matmul *p, const void *a,
                          const void *b, const struct blas_finish *finish, void *c)
{
    assert(p->m >= 1 && p->n >= 1 && p->k >= 1);
    assert(finish->epilogue == BLAS_PLAIN || !p->accumulate);
    const struct blas_operands operands = {
        .a = a, .b = b, .bias = finish->bias, .aux = finish->aux, .c = c};
    const struct blas_plan want = {.matmul = *p,
                                   .t = t,
                                   .epilogue = finish->epilogue,
                                   .aux_stride = finish->aux ? finish->aux_stride : 0,
                                   .alignment = alignment_of(&operands)};
    return run(s, &want, &operands);
}

bool blas_matmul(struct stream *s, enum dtype t, const struct matmul *p, const void *a,
                 const void *b, const void *bias, void *c)
{
    const struct blas_finish finish = {.epilogue = bias ? BLAS_BIAS : BLAS_PLAIN, .bias = bias};
    return blas_matmul_finished(s, t, p, a, b, &finish, c);
}

bool blas_matmul_fp8(struct stream *s, const struct fp8_matmul *p, const struct blas_fp8 *o)
{
    assert(p->m >= 1 && p->n >= 1 && p->k >= 1 && !(o->bias && p->accumulate));
    const struct blas_operands operands = {.a = o->a,
                                           .b = o->b,
                                           .bias = o->bias,
                                           .c = o->c,
                                           .a_inverse = o->a_inverse,
                                           .b_inverse = o->b_inverse};
    const struct blas_plan want = {
        .matmul = matmul_of_fp8(p),
        .t = DTYPE_BF16,
        .fp8 = true,
        .a_format = p->a_format,
        .b_format = p->b_format,
        .epilogue = o->bias ? BLAS_BIAS : BLAS_PLAIN,
        .alignment = alignment_of(&operands),
    };
    return s->device->compute_capability >= DEVICE_FP8_CAPABILITY && run(s, &want, &operands);
}
