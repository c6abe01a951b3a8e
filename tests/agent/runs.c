#include "tests/agent/runs.h"

#include "tests/agent/config_line.h"

#include "base/clock.h"
#include "tests/agent/comm_local.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 28 };

/* ---- a data set of its own ---- */

static void put_u32(FILE *file, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(value >> shift & 0xff), file);
}

/* Images whose bright quarter depends on the label, with noise. */
static void write_split(const char *directory, const char *name, int rows)
{
    auto_free char *images = xasprintf("%s/%s-images-idx3-ubyte", directory, name);
    auto_free char *labels = xasprintf("%s/%s-labels-idx1-ubyte", directory, name);
    FILE *file = fopen(images, "we");
    put_u32(file, 0x803);
    put_u32(file, (uint32_t)rows);
    put_u32(file, SIDE);
    put_u32(file, SIDE);
    for (int i = 0; i < rows * SIDE * SIDE; i++) {
        int label = i / (SIDE * SIDE) % 4, y = i / SIDE % SIDE, x = i % SIDE;
        bool bright = label == (y >= SIDE / 2) * 2 + (x >= SIDE / 2);
        fputc((bright ? 160 : 20) + i * 7919 % 61, file);
    }
    fclose(file);
    file = fopen(labels, "we");
    put_u32(file, 0x801);
    put_u32(file, (uint32_t)rows);
    for (int i = 0; i < rows; i++)
        fputc(i % 4, file);
    fclose(file);
}

int runs_make_images(void **state)
{
    char *directory = support_temp_dir();
    write_split(directory, "train", RUNS_TRAIN_ROWS);
    write_split(directory, "t10k", RUNS_TEST_ROWS);
    *state = directory;
    return 0;
}

/* llm.c's format: ids that follow each other in a pattern with some noise. */
static void write_tokens(const char *path, int count)
{
    int32_t header[256] = {20240520, 1, count};
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fwrite(header, sizeof header, 1, file);
    for (int i = 0; i < count; i++) {
        uint16_t id = (uint16_t)(i % 11 == 10 ? i * 7919 % 61 : (i % 13) * 3);
        fwrite(&id, sizeof id, 1, file);
    }
    fclose(file);
}

int runs_make_tokens(void **state)
{
    char *directory = support_temp_dir();
    auto_free char *train = xasprintf("%s/train.bin", directory);
    auto_free char *eval = xasprintf("%s/eval.bin", directory);
    write_tokens(train, RUNS_WINDOWS * 16 + 1);
    write_tokens(eval, 7 * 16 + 1);
    *state = directory;
    return 0;
}

int runs_make_rows(void **state)
{
    char *directory = support_temp_dir();
    auto_str struct str rows;
    str_init(&rows, 1 << 16);
    for (int i = 0; i < 5; i++)
        str_printf(&rows, "{\"text\":\"row number %d of the data%s\",\"summary\":\"number %d\"}\n",
                   i, i % 3 ? " is longer than others" : "", i);
    free(texts_write(directory, "rows/train.jsonl", str_text(&rows), rows.length));
    *state = directory;
    return 0;
}

int runs_remove(void **state)
{
    support_remove_tree(*state);
    free(*state);
    return 0;
}

/* ---- a run: ranks as threads ---- */

/* How often the emulated GPU was asked for memory, or given some back; 0: it is another device. */
static long memory_calls(void)
{
    const char *path = getenv("SHOAL_CUDA_LIBRARY");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    long (*count)(void) = NULL;
    if (!library)
        return 0;
    *(void **)&count = dlsym(library, "emulation_memory_calls");
    long calls = count ? count() : 0;
    dlclose(library);
    return calls;
}

/* Each rank has its thread. */
static _Thread_local struct {
    const struct memory_bound *memory_left;
    int64_t step_us, now_us;
    struct comm *world;
} told;

static int64_t told_now_us(void)
{
    return ++told.now_us;
}

