/* Accelerate's YAML files, and what Transformers' Trainer takes as --fsdp and --fsdp_config: what
 * each key and word stands for here. */
#include "agent/config/config_parser.h"
#include "base/json.h"
#include "base/nearest.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A key at the top of accelerate's file (commands/config/config_args.py of accelerate). */
struct top_key {
    const char *name;
    const char *key;         /* the value is this setting's; NULL: see `noop_values` */
    const char *noop_values; /* values that change nothing, separated by spaces; lists and mappings
                             that are empty never do */
    const char *why;         /* others are refused; NULL: they are passed over, with a notice */
    const char *variable;    /* the environment's value of it, which is the stronger; NULL: none */
};

static const char no_tpu[] = "there is no TPU backend";
static const char not_here[] = "not supported: leave it empty";

static const struct top_key top_keys[] = {
    {"compute_environment", NULL, "LOCAL_MACHINE", "only LOCAL_MACHINE is supported", NULL},
    {"mixed_precision", "mixed_precision", NULL, NULL, "ACCELERATE_MIXED_PRECISION"},
    {"use_cpu", "use_cpu", NULL, NULL, NULL},
    {"debug", "debug", NULL, NULL, NULL},
    {"num_processes", "num_processes", NULL, NULL, NULL},
    {"num_machines", "num_machines", NULL, NULL, NULL},
    {"machine_rank", "machine_rank", NULL, NULL, "PET_NODE_RANK"},
    {"main_process_ip", "main_process_ip", NULL, NULL, "PET_MASTER_ADDR"},
    {"main_process_port", "main_process_port", NULL, NULL, "PET_MASTER_PORT"},
    {"rdzv_backend", "rdzv_backend", NULL, NULL, "PET_RDZV_BACKEND"},
    {"gpu_ids", "gpu_ids", NULL, NULL, NULL},
    {"enable_cpu_affinity", "enable_cpu_affinity", NULL, NULL, NULL},
    {"same_network", NULL, "true false", NULL, NULL}, /* all meet at one place in either case */
    {"main_training_function", NULL, "main", NULL, NULL},
    {"fp16", "fp16", NULL, NULL, NULL},
    {"dynamo_backend", NULL, "NO", "there is nothing like torch.compile here", NULL},
    {"deepspeed_config", NULL, "", not_here, NULL},
    {"megatron_lm_config", NULL, "", not_here, NULL},
    {"fp8_config", NULL, "", not_here, NULL},
    {"parallelism_config", NULL, "", not_here, NULL},
    {"mpirun_config", NULL, "", not_here, NULL},
    {"downcast_bf16", NULL, "no false", NULL, NULL}, /* of TPUs */
    {"tpu_name", NULL, "", no_tpu, NULL},
    {"tpu_zone", NULL, "", no_tpu, NULL},
    {"tpu_use_cluster", NULL, "false", no_tpu, NULL},
    {"tpu_use_sudo", NULL, "false", NULL, NULL},
    {"command_file", NULL, "", no_tpu, NULL},
    {"commands", NULL, "", no_tpu, NULL},
    {"tpu_vm", NULL, "", no_tpu, NULL},
    {"tpu_env", NULL, "", no_tpu, NULL},
    {"xla", "xla", NULL, NULL, NULL},
    {"xla_fsdp_settings", "xla_fsdp_settings", NULL, NULL, NULL},
    {"xla_fsdp_grad_ckpt", "xla_fsdp_grad_ckpt", NULL, NULL, NULL},
    /* these have functions of their own */
    {"distributed_type", NULL, NULL, NULL, NULL},
    {"fsdp_config", NULL, NULL, NULL, NULL},
    {"dynamo_config", NULL, NULL, NULL, NULL},
};

static const struct top_key *find_top_key(const char *name)
{
    for (size_t i = 0; i < array_length(top_keys); i++)
        if (strcmp(top_keys[i].name, name) == 0)
            return &top_keys[i];
    return NULL;
}

