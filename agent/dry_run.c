#include "agent/dry_run.h"

#include "agent/batches/batch_source.h"
#include "agent/dataset/token_files.h"
#include "agent/launch/device_choice.h"
#include "agent/notices.h"
#include "agent/plan/time_plan.h"
#include "agent/telemetry/nvml.h"
#include "agent/text/tokenizer.h"
#include "agent/trainer/build.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernels/device.h"

#include <stdio.h>

static int add_plan(const struct agent_config *c, const struct model *model, int world_size,
                    int local_size, int min_ranks, struct arena *arena, struct str *out,
                    struct error *err)
{
    struct run_plan_facts facts;
    struct run_plan plan;
    const struct run_plan_world world = {world_size, local_size, 0, NULL};
    if (run_plan_facts_make(c, model, &world, arena, &facts, err))
        return -1;
    run_plan_make(&facts, &plan);
    run_plan_print_short(&plan, &facts, build_strategy(c, model), out);
    if (min_ranks > 0)
        run_plan_print_fewest(c, model, &(struct run_plan_world){min_ranks, local_size, 0, NULL},
                              build_strategy(c, model), out);
    return 0;
}

/* Of the GPU that the node's first rank would have; false: there is none, or no driver's word. */
static bool name_gpu(const struct agent_config *c, char out[GPU_TEXT_BYTES])
{
    struct device_choice choice;
    char pci[DEVICE_PCI_BYTES];
    const char *where = pci;
    struct nvml *nvml;
    struct gpu_sample sample;
    struct error why;
    if (device_choose_here(c->runtime.device, c->runtime.share_gpus, 0, &choice, &why) ||
        !device_pci(choice.name, pci) || nvml_open(&where, 1, &nvml, &why))
        return false;
    nvml_read(nvml, 0, &sample);
    nvml_close(nvml);
    snprintf(out, GPU_TEXT_BYTES, "%s", sample.model);
    return true;
}

/* How long a step would take, where the machine's GPU is one that can be planned for. */
static int add_time(const struct agent_config *c, const struct model *model, int world_size,
                    int local_size, struct str *out, struct error *err)
{
    char name[GPU_TEXT_BYTES];
    const struct time_question question = {.device = name_gpu(c, name) ? time_device_of_driver(name)
                                                                       : NULL};
    const struct run_plan_world world = {world_size, local_size, 0, NULL};
    struct time_plan time;
    if (!question.device)
        return 0;
    if (time_plan_make(c, model, &world, build_strategy(c, model), &question, &time, err) == 0)
        time_plan_print_short(&time, out);
    else if (err->code == ERR_UNSUPPORTED)
        log_warning("the run would fail: %s", err->msg);
    else
        return -1;
    return 0;
}

/* Data of token ids needs no tokenizer; of data that is not here nobody knows. */
static bool needs_tokenizer(const struct token_files *files)
{
    return files->count == 0 || (files->format != TOKENS_LLMC && files->format != TOKENS_MEGATRON &&
                                 files->format != TOKENS_ARROW);
}

static void add_data(const struct agent_config *c, enum data_split split, struct arena *arena,
                     struct token_files *ret_files, struct str *out)
{
    bool train = split == SPLIT_TRAIN;
    const struct token_dataset dataset = batch_source_dataset(c, split);
    struct token_split parsed;
    struct error why;
    *ret_files = (struct token_files){0};
    if (token_split_parse(train ? c->data.train_split : c->data.eval_split, 0, &parsed, &why) ||
        token_files_find(&dataset, &parsed, arena, ret_files, &why)) {
        *ret_files = (struct token_files){0};
        log_warning("the run would fail: %s", why.msg);
        return;
    }
    str_printf(out, "%s data: %d file%s, the first is %s, read as %s\n",
               train ? "Training" : "Evaluation", ret_files->count,
               ret_files->count == 1 ? "" : "s", ret_files->paths[0],
               token_format_name(ret_files->format));
}

static int add_tokenizer(const struct config *config, const struct model *model,
                         const struct token_files *files, struct str *out, struct error *err)
{
    struct tokenizer *tokenizer;
    if (build_tokenizer(&config->value, model, &tokenizer, err))
        return -1;
    if (tokenizer)
        str_printf(out, "Tokenizer: %d ids\n", (int)tokenizer_vocabulary(tokenizer));
    else if (needs_tokenizer(files))
        log_warning("the run would fail on data of text: there is no tokenizer%s%s; name one by "
                    "data.tokenizer",
                    config->no_tokenizer[0] ? ": " : "", config->no_tokenizer);
    tokenizer_close(tokenizer);
    return 0;
}

int dry_run(const struct config *config, int world_size, int local_size, int min_ranks,
            struct str *out, struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    const struct agent_config *c = &config->value;
    struct model *model = NULL;
    notices_log(config);
    if (build_model(c, arena, &model, err))
        return -1;
    build_describe(config, model, out);
    if (add_plan(c, model, world_size, local_size, min_ranks, arena, out, err) ||
        add_time(c, model, world_size, local_size, out, err))
        return -1;
    if (model->language.V == 0) /* images: what is in data.root is opened by the run only */
        return 0;
    struct token_files files, eval_files;
    add_data(c, SPLIT_TRAIN, arena, &files, out);
    if (c->data.eval_dataset[0] && c->eval.strategy != EVAL_NO)
        add_data(c, SPLIT_EVAL, arena, &eval_files, out);
    return add_tokenizer(config, model, &files, out, err);
}
