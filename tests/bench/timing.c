#include "tests/bench/timing.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, MOST_RUNS = 100, ROUND_US = 2000 };

static void end(const struct timing *t, const struct error *err)
{
    fprintf(stderr, "%s: %s\n", t->program, err->msg);
    exit(1);
}

void timing_open(struct timing *ret_timing, const char *program, int argc, char **argv)
{
    struct timing t = {.program = program};
    struct error err;
    int64_t threads = 1;
    if ((argc > 2 && !str_to_i64(argv[2], 1, 64, &threads)) || argc == 4 || argc > 5) {
        fprintf(stderr, "usage: %s [DEVICE [THREADS [TFLOPS GBYTES]]]\n", program);
        exit(2);
    }
    if (argc == 5) {
        t.tflops = atof(argv[3]);
        t.gbytes = atof(argv[4]);
    }
    if (device_open(argc > 1 ? argv[1] : "cpu", (int)threads, &t.device, &err) < 0 ||
        stream_open(t.device, "bench", &t.s, &err) < 0)
        end(&t, &err);
    t.ops = device_ops(t.device);
    t.predicted = predicted_device(program);
    *ret_timing = t;
}

void timing_open_or_predict(struct timing *ret_timing, const char *program, int argc, char **argv)
{
    if (argc != 2 || strcmp(argv[1], "none") != 0) {
        timing_open(ret_timing, program, argc, argv);
        return;
    }
    *ret_timing = (struct timing){.program = program, .predicted = predicted_device(program)};
    if (!ret_timing->predicted) {
        fprintf(stderr, "%s: without a device PREDICT_FOR is to name a GPU\n", program);
        exit(2);
    }
}

void timing_close(struct timing *t)
{
    stream_close(t->s);
    device_close(t->device);
}

bool timing_measures(const struct timing *t)
{
    return t->device != NULL;
}

bool timing_is_tiny(void)
{
    return getenv("BENCH_TINY") != NULL;
}

void *timing_room(struct timing *t, size_t bytes)
{
    void *memory;
    struct error err;
    if (device_alloc(t->device, MEMORY_ACTIVATION, bytes, "bench", &memory, &err) < 0)
        end(t, &err);
    return memory;
}

void *timing_copy(struct timing *t, const void *from, size_t bytes)
{
    void *memory = timing_room(t, bytes);
    struct error err;
    stream_copy(t->s, memory, from, bytes);
    if (stream_sync(t->s, &err) < 0)
        end(t, &err);
    return memory;
}

bf16 *timing_random(struct timing *t, int64_t count)
{
    float *exact = timing_room(t, (size_t)count * sizeof *exact);
    bf16 *rounded = timing_room(t, (size_t)count * sizeof *rounded);
    t->ops->uniform(t->s, exact, count, 1, 0, -1, 1);
    t->ops->cast(t->s, DTYPE_BF16, rounded, DTYPE_F32, exact, count);
    device_free(t->device, exact);
    return rounded;
}

/* Microseconds of so many runs, by the device's clock. */
static int64_t round_us(struct timing *t, void (*run)(void *ctx), void *ctx, int runs)
{
    int64_t start_ns = 0, end_ns = 0;
    struct error err;
    stream_timestamp(t->s, &start_ns);
    for (int i = 0; i < runs; i++)
        run(ctx);
    stream_timestamp(t->s, &end_ns);
    if (stream_sync(t->s, &err) < 0)
        end(t, &err);
    return (end_ns - start_ns) / 1000;
}

double timing_ms(struct timing *t, void (*run)(void *ctx), void *ctx)
{
    int64_t once_us, best_us = INT64_MAX;
    round_us(t, run, ctx, 1); /* kernels are loaded and plans made at the first call */
    once_us = round_us(t, run, ctx, 1);
    once_us = once_us < 1 ? 1 : once_us;
    int runs = once_us >= ROUND_US ? 1 : (int)(ROUND_US / once_us);
    runs = runs > MOST_RUNS ? MOST_RUNS : runs;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t us = round_us(t, run, ctx, runs);
        best_us = us < best_us ? us : best_us;
    }
    return (double)best_us / runs / 1e3;
}

void timing_print_rate(const struct timing *t, const struct work *work, double ms,
                       double predicted_ms)
{
    if (work->flops > 0)
        printf(" %8.2f TFLOP/s", work->flops / ms / 1e9);
    else
        printf(" %8.1f GB/s   ", work->bytes / ms / 1e6);
    if (t->tflops > 0 && t->gbytes > 0)
        printf(" %4.0f %% of the possible",
               100 * fmax(work->flops / t->tflops / 1e9, work->bytes / t->gbytes / 1e6) / ms);
    if (predicted_ms > 0)
        printf(", predicted %9.4f ms: %.2f x", predicted_ms, predicted_ms / ms);
}
