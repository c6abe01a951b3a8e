/* Checkpoints in memory that are copied beside the training: each has the values of its step, in
 * whatever order the device does what no event orders, and a run goes on from them with the bits of
 * the calm run. */
#include "agent/launch/rank_memory.h"
#include "agent/shard/wrap.h"
#include "agent/trainer/memory_copy.h"
#include "base/file.h"
#include "tests/agent/run_memory.h"
#include "tests/agent/runs.h"
#include "tests/support.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD "SHOAL_TEST_MEMORY_COPY"
#define SHORT "short of memory:"

/* Of a process of its own, since the emulated GPU reads its settings once: its exit status. what: a
 * directory for a run's bits, SHORT and a directory, or "": the copies. */
static int in_a_process(const char *what, const char *settings)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        setenv("SHOAL_EMULATION", settings, 1);
        setenv(CHILD, what, 1);
        execl("/proc/self/exe", "test_memory_copy", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- copies between updates ---- */

enum { SIZE = 5 << 20 /* floats: more than is staged at once */, UPDATES = 3 };

struct fixture {
    struct arena *arena;
    struct device *device;
    struct stream *stream;
    struct comm *comm;
    struct shard *shard;
    struct optim *optim;
    struct memory_copy copy;
    char *memory;  /* where copies go: of each update one */
    float *values; /* what an update writes: [UPDATES, SIZE] */
};

static void open_fixture(struct fixture *f)
{
    const struct shard_config config = {.strategy = FULL_SHARD};
    const struct optim_config sgd = optim_defaults(&optim_sgd);
    const size_t bytes = UPDATES * SIZE * sizeof(float);
    void *values;
    struct error err;
    *f = (struct fixture){.arena = arena_open()};
    struct module *root = module_new(f->arena, "", "Net", NULL);
    module_add_param(f->arena, root, "w", 0, 1, (int64_t[]){SIZE},
                     (struct param_init){INIT_UNIFORM, 0, 0});
    wrap_none(root);
    assert_ok(device_open(support_device(), 1, &f->device, &err), &err);
    assert_ok(stream_open(f->device, "compute", &f->stream, &err), &err);
    assert_ok(comm_self_open(&f->comm, &err), &err);
    assert_ok(shard_open(&config, f->stream, f->device, f->comm, root, &f->shard, &err), &err);
    assert_ok(optim_open(&sgd, f->shard, &f->optim, &err), &err);
    f->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(f->memory, MAP_FAILED);
    assert_ok(memory_copy_open(&f->copy, f->shard, f->memory, bytes, &err), &err);
    const char *settings = getenv("SHOAL_EMULATION");
    assert_int_equal(f->copy.locked != NULL, !(settings && strstr(settings, "registers=0")));
    assert_ok(device_host_alloc(f->device, bytes, "values", &values, &err), &err);
    f->values = values;
    for (int64_t i = 0; i < (int64_t)UPDATES * SIZE; i++)
        f->values[i] = (float)i;
}

static void close_fixture(struct fixture *f)
{
    memory_copy_close(&f->copy);
    munmap(f->memory, UPDATES * SIZE * sizeof(float));
    device_host_free(f->device, f->values);
    optim_close(f->optim);
    shard_close(f->shard);
    comm_close(f->comm);
    stream_close(f->stream);
    device_close(f->device);
    arena_close(f->arena);
}

/* Nothing is waited for until all is queued. */
static bool each_copy_is_of_its_update(void)
{
    struct fixture f;
    struct error err;
    bool same = true;
    open_fixture(&f);
    for (int update = 0; update < UPDATES; update++) {
        struct host_state host;
        const int64_t at = (int64_t)update * SIZE;
        memory_copy_before_update(&f.copy);
        shard_write(f.shard, shard_get_unit(f.shard, 0)->value, f.values + at, SIZE);
        host_state_open(f.shard, f.optim, f.memory + (size_t)at * sizeof(float), &host);
        memory_copy_queue(&f.copy, &host);
        host_state_close(&host);
    }
    memory_copy_before_update(&f.copy);
    assert_ok(shard_sync(f.shard, &err), &err);
    assert_ok(stream_sync(f.copy.stream, &err), &err);
    assert_true(memory_copy_delay_us(&f.copy) >= 0);
    same = memcmp(f.memory, f.values, UPDATES * SIZE * sizeof(float)) == 0;
    close_fixture(&f);
    return same;
}

static void copies_wait_and_are_waited_for(void **state)
{
    (void)state;
    enum { SEEDS = 8 };
    static const char *const waits[] = {"snapshot<-compute", "compute<-snapshot"};
    assert_true(each_copy_is_of_its_update());
    if (!support_is_emulated())
        return;
    auto_arena struct arena *arena = arena_open();
    assert_int_equal(in_a_process("", "seed=2"), 0);
    assert_int_equal(in_a_process("", "registers=0"), 0);
    for (size_t i = 0; i < array_length(waits); i++) {
        int seed = 1, status = 0;
        for (; seed <= SEEDS && status == 0; seed++)
            status = in_a_process("", arena_printf(arena, "seed=%d,skip_wait=%s", seed, waits[i]));
        if (status != 1)
            fail_msg("without %s: status %d after %d orders", waits[i], status, seed - 1);
    }
}

/* ---- a run ---- */

enum { RANKS = 2 };

static struct run *start(struct arena *arena, const char *data, const int fds[RANKS],
                         const char *model, int every, int die_after_step)
{
    struct config *config = arena_new(arena, struct config);
    struct run *run = arena_new(arena, struct run);
    const char *flags = arena_printf(
        arena,
        "--device=%s:0 --epochs=2 --num_hidden_layers=1 --sharding_strategy=FULL_SHARD "
        "--memory_buddies --cuda_graphs --save_model=%s --memory_every_steps=%d",
        support_device(), model, every);
    runs_configure_language(config, arena, data, RANKS, flags);
    *run = (struct run){.config = &config->value, .size = RANKS, .name = "uid-1"};
    for (int rank = 0; rank < RANKS; rank++) {
        run->memory_fds[rank] = fds[rank];
        run->local_sizes[rank] = 1;
        run->seen[rank].die_after_step = rank == 1 ? die_after_step : 0;
    }
    runs_start(run);
    return run;
}

/* A rank dies behind a step that it did after its snapshot, and its pod goes along. */
static bool goes_on_with_the_same_bits(const char *data)
{
    auto_arena struct arena *arena = arena_open();
    const char *models[2];
    char *bytes[2];
    size_t sizes[2];
    int fds[RANKS] = {0}, none[RANKS] = {0};
    struct error err;
    for (int n = 0; n < 2; n++)
        models[n] = arena_printf(arena, "%s/model-%d", data, n);
    const struct run *calm = start(arena, data, none, models[0], 0, 0);
    assert_ok(calm->result[0], &calm->err[0]);
    run_memory_open(fds, RANKS);
    const struct run *first = start(arena, data, fds, models[1], 2, 5);
    assert_int_not_equal(first->result[0], 0);
    assert_int_equal(ftruncate(fds[1], 0), 0);
    const struct run *second = start(arena, data, fds, models[1], 2, 0);
    run_memory_close(fds, RANKS);
    assert_ok(second->result[0], &second->err[0]);
    assert_true(second->seen[0].from_memory);
    assert_int_equal(second->seen[0].resumed_step, 4);
    for (int n = 0; n < 2; n++)
        assert_ok(file_read(arena_printf(arena, "%s/model.safetensors", models[n]), 16 << 20,
                            &bytes[n], &sizes[n], &err),
                  &err);
    bool same = sizes[0] == sizes[1] && memcmp(bytes[0], bytes[1], sizes[0]) == 0;
    free(bytes[0]), free(bytes[1]);
    return same;
}

static void the_bits_are_those_of_a_calm_run(void **state)
{
    if (strcmp(support_device(), "cpu") == 0)
        return;
    assert_true(goes_on_with_the_same_bits(*state));
    if (!support_is_emulated())
        return;
    assert_int_equal(in_a_process(*state, "seed=2,registers=0"), 0);
}

/* Without page-locked memory for copies a run goes on without checkpoints in memory, unless they
 * were asked for by number. */
static bool goes_on_without_staging(const char *data)
{
    auto_arena struct arena *arena = arena_open();
    const char *flags = arena_printf(arena, "%s/model-short --auto_wrap_policy=NO_WRAP", data);
    int fds[RANKS];
    run_memory_open(fds, RANKS);
    const struct run *run = start(arena, data, fds, flags, -1, 0);
    bool goes_on = run->result[0] == 0 && rank_memory_used(fds[0]) == 0 &&
                   strstr(run->seen[0].notice, "there will be no checkpoints in memory "
                                               "(checkpoint.memory_every_steps): rank 0: ");
    const struct run *asked = start(arena, data, fds, flags, 2, 0);
    bool is_refused = asked->result[0] != 0 && asked->err[0].code == ERR_MEMORY &&
                      strstr(asked->err[0].msg, "checkpoint.memory_every_steps (0 saves none): ");
    run_memory_close(fds, RANKS);
    if (!goes_on || !is_refused)
        fprintf(stderr, "%s; %s; %s\n", run->err[0].msg, run->seen[0].notice, asked->err[0].msg);
    return goes_on && is_refused;
}

static void a_refused_staging_is_told(void **state)
{
    if (!support_is_emulated())
        return;
    auto_arena struct arena *arena = arena_open();
    assert_int_equal(in_a_process(arena_printf(arena, SHORT "%s", (const char *)*state),
                                  "registers=0,locks_most=16777215"),
                     0);
}

/* What is no number is found behind the copy: no later snapshot is begun, and the run ends. */
static void no_numbers_end_the_run(void **state)
{
    if (strcmp(support_device(), "cpu") == 0)
        return;
    auto_arena struct arena *arena = arena_open();
    int fds[RANKS];
    run_memory_open(fds, RANKS);
    const char *flags = arena_printf(arena,
                                     "%s/model --optim=sgd --lr=1e6 --weight_decay=1000 "
                                     "--warmup_steps=0 --grad_clip=0 --epochs=7",
                                     (const char *)*state);
    const struct run *run = start(arena, *state, fds, flags, 1, 0);
    bool is_first = run->err[0].code == ERR_DIVERGED;
    assert_fails(run->result[!is_first], &run->err[!is_first], ERR_DIVERGED, ": tensor ");
    assert_non_null(strstr(run->err[!is_first].msg, "checkpoint in memory at step "));
    run_memory_close(fds, RANKS);
}

/* The last number of the embeddings, of an id that no data has and which one rank keeps, becomes so
 * large that an update with weight decay makes it infinite. */
static void spoil(const char *path)
{
    const float large = 1e37F;
    char *bytes;
    size_t size;
    uint64_t header_bytes;
    struct error err;
    assert_ok(file_read(path, 16 << 20, &bytes, &size, &err), &err);
    memcpy(&header_bytes, bytes, sizeof header_bytes);
    const char *at = strstr(bytes + sizeof header_bytes, "\"model.embed_tokens.weight\"");
    at = at ? strstr(at, "\"data_offsets\"") : NULL;
    at = at ? strchr(at, ',') : NULL;
    assert_non_null(at);
    const size_t end = sizeof header_bytes + header_bytes + strtoul(at + 1, NULL, 10);
    memcpy(bytes + end - sizeof large, &large, sizeof large);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, size, 1, file), 1);
    fclose(file);
    free(bytes);
}

