#include "cli/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/compat/shim.h"
#include "agent/config/config.h"
#include "agent/config/config_model.h"
#include "agent/config/model_path.h"
#include "agent/launch/device_choice.h"
#include "agent/launch/topology.h"
#include "agent/plan/run_plan_facts.h"
#include "agent/plan/time_plan.h"
#include "agent/trainer/build.h"
#include "base/contract.h"
#include "base/environment.h"
#include "base/exit_code.h"
#include "base/gigabytes.h"
#include "base/mem.h"
#include "base/options.h"

enum { TEXT_MAX_BYTES = 64 * 1024, GPUS_MAX = 1 << 20 };

struct plan_options {
    int64_t gpus, gpus_per_node;
    int min_nodes;                        /* of an elastic run; 0: it is none */
    const char *device, *network, *price; /* as they are written; NULL: not given */
    bool json, help;
};

struct table {
    struct option_row rows[8];
};

static struct table table_of(struct plan_options *o, bool only_advice)
{
    struct table table = {{
        {"gpus", 0, OPTION_NUMBER, &o->gpus, "N",
         "ranks in all (nnodes times nproc_per_node, as far as they are given)", 1, GPUS_MAX, NULL},
        {"gpus-per-node", 0, OPTION_NUMBER, &o->gpus_per_node, "N",
         "ranks of a node, which HYBRID shards among (nproc_per_node, or 8)", 1, GPUS_MAX, NULL},
        {"help", 'h', OPTION_FLAG, &o->help, NULL, "print this help", 0, 0, NULL},
    }};
    const struct option_row more[] = {
        {"json", 0, OPTION_FLAG, &o->json, NULL, "the same as one JSON object", 0, 0, NULL},
        {"device", 0, OPTION_TEXT, &o->device, "GPU",
         "adds time and cost on such GPUs: h100, h200, a100, b200, l40s, t4, or as nvidia-smi names one",
         0, 0, NULL},
        {"network", 0, OPTION_TEXT, &o->network, "BYTES",
         "per second and GPU between nodes, one way: 50e9 (that of the GPU's AWS instances)", 0, 0,
         NULL},
        {"price-per-gpu-hour", 0, OPTION_TEXT, &o->price, "PRICE",
         "of one GPU, in any currency: adds the cost of a billion tokens", 0, 0, NULL},
    };
    for (size_t i = 0; i < array_length(more) && !only_advice; i++)
        table.rows[3 + i] = more[i];
    return table;
}

static int print_help(bool only_advice)
{
    struct plan_options none;
    struct table table = table_of(&none, only_advice);
    auto_str struct str help;
    str_init(&help, TEXT_MAX_BYTES);
    str_printf(&help,
               "Usage: shoal %s [--config FILE] [--preset NAME] [--gpus N] [AGENT OPTION...]\n\n",
               only_advice ? "recommend" : "plan");
    str_add(
        &help,
        only_advice
            ? "Prints sharding flags and machines for a model of the configured size. `shoal plan`\n"
              "prints all that a run will need: parameters, memory per rank, bytes sent and FLOPs.\n"
            : "Prints what a training run will need, before any GPU is paid for: parameters, units,\n"
              "memory per rank for each sharding strategy, bytes sent and FLOPs per step; with\n"
              "--device also the time of a step, which is predicted, and what would be faster.\n"
              "`shoal recommend` prints only the flags and machines for a model of that size.\n");
    str_add(&help, "Takes all options of the agent (shoal-agent --help), and these:\n\n");
    options_help(table.rows, &help);
    fputs(str_text(&help), stdout);
    return EXIT_DONE;
}

/* Whether `arg` is the option `name`, alone or with "=value". */
static bool is_option(const char *arg, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(arg, "--", 2) && !strncmp(arg + 2, name, length) &&
           (arg[2 + length] == '\0' || arg[2 + length] == '=');
}

/* --device is the agent's, too: auto, cpu, cuda, cuda:N. */
static bool is_agents_device(const struct option_row *row, const char *arg, const char *next)
{
    const char *equals = strchr(arg, '='), *value = equals ? equals + 1 : next;
    return !strcmp(row->name, "device") && (!value || device_choice_is_valid(value));
}