static void told_memory_left(struct memory_bound ret_bounds[MEMORY_BOUNDS])
{
    memcpy(ret_bounds, told.memory_left, MEMORY_BOUNDS * sizeof ret_bounds[0]);
}

static void on_step(void *ctx, const struct run_numbers *step)
{
    struct seen *seen = ctx;
    told.now_us += told.step_us;
    assert_in_range(step->step, 1, RUNS_MAX_STEPS);
    seen->loss[step->step - 1] = step->loss;
    seen->norm[step->step - 1] = step->grad_norm;
    seen->fresh_blocks[step->step - 1] = step->memory.fresh_blocks;
    seen->all_reduces[step->step - 1] = step->traffic.calls[COMM_ALL_REDUCE];
    seen->memory_calls[step->step - 1] = memory_calls();
    seen->last_step = (int)step->step;
    seen->nonfinite_steps = step->nonfinite_steps;
    seen->skipped_steps = step->skipped_steps;
    seen->steps++;
    seen->epoch = step->epoch;
    if (seen->die_after_step > 0 && step->step == seen->die_after_step)
        told.world->fn->abort(told.world, "this rank is killed");
}

static int on_began(void *ctx, const struct trainer_facts *facts, struct error *err)
{
    (void)err;
    ((struct seen *)ctx)->facts = *facts;
    return 0;
}

static void on_event(void *ctx, enum run_event event, const char *path, int64_t epoch)
{
    (void)path, (void)epoch;
    ((struct seen *)ctx)->events |= 1U << event;
}

static void on_test_begins(void *ctx)
{
    struct seen *seen = ctx;
    seen->is_asked_to_stop = seen->stops_in_evaluation;
}

static void on_save_begins(void *ctx, const struct trainer_save *save)
{
    (void)ctx;
    assert_int_equal(save->bytes, 0);
}

static void on_save_in_background(void *ctx)
{
    (void)ctx;
}

static void on_epoch(void *ctx, const struct trainer_score *score)
{
    ((struct seen *)ctx)->epoch_loss = score->loss_sum / score->samples;
}

static void on_test(void *ctx, const struct trainer_score *score)
{
    ((struct seen *)ctx)->tests++;
    ((struct seen *)ctx)->test_loss = score->loss_sum / score->samples;
    ((struct seen *)ctx)->test_samples = score->samples;
    if (score->step > 0 && score->step <= RUNS_MAX_STEPS)
        ((struct seen *)ctx)->score[score->step - 1] = score->loss;
}

static void on_saved(void *ctx, const struct trainer_save *save)
{
    struct seen *seen = ctx;
    assert_true(save->bytes > 0);
    seen->saves++;
    if (seen->after_save)
        seen->after_save(seen, save->step);
}

static void on_save_failed(void *ctx, int64_t step, const char *why)
{
    (void)step;
    struct seen *seen = ctx;
    snprintf(seen->save_failed, sizeof seen->save_failed, "%s", why);
}

static void on_resumed(void *ctx, const char *path, int64_t step, int64_t lost)
{
    struct seen *seen = ctx;
    seen->resumed_step = (int)step;
    seen->from_memory = strncmp(path, TRAINER_MEMORY, strlen(TRAINER_MEMORY)) == 0;
    seen->steps_lost = (int)lost;
}

static void on_began_anew(void *ctx, const char *dir)
{
    (void)dir;
    ((struct seen *)ctx)->began_anew++;
}

static void on_weights(void *ctx, const char *path, const char *notes)
{
    (void)ctx, (void)path;
    assert_string_equal(notes, "");
}

static void on_skipped(void *ctx, const char *why)
{
    struct seen *seen = ctx;
    if (!seen->may_skip)
        fail_msg("a checkpoint was passed over: %s", why);
    snprintf(seen->skipped, sizeof seen->skipped, "%s", why);
}

static void on_differs(void *ctx, const char *what)
{
    struct seen *seen = ctx;
    snprintf(seen->differs, sizeof seen->differs, "%s", what);
}

