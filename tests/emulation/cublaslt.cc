/* cuBLASLt on the emulated GPU: a product (cublaslt_product.h) is a kernel of one thread, so that
 * it runs in the stream's order, and sees what a GPU would see. It refuses what the real library
 * refuses: types, leading dimensions, alignments and workspaces that are not as they were
 * described; and of fp8 (cublasLtMatmul's table of its data types) what is not two inputs at
 * multiples of 16 bytes with the sum along their columns, two e5m2, or a GPU older than 8.9. An
 * algorithm is good for the problem it was found for alone. Of several algorithms the first is not
 * the fastest, and some do not run. */
#include "tests/emulation/cublaslt_product.h"
#include "tests/emulation/emulation.h"

using namespace emulation::cublaslt;

struct cublasLtContext {
};

struct cublasLtMatmulDesc {
    bool trans_a = false, trans_b = false;
    const void *bias = nullptr;
    void *aux = nullptr;
    int64_t aux_ld = 0;
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const float *scale_a = nullptr, *scale_b = nullptr; /* of fp8; none is 1 */
    bool has_run = false;
};

struct cublasLtMatrixLayout {
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld;
    bool operator==(const cublasLtMatrixLayout &other) const
    {
        return type == other.type && rows == other.rows && cols == other.cols && ld == other.ld;
    }
};

struct cublasLtMatmulPreference {
    uint64_t workspace_bytes = 0;
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
    uint32_t alignments[4] = {256, 256, 256, 256}; /* a, b, c, d */
};

namespace
{

bool is_aligned(const void *pointer, uint32_t bytes)
{
    return (uintptr_t)pointer % bytes == 0;
}

uint32_t element_bytes(cudaDataType type)
{
    return type == CUDA_R_32F ? 4 : is_fp8(type) ? 1 : 2;
}

/* Of two inputs in fp8 what the library asks for; of others any. */
bool suits_fp8(const recipe &how)
{
    if (!is_fp8(how.type_a) && !is_fp8(how.type_b))
        return true;
    const uint32_t rows =
        how.k | how.m | how.ld_a | how.ld_b | how.ld_c * element_bytes(how.type_c); /* bytes */
    bool aligned = rows % 16 == 0;
    for (uint16_t alignment : how.alignments)
        aligned = aligned && alignment >= 16;
    return is_fp8(how.type_a) && is_fp8(how.type_b) && how.trans_a && !how.trans_b && aligned &&
           !(how.type_a == CUDA_R_8F_E5M2 && how.type_b == CUDA_R_8F_E5M2) &&
           emulation::option_number("capability", 90) >= 89;
}

/* The recipe of a problem whose parts fit together. */
bool describe(const cublasLtMatmulDesc &desc, const cublasLtMatrixLayout &a,
              const cublasLtMatrixLayout &b, const cublasLtMatrixLayout &c, recipe *ret_recipe)
{
    memset(ret_recipe, 0, sizeof *ret_recipe); /* the gaps too */
    const uint64_t m = desc.trans_a ? a.cols : a.rows, k = desc.trans_a ? a.rows : a.cols;
    const uint64_t n = desc.trans_b ? b.rows : b.cols;
    const bool fp8 = is_fp8(a.type) || is_fp8(b.type);
    if ((a.type != b.type && !fp8) || is_fp8(c.type) ||
        (c.type != a.type && c.type != CUDA_R_32F && !fp8) || c.rows != m || c.cols != n ||
        (desc.trans_b ? b.cols : b.rows) != k)
        return false;
    ret_recipe->m = (uint32_t)m;
    ret_recipe->n = (uint32_t)n;
    ret_recipe->k = (uint32_t)k;
    ret_recipe->ld_a = (uint32_t)a.ld;
    ret_recipe->ld_b = (uint32_t)b.ld;
    ret_recipe->ld_c = (uint32_t)c.ld;
    ret_recipe->trans_a = desc.trans_a;
    ret_recipe->trans_b = desc.trans_b;
    ret_recipe->epilogue = (uint16_t)desc.epilogue;
    ret_recipe->ld_aux = (uint32_t)desc.aux_ld;
    ret_recipe->type_a = a.type;
    ret_recipe->type_b = b.type;
    ret_recipe->type_c = c.type;
    return true;
}

/* Whether what the epilogue reads and writes is there, and lies as it must. */
bool is_right_epilogue(const cublasLtMatmulDesc &desc, const cublasLtMatrixLayout &c)
{
    const bool has_bias = desc.epilogue & CUBLASLT_EPILOGUE_BIAS ||
                          desc.epilogue == CUBLASLT_EPILOGUE_BGRADA ||
                          desc.epilogue == CUBLASLT_EPILOGUE_BGRADB;
    const bool has_aux = desc.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
                         desc.epilogue == CUBLASLT_EPILOGUE_DGELU;
    if (has_bias && (!desc.bias || !is_aligned(desc.bias, element_bytes(c.type))))
        return false;
    return !has_aux || (desc.aux && is_aligned(desc.aux, 16) && desc.aux_ld % 8 == 0 &&
                        desc.aux_ld >= (int64_t)c.rows);
}

} // namespace