static bool is_empty(const struct json *value)
{
    return json_is_null(value) || (json_is_array(value) && json_array_count(value) == 0) ||
           (json_is_object(value) && json_object_count(value) == 0);
}

/* Every file that accelerate writes has some of these keys, empty. */
static bool is_of_tpu(const char *name)
{
    return str_starts_with(name, "tpu_") || config_names_have("command_file commands", name, false);
}

static int apply(struct config_parser *p, const char *name, const char *key, const char *text,
                 struct error *err)
{
    bool is_true = false;
    if (strcmp(key, "xla_fsdp_grad_ckpt") == 0 && config_parse_bool(text, &is_true) && is_true)
        config_warn(p, "xla_fsdp_grad_ckpt stands for memory.activation_checkpointing");
    if (config_apply(p, key, text, SOURCE_FILE, err) == 0)
        return 0;
    bool known = err->code != ERR_NOT_FOUND;
    err->code = ERR_CONFIG;
    return known ? error_wrap(err, "%s", name) : -1;
}

/* ---- fsdp_config ---- */

/* torch's name of a type as ours: "torch.bfloat16" and "bfloat16" are bf16. */
static const char *dtype_name(const char *text)
{
    static const char *const names[][2] = {
        {"bfloat16", "bf16"}, {"float16", "fp16"}, {"half", "fp16"}, {"float32", "fp32"}};
    if (str_starts_with(text, "torch."))
        text += strlen("torch.");
    for (size_t i = 0; i < array_length(names); i++)
        if (strcmp(text, names[i][0]) == 0)
            return names[i][1];
    return text;
}

/* The policy as torch has it: a type each for parameters, sums of gradients, and what there is none
 * of here. */
static int apply_precisions(struct config_parser *p, const char *name, const struct json *policy,
                            struct error *err)
{
    static const struct {
        const char *name, *key; /* NULL: nothing is to be done */
    } rows[] = {{"param_dtype", "precision.mixed_precision"},
                {"reduce_dtype", "precision.reduce_dtype"},
                {"buffer_dtype", NULL},
                {"output_dtype", NULL},
                {"cast_forward_inputs", NULL}};
    struct json *value;
    json_each_member(value, policy) {
        const char *key = json_key(value);
        size_t i = 0;
        while (i < array_length(rows) && strcmp(key, rows[i].name) != 0)
            i++;
        const char *text = config_json_text(p->arena, value);
        if (i == array_length(rows) || !text)
            return error_set(err, ERR_CONFIG,
                             "%s.%s: it has param_dtype and reduce_dtype, a type "
                             "each",
                             name, key);
        const char *full = arena_printf(p->arena, "%s.%s", name, key);
        if (!rows[i].key)
            config_warn(p, "%s is ignored: there is nothing that it could change", full);
        else if (apply(p, full, rows[i].key, dtype_name(text), err))
            return -1;
    }
    return 0;
}

/* Its keys have the prefix or not; those for TPUs never do. */
static int apply_fsdp_key(struct config_parser *p, const char *name, const struct json *value,
                          struct error *err)
{
    bool prefixed = str_starts_with(name, "fsdp_") || str_starts_with(name, "xla");
    const char *key = prefixed ? name : arena_printf(p->arena, "fsdp_%s", name);
    bool is_settings = strcmp(name, "xla_fsdp_settings") == 0;
    if (is_empty(value))
        return 0;
    if (strcmp(key, "fsdp_mixed_precision_policy") == 0 && json_is_object(value))
        return apply_precisions(p, name, value, err);
    const char *text = is_settings ? "true" : config_json_text(p->arena, value);
    if (!text)
        return error_set(err, ERR_CONFIG, "%s: must be a single value or a list", name);
    return apply(p, name, key, text, err);
}

int config_apply_fsdp_keys(struct config_parser *p, const struct json *keys, struct error *err)
{
    struct json *value;
    json_each_member(value, keys) {
        const char *name = json_key(value);
        if (apply_fsdp_key(p, name, value, err))
            return -1;
    }
    return 0;
}

/* ---- the top ---- */

