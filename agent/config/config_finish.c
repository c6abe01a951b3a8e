/* Values that follow from other keys. */
#include "agent/config/config_model.h"
#include "agent/config/config_parser.h"
#include "agent/shard/optim_kind.h"
#include "agent/shard/schedule.h"
#include "agent/telemetry/log_lines.h"
#include "base/contract.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void forget_preset_value(struct config_parser *p, int i)
{
    struct error ignored; /* defaults are right */
    const struct config_key *key = config_key(i);
    if (p->config->source[i] != SOURCE_PRESET)
        return;
    (void)config_set_value(key, &p->config->value, key->default_value, p->arena, &ignored);
    p->config->source[i] = SOURCE_DEFAULT;
}

/* The sizes and the initial values of a model that is named are its own, whatever a preset for
 * another one says; but a preset may ask that it has some. */
static void forget_preset_sizes(struct config_parser *p)
{
    static const char *const groups[] = {"model.config_overrides", "model.rope_scaling"};
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        bool is_size =
            key->offset == KEY_AT(model.init) && p->config->value.model.init != INIT_PRETRAINED;
        for (size_t g = 0; g < array_length(groups); g++)
            is_size |= strcmp(key->group, groups[g]) == 0;
        if (is_size)
            forget_preset_value(p, i);
    }
}

/* A preset for Llama has more to say than a GPT-2 has. */
static void forget_foreign_sizes(struct config_parser *p)
{
    const struct model_family *family = config_family(&p->config->value);
    for (int i = 0; i < config_key_count(); i++)
        if (!config_model_has(family, i))
            forget_preset_value(p, i);
}

/* The family of a model that is named by its architecture alone; config_rules.c reports a name
 * that nobody knows. */
static const struct model_family *family_of(const char *architecture)
{
    struct architecture a;
    return architecture_find(architecture, &a) ? a.family : &family_llama;
}

/* The value of the field at `to` follows from that of the key at `from`, whose source it gets. */
static void follow(struct config_parser *p, size_t to, size_t from)
{
    p->config->source[config_key_at(to)] = p->config->source[config_key_at(from)];
}

/* What a checkpoint of the model at `path` is called: never by a hidden name. */
static const char *name_of(struct arena *arena, const char *path)
{
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        length--;
    size_t begin = length;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    if (begin == length || path[begin] == '.')
        return "checkpoint";
    return arena_strndup(arena, path + begin, length - begin);
}

static int untyped_sizes(struct error *err)
{
    auto_str struct str names;
    str_init(&names, 256);
    model_family_names(~(1u << MODEL_IMAGES), " or ", &names);
    return error_set(err, ERR_CONFIG,
                     "model.type is not set, although model.config_overrides is; it can be %s",
                     str_text(&names));
}

static int finish_model(struct config_parser *p, struct error *err)
{
    struct agent_config *c = &p->config->value;
    bool is_named = c->model.name_or_path[0];
    if (is_named)
        forget_preset_sizes(p);
    else if (c->model.init == INIT_PRETRAINED && SOURCE_OF(model.init) == SOURCE_PRESET)
        /* the values of a model that the preset names */
        c->model.init = INIT_AUTO;
    if (c->model.type == MODEL_AUTO && !is_named && c->model.architecture[0])
        config_set_family(c, family_of(c->model.architecture));
    if (c->model.type != MODEL_AUTO && config_is_language(c))
        forget_foreign_sizes(p);
    if (c->model.type == MODEL_AUTO && !is_named) {
        if (c->overrides.hidden_size > 0)
            return untyped_sizes(err);
        if (config_is_launched(p))
            return error_set(
                err, ERR_CONFIG,
                "model.name_or_path is not set: scripts are not run, so their "
                "arguments must say what they train (--model_name_or_path, --dataset)");
        config_set_family(c, &family_mnist_cnn);
    }
    /* train.py's llama_v3 always stretches so, without a flag for it. */
    if (p->model_type && strcasecmp(p->model_type, "llama_v3") == 0 &&
        c->rope.type == ROPE_OF_CONFIG && !is_named && !c->model.architecture[0]) {
        c->rope.type = ROPE_DYNAMIC;
        c->rope.factor = 2;
        follow(p, KEY_AT(rope.type), KEY_AT(model.type));
        follow(p, KEY_AT(rope.factor), KEY_AT(model.type));
    }
    if (c->checkpoint.prefix[0])
        return 0;
    if (p->model_type && c->model.type != MODEL_AUTO)
        c->checkpoint.prefix = p->model_type;
    else if (!config_is_language(c))
        c->checkpoint.prefix = family_mnist_cnn.name;
    else
        c->checkpoint.prefix = name_of(p->arena, c->model.name_or_path);
    return 0;
}