/* The other one's part is without fault: it waits for that which is not sent, as the run comes to
 * its end. */
static void no_number_of_one_rank_ends_the_run(void **state)
{
    if (strcmp(support_device(), "cpu") == 0)
        return;
    auto_arena struct arena *arena = arena_open();
    const char *model = arena_printf(arena, "%s/model-of-one", (const char *)*state);
    int fds[RANKS] = {0};
    const struct run *calm = start(arena, *state, fds, model, 0, 0);
    assert_ok(calm->result[0], &calm->err[0]);
    spoil(arena_printf(arena, "%s/model.safetensors", model));
    run_memory_open(fds, RANKS);
    const char *flags = arena_printf(arena,
                                     "%s --init_weights=%s --optim=sgd --lr=1 --weight_decay=1000 "
                                     "--warmup_steps=0 --max_steps=1",
                                     model, model);
    const struct run *run = start(arena, *state, fds, flags, 1, 0);
    run_memory_close(fds, RANKS);
    for (int rank = 0; rank < RANKS; rank++)
        assert_fails(run->result[rank], &run->err[rank], ERR_DIVERGED, ": tensor ");
}

/* With an argument only the tests of that name (tests/emulation/test_barriers.sh). */
int main(int argc, char **argv)
{
    const char *what = getenv(CHILD);
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    if (what && strncmp(what, SHORT, strlen(SHORT)) == 0)
        return goes_on_without_staging(what + strlen(SHORT)) ? 0 : 1;
    if (what)
        return (what[0] ? goes_on_with_the_same_bits(what) : each_copy_is_of_its_update()) ? 0 : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_wait_and_are_waited_for),
        cmocka_unit_test_setup_teardown(the_bits_are_those_of_a_calm_run, runs_make_tokens,
                                        runs_remove),
        cmocka_unit_test_setup_teardown(a_refused_staging_is_told, runs_make_tokens, runs_remove),
        cmocka_unit_test_setup_teardown(no_numbers_end_the_run, runs_make_tokens, runs_remove),
        cmocka_unit_test_setup_teardown(no_number_of_one_rank_ends_the_run, runs_make_tokens,
                                        runs_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
