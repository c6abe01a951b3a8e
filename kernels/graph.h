/* Graphs: ops that a device is handed at once instead of one by one, where it can (CUDA's graphs).
 * Part of kernels/device.h.
 *
 * What a stream is given between graph_begin() and graph_end() does exactly what it would do
 * without: the same ops with the same arguments in the same order. On the device it becomes one
 * graph or several. An op waits for the end of its graph before it starts; whatever a graph cannot
 * hold parts it: what was given before is launched, then this, and the next op begins the next
 * graph. Those are stream_wait(), event_record(), stream_copy(), stream_call(), stream_stamp(),
 * stream_sync(), stream_native(), an op whose kernels are found for its shape for the first time,
 * and whatever waits for the device to find memory. So nothing is forbidden between the two, but
 * only many ops behind one another are worth it.
 *
 * The graphs are kept. When the stream comes to begin and end again, each takes the new arguments;
 * only one whose ops changed (another count, another kind) is made anew, beside a few older forms.
 * Parts of very few ops are run one by one after the first time: that takes fewer calls.
 * The first time, ops run one by one: kernels are loaded and memory is found before anything is
 * recorded. */
#ifndef SHOAL_KERNELS_GRAPH_H
#define SHOAL_KERNELS_GRAPH_H

#include "base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stream;
struct graph; /* all that lies between one begin and end */

/* For this stream, which is used until graph_close(). Tries whether the device can do it. Errors:
 * ERR_UNSUPPORTED, naming the reason; the CPU has no graphs. */
int graph_open(struct stream *stream, struct graph **ret_graph, struct error *err);
void graph_close(struct graph *graph); /* NULL-safe; waits for the stream */

/* From now on the stream's ops go into graphs; NULL: they do not. A stream is between one begin and
 * end at a time. */
void graph_begin(struct graph *graph);
/* Launches what was not yet. A graph that the device does not take fails the stream. NULL-safe. */
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
