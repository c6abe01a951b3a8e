#include "tests/kernels/cudnn_world.h"

#include "base/contract.h"
#include "tests/support.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct world *cudnn_world_open(const char *attention, const char *emulation)
{
    void *world;
    if (attention)
        setenv(ENV_ATTENTION, attention, 1);
    if (emulation)
        setenv("SHOAL_EMULATION", emulation, 1);
    assert_int_equal(world_setup(&world), 0);
    return world;
}

void cudnn_world_close(struct world *world)
{
    void *state = world;
    world_teardown(&state);
    unsetenv(ENV_ATTENTION);
    unsetenv("SHOAL_EMULATION");
}

int64_t cudnn_world_runs(void)
{
    if (!support_is_emulated())
        return -1;
    void *library = dlopen(getenv("SHOAL_CUDA_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    int64_t (*count)(void);
    *(void **)&count = dlsym(library, "emulation_cudnn_runs");
    assert_non_null(count);
    int64_t result = count();
    dlclose(library);
    return result;
}

const struct attention_row cudnn_world_rows[CUDNN_WORLD_ROWS] = {
    {"groups of four, strides of their own",
     {.B = 2,
      .T_q = 5,
      .T_k = 19,
      .heads = 4,
      .kv_heads = 1,
      .hd = 64,
      .q_stride = 264,
      .k_stride = 72,
      .v_stride = 64,
      .scale = 0.2f},
     1,
     false,
     {0}},
    {"128 wide, one head, two sequences",
     {.B = 2,
      .T_q = 17,
      .T_k = 17,
      .heads = 1,
      .kv_heads = 1,
      .hd = 128,
      .q_stride = 384,
      .k_stride = 384,
      .v_stride = 384,
      .causal = true,
      .scale = 0.09f},
     1,
     false,
     {0}},
};

void cudnn_world_check(struct world *world, const struct attention_row *row, bool with_cudnn)
{
    int64_t before = cudnn_world_runs(), counted = device_library_attentions(world->device);
    check_attention(world, row);
    assert_int_equal(device_library_attentions(world->device) - counted, with_cudnn ? 4 : 0);
    if (before >= 0)
        assert_int_equal(cudnn_world_runs() - before, with_cudnn ? 4 : 0);
}

void cudnn_world_told_once(const char *text, const char *line)
{
    const char *first = strstr(text, line);
    if (!first || strstr(first + 1, line))
        fail_msg("not told once: %s\nbut: %s", line, text);
}
