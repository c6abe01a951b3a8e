#include "tests/support.h"

#include "agent/compat/shim.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

enum { MAX_WORDS = 32 };

/* The environment of a row: one "NAME=value", or "". */
static const char *lookup(void *ctx, const char *name)
{
    const char *variable = ctx;
    size_t length = strlen(name);
    return strncmp(variable, name, length) == 0 && variable[length] == '=' ? variable + length + 1
                                                                           : NULL;
}

static int rewrite(struct arena *arena, const char *line, const char *environment,
                   bool *ret_is_shim, char *const **ret_argv, struct error *err)
{
    char **words = arena_array(arena, char *, MAX_WORDS);
    int count = 0;
    char *rest = NULL;
    for (char *w = strtok_r(arena_strdup(arena, line), " ", &rest); w;
         w = strtok_r(NULL, " ", &rest)) {
        assert_true(count < MAX_WORDS - 1);
        words[count++] = w;
    }
    words[count] = NULL;
    return shim_rewrite(words, lookup, (void *)(uintptr_t)environment, arena, ret_is_shim, ret_argv,
                        err);
}

static const struct {
    const char *line, *environment, *expected;
} command_lines[] = {
    {"torchrun train.py", "", "shoal-agent --preset=hyperpod --runtime.script=train.py"},
    {"/usr/local/bin/torchrun --nnodes=2 --nproc_per_node 8 /fsdp/train.py --lr 1e-4 @m.txt", "",
     "shoal-agent --runtime.nnodes=2 --runtime.nproc_per_node=8 --preset=hyperpod "
     "--runtime.script=/fsdp/train.py --lr 1e-4 @m.txt"},
    {"shoal-agent torchrun --nproc-per-node=2 FSDP_mnist.py --epochs 1", "",
     "shoal-agent --runtime.nproc_per_node=2 --preset=mnist-fsdp --runtime.script=FSDP_mnist.py --epochs 1"},
    {"hyperpodrun --tee=3 --log_dir=/tmp/hyperpod --nproc_per_node=8 --nnodes=2 train.py", "",
     "shoal-agent --runtime.tee=3 --runtime.log_dir=/tmp/hyperpod --runtime.nproc_per_node=8 "
     "--runtime.nnodes=2 --preset=hyperpod --runtime.script=train.py"},
    {"torchrun --nnodes=1:64 --rdzv_backend=c10d --rdzv_endpoint=h:29400 --rdzv_id=7 -r 1 -t "
     "0:3 --max-restarts 3 --monitor_interval=5 --node_rank=1 --master_addr=m --master_port=9 "
     "DDP_mnist.py",
     "",
     "shoal-agent --runtime.nnodes=1:64 --runtime.rdzv_backend=c10d "
     "--runtime.rdzv_endpoint=h:29400 --runtime.rdzv_id=7 --runtime.redirects=1 "
     "--runtime.tee=0:3 --runtime.max_restarts=3 --runtime.monitor_interval=5 "
     "--runtime.node_rank=1 --runtime.master_addr=m --runtime.master_port=9 --preset=mnist-ddp --runtime.script=DDP_mnist.py"},
    {"torchrun --standalone mnist-ddp.py", "",
     "shoal-agent --runtime.standalone=true --preset=mnist-ddp-adam --runtime.script=mnist-ddp.py"},
    {"torchrun --role=x --rdzv_conf=timeout=9 train.py", "",
     "shoal-agent --torchrun.role=x --torchrun.rdzv_conf=timeout=9 --preset=hyperpod --runtime.script=train.py"},
    {"torchrun --help", "", "shoal-agent --help"},
    {"torchrun -h", "", "shoal-agent --help"},
    {"torchrun --version", "", "shoal-agent --version"},
    {"python -V", "", "shoal-agent --version"},
    {"torchrun -m pkg.train --lr 1", "",
     "shoal-agent --preset=hyperpod --runtime.script=train.py --lr 1"},
    /* variables where the command line is silent; the others are the topology's */
    {"torchrun train.py", "PET_MAX_RESTARTS=100",
     "shoal-agent --runtime.max_restarts=100 --preset=hyperpod --runtime.script=train.py"},
    {"torchrun --max_restarts=1 train.py", "PET_MAX_RESTARTS=100",
     "shoal-agent --runtime.max_restarts=1 --preset=hyperpod --runtime.script=train.py"},
    {"torchrun train.py", "PET_NNODES=4",
     "shoal-agent --preset=hyperpod --runtime.script=train.py"},
    {"torchrun train.py", "PET_STANDALONE=1",
     "shoal-agent --runtime.standalone=1 --preset=hyperpod --runtime.script=train.py"},
    {"python FSDP_mnist.py --epochs 2", "",
     "shoal-agent --runtime.nproc_per_node=auto --preset=mnist-fsdp --runtime.script=FSDP_mnist.py --epochs 2"},
    {"python3.11 -u DDP_mnist.py", "",
     "shoal-agent --runtime.nproc_per_node=auto --preset=mnist-ddp --runtime.script=DDP_mnist.py"},
    {"python3 -m torch.distributed.run --nproc_per_node=2 train.py", "",
     "shoal-agent --runtime.nproc_per_node=2 --preset=hyperpod --runtime.script=train.py"},
    {"torchrun --nnodes 4 --nproc_per_node 1 t5-fsdp.py --lr 1e-5", "",
     "shoal-agent --runtime.nnodes=4 --runtime.nproc_per_node=1 --preset=t5-fsdp --runtime.script=t5-fsdp.py --lr 1e-5"},
    /* accelerate: any script, whose arguments say the rest */
    {"accelerate launch --config_file fsdp.yaml my-trainer-script.py --lr 1e-4", "",
     "shoal-agent --preset=accelerate --config_file=fsdp.yaml --preset=trainer "
     "--runtime.script=my-trainer-script.py --lr 1e-4"},
    {"shoal-agent accelerate launch --fsdp=full_shard --fsdp_config=f.json my.py", "",
     "shoal-agent --preset=accelerate --fsdp=full_shard --fsdp_config=f.json "
     "--preset=trainer --runtime.script=my.py"},
    {"accelerate launch --use_fsdp --num-processes 4 --fsdp_offload_params true "
     "--mixed_precision bf16 -q -m pkg.mine",
     "",
     "shoal-agent --preset=accelerate --num_processes=4 --fsdp_offload_params=true "
     "--mixed_precision=bf16 --preset=trainer --runtime.script=mine.py"},
    {"accelerate launch --multi_gpu --cpu --num_cpu_threads_per_process 2 t5-fsdp.py", "",
     "shoal-agent --preset=accelerate --parallel.sharding_strategy=NO_SHARD --precision.reduce_dtype=fp32 --use_cpu=true "
     "--runtime.threads=2 --preset=t5-fsdp --runtime.script=t5-fsdp.py"},
    {"accelerate launch my.py", "HF_HOME=tests/data",
     "shoal-agent --preset=accelerate --config_file=tests/data/accelerate/default_config.yaml "
     "--preset=trainer --runtime.script=my.py"},
    {"accelerate launch my.py", "HOME=/nonexistent",
     "shoal-agent --preset=accelerate --preset=trainer --runtime.script=my.py"},
    {"accelerate launch train.py", "HOME=/nonexistent",
     "shoal-agent --preset=accelerate --preset=trainer --runtime.script=train.py"},
    /* none of them: left as it is */
    {"shoal-agent --preset mnist", "", NULL},
    {"shoal-agent", "", NULL},
    {"/opt/pythonista --preset mnist", "", NULL},
};

