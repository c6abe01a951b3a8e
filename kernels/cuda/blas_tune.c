/* cuBLASLt's algorithms for a product, timed where it is first asked for (runtime.tune). */
#include "kernels/cuda/blas_internal.h"
#include "kernels/cuda/candidates.h"
#include "kernels/cuda/stream.h"

enum { TIMED_RUNS = 3 }; /* of each algorithm, after one that loads its kernels */

/* Two events around a run. */
struct stopwatch {
    cudaEvent_t begin, end;
};

static cudaError_t stopwatch_open(struct stopwatch *watch)
{
    cudaError_t status = cudaEventCreateWithFlags(&watch->begin, cudaEventDefault);
    return status == cudaSuccess ? cudaEventCreateWithFlags(&watch->end, cudaEventDefault) : status;
}

static void stopwatch_close(struct stopwatch *watch)
{
    if (watch->begin)
        cudaEventDestroy(watch->begin);
    if (watch->end)
        cudaEventDestroy(watch->end);
}

struct tuning {
    const struct blas *blas;
    const struct blas_plan *plan;
    const struct blas_operands *operands;
    void *workspace; /* large enough for each of them */
    cudaStream_t handle;
    struct stopwatch watch;
};

/* *ret_ns: of one run. *ret_starts: false if cuBLASLt refuses the algorithm. */
static cudaError_t run(const struct tuning *t, const cublasLtMatmulHeuristicResult_t *algorithm,
                       int64_t *ret_ns, bool *ret_starts)
{
    float ms = 0;
    cudaError_t status = cudaEventRecord(t->watch.begin, t->handle);
    if (status == cudaSuccess)
        *ret_starts = blas_start(t->blas, t->plan, algorithm, t->operands, t->workspace,
                                 t->handle) == CUBLAS_STATUS_SUCCESS;
    if (status == cudaSuccess && !*ret_starts) {
        cudaGetLastError(); /* no other algorithm's error */
        return cudaSuccess;
    }
    if (status == cudaSuccess)
        status = cudaEventRecord(t->watch.end, t->handle);
    if (status == cudaSuccess)
        status = cudaEventSynchronize(t->watch.end);
    if (status == cudaSuccess)
        status = cudaEventElapsedTime(&ms, t->watch.begin, t->watch.end);
    *ret_ns = (int64_t)((double)ms * 1e6 + 0.5);
    return status;
}

static cudaError_t measure(const struct tuning *t, const cublasLtMatmulHeuristicResult_t *algorithm,
                           struct candidate *ret)
{
    *ret = (struct candidate){.ran = true, .ns = INT64_MAX};
    cudaError_t status = cudaSuccess;
    for (int i = 0; i <= TIMED_RUNS && ret->ran && status == cudaSuccess; i++) {
        int64_t ns = 0;
        status = run(t, algorithm, &ns, &ret->ran);
        if (i > 0 && ns < ret->ns)
            ret->ns = ns;
    }
    return status;
}

/* The workspace of the one that needs most; at least 1. */
static size_t most_workspace(const cublasLtMatmulHeuristicResult_t *found, int count)
{
    size_t most = 1;
    for (int i = 0; i < count; i++)
        most = found[i].workspaceSize > most ? found[i].workspaceSize : most;
    return most;
}

/* The same product, measured, but that it overwrites its result. NULL: there is none. */
static const struct blas_plan *overwriting(const struct blas *blas, const struct blas_plan *plan)
{
    struct blas_plan want = *plan;
    want.matmul.accumulate = false;
    for (int i = 0; i < BLAS_PLANS; i++) {
        const struct blas_plan *other = &blas->plans[i];
        if (other->is_tuned && blas_plan_is_for(other, &want))
            return other;
    }
    return NULL;
}

static void count(struct product_tuning *sum, const struct blas_plan *plan,
                  const struct candidate *all, int candidates, int fastest)
{
    const struct matmul *p = &plan->matmul;
    int failed = 0;
    for (int i = 0; i < candidates; i++)
        failed += !all[i].ran;
    sum->products++;
    sum->candidates += candidates;
    sum->failed += failed;
    sum->changed += fastest != 0;
    /* the first may be among those that failed */
    const int64_t first_ns = all[0].ran ? all[0].ns : all[fastest].ns;
    sum->first_ns += first_ns;
    sum->fastest_ns += all[fastest].ns;
    log_debug("cuBLASLt: %s product, m %lld, n %lld, k %lld: algorithm %d of %d takes %.1f us, the "
              "heuristic's first %.1f us (%d failed)",
              blas_input_name(plan), (long long)p->m, (long long)p->n, (long long)p->k, fastest + 1,
              candidates, (double)all[fastest].ns / 1e3, (double)first_ns / 1e3, failed);
}

cublasLtMatmulHeuristicResult_t blas_tune(struct stream *s, struct blas_plan *plan,
                                          const cublasLtMatmulHeuristicResult_t *found, int n,
                                          const struct blas_operands *o)
{
    struct product_tuning *sum = &s->device->tuning;
    struct candidate all[BLAS_CANDIDATES];
    if (plan->matmul.accumulate) {
        const struct blas_plan *other = overwriting(cuda_blas(s), plan);
        sum->untimed += !other;
        return other ? other->algorithm : found[0];
    }
    struct tuning t = {.blas = cuda_blas(s), .plan = plan, .operands = o};
    t.workspace = cuda_scratch(s, most_workspace(found, n));
    if (!t.workspace)
        return found[0];
    t.handle = cuda_uncaptured(s);
    cudaError_t status = stopwatch_open(&t.watch);
    for (int i = 0; i < n && status == cudaSuccess; i++)
        status = measure(&t, &found[i], &all[i]);
    stopwatch_close(&t.watch);
    cuda_check(s, status, "time cuBLASLt's algorithms");
    int fastest = status == cudaSuccess ? candidate_fastest(all, n) : -1;
    if (fastest < 0)
        return found[0]; /* the product's own run tells why */
    plan->is_tuned = plan->has_run = true;
    count(sum, plan, all, n, fastest);
    return found[fastest];
}
