/* accelerate launch: its flags are settings of the same meaning, most under the same name. */
#include "agent/compat/accelerate_file.h"
#include "agent/compat/shim_internal.h"

#include "base/nearest.h"
#include "base/str.h"

#include <string.h>

#define COMMANDS "launch, config, env, merge-weights"

/* A flag before the script. */
struct launch_flag {
    const char *name; /* with '_' */
    char letter;      /* 0: none */
    bool is_switch;   /* takes no value */
    const char *key;  /* of ours; NULL: its own name; "": it asks for what is so anyway */
    const char *why;  /* it is refused; NULL: it is not */
};

static const char no_tpu[] = "there is no TPU backend";
static const char no_compiler[] = "there is nothing like torch.compile here";
static const char only_fsdp[] =
    "not supported: the ranks shard as FSDP does (--fsdp_sharding_strategy)";

static const struct launch_flag launch_flags[] = {
    {"config_file", 0, false, NULL, NULL},
    {"quiet", 'q', true, "", NULL},
    {"module", 'm', true, "", NULL},
    {"cpu", 0, true, "use_cpu", NULL},
    {"use_cpu", 0, true, NULL, NULL},
    {"use_fsdp", 0, true, "", NULL},
    {"multi_gpu", 0, true, "parallel.sharding_strategy=NO_SHARD precision.reduce_dtype=fp32", NULL},
    {"mixed_precision", 0, false, NULL, NULL},
    {"num_processes", 0, false, NULL, NULL},
    {"num_machines", 0, false, NULL, NULL},
    {"machine_rank", 0, false, NULL, NULL},
    {"main_process_ip", 0, false, NULL, NULL},
    {"main_process_port", 0, false, NULL, NULL},
    {"num_cpu_threads_per_process", 0, false, "runtime.threads", NULL},
    {"gradient_accumulation_steps", 0, false, NULL, NULL},
    {"rdzv_backend", 0, false, "runtime.rdzv_backend", NULL},
    {"rdzv_conf", 0, false, "torchrun.rdzv_conf", NULL},
    {"role", 0, false, "torchrun.role", NULL},
    {"tee", 0, false, "runtime.tee", NULL},
    {"log_dir", 0, false, "runtime.log_dir", NULL},
    {"max_restarts", 0, false, "runtime.max_restarts", NULL},
    {"monitor_interval", 0, false, "runtime.monitor_interval", NULL},
    {"same_network", 0, true, "", NULL},
    {"main_training_function", 0, false, "", NULL},
    {"debug", 0, true, NULL, NULL},
    {"fsdp", 0, false, NULL, NULL},
    {"fsdp_config", 0, false, NULL, NULL},
    {"zero_stage", 0, false, NULL, NULL},
    {"no_python", 0, true, NULL, "the agent runs no other programs"},
    {"gpu_ids", 0, false, NULL, NULL},
    {"enable_cpu_affinity", 0, true, NULL, NULL},
    {"use_deepspeed", 0, true, NULL, only_fsdp},
    {"use_megatron_lm", 0, true, NULL, only_fsdp},
    {"use_parallelism_config", 0, true, NULL, only_fsdp},
    {"tpu", 0, true, NULL, no_tpu},
    {"downcast_bf16", 0, true, NULL, no_tpu},
};

/* Flags that are one thing each. */
static const struct {
    const char *prefix;
    const char *why; /* NULL: settings of ours, which take a value */
} families[] = {
    {"fsdp_", NULL},
    {"dynamo_", no_compiler},
    {"deepspeed_", only_fsdp},
    {"zero3_", only_fsdp},
    {"offload_", only_fsdp},
    {"gradient_clipping", only_fsdp},
    {"megatron_lm_", only_fsdp},
    {"parallelism_config_", only_fsdp},
    {"fp8_",
     "precision.fp8=true in the file, with mixed_precision: bf16, is fp8; it has no recipes"},
    {"tpu_", no_tpu},
};

