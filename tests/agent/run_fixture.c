#include "tests/agent/run_fixture.h"

struct run_facts run_fixture_facts(void)
{
    return (struct run_facts){
        .model = "llama3.2-1b",
        .strategy = "FULL_SHARD",
        .precision = "bf16",
        .preset = "hyperpod",
        .predicts_tokens = true,
        .device = "NVIDIA H100 80GB HBM3",
        .job = "llama",
        .run = "",
        .node = "llama-master-0",
        .pod_namespace = "",
        .world_size = 2,
        .parameters = 1235814400,
        .steps = 100,
        .epochs = 1,
        .flops_per_token = {1000, 1200},
        .peak_flops_per_s = 8192000,
    };
}

struct run_numbers run_fixture_numbers(int64_t step)
{
    return (struct run_numbers){
        .step = step,
        .epoch = (double)step / 100,
        .loss = 2.5,
        .grad_norm = 1.25,
        .lr = 1e-4,
        .next_lr = 0.0000126,
        .samples = 8,
        .tokens = 4096,
        .step_s = 0.5,
        .phase_s = {[PHASE_DATA] = 0.0625, [PHASE_FORWARD] = 0.25},
        .memory = {.current_total_bytes = 3 << 20,
                   .peak_total_bytes = 5LL << 30,
                   .peak_bytes = {[MEMORY_UNIT] = 1 << 20}},
        .nonfinite_steps = 2,
        .skipped_steps = 1,
        .traffic = {.calls = {[COMM_ALL_GATHER] = 34 * step}, .bytes_sent = 1000 * step},
    };
}

void run_fixture_state(struct run_state *state)
{
    const struct run_facts facts = run_fixture_facts();
    const struct run_eval eval = {
        .step = 3, .loss = 2.25, .perplexity = 9.5, .accuracy = 0.5, .seconds = 0.75};
    const struct run_save save = {.step = 3,
                                  .path = "checkpoints/llama_v3-3steps",
                                  .seconds = 2,
                                  .stall_s = 0.5,
                                  .bytes = 1 << 20};
    int64_t now_us = RUN_FIXTURE_WALL_US;
    run_state_init(state, &facts, now_us);
    for (int64_t step = 1; step <= 3; step++) {
        const struct run_numbers numbers = run_fixture_numbers(step);
        run_state_step(state, &numbers, now_us += 1000000);
    }
    run_state_eval(state, &eval, now_us += 1000000);
    run_state_save(state, &save, now_us += 1000000);
}
