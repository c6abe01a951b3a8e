#include "kernels/cuda/cudnn_graph.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CONFIGS = 16 }; /* of the heuristics, that are looked at */

static void one_line(char *text)
{
    while ((text = strpbrk(text, "\n\r")))
        *text = ' ';
}

/* Keeps the first failure, and the words that the library has for it. */
static void note(struct cudnn_graph *graph, int status, const char *what)
{
    if (!status || graph->failed)
        return;
    graph->failed = what;
    graph->api->last_error(graph->reason, sizeof graph->reason);
    one_line(graph->reason);
}

cudnn_descriptor cudnn_make(struct cudnn_graph *graph, enum cudnn_kind kind, const char *what)
{
    cudnn_descriptor descriptor = NULL;
    if (graph->failed)
        return NULL;
    assert(graph->count < CUDNN_DESCRIPTORS);
    note(graph, graph->api->descriptor_create((int)kind, &descriptor), what);
    if (graph->failed)
        return NULL;
    graph->all[graph->count++] = descriptor;
    return descriptor;
}

void cudnn_set(struct cudnn_graph *graph, cudnn_descriptor descriptor,
               enum cudnn_attribute attribute, enum cudnn_type type, int64_t count,
               const void *elements)
{
    if (!graph->failed)
        note(graph, graph->api->set(descriptor, (int)attribute, (int)type, count, elements),
             "an attribute");
}

void cudnn_finalize(struct cudnn_graph *graph, cudnn_descriptor descriptor, const char *what)
{
    if (!graph->failed)
        note(graph, graph->api->finalize(descriptor), what);
}