static void command_lines_become_our_own(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(command_lines); i++) {
        auto_arena struct arena *arena = arena_open();
        bool is_shim;
        char *const *argv;
        struct error err;
        assert_ok(rewrite(arena, command_lines[i].line, command_lines[i].environment, &is_shim,
                          &argv, &err),
                  &err);
        auto_str struct str line;
        str_init(&line, 4096);
        for (int w = 0; argv[w]; w++)
            str_printf(&line, "%s%s", w ? " " : "", argv[w]);
        assert_string_equal(str_text(&line), command_lines[i].expected ? command_lines[i].expected
                                                                       : command_lines[i].line);
        assert_int_equal(is_shim, command_lines[i].expected != NULL);
    }
}

static void what_nobody_stands_in_for_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *line, *message;
    } rows[] = {
        {"torchrun my_model.py", "torchrun: 'my_model.py' is no script that the agent stands in "
                                 "for; it knows train.py FSDP_mnist.py DDP_mnist.py mnist-ddp.py "
                                 "t5-fsdp.py"},
        {"accelerate", "accelerate: '' is not one of: launch, config, env, merge-weights"},
        {"accelerate test", "accelerate: 'test' is not one of: launch"},
        {"accelerate launch", "accelerate launch: names no script"},
        {"accelerate launch --num_processes", "accelerate launch: --num_processes needs a value"},
        {"accelerate launch --nodes 2 x.py",
         "accelerate launch: unknown flag '--nodes' before the script"},
        {"accelerate launch --use_deepspeed x.py",
         "accelerate launch: --use_deepspeed: not supported: the ranks shard as FSDP does"},
        {"accelerate launch --multi_gpu --use_fsdp x.py",
         "accelerate launch: --multi_gpu gives each rank a copy, --use_fsdp a slice: only one"},
        {"accelerate launch --fp8_margin 1 x.py",
         "accelerate launch: --fp8_margin: precision.fp8=true in the file"},
        {"accelerate launch --tpu x.py", "accelerate launch: --tpu: there is no TPU backend"},
        {"torchrun", "torchrun: names no script"},
        {"torchrun --nnodes=2", "torchrun: names no script"},
        {"torchrun --nnodes", "torchrun: --nnodes needs a value"},
        {"torchrun --nodes=2 train.py", "torchrun: unknown flag '--nodes=2' before the script"},
        {"torchrun --nproc_per_nod=1 train.py",
         "torchrun: unknown flag '--nproc_per_nod=1' before the script (the nearest is "
         "--nproc_per_node)"},
        {"torchrun --nproc-per-nod 1 train.py", "(the nearest is --nproc_per_node)"},
        {"torchrun trian.py", "torchrun: 'trian.py' (the nearest is train.py) is no script"},
        {"accelerate lanch x.py", "accelerate: 'lanch' (the nearest is launch) is not one of"},
        {"accelerate launch --num_process 2 x.py",
         "unknown flag '--num_process' before the script (the nearest is --num_processes)"},
        {"torchrun -x train.py", "torchrun: unknown flag '-x' before the script"},
        {"torchrun --no_python train.py",
         "torchrun: --no_python: the agent runs no other programs"},
        {"python -c pass",
         "python: '-c': this is shoal-agent under that name, which runs no Python: it takes 'python SCRIPT'"},
        {"python3", "python3: names no script"},
        {"python3 -m http.server", "python3: 'http.server' is no script"},
    };
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_arena struct arena *arena = arena_open();
        bool is_shim;
        char *const *argv;
        struct error err;
        assert_fails(rewrite(arena, rows[i].line, "", &is_shim, &argv, &err), &err, ERR_CONFIG,
                     rows[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(command_lines_become_our_own),
        cmocka_unit_test(what_nobody_stands_in_for_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