/* accelerate's own words. */
static int refuse_unknown(const struct json *root, const char *path, struct error *err)
{
    const char *names[64];
    int count = 0;
    struct json *value;
    json_each_member(value, root) {
        const char *name = json_key(value);
        if (!find_top_key(name) && count < (int)array_length(names))
            names[count++] = name;
    }
    if (count == 0)
        return 0;
    for (int i = 1; i < count; i++) /* Python's sorted() */
        for (int k = i; k > 0 && strcmp(names[k - 1], names[k]) > 0; k--) {
            const char *other = names[k];
            names[k] = names[k - 1];
            names[k - 1] = other;
        }
    auto_str struct str list;
    str_init(&list, 4096);
    for (int i = 0; i < count; i++)
        str_printf(&list, "%s'%s'", i ? ", " : "", names[i]);
    auto_str struct str known, nearest;
    str_init(&known, 4096);
    str_init(&nearest, 4096);
    for (size_t i = 0; i < array_length(top_keys); i++)
        str_printf(&known, " %s", top_keys[i].name);
    for (int i = 0; i < count; i++) {
        struct nearest_word near = nearest_word(names[i], str_text(&known), " ");
        if (near.text[0])
            str_printf(&nearest, " The nearest to '%s' is %s.", names[i], near.text);
    }
    return error_set(err, ERR_CONFIG,
                     "The config file at %s had unknown keys ([%s]), please try upgrading "
                     "your `accelerate` version or fix (and potentially remove) these keys from "
                     "your config file.%s",
                     path, str_text(&list), str_text(&nearest));
}

static bool is_one_process(const char *type)
{
    return strcmp(type, "NO") == 0 || strcmp(type, "false") == 0;
}

static int apply_distributed_type(struct config_parser *p, const char *type, struct error *err)
{
    if (strcmp(type, "FSDP") == 0)
        return 0;
    bool is_one = is_one_process(type);
    if (!is_one && strcmp(type, "MULTI_GPU") != 0 && strcmp(type, "MULTI_CPU") != 0)
        return error_set(
            err, ERR_CONFIG,
            "distributed_type: '%s'%s is not supported; choose FSDP (its strategies do "
            "what ZeRO's stages do), MULTI_GPU, MULTI_CPU or NO",
            type, nearest_note(type, "FSDP MULTI_GPU MULTI_CPU NO", " ").text);
    /* DDP beside autocast: weights and their gradients are fp32 */
    return apply(p, "distributed_type", "parallel.sharding_strategy", "NO_SHARD", err) ||
                   apply(p, "distributed_type", "precision.reduce_dtype", "fp32", err) ||
                   (is_one && apply(p, "distributed_type", "num_processes", "1", err))
               ? -1
               : 0;
}

/* One that has a row in the table and no function. */
static int apply_top_key(struct config_parser *p, const struct top_key *row,
                         const struct json *value, struct error *err)
{
    const char *text = is_empty(value) ? "" : config_json_text(p->arena, value);
    const char *variable = row->variable ? p->lookup(p->lookup_ctx, row->variable) : NULL;
    if (is_empty(value) || (variable && variable[0]))
        return 0;
    /* Every generated file says one machine: a pod's environment knows better. */
    const char *nodes = p->lookup(p->lookup_ctx, "PET_NNODES");
    if (strcmp(row->name, "num_machines") == 0 && text && strcmp(text, "1") == 0 && nodes &&
        nodes[0])
        return 0;
    if (text && row->key)
        return apply(p, row->name, row->key, text, err);
    if (text && config_names_have(row->noop_values, text, false))
        return 0;
    if (row->why || !text)
        return error_set(err, ERR_CONFIG, "%s: %s%s%s%s", row->name, text ? "'" : "",
                         text ? text : "", text ? "': " : "",
                         row->why ? row->why : "must be a single value");
    if (!is_of_tpu(row->name)) /* those are reported together */
        config_warn(p, "%s is ignored: it changes nothing here", row->name);
    return 0;
}

