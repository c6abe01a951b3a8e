/* Graphs by stream capture. Between begin and end each run of ops is captured as a piece, numbered
 * in the order of the stream. The piece of that number was made into an executable graph when it
 * was first met; it takes the new arguments (dropout's keys, the learning rate, addresses) and is
 * launched. So what a graph reads is always what the ops were just given: neither scratch that grew
 * nor memory that moved can be met by an old one.
 *
 * A capture and its update cost the host more than a few launches: a piece that never had FEWEST
 * nodes is launched op by op.
 *
 * A few forms of a piece are kept, for micro-batches that add to gradients or write them, and for
 * the shorter last batch. A piece is a chain, so its length tells most of them apart; among those
 * of one length it is the one that takes the arguments.
 *
 * Capture is relaxed: the allocators may call cudaMalloc meanwhile, and other threads anything. */
#include "kernels/cuda/graph.h"

#include "base/mem.h"
#include "kernels/cuda/stream.h"

#include <stdlib.h>

enum {
    FORMS = 4, /* of one piece; the one used longest ago makes room */
    FEWEST = 4,
};

struct form {
    cudaGraphExec_t exec; /* NULL: free; used_at is 0 then */
    size_t nodes;
    int64_t used_at; /* the count of launches then */
};

struct piece {
    size_t longest; /* nodes, so far; 0: it was not met */
    struct form forms[FORMS];
};

struct cuda_graph {
    struct graph base;
    cudaStream_t handle;
    bool met;       /* it ran once, op by op */
    bool capturing; /* the stream is */
    size_t alone;   /* launches of the piece so far, if it is too short to be captured */
    struct piece *pieces;
    int count, capacity, next; /* next: the piece that is captured next or now */
    struct graph_use use;
};

static struct piece *piece_at(struct cuda_graph *g, int index)
{
    if (index == g->capacity) {
        g->capacity = g->capacity ? 2 * g->capacity : 16;
        g->pieces = xrealloc(g->pieces, (size_t)g->capacity * sizeof *g->pieces);
    }
    if (index == g->count)
        g->pieces[g->count++] = (struct piece){0};
    return &g->pieces[index];
}

/* Not while the stream may still run it. */
static void form_clear(struct form *form)
{
    if (form->exec)
        cudaGraphExecDestroy(form->exec);
    *form = (struct form){0};
}

static bool form_takes(const struct form *form, cudaGraph_t captured, size_t nodes)
{
    cudaGraphExecUpdateResultInfo why;
    if (!form->exec || form->nodes != nodes)
        return false;
    if (cudaGraphExecUpdate(form->exec, captured, &why) == cudaSuccess)
        return true;
    cudaGetLastError(); /* it is of another form: no error of ours */
    return false;
}

static cudaError_t form_make(struct cuda_graph *g, struct form *form, cudaGraph_t captured,
                             size_t nodes)
{
    cudaError_t status = form->exec ? cudaStreamSynchronize(g->handle) : cudaSuccess;
    if (status != cudaSuccess)
        return status;
    form_clear(form);
    status = cudaGraphInstantiate(&form->exec, captured, 0);
    if (status != cudaSuccess) {
        form->exec = NULL;
        return status;
    }
    form->nodes = nodes;
    g->use.made++;
    return cudaSuccess;
}

/* The piece's form that takes the arguments of `captured`, else it is made of it: in a free place,
 * or in that of the one used longest ago. */
static cudaError_t form_find(struct cuda_graph *g, struct piece *piece, cudaGraph_t captured,
                             size_t nodes, struct form **ret_form)
{
    struct form *oldest = &piece->forms[0];
    for (int i = 0; i < FORMS; i++) {
        struct form *form = &piece->forms[i];
        if (form_takes(form, captured, nodes)) {
            *ret_form = form;
            return cudaSuccess;
        }
        if (form->used_at < oldest->used_at)
            oldest = form;
    }
    *ret_form = oldest;
    return form_make(g, oldest, captured, nodes);
}

