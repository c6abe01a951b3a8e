/* Graphs: a sequence of ops that a device launches at once (CUDA graphs).
 * Part of kernels/device.h.
 *
 * Work between graph_begin() and graph_end() does exactly what it does without them: the same ops
 * with the same arguments in the same order. The device runs it as one graph or several, and a
 * graph starts when it is complete. Work that a graph cannot hold splits it: the ops so far are
 * launched, then this work, and the next op begins the next graph. Such work is stream_wait(),
 * event_record(), stream_copy(), stream_call(), stream_timestamp(), stream_sync(), stream_native(),
 * an op that chooses its kernels for a new shape, and every wait for memory. So nothing is
 * forbidden between the two, but only long runs of ops gain.
 *
 * Graphs are kept. The next time between begin and end, each graph takes the new arguments
 * (cudaGraphExecUpdate). A graph whose ops changed, in number or kind, is instantiated anew, and a
 * few older forms stay. Parts of very few ops run one by one: that takes fewer calls. The first
 * time all ops run one by one, so that kernels are loaded and memory is found before a capture. */
#ifndef SHOAL_KERNELS_GRAPH_H
#define SHOAL_KERNELS_GRAPH_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stream;
struct graph; /* all that lies between one begin and end */

/* The graph uses the stream until graph_close(). Errors: ERR_UNSUPPORTED with the reason, if the
 * device has no graphs, as the CPU. */
int graph_open(struct stream *stream, struct graph **ret_graph, struct error *err);
void graph_close(struct graph *graph); /* NULL-safe; waits for the stream */

/* From now on the stream's ops go into graphs; NULL: they do not. A stream is between one begin and
 * end at a time. */
void graph_begin(struct graph *graph);
/* Launches the rest. A graph that the device refuses fails the stream. NULL-safe. */
void graph_end(struct graph *graph);

/* So far. */
struct graph_use {
    int64_t launched; /* graphs */
    int64_t made;     /* those of them that were new, or changed their form */
};
void graph_get_use(const struct graph *graph, struct graph_use *ret_use);

#ifdef __cplusplus
}
#endif
#endif