static const struct launch_flag *find_flag(const char *word)
{
    for (size_t i = 0; i < array_length(launch_flags); i++) {
        char letter = launch_flags[i].letter;
        if (shim_is_flag(word, launch_flags[i].name) ||
            (letter && word[1] == letter && word[2] == '\0'))
            return &launch_flags[i];
    }
    return NULL;
}

/* The family of a flag; -1: none. */
static int find_family(const char *word)
{
    for (size_t i = 0; i < array_length(families); i++)
        if (str_starts_with(word, "--") && str_starts_with(word + 2, families[i].prefix))
            return (int)i;
    return -1;
}

/* --num_machines 2 as --num_machines=2; of a switch, =true. */
static int pass_on(struct shim_writer *w, const struct launch_flag *flag, const char *word,
                   const char *value, struct error *err)
{
    const char *name =
        flag ? flag->name : arena_strndup(w->arena, word + 2, strcspn(word + 2, "="));
    const char *key = flag && flag->key ? flag->key : name;
    if (!key[0])
        return 0;
    for (const char *end; strchr(key, '='); key = end + 1) {
        end = key + strcspn(key, " ");
        if (shim_add_word(w, arena_printf(w->arena, "--%.*s", (int)(end - key), key), err))
            return -1;
        if (!*end)
            return 0;
    }
    return shim_add_word(w, arena_printf(w->arena, "--%s=%s", key, value), err);
}

/* One flag; *words is left at its last word. */
static int read_flag(struct shim_writer *w, char *const **words, struct error *err)
{
    const char *word = **words, *value = strchr(word, '=');
    const struct launch_flag *flag = find_flag(word);
    int family = flag ? -1 : find_family(word);
    if (!flag && family < 0) {
        auto_str struct str names;
        str_init(&names, 4096);
        for (size_t i = 0; i < array_length(launch_flags); i++)
            str_printf(&names, " --%s", launch_flags[i].name);
        return shim_refuse_flag("accelerate launch", word, str_text(&names), err);
    }
    const char *why = flag ? flag->why : families[family].why;
    if (why)
        return error_set(err, ERR_CONFIG, "accelerate launch: %s: %s", word, why);
    if (value)
        value++;
    else if (flag && flag->is_switch)
        value = "true";
    else if ((*words)[1])
        value = *++*words;
    else
        return error_set(err, ERR_CONFIG, "accelerate launch: %s needs a value", word);
    return pass_on(w, flag, word, value, err);
}

int shim_read_accelerate(struct shim_writer *w, char *const **words, struct error *err)
{
    bool is_module = false, has_file = false, is_copied = false, is_sharded = false;
    if (!**words || strcmp(**words, "launch") != 0)
        return error_set(err, ERR_CONFIG, "accelerate: '%s'%s is not one of: " COMMANDS,
                         **words ? **words : "",
                         nearest_note(**words ? **words : "", COMMANDS, ", ").text);
    if (shim_add_word(w, "--preset=accelerate", err))
        return -1;
    for (++*words; **words && (**words)[0] == '-'; ++*words) {
        is_module |= strcmp(**words, "-m") == 0 || shim_is_flag(**words, "module");
        has_file |= shim_is_flag(**words, "config_file");
        is_copied |= shim_is_flag(**words, "multi_gpu");
        is_sharded |= shim_is_flag(**words, "use_fsdp");
        if (read_flag(w, words, err))
            return -1;
    }
    if (is_copied && is_sharded)
        return error_set(err, ERR_CONFIG,
                         "accelerate launch: --multi_gpu gives each rank a copy, --use_fsdp a "
                         "slice: only one of them can be used at a time");
    if (!**words)
        return error_set(err, ERR_CONFIG, "accelerate launch: names no script");
    const char *file = has_file ? NULL : accelerate_find_file(w->lookup, w->ctx, w->arena);
    if (file && shim_add_word(w, arena_printf(w->arena, "--config_file=%s", file), err))
        return -1;
    return shim_add_script(w, *(*words)++, is_module, err);
}