static void set_descriptor(struct cudnn_graph *graph, cudnn_descriptor descriptor,
                           enum cudnn_attribute attribute, cudnn_descriptor value)
{
    cudnn_set(graph, descriptor, attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_data(struct cudnn_graph *graph, cudnn_descriptor descriptor,
                     enum cudnn_attribute attribute, int data)
{
    cudnn_set(graph, descriptor, attribute, CUDNN_TYPE_DATA_TYPE, 1, &data);
}

void cudnn_graph_open(struct cudnn_graph *graph, const struct cudnn_api *api)
{
    memset(graph, 0, sizeof *graph);
    graph->api = api;
    graph->virtual_uid = CUDNN_FIRST_VIRTUAL;
}

void cudnn_graph_close(struct cudnn_graph *graph)
{
    while (graph->count > 0)
        graph->api->descriptor_destroy(graph->all[--graph->count]);
}

/* ---- tensors ---- */

struct cudnn_layout cudnn_dense(int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct cudnn_layout){{a, b, c, d}, {b * c * d, c * d, d, 1}};
}

struct cudnn_layout cudnn_transposed(const struct cudnn_layout *layout)
{
    const int64_t *sizes = layout->sizes, *strides = layout->strides;
    return (struct cudnn_layout){{sizes[0], sizes[1], sizes[3], sizes[2]},
                                 {strides[0], strides[1], strides[3], strides[2]}};
}

enum storage { IN_DEVICE, BY_VALUE, VIRTUAL };

static cudnn_descriptor tensor(struct cudnn_graph *graph, int64_t uid, int data,
                               const struct cudnn_layout *layout, enum storage storage)
{
    cudnn_descriptor it = cudnn_make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor");
    const int64_t alignment = CUDNN_ALIGNMENT;
    const bool is_virtual = storage == VIRTUAL, is_by_value = storage == BY_VALUE;
    set_data(graph, it, CUDNN_ATTR_TENSOR_DATA_TYPE, data);
    cudnn_set(graph, it, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, CUDNN_DIMENSIONS,
              layout->sizes);
    cudnn_set(graph, it, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, CUDNN_DIMENSIONS,
              layout->strides);
    cudnn_set(graph, it, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    cudnn_set(graph, it, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    cudnn_set(graph, it, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    cudnn_set(graph, it, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &is_by_value);
    cudnn_finalize(graph, it, "a tensor");
    return it;
}

cudnn_descriptor cudnn_memory(struct cudnn_graph *graph, int64_t uid, enum cudnn_data data,
                              const struct cudnn_layout *layout)
{
    assert(uid >= 1 && uid < CUDNN_FIRST_VIRTUAL);
    return tensor(graph, uid, (int)data, layout, IN_DEVICE);
}

cudnn_descriptor cudnn_number(struct cudnn_graph *graph, int64_t uid)
{
    assert(uid >= 1 && uid < CUDNN_FIRST_VIRTUAL);
    const struct cudnn_layout one = cudnn_dense(1, 1, 1, 1);
    return tensor(graph, uid, CUDNN_DATA_FLOAT, &one, BY_VALUE);
}

cudnn_descriptor cudnn_virtual(struct cudnn_graph *graph, enum cudnn_data data,
                               const struct cudnn_layout *layout)
{
    return tensor(graph, graph->virtual_uid++, (int)data, layout, VIRTUAL);
}

/* ---- operations ---- */

static void add_operation(struct cudnn_graph *graph, cudnn_descriptor operation, const char *what)
{
    cudnn_finalize(graph, operation, what);
    assert(graph->operation_count < CUDNN_OPERATIONS);
    graph->operations[graph->operation_count++] = operation;
}

void cudnn_matmul(struct cudnn_graph *graph, cudnn_descriptor a, cudnn_descriptor b,
                  cudnn_descriptor c)
{
    cudnn_descriptor how = cudnn_make(graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "a product");
    set_data(graph, how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    cudnn_finalize(graph, how, "a product");
    cudnn_descriptor it = cudnn_make(graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "a product");
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    add_operation(graph, it, "a product");
}

/* axis: -1 for modes without one. */
static void pointwise(struct cudnn_graph *graph, int mode, int precision, int64_t axis,
                      cudnn_descriptor x, cudnn_descriptor b, cudnn_descriptor condition,
                      cudnn_descriptor y)
{
    const char *what = "a pointwise operation";
    cudnn_descriptor how = cudnn_make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, what);
    cudnn_set(graph, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_data(graph, how, CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
    if (axis >= 0)
        cudnn_set(graph, how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
    cudnn_finalize(graph, how, what);
    cudnn_descriptor it = cudnn_make(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, what);
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        set_descriptor(graph, it, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (condition)
        set_descriptor(graph, it, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, condition);
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    add_operation(graph, it, what);
}

void cudnn_pointwise(struct cudnn_graph *graph, enum cudnn_pointwise mode, cudnn_descriptor x,
                     cudnn_descriptor b, cudnn_descriptor y)
{
    int precision = mode == CUDNN_POINTWISE_CMP_GE ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
    pointwise(graph, (int)mode, precision, -1, x, b, NULL, y);
}

void cudnn_index(struct cudnn_graph *graph, int64_t axis, cudnn_descriptor x, cudnn_descriptor y)
{
    pointwise(graph, CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis, x, NULL, NULL, y);
}

void cudnn_select(struct cudnn_graph *graph, cudnn_descriptor condition, cudnn_descriptor x,
                  cudnn_descriptor b, cudnn_descriptor y)
{
    pointwise(graph, CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1, x, b, condition, y);
}

void cudnn_reduce(struct cudnn_graph *graph, enum cudnn_reduction how, cudnn_descriptor x,
                  cudnn_descriptor y)
{
    const char *what = "a reduction";
    const int operator=(int) how;
    cudnn_descriptor reduction = cudnn_make(graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, what);
    cudnn_set(graph, reduction, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
              1, &operator);
    set_data(graph, reduction, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    cudnn_finalize(graph, reduction, what);
    cudnn_descriptor it = cudnn_make(graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, what);
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduction);
    add_operation(graph, it, what);
}

void cudnn_reshape(struct cudnn_graph *graph, cudnn_descriptor x, cudnn_descriptor y)
{
    cudnn_descriptor it =
        cudnn_make(graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "a reshape");
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set_descriptor(graph, it, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    add_operation(graph, it, "a reshape");
}

/* ---- the plan ---- */

static cudnn_descriptor finish_graph(struct cudnn_graph *graph)
{
    const char *what = "the graph of operations";
    cudnn_descriptor it = cudnn_make(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, what);
    cudnn_set(graph, it, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              graph->operation_count, graph->operations);
    cudnn_finalize(graph, it, what);
    return it;
}

/* Whether an engine says that two runs may differ; unknown is yes. */
static bool differs(struct cudnn_graph *graph, cudnn_descriptor config)
{
    const struct cudnn_api *api = graph->api;
    cudnn_descriptor engine = cudnn_make(graph, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "an engine");
    int64_t count = 0;
    int notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {0};
    if (!engine || api->get(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                            &count, &engine) != 0)
        return true;
    if (api->get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes) != 0)
        return true;
    for (int64_t i = 0; i < count && i < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; i++)
        if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
            return true;
    return false;
}

/* The plan of a configuration; NULL if the engine cannot, or takes too much. */
static cudnn_descriptor try_config(struct cudnn_graph *graph, cudnn_descriptor device,
                                   cudnn_descriptor config, int64_t most_workspace,
                                   int64_t *ret_workspace)
{
    const struct cudnn_api *api = graph->api;
    int64_t count = 0;
    cudnn_descriptor plan = cudnn_make(graph, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan");
    set_descriptor(graph, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    set_descriptor(graph, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
    if (graph->failed)
        return NULL;
    /* Not by cudnn_finalize: an engine that cannot is no failure of the graph; the next one is
     * tried. */
    int status = api->finalize(plan);
    if (status == 0)
        status = api->get(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                          &count, ret_workspace);
    if (status != 0)
        api->last_error(graph->reason, sizeof graph->reason);
    else if (*ret_workspace > most_workspace)
        snprintf(graph->reason, sizeof graph->reason,
                 "%lld MiB of workspace are needed, at most %lld are given",
                 (long long)(*ret_workspace >> 20), (long long)(most_workspace >> 20));
    else
        return plan;
    return NULL;
}

cudnn_descriptor cudnn_graph_plan(struct cudnn_graph *graph, cudnn_descriptor device,
                                  bool may_differ, int64_t most_workspace, int64_t *ret_workspace)
{
    const char *what = "the heuristics";
    const int mode = CUDNN_HEUR_MODE_A;
    cudnn_descriptor operations = finish_graph(graph), configs[CONFIGS];
    cudnn_descriptor heuristics = cudnn_make(graph, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, what);
    int64_t found = 0;
    set_descriptor(graph, heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, operations);
    cudnn_set(graph, heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    set_descriptor(graph, heuristics, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
    cudnn_finalize(graph, heuristics, what);
    for (int i = 0; i < CONFIGS; i++)
        configs[i] = cudnn_make(graph, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, what);
    if (!graph->failed)
        note(graph,
             graph->api->get(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                             CUDNN_TYPE_BACKEND_DESCRIPTOR, CONFIGS, &found, configs),
             what);
    for (int i = 0; i < found && i < CONFIGS && !graph->failed; i++) {
        if (!may_differ && differs(graph, configs[i]))
            continue;
        cudnn_descriptor plan =
            try_config(graph, device, configs[i], most_workspace, ret_workspace);
        if (plan)
            return plan;
    }
    if (!graph->failed) {
        graph->failed = "a plan";
        if (!graph->reason[0])
            snprintf(graph->reason, sizeof graph->reason, "no engine can do it%s",
                     may_differ ? "" : ", the same way each time");
    }
    one_line(graph->reason);
    return NULL;
}