/* Splits our options from the agent's. Both arrays have room for argc. */
static void split_options(const struct option_row *rows, int argc, char *const *argv, char **ours,
                          int *our_count, const char **agents, int *agent_count)
{
    for (int i = 1; i < argc; i++) {
        const struct option_row *row = rows;
        while (row->name && !is_option(argv[i], row->name) && strcmp(argv[i], "-h") != 0)
            row++;
        if (!row->name || is_agents_device(row, argv[i], argv[i + 1])) {
            agents[(*agent_count)++] = argv[i];
            continue;
        }
        ours[(*our_count)++] = argv[i];
        if (strcmp(argv[i], "-h") == 0)
            continue;
        if (row->kind != OPTION_FLAG && !strchr(argv[i], '=') && i + 1 < argc)
            ours[(*our_count)++] = argv[++i];
    }
}

/* example: of such a number. */
static int read_amount(const char *name, const char *text, double least, double most,
                       const char *example, double *ret_value, struct error *err)
{
    if (!text || (str_to_double(text, ret_value) && *ret_value >= least && *ret_value <= most))
        return 0;
    return error_set(err, ERR_CONFIG, "--%s %s: must be a number from %g to %g, as %s", name, text,
                     least, most, example);
}

/* What of time is asked; ret_question->device is NULL where nothing is. */
static int read_question(const struct plan_options *o, const struct config *config,
                         struct time_question *ret_question, struct error *err)
{
    const char *alone = o->network ? "network" : o->price ? "price-per-gpu-hour" : NULL;
    *ret_question = (struct time_question){0};
    if (!o->device && alone)
        return error_set(err, ERR_CONFIG, "--%s: needs --device, the GPU whose time is planned",
                         alone);
    if (!o->device)
        return 0;
    if (time_device_find(o->device, &ret_question->device, err) < 0)
        return error_wrap(err, "--device");
    if (read_amount("network", o->network, 1e6, 1e13, "50e9", &ret_question->network, err) < 0 ||
        read_amount("price-per-gpu-hour", o->price, 1e-6, 1e9, "2.5", &ret_question->price_per_hour,
                    err) < 0)
        return -1;
    if (!strcmp(config->value.runtime.device, "cpu"))
        return error_set(err, ERR_CONFIG,
                         "--device %s: the configuration has runtime.device cpu, and only a GPU's "
                         "time can be planned: give --runtime.device=cuda, or leave --device out",
                         o->device);
    return 0;
}

/* A model that is not on this machine has its published sizes, if it is known. */
static int resolve_model(struct agent_config *c, struct arena *arena, struct error *err)
{
    const char *path, *name = c->model.name_or_path;
    struct architecture published;
    struct error why;
    if (!name[0] || resolve_model_path(name, environment_get, NULL, arena, &path, &why) == 0)
        return 0;
    if (!c->model.architecture[0] && !architecture_find(name, &published))
        return error_set(err, why.code,
                         "model.name_or_path: %s; a plan needs its config.json, or the published "
                         "sizes of another (--model.architecture=llama3_8b)",
                         why.msg);
    fprintf(stderr,
            "note: the run will need it, planned is with published sizes: "
            "model.name_or_path: %s\n",
            why.msg);
    if (!c->model.architecture[0])
        c->model.architecture = name;
    if (c->model.type == MODEL_AUTO && architecture_find(c->model.architecture, &published))
        config_set_family(c, published.family);
    c->model.name_or_path = "";
    return 0;
}

/* A plan needs the model's sizes alone. Another place that is not here is reported: the run will
 * miss it, but for a preset's tokenizer. */