static void on_info(void *ctx, const char *what)
{
    struct seen *seen = ctx;
    snprintf(seen->info, sizeof seen->info, "%s", what);
}

static void on_notice(void *ctx, const char *what)
{
    struct seen *seen = ctx;
    snprintf(seen->notice, sizeof seen->notice, "%s", what);
    if (strstr(what, "in a row"))
        snprintf(seen->fatal, sizeof seen->fatal, "%s", what);
    if (!strncmp(what, "parallel.reduction_slots=", strlen("parallel.reduction_slots=")))
        snprintf(seen->slots, sizeof seen->slots, "%s", what);
}

static bool stop_requested(void *ctx)
{
    const struct seen *seen = ctx;
    return seen->is_asked_to_stop ||
           (seen->stop_at_step > 0 && seen->last_step >= seen->stop_at_step);
}

static int run_rank(struct run *run, int rank, struct comm *world, struct error *err)
{
    struct seen *seen = &run->seen[rank];
    const struct trainer_listener listener = {
        .ctx = seen,
        .began = on_began,
        .event = on_event,
        .test_begins = on_test_begins,
        .save_begins = on_save_begins,
        .save_in_background = on_save_in_background,
        .step = on_step,
        .epoch = on_epoch,
        .test = on_test,
        .saved = on_saved,
        .save_failed = on_save_failed,
        .resumed = on_resumed,
        .began_anew = on_began_anew,
        .weights = on_weights,
        .skipped = on_skipped,
        .differs = on_differs,
        .info = on_info,
        .notice = on_notice,
        .stop_requested = stop_requested,
    };
    int local = run->local_sizes[rank];
    const struct memory_bound *left = run->memory_left[rank];
    bool is_told = left[MEMORY_OF_MACHINE].left > 0;
    told.memory_left = left;
    told.world = world;
    told.step_us = run->step_us;
    told.now_us = 0;
    struct activity activity;
    struct rank_report report;
    activity_init(&activity);
    const struct rank_env env = {.world = world,
                                 .activity = &activity,
                                 .memory_fd = run->memory_fds[rank],
                                 .now_us = run->step_us ? told_now_us : clock_monotonic_us,
                                 .memory_left = is_told ? told_memory_left : memory_bounds,
                                 .local_size = local ? local : run->size,
                                 .node = run->nodes[rank],
                                 .local_rank = run->over_nccl ? rank : 0,
                                 .store = run->over_nccl ? comm_local_store(run->group) : NULL,
                                 .threads = 1,
                                 .min_ranks = run->min_ranks,
                                 .slots = run->slots,
                                 .restarted = run->restarted,
                                 .run = run->name,
                                 .agent_config = "seed: 1\n"};
    struct doomed *doomed = NULL;
    if (run->dooms[rank].nth > 0)
        doomed = doom_put(world, &activity, &run->dooms[rank]);
    struct trainer *trainer = NULL;
    int result = trainer_open(run->config, &env, &listener, &trainer, err);
    if (result == 0)
        result = trainer_run(trainer, err);
    if (result == 0 && run->config->checkpoint.save_model[0])
        result = trainer_save_model(trainer, run->config->checkpoint.save_model, err);
    if (trainer)
        trainer_memory_use(trainer, &seen->memory);
    trainer_close(trainer);
    seen->has_died = doomed && doom_lift(doomed);
    activity_read(&activity, &report);
    seen->phases = report.passed;
    activity_destroy(&activity);
    return result;
}

struct rank_start {
    struct run *run;
    int rank;
};

static bool is_doomed(const struct run *run, int rank)
{
    return run->dooms[rank].nth > 0 || run->seen[rank].die_after_step > 0;
}