/* Processes of a pod from those of all pods: accelerate's way to count. */
static int finish_processes(struct config_parser *p, struct error *err)
{
    struct agent_config *c = &p->config->value;
    int64_t nodes = 1, all = c->runtime.num_processes;
    if (all == 0 || SOURCE_OF(runtime.nproc_per_node) > SOURCE_OF(runtime.num_processes))
        return 0;
    if (c->runtime.nnodes[0]) { /* of MIN:MAX, MIN: who uses it reports what cannot be read */
        char *least = arena_strndup(p->arena, c->runtime.nnodes, strcspn(c->runtime.nnodes, ":"));
        if (!str_to_i64(least, 1, 1000000, &nodes))
            return 0;
    }
    if (all > 0 && all % nodes != 0)
        return error_set(err, ERR_CONFIG,
                         "runtime.num_processes: %lld processes cannot be divided among %lld pods "
                         "(runtime.nnodes)",
                         (long long)all, (long long)nodes);
    c->runtime.nproc_per_node =
        all < 0 ? "auto" : arena_printf(p->arena, "%lld", (long long)(all / nodes));
    return 0;
}

/* What accelerate refuses of its second version, and the default that is another there. */
static int finish_version(struct config_parser *p, struct error *err)
{
    struct agent_config *c = &p->config->value;
    bool is_asked = SOURCE_OF(checkpoint.state_dict_type) > SOURCE_PRESET;
    if (!p->is_fsdp2)
        return 0;
    if (is_asked && c->checkpoint.state_dict_type == STATE_DICT_LOCAL)
        return error_set(err, ERR_CONFIG,
                         "fsdp_state_dict_type: fsdp_version 2 has no LOCAL_STATE_DICT");
    if (c->parallel.forward_prefetch && SOURCE_OF(parallel.forward_prefetch) > SOURCE_PRESET)
        return error_set(err, ERR_CONFIG,
                         "fsdp_forward_prefetch: fsdp_version 2 has none; leave it out");
    if (!is_asked) {
        c->checkpoint.state_dict_type = STATE_DICT_SHARDED;
        p->config->source[config_key_at(KEY_AT(checkpoint.state_dict_type))] = p->fsdp2_source;
    }
    return 0;
}

/* A class that is named in the place of the policy (Fabric's scripts) is the one to wrap. */
static void finish_wrap(struct config_parser *p)
{
    struct agent_config *c = &p->config->value;
    for (int64_t i = 0; p->wrap_policy && model_family(i); i++) {
        const struct model_family *family = model_family(i);
        bool is_meant =
            family->block_class && (strcasecmp(p->wrap_policy, family->block_class) == 0 ||
                                    strcasecmp(p->wrap_policy, family->name) == 0);
        if (is_meant && !c->parallel.wrap_classes[0])
            c->parallel.wrap_classes = family->block_class;
    }
    /* Trainer's "auto_wrap": by size where one is given, else by class. */
    if (p->auto_wrap && SOURCE_OF(parallel.min_num_params) > SOURCE_PRESET &&
        c->parallel.min_num_params > 0)
        c->parallel.wrap_policy = WRAP_SIZE;
    if (c->parallel.wrap_policy == WRAP_SIZE && c->parallel.min_num_params == 0)
        c->parallel.wrap_policy = WRAP_NONE;
}

/* True is Trainer's, which raises an error where there is nothing to go on from. */
static void finish_resume(struct config_parser *p)
{
    struct agent_config *c = &p->config->value;
    if (p->checkpoint && strcmp(c->checkpoint.resume, "no") != 0) {
        c->checkpoint.resume = p->checkpoint;
        p->config->source[config_key_at(KEY_AT(checkpoint.resume))] = p->checkpoint_source;
    }
    if (strcmp(c->checkpoint.resume, "true") == 0 && !strstr(p->config->preset, "trainer"))
        c->checkpoint.resume = "latest";
}

/* What is named but for its directory. */
static int finish_paths(struct config_parser *p, struct error *err)
{
    struct agent_config *c = &p->config->value;
    bool is_auto = strcmp(c->checkpoint.save_model, "auto") == 0;
    finish_resume(p);
    if (is_auto && !c->checkpoint.dir[0] && SOURCE_OF(checkpoint.save_model) > SOURCE_PRESET)
        return error_set(err, ERR_CONFIG,
                         "checkpoint.save_model=auto asks for the weights, but nothing says where "
                         "they go: name a directory by checkpoint.dir (--checkpoint_dir, "
                         "--output_dir)");
    if (is_auto)
        c->checkpoint.save_model = c->checkpoint.dir[0]
                                       ? arena_printf(p->arena, "%s/model%s", c->checkpoint.dir,
                                                      config_is_language(c) ? "" : ".safetensors")
                                       : "";
    bool no_directory = !c->checkpoint.dir[0] && SOURCE_OF(checkpoint.resume) <= SOURCE_PRESET &&
                        strcmp(c->checkpoint.resume, "latest") == 0; /* a preset's */
    if (no_directory || strcmp(c->checkpoint.resume, "no") == 0)
        c->checkpoint.resume = "";
    return 0;
}