static int resolve_paths(struct config *config, struct arena *arena, struct error *err)
{
    struct agent_config *c = &config->value;
    if (config_is_language(c) && resolve_model(c, arena, err) < 0)
        return -1;
    const struct {
        const char *key, **name;
    } rows[] = {{"model.init_weights", &c->model.init_weights},
                {"data.tokenizer", &c->data.tokenizer}};
    for (size_t i = 0; i < array_length(rows) && config_is_language(c); i++) {
        const char *name = *rows[i].name, *path;
        bool is_asked = config_source_of(config, rows[i].name) > SOURCE_PRESET;
        struct error why;
        *rows[i].name = "";
        if (is_asked && name[0] &&
            resolve_model_path(name, environment_get, NULL, arena, &path, &why) < 0)
            fprintf(stderr, "note: the run will need it: %s: %s\n", rows[i].key, why.msg);
    }
    return resolve_config_paths(config, environment_get, NULL, arena, err);
}

/* Of what is not given, what the run's own flags say (the Fabric scripts' --devices 4); what they
 * leave to the place of the run is reported. */
static int count_ranks(struct plan_options *o, const struct agent_config *c, struct error *err)
{
    const char *per_node = c->runtime.nproc_per_node;
    int64_t local = 1, all = c->runtime.num_processes;
    int nodes = 1, most = 1;
    bool is_known = strcasecmp(per_node, "cpu") == 0 || str_to_i64(per_node, 1, GPUS_MAX, &local);
    if (c->runtime.nnodes[0] &&
        topology_parse_nodes("runtime.nnodes", c->runtime.nnodes, &nodes, &most, err) < 0)
        return -1;
    if (o->gpus_per_node == 0)
        o->gpus_per_node = is_known ? local : 8;
    o->min_nodes = most > nodes ? nodes : 0;
    if (o->gpus > 0)
        return 0;
    o->gpus = all > 0 ? all : local * nodes;
    if (all < 0 || (all == 0 && !is_known && (per_node[0] || nodes > 1)))
        fprintf(stderr,
                "note: how many GPUs a node has is known only where it runs: planned is one rank "
                "on each, %lld in all; --gpus says how many\n",
                (long long)o->gpus);
    return 0;
}

/* By what it was chosen, and what it then takes: whether that fits is for who knows the GPUs. */
static void add_basis(const struct run_plan *plan, int ranks, struct str *out)
{
    const struct run_plan_advice advice = run_plan_advise(plan->parameters);
    const struct run_plan_strategy *s = plan->strategies;
    while (s->strategy != advice.strategy)
        s++;
    str_printf(
        out,
        "That goes by the model's size alone, as in the AWS guide; GPUs, their memory and "
        "the links between them were not looked at.\n"
        "On %d rank%s it takes about %.3f GB per rank on its device, with this batch and length; shoal plan --gpus N "
        "prints what each strategy takes and sends.\n",
        ranks, ranks == 1 ? "" : "s", gigabytes(s->device));
}

/* Who asks for advice may not say how many ranks there are: as many as advised at least. */
static int advised_ranks(const struct model *model)
{
    const struct run_plan_advice advice = run_plan_advise(module_param_count(model->root));
    return advice.max_gpus * advice.min_nodes;
}

/* What is planned, and where. */
struct planned {
    const struct config *config;
    const struct model *model;
    struct run_plan_world world, fewest; /* fewest: of an elastic run, else 0 */
    enum shard_strategy strategy;
    struct run_plan_facts facts;
    struct run_plan plan;
    struct time_plan *time; /* NULL: not asked */
};

static void add_json(const struct planned *p, struct str *out)
{
    auto_str struct str time;
    str_init(&time, TEXT_MAX_BYTES);
    if (p->time)
        time_plan_json(p->time, &time);
    run_plan_json(&p->plan, &p->facts, p->strategy, str_text(&time), out);
}

static int add_text(const struct planned *p, struct str *out, struct error *err)
{
    run_plan_print(&p->plan, &p->facts, p->strategy, out);
    str_add(out, "Of what a rank has on its device: ");
    if (run_plan_savings(&p->config->value, p->model, &p->world, p->strategy, out, err) < 0)
        return -1;
    str_add(out, "\n");
    if (p->fewest.world_size > 0)
        run_plan_print_fewest(&p->config->value, p->model, &p->fewest, p->strategy, out);
    if (!p->time)
        return 0;
    str_add(out, "\n");
    time_plan_print(p->time, out);
    return 0;
}

