/* A graph of cuDNN's operations on the emulated GPU: checked when it is made, and computed as its
 * descriptors say, tensor by tensor, when it runs. Knows nothing of attention: a wrong stride, name
 * or order of operands gives other numbers, or ends the test. */
#ifndef SHOAL_TESTS_EMULATION_CUDNN_GRAPH_H
#define SHOAL_TESTS_EMULATION_CUDNN_GRAPH_H

#ifdef __cplusplus
#include "kernels/cuda/cudnn_api.h"

#include <array>
#include <map>
#include <string>
#include <vector>

namespace emulation
{

/* Ends the program: the library was used as its documentation forbids. */
[[noreturn]] void misused(const std::string &how);

typedef std::array<int64_t, 4> quad;

struct tensor {
    int64_t name;
    int data; /* enum cudnn_data */
    quad sizes, strides;
    int64_t alignment;
    bool is_virtual, is_by_value;
    int64_t count() const
    {
        return sizes[0] * sizes[1] * sizes[2] * sizes[3];
    }
};

enum class kind { MATMUL, POINTWISE, REDUCTION, RESHAPE };

/* x, b and t: operands, as many as it has; of a product a is x. */
struct operation {
    kind what;
    int mode;                        /* of a pointwise operation or a reduction */
    int64_t axis;                    /* -1: none */
    std::map<char, tensor> operands; /* 'x', 'b', 't' */
    tensor y;
};

/* Ends the test if the operation is none that the library takes. */
void check_operation(const operation &it);

/* What a run does to its results. */
struct harm {
    float factor;          /* what comes into memory is that many times what it should be */
    bool first_row_is_nan; /* of each result; all else is right */
};

struct graph {
    std::vector<operation> operations;
    std::map<int64_t, tensor> tensors; /* by name */

    /* Ends the test unless names, sizes and uses of tensors agree. */
    explicit graph(const std::vector<operation> &all);
    /* Of all tensors in memory, in order. */
    std::vector<int64_t> names_in_memory() const;
    /* Bytes that the real library keeps beside its tensors for a graph of many products: rounded
     * products that are in no memory, and the largest tensor that is in none, unless it adds in any
     * order. */
    int64_t kept_bytes() const;
    int matmuls() const;
    int64_t sequences() const; /* the first size of the last result */
    /* Whether a product's sums lie in memory in fp32: the library adds to them in any order. */
    bool adds_in_any_order() const;
    /* Computes; places: of the tensors in memory. Device memory is allowed. The workspace is used
     * up by every operation. What is added in any order is added in another one by each run, drawn
     * by the seed. */
    void run(const std::map<int64_t, void *> &places, void *workspace, size_t bytes,
             const harm &done) const;

  private:
    bool is_result(const tensor &x) const; /* in memory, and nobody reads it */
};

} // namespace emulation
#endif
#endif
