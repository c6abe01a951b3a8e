/* Graphs of the CUDA backend: what a stream captures, piece by piece. stream.c decides what is
 * captured and where a graph is split. */
#ifndef SHOAL_KERNELS_CUDA_GRAPH_H
#define SHOAL_KERNELS_CUDA_GRAPH_H

#include "kernels/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_graph;

/* Begins a capture. */
void cuda_graph_capture(struct cuda_graph *graph);
/* Ends the capture and launches it. */
void cuda_graph_end_capture(struct cuda_graph *graph);

/* The namesakes in struct backend. */
int cuda_graph_open(struct stream *stream, struct graph **ret_graph, struct error *err);
void cuda_graph_close(struct graph *graph);
void cuda_graph_begin(struct graph *graph);
void cuda_graph_end(struct graph *graph);
void cuda_graph_get_use(const struct graph *graph, struct graph_use *ret_use);

#ifdef __cplusplus
}
#endif
#endif