static void *rank_main(void *argument)
{
    const struct rank_start *start = argument;
    struct run *run = start->run;
    struct comm *world = NULL;
    struct error *err = &run->err[start->rank];
    int *result = &run->result[start->rank];
    *result = comm_local_join(run->group, start->rank, run->size, SUPPORT_PATIENCE_MS, &world, err);
    if (*result == 0)
        *result = run_rank(run, start->rank, world, err);
    if (*result && is_doomed(run, start->rank) && atomic_fetch_sub(&run->doomed, 1) == 1)
        store_mark_lost(comm_local_store(run->group), "a rank is killed");
    comm_close(world);
    return NULL;
}

void runs_start(struct run *run)
{
    pthread_t threads[RUNS_MAX_RANKS];
    struct rank_start starts[RUNS_MAX_RANKS];
    run->group = comm_local_open();
    atomic_init(&run->doomed, 0);
    for (int rank = 0; rank < run->size; rank++)
        run->doomed += is_doomed(run, rank);
    for (int rank = 0; rank < run->size; rank++) {
        starts[rank] = (struct rank_start){run, rank};
        assert_int_equal(pthread_create(&threads[rank], NULL, rank_main, &starts[rank]), 0);
    }
    for (int rank = 0; rank < run->size; rank++)
        pthread_join(threads[rank], NULL);
    comm_local_close(run->group);
}

static void parse(struct config *config, struct arena *arena, const char *line)
{
    struct error err;
    assert_ok(config_line_parse(arena, line, "", config, &err), &err);
}

void runs_configure(struct config *config, struct arena *arena, const char *data, int size,
                    const char *flags)
{
    parse(config, arena,
          arena_printf(arena,
                       "--data.root=%s --batch_size=%d --eval_batch_size=5 --optim=sgd --lr=0.05 "
                       "--momentum=0.9 --dropout=0 --epochs=2 --min_num_params=20000 %s",
                       data, 12 / size, flags));
}

void runs_configure_language(struct config *config, struct arena *arena, const char *data, int size,
                             const char *flags)
{
    bool is_other = strstr(flags, "--model.type=") != NULL; /* which may have no positions */
    bool has_groups = !strstr(flags, "--model.type=gpt2");
    parse(config, arena,
          arena_printf(arena,
                       "--model.type=llama --hidden_size=32 --num_hidden_layers=3 "
                       "--num_attention_heads=4 %s --intermediate_size=48 "
                       "--vocab_size=64 %s --dataset=%s/train.bin "
                       "--eval_strategy=no --batch_size=%d --lr=0.01 --grad_clip=1 --epochs=2 "
                       "--mixed_precision=no --schedule.type=cosine --warmup_steps=2 %s",
                       has_groups ? "--num_key_value_heads=2" : "",
                       is_other ? "" : "--max_position_embeddings=16", data, 12 / size, flags));
}

static void run_checked(struct run *run, const struct config *config, int size)
{
    run->config = &config->value;
    run->size = size;
    runs_start(run);
    for (int rank = 0; rank < size; rank++)
        assert_ok(run->result[rank], &run->err[rank]);
}

void runs_do(struct run *run, struct arena *arena, const char *data, int size, const char *flags)
{
    struct config *config = arena_new(arena, struct config);
    runs_configure(config, arena, data, size, flags);
    run_checked(run, config, size);
}

void runs_do_language(struct run *run, struct arena *arena, const char *data, int size,
                      const char *flags)
{
    struct config *config = arena_new(arena, struct config);
    runs_configure_language(config, arena, data, size, flags);
    run_checked(run, config, size);
}

void runs_do_case(const struct runs_case *c, struct run *run, struct arena *arena, const char *data,
                  const char *more)
{
    const char *rows = c->rows ? arena_printf(arena, "--dataset=%s/%s", data, c->rows) : "";
    const char *flags = arena_printf(arena, "%s %s --device=%s%s %s", c->flags, rows,
                                     support_device(), c->size > 1 ? ":0" : "", more);
    c->train(run, arena, data, c->size, flags);
}

double runs_step_loss(const struct run *run, int step)
{
    double sum = 0;
    for (int rank = 0; rank < run->size; rank++)
        sum += run->seen[rank].loss[step];
    return sum / run->size;
}
