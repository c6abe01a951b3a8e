/* A product as cuBLASLt's algorithms do it on the emulated GPU. Where the caller lets in sums whose
 * order is not fixed, they take them: then no two runs give the same bits. Epilogues work on sums
 * that are not rounded yet, and the gradient of a bias is added up from its last term to its first.
 * Knows nothing of descriptors, and refuses nothing: cublaslt.cc does. */
#ifndef SHOAL_TESTS_EMULATION_CUBLASLT_PRODUCT_H
#define SHOAL_TESTS_EMULATION_CUBLASLT_PRODUCT_H

#ifdef __cplusplus
#include <cstdint>
#include <cstring>
#include <cublasLt.h>
#include <vector>

namespace emulation::cublaslt
{

/* Algorithms, in the heuristic's order. */
struct form {
    int64_t split;        /* terms; longer sums are split, the parts added up from the workspace */
    cublasStatus_t state; /* of the heuristic's result */
    bool runs;            /* else cublasLtMatmul refuses it */
    int64_t us;           /* what a run costs (emulation::spend) */
};
inline constexpr form forms[] = {
    {256, CUBLAS_STATUS_SUCCESS, true, 30},       /* the only one that the tests' bits are of */
    {256, CUBLAS_STATUS_NOT_SUPPORTED, false, 1}, /* listed, and of no use */
    {256, CUBLAS_STATUS_SUCCESS, false, 1},       {128, CUBLAS_STATUS_SUCCESS, true, 50},
    {64, CUBLAS_STATUS_SUCCESS, true, 10}, /* the fastest, with other bits and more workspace */
};

bool is_fp8(cudaDataType type);

struct matrix {
    const void *data;
    cudaDataType type;
    bool trans;
    int64_t ld;
    /* Element (row, col) of op(the matrix), which is column-major. */
    float at(int64_t row, int64_t col) const;
    /* Its rows (of_cols: columns), each `length` floats, behind one another. */
    std::vector<float> dense(int64_t count, int64_t length, bool of_cols) const;
};

/* What an algorithm is for, and how it does it. */
struct recipe {
    uint32_t m, n, k, ld_a, ld_b, ld_c;
    uint16_t alignments[4];
    uint16_t form, epilogue;
    uint32_t ld_aux;
    cudaDataType type_a, type_b, type_c;
    bool trans_a, trans_b, unordered;
    bool operator==(const recipe &other) const
    {
        return !memcmp(this, &other, sizeof other);
    }
};
static_assert(sizeof(recipe) <= sizeof(cublasLtMatmulAlgo_t));

struct product {
    recipe how;
    matrix a, b, c, bias, aux;
    void *d;
    float alpha, beta;
    const float *scale_a, *scale_b;
    float *parts;
};

/* Bytes for the parts of a split sum; 0 if it is not split. */
size_t parts_bytes(const recipe &how);

/* The kernel, of one thread. */
void multiply(product p);

} // namespace emulation::cublaslt
#endif
#endif