static void finish_by_model(struct agent_config *c)
{
    bool is_mnist = !config_is_language(c);
    if (c->parallel.wrap_policy == WRAP_AUTO)
        c->parallel.wrap_policy = is_mnist ? WRAP_NONE : WRAP_TRANSFORMER;
    if (c->precision.mixed == PRECISION_AUTO)
        c->precision.mixed = is_mnist ? PRECISION_FP32 : PRECISION_BF16_MIXED;
    if (c->logging.steps < 0)
        c->logging.steps = is_mnist ? 0 : 10;
    if (c->logging.style == CONFIG_STYLE_AUTO)
        c->logging.style = is_mnist ? STYLE_NONE : STYLE_PLAIN;
}

static bool is_for_some_optimizers(const struct config_key *key)
{
    auto_str struct str users;
    str_init(&users, 256);
    bool is = false;
    for (int i = 0; i < CONFIG_MAX_NEEDS && !is; i++)
        is = config_need_optimizers(key->needs[i], &users);
    return is;
}

/* What a preset says of its optimizer is not another's: that has torch's own. */
static void forget_preset_optimizer(struct config_parser *p)
{
    const struct agent_config *c = &p->config->value;
    if (c->optimizer.name == p->preset_optimizer)
        return;
    for (int i = 0; i < config_key_count(); i++)
        if (is_for_some_optimizers(config_key(i)))
            forget_preset_value(p, i);
    forget_preset_value(p, config_key_at(KEY_AT(optimizer.weight_decay)));
    if (SOURCE_OF(optimizer.lr) == SOURCE_PRESET)
        config_add_headline(p->config, p->arena,
                            "optimizer.lr=%g is the preset's, for another optimizer: give one for "
                            "this (--lr)",
                            c->optimizer.lr);
}

/* What nobody has set is torch.optim's for this optimizer. */
static void take_optimizer_defaults(struct config_parser *p, const struct optim_kind *kind)
{
    struct agent_config *c = &p->config->value;
    if (c->optimizer.eps < 0)
        c->optimizer.eps = kind->eps;
    if (c->optimizer.weight_decay < 0)
        c->optimizer.weight_decay = kind->weight_decay;
    if ((kind->uses & OPTIM_USES_BETAS) && SOURCE_OF(optimizer.beta1) == SOURCE_DEFAULT)
        c->optimizer.beta1 = kind->beta1;
    if ((kind->uses & OPTIM_USES_BETAS) && SOURCE_OF(optimizer.beta2) == SOURCE_DEFAULT)
        c->optimizer.beta2 = kind->beta2;
    if ((kind->uses & OPTIM_USES_RHO) && SOURCE_OF(optimizer.rho) == SOURCE_DEFAULT)
        c->optimizer.rho = kind->rho;
}

static void finish_optimizer(struct config_parser *p)
{
    struct agent_config *c = &p->config->value;
    forget_preset_optimizer(p);
    take_optimizer_defaults(p, optim_kind(c->optimizer.name));
    if (c->data.eval_batch_size == 0)
        c->data.eval_batch_size = c->data.train_batch_size;
    /* A preset's choice gives way to what contradicts it. */
    if (c->precision.mixed != PRECISION_BF16_TRUE &&
        SOURCE_OF(optimizer.state_dtype) <= SOURCE_PRESET)
        c->optimizer.state_dtype = STATE_FP32;
    if (c->precision.mixed == PRECISION_FP32 && SOURCE_OF(precision.reduce_dtype) <= SOURCE_PRESET)
        c->precision.reduce_dtype = STATE_FP32;
    if (c->precision.mixed == PRECISION_BF16_TRUE &&
        SOURCE_OF(optimizer.state_dtype) <= SOURCE_PRESET)
        c->optimizer.state_dtype = STATE_BF16;
    if (c->eval.steps > 0 && SOURCE_OF(eval.steps) > SOURCE_OF(eval.strategy))
        c->eval.strategy = EVAL_STEPS;
}

/* A rank hears it from its launcher, a launcher from the operator. */
static void finish_restarts(struct config_parser *p)
{
    const char *granted = p->lookup(p->lookup_ctx, ENV_TORCHELASTIC_MAX_RESTARTS);
    p->config->value.runtime.restarts_by_default =
        granted ? strcmp(granted, "0") != 0 : p->lookup(p->lookup_ctx, ENV_RESTART_COUNT) != NULL;
}

static void finish_elastic(struct config_parser *p)
{
    struct agent_config *c = &p->config->value;
    const char *nodes =
        c->runtime.nnodes[0] ? c->runtime.nnodes : p->lookup(p->lookup_ctx, ENV_PET_NNODES);
    const char *colon = nodes && !c->runtime.standalone ? strchr(nodes, ':') : NULL;
    c->runtime.is_elastic = colon && strtol(colon + 1, NULL, 10) > strtol(nodes, NULL, 10);
}

int config_finish(struct config_parser *p, struct error *err)
{
    config_finish_trainer(p);
    finish_restarts(p);
    finish_elastic(p);
    if (finish_model(p, err) || finish_processes(p, err) || finish_version(p, err))
        return -1;
    finish_by_model(&p->config->value);
    finish_optimizer(p);
    if (config_finish_schedule(p, err))
        return -1;
    finish_wrap(p);
    if (finish_paths(p, err) || config_check_rules(p, err))
        return -1;
    config_warn_rules(p);
    return 0;
}