size_t cublasLtGetVersion(void)
{
    return 130100;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    *handle = new cublasLtContext;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS         ? "CUBLAS_STATUS_SUCCESS"
           : status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                                   : "CUBLAS_STATUS_NOT_SUPPORTED";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *desc = new cublasLtMatmulDesc;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    delete desc;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t bytes)
{
    uint32_t number = 0;
    void *const wide = attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER ? (void *)&desc->bias
                       : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER ? (void *)&desc->aux
                       : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD ? (void *)&desc->aux_ld
                       : attribute == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER ? (void *)&desc->scale_a
                       : attribute == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER ? (void *)&desc->scale_b
                                                                           : nullptr;
    if (bytes != (wide ? sizeof(void *) : sizeof number))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(wide ? wide : &number, value, bytes);
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA)
        desc->trans_a = number == CUBLAS_OP_T;
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSB)
        desc->trans_b = number == CUBLAS_OP_T;
    if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE)
        desc->epilogue = number;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    *layout = new cublasLtMatrixLayout{type, rows, cols, ld};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    *preference = new cublasLtMatmulPreference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t bytes)
{
    bool is_workspace = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
    if (bytes != (is_workspace ? sizeof(uint64_t) : sizeof(uint32_t)))
        return CUBLAS_STATUS_INVALID_VALUE;
    void *to = is_workspace ? (void *)&preference->workspace_bytes
               : attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK
                   ? (void *)&preference->schemes
                   : (void *)&preference
                         ->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES];
    memcpy(to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int *returned)
{
    recipe how;
    emulation::must_not_capture("cublasLtMatmulAlgoGetHeuristic");
    *returned = 0;
    const cublasLtMatrixLayout_t layouts[] = {a, b, c, d};
    for (cublasLtMatrixLayout_t each : layouts)
        if (!each->rows || !each->cols || each->ld < (int64_t)each->rows)
            return CUBLAS_STATUS_INVALID_VALUE;
    if (!handle || requested < 1 || !(*c == *d) || !describe(*desc, *a, *b, *c, &how))
        return CUBLAS_STATUS_INVALID_VALUE;
    /* there were versions without such kernels */
    if ((how.type_a == CUDA_R_16BF && (a->ld % 2 || b->ld % 2)) || how.m * how.n * how.k == 1)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!is_right_epilogue(*desc, *c))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    how.unordered = preference->schemes & ~(uint32_t)CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    for (int i = 0; i < 4; i++)
        how.alignments[i] = (uint16_t)preference->alignments[i];
    if (!suits_fp8(how))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    for (const form &each : forms) {
        how.form = (uint16_t)(&each - forms);
        const size_t workspace = parts_bytes(how);
        if (*returned == requested || workspace > preference->workspace_bytes)
            continue;
        cublasLtMatmulHeuristicResult_t *result = &results[(*returned)++];
        *result = {};
        memcpy(&result->algo, &how, sizeof how);
        result->workspaceSize = workspace;
        result->state = each.state;
    }
    return *returned > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    recipe how, asked;
    if (!desc->has_run)
        emulation::must_not_capture("the first cublasLtMatmul of a problem");
    desc->has_run = true;
    memcpy(&how, algo, sizeof how);
    if (!handle || !describe(*desc, *a_layout, *b_layout, *c_layout, &asked) ||
        !(*c_layout == *d_layout))
        return CUBLAS_STATUS_INVALID_VALUE;
    asked.unordered = how.unordered;
    asked.form = how.form;
    memcpy(asked.alignments, how.alignments, sizeof how.alignments);
    if (!(asked == how) || workspace_bytes < parts_bytes(how) || !is_aligned(workspace, 16) ||
        (parts_bytes(how) && !workspace))
        return CUBLAS_STATUS_INVALID_VALUE;
    const void *const pointers[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        if (!pointers[i] || !is_aligned(pointers[i], how.alignments[i]))
            return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_right_epilogue(*desc, *c_layout) || (*(const float *)beta != 0 && how.ld_aux > 0))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!forms[how.form].runs) {
        emulation::noted(cudaErrorInvalidValue); /* a library's failed launch leaves it behind */
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    product p = {how,
                 {a, how.type_a, how.trans_a, a_layout->ld},
                 {b, how.type_b, how.trans_b, b_layout->ld},
                 {c, how.type_c, false, c_layout->ld},
                 {desc->bias, how.type_c, false, 1},
                 {desc->aux, how.type_c, false, desc->aux_ld},
                 d,
                 *(const float *)alpha,
                 *(const float *)beta,
                 desc->scale_a,
                 desc->scale_b,
                 parts_bytes(how) ? (float *)workspace : nullptr};
    return emulation::launch_kernel(stream, "cublasLtMatmul", {__FILE__, __LINE__}, 1, 1, 0,
                                    multiply, p) == cudaSuccess
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_INVALID_VALUE;
}
