/* A graph of cuDNN's operations, and the plan that runs it: descriptors of tensors and operations
 * are made one by one, and what is made lasts as long as the graph. The first failure is kept and
 * comes out at the end, so that those who build a graph need not look after each step. Knows
 * tensors of four dimensions and cuDNN's descriptors, not attention, streams or memory. */
#ifndef SHOAL_KERNELS_CUDA_CUDNN_GRAPH_H
#define SHOAL_KERNELS_CUDA_CUDNN_GRAPH_H

#include "kernels/cuda/cudnn_api.h"

enum { CUDNN_DIMENSIONS = 4, CUDNN_DESCRIPTORS = 256, CUDNN_OPERATIONS = 40 };

struct cudnn_graph {
    const struct cudnn_api *api;
    cudnn_descriptor all[CUDNN_DESCRIPTORS]; /* in the order they were made */
    int count;
    cudnn_descriptor operations[CUDNN_OPERATIONS];
    int operation_count;
    int64_t virtual_uid; /* of the next tensor that is in no memory */
    const char *failed;  /* what failed first; NULL: nothing */
    char reason[200];    /* why, in the library's own words: one line, perhaps empty */
};

/* A tensor's dimensions and the elements between neighbours in each. */
struct cudnn_layout {
    int64_t sizes[CUDNN_DIMENSIONS], strides[CUDNN_DIMENSIONS];
};
/* Dense, the last dimension innermost. */
struct cudnn_layout cudnn_dense(int64_t a, int64_t b, int64_t c, int64_t d);
/* The last two dimensions in each other's place, in the same memory. */
struct cudnn_layout cudnn_transposed(const struct cudnn_layout *layout);

/* Names of tensors in memory are the caller's, those of virtual ones follow here. */
enum { CUDNN_FIRST_VIRTUAL = 1000, CUDNN_ALIGNMENT = 16 /* bytes, of every tensor in memory */ };

void cudnn_graph_open(struct cudnn_graph *graph, const struct cudnn_api *api);
/* With all its descriptors, the plan too. */
void cudnn_graph_close(struct cudnn_graph *graph);

/* A tensor in device memory, 16-byte aligned, whose place is given by `uid` (1 ..
 * CUDNN_FIRST_VIRTUAL - 1) when the plan runs. */
cudnn_descriptor cudnn_memory(struct cudnn_graph *graph, int64_t uid, enum cudnn_data data,
                              const struct cudnn_layout *layout);
/* One fp32 number in host memory, given likewise. */
cudnn_descriptor cudnn_number(struct cudnn_graph *graph, int64_t uid);
/* Between two operations, in no memory. */
cudnn_descriptor cudnn_virtual(struct cudnn_graph *graph, enum cudnn_data data,
                               const struct cudnn_layout *layout);

/* c = a b, sums in fp32; a: [B, H, M, K], b: [B, G, K, N] with G a divisor of H: head h of a meets
 * head h / (H / G) of b. */
void cudnn_matmul(struct cudnn_graph *graph, cudnn_descriptor a, cudnn_descriptor b,
                  cudnn_descriptor c);
/* y = mode(x, b), in fp32; b: NULL for a mode of one operand; a dimension of 1 is repeated. For
 * CMP_GE y is true or false. */
void cudnn_pointwise(struct cudnn_graph *graph, enum cudnn_pointwise mode, cudnn_descriptor x,
                     cudnn_descriptor b, cudnn_descriptor y);
/* y = an element's index along the axis, in x's place. */
void cudnn_index(struct cudnn_graph *graph, int64_t axis, cudnn_descriptor x, cudnn_descriptor y);
/* y = condition ? x : b. */
void cudnn_select(struct cudnn_graph *graph, cudnn_descriptor condition, cudnn_descriptor x,
                  cudnn_descriptor b, cudnn_descriptor y);
/* y = sum or largest of x along the dimensions in which y is smaller; heads go together in groups
 * of neighbours if y has a part of x's. */
void cudnn_reduce(struct cudnn_graph *graph, enum cudnn_reduction how, cudnn_descriptor x,
                  cudnn_descriptor y);
/* y = x's elements in another order, as the layouts of both say. */
void cudnn_reshape(struct cudnn_graph *graph, cudnn_descriptor x, cudnn_descriptor y);

/* Makes the plan that cuDNN's heuristics put first for the GPU. It takes at most most_workspace
 * bytes, and, unless `may_differ`, its engine does not report that two runs may differ. An engine
 * reports that of its kernels only; the caller avoids graphs whose sums come in no fixed order.
 * Returns it, to be kept with the graph, or NULL: then graph->failed is set. device: finalized
 * properties of a GPU. */
cudnn_descriptor cudnn_graph_plan(struct cudnn_graph *graph, cudnn_descriptor device,
                                  bool may_differ, int64_t most_workspace, int64_t *ret_workspace);

/* The steps every descriptor takes, for those made elsewhere; a failure is kept in the graph.
 * what: its name, for the message. */
cudnn_descriptor cudnn_make(struct cudnn_graph *graph, enum cudnn_kind kind, const char *what);
void cudnn_set(struct cudnn_graph *graph, cudnn_descriptor descriptor,
               enum cudnn_attribute attribute, enum cudnn_type type, int64_t count,
               const void *elements);
void cudnn_finalize(struct cudnn_graph *graph, cudnn_descriptor descriptor, const char *what);
#endif