static int apply_dynamo(const struct json *value, struct error *err)
{
    const char *backend = json_as_text(json_get(value, "dynamo_backend"));
    if (is_empty(value) || (backend && strcasecmp(backend, "NO") == 0))
        return 0;
    return error_set(err, ERR_CONFIG, "dynamo_config: there is nothing like torch.compile here");
}

int config_apply_accelerate(struct config_parser *p, const struct json *root, const char *path,
                            struct error *err)
{
    const char *type = config_json_text(p->arena, json_get(root, "distributed_type"));
    const struct json *fsdp = json_get(root, "fsdp_config");
    if (refuse_unknown(root, path, err))
        return -1;
    if (!type)
        return error_set(err, ERR_CONFIG, "A `distributed_type` must be specified in %s.", path);
    if (apply_distributed_type(p, type, err))
        return -1;
    const char *of_tpu = "";
    struct json *value;
    json_each_member(value, root) {
        const char *name = json_key(value);
        const struct top_key *row = find_top_key(name);
        if (is_of_tpu(name))
            of_tpu = arena_printf(p->arena, "%s%s%s", of_tpu, of_tpu[0] ? ", " : "", name);
        if (!row || value == fsdp || strcmp(name, "distributed_type") == 0 ||
            (is_one_process(type) && strcmp(name, "num_processes") == 0))
            continue;
        if (strcmp(name, "dynamo_config") == 0 ? apply_dynamo(value, err)
                                               : apply_top_key(p, row, value, err))
            return -1;
    }
    if (of_tpu[0])
        config_warn(p, "%s: passed over, there is no TPU backend", of_tpu);
    if (!fsdp || is_empty(fsdp))
        return 0;
    if (!json_is_object(fsdp))
        return error_set(err, ERR_CONFIG, "fsdp_config: must be a mapping");
    if (strcmp(type, "FSDP") != 0) {
        config_warn(p, "fsdp_config is ignored: distributed_type is %s", type);
        return 0;
    }
    return config_apply_fsdp_keys(p, fsdp, err) ? error_wrap(err, "fsdp_config") : 0;
}

/* ---- the words of --fsdp ---- */

int config_apply_fsdp_words(struct config_parser *p, const char *words, enum config_source source,
                            struct error *err)
{
    static const struct {
        const char *words, *key, *value; /* with '_' for all that separates words */
    } rows[] = {
        {"full_shard", "parallel.sharding_strategy", "FULL_SHARD"},
        {"shard_grad_op", "parallel.sharding_strategy", "SHARD_GRAD_OP"},
        {"no_shard", "parallel.sharding_strategy", "NO_SHARD"},
        {"hybrid_shard_zero2", "parallel.sharding_strategy", "HYBRID_SHARD_ZERO2"},
        {"hybrid_shard", "parallel.sharding_strategy", "HYBRID_SHARD"},
        {"auto_wrap", "parallel.auto_wrap_policy", "TRANSFORMER_BASED_WRAP"},
        {"offload", "memory.cpu_offload", "true"},
    };
    bool is_on;
    if (words[0] && config_parse_bool(words, &is_on)) /* later versions': fsdp_config says how */
        return is_on ? 0 : config_apply(p, "parallel.sharding_strategy", "NO_SHARD", source, err);
    char *rest = arena_strdup(p->arena, words);
    for (char *c = rest; *c; c++)
        if (strchr(" ,-", *c))
            *c = '_';
    while (*rest) {
        size_t i = 0, length = 0;
        for (; i < array_length(rows); i++) {
            length = strlen(rows[i].words);
            if (strncasecmp(rest, rows[i].words, length) == 0 && strchr("_", rest[length]))
                break;
        }
        if (i == array_length(rows))
            return error_set(err, ERR_CONFIG,
                             "'%s': it knows full_shard, shard_grad_op, no_shard, hybrid_shard, "
                             "hybrid_shard_zero2, auto_wrap and offload",
                             words);
        if (config_apply(p, rows[i].key, rows[i].value, source, err))
            return -1;
        p->auto_wrap |= strcmp(rows[i].words, "auto_wrap") == 0;
        rest += length;
        rest += strspn(rest, "_");
    }
    return 0;
}