static cudaError_t launch(struct cuda_graph *g, cudaGraph_t captured)
{
    size_t nodes = 0;
    struct form *form;
    cudaError_t status = cudaGraphGetNodes(captured, NULL, &nodes);
    if (status != cudaSuccess || nodes == 0)
        return status;
    struct piece *piece = piece_at(g, g->next++);
    if (piece->longest < nodes)
        piece->longest = nodes;
    status = form_find(g, piece, captured, nodes, &form);
    if (status == cudaSuccess)
        status = cudaGraphLaunch(form->exec, g->handle);
    if (status == cudaSuccess)
        form->used_at = ++g->use.launched;
    return status;
}

static cudaError_t begin_capture(struct cuda_graph *g)
{
    cudaError_t status = cudaStreamBeginCapture(g->handle, cudaStreamCaptureModeRelaxed);
    g->capturing = status == cudaSuccess;
    return status;
}

static cudaError_t end_capture(struct cuda_graph *g)
{
    cudaGraph_t captured = NULL;
    g->capturing = false;
    cudaError_t status = cudaStreamEndCapture(g->handle, &captured);
    if (status == cudaSuccess)
        status = launch(g, captured);
    if (captured)
        cudaGraphDestroy(captured);
    return status;
}

static bool is_short(const struct piece *piece)
{
    return piece->longest > 0 && piece->longest < FEWEST;
}

void cuda_graph_capture(struct cuda_graph *g)
{
    if (!g->met || g->capturing)
        return;
    if (g->alone || is_short(piece_at(g, g->next)))
        g->alone++;
    else
        cuda_check(g->base.stream, begin_capture(g), "capture a graph of ops");
}

void cuda_graph_end_capture(struct cuda_graph *g)
{
    if (g->capturing)
        cuda_check(g->base.stream, end_capture(g), "launch a graph of ops");
    if (!g->alone)
        return;
    struct piece *piece = piece_at(g, g->next++);
    if (piece->longest < g->alone)
        piece->longest = g->alone;
    g->alone = 0;
}

static void forget_forms(struct cuda_graph *g)
{
    /* its failures stay for who asks for them */
    cudaStreamSynchronize(cuda_uncaptured(g->base.stream));
    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < FORMS; k++)
            form_clear(&g->pieces[i].forms[k]);
    g->count = 0;
}

/* Takes one memset all the way twice, made anew and with new arguments. */
static cudaError_t try_out(struct cuda_graph *g)
{
    void *memory = cuda_scratch(g->base.stream, 1);
    cudaError_t status = memory ? cudaSuccess : cudaErrorMemoryAllocation;
    for (int value = 0; value < 2 && status == cudaSuccess; value++) {
        g->next = 0;
        status = begin_capture(g);
        if (status == cudaSuccess)
            status = cudaMemsetAsync(memory, value, 1, g->handle);
        if (g->capturing) {
            cudaError_t ended = end_capture(g);
            status = status == cudaSuccess ? ended : status;
        }
    }
    forget_forms(g);
    g->use = (struct graph_use){0};
    return status;
}

int cuda_graph_open(struct stream *stream, struct graph **ret_graph, struct error *err)
{
    struct cuda_graph *g = xcalloc(1, sizeof *g);
    g->base.stream = stream;
    g->handle = cuda_uncaptured(stream);
    cudaError_t status = try_out(g);
    if (status != cudaSuccess) {
        cudaGetLastError();
        cuda_graph_close(&g->base);
        return error_set(err, ERR_UNSUPPORTED, "GPU: a graph of ops: %s",
                         cudaGetErrorString(status));
    }
    *ret_graph = &g->base;
    return 0;
}

void cuda_graph_close(struct graph *graph)
{
    struct cuda_graph *g = (struct cuda_graph *)graph;
    forget_forms(g);
    free(g->pieces);
    free(g);
}

void cuda_graph_begin(struct graph *graph)
{
    struct cuda_graph *g = (struct cuda_graph *)graph;
    g->next = 0;
    cuda_stream_set_graph(graph->stream, g);
}

void cuda_graph_end(struct graph *graph)
{
    struct cuda_graph *g = (struct cuda_graph *)graph;
    cuda_graph_end_capture(g);
    cuda_stream_set_graph(graph->stream, NULL);
    g->met = true;
}

void cuda_graph_get_use(const struct graph *graph, struct graph_use *ret_use)
{
    *ret_use = ((const struct cuda_graph *)graph)->use;
}
