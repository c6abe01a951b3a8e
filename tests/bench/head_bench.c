/* The heads of language models: what the rows of a chunk cost, and the stride of the logits' rows.
 * `make bench-gpu` and `make first-gpu` show it.
 *   head_bench [DEVICE [THREADS [TFLOPS GBYTES]]]      DEVICE none: what is predicted, alone
 * Each row is the best of several rounds, of bf16. Logits whose V is no multiple of 64 are measured
 * at the stride of training (nn_logit_stride), and at V, which parts each row from 16 bytes. The
 * last column of a chunk's last line is what counts: the time of 1024 rows. */
#include "tests/bench/head.h"

#include "agent/nn/nn_loss.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

static const struct model {
    const char *name;
    int64_t D, V;
} models[] = {
    {"Llama-3.2-1B", 2048, 128256},
    {"GPT-2 124M", 768, 50257},
    {"BERT-base", 768, 30522},
    {"1.5B parameters", 1536, 151936},
};
static const int64_t chunk_rows[] = {1024, 4096, 8192};
static const char *const names[HEAD_OPS] = {[HEAD_FORWARD] = "logits",
                                            [HEAD_LOSS] = "cross_entropy",
                                            [HEAD_DATA] = "gradient of the input",
                                            [HEAD_WEIGHTS] = "gradient of the weights"};

/* With BENCH_TINY; as far from a multiple of 8 as V is. */
static struct model tiny(const struct model *m)
{
    return (struct model){m->name, 64, m->V / 4096 * 8 + m->V % 8};
}

static void allocate(struct head *h)
{
    auto_free int32_t *ids = xcalloc((size_t)h->rows, sizeof *ids);
    const double sums[3] = {0};
    for (int64_t i = 0; i < h->rows; i++)
        ids[i] = (int32_t)(i * 7919 % h->V);
    h->x = timing_random(h->timing, h->rows * h->D);
    h->dx = timing_random(h->timing, h->rows * h->D);
    h->w = timing_random(h->timing, h->V * h->D);
    h->logits = timing_random(h->timing, h->rows * h->stride);
    h->dw = timing_room(h->timing, (size_t)(h->V * h->D) * sizeof *h->dw);
    h->timing->ops->uniform(h->timing->s, h->dw, h->V * h->D, 1, 0, -1, 1);
    h->sums = timing_copy(h->timing, sums, sizeof sums);
    h->ids = timing_copy(h->timing, ids, (size_t)h->rows * sizeof *ids);
}

static void release(struct head *h)
{
    void *all[] = {h->x, h->dx, h->w, h->logits, h->dw, h->sums, h->ids};
    for (size_t i = 0; i < array_length(all); i++)
        device_free(h->timing->device, all[i]);
}

struct call {
    const struct head *head;
    enum head_op op;
};

static void run_call(void *ctx)
{
    const struct call *call = ctx;
    head_run(call->head, call->op);
}

static void run(struct head *h, const char *name)
{
    const bool measures = timing_measures(h->timing);
    double sum_ms = 0, sum_predicted_ms = 0;
    printf("%s: %lld rows, V %lld at a stride of %lld, D %lld\n", name, (long long)h->rows,
           (long long)h->V, (long long)h->stride, (long long)h->D);
    if (measures)
        allocate(h);
    for (enum head_op op = 0; op < HEAD_OPS; op++) {
        struct call call = {h, op};
        double predicted_ms = head_predicted_ms(h, op);
        printf("  %-24s", names[op]);
        if (measures) {
            const struct work work = head_work(h, op);
            double ms = timing_ms(h->timing, run_call, &call);
            printf(" %9.3f ms", ms);
            timing_print_rate(h->timing, &work, ms, predicted_ms);
            sum_ms += ms;
        } else
            printf(" predicted %9.4f ms", predicted_ms);
        printf("\n");
        sum_predicted_ms += predicted_ms;
    }
    const double per = 1024.0 / (double)h->rows;
    printf("  %-24s", "all, of 1024 rows");
    if (measures)
        printf(" %9.3f ms", sum_ms * per);
    if (h->timing->predicted)
        printf("%s predicted %9.4f ms", measures ? "," : "", sum_predicted_ms * per);
    printf("\n");
    fflush(stdout); /* what ends the program later does not take it along */
    if (measures)
        release(h);
}

int main(int argc, char **argv)
{
    struct timing timing;
    timing_open_or_predict(&timing, "head_bench", argc, argv);
    for (size_t i = 0; i < array_length(models); i++) {
        const struct model m = timing_is_tiny() ? tiny(&models[i]) : models[i];
        for (size_t j = 0; j < array_length(chunk_rows); j++) {
            struct head h = {.timing = &timing, .t = DTYPE_BF16, .D = m.D, .V = m.V};
            h.rows = timing_is_tiny() ? chunk_rows[j] / 256 : chunk_rows[j];
            h.stride = nn_logit_stride(m.V, false);
            run(&h, m.name);
            h.stride = m.V;
            if (m.V % 8)
                run(&h, m.name);
        }
    }
    timing_close(&timing);
    return 0;
}
