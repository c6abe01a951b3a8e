/* cuDNN's backend interface on the emulated GPU, as far as kernels/cuda/cudnn_api.h declares it.
 * Whoever breaks its protocol ends the test: the backend takes every error for a reason to use its
 * own kernels, so that one would be seen by nobody. A plan runs in its stream's order and spoils
 * its workspace first.
 *
 * The setting "cudnn" (emulation.h) makes it absent, old, or unwilling: see `moods`. */
#include "kernels/cuda/cudnn_api.h"
#include "tests/emulation/cudnn_descriptor.h"
#include "tests/emulation/emulation.h"
#include "tests/emulation/library.h"

using namespace emulation;

namespace
{

enum { NOT_SUPPORTED = 3000, EXECUTION_FAILED = 5000 };

void finish_graph(descriptor *it)
{
    std::vector<operation> operations;
    for (const void *each : it->all<void *>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
        const descriptor *op = descriptor_final(each, -1);
        if (!descriptor_is_operation(op))
            misused("a graph has something else than operations");
        operations.push_back(descriptor_operation(op));
    }
    it->operations = std::make_shared<graph>(operations);
}

/* `moods`: what the setting makes of the library. */
bool is(const char *mood)
{
    return option("cudnn", "") == mood;
}

int finish_plan(descriptor *it)
{
    emulation::must_not_capture("cudnnBackendFinalize of a plan");
    if (!emulation_compiler_is_whole())
        misused("a plan was made while NVRTC had no builtins: it compiles nothing");
    descriptor_of(it, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    const descriptor *config = descriptor_of(it, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                             CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    it->operations = config->operations;
    it->differs = config->differs;
    /* as much as the real one takes of a backward, with five products */
    it->workspace = 256;
    if (it->operations->matmuls() > 2)
        it->workspace += it->operations->kept_bytes();
    if (is("greedy") && it->operations->matmuls() > 2)
        it->workspace += it->operations->sequences() * ((int64_t)130 << 20);
    if (is("hungry"))
        it->workspace = (int64_t)1 << 40;
    return is("no plan") ? NOT_SUPPORTED : 0;
}

/* ---- running ---- */

struct job {
    std::weak_ptr<graph> operations; /* the plan's: it must still be there */
    std::map<int64_t, void *> places;
    std::map<int64_t, float> numbers;
    void *workspace;
    int64_t workspace_bytes;
};

void run_job(std::shared_ptr<job> it)
{
    std::map<int64_t, void *> places = it->places;
    const std::shared_ptr<graph> operations = it->operations.lock();
    if (!operations)
        misused("a plan was destroyed before it ran");
    for (auto &[name, number] : it->numbers)
        places[name] = &number;
    operations->run(places, it->workspace, (size_t)it->workspace_bytes,
                    {is("wrong") ? 1.5f : 1, is("nan")});
}

/* The job of a plan with the places of a pack. */
std::shared_ptr<job> job_of(const descriptor *plan, const descriptor *pack)
{
    const auto names = pack->all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto places = pack->all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    auto it = std::make_shared<job>();
    it->operations = plan->operations;
    it->workspace_bytes = plan->workspace;
    it->workspace = pack->one<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
    if (names.size() != places.size() || !it->workspace)
        misused("a pack has not as many names as places, or no workspace");
    for (size_t i = 0; i < names.size(); i++) {
        const auto x = plan->operations->tensors.find(names[i]);
        if (x == plan->operations->tensors.end() || x->second.is_virtual || !places[i] ||
            it->places.count(names[i]) || it->numbers.count(names[i]))
            misused("a pack has tensor " + std::to_string(names[i]) +
                    " twice, or nowhere, or it is not in the graph's memory");
        if (x->second.is_by_value)
            it->numbers[names[i]] = *(const float *)places[i];
        else if ((uintptr_t)places[i] % (uintptr_t)x->second.alignment)
            misused("tensor " + std::to_string(names[i]) + " is not aligned as it was described");
        else
            it->places[names[i]] = places[i];
    }
    if (it->places.size() + it->numbers.size() != plan->operations->names_in_memory().size())
        misused("a pack lacks a tensor that is in memory");
    return it;
}

int64_t runs;

} // namespace

struct cudnnContext {
    cudaStream_t stream = nullptr;
};

/* For tests: how many plans have been queued in this process. */
extern "C" __attribute__((visibility("default"))) int64_t emulation_cudnn_runs()
{
    return runs;
}

extern "C" {

size_t cudnnGetVersion(void)
{
    if (is("half"))
        misused("cuDNN was called without its parts: it ends the process then");
    return is("old")    ? CUDNN_OLDEST - 100
           : is("9.15") ? CUDNN_BACKWARD_OF_ANY_LENGTH - 100
                        : CUDNN_BACKWARD_OF_ANY_LENGTH;
}

size_t cudnnGetCudartVersion(void)
{
    return 13000;
}

const char *cudnnGetErrorString(int status)
{
    return status == NOT_SUPPORTED      ? "CUDNN_STATUS_NOT_SUPPORTED"
           : status == EXECUTION_FAILED ? "CUDNN_STATUS_EXECUTION_FAILED"
                                        : "CUDNN_STATUS_NOT_INITIALIZED";
}

void cudnnGetLastErrorString(char *message, size_t bytes)
{
    snprintf(message, bytes, "emulated:\nit has no wish to");
}

int cudnnCreate(cudnn_handle *handle)
{
    emulation::must_not_capture("cudnnCreate");
    if (is("no start"))
        return 1001;
    *handle = new cudnnContext;
    return 0;
}

int cudnnDestroy(cudnn_handle handle)
{
    delete handle;
    return 0;
}

int cudnnSetStream(cudnn_handle handle, void *stream)
{
    handle->stream = (cudaStream_t)stream;
    return 0;
}

int cudnnBackendCreateDescriptor(int kind, cudnn_descriptor *ret)
{
    *ret = descriptor_make(kind);
    return 0;
}

int cudnnBackendDestroyDescriptor(cudnn_descriptor it)
{
    descriptor_destroy(it);
    return 0;
}

int cudnnBackendSetAttribute(cudnn_descriptor it, int attribute, int type, int64_t count,
                             const void *elements)
{
    descriptor_set(descriptor_open(it), attribute, type, count, elements);
    return 0;
}

int cudnnBackendFinalize(cudnn_descriptor pointer)
{
    descriptor *it = descriptor_open(pointer);
    int status = 0;
    descriptor_check(it);
    if (descriptor_is_operation(it))
        check_operation(descriptor_operation(it));
    else if (it->kind == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
        finish_graph(it);
    else if (it->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        status = finish_plan(it);
    it->is_final = status == 0;
    return status;
}

/* Fills descriptors that are there: of heuristics two configurations, the first with an engine that
 * must not be taken; of a configuration its engine. */
static int fill(const descriptor *it, int attribute, int64_t room, int64_t *count, void *elements)
{
    if (it->kind == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
        attribute == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
        descriptor_of(it, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
        *count = is("no engine") ? 0 : room < 2 ? room : 2;
    } else if (it->kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR &&
               attribute == CUDNN_ATTR_ENGINECFG_ENGINE) {
        *count = 1;
    } else {
        misused("descriptors that nobody has");
    }
    for (int64_t i = 0; i < *count; i++) {
        descriptor *to = descriptor_open(((void **)elements)[i]);
        const int kind = attribute == CUDNN_ATTR_ENGINECFG_ENGINE
                             ? CUDNN_BACKEND_ENGINE_DESCRIPTOR
                             : CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
        if (to->kind != kind)
            misused("what is to be filled is of another kind");
        to->is_final = true;
        to->differs = kind == CUDNN_BACKEND_ENGINE_DESCRIPTOR ? it->differs : i == 0;
        if (kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
            to->operations = descriptor_of(it, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                           CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)
                                 ->operations;
    }
    return 0;
}

int cudnnBackendGetAttribute(cudnn_descriptor pointer, int attribute, int type, int64_t room,
                             int64_t *count, void *elements)
{
    const descriptor *it = descriptor_final(pointer, -1);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return fill(it, attribute, room, count, elements);
    if (it->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && type == CUDNN_TYPE_INT64 &&
        attribute == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        *count = 1;
        *(int64_t *)elements = it->workspace;
        return 0;
    }
    if (it->kind == CUDNN_BACKEND_ENGINE_DESCRIPTOR && type == CUDNN_TYPE_NUMERICAL_NOTE &&
        attribute == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && room >= 2) {
        const int notes[] = {0 /* matrix units */, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
        *count = it->differs ? 2 : 1;
        memcpy(elements, notes, (size_t)*count * sizeof *notes);
        return 0;
    }
    misused("attribute " + std::to_string(attribute) + " cannot be asked for so");
}

int cudnnBackendExecute(cudnn_handle handle, cudnn_descriptor plan_pointer,
                        cudnn_descriptor pack_pointer)
{
    const descriptor *plan =
        descriptor_final(plan_pointer, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    const descriptor *pack = descriptor_final(pack_pointer, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    if (plan->differs && !plan->operations->adds_in_any_order())
        misused("an engine runs that says that its runs differ");
    const std::shared_ptr<job> work = job_of(plan, pack);
    if (is("no run"))
        return EXECUTION_FAILED;
    runs++;
    return launch_kernel(handle->stream, "cudnnBackendExecute", {__FILE__, __LINE__}, 1, 1, 0,
                         run_job, work) == cudaSuccess
               ? 0
               : EXECUTION_FAILED;
}

bool emulation_has_cudnn(void)
{
    return !is("absent");
}

bool emulation_cudnn_is_half(void)
{
    return is("half");
}

const struct emulated_function emulated_cudnn[] = {
    EMULATED(cudnnGetVersion),
    EMULATED(cudnnGetCudartVersion),
    EMULATED(cudnnGetErrorString),
    EMULATED(cudnnGetLastErrorString),
    EMULATED(cudnnCreate),
    EMULATED(cudnnDestroy),
    EMULATED(cudnnSetStream),
    EMULATED(cudnnBackendCreateDescriptor),
    EMULATED(cudnnBackendDestroyDescriptor),
    EMULATED(cudnnBackendSetAttribute),
    EMULATED(cudnnBackendGetAttribute),
    EMULATED(cudnnBackendFinalize),
    EMULATED(cudnnBackendExecute),
    {nullptr, nullptr},
};

} // extern "C"