static int make_plan(const struct plan_options *o, const struct config *config, bool only_advice,
                     struct arena *arena, struct str *out, struct error *err)
{
    const struct agent_config *c = &config->value;
    struct model *model;
    struct time_question question;
    struct time_plan time;
    if (build_model(c, arena, &model, err) < 0 || read_question(o, config, &question, err) < 0)
        return -1;
    int ranks = only_advice && o->gpus == 1 ? advised_ranks(model) : (int)o->gpus;
    struct planned p = {
        .config = config,
        .model = model,
        .world = {ranks, (int)o->gpus_per_node,
                  question.device ? question.device->compute_capability : 0, NULL},
        .fewest = {o->min_nodes * (int)o->gpus_per_node, (int)o->gpus_per_node, 0, NULL},
        .strategy = build_strategy(c, model)};
    if (run_plan_facts_make(c, model, &p.world, arena, &p.facts, err) < 0)
        return -1;
    run_plan_make(&p.facts, &p.plan);
    if (only_advice) {
        run_plan_print_advice(&p.plan, NULL, out);
        add_basis(&p.plan, ranks, out);
        return 0;
    }
    if (question.device) {
        if (time_plan_make(c, model, &p.world, p.strategy, &question, &time, err) < 0)
            return error_wrap(err, "--device");
        p.time = &time;
    }
    if (!o->json)
        return add_text(&p, out, err);
    add_json(&p, out);
    return 0;
}

/* It begins the name of an option of the agent's, which is not what is meant. */
static int refuse_json(int count, const char *const *agents, struct error *err)
{
    for (int i = 0; i < count; i++)
        if (is_option(agents[i], "json"))
            return error_set(err, ERR_CONFIG,
                             "--json: shoal recommend has text only; see shoal plan");
    return 0;
}

/* As `shoal run` takes them. */
static int refuse_manifest(int count, const char *const *agents, struct error *err)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(agents[i], "-f") || !strcmp(agents[i], "-k"))
            return error_set(err, ERR_CONFIG,
                             "%s: no manifest is read here: give the options that its container's "
                             "args have, and --gpus",
                             agents[i]);
    return 0;
}

static void print_note(void *ctx, const char *line)
{
    fprintf(stderr, "%s: note: %s\n", (const char *)ctx, line);
}

static int command(int argc, char *const *argv, bool only_advice)
{
    const char *name = only_advice ? "shoal recommend" : "shoal plan";
    auto_arena struct arena *arena = arena_open();
    struct plan_options options = {0};
    const struct table table = table_of(&options, only_advice);
    char **ours = arena_array(arena, char *, argc);
    const char **agents = arena_array(arena, const char *, argc);
    int our_count = 0, agent_count = 0;
    struct config config;
    struct error err;
    split_options(table.rows, argc, argv, ours, &our_count, agents, &agent_count);
    if ((only_advice && refuse_json(agent_count, agents, &err) < 0) ||
        refuse_manifest(agent_count, agents, &err) < 0 ||
        options_parse(table.rows, our_count, ours, &err) < 0)
        return exit_failed(name, &err);
    if (options.help)
        return print_help(only_advice);
    auto_str struct str others;
    str_init(&others, 4096);
    shim_variables(&others);
    if (config_parse(agent_count, agents, environment_get, NULL, arena, &config, &err) < 0 ||
        config_check_variables(environ, str_text(&others), arena, &config, &err) < 0 ||
        resolve_paths(&config, arena, &err) < 0)
        return exit_failed(name, &err);
    build_warn(&config, arena);
    config_notices(&config, print_note, (void *)(uintptr_t)name);
    if (count_ranks(&options, &config.value, &err) < 0)
        return exit_failed(name, &err);
    auto_str struct str text;
    str_init(&text, TEXT_MAX_BYTES);
    if (make_plan(&options, &config, only_advice, arena, &text, &err) < 0)
        return exit_failed(name, &err);
    fputs(str_text(&text), stdout);
    return EXIT_DONE;
}

int plan_command(int argc, char *const *argv)
{
    return command(argc, argv, false);
}

int recommend_command(int argc, char *const *argv)
{
    return command(argc, argv, true);
}
